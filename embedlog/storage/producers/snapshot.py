"""The producer snapshot file, `%020d.snapshot`: producer state up to the offset in its name.

    0    int16   version, 1
    2    uint32  CRC-32C of everything after this field
    6    int32   number of entries
    10   entries, 46 bytes each, big-endian
         0   int64  producer id
         8   int16  producer epoch
         10  int32  last sequence              -1 when no batch is known
         14  int64  last offset                -1 when no batch is known
         22  int32  offset delta of the last batch
         26  int64  timestamp
         34  int32  coordinator epoch          -1 for none
         38  int64  first offset of the open transaction, -1 for none

A producer has one entry for each of its last batches, oldest first; the last one is complete, the
earlier ones only recognise a retry. Kafka writes the last entry alone. When it reads the file, a
later entry of a producer replaces the earlier ones, so Kafka sees only the last batch.

The file is a hint: a damaged one is removed, and the batches of the log are replayed instead.
"""

from __future__ import annotations

from struct import Struct

from embedlog.errors import CorruptRecord
from embedlog.storage.producers.entry import (
    BATCHES_KEPT,
    NO_OFFSET,
    CachedBatch,
    ProducerStateEntry,
)
from wire.records.crc32c import crc32c

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from embedlog.common import Buffer

_VERSION = 1
_HEADER = Struct(">hIi")
_FRAME = Struct(">hI")
_ENTRY = Struct(">qhiqiqiq")


def encode(entries: Iterable[ProducerStateEntry]) -> bytes:
    """Return the content of a snapshot file."""
    rows = [row for entry in entries for row in _pack(entry)]
    covered = b"".join((len(rows).to_bytes(4, "big"), *rows))
    return _FRAME.pack(_VERSION, crc32c(covered)) + covered


def decode(content: Buffer, path: str = "snapshot") -> list[ProducerStateEntry]:
    """Read a snapshot file's content.

    Raises:
        CorruptRecord: too short, another version, a wrong CRC, or a count that does not fit.
    """
    view = memoryview(content)
    if len(view) < _HEADER.size:
        raise CorruptRecord(path, 0, f"{len(view)} bytes, a snapshot has at least {_HEADER.size}")
    version, stored, count = _HEADER.unpack_from(view)
    if version != _VERSION:
        raise CorruptRecord(path, 0, f"snapshot version {version}, expected {_VERSION}")
    found = crc32c(view[_FRAME.size :])
    if found != stored:
        raise CorruptRecord(path, _FRAME.size, f"crc {found:#x}, expected {stored:#x}")
    rows = view[_HEADER.size :]
    if count * _ENTRY.size != len(rows):
        raise CorruptRecord(path, _HEADER.size, f"{len(rows)} bytes for {count} entries")
    entries: dict[int, ProducerStateEntry] = {}
    for row in _ENTRY.iter_unpack(rows):
        entry = _unpack(row)
        earlier = entries.get(entry.producer_id)
        entries[entry.producer_id] = entry if earlier is None else _joined(earlier, entry)
    return list(entries.values())


def _pack(entry: ProducerStateEntry) -> Iterator[bytes]:
    """Yield the entry's rows; the timestamp of an earlier batch is at most the entry's.

    Otherwise Kafka, which leaves out old entries, could leave out only the last one.
    """
    for batch in entry.batches[:-1]:
        yield _ENTRY.pack(
            entry.producer_id,
            entry.producer_epoch,
            batch.last_sequence,
            batch.last_offset,
            batch.offset_delta,
            min(batch.timestamp, entry.last_timestamp),
            entry.coordinator_epoch,
            NO_OFFSET,
        )
    yield _ENTRY.pack(
        entry.producer_id,
        entry.producer_epoch,
        entry.last_sequence,
        entry.last_data_offset,
        entry.batches[-1].offset_delta if entry.batches else 0,
        entry.last_timestamp,
        entry.coordinator_epoch,
        entry.current_txn_first_offset,
    )


def _joined(earlier: ProducerStateEntry, entry: ProducerStateEntry) -> ProducerStateEntry:
    """Return `entry` with the batches of `earlier` before its own."""
    batches = earlier.batches if earlier.producer_epoch == entry.producer_epoch else ()
    if batches and entry.batches and batches[-1].last_offset >= entry.batches[0].base_offset:
        batches = ()  # no writer of such a file is known
    return ProducerStateEntry(
        entry.producer_id,
        producer_epoch=entry.producer_epoch,
        batches=(*batches, *entry.batches)[-BATCHES_KEPT:],
        coordinator_epoch=entry.coordinator_epoch,
        last_timestamp=entry.last_timestamp,
        current_txn_first_offset=entry.current_txn_first_offset,
    )


def _unpack(row: tuple[int, ...]) -> ProducerStateEntry:
    producer_id, epoch, sequence, offset, delta, timestamp, coordinator_epoch, first_offset = row
    batches: tuple[CachedBatch, ...] = ()
    if offset >= 0:
        batches = (CachedBatch((sequence, offset, delta, timestamp)),)
    return ProducerStateEntry(
        producer_id,
        producer_epoch=epoch,
        batches=batches,
        coordinator_epoch=coordinator_epoch,
        last_timestamp=timestamp,
        current_txn_first_offset=first_offset,
    )
