"""A log behind brokers, read by Spark's processes with embedlog's own client."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import embedlog
from embedlog import OffsetAndMetadata
from embedlog.common import TopicPartition
from embedlog.errors import TimedOut
from embedlog.runtime import real_runtime
from embedlog.spark.access.arrow_chunks import ArrowChunks
from embedlog.spark.offsets import OffsetRange
from embedlog.spark.options import SourceOptions

_POLL_MS = 500


@dataclass(frozen=True, slots=True)
class BrokerSlice:
    """A range of offsets that brokers serve. Implements `Slice`."""

    bootstrap_servers: str
    settings: dict[str, str] = field(repr=False)
    range: OffsetRange
    timeout_ms: int

    def arrow_batches(self, chunks: ArrowChunks) -> Iterator[Any]:
        """Raises TimedOut if no broker returned records for `kafkaConsumer.pollTimeoutMs`."""
        key = self.range.topic_partition
        clock = real_runtime().clock
        with embedlog.Consumer(self.bootstrap_servers, self.settings) as consumer:
            consumer.assign([key])
            consumer.seek(key, self.range.start)
            position, deadline = self.range.start, clock.monotonic_ms() + self.timeout_ms
            while position < self.range.end:
                if chunks.has_headers:
                    for record in consumer.poll(_POLL_MS):
                        yield from chunks.add_record(record, record.timestamp_type)
                else:
                    for polled in consumer.poll_columns(_POLL_MS):
                        yield from chunks.add_columns(polled, polled.timestamp_type)
                before, position = position, consumer.position(key)
                if position > before:
                    deadline = clock.monotonic_ms() + self.timeout_ms
                elif clock.monotonic_ms() > deadline:
                    raise TimedOut(
                        f"Cannot fetch record for offset {position} of {key} in "
                        f"{self.timeout_ms} milliseconds"
                    )

    def remaining(self, offset: int) -> BrokerSlice | None:
        key = self.range.topic_partition
        with embedlog.Consumer(self.bootstrap_servers, self.settings) as consumer:
            begin = consumer.beginning_offsets([key])[key]
        is_left = offset < begin < self.range.end
        return replace(self, range=replace(self.range, start=begin)) if is_left else None


class BrokerAccess:
    """Implements `LogAccess` with embedlog's client."""

    def __init__(self, options: SourceOptions) -> None:
        assert options.bootstrap_servers is not None, "the options were checked"
        self._servers = options.bootstrap_servers
        isolation = "read_committed" if options.read_committed else "read_uncommitted"
        self._settings = {
            **options.client_settings,
            "isolation.level": isolation,
            "enable.auto.commit": "false",
            "auto.offset.reset": "none",
        }
        self._timeout_ms = options.poll_timeout_ms
        self._consumer = embedlog.Consumer(self._servers, self._settings)

    def topics(self) -> list[str]:
        return sorted(n for n, info in self._consumer.list_topics().items() if not info.is_internal)

    def partitions(self, topic: str) -> list[int]:
        return sorted(each.partition for each in self._consumer.partitions_for(topic))

    def bounds(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, tuple[int, int]]:
        wanted = [key for key in partitions if key.partition in self.partitions(key.topic)]
        starts = self._consumer.beginning_offsets(wanted)
        ends = self._consumer.end_offsets(wanted)
        return {key: (starts[key], max(starts[key], ends[key])) for key in wanted}

    def topic_ids(self, _partitions: Iterable[TopicPartition]) -> dict[str, bytes]:
        """Return nothing: offsets over the wire are the connector's, to the letter."""
        return {}

    def offset_for_timestamp(self, key: TopicPartition, timestamp: int) -> int | None:
        found = self._consumer.offsets_for_times({key: timestamp})[key]
        return None if found is None else found.offset

    def committed(self, group: str) -> dict[TopicPartition, int]:
        with embedlog.Admin(self._servers) as admin:
            stored = admin.list_group_offsets([group])[group]
        return {
            key: each.offset for key, each in stored.items() if isinstance(each, OffsetAndMetadata)
        }

    def cuts(self, _key: TopicPartition, _start: int, _end: int, _size_max: int) -> list[int]:
        """Return nothing: brokers do not tell the positions of their batches."""
        return []

    def pin(self, _starts: Mapping[TopicPartition, int]) -> None:
        """Do nothing: the brokers' own retention settings hold."""

    def slice(self, key: TopicPartition, start: int, end: int) -> BrokerSlice:
        range = OffsetRange(*key, start, end)
        return BrokerSlice(self._servers, self._settings, range, self._timeout_ms)

    def close(self) -> None:
        self._consumer.close()
