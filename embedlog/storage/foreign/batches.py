"""The segments of a log that another process owns, and the walk over their batches.

A listing shows the segments at one moment. The owner may replace or remove any of them later. If
opening a listed segment fails, the walk lists the segments again.

The walk notices missing batches, even if it starts inside the hole that they left: it begins to
read at a batch at or before the wanted offset, or at the begin of a segment.
"""

from __future__ import annotations

from _bisect import bisect_right

from embedlog import errors
from embedlog.errors import CorruptRecord
from embedlog.storage import paths
from embedlog.storage.foreign.segment import ForeignSegment
from embedlog.storage.log.gaps import read_gaps_below
from embedlog.storage.state_files.checkpoint_files import read_offsets

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from embedlog.common import TopicPartition
    from embedlog.runtime.files import Files
    from embedlog.storage.foreign.segment import Batch

    OpenAt = Callable[[int, int], tuple[ForeignSegment, int, int | None]]
    """(base offset of a segment, wanted offset) -> (the open segment, position to begin at, end
    position or None for the file's end)."""

LOOKS_MAX = 20
"""A read gives up after this many listings in a row whose segments are gone when opened."""


class ForeignListing:
    """The segments of one partition at the time of the last `look`. Not thread-safe."""

    def __init__(
        self, files: Files, data: str, topic_partition: TopicPartition, topic_id: bytes = b""
    ) -> None:
        """`topic_id` is the content of `partition.metadata`; empty to accept any topic.

        With a topic id, `look` fails once the topic was deleted or created again.
        """
        self._files = files
        self._data = data
        self._swapped: set[int | None] = set()
        self._gaps_below = 0
        self.bases: list[int] = []
        self.directory = paths.log_directory(data, topic_partition)
        self.topic_id = topic_id
        self.topic_partition = topic_partition

    def look(self) -> None:
        """List the segments anew.

        Raises:
            UnknownTopicOrPartition: the topic was deleted, or created again.
            FileNotFoundError: the directory holds no segment at the moment.
        """
        topic_id = self._read_topic_id()
        if self.topic_id and topic_id != self.topic_id:
            raise self._gone()
        self.topic_id = topic_id
        try:
            names = self._files.list(self.directory)
        except FileNotFoundError as error:
            if self._files.stat(self.directory) is not None:  # a link to nothing
                raise unreadable(self.topic_partition, error) from error
            raise self._gone() from None
        swapped = paths.LOG + paths.SWAP
        self._swapped = {paths.parse_offset(name) for name in names if name.endswith(swapped)}
        self.bases = paths.segment_bases(names)
        if not self.bases:
            raise FileNotFoundError(self.directory)

    def start(self) -> int:
        """Return the log start offset. Requires: `look` was called."""
        starts = read_offsets(self._files, self._data, paths.LOG_START_OFFSETS)
        return max(self.bases[0], starts.get(self.topic_partition, 0))

    def segment(self, base_offset: int) -> ForeignSegment:
        """Open one of the segments; FileNotFoundError if it is gone."""
        # A `.swap` file is compaction's output: it replaces this segment and perhaps the next ones.
        suffix = paths.LOG + paths.SWAP if base_offset in self._swapped else paths.LOG
        return ForeignSegment(self._files, self.directory, base_offset, suffix)

    def check_gap(self, expected: int, found: int, path: str) -> None:
        """Accept that offset `found` follows instead of `expected`, if the log may have gaps there.

        Raises:
            CorruptRecord: the log has no gaps at these offsets, so batches are missing.
        """
        if self._gaps_below < found:
            self._gaps_below = read_gaps_below(self._files, self._data, self.topic_partition)
        if found > self._gaps_below:
            raise CorruptRecord(path, 0, f"offset {found}, expected {expected}")

    def _read_topic_id(self) -> bytes:
        try:
            return self._files.read(f"{self.directory}/{paths.PARTITION_METADATA}")
        except FileNotFoundError:
            return b""

    def _gone(self) -> errors.KafkaError:
        return errors.UnknownTopicOrPartition(
            f"{self.topic_partition} is not in {self._data}, or is another than it was"
        )


def unreadable(topic_partition: TopicPartition, error: OSError) -> errors.KafkaError:
    """Return the error for a log whose files cannot be read."""
    return errors.KafkaStorageError(f"{topic_partition} cannot be read: {error}")


def walk(
    listing: ForeignListing,
    offset: int,
    end_offset: int,
    *,
    open_at: OpenAt,
    look_again: Callable[[int], None],
) -> Iterator[Batch]:
    """Yield whole batches: the first holds `offset` or follows it, all begin before `end_offset`.

    `open_at` opens a segment. `look_again(offset)` lists the segments again, or raises if `offset`
    is gone. The walk reads nothing behind the batch that reaches `end_offset`: there may be
    reserved room, or a batch being written.

    Raises:
        CorruptRecord: the next batch is damaged, or is missing.
        OffsetOutOfRange: the log ends before `end_offset`, because a crash took unsynced records.
        TimedOut: the writing process replaces segments faster than they can be opened.
    """
    looks = 0
    expected = -1
    while offset < end_offset:
        slot = max(0, bisect_right(listing.bases, offset) - 1)
        base = listing.bases[slot]
        try:
            segment, position, end = open_at(base, offset)
            if expected < 0 and position == 0:
                expected = base
            for _, batch in segment.batches(position, end):
                if 0 <= expected < batch.base_offset:
                    listing.check_gap(expected, batch.base_offset, segment.path)
                if batch.base_offset >= end_offset:
                    return
                expected = batch.last_offset + 1
                if expected > offset:
                    yield batch
                    offset = expected
                if expected >= end_offset:
                    return
        except FileNotFoundError:
            looks += 1
            if looks > LOOKS_MAX:
                raise errors.TimedOut(
                    f"{listing.topic_partition}: the owner replaces the segment of offset {offset} "
                    "faster than it can be opened"
                ) from None
            look_again(offset)
            expected = -1
            continue
        if slot + 1 == len(listing.bases):
            raise errors.OffsetOutOfRange(
                f"{listing.topic_partition} ends at offset {expected}, not at {end_offset}"
            )
        following = listing.bases[slot + 1]
        if 0 <= expected < following:
            # The segment ended before the next one begins: allowed if compaction removed the rest.
            listing.check_gap(expected, following, segment.path)
        offset = max(offset, following)
