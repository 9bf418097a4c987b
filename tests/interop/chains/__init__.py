"""Copies in transactions, by every client, while the broker and the copiers are killed.

    python -m tests.interop.chains [--count 20] [--seed 1]

`workers.py`, `Copy.java`, `copy.js` and `franz/` hold the copiers. A copier takes a group's
position, copies a few records, and commits them and the position in one transaction; it aborts
every fifth, and ends when everything is copied. Any error ends it. `story` restarts the copiers,
kills them and the broker at random, and checks the final copies.

`WordCount.java` is a program of Kafka Streams, which `test_streams` kills in the same way.
"""
