"""Offsets that are known to be published, read by another process without a look at the log's end.

Whoever plans a read has asked a `ForeignLog` how far the owner has published. The parts of it that
are read elsewhere, in any order and perhaps again, need no such look: it costs a walk over the last
segment. Nor do they take a lock or write a file.
"""

from __future__ import annotations

from _bisect import bisect_right

from embedlog import errors
from embedlog.errors import CorruptRecord
from embedlog.storage import paths
from embedlog.storage.checkpoint_files import read_offsets
from embedlog.storage.foreign_segment import ForeignSegment
from embedlog.storage.gaps import read_gaps_below

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from embedlog.common import TopicPartition
    from embedlog.runtime.files import Files
    from embedlog.storage.foreign_segment import Batch

_ATTEMPTS = 20
"""So often a listing may be overtaken by the owner's next change to it."""


class ForeignRange:
    """Batches below `high_watermark`, which was published once. Not thread-safe.

    `topic_id` is the content of `partition.metadata` when it was planned: a topic that was made
    anew since is another one.
    """

    def __init__(
        self,
        files: Files,
        data: str,
        topic_partition: TopicPartition,
        *,
        high_watermark: int,
        topic_id: bytes = b"",
    ) -> None:
        self._files = files
        self._data = data
        self._directory = paths.log_directory(data, topic_partition)
        self._topic_id = topic_id
        self._gaps_below = 0
        self.topic_partition = topic_partition
        self.high_watermark = high_watermark

    def batches(self, offset: int, end_offset: int) -> Iterator[Batch]:
        """Yield whole batches, the first holds `offset` or follows it, all begin before the end.

        Control batches too. Requires: `end_offset` is not above `high_watermark`.

        Raises:
            UnknownTopicOrPartition: the topic was deleted, or made anew.
            OffsetOutOfRange: `offset` was removed before it was read.
            CorruptRecord: the next batch is damaged.
        """
        attempts = 0
        bases, swapped = self._list(offset)
        expected = -1
        while offset < end_offset:
            slot = max(0, bisect_right(bases, offset) - 1)
            suffix = paths.LOG + paths.SWAP if bases[slot] in swapped else paths.LOG
            try:
                segment = ForeignSegment(self._files, self._directory, bases[slot], suffix)
                for batch in self._of_segment(segment, offset, end_offset):
                    if expected >= 0 and batch.base_offset != expected:
                        self._check_gap(expected, batch, segment.path)
                    yield batch
                    offset = expected = batch.last_offset + 1
            except FileNotFoundError:
                attempts += 1
                if attempts > _ATTEMPTS:
                    raise self._out_of_range(offset, bases) from None
                bases, swapped = self._list(offset)
                continue
            if slot + 1 == len(bases):
                return
            # Of what lies between, compaction has left nothing.
            offset = max(offset, bases[slot + 1])

    def _of_segment(self, segment: ForeignSegment, offset: int, end_offset: int) -> Iterator[Batch]:
        for _, batch in segment.batches(segment.position_of(offset)):
            if batch.base_offset >= end_offset:
                return
            if batch.last_offset >= offset:
                yield batch
            if batch.last_offset + 1 >= end_offset:
                # Behind it may be room that the owner has reserved, or what it is writing.
                return

    def _list(self, offset: int) -> tuple[list[int], set[int | None]]:
        if self._topic_id and self._read_topic_id() != self._topic_id:
            raise self._gone()
        try:
            names = self._files.list(self._directory)
        except FileNotFoundError:
            raise self._gone() from None
        swapped = paths.LOG + paths.SWAP
        bases = sorted(
            base
            for name in names
            if name.endswith(paths.LOG) and (base := paths.parse_offset(name)) is not None
        )
        start = read_offsets(self._files, self._data, paths.LOG_START_OFFSETS)
        if not bases or offset < max(bases[0], start.get(self.topic_partition, 0)):
            raise self._out_of_range(offset, bases)
        return bases, {paths.parse_offset(name) for name in names if name.endswith(swapped)}

    def _read_topic_id(self) -> bytes:
        try:
            return self._files.read(f"{self._directory}/{paths.PARTITION_METADATA}")
        except FileNotFoundError:
            return b""

    def _check_gap(self, expected: int, batch: Batch, path: str) -> None:
        """Offsets may skip where compaction was, which then has said so."""
        if self._gaps_below < batch.base_offset:
            self._gaps_below = read_gaps_below(self._files, self._data, self.topic_partition)
        if not expected < batch.base_offset <= self._gaps_below:
            raise CorruptRecord(path, 0, f"offset {batch.base_offset}, expected {expected}")

    def _gone(self) -> errors.KafkaError:
        return errors.UnknownTopicOrPartition(
            f"{self.topic_partition} is not in {self._data}, or is another than it was"
        )

    def _out_of_range(self, offset: int, bases: list[int]) -> errors.KafkaError:
        start = bases[0] if bases else self.high_watermark
        return errors.OffsetOutOfRange(
            f"{self.topic_partition} holds offsets from {start} on, not {offset}"
        )
