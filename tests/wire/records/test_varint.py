"""Zig-zag varints: vectors, limits, and the bits that Java drops."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wire.records.batches import int64s
from wire.records.varint import (
    MAX_VARINT_SIZE,
    MAX_VARLONG_SIZE,
    VARINTS,
    Malformed,
    encode_varint,
    int64,
    read_varint,
    timestamps_of,
    varint_size,
)

VECTORS = {
    0: "00",
    -1: "01",
    1: "02",
    -2: "03",
    63: "7e",
    -64: "7f",
    64: "8001",
    8191: "fe7f",
    -8192: "ff7f",
    2147483647: "feffffff0f",
    -2147483648: "ffffffff0f",
    1700000000000: "80a0abfef962",
    (1 << 63) - 1: "feffffffffffffffff01",
    -(1 << 63): "ffffffffffffffffff01",
}


@pytest.mark.parametrize(("number", "encoded"), VECTORS.items())
def test_vectors(number: int, encoded: str) -> None:
    assert encode_varint(number).hex() == encoded
    assert VARINTS[number].hex() == encoded
    assert varint_size(number) == len(encoded) // 2
    size_max = MAX_VARINT_SIZE if abs(number) <= 1 << 31 else MAX_VARLONG_SIZE
    assert read_varint(bytes.fromhex(encoded), 0, size_max) == (number, len(encoded) // 2)


@given(int64s, st.binary(max_size=3), st.binary(max_size=3))
def test_round_trip_anywhere(number: int, before: bytes, after: bytes) -> None:
    encoded = encode_varint(number)
    data = before + encoded + after
    assert read_varint(memoryview(data), len(before), MAX_VARLONG_SIZE) == (
        number,
        len(before) + len(encoded),
    )
    assert varint_size(number) == len(encoded)


@pytest.mark.parametrize("size_max", [MAX_VARINT_SIZE, MAX_VARLONG_SIZE])
def test_longer_than_allowed_is_malformed(size_max: int) -> None:
    with pytest.raises(Malformed):
        read_varint(b"\x80" * size_max + b"\x00", 0, size_max)
    assert read_varint(b"\x80" * (size_max - 1) + b"\x00", 0, size_max) == (0, size_max)


@pytest.mark.parametrize("encoded", [b"", b"\x80", b"\xff\xff\xff"])
def test_cut_is_an_index_error(encoded: bytes) -> None:
    with pytest.raises(IndexError):
        read_varint(encoded, 0, MAX_VARINT_SIZE)


def test_bits_beyond_the_number_are_dropped() -> None:
    assert read_varint(b"\xff\xff\xff\xff\x7f", 0, MAX_VARINT_SIZE) == (-2147483648, 5)


@given(int64s, st.lists(int64s, min_size=1, max_size=5))
def test_timestamps_wrap_like_java(base: int, deltas: list[int]) -> None:
    assert timestamps_of(base, deltas) == [int64(base + delta) for delta in deltas]
    assert int64((1 << 63) - 1 + 1) == -(1 << 63)
