"""Offsets that are known to be published, read by another process without a look at the log's end.

Whoever plans a read has asked a `ForeignLog` how far the owner has published. The parts of it that
are read elsewhere, in any order and perhaps again, need no such look: it costs a walk over the last
segment. Nor do they take a lock or write a file.
"""

from __future__ import annotations

from typing import NamedTuple

from embedlog import errors
from embedlog.storage.foreign.batches import ForeignListing, walk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from embedlog.common import TopicPartition
    from embedlog.runtime.files import Files
    from embedlog.storage.foreign.segment import Batch, ForeignSegment


class Mark(NamedTuple):
    """Where a batch began once: a hint. Only its owner has the index of a log's last segment."""

    segment: int
    base_offset: int
    position: int


class ForeignRange:
    """Batches below `high_watermark`, which was published once. Not thread-safe.

    `topic_id` is the content of `partition.metadata` when it was planned: a topic that was made
    anew since is another one. `mark` is at the begin of what will be read, or not far before it.
    """

    def __init__(
        self,
        files: Files,
        data: str,
        topic_partition: TopicPartition,
        *,
        high_watermark: int,
        topic_id: bytes = b"",
        mark: Mark | None = None,
    ) -> None:
        self._listing = ForeignListing(files, data, topic_partition, topic_id)
        self.topic_partition = topic_partition
        self.high_watermark = high_watermark
        self._mark = mark

    def start(self) -> int:
        """Where the log begins now.

        Raises:
            UnknownTopicOrPartition: the topic was deleted, or made anew.
        """
        try:
            self._listing.look()
        except FileNotFoundError:
            return self.high_watermark
        return self._listing.start()

    def batches(self, offset: int, end_offset: int) -> Iterator[Batch]:
        """Yield whole batches, the first holds `offset` or follows it, all begin before the end.

        Control batches too. Requires: `end_offset` is not above `high_watermark`.

        Raises:
            UnknownTopicOrPartition: the topic was deleted, or made anew.
            OffsetOutOfRange: `offset` was removed before it was read.
            CorruptRecord: the next batch is damaged, or is missing.
        """
        self._look_for(offset)
        yield from walk(
            self._listing, offset, end_offset, open_at=self._open_at, look_again=self._look_for
        )

    def _look_for(self, offset: int) -> None:
        start = self.start()
        if offset < start:
            raise errors.OffsetOutOfRange(
                f"{self.topic_partition} holds offsets from {start} on, not {offset}"
            )

    def _open_at(self, base: int, offset: int) -> tuple[ForeignSegment, int, int | None]:
        segment = self._listing.segment(base)
        mark = self._mark
        if mark is not None and mark.segment == base and mark.base_offset <= offset:
            self._mark = None  # checked once: it is for the begin
            if segment.begins_with(mark.base_offset, mark.position):
                return segment, mark.position, None
        return segment, segment.position_of(offset), None
