"""The tasks' part of a replacement: reading a closed segment without a lock, and rewriting it.

    a record with a key to be erased              is removed
    a record whose key has a later record         is removed, if `latest` has the later offset
    a batch in another codec than the rules say   is compressed again
    small neighbouring batches                    are joined, unless they have a producer id
    a batch with no records left                  is removed, except the header of a batch with a
                                                  producer id, or of the segment's last batch

Offsets, timestamps, headers, sequences and leader epochs stay. Control batches are copied. Each
record of an old message set becomes a batch of magic 2.
"""

from __future__ import annotations

from embedlog.common import TopicPartition, Value
from embedlog.runtime.files import File, Files, write_fully
from embedlog.storage import paths
from embedlog.storage.cleaner.filter import modernised, read_fields
from embedlog.storage.foreign.segment import ForeignSegment
from embedlog.storage.staging.manifest import ReplacingFile
from embedlog.storage.staging.segment_facts import SegmentFacts
from embedlog.storage.state_files import staged_layout
from wire.records.batch import RecordBatch
from wire.records.compression import compress
from wire.records.encode.builder import build_batch, seal
from wire.records.format import CHECKED_HEAD, CODEC_MASK, TimestampType
from wire.records.retain import empty_batch, retain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from embedlog.storage.foreign.segment import Batch

WRITE_SIZE = 1 << 20


class RewriteRules(Value):
    """The changes that a rewrite makes. Can be pickled; immutable by convention.

    Records with a key in `erased` are removed. Batches are compressed with `codec` at `level`; if
    `codec` is None each keeps its codec. Small batches are joined into batches of at most
    `batch_size` stored bytes; 0 joins none.
    """

    erased: Iterable[bytes] = ()
    codec: int | None = None
    level: int | None = None
    batch_size: int = 0


class Rewriter:
    """Applies the rules to one segment after the other, and counts records. For one thread."""

    def __init__(self, rules: RewriteRules, latest: Mapping[bytes, int] | None = None) -> None:
        """`latest` has the offset of each key's last record: earlier records are removed."""
        self._rules = rules
        self._erased = frozenset(rules.erased)
        self._latest = latest
        self.record_count = self.erased_count = self.superseded_count = 0

    def rewrite(self, batches: Iterable[Batch]) -> Iterator[bytes | memoryview]:
        """Yield the new batches of a segment."""
        waiting: list[RecordBatch] = []
        waiting_size = 0
        last: RecordBatch | None = None
        last_is_gone = False
        for batch in _modern(batches):
            last, last_is_gone = batch, False
            kept = self._kept(batch)
            if kept is None:
                last_is_gone = True
                continue
            limit = self._rules.batch_size
            if not _can_join(kept, limit) or (
                waiting and (waiting_size + kept.size > limit or not _follows(waiting[-1], kept))
            ):
                yield from self._joined(waiting)
                waiting, waiting_size = [], 0
            if _can_join(kept, limit):
                waiting.append(kept)
                waiting_size += kept.size
            else:
                yield self._compressed(kept)
        yield from self._joined(waiting)
        if last is not None and last_is_gone:
            # Keep the header of the last batch, because it marks the segment's end offset.
            yield empty_batch(last)

    def _kept(self, batch: RecordBatch) -> RecordBatch | None:
        """Return the batch with its remaining records; None if nothing of it has to stay."""
        if batch.is_control:
            return batch
        count = batch.record_count
        self.record_count += count
        if count == 0 or not (self._erased or self._latest is not None):
            return batch
        keys, offsets, _ = read_fields(batch)
        erased, latest = self._erased, self._latest
        kept = []
        for index, (key, offset) in enumerate(zip(keys, offsets, strict=True)):
            if key is None:
                kept.append(index)
            elif key in erased:
                self.erased_count += 1
            elif latest is not None and offset < latest.get(key, -1):
                self.superseded_count += 1
            else:
                kept.append(index)
        if len(kept) == count:
            return batch
        if kept:
            return RecordBatch(retain(batch, kept))
        return RecordBatch(empty_batch(batch)) if batch.producer_id >= 0 else None

    def _joined(self, waiting: list[RecordBatch]) -> Iterator[bytes | memoryview]:
        if len(waiting) < 2:
            for batch in waiting:
                yield self._compressed(batch)
            return
        records = [record for batch in waiting for record in batch.records()]
        codec = self._rules.codec
        yield build_batch(
            [record.value for record in records],
            keys=[record.key for record in records],
            timestamps=[record.timestamp for record in records],
            headers=[record.headers for record in records],
            codec=waiting[0].codec if codec is None else codec,
            level=self._rules.level,
            base_offset=waiting[0].base_offset,
            leader_epoch=waiting[0].partition_leader_epoch,
        )

    def _compressed(self, batch: RecordBatch) -> bytes | memoryview:
        codec = self._rules.codec
        if codec is None or batch.codec == codec or batch.is_control or batch.record_count == 0:
            return batch.buffer
        checked = CHECKED_HEAD.pack(
            batch.attributes & ~CODEC_MASK | codec,
            batch.last_offset_delta,
            batch.base_timestamp,
            batch.max_timestamp,
            batch.producer_id,
            batch.producer_epoch,
            batch.base_sequence,
            batch.record_count,
        )
        records = compress(codec, batch.payload(), self._rules.level)
        return seal(batch.base_offset, batch.partition_leader_epoch, checked, [b"", records])


def _modern(batches: Iterable[Batch]) -> Iterator[RecordBatch]:
    for batch in batches:
        if isinstance(batch, RecordBatch):
            yield batch
        else:
            yield from modernised(batch)


def _can_join(batch: RecordBatch, limit: int) -> bool:
    return (
        batch.size < limit
        and batch.producer_id < 0
        and not batch.is_control
        and not batch.has_delete_horizon
        and batch.timestamp_type == TimestampType.CREATE_TIME
        and batch.record_count == batch.last_offset_delta + 1
    )


def _follows(before: RecordBatch, batch: RecordBatch) -> bool:
    return (
        before.next_offset == batch.base_offset
        and before.partition_leader_epoch == batch.partition_leader_epoch
        and before.codec == batch.codec
    )


class RewrittenSegment(Value):
    """A task's result for one segment: `file` is None if the rules change nothing in it."""

    file: ReplacingFile | None
    former_size: int
    size: int


class SegmentWriter:
    """Writes rewritten segments of one partition to a job's directory. For one thread."""

    def __init__(
        self, files: Files, data: str, topic_partition: TopicPartition, *, job: str, writer: str
    ) -> None:
        """`writer` must be unique within the job: if a task runs twice, its runs use two names."""
        self._files = files
        self._job = job
        self._directory = f"{staged_layout.part(data, staged_layout.STAGED)}/{job}"
        self._log_directory = paths.log_directory(data, topic_partition)
        self._name = f"{writer}-{topic_partition.partition}"

    def write(self, base_offset: int, rewriter: Rewriter) -> RewrittenSegment:
        """Rewrite one closed segment into a new file, and sync it. The segment stays as it is.

        Raises:
            FileNotFoundError: the segment is gone.
        """
        segment = ForeignSegment(self._files, self._log_directory, base_offset)
        former_size = segment.size()
        before, after = SegmentFacts(base_offset), SegmentFacts(base_offset)
        name = f"{self._name}-{base_offset}"
        path = f"{self._directory}/{name}"
        file = staged_layout.inside(
            self._files, self._directory, lambda: self._files.open(path, create=True)
        )
        is_needed = False
        try:
            file.truncate(0)  # an earlier attempt with the same name may have left bytes
            stored = (batch for _, batch in segment.batches(0, former_size))
            size = _store(file, rewriter.rewrite(_noted(stored, before)), after)
            is_needed = after.fingerprint != before.fingerprint
            if is_needed:
                file.sync()
        finally:
            file.close()
            if not is_needed:
                self._files.remove(path)
        if not is_needed:
            return RewrittenSegment(None, former_size=former_size, size=former_size)
        self._files.sync_directory(self._directory)
        staged = ReplacingFile(
            f"{self._job}/{name}",
            size=size,
            base_offset=base_offset,
            former_size=former_size,
            fingerprint=before.fingerprint,
        )
        return RewrittenSegment(staged, former_size=former_size, size=size)


def _noted(batches: Iterable[Batch], facts: SegmentFacts) -> Iterator[Batch]:
    for batch in batches:
        facts.add(batch)
        yield batch


def _store(file: File, batches: Iterable[bytes | memoryview], facts: SegmentFacts) -> int:
    """Write the batches, add them to `facts`, and return the number of bytes written."""
    position = size = 0
    some: list[bytes | memoryview] = []
    for batch in batches:
        facts.add(RecordBatch(batch))
        some.append(batch)
        size += len(batch)
        if size - position >= WRITE_SIZE:
            write_fully(file.write, (b"".join(some),), position)
            some, position = [], size
    if some:
        write_fully(file.write, (b"".join(some),), position)
    return size
