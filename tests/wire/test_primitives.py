"""Unsigned varints: handwritten vectors and round trips."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wire.errors import MalformedMessage
from wire.primitives import read_uvarint, uvarint

UVARINTS = {
    0: "00",
    1: "01",
    127: "7f",
    128: "8001",
    300: "ac02",
    16383: "ff7f",
    16384: "808001",
    2097151: "ffff7f",
    2097152: "80808001",
    268435455: "ffffff7f",
    268435456: "8080808001",
    2147483647: "ffffffff07",
    4294967295: "ffffffff0f",
}


@pytest.mark.parametrize(("value", "text"), UVARINTS.items())
def test_unsigned_varint_vectors(value: int, text: str) -> None:
    assert uvarint(value).hex() == text
    assert read_uvarint(b"?" + bytes.fromhex(text) + b"?", 1) == (value, 1 + len(text) // 2)


@given(st.integers(0, 2**35 - 1))
def test_unsigned_varints_round_trip(value: int) -> None:
    data = uvarint(value)
    assert read_uvarint(data, 0) == (value, len(data))


@pytest.mark.parametrize("text", ["", "80", "ffffffff", "808080808001", "ffffffffffffff"])
def test_unsigned_varints_that_do_not_end_are_malformed(text: str) -> None:
    with pytest.raises(MalformedMessage):
        read_uvarint(bytes.fromhex(text), 0)
