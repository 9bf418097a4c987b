"""The facts of a segment that show whether a rewritten file may replace it.

fingerprint     must be the same when the task reads the segment and when the owner replaces it
producers       header fields of every batch with a producer id and of every marker, in order: must
                be the same in the segment and the rewritten file
epochs          the leader epoch of each offset: the same
"""

from __future__ import annotations

from _bisect import bisect_right
from hashlib import sha256
from struct import Struct

from wire.records.batch import RecordBatch
from wire.records.format import CONTROL_BIT, TRANSACTIONAL_BIT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from wire.records.legacy import LegacyBatch

_FIELDS = Struct(">qqiI")
_KEPT_BITS = CONTROL_BIT | TRANSACTIONAL_BIT


class SegmentFacts:
    """The facts of one segment, gathered batch by batch."""

    def __init__(self, base_offset: int) -> None:
        self._digest = sha256()
        self._starts: list[int] = []
        self._epochs: list[int] = []
        self.next_offset = base_offset
        self.has_gaps = False
        """True if an offset before `next_offset` has no record."""
        self.producers: list[tuple[int, ...]] = []

    def add(self, batch: RecordBatch | LegacyBatch) -> None:
        """Add the next batch; only its header is read.

        Raises:
            RecordsError: an old message set cannot be read.
        """
        first, last = batch.base_offset, batch.last_offset
        self._digest.update(_FIELDS.pack(first, last, batch.size, batch.crc & 0xFFFF_FFFF))
        epoch = -1
        if isinstance(batch, RecordBatch):
            epoch = batch.partition_leader_epoch
            if batch.producer_id >= 0 or batch.is_control:
                self._add_producer(batch)
        if first != self.next_offset or batch.record_count != last - first + 1:
            self.has_gaps = True
        self.next_offset = last + 1
        if not self._epochs or epoch != self._epochs[-1]:
            self._starts.append(first)
            self._epochs.append(epoch)

    def _add_producer(self, batch: RecordBatch) -> None:
        self.producers.append(
            (
                batch.base_offset,
                batch.last_offset,
                batch.producer_id,
                batch.producer_epoch,
                batch.base_sequence,
                batch.attributes & _KEPT_BITS,
                batch.partition_leader_epoch,
                batch.crc if batch.is_control else 0,
            )
        )

    @property
    def fingerprint(self) -> str:
        """A hash of the offsets, sizes and checksums of all batches added so far."""
        return self._digest.hexdigest()

    def epoch_of(self, offset: int) -> int | None:
        slot = bisect_right(self._starts, offset)
        return self._epochs[slot - 1] if slot else None
