"""Acknowledgements of offsets become batches: contiguous, short, and with every type once."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from embedlog.client.share.wire_batches import wire_batches

LONG_RUN = 10

TYPES = st.dictionaries(st.integers(0, 60), st.integers(0, 4))
RUNS = st.lists(st.tuples(st.integers(1, 25), st.integers(0, 4), st.booleans()))


def spread(runs: list[tuple[int, int, bool]]) -> dict[int, int]:
    """Return the types of offsets: runs of equal types, with a hole after some of them."""
    types: dict[int, int] = {}
    offset = 0
    for size, kind, has_hole in runs:
        for _ in range(size):
            types[offset] = kind
            offset += 1
        offset += has_hole
    return types


def check(types: dict[int, int]) -> None:
    batches = wire_batches(types)
    found: dict[int, int] = {}
    end = -1
    for first, last, kinds in batches:
        assert first > end, "in order, and disjoint"
        end = last
        size = last - first + 1
        assert len(kinds) in (1, size)
        every = kinds * size if len(kinds) == 1 else kinds
        assert len(kinds) == 1 or len(set(kinds)) > 1, "a uniform batch has one type"
        found.update(zip(range(first, last + 1), every, strict=True))
        for start in range(size - LONG_RUN):
            assert len(kinds) == 1 or len(set(every[start : start + LONG_RUN + 1])) > 1
    assert found == types


@given(TYPES)
def test_all_offsets_keep_their_types(types: dict[int, int]) -> None:
    check(types)


@given(RUNS)
def test_long_runs_get_a_single_type(runs: list[tuple[int, int, bool]]) -> None:
    check(spread(runs))


def test_a_short_run_stays_with_its_neighbours() -> None:
    assert wire_batches({0: 1, 1: 2, 2: 2, 3: 1}) == [(0, 3, [1, 2, 2, 1])]


def test_a_long_run_is_cut_out() -> None:
    types = {0: 2, **dict.fromkeys(range(1, 12), 1), 12: 3}
    assert wire_batches(types) == [(0, 0, [2]), (1, 11, [1]), (12, 12, [3])]
