"""Reading a range of published offsets in another process, without a search for the log's end.

A `ForeignLog` finds the published end once, by a walk over the last segment. Other processes, such
as Spark's tasks, then read ranges below that end in any order and repeatedly. They take no lock and
write no file. If the topic was deleted, or created again, they raise UnknownTopicOrPartition.
"""

from __future__ import annotations

from typing import NamedTuple

from embedlog import errors
from embedlog.storage.foreign.batches import ForeignListing, unreadable, walk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from embedlog.common import TopicPartition
    from embedlog.runtime.files import Files
    from embedlog.storage.foreign.segment import Batch, ForeignSegment


class Mark(NamedTuple):
    """A place where a batch was found in the last segment, so that a read need not search for it.

    It is a hint, and is checked before use. The last segment's index exists only in the
    writing process's memory. `segment` is the segment's base offset.
    """

    segment: int
    base_offset: int
    position: int


class ForeignRange:
    """Reads batches below `high_watermark`, which the owner has published. Not thread-safe.

    `topic_id` is the content of `partition.metadata` when the read was planned; it shows whether
    the topic was created again later. `mark` is a batch at or soon before the read.
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
        """Return the present log start offset."""
        try:
            self._listing.look()
        except FileNotFoundError:
            return self.high_watermark
        return self._listing.start()

    def batches(self, offset: int, end_offset: int) -> Iterator[Batch]:
        """Yield whole batches below `end_offset`; the first holds `offset` or follows it.

        Control batches are included. Requires: `end_offset` is not above `high_watermark`.

        Raises:
            OffsetOutOfRange: `offset` was removed before it was read.
            CorruptRecord: the next batch is damaged, or is missing.
        """
        try:
            self._look_for(offset)
            yield from walk(
                self._listing, offset, end_offset, open_at=self._open_at, look_again=self._look_for
            )
        except OSError as error:
            raise unreadable(self.topic_partition, error) from error

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
            self._mark = None  # the mark helps only where the read begins
            if segment.begins_with(mark.base_offset, mark.position):
                return segment, mark.position, None
        return segment, segment.position_of(offset), None
