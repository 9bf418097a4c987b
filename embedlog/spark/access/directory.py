"""A data directory as Spark reads it: without locks, even while another process writes to it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import embedlog
from embedlog import errors, topic_names
from embedlog.common import TopicPartition
from embedlog.errors import CorruptRecord
from embedlog.logger import Logger
from embedlog.runtime import real_runtime
from embedlog.spark.access.committed import CommittedOffset, committed_offsets
from embedlog.storage import paths
from embedlog.storage.state_files import partition_metadata

if TYPE_CHECKING:
    from embedlog.reader.partition_range import PartitionRange
    from embedlog.reader.reader import PartitionReader
    from embedlog.spark.access.arrow_chunks import ArrowChunks
    from embedlog.storage.state_files.retention_pins import RetentionPin

INTERNAL_TOPICS = topic_names.INTERNAL_TOPICS | {topic_names.METADATA_TOPIC}
"""Kafka's internal topics. Patterns do not match them."""
PIN_MS = 10 * 60 * 1000
"""How long retention by size and age spares the records of a planned read; see `retention_pins`."""

_log = Logger("spark")


def stored_topic_id(path: str, key: TopicPartition) -> bytes:
    """Return the topic's id from the directory of one partition.

    Raises:
        FileNotFoundError: the partition has no such file.
        CorruptRecord: the file is damaged.
    """
    file = f"{paths.log_directory(path, key)}/{paths.PARTITION_METADATA}"
    return partition_metadata.decode(real_runtime().files.read(file), file)


@dataclass(frozen=True, slots=True)
class DirectorySlice:
    """A range of offsets in a partition's files. Implements `Slice`."""

    range: PartitionRange

    def arrow_batches(self, chunks: ArrowChunks) -> Iterator[Any]:
        return chunks.of_batches(self.range.batches())

    def remaining(self, offset: int) -> DirectorySlice | None:
        begin = self.range.log_start()
        is_left = offset < begin < self.range.end
        return DirectorySlice(self.range._replace(start=begin)) if is_left else None


class DirectoryAccess:
    """Implements `LogAccess`. Each call of `bounds` looks again at the owner's files."""

    def __init__(self, path: str, *, read_committed: bool) -> None:
        self._reader = embedlog.open_reader(path)
        self._isolation_level = "read_committed" if read_committed else "read_uncommitted"
        self._is_committed = read_committed
        self._known: dict[TopicPartition, PartitionReader] = {}
        self._pin: RetentionPin | None = None

    def topics(self) -> list[str]:
        return [name for name in self._reader.topics() if name not in INTERNAL_TOPICS]

    @property
    def path(self) -> str:
        return self._reader.path

    def all_partitions(self) -> list[TopicPartition]:
        """Return all partitions, including internal topics."""
        return [
            TopicPartition(topic, number)
            for topic in self._reader.topics()
            for number in self._reader.partitions(topic)
        ]

    def partitions(self, topic: str) -> list[int]:
        return self._reader.partitions(topic)

    def bounds(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, tuple[int, int]]:
        """All bounds are of one moment: they include all partitions of a staged commit, or none.

        Raises:
            CorruptRecord: the last segment of a partition is damaged, so its end is unknown.
        """
        wanted = [key for key in partitions if key.partition in self.partitions(key.topic)]
        found = {}
        parts = self._reader.snapshot(wanted, known=self._known.values(), is_checked=False)
        for key, part in zip(wanted, parts, strict=True):
            if part.damage is not None:
                raise part.damage
            self._known[key] = part
            end = part.last_stable_offset if self._is_committed else part.high_watermark
            found[key] = (part.log_start_offset, max(part.log_start_offset, end))
        return found

    def part(self, key: TopicPartition) -> PartitionReader:
        """Return the partition as it was at the last call of `bounds`."""
        if key not in self._known:
            self.bounds([key])
        if key not in self._known:
            raise errors.UnknownTopicOrPartition(f"{key} is not in {self._reader.path}")
        return self._known[key]

    def topic_ids(self, partitions: Iterable[TopicPartition]) -> dict[str, bytes]:
        found: dict[str, bytes] = {}
        for key in partitions:
            if key.topic not in found:
                with suppress(FileNotFoundError, CorruptRecord):
                    found[key.topic] = stored_topic_id(self.path, key)
        return found

    def offset_for_timestamp(self, key: TopicPartition, timestamp: int) -> int | None:
        return self.part(key).offset_for_timestamp(timestamp)

    def committed(self, group: str) -> dict[TopicPartition, int]:
        return {
            each.topic_partition: each.offset
            for each in self.all_committed()
            if each.group == group
        }

    def all_committed(self) -> list[CommittedOffset]:
        return committed_offsets(self._reader)

    def cuts(self, key: TopicPartition, start: int, end: int, size_max: int) -> list[int]:
        return self.part(key).cuts(start, end, size_max)

    def pin(self, starts: Mapping[TopicPartition, int]) -> None:
        """A pin expires by itself, because nobody reports that the last task is done."""
        former, self._pin = self._pin, None
        try:
            if starts:
                offsets = {(key.topic, key.partition): start for key, start in starts.items()}
                self._pin = self._reader.pin(offsets, timeout_ms=PIN_MS)
            if former is not None:
                former.release()
        except OSError as error:
            _log.debug("%s: cannot pin the records of a read: %s", self._reader.path, error)

    def slice(self, key: TopicPartition, start: int, end: int) -> DirectorySlice:
        return DirectorySlice(
            self.part(key).range(start, end, isolation_level=self._isolation_level)
        )

    def close(self) -> None:
        self._reader.close()
