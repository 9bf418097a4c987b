"""The leader epochs of a log's offsets: the cache behind KIP-101 and KIP-320.

A sorted list of (epoch, start offset). The leader of `epoch` wrote the records from `start offset`
up to the next entry's start, or up to the log's end. Both columns strictly increase. If a log was
truncated, a reader that was ahead finds in the list the offset from which its records differ.

The file is Kafka's text file `leader-epoch-checkpoint`, with these lines:

    0                    format version
    2                    number of entries
    0 0                  epoch, start offset
    3 1017
"""

from __future__ import annotations

from _bisect import bisect_left, bisect_right

from embedlog.errors import CorruptRecord
from embedlog.storage import paths
from embedlog.storage.state_files.sealed_file import read_sealed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from embedlog.runtime.files import Files

UNDEFINED_EPOCH = -1
UNDEFINED_OFFSET = -1

_VERSION = "0"


class LeaderEpochs:
    """The leader epochs of one log. Only its `Log` changes them, under the partition lock.

    Any thread may read: a change makes new columns, and one assignment publishes both.
    """

    __slots__ = ("_columns",)

    def __init__(self, entries: Iterable[tuple[int, int]] = ()) -> None:
        self._columns: tuple[list[int], list[int]] = ([], [])
        """Epochs and their start offsets, oldest first; no published list is changed."""
        for epoch, start_offset in entries:
            self.assign(epoch, start_offset)

    @property
    def entries(self) -> list[tuple[int, int]]:
        """(epoch, start offset), oldest first; a copy."""
        return list(zip(*self._columns, strict=True))

    @property
    def latest_epoch(self) -> int:
        """The epoch of the last entry, -1 without one."""
        epochs = self._columns[0]
        return epochs[-1] if epochs else UNDEFINED_EPOCH

    def assign(self, epoch: int, start_offset: int) -> bool:
        """Record that `epoch` writes from `start_offset` on; return whether anything changed.

        Entries with the same or a later epoch, or the same or a later start, contradict the new
        one. Their records were never committed, so the entries are dropped.
        """
        assert epoch >= 0, epoch
        assert start_offset >= 0, start_offset
        epochs, starts = self._columns
        if epochs and epoch == epochs[-1] and start_offset >= starts[-1]:
            return False
        keep = len(epochs)
        while keep and (epochs[keep - 1] >= epoch or starts[keep - 1] >= start_offset):
            keep -= 1
        self._columns = [*epochs[:keep], epoch], [*starts[:keep], start_offset]
        return True

    def end_offset_for(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """Return the largest known epoch that is not above `epoch`, and its end offset (exclusive).

        Return (-1, -1) if `epoch` is -1 or later than every known epoch. If `epoch` is below the
        first known epoch, return `epoch` and the start of the first known one.
        """
        epochs, starts = self._columns
        if epoch == UNDEFINED_EPOCH or not epochs or epoch > epochs[-1]:
            return UNDEFINED_EPOCH, UNDEFINED_OFFSET
        if epoch == epochs[-1]:
            return epoch, log_end_offset
        higher = bisect_right(epochs, epoch)
        if higher == 0:
            return epoch, starts[0]
        return epochs[higher - 1], starts[higher]

    def epoch_for_offset(self, offset: int) -> int:
        """Return the epoch that wrote `offset`, or -1 if `offset` lies before all known epochs."""
        epochs, starts = self._columns
        slot = bisect_right(starts, offset)
        return epochs[slot - 1] if slot else UNDEFINED_EPOCH

    def truncate_from_end(self, offset: int) -> bool:
        """Forget the epochs that start at or after `offset`; return whether there were any."""
        epochs, starts = self._columns
        keep = bisect_left(starts, offset)
        self._columns = epochs[:keep], starts[:keep]
        return keep < len(starts)

    def truncate_from_start(self, offset: int) -> bool:
        """Forget the epochs below `offset`, the new log start; return whether anything changed.

        The epoch in force at `offset` stays and now starts there.
        """
        epochs, starts = self._columns
        last_below = bisect_right(starts, offset) - 1
        if last_below < 0 or (last_below == 0 and starts[0] == offset):
            return False
        self._columns = epochs[last_below:], [offset, *starts[last_below + 1 :]]
        return True

    def clear(self) -> None:
        self._columns = [], []

    def encode(self) -> bytes:
        entries = self.entries
        lines = [_VERSION, str(len(entries)), *(f"{epoch} {start}" for epoch, start in entries)]
        return ("\n".join(lines) + "\n").encode("ascii")

    @classmethod
    def decode(cls, content: bytes, path: str = paths.LEADER_EPOCHS) -> LeaderEpochs:
        """Read a checkpoint file's content. An empty file holds no entries.

        Raises:
            CorruptRecord: an unknown version, a malformed line, a wrong count, or entries that do
                not increase; `position` is the first byte of the bad line.
        """
        epochs = cls()
        if not content:
            return epochs
        lines = content.split(b"\n")
        if lines[0].strip() != _VERSION.encode():
            raise CorruptRecord(path, 0, f"version {lines[0]!r}, expected {_VERSION}")
        count = _integers(path, len(lines[0]) + 1, lines[1] if len(lines) > 1 else b"", 1)[0]
        position = len(lines[0]) + 1 + (len(lines[1]) + 1 if len(lines) > 1 else 0)
        for line in lines[2:]:
            if line.strip():
                epoch, start_offset = _integers(path, position, line, 2)
                epochs._append_read(path, position, epoch, start_offset)
            position += len(line) + 1
        found = len(epochs._columns[0])
        if found != count:
            raise CorruptRecord(path, 0, f"{found} entries, expected {count}")
        return epochs

    def _append_read(self, path: str, position: int, epoch: int, start_offset: int) -> None:
        epochs, starts = self._columns
        previous = (epochs[-1], starts[-1]) if epochs else (-1, -1)
        if epoch <= previous[0] or start_offset <= previous[1]:
            reason = f"entry {(epoch, start_offset)} does not increase after {previous}"
            raise CorruptRecord(path, position, reason)
        epochs.append(epoch)
        starts.append(start_offset)


def read_epochs_text(files: Files, directory: str) -> LeaderEpochs | None:
    """Read Kafka's text form of a log's epochs; None if missing, CorruptRecord if malformed."""
    path = f"{directory}/{paths.LEADER_EPOCHS}"
    try:
        return LeaderEpochs.decode(files.read(path), path)
    except FileNotFoundError:
        return None


def read_epochs(files: Files, directory: str) -> LeaderEpochs | None:
    """Read the sealed form of a log's epochs; None if missing, CorruptRecord if damaged."""
    path = f"{directory}/{paths.SEALED_LEADER_EPOCHS}"
    content = read_sealed(files, path)
    return None if content is None else LeaderEpochs.decode(content, path)


def _integers(path: str, position: int, line: bytes, count: int) -> list[int]:
    fields = line.split()
    if len(fields) != count or not all(field.isdigit() for field in fields):
        raise CorruptRecord(path, position, f"malformed line {line!r}")
    return [int(field) for field in fields]
