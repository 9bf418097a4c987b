"""What the tests of all applications need from a cluster, the fake or a real one."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from time import monotonic
from typing import Any, NamedTuple, TypeVar

from tests.support.sizes import size

T = TypeVar("T")
PATIENCE_S = 30.0
WANTS_ALL = os.environ.get("EMBEDLOG_APPLICATIONS") == "all"
"""True for all cases in a run that is not at full size otherwise."""


def part_of(cases: Sequence[T], share: int) -> list[T]:
    """Return all cases at full size, and otherwise about `share` of them, spread evenly."""
    count = len(cases) if WANTS_ALL else min(len(cases), size(share, full=len(cases)))
    return [cases[place * len(cases) // count] for place in range(count)]


class Found(NamedTuple):
    """A record as a test compares it."""

    key: bytes | None
    value: bytes | None
    headers: dict[str, bytes | None]
    partition: int
    offset: int


def put(kafka: Any, topic: str, value: bytes | None, key: bytes | None = None, **more: Any) -> Any:
    """Write a record, and return its position once it is there."""
    return kafka.producer().send(topic, value, key, **more).result(PATIENCE_S)


def put_all(kafka: Any, topic: str, records: Iterable[dict[str, Any]]) -> list[Any]:
    """Write records in order, and return their positions."""
    producer = kafka.producer()
    sent = [producer.send(topic, **each) for each in records]
    return [each.result(PATIENCE_S) for each in sent]


def read_all(kafka: Any, topic: str) -> list[Found]:
    """Return all records of a topic, by partition and offset."""
    consumer = kafka.consumer(auto_offset_reset="earliest")
    partitions = [(topic, each.partition) for each in consumer.partitions_for(topic)]
    consumer.assign(partitions)
    ends = consumer.end_offsets(partitions)
    found: list[Found] = []
    until_done(
        lambda: found.extend(map(_found, consumer.poll(100))),
        lambda: all(consumer.position(each) >= end for each, end in ends.items()),
    )
    return sorted(found, key=lambda each: (each.partition, each.offset))


def until_done(step: Callable[[], object], is_done: Callable[[], bool]) -> None:
    """Repeat a step, which waits itself, until all is done."""
    deadline = monotonic() + PATIENCE_S
    while not is_done():
        assert monotonic() < deadline, f"not done after {PATIENCE_S} s"
        step()


def _found(record: Any) -> Found:
    headers = dict(record.headers or ())
    return Found(record.key, record.value, headers, record.partition, record.offset)
