"""Which shards are loaded for the first time since their process began."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


class Openings:
    """What a shard holds of an earlier process is put in order once, when it is first loaded.

    With several brokers, a shard that comes from another one has been loaded there before.
    """

    __slots__ = ("_expected", "_seen")

    def __init__(self) -> None:
        self._seen: set[int] = set()
        self._expected: set[int] | None = None

    def expect(self, indexes: Iterable[int]) -> None:
        """Only these partitions were not loaded anywhere before."""
        self._expected = set(indexes)

    def is_first(self, index: int) -> bool:
        """Is this the first load of the partition's shard? Asked at each load, and noted."""
        if index in self._seen or (self._expected is not None and index not in self._expected):
            return False
        self._seen.add(index)
        return True
