"""Caches that make encoding and decoding faster for batches that resemble earlier ones."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    K = TypeVar("K")
    V = TypeVar("V")


class Kept(dict["K", "V"]):
    """A cache of at most `count_max` entries, which clears itself when full.

    An entry that was cleared is made again when it is next needed.
    """

    __slots__ = ("count_max",)

    def __init__(self, count_max: int) -> None:
        self.count_max = count_max

    def keep(self, key: K, value: V) -> None:
        """Set the value, after clearing the cache if it is full."""
        if len(self) >= self.count_max and key not in self:
            self.clear()
        self[key] = value


class Known:
    """All caches of this package. By default the process uses `KNOWN`.

    Threads may share it without a lock: each step is one operation of a dict, and if two threads
    make the same entry, their results are equal.
    """

    def __init__(self) -> None:
        # Caches for encoding.
        self.templates: Kept[tuple[int, int, bool], list[bytes]] = Kept(128)
        """(key size, value size, whether heads are included) -> a result of `joins.template`. 48 B
        a record."""
        self.ready_parts: Kept[int, tuple[list[Any], int]] = Kept(8)
        """Size of the values -> the last result of `joins._uniform_parts`. 16 B a record."""
        self.offset_deltas: list[bytes] = []
        """The varints of 0, 1, 2, ..., at most 65,536 of them, 36 B each. A longer list replaces
        this one when it is needed."""
        # Caches for decoding. Unless a text names another key, the key is (size of all records of a
        # batch, number of records).
        self.shapes: Kept[tuple[int, int], Any] = Kept(512)
        """The `Shape` of batches of this size and count: see `uniform`. Up to 150 B a record."""
        self.shape_sightings: Kept[tuple[int, int], int] = Kept(1024)
        """How many batches of this size and count were read while their shape was unknown."""
        self.shape_readers: Kept[tuple[int, int], Any] = Kept(64)
        """(size of a batch, number of records) -> a `uniform._Reader`. 80 B a record."""
        self.layouts: Kept[tuple[int, int], Any] = Kept(16)
        """The `Layout` of batches of this size and count: see `layouts`. About 40 B a record."""
        self.layout_sightings: Kept[tuple[int, int], None] = Kept(1024)
        """Sizes and counts met once: the next such batch's layout is kept. Values are unused."""
        self.unpackers: Kept[tuple[int, tuple[tuple[int, int], ...], int], Any] = Kept(256)
        """(stride, places and sizes of fields, number of records) -> the `Struct` that cuts these
        fields out: see `runs._unpacker`."""
        self.offset_columns: Kept[tuple[int, int], bytes] = Kept(16)
        """(size, place) -> a result of `runs._offset_column`. Up to 123 KB."""

    def forget(self) -> None:
        """Empty all caches."""
        # Make new caches instead of clearing the old: another thread may be using a list in them.
        Known.__init__(self)


KNOWN = Known()
"""The caches of this process."""
