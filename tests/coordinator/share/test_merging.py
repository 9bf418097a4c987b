"""Merging keeps for each offset the state of the highest rank: compared with a plain dictionary."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from embedlog.coordinator.share.merging import cut, merged
from tests.golden.share_state_requests import Batch

LENGTH = 30


@st.composite
def batches(draw: st.DrawFn) -> list[Batch]:
    found = []
    for _ in range(draw(st.integers(0, 6))):
        first = draw(st.integers(0, LENGTH))
        last = first + draw(st.integers(0, 8))
        found.append((first, last, draw(st.sampled_from((0, 2, 4))), draw(st.integers(1, 3))))
    return found


def by_offset(*parts: list[Batch]) -> dict[int, tuple[int, int]]:
    """Return the (count, state) of each offset."""
    ranks: dict[int, tuple[int, int]] = {}
    for first, last, state, count in (batch for part in parts for batch in part):
        for offset in range(first, last + 1):
            ranks[offset] = max(ranks.get(offset, (count, state)), (count, state))
    return ranks


def is_canonical(found: list[Batch]) -> bool:
    """Return whether batches are in order, apart, and joined where they can be."""
    return all(first <= last for first, last, _, _ in found) and all(
        one[1] < other[0] and not (one[1] + 1 == other[0] and one[2:] == other[2:])
        for one, other in zip(found, found[1:], strict=False)
    )


@given(st.lists(batches(), min_size=1, max_size=5))
def test_each_offset_has_the_highest_rank(writes: list[list[Batch]]) -> None:
    stored: list[Batch] = []
    for written in writes:
        before = list(stored)
        result = merged(stored, written)
        assert stored == before
        stored = result
        assert is_canonical(stored)
    assert by_offset(stored) == by_offset(*writes)


@given(st.lists(batches(), min_size=1, max_size=4), st.integers(-1, LENGTH + 10))
def test_nothing_is_left_below_the_start(writes: list[list[Batch]], start: int) -> None:
    stored: list[Batch] = []
    for written in writes:
        stored = merged(stored, written)
    kept = cut(stored, start)
    assert is_canonical(kept)
    expected = {offset: rank for offset, rank in by_offset(stored).items() if offset >= start}
    assert by_offset(kept) == expected


def test_without_a_start_nothing_is_cut() -> None:
    assert cut([(-5, -3, 0, 1)], -1) == [(-5, -3, 0, 1)]


def test_only_batches_in_the_range_of_the_write_are_made_anew() -> None:
    stored: list[Batch] = [(n, n, n % 2 * 2, 1) for n in range(2000)]
    result = merged(stored, [(1000, 1001, 4, 1)])
    assert len(result) == len(stored) - 1
    assert all(one is other for one, other in zip(stored[:999], result[:999], strict=True))
    assert result[1000] == (1000, 1001, 4, 1)
