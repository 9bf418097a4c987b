"""A batch job: read what happened in a slice of time, and write one result for each key.

The last record of a run is its marker. Results without one are of a run that broke off, and
readers leave them out. A slice that has a marker is not computed again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

from kafka import KafkaConsumer, KafkaProducer, TopicPartition

POLL_MS = 500


@dataclass(frozen=True)
class Slice:
    """Records from `start_ms` on, and before `end_ms`."""

    start_ms: int
    end_ms: int

    def __post_init__(self) -> None:
        if self.start_ms >= self.end_ms:
            raise ValueError(f"the slice {self.start_ms} to {self.end_ms} is empty")

    @property
    def name(self) -> str:
        return f"{self.start_ms}-{self.end_ms}"


@dataclass
class Report:
    """The result of one slice."""

    totals: dict[str, int] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    unreadable: int = 0
    is_new: bool = True

    def add(self, key: bytes | None, value: bytes | None) -> None:
        """Count one record."""
        if value is None:
            return  # a tombstone says nothing
        try:
            amount = json.loads(value)["amount"]
            name = (key or b"").decode()
            if type(amount) is not int:
                raise TypeError(f"{amount!r} is no whole number")
        except (ValueError, TypeError, KeyError, RecursionError):
            self.unreadable += 1
            return
        self.totals[name] = self.totals.get(name, 0) + amount
        self.counts[name] = self.counts.get(name, 0) + 1

    def rows(self) -> dict[str, dict[str, int]]:
        """Return the result of each key, sorted."""
        return {
            name: {"total": self.totals[name], "count": self.counts[name]}
            for name in sorted(self.totals)
        }

    def digest(self) -> str:
        """Return a checksum of the rows, for the marker."""
        return hashlib.sha256(json.dumps(self.rows()).encode()).hexdigest()


class BatchJob:
    """Computes reports from `source` into `target`."""

    def __init__(
        self, consumer: dict[str, Any], producer: dict[str, Any], source: str, target: str
    ) -> None:
        """Take the arguments of both clients, and the names of the topics."""
        self._consumer_settings = {**consumer, "isolation_level": "read_committed"}
        self._producer_settings = producer
        self._source = source
        self._target = target

    def run(self, part: Slice) -> Report:
        """Compute the report of a slice and write it, or return the present one."""
        with closing(KafkaConsumer(**self._consumer_settings)) as consumer:
            done = self._find(consumer, part)
            if done is not None:
                return done
            report = Report()
            for record in self._records(consumer, self._source, part):
                report.add(record.key, record.value)
            count = len(consumer.partitions_for_topic(self._target))
        self._write(part, report, _partition_of(part, count))
        return report

    def find(self, part: Slice) -> Report | None:
        """Return the finished report of a slice, or None.

        Raises:
            ValueError: the results do not fit the marker.
        """
        with closing(KafkaConsumer(**self._consumer_settings)) as consumer:
            return self._find(consumer, part)

    def _find(self, consumer: KafkaConsumer, part: Slice) -> Report | None:
        report, marker = Report(is_new=False), None
        for record in self._records(consumer, self._target):
            headers = dict(record.headers)
            if headers.get("slice") != part.name.encode():
                continue
            found = json.loads(record.value)
            if "marker" in headers:
                marker = found
            elif marker is None:
                name = (record.key or b"").decode().partition("/")[2]
                report.totals[name] = found["total"]
                report.counts[name] = found["count"]
        if marker is None:
            return None
        if report.digest() != marker["digest"]:
            raise ValueError(f"the results of {part.name} do not fit their marker")
        report.unreadable = marker["unreadable"]
        return report

    def _records(
        self, consumer: KafkaConsumer, topic: str, part: Slice | None = None
    ) -> Iterator[Any]:
        """Yield the present records of a topic, all or in a slice of time."""
        numbers = sorted(consumer.partitions_for_topic(topic) or ())
        partitions = [TopicPartition(topic, each) for each in numbers]
        if not partitions:
            raise LookupError(f"no topic {topic!r}")
        consumer.assign(partitions)
        ends = consumer.end_offsets(partitions)
        starts = consumer.beginning_offsets(partitions)
        if part is not None:
            found = consumer.offsets_for_times(dict.fromkeys(partitions, part.start_ms))
            for each in partitions:
                starts[each] = found[each].offset if found.get(each) else ends[each]
        left = {each for each in partitions if starts[each] < ends[each]}
        consumer.assign(sorted(left))
        for each in left:
            consumer.seek(each, starts[each])
        while left:
            for where, records in consumer.poll(timeout_ms=POLL_MS).items():
                for record in records:
                    if record.offset < ends[where] and _is_in(record.timestamp, part):
                        yield record
            left = {each for each in left if consumer.position(each) < ends[each]}

    def _write(self, part: Slice, report: Report, partition: int) -> None:
        """Write the rows and then the marker, all to one partition, which keeps their order."""
        headers = [("slice", part.name.encode())]
        with closing(KafkaProducer(**self._producer_settings)) as producer:
            sent = [
                producer.send(
                    self._target,
                    json.dumps(row).encode(),
                    f"{part.name}/{name}".encode(),
                    headers=headers,
                    partition=partition,
                )
                for name, row in report.rows().items()
            ]
            for each in sent:
                each.get(30)
            told = {"digest": report.digest(), "unreadable": report.unreadable}
            producer.send(
                self._target,
                json.dumps(told).encode(),
                part.name.encode(),
                headers=[*headers, ("marker", b"done")],
                partition=partition,
            ).get(30)


def _partition_of(part: Slice, count: int) -> int:
    return hashlib.sha256(part.name.encode()).digest()[0] % count


def _is_in(timestamp: int, part: Slice | None) -> bool:
    return part is None or part.start_ms <= timestamp < part.end_ms
