"""Sparse indexes find the same as a full scan, and refuse damaged files."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from struct import pack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from embedlog.errors import CorruptRecord
from embedlog.storage.segments.indexes.offset import OffsetIndex
from embedlog.storage.segments.indexes.time import TimeIndex
from tests.crash.opcodes import Countdown

SIZE = 2**31 - 1


@st.composite
def offset_entries(draw: st.DrawFn) -> tuple[int, list[tuple[int, int]]]:
    base = draw(st.sampled_from([0, 5, 2**40]))
    offsets = sorted(draw(st.sets(st.integers(0, 2**31 - 1), max_size=30)))
    positions = sorted(draw(st.sets(st.integers(1, SIZE - 1), min_size=30, max_size=30)))
    return base, [(base + offset, positions[n]) for n, offset in enumerate(offsets)]


@given(offset_entries(), st.lists(st.integers(-10, 2**31), max_size=20))
def test_lookup_finds_the_last_entry_not_above(
    made: tuple[int, list[tuple[int, int]]], targets: list[int]
) -> None:
    base, entries = made
    index = OffsetIndex(base)
    for offset, position in entries:
        index.append(offset, position)
    wanted = [base + target for target in targets]
    wanted += [offset + delta for offset, _ in entries for delta in (-1, 0, 1)]
    expected = [max((e for e in entries if e[0] <= target), default=(-1, 0)) for target in wanted]
    assert [index.lookup(target) for target in wanted] == expected
    assert list(index.positions_for(wanted)) == [position for _, position in expected]
    for position in (0, SIZE, *(p + delta for _, p in entries for delta in (-1, 0, 1))):
        below = max((e for e in entries if e[1] <= position), default=(-1, 0))
        assert index.lookup_position(position) == below


@given(offset_entries(), st.integers(0, 2**31))
def test_an_offset_index_survives_its_file_and_truncation(
    made: tuple[int, list[tuple[int, int]]], cut: int
) -> None:
    base, entries = made
    index = OffsetIndex(base)
    for offset, position in entries:
        index.append(offset, position)
    content = index.encode()
    assert content == b"".join(pack(">ii", o - base, p) for o, p in entries)
    read = OffsetIndex.decode(content + bytes(80), base_offset=base, size=SIZE, path="x")
    assert read.encode() == content
    kept = [entry for entry in entries if entry[0] < base + cut]
    assert index.truncated(base + cut).encode() == content[: 8 * len(kept)]
    assert index.encode() == content


def test_an_entry_that_repeats_an_interrupted_append_is_left_out() -> None:
    index = OffsetIndex(0)
    index.append(10, 100)
    index.append(9, 100)
    index.append(10, 100)
    index.append(20, 200)
    assert index.encode() == pack(">iiii", 10, 100, 20, 200)


@pytest.mark.parametrize(
    "content",
    [
        b"1234567",
        pack(">iiii", 10, 100, 10, 200),
        pack(">iiii", 10, 100, 20, 100),
        pack(">iiii", 10, 100, 5, 200),
        pack(">ii", 10, 5000),
        pack(">ii", -3, 100),
        pack(">iiiiii", 10, 100, 0, 0, 20, 200),
    ],
)
def test_a_damaged_offset_index_is_refused(content: bytes) -> None:
    with pytest.raises(CorruptRecord):
        OffsetIndex.decode(content, base_offset=0, size=5000, path="x")


@given(st.lists(st.tuples(st.integers(-1, 200), st.integers(1, 5)), max_size=40))
def test_time_lookup_is_safe_to_scan_from(appended: list[tuple[int, int]]) -> None:
    base = 1000
    index = TimeIndex(base)
    largest, holder, offset = -1, -1, base
    history = []
    for timestamp, count in appended:
        offset += count
        if timestamp > largest:
            largest, holder = timestamp, offset
        index.append(largest, holder)
        history.append((timestamp, offset))
    assert index.last == ((largest, holder) if largest >= 0 else None)
    for target in range(-1, 205, 3):
        known, start = index.lookup(target)
        assert known <= target
        # No batch that ends before the found offset is as young as the target.
        assert all(t < target or o >= start for t, o in history if target >= 0)
    content = index.encode()
    read = TimeIndex.decode(content + bytes(24), base_offset=base, path="x")
    assert read.encode() == content
    assert read.last == index.last


def test_a_time_index_is_cut_by_offset() -> None:
    index = TimeIndex(100)
    for timestamp, offset in ((5, 101), (7, 110), (9, 120)):
        index.append(timestamp, offset)
    assert index.truncated(110).last == (5, 101)
    assert index.truncated(100).last is None
    assert index.last == (9, 120)
    assert index.encode() == pack(">qiqiqi", 5, 1, 7, 10, 9, 20)


@pytest.mark.parametrize(
    "content",
    [
        b"12345678901",
        pack(">qiqi", 5, 1, 5, 2),
        pack(">qiqi", 5, 2, 6, 1),
        pack(">qi", -5, 2),
    ],
)
def test_a_damaged_time_index_is_refused(content: bytes) -> None:
    with pytest.raises(CorruptRecord):
        TimeIndex.decode(content, base_offset=0, path="x")


def test_an_interrupted_time_entry_does_not_shift_the_others() -> None:
    opcode, was_cut = 0, True
    while was_cut:
        opcode += 1
        index = TimeIndex(0)
        index.append(5, 1)
        was_cut = _cut_short(opcode, lambda index=index: index.append(6, 99))
        assert index.last in {(5, 1), (6, 99)}
        index.append(6, 99)
        index.append(7, 100)
        assert index.encode() == pack(">qiqiqi", 5, 1, 6, 99, 7, 100)
    assert opcode > 10


def _cut_short(opcode: int, work: Callable[[], object]) -> bool:
    """Run `work` up to that opcode; False if it has fewer."""

    def stop() -> None:
        raise InterruptedError

    countdown = Countdown(opcode, stop)
    countdown.start()
    try:
        work()
    except InterruptedError:
        return True
    finally:
        countdown.stop()
    return False


def test_a_long_index_is_packed_and_still_found_whole() -> None:
    tracemalloc.start()
    offsets, times = OffsetIndex(7), TimeIndex(7)
    for number in range(1, 6000):
        offsets.append(7 + 3 * number, 100 * number)
        times.append(50 * number, 7 + 3 * number)
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert size < 6000 * 3 * 10, "lists of three columns take four times as much"
    for number in (1, 2, 4095, 4096, 4097, 5999):
        assert offsets.lookup(8 + 3 * number) == (7 + 3 * number, 100 * number)
        assert offsets.lookup_position(100 * number + 99) == (7 + 3 * number, 100 * number)
        assert times.lookup(50 * number + 49) == (50 * number, 7 + 3 * number)
    assert list(offsets.positions_for([10, 7 + 3 * 5000])) == [100, 500_000]
    read = OffsetIndex.decode(offsets.encode(), base_offset=7, size=10**6, path="x")
    assert read.encode() == offsets.encode()
    assert TimeIndex.decode(times.encode(), base_offset=7, path="x").encode() == times.encode()
