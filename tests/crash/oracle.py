"""A reader of segment files that shares no code with the project: a second opinion.

It knows Kafka's record batch of magic 2 from the protocol's description, with `struct`:

    base offset i64, batch length i32 (of the following bytes), leader epoch i32, magic i8,
    CRC-32C u32 (of the following bytes), attributes i16, last offset delta i32,
    base timestamp i64, max timestamp i64, producer id i64, producer epoch i16,
    base sequence i32, record count i32

After the last batch of the last segment there may be zeros (reserved space) or a torn batch.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterator
from typing import NamedTuple

import google_crc32c

_HEADER = struct.Struct(">qiibIhiqqqhii")
_SIZE_BEFORE_LENGTH_COUNTS = 12
_CRC_FROM = 21


class OracleRecord(NamedTuple):
    """One record; `producer` is (id, epoch, sequence), (-1, -1, -1) for a plain producer."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[bytes, bytes | None], ...]
    producer: tuple[int, int, int]
    is_control: bool


class OracleBatch(NamedTuple):
    """One valid batch, and its place."""

    path: str
    position: int
    size: int
    base_offset: int
    last_offset: int
    leader_epoch: int
    records: tuple[OracleRecord, ...]


class OracleSegment(NamedTuple):
    """The valid batches at a segment's beginning, and why reading stopped.

    `stopped` is "end", "zeros" (only zeros follow), or the defect of the batch at `size`.
    """

    path: str
    base_offset: int
    batches: tuple[OracleBatch, ...]
    size: int
    stopped: str


class OracleLog(NamedTuple):
    """A partition's segments by offset, and the contradictions between them."""

    segments: tuple[OracleSegment, ...]
    problems: tuple[str, ...]

    @property
    def end_offset(self) -> int:
        """Return the offset after the last record, 0 if there is none."""
        for segment in reversed(self.segments):
            if segment.batches:
                return segment.batches[-1].last_offset + 1
        return self.segments[-1].base_offset if self.segments else 0

    def records(self) -> Iterator[OracleRecord]:
        """Yield every record by offset, including control records."""
        for segment in self.segments:
            for batch in segment.batches:
                yield from batch.records


def read_log(directory: str) -> OracleLog:
    """Read a partition's directory.

    Damage is a problem except at the end of the last segment, where a killed writer may leave half
    a batch.
    """
    names = sorted(n for n in os.listdir(directory) if n.endswith(".log") and len(n) == 24)
    segments = tuple(read_segment(f"{directory}/{name}") for name in names)
    problems = []
    expected = -1
    for segment in segments:
        if segment is not segments[-1] and segment.stopped not in {"end", "zeros"}:
            problems.append(f"{segment.path} at {segment.size}: {segment.stopped}")
        for batch in segment.batches:
            if batch.base_offset < max(expected, segment.base_offset):
                problems.append(f"{segment.path} at {batch.position}: goes back to {batch[:6]}")
            expected = batch.last_offset + 1
    return OracleLog(segments, tuple(problems))


def read_segment(path: str) -> OracleSegment:
    """Read one segment file up to the first invalid batch."""
    with open(path, "rb") as file:
        return parse_segment(path, file.read())


def parse_segment(path: str, data: bytes) -> OracleSegment:
    """Parse the bytes of a segment, or of some of its consecutive batches."""
    batches = []
    position = 0
    stopped = "end"
    while position < len(data):
        try:
            batch = _batch(path, data, position)
        except ValueError as error:
            stopped = str(error) if data[position:].strip(b"\0") else "zeros"
            break
        batches.append(batch)
        position += batch.size
    return OracleSegment(path, int(os.path.basename(path)[:20]), tuple(batches), position, stopped)


def _batch(path: str, data: bytes, position: int) -> OracleBatch:
    if len(data) - position < _HEADER.size:
        raise ValueError(f"{len(data) - position} bytes are no header")
    fields = _HEADER.unpack_from(data, position)
    base, length, epoch, magic, crc, attributes, delta, timestamp = fields[:8]
    producer_id, producer_epoch, sequence, count = fields[9:]
    size = length + _SIZE_BEFORE_LENGTH_COUNTS
    if magic != 2 or size < _HEADER.size or position + size > len(data):
        raise ValueError(f"magic {magic}, size {size} of {len(data) - position}")
    found = google_crc32c.value(data[position + _CRC_FROM : position + size])
    if found != crc:
        raise ValueError(f"CRC {found:#x}, stored {crc:#x}")
    body = _decompressed(data[position + _HEADER.size : position + size], attributes & 7)
    records = []
    at = 0
    for number in range(count):
        fields_end, parsed = _record(body, at)
        offset_delta, timestamp_delta, key, value, headers = parsed
        producer = (producer_id, producer_epoch, sequence + number if sequence >= 0 else -1)
        records.append(
            OracleRecord(
                base + offset_delta,
                fields[8] if attributes & 8 else timestamp + timestamp_delta,
                key,
                value,
                headers,
                producer,
                bool(attributes & 0x20),
            )
        )
        at = fields_end
    if at != len(body):
        raise ValueError(f"{len(body) - at} bytes behind the last record")
    return OracleBatch(path, position, size, base, base + delta, epoch, tuple(records))


def _decompressed(body: bytes, codec: int) -> bytes:
    if codec == 0:
        return body
    if codec == 1:
        return zlib.decompress(body, wbits=31)
    raise AssertionError(f"the oracle reads plain batches and gzip, this is codec {codec}")


def _record(
    body: bytes, at: int
) -> tuple[
    int, tuple[int, int, bytes | None, bytes | None, tuple[tuple[bytes, bytes | None], ...]]
]:
    size, at = _varint(body, at)
    end = at + size
    at += 1  # attributes, unused
    timestamp_delta, at = _varint(body, at)
    offset_delta, at = _varint(body, at)
    key, at = _bytes(body, at)
    value, at = _bytes(body, at)
    count, at = _varint(body, at)
    headers = []
    for _ in range(count):
        name, at = _bytes(body, at)
        assert name is not None
        header_value, at = _bytes(body, at)
        headers.append((name, header_value))
    if at != end:
        raise ValueError(f"a record of {size} bytes ends {end - at} bytes early")
    return end, (offset_delta, timestamp_delta, key, value, tuple(headers))


def _bytes(body: bytes, at: int) -> tuple[bytes | None, int]:
    size, at = _varint(body, at)
    if size < 0:
        return None, at
    if at + size > len(body):
        raise ValueError(f"a field of {size} bytes where {len(body) - at} are left")
    return body[at : at + size], at + size


def _varint(body: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(body) or shift > 63:
            raise ValueError("a number does not end")
        byte = body[at]
        value |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), at
        shift += 7


class CommittedOffset(NamedTuple):
    """The key of an offset commit."""

    group: str
    topic: str
    partition: int


def committed_offsets(directory: str, into: dict[CommittedOffset, int]) -> None:
    """Apply one partition of __consumer_offsets, in order: return the committed offsets of groups.

    Key: version i16 (0 or 1), group, topic, partition i32. Value: version i16, offset i64, ...; a
    missing value deletes the key.
    """
    for record in read_log(directory).records():
        if record.is_control or record.key is None:
            continue
        (version,) = struct.unpack_from(">h", record.key)
        if version > 1:
            continue
        group, at = _string(record.key, 2)
        topic, at = _string(record.key, at)
        (partition,) = struct.unpack_from(">i", record.key, at)
        key = CommittedOffset(group, topic, partition)
        if record.value is None:
            into.pop(key, None)
        else:
            (into[key],) = struct.unpack_from(">q", record.value, 2)


def _string(data: bytes, at: int) -> tuple[str, int]:
    (size,) = struct.unpack_from(">h", data, at)
    return data[at + 2 : at + 2 + size].decode(), at + 2 + size
