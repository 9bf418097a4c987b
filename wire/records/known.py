"""Caches about the shapes of batches, which make encoding and decoding of similar ones faster."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    K = TypeVar("K")
    V = TypeVar("V")


class Kept(dict["K", "V"]):
    """A cache of at most `count_max` entries, which clears itself when full.

    A lost entry costs only the time to make it again.
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
    """All caches of this package. The default is one for the process, `KNOWN`.

    Threads may share it without a lock: each step is one operation of a dict, and two threads that
    make the same entry make equal ones.
    """

    def __init__(self) -> None:
        # Encoding.
        self.templates: Kept[tuple[int, int, bool], list[bytes]] = Kept(128)
        """By the sizes of key and value: the bytes before each record's key or value, from the end
        of the record before it, or only from the offset delta on. 48 B a record."""
        self.ready_parts: Kept[int, tuple[list[Any], int]] = Kept(8)
        """By the size of the values: the parts for the last count. 16 B a record."""
        self.offset_deltas: list[bytes] = []
        """The varints of 0, 1, 2, ..., up to 65,536; a longer list replaces it. 36 B each."""
        # Decoding: by the size of all records of a batch and their number, unless named otherwise.
        self.shapes: Kept[tuple[int, int], Any] = Kept(512)
        """`Shape`s, up to 150 B a record."""
        self.shape_sightings: Kept[tuple[int, int], int] = Kept(1024)
        """How many such batches without a known shape were met."""
        self.shape_readers: Kept[tuple[int, int], Any] = Kept(64)
        """By the size of a batch and its record count: the reader of several. 80 B a record."""
        self.layouts: Kept[tuple[int, int], Any] = Kept(16)
        """`Layout`s, about 40 B a record."""
        self.layout_sightings: Kept[tuple[int, int], None] = Kept(1024)
        """Batches that were met at least once."""
        self.unpackers: Kept[tuple[int, tuple[tuple[int, int], ...], int], Any] = Kept(256)
        """By stride, places and sizes of fields, and number of records: the `Struct`."""
        self.offset_columns: Kept[tuple[int, int], bytes] = Kept(16)
        """By size and place: byte `place` of all offset deltas of `size` bytes. Up to 123 KB."""

    def forget(self) -> None:
        """Empty all caches."""
        # New caches instead of cleared ones: another thread may still slice a list from the old.
        Known.__init__(self)


KNOWN = Known()
"""The caches of this process."""
