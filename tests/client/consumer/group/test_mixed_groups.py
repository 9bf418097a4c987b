"""Our consumer and other clients in one group: each leads in turn and understands the others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import embedlog
from tests.client.consumer.group.test_groups import ROUNDS_MAX, fill, member, parts

pytestmark = [pytest.mark.interop, pytest.mark.slow]


class Librdkafka:
    """confluent-kafka's consumer."""

    strategies = ("range", "roundrobin", "cooperative-sticky")

    def __init__(self, address: str, strategy: str) -> None:
        from confluent_kafka import Consumer

        self._consumer = Consumer(
            {
                "bootstrap.servers": address,
                "group.id": "readers",
                "auto.offset.reset": "earliest",
                "heartbeat.interval.ms": 100,
                "partition.assignment.strategy": strategy,
            }
        )
        self._consumer.subscribe(["mixed"])
        self.close = self._consumer.close

    def poll(self) -> int:
        return self._consumer.poll(0.02) is not None

    def assignment(self) -> set[tuple[str, int]]:
        return {(each.topic, each.partition) for each in self._consumer.assignment()}


class KafkaPython:
    """kafka-python's consumer, which knows its topic before it joins.

    As leader it would join again when it learns of partitions later, and would lose the assignment
    if a poll ends during that round (3.0.12: `need_rejoin` is false by then).
    """

    strategies = ("range", "roundrobin", "sticky")

    def __init__(self, address: str, strategy: str) -> None:
        from kafka import KafkaConsumer
        from kafka.coordinator.assignors.range import RangePartitionAssignor
        from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
        from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor

        chosen: dict[str, Any] = {
            "range": RangePartitionAssignor,
            "roundrobin": RoundRobinPartitionAssignor,
            "sticky": StickyPartitionAssignor,
        }
        self._consumer = KafkaConsumer(
            "mixed",
            bootstrap_servers=address,
            group_id="readers",
            auto_offset_reset="earliest",
            heartbeat_interval_ms=100,
            partition_assignment_strategy=[chosen[strategy]],
        )
        assert self._consumer.partitions_for_topic("mixed") == {0, 1, 2, 3}
        self.close = self._consumer.close

    def poll(self) -> int:
        return sum(map(len, self._consumer.poll(timeout_ms=20).values()))

    def assignment(self) -> set[tuple[str, int]]:
        return {(each.topic, each.partition) for each in self._consumer.assignment()}


CASES = [(other, name) for other in (Librdkafka, KafkaPython) for name in other.strategies]


@pytest.mark.parametrize("ours_leads", [True, False], ids=["ours first", "theirs first"])
@pytest.mark.parametrize(
    ("other", "strategy"), CASES, ids=[f"{other.__name__} {name}" for other, name in CASES]
)
def test_a_group_of_ours_and_theirs(
    cluster: embedlog.Cluster, other: Any, strategy: str, ours_leads: bool
) -> None:
    address = cluster.listen("127.0.0.1", 0).address
    fill(lambda: address, "mixed", 4, 10)
    everything = parts("mixed", 0, 1, 2, 3)

    def make_ours() -> Any:
        consumer = member(
            lambda: address,
            partition_assignment_strategy=strategy,
            heartbeat_interval_ms=100,
        )
        consumer.subscribe(["mixed"])
        return consumer

    theirs = None if ours_leads else other(address, strategy)
    ours = make_ours() if ours_leads else None
    seen = poll(ours, theirs, lambda: held(ours) | held(theirs) == everything)
    theirs = theirs or other(address, strategy)
    ours = ours or make_ours()
    seen += poll(ours, theirs, lambda: len(held(ours)) == len(held(theirs)) == 2)
    assert held(ours) | held(theirs) == everything
    (ours if ours_leads else theirs).close()
    left = theirs if ours_leads else ours
    seen += poll(
        None if ours_leads else ours,
        theirs if ours_leads else None,
        lambda: held(left) == everything,
    )
    assert seen >= 40
    left.close()


def held(consumer: Any) -> set[Any]:
    return set() if consumer is None else set(consumer.assignment())


def poll(ours: Any, theirs: Any, condition: Callable[[], bool]) -> int:
    """Poll both until the condition holds and a little longer; return the number of records."""
    seen = extra = 0
    for _ in range(ROUNDS_MAX):
        if ours is not None:
            seen += len(ours.poll(20))
        if theirs is not None:
            seen += theirs.poll()
        extra = extra + 1 if condition() else 0
        if extra > 50:
            return seen
    raise AssertionError((held(ours), held(theirs)))
