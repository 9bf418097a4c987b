"""The content of a data directory's files, item by item: dictionaries for people and programs.

Fields that Kafka's dump tool also prints have the same names. Damage becomes an item of the kind
"damage", and the items after it still follow.
"""

from __future__ import annotations

from embedlog.errors import CorruptRecord
from embedlog.storage import paths
from embedlog.storage.directory.meta_properties import read_properties
from embedlog.storage.foreign.segment import ForeignSegment
from embedlog.storage.producers import snapshot as producer_snapshot
from embedlog.storage.segments.indexes.offset import OffsetIndex
from embedlog.storage.segments.indexes.time import TimeIndex
from embedlog.storage.segments.indexes.transaction import TransactionIndex
from embedlog.storage.segments.scan import is_zeros
from embedlog.storage.state_files.checkpoint_files import NAMES, WITH_TWIN, read_text, read_twin
from embedlog.storage.state_files.leader_epochs import LeaderEpochs
from embedlog.storage.state_files.published_offset import read_published
from embedlog.storage.state_files.sealed_file import read_sealed
from wire.records.batch import RecordBatch
from wire.records.format import Codec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from embedlog.runtime.files import Files
    from embedlog.storage.foreign.segment import Batch

    Item = dict[str, object]

_CODECS = {value: name.lower() for name, value in vars(Codec).items() if name.isupper()}


def damage(error: CorruptRecord) -> Item:
    """Return an item that describes the damage `error`."""
    return {
        "kind": "damage",
        "file": error.path,
        "position": error.position,
        "reason": error.reason,
    }


def batches(files: Files, directory: str, offset: int) -> Iterator[tuple[Item, Batch | None]]:
    """Yield an item for every segment, batch and damage of a log from `offset` on.

    Each comes as (item, batch); the batch is None if the item describes something else.
    """
    bases = paths.segment_bases(files.list(directory))
    for slot, base in enumerate(bases):
        if slot + 1 < len(bases) and bases[slot + 1] <= offset:
            continue
        segment = ForeignSegment(files, directory, base)
        yield {"kind": "segment", "file": segment.path, "size": segment.size()}, None
        end = 0
        try:
            for position, batch in segment.batches(
                segment.position_of(offset) if offset > base else 0
            ):
                end = position + batch.size
                if batch.last_offset >= offset:
                    yield _batch(position, batch), batch
        except CorruptRecord as error:
            if is_zeros(segment.remaining(error.position)):
                size = segment.size() - end
                yield {"kind": "reserved", "position": end, "size": size}, None
            else:
                yield damage(error), None


def _batch(position: int, batch: Batch) -> Item:
    item: Item = {
        "kind": "batch",
        "baseOffset": batch.base_offset,
        "lastOffset": batch.last_offset,
        "position": position,
        "size": batch.size,
        "magic": batch.magic,
        "maxTimestamp": batch.max_timestamp,
        "compresscodec": _CODECS.get(batch.codec, str(batch.codec)),
        "crc": batch.crc,
    }
    if isinstance(batch, RecordBatch):
        item |= {
            "count": batch.record_count,
            "baseSequence": batch.base_sequence,
            "lastSequence": batch.last_sequence,
            "producerId": batch.producer_id,
            "producerEpoch": batch.producer_epoch,
            "partitionLeaderEpoch": batch.partition_leader_epoch,
            "isTransactional": batch.is_transactional,
            "isControl": batch.is_control,
        }
    return item


def log_files(files: Files, directory: str) -> Iterator[Item]:
    """Yield the content of the files beside a log's segments."""
    for name in files.list(directory):
        path = f"{directory}/{name}"
        try:
            for item in _log_file(files, directory, name):
                yield {"file": path, **item}
        except CorruptRecord as error:
            yield damage(error)
        except FileNotFoundError:
            continue


def _log_file(files: Files, directory: str, name: str) -> Iterator[Item]:
    path = f"{directory}/{name}"
    base = paths.parse_offset(name) or 0
    if name.endswith(paths.OFFSET_INDEX):
        offsets = OffsetIndex.decode(files.read(path), base_offset=base, size=1 << 31, path=path)
        for offset, position in offsets.entries():
            yield {"kind": "index", "offset": offset, "position": position}
    elif name.endswith(paths.TIME_INDEX):
        times = TimeIndex.decode(files.read(path), base_offset=base, path=path)
        for timestamp, offset in times.entries():
            yield {"kind": "timeindex", "timestamp": timestamp, "offset": offset}
    elif name.endswith(paths.TRANSACTION_INDEX):
        for entry in TransactionIndex.decode(files.read(path), base_offset=base, path=path):
            yield {
                "kind": "txnindex",
                "producerId": entry.producer_id,
                "firstOffset": entry.first_offset,
                "lastOffset": entry.last_offset,
                "lastStableOffset": entry.last_stable_offset,
            }
    elif name.endswith(paths.SNAPSHOT):
        producers = producer_snapshot.decode(files.read(path), path)
        yield {"kind": "snapshot", "offset": base, "producerCount": len(producers)}
        for each in producers:
            yield {
                "kind": "producer",
                "producerId": each.producer_id,
                "producerEpoch": each.producer_epoch,
                "lastSequence": each.last_sequence,
                "lastOffset": each.last_data_offset,
                "lastTimestamp": each.last_timestamp,
                "coordinatorEpoch": each.coordinator_epoch,
                "currentTxnFirstOffset": each.current_txn_first_offset,
            }
    elif name in (paths.LEADER_EPOCHS, paths.SEALED_LEADER_EPOCHS):
        sealed = name == paths.SEALED_LEADER_EPOCHS
        text = read_sealed(files, path) if sealed else files.read(path)
        for epoch, start in LeaderEpochs.decode(text or b"", path).entries:
            yield {"kind": "leader epoch", "epoch": epoch, "startOffset": start}
    elif name == paths.PUBLISHED_OFFSET:
        yield {"kind": "published offset", "offset": read_published(files, directory)}
    elif name == paths.PARTITION_METADATA:
        yield {"kind": "topic id", "content": files.read(path).decode("utf-8", "replace")}
    elif name.endswith(paths.QUARANTINE):
        yield {"kind": "quarantine", "size": len(files.read(path))}


def directory_files(files: Files, data: str) -> Iterator[Item]:
    """Yield the content of the data directory's own files."""
    path = f"{data}/{paths.META_PROPERTIES}"
    for name, value in read_properties(files, path).items():
        yield {"file": path, "kind": "property", "name": name, "value": value}
    forms = [(read_text, name, "") for name in NAMES]
    forms += [(read_twin, name, paths.SEALED) for name in WITH_TWIN]
    for read, name, suffix in forms:
        try:
            for (topic, partition), offset in (read(files, data, name) or {}).items():
                where: Item = {"file": f"{data}/{name}{suffix}", "kind": "checkpoint"}
                yield {**where, "topic": topic, "partition": partition, "offset": offset}
        except CorruptRecord as error:
            yield damage(error)
