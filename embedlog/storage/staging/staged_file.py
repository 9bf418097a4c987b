"""Checking a staged file before its commit, and giving its batches their offsets.

A staged file holds only batches of magic 2 without a producer id. Their offsets begin at 0 and have
no gaps.
"""

from __future__ import annotations

from struct import Struct

from embedlog import errors
from embedlog.errors import CorruptRecord
from embedlog.runtime.files import write_fully
from embedlog.storage.log_config import NO_LIMIT
from embedlog.storage.segments.scan import SegmentScan, read_batch
from wire.records.format import (
    CODEC_MASK,
    CODEC_NAMES,
    CONTROL_BIT,
    HEADER,
    LOG_OVERHEAD,
    MAGIC_POSITION,
    TIMESTAMP_TYPE_BIT,
    TRANSACTIONAL_BIT,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from embedlog.runtime.files import File, Files
    from embedlog.storage.log_config import LogConfig
    from embedlog.storage.staging.manifest import StagedFile

_STAMP = Struct(">qii")  # base offset, length, leader epoch: no checksum covers them
_REFUSED_BITS = CONTROL_BIT | TRANSACTIONAL_BIT | TIMESTAMP_TYPE_BIT
_CHUNK_SIZE = 8 << 20
SIZE_MAX = (1 << 31) - 1
"""Largest file that can become a segment: positions in a segment have 31 bits."""


class StagedFacts:
    """Facts for `may_be_renamed`: the largest timestamp and batch size, and the codecs in use."""

    def __init__(self) -> None:
        self.batch_size_max = 0
        self.max_timestamp = -1
        self.codecs: set[str] = set()


def check_staged(files: Files, path: str, staged: StagedFile) -> StagedFacts:
    """Check every batch of a staged file.

    Raises:
        CorruptRecord: the file differs from the manifest; a batch is damaged or not allowed there.
    """
    facts = StagedFacts()
    next_offset = 0
    try:
        file = files.open(path, writable=False)
        size = file.size()
        if size != staged.size or size > SIZE_MAX:
            raise CorruptRecord(path, size, f"{size} bytes, the manifest says {staged.size}")
        for position, batch in read_batches(file, size, path):
            header = HEADER.unpack_from(batch)
            base_offset, delta, count = header[0], header[6], header[12]
            if header[5] & _REFUSED_BITS or header[9] != -1:
                reason = f"attributes {header[5]:#x}, producer id {header[9]}"
                raise CorruptRecord(path, position, reason)
            if base_offset != next_offset or delta + 1 != count:
                reason = f"{count} records at {base_offset}, last delta {delta}, not {next_offset}"
                raise CorruptRecord(path, position, reason)
            facts.batch_size_max = max(facts.batch_size_max, len(batch))
            facts.max_timestamp = max(facts.max_timestamp, header[8])
            facts.codecs.add(_codec_name(header[5] & CODEC_MASK, path, position))
            next_offset += count
    except OSError as error:
        raise errors.KafkaStorageError(f"{path}: {error}") from error
    if next_offset != staged.count:
        reason = f"{next_offset} records, the manifest says {staged.count}"
        raise CorruptRecord(path, size, reason)
    return facts


def read_batches(file: File, size: int, path: str) -> Iterator[tuple[int, memoryview]]:
    """Yield (position, bytes) of each batch of a file.

    Raises:
        CorruptRecord: the next batch is not of magic 2, is cut off, or has a wrong checksum.
    """
    position = 0
    while position < size:
        chunk = file.view(position, min(_CHUNK_SIZE, size - position))
        if len(chunk) >= LOG_OVERHEAD:
            length = int.from_bytes(chunk[8:LOG_OVERHEAD], "big", signed=True) + LOG_OVERHEAD
            if len(chunk) < length <= size - position:
                chunk = file.view(position, length)
        at = 0
        while at < len(chunk):
            found = read_batch(chunk, at, len(chunk))
            if isinstance(found, str) or chunk[at + MAGIC_POSITION] != 2:
                if at > 0 and position + len(chunk) < size:
                    break  # bad, or only cut off by the chunk's end: the next chunk shows which
                reason = found if isinstance(found, str) else f"magic {chunk[at + MAGIC_POSITION]}"
                raise CorruptRecord(path, position + at, reason)
            yield position + at, chunk[at : at + found[0]]
            at += found[0]
        position += at


def may_be_renamed(facts: StagedFacts, staged: StagedFile, config: LogConfig, now_ms: int) -> bool:
    """Return whether the topic stores these batches unchanged, so that the file can be renamed.

    False if an append would convert or refuse a batch: for log append time, another codec, a batch
    that is too large or a timestamp too far ahead. False for compacted topics, where an append
    checks each record's key.
    """
    return (
        not config.log_append_time
        and not config.compact
        and (config.compression_type == "producer" or facts.codecs == {config.compression_type})
        and staged.size <= config.segment_bytes
        and facts.batch_size_max <= config.batch_size_max
        and config.message_timestamp_before_max_ms == NO_LIMIT
        and facts.max_timestamp <= now_ms + config.message_timestamp_after_max_ms
    )


def stamp(
    file: File, path: str, *, base_offset: int, leader_epoch: int, index_interval: int
) -> SegmentScan:
    """Write offset and leader epoch into every batch, over the values of an earlier attempt.

    Return the same result as a scan of the file as a segment at `base_offset`.

    Raises:
        CorruptRecord: a batch is bad, or has a wrong checksum.
    """
    scan = SegmentScan(base_offset)
    since_entry = 0
    for position, batch in read_batches(file, file.size(), path):
        header = HEADER.unpack_from(batch)
        stamped = _STAMP.pack(scan.next_offset, header[1], leader_epoch)
        write_fully(file.write, (stamped,), position)
        last_offset, timestamp = scan.next_offset + header[6], header[8]
        if position == 0:
            scan.first_timestamp = timestamp
        if timestamp > scan.largest:
            scan.largest, scan.holder = timestamp, last_offset
        if since_entry > index_interval:
            since_entry = 0
            scan.offset_index.append(last_offset, position)
            scan.time_index.append(scan.largest, scan.holder)
        since_entry += len(batch)
        scan.size = position + len(batch)
        scan.next_offset = last_offset + 1
    return scan


def _codec_name(codec: int, path: str, position: int) -> str:
    if codec >= len(CODEC_NAMES):
        raise CorruptRecord(path, position, f"codec {codec}")
    return "uncompressed" if codec == 0 else CODEC_NAMES[codec]
