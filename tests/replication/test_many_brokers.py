"""Hundreds of fetchers: idle ones cost nothing, however many partitions there are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from tests.replication.brokers import Brokers

MakeBrokers = Callable[..., Brokers]
BROKERS = 100
PARTITIONS = 1_000


@pytest.mark.slow
def test_a_hundred_brokers_replicate_a_thousand_partitions(make_brokers: MakeBrokers) -> None:
    brokers = make_brokers(BROKERS, durability="memory")
    leaders = [index % BROKERS + 1 for index in range(PARTITIONS)]
    for index, leader in enumerate(leaders):
        replicas = [(leader - 1 + step) % BROKERS + 1 for step in (0, 1, 7)]
        brokers.controller.create(*replicas, index=index)
    brokers.run(1)
    for index, leader in enumerate(leaders):
        brokers.append(leader, b"%d" % index, index=index)
    brokers.run(1)
    for index, leader in enumerate(leaders):
        assert brokers.offsets(index)[leader] == (1, 1)
    brokers.run(1_000)
    brokers.sent.clear()
    brokers.run(1_000)
    asked = Counter((sender, receiver) for sender, receiver, _ in brokers.sent)
    assert len(asked) == 2 * BROKERS, "one fetcher for each leader"
    assert set(asked.values()) == {2}, "one request in half a second"
    assert not any(request.topics for _, _, request in brokers.sent)
