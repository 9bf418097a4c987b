"""The aborted transactions of one segment, which a read_committed fetch reports to its reader.

    entry, 34 bytes, big-endian, sorted by last offset
    0   int16   version, 0
    2   int64   producer id
    10  int64   first offset of the transaction
    18  int64   last offset: the offset of the abort marker
    26  int64   last stable offset after the end of the transaction

The index lives in memory; its segment stores it in the `.txnindex` file if there is an entry. It
can be rebuilt from the log.
"""

from __future__ import annotations

from _bisect import bisect_left
from struct import Struct

from embedlog.common import Value
from embedlog.errors import CorruptRecord

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from embedlog.common import Buffer

ENTRY_SIZE = 34
_VERSION = 0
_ENTRY = Struct(">hqqqq")


class AbortedTransaction(Value):
    """One aborted transaction; `last_offset` is the offset of its abort marker."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class TransactionIndex:
    """The aborted transactions whose markers lie in one segment, in the markers' order.

    Append and truncate under the partition lock. Readers need no lock: an append publishes an entry
    whole, and a truncation replaces the lists.
    """

    __slots__ = ("_entries", "_last_offsets")

    def __init__(self, entries: Iterable[AbortedTransaction] = ()) -> None:
        self._entries: list[AbortedTransaction] = []
        self._last_offsets: list[int] = []
        for entry in entries:
            self.append(entry)

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[AbortedTransaction]:
        return iter(self._entries)

    @property
    def size(self) -> int:
        return len(self._entries) * ENTRY_SIZE

    def append(self, entry: AbortedTransaction) -> bytes:
        """Add one aborted transaction; return the 34 bytes to write at the end of the file.

        Entries come in the order of their markers, so last offsets strictly increase.
        """
        last_offsets = self._last_offsets
        if last_offsets:
            assert entry.last_offset > last_offsets[-1], (entry, last_offsets[-1])
        self._entries.append(entry)
        last_offsets.append(entry.last_offset)
        return _encode(entry)

    def collect_aborted(
        self, fetch_offset: int, upper_bound: int
    ) -> tuple[list[AbortedTransaction], bool]:
        """Return the aborted transactions that overlap [`fetch_offset`, `upper_bound`).

        The second value is True if no later segment can hold an overlapping one: an entry's
        last stable offset reached `upper_bound`, so all transactions below it had ended by then.
        """
        entries = self._entries
        overlapping = []
        for slot in range(bisect_left(self._last_offsets, fetch_offset), len(entries)):
            entry = entries[slot]
            if entry.first_offset < upper_bound:
                overlapping.append(entry)
            if entry.last_stable_offset >= upper_bound:
                return overlapping, True
        return overlapping, False

    def truncate_to(self, offset: int) -> int:
        """Drop entries whose marker lies at or after `offset`; return the size that remains."""
        keep = bisect_left(self._last_offsets, offset)
        # Entries before offsets: a reader that still sees the longer offsets list stays in bounds.
        self._entries = self._entries[:keep]
        self._last_offsets = self._last_offsets[:keep]
        return keep * ENTRY_SIZE

    def encode(self) -> bytes:
        return b"".join(map(_encode, self._entries))

    @classmethod
    def decode(
        cls, content: Buffer, *, base_offset: int = 0, path: str = "txnindex"
    ) -> TransactionIndex:
        """Read an index file's content; `base_offset` is its segment's.

        Raises:
            CorruptRecord: a broken entry at the end, an unknown version, or a marker that lies
                before the segment or before its predecessor. The caller rebuilds the index.
        """
        view = memoryview(content)
        whole = len(view) - len(view) % ENTRY_SIZE
        if whole != len(view):
            raise CorruptRecord(path, whole, f"{len(view) - whole} bytes of a {ENTRY_SIZE} entry")
        index = cls()
        lowest = base_offset
        for slot, (version, *values) in enumerate(_ENTRY.iter_unpack(view)):
            _, first_offset, last_offset, _ = values
            if version != _VERSION:
                raise CorruptRecord(path, slot * ENTRY_SIZE, f"entry version {version}")
            if last_offset < lowest or first_offset > last_offset:
                reason = f"offsets {first_offset}..{last_offset}, markers must be >= {lowest}"
                raise CorruptRecord(path, slot * ENTRY_SIZE, reason)
            index.append(AbortedTransaction(*values))
            lowest = last_offset + 1
        return index


def _encode(entry: AbortedTransaction) -> bytes:
    return _ENTRY.pack(
        _VERSION, entry.producer_id, entry.first_offset, entry.last_offset, entry.last_stable_offset
    )
