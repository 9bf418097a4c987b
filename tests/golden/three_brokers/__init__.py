"""Scenarios of three brokers: elections, reassignments, in-sync sets, requests to the wrong one.

As in the package above, but each step names the broker it is sent to, and between steps brokers are
stopped, killed, started, paused. `python -m tests.golden.three_brokers.record` starts the real
brokers and writes their answers to `recorded/`.

Who leads, who is in sync and each epoch are compared as they are: assignments are written out where
Kafka would choose at random, and a scenario goes on when every live broker knows what it waits for.
"""
