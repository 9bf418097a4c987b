"""How a log uses the producer state: check markers, replay batches, store and load snapshots."""

from __future__ import annotations

from embedlog.errors import CorruptRecord
from embedlog.runtime.files import Files, write_whole
from embedlog.storage import paths
from embedlog.storage.producers import snapshot
from embedlog.storage.producers.state import ProducerStateManager, read_marker
from embedlog.storage.segments.indexes.transaction import AbortedTransaction, TransactionIndex
from embedlog.storage.segments.segment import EVERYTHING, Segment
from embedlog.storage.validation.origin import AppendOrigin
from embedlog.storage.validation.validated_batch import ValidatedBatch
from wire.records.batch import RecordBatch, iter_batches
from wire.records.errors import RecordsError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from embedlog.storage.producers.entry import ProducerUpdate
    from embedlog.storage.validation.validated_batch import GoodBatch

_NEVER_EXPIRES = 2**63 - 1
_SLICE_SIZE = 64 << 10
NO_EPOCH = -1


def judge_marker(
    producers: ProducerStateManager,
    batch: GoodBatch,
    *,
    first_offset: int,
    origin: int,
    transaction_version: int,
) -> ProducerUpdate | None:
    """Return the update that a control batch at `first_offset` would make; change nothing."""
    from wire.records.control import BuiltMarker

    if isinstance(batch, BuiltMarker):
        assert origin != AppendOrigin.CLIENT, batch
        committed, coordinator_epoch = batch.marker.is_commit, batch.marker.coordinator_epoch
        timestamp = batch.max_timestamp
    else:
        assert isinstance(batch, ValidatedBatch), batch
        sent = batch.stamped(base_offset=first_offset, leader_epoch=NO_EPOCH)
        marker = read_marker(RecordBatch(sent))
        if marker is None:
            return None
        committed, coordinator_epoch, timestamp = marker
    return producers.prepare_marker(
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        coordinator_epoch=coordinator_epoch,
        committed=committed,
        timestamp=timestamp,
        offset=first_offset,
        origin=origin,
        transaction_version=transaction_version,
    )


def write_snapshot(
    files: Files, directory: str, producers: ProducerStateManager, offset: int
) -> None:
    """Store the producer state at `offset`, the log's end.

    The file is not synced: `load_producers` can do without it.
    """
    path = paths.segment_file(directory, offset, paths.SNAPSHOT)
    write_whole(files, path, snapshot.encode(producers), sync=False)


def remove_snapshots(files: Files, directory: str) -> None:
    """Remove every snapshot; then `load_producers` finds the state by reading the batches.

    Raises:
        OSError: the disk refuses; some snapshots may be left.
    """
    for offset in _snapshots(files, directory):
        files.remove(paths.segment_file(directory, offset, paths.SNAPSHOT))


def load_producers(
    files: Files,
    directory: str,
    segments: Sequence[Segment],
    producers: ProducerStateManager,
    *,
    log_end_offset: int,
    log_start_offset: int,
    now_ms: int,
) -> None:
    """Restore the newest good snapshot up to `log_end_offset`, and replay the batches after it.

    A damaged snapshot is removed, and the one before it is tried. Snapshots above the end belong to
    removed records, and are removed as well. `now_ms` is wall time.
    """
    producers.truncate()
    start = log_start_offset
    for offset in sorted(_snapshots(files, directory), reverse=True):
        path = paths.segment_file(directory, offset, paths.SNAPSHOT)
        if offset <= log_end_offset:
            try:
                producers.restore(snapshot.decode(files.read(path), path), now_ms)
            except CorruptRecord:
                pass
            else:
                start = max(start, offset)
                break
        files.remove(path)
    for segment in segments:
        if segment.next_offset > start:
            replay(segment, producers, start)
    producers.expire(now_ms)


def load_aborted(
    files: Files, directory: str, segments: Sequence[Segment], segment: Segment
) -> TransactionIndex:
    """Find the aborted transactions in a loaded segment's batches, and keep them in the segment.

    The search begins with the producer snapshot at the segment's begin; snapshots have a checksum.
    The `.txnindex` file is written for Kafka's tools and never read: it has no checksum, and a
    damaged or missing entry would show aborted records to a read_committed reader.
    """
    for _ in load_aborted_in_slices(files, directory, segments, segment):
        pass
    index = segment.aborted.index
    assert index is not None, segment
    return index


def load_aborted_in_slices(
    files: Files, directory: str, segments: Sequence[Segment], segment: Segment
) -> Iterator[None]:
    """Do the work of `load_aborted`; yield after every 64 KiB of batches, to let others work."""
    start = segment.base_offset
    producers = ProducerStateManager(_NEVER_EXPIRES, directory)
    for offset in sorted(_snapshots(files, directory), reverse=True):
        path = paths.segment_file(directory, offset, paths.SNAPSHOT)
        if offset > start:
            continue
        try:
            producers.restore(snapshot.decode(files.read(path), path), 0)
        except CorruptRecord:
            continue
        replayed_from = offset
        break
    else:
        replayed_from = segments[0].base_offset
    for earlier in segments:
        if replayed_from < earlier.next_offset <= start:
            yield from _replay(earlier, producers, replayed_from, [])
    found: list[AbortedTransaction] = []
    yield from _replay(segment, producers, max(start, replayed_from), found)
    segment.aborted.adopt(TransactionIndex(found))


def replay(segment: Segment, producers: ProducerStateManager, start: int) -> None:
    """Apply the batches of `segment` from offset `start` on to the producer state."""
    found: list[AbortedTransaction] = []
    for _ in _replay(segment, producers, start, found):
        pass
    for aborted in found:
        segment.aborted.note(aborted)


def _replay(
    segment: Segment, producers: ProducerStateManager, start: int, found: list[AbortedTransaction]
) -> Iterator[None]:
    """Apply the batches from offset `start` on; yield after every slice.

    Transactions that the batches abort are added to `found`.
    """
    end, size, _, _ = segment.end
    if start >= end:
        return
    position = segment.indexes.position_of(start, size)
    slice_end = position + _SLICE_SIZE
    # Batches that this process wrote, or that recovery has read, are not checked again.
    is_checked = segment.trusted_size >= EVERYTHING
    try:
        for batch in iter_batches(segment.file.view(0, size), position):
            if not is_checked:
                batch.check_crc()
            if isinstance(batch, RecordBatch) and batch.producer_id >= 0:
                aborted = producers.replay(batch)
                if aborted is not None:
                    found.append(aborted)
            position += batch.size
            if position >= slice_end:
                slice_end = position + _SLICE_SIZE
                yield
    except RecordsError as error:
        raise CorruptRecord(segment.path, position, str(error)) from error


def remove_stale_snapshots(files: Files, directory: str, segments: Sequence[Segment]) -> None:
    """Remove every snapshot that is neither the newest nor at a segment's base offset."""
    bases = {segment.base_offset for segment in segments}
    for offset in sorted(_snapshots(files, directory))[:-1]:
        if offset not in bases:
            files.remove(paths.segment_file(directory, offset, paths.SNAPSHOT))


def _snapshots(files: Files, directory: str) -> list[int]:
    offsets = []
    for name in files.list(directory):
        offset = paths.parse_offset(name)
        if offset is not None and name.endswith(paths.SNAPSHOT):
            offsets.append(offset)
    return offsets
