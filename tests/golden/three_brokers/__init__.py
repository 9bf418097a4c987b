"""Scenarios of three brokers: elections, reassignments, in-sync sets, requests to wrong brokers.

As in the package above, but each step names the broker of its request, and between steps brokers
are stopped, killed, started, paused. `python -m tests.golden.three_brokers.record` starts the real
brokers and writes their answers to `recorded/`.

Leaders, in-sync sets and epochs are compared unchanged: assignments are manual where Kafka would
choose at random, and a scenario continues when every live broker has the metadata that it waits
for.
"""
