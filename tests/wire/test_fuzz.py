"""For any bytes a decoder returns a message or raises MalformedMessage, with little memory."""

from __future__ import annotations

import tracemalloc
from random import Random
from typing import Any

import pytest

import wire
from tests.wire.generate import all_versions, random_message
from wire.headers import decode_request_header

LARGE = [
    b"\x7f\xff\xff\xff",
    b"\x7f\xff",
    b"\xff\xff\xff\xff\x07",
    b"\xff\xff\xff\xff\x0f",
    b"\x80\x80\x80\x80\x80\x01",
    b"\x80\x00",
]
PEAK_SIZE_MAX = 4 * 1024 * 1024


def mutated(data: bytes, random: Random) -> bytes:
    """Return `data` after one to three changes: a byte, a cut, a repeated piece, a huge length."""
    changed = bytearray(data)
    for _ in range(random.randrange(1, 4)):
        place = random.randrange(len(changed) + 1)
        choice = random.randrange(5)
        if choice == 0 and place < len(changed):
            changed[place] = random.randrange(256)
        elif choice == 1:
            del changed[place:]
        elif choice == 2:
            changed[place:place] = changed[place : place + random.randrange(9)]
        else:
            large = random.choice(LARGE)
            changed[place : place + len(large)] = large
    return bytes(changed)


def decodes_or_refuses(cls: type[Any], version: int, data: bytes) -> bool:
    """Return whether `data` was decoded; then encoding and decoding must give the same message."""
    try:
        message, end = wire.decode_from(cls, version, data, 0)
    except wire.MalformedMessage:
        return False
    assert end <= len(data)
    again = wire.encode(message, version)
    # NaN differs from itself, so compare the bytes.
    assert wire.encode(wire.decode(cls, version, again), version) == again
    return True


@pytest.mark.slow
def test_mutated_messages_are_read_or_refused() -> None:
    random = Random(4)
    taken = refused = 0
    for cls, version in all_versions():
        data = wire.encode(random_message(cls, version, random), version)
        for _ in range(12):
            if decodes_or_refuses(cls, version, mutated(data, random)):
                taken += 1
            else:
                refused += 1
    assert min(taken, refused) > 1000


@pytest.mark.slow
def test_random_bytes_are_read_or_refused() -> None:
    random = Random(5)
    for cls, version in all_versions():
        for size in (0, 1, 5, 40, 200):
            decodes_or_refuses(cls, version, random.randbytes(size))
            decodes_or_refuses(cls, version, bytes(size))


@pytest.mark.parametrize("step", [5, pytest.param(1, marks=pytest.mark.slow)])
def test_every_prefix_of_a_message_is_refused(step: int) -> None:
    random = Random(6)
    for cls, version in list(all_versions())[::step]:
        message = cls()
        data = wire.encode(message, version)
        for size in {0, len(data) // 2, len(data) - 1} - {-1, len(data)}:
            with pytest.raises(wire.MalformedMessage):
                wire.decode(cls, version, data[:size])
        full = wire.encode(random_message(cls, version, random), version)
        if full:
            with pytest.raises(wire.MalformedMessage):
                wire.decode(cls, version, full[:-1])


@pytest.mark.slow
def test_huge_counts_allocate_nothing_huge() -> None:
    random = Random(7)
    for cls, version in all_versions():
        decodes_or_refuses(cls, version, b"")
    tracemalloc.start()
    try:
        for cls, version in all_versions():
            data = wire.encode(random_message(cls, version, random), version)
            for large in LARGE:
                place = random.randrange(len(data) + 1)
                bomb = data[:place] + large + data[place + len(large) :]
                tracemalloc.reset_peak()
                decodes_or_refuses(cls, version, bomb)
                peak = tracemalloc.get_traced_memory()[1]
                assert peak < PEAK_SIZE_MAX, (cls, version, bomb)
    finally:
        tracemalloc.stop()


def test_request_headers_are_read_or_refused() -> None:
    random = Random(8)
    for _ in range(3000):
        data = random.randbytes(random.randrange(30))
        try:
            position = decode_request_header(data)[4]
        except wire.MalformedMessage:
            continue
        assert position <= len(data)
