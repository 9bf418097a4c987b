"""Copies in transactions, by every client, while the broker and the copiers are killed.

    python -m tests.interop.chains [--count 20] [--seed 1]

`workers.py`, `Copy.java`, `copy.js` and `franz/` hold the copiers: programs that take a group's
position, copy a few records and commit them and the position in one transaction, give up every
fifth, and end when everything is copied. Whatever goes wrong ends them with an error. `story`
starts them all again, kills them and the broker at random, and looks at what is there in the end.

`WordCount.java` is a program of Kafka Streams, which `test_streams` kills likewise.
"""
