"""Scanning large batches in parts gives the same facts as in one piece."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from tests.crash.peers.attacks import gzipped
from wire.records.batch import RecordBatch
from wire.records.decode import loop
from wire.records.decode.choose import scan
from wire.records.decode.scan import ScanResult
from wire.records.errors import InvalidRecord

COUNT = 20_000
Record = tuple[int, int, bytes | None]


def zigzag(number: int) -> bytes:
    number = number << 1 if number >= 0 else (-number << 1) - 1
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes((*out, number))


def encoded(records: list[Record]) -> bytes:
    """Encode records from (timestamp delta, offset delta, key), each with a value and a header."""
    out = []
    for delta, offset, key in records:
        key_part = zigzag(-1) if key is None else zigzag(len(key)) + key
        body = b"\0" + zigzag(delta) + zigzag(offset) + key_part + b"\x02v\x02\x02h\x01"
        out.append(zigzag(len(body)) + body)
    return b"".join(out)


def in_order(_n: int) -> int:
    return 0


def scanned(payload: bytes, count: int) -> ScanResult:
    return scan(RecordBatch(memoryview(gzipped(payload, count))))


@pytest.mark.slow
@pytest.mark.parametrize("moved", [in_order, lambda n: 1 if n == 8_192 else 0])
@pytest.mark.parametrize("first_null", [-1, 0, 8_191, 8_192, COUNT - 1])
def test_what_is_found_is_what_the_records_say(
    moved: Callable[[int], int], first_null: int
) -> None:
    rng = random.Random(first_null)
    records: list[Record] = [
        (rng.randrange(-500, 500), n + moved(n), None if 0 <= first_null <= n else b"k")
        for n in range(COUNT)
    ]
    batch = RecordBatch(memoryview(gzipped(encoded(records), COUNT)))
    deltas = [delta for delta, _, _ in records]
    assert scan(batch) == ScanResult(
        batch.base_timestamp + max(deltas),
        batch.base_timestamp + min(deltas),
        first_null,
        moved is in_order,
    )


@pytest.mark.slow
@pytest.mark.parametrize("bad", [0, 8_191, 8_192, COUNT - 1])
def test_a_malformed_record_is_named(bad: int) -> None:
    pieces = [encoded([(0, n, b"k")]) for n in range(COUNT)]
    pieces[bad] = b"\x01" + pieces[bad][1:]
    with pytest.raises(InvalidRecord) as found:
        scanned(b"".join(pieces), COUNT)
    assert found.value.index == bad


@pytest.mark.slow
def test_the_records_must_fill_the_batch() -> None:
    data = encoded([(0, n, b"k") for n in range(COUNT)])
    with pytest.raises(InvalidRecord, match="3 bytes after the last of 20000 records"):
        scanned(data + b"abc", COUNT)
    with pytest.raises(InvalidRecord, match="end early"):
        scanned(data, COUNT + 1)
    with pytest.raises(InvalidRecord, match="bytes after the last of 16384 records"):
        scanned(data, 2 * 8_192)


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 8_192, 8_193, 16_384])
def test_parts_are_all_of_it_in_order(count: int) -> None:
    data = encoded([(0, n, b"k") for n in range(count)])
    parts = list(loop.parse_in_parts(data, count, 8_192))
    assert [field for part in parts for field in part] == loop.parse_records(data, count)
    assert max(map(len, parts)) <= 8_192
    assert all(parts)
