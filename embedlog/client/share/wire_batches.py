"""Acknowledgements as batches of offsets, as both requests of a share consumer carry them."""

from __future__ import annotations

from itertools import groupby

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    WireBatch = tuple[int, int, list[int]]
    """First offset, last offset, and either a type for each offset or one type for all."""

_LONG_RUN = 10
"""More equal types in a row than this get a batch of their own, which has a single type."""


def wire_batches(types: Mapping[int, int]) -> list[WireBatch]:
    """Return the acknowledgement types of a partition's offsets as batches, in order of offsets.

    >>> wire_batches({1: 1, 2: 1, 4: 1, 5: 2})
    [(1, 2, [1]), (4, 5, [1, 2])]
    >>> wire_batches({0: 2} | dict.fromkeys(range(1, 13), 1))
    [(0, 0, [2]), (1, 12, [1])]
    """
    found: list[WireBatch] = []
    first = 0
    mixed: list[int] = []
    for start, kind, count in _runs(types):
        if mixed and (start != first + len(mixed) or count > _LONG_RUN):
            found.append(_batch(first, mixed))
            mixed = []
        if count > _LONG_RUN:
            found.append((start, start + count - 1, [kind]))
            continue
        if not mixed:
            first = start
        mixed.extend([kind] * count)
    if mixed:
        found.append(_batch(first, mixed))
    return found


def _runs(types: Mapping[int, int]) -> Iterator[tuple[int, int, int]]:
    """Yield (first offset, type, count) of successive offsets with the same type."""
    offsets = sorted(types)
    # Successive offsets have the same difference to their index.
    for (_, kind), run in groupby(enumerate(offsets), lambda at: (at[1] - at[0], types[at[1]])):
        (_, start), *others = run
        yield start, kind, 1 + len(others)


def _batch(first: int, types: list[int]) -> WireBatch:
    last = first + len(types) - 1
    return first, last, types[:1] if len(set(types)) == 1 else types
