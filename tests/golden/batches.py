"""Record batches written byte by byte, valid and invalid: shares no code with `wire.records`."""

from __future__ import annotations

import gzip
import struct
from collections.abc import Sequence

import google_crc32c

BASE_TIMESTAMP = 1_700_000_000_000

Header = tuple[bytes, bytes | None]


def varint(value: int) -> bytes:
    """Zig-zag varint of up to 64 bits."""
    rest = (value << 1) ^ (value >> 63)
    out = bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


def _blob(data: bytes | None) -> bytes:
    return varint(-1) if data is None else varint(len(data)) + data


def record(
    value: bytes | None,
    *,
    key: bytes | None = None,
    offset_delta: int = 0,
    timestamp_delta: int = 0,
    headers: Sequence[Header] = (),
    attributes: int = 0,
    header_count: int | None = None,
    tail: bytes = b"",
) -> bytes:
    """Build one record of a v2 batch. `header_count` and `tail` make invalid ones."""
    body = bytes([attributes]) + varint(timestamp_delta) + varint(offset_delta)
    body += _blob(key) + _blob(value)
    body += varint(len(headers) if header_count is None else header_count)
    for name, content in headers:
        body += _blob(name) + _blob(content)
    body += tail
    return varint(len(body)) + body


def records(*values: bytes | None, key: bytes | None = None) -> bytes:
    """Build plain records with deltas 0..n-1."""
    return b"".join(record(v, key=key, offset_delta=i) for i, v in enumerate(values))


def batch(
    body: bytes,
    *,
    count: int,
    base_offset: int = 0,
    last_offset_delta: int | None = None,
    length: int | None = None,
    leader_epoch: int = -1,
    magic: int = 2,
    crc: int | None = None,
    attributes: int = 0,
    base_timestamp: int = BASE_TIMESTAMP,
    max_timestamp: int | None = None,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
) -> bytes:
    """Build a v2 batch around record bytes; each header field may be wrong."""
    last = count - 1 if last_offset_delta is None else last_offset_delta
    latest = base_timestamp if max_timestamp is None else max_timestamp
    covered = struct.pack(
        ">hiqqqhii", attributes, last, base_timestamp, latest,
        producer_id, producer_epoch, base_sequence, count,
    ) + body  # fmt: skip
    check = google_crc32c.value(covered) if crc is None else crc
    head = struct.pack(">ibI", leader_epoch, magic, check)
    size = len(head) + len(covered) if length is None else length
    return struct.pack(">qi", base_offset, size) + head + covered


def simple(*values: bytes | None, key: bytes | None = None, **fields: int) -> bytes:
    """Build a valid batch of `values`; header fields may be replaced."""
    return batch(records(*values, key=key), count=len(values), **fields)


def gzipped(*values: bytes | None, **fields: int) -> bytes:
    """Build the same, compressed with gzip."""
    attributes = fields.pop("attributes", 0) | 1
    body = gzip.compress(records(*values), mtime=0)
    return batch(body, count=len(values), attributes=attributes, **fields)
