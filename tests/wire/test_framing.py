"""Frames of a stream that arrives in pieces of any size."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wire.errors import RemoteProtocolError
from wire.framing import CHUNK_SIZE_FIRST, CHUNK_SIZE_MAX, FrameReader, InvalidFrameSize, frame


def stream_of(bodies: list[bytes]) -> bytes:
    return b"".join(b"".join(map(bytes, frame([body]))) for body in bodies)


SIZES = st.one_of(
    st.integers(0, 20),
    st.integers(CHUNK_SIZE_FIRST - 10, CHUNK_SIZE_FIRST + 10),
    st.integers(CHUNK_SIZE_MAX - 10, CHUNK_SIZE_MAX + 10),
)


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(
    sizes=st.lists(SIZES, max_size=8),
    steps=st.lists(st.integers(1, 5000), min_size=1, max_size=5),
)
def test_frames_are_those_that_were_sent(sizes: list[int], steps: list[int]) -> None:
    bodies = [bytes([number + 1]) * size for number, size in enumerate(sizes)]
    stream = memoryview(stream_of(bodies))
    reader = FrameReader()
    frames, number = [], 0
    while stream:
        step = steps[number % len(steps)]
        number += 1
        frames += reader.feed(stream[:step])
        stream = stream[step:]
    # Compared at the end: later bytes must not overwrite earlier frames.
    assert frames == bodies
    assert reader.feed(b"\0\0\0\1x") == [b"x"]  # no bytes of another frame came before


def test_one_byte_at_a_time() -> None:
    reader = FrameReader()
    frames = []
    for byte in stream_of([b"", b"a", b"bc"]):
        frames += reader.feed(bytes([byte]))
    assert frames == [b"", b"a", b"bc"]


def test_a_large_frame_is_received_in_place() -> None:
    reader = FrameReader()
    size = 1 << 20
    assert reader.feed(size.to_bytes(4, "big") + b"x") == []
    space = reader.free_space()
    assert len(space) == size - 1
    space[:] = b"y" * (size - 1)
    (received,) = reader.received(size - 1)
    assert received == b"x" + b"y" * (size - 1)
    assert received.obj is space.obj


def test_there_is_always_space() -> None:
    reader = FrameReader()
    for _ in range(40):
        space = reader.free_space()
        assert len(space) > 0
        step = min(len(space), 1000)
        frames = stream_of([b"z" * (step - 4)])
        space[:step] = frames
        assert len(reader.received(step)) == (1 if step == 1000 else len(frames) // step)


def test_a_frame_may_have_the_greatest_size() -> None:
    reader = FrameReader(size_max=10)
    assert reader.feed(stream_of([b"0123456789"])) == [b"0123456789"]


@pytest.mark.parametrize("size", [-1, -(2**31), 11, 2**31 - 1])
def test_invalid_sizes_are_refused_before_memory_is_made(size: int) -> None:
    reader = FrameReader(size_max=10)
    with pytest.raises(InvalidFrameSize) as caught:
        reader.feed(size.to_bytes(4, "big", signed=True))
    assert caught.value.size == size
    assert isinstance(caught.value, RemoteProtocolError)


def test_frames_that_a_caller_keeps_do_not_change() -> None:
    bodies = [bytes([number % 251]) * 1_000 for number in range(300)]
    assert FrameReader().feed(stream_of(bodies)) == bodies
