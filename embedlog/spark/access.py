"""What a read asks of the log, wherever the log is: a directory, or brokers at an address.

A `LogAccess` is used by the process that plans; it says what there is. What it hands out to be
read, a `Slice`, is pickled and read by the process of a task.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from embedlog.common import TopicPartition

if TYPE_CHECKING:
    from embedlog.spark.decode import ArrowChunks
    from embedlog.spark.options import SourceOptions


class Slice(Protocol):
    """Some offsets of one partition. Can be pickled."""

    @property
    def topic(self) -> str: ...

    @property
    def partition(self) -> int: ...

    @property
    def start(self) -> int: ...

    @property
    def end(self) -> int: ...

    def arrow_batches(self, chunks: ArrowChunks) -> Iterator[Any]:
        """Read it, as the Arrow batches that `chunks` makes; some may be left for its `flush`.

        Raises:
            OffsetOutOfRange, UnknownTopicOrPartition: it was removed before it was read.
            CorruptRecord: it is damaged.
        """

    def remaining(self, offset: int) -> Slice | None:
        """What the log still has of it, when it begins behind `offset` by now; None otherwise.

        Raises:
            UnknownTopicOrPartition: there is no such topic any more.
        """


class LogAccess(Protocol):
    """The log as it is at the moment. Used by one thread."""

    def topics(self) -> list[str]:
        """The names of all topics but internal ones."""

    def partitions(self, topic: str) -> list[int]:
        """The numbers of a topic's partitions; none of a topic that is not there."""

    def bounds(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, tuple[int, int]]:
        """Where each begins and ends for a reader of this isolation level.

        Those that do not exist are left out.
        """

    def offset_for_timestamp(self, key: TopicPartition, timestamp: int) -> int | None:
        """The first offset that is not older than `timestamp`, in ms; None when all are older."""

    def committed(self, group: str) -> dict[TopicPartition, int]:
        """What a group has committed."""

    def cuts(self, key: TopicPartition, start: int, end: int, size_max: int) -> list[int]:
        """Where to cut [start, end) into parts of some bytes; none where that is not known."""

    def pin(self, starts: Mapping[TopicPartition, int]) -> None:
        """Ask the owner to keep what lies from there on for a while; the last one ends.

        Best effort: who may only read is not in the way of anybody.
        """

    def slice(self, key: TopicPartition, start: int, end: int) -> Slice:
        """Those offsets, to be read in a task."""

    def close(self) -> None:
        """Give back what it uses."""


def open_access(options: SourceOptions) -> LogAccess:
    """The log that `options` name.

    Raises:
        ConfigError: `path` is not a directory. NoBrokersAvailable: nobody answers.
    """
    if options.path is not None:
        from embedlog.spark.directory_access import DirectoryAccess

        return DirectoryAccess(options.path, read_committed=options.read_committed)
    from embedlog.spark.broker_access import BrokerAccess

    return BrokerAccess(options)
