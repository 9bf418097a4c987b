"""How a read looks at a log: a data directory, or brokers at an address.

The process that plans a read uses a `LogAccess`. The `Slice`s that it returns are pickled; the
process of a task reads them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from embedlog.common import TopicPartition
from embedlog.spark.offsets import OffsetRange
from embedlog.spark.options import SourceOptions

if TYPE_CHECKING:
    from embedlog.reader.partition_range import PartitionRange
    from embedlog.spark.access.arrow_chunks import ArrowChunks


class Slice(Protocol):
    """A range of offsets of one partition. Can be pickled."""

    @property
    def range(self) -> OffsetRange | PartitionRange: ...

    def arrow_batches(self, chunks: ArrowChunks) -> Iterator[Any]:
        """Yield the Arrow batches that `chunks` fills; the last rows may wait for its `flush`.

        Raises:
            OffsetOutOfRange, UnknownTopicOrPartition: the records were removed before this read.
            CorruptRecord: the log is damaged.
        """

    def remaining(self, offset: int) -> Slice | None:
        """Return the rest of this slice if the log begins after `offset`, or None.

        Raises:
            UnknownTopicOrPartition: the topic no longer exists.
        """


class LogAccess(Protocol):
    """The log at this moment. For one thread."""

    def topics(self) -> list[str]:
        """Return the names of all topics except internal ones."""

    def partitions(self, topic: str) -> list[int]:
        """Return the topic's partition numbers; empty if the topic does not exist."""

    def bounds(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, tuple[int, int]]:
        """Return (first offset, end offset) at this reader's isolation level.

        Partitions that do not exist are left out.
        """

    def topic_ids(self, partitions: Iterable[TopicPartition]) -> dict[str, bytes]:
        """Return the ids of the topics of `partitions` if they are known.

        A topic that was made anew has another id. Ask before `bounds`: then ids are never newer
        than the offsets beside them, and a topic made anew in between is found the next time.
        """

    def offset_for_timestamp(self, key: TopicPartition, timestamp: int) -> int | None:
        """Return the first offset at or after `timestamp` (ms), None if all records are older."""

    def committed(self, group: str) -> dict[TopicPartition, int]:
        """Return the offsets that the group has committed."""

    def cuts(self, key: TopicPartition, start: int, end: int, size_max: int) -> list[int]:
        """Return offsets that cut [start, end) into parts of about `size_max` bytes.

        Empty if the positions of batches are unknown.
        """

    def pin(self, starts: Mapping[TopicPartition, int]) -> None:
        """Ask the log's owner to keep records from `starts` on for a while; replaces the last call.

        Best effort: a reader without write permission reads without a pin.
        """

    def slice(self, key: TopicPartition, start: int, end: int) -> Slice:
        """Return [start, end) as a slice for a task."""

    def close(self) -> None:
        """Release files and connections."""


def open_access(options: SourceOptions) -> LogAccess:
    """Open the log that `options` name.

    Raises:
        ConfigError: `path` is not a directory.
        NoBrokersAvailable: no broker answers.
    """
    if options.path is not None:
        from embedlog.spark.access.directory import DirectoryAccess

        return DirectoryAccess(options.path, read_committed=options.read_committed)
    from embedlog.spark.access.brokers import BrokerAccess

    return BrokerAccess(options)
