"""The same requests to a real Apache Kafka 4.4.0 and to embedlog, compared field by field.

`python -m tests.golden.record` starts the real broker, plays every scenario against it and writes
its answers to `recorded/`. `test_golden.py` plays the scenarios against embedlog and compares, so
that CI needs no JVM. Deliberate differences are in `differences.py`, with the reason.

Scenarios about groups need brokers with other settings (`brokers.py`), several connections at once
(`members.py`), and time-outs: embedlog plays them without sockets and under a simulated clock
(`simulated.py`), the real broker in real time.
"""
