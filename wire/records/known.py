"""What is remembered of batches that were met, so that the next ones like them take less time."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    K = TypeVar("K")
    V = TypeVar("V")


class Kept(dict["K", "V"]):
    """At most `count_max` things by key. When it is full it forgets all, and begins anew.

    Forgetting costs time, and nothing else: what is kept can be made again.
    """

    __slots__ = ("count_max",)

    def __init__(self, count_max: int) -> None:
        self.count_max = count_max

    def keep(self, key: K, value: V) -> None:
        """Set the value, after forgetting the others if there is no room for one more."""
        if len(self) >= self.count_max and key not in self:
            self.clear()
        self[key] = value


class Known:
    """All that this package remembers about the shapes of batches.

    One for the process is the default, `KNOWN`. Several threads may use it without a lock: each
    step is one operation of a dict, and two that make the same thing make equal ones.
    """

    __slots__ = (
        "layout_sightings",
        "layouts",
        "offset_columns",
        "offset_deltas",
        "ready_parts",
        "shape_readers",
        "shape_sightings",
        "shapes",
        "templates",
        "unpackers",
    )

    def __init__(self) -> None:
        # Encoding.
        self.templates: Kept[tuple[int, int, bool], list[bytes]] = Kept(128)
        """By the sizes of key and value: what stands before records, with the end of the record
        before it or from the offset delta on. 48 B a record."""
        self.ready_parts: Kept[int, tuple[list[Any], int]] = Kept(8)
        """By the size of the values: the parts of the count that was last. 16 B a record."""
        self.offset_deltas: list[bytes] = []
        """The varints of 0, 1, 2, ..., up to 65,536; grown by replacement, 36 B each."""
        # Decoding, by the size of all records together and their number where nothing else is said.
        self.shapes: Kept[tuple[int, int], Any] = Kept(512)
        """`Shape`s of up to 150 B a record."""
        self.shape_sightings: Kept[tuple[int, int], int] = Kept(1024)
        """How often such batches were met that have no shape."""
        self.shape_readers: Kept[tuple[int, int], Any] = Kept(64)
        """By the size of a batch and its number of records: what reads several, 80 B a record."""
        self.layouts: Kept[tuple[int, int], Any] = Kept(16)
        """`Layout`s of 40 B a record or so."""
        self.layout_sightings: Kept[tuple[int, int], None] = Kept(1024)
        """Such batches that were met, once or more."""
        self.unpackers: Kept[tuple[int, tuple[tuple[int, int], ...], int], Any] = Kept(256)
        """By stride, places and sizes of fields, and number of records: the `Struct`."""
        self.offset_columns: Kept[tuple[int, int], bytes] = Kept(16)
        """By size and place: that byte of every offset delta of so many bytes, up to 123 KB."""

    def forget(self) -> None:
        """Forget all, as if nothing had been met."""
        # Anew, not cleared: another thread may be about to cut a list that it found here.
        Known.__init__(self)


KNOWN = Known()
"""What this process remembers."""
