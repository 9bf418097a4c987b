"""The actions and observations of all clients. Threads append; the check reads at the end."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field

Place = tuple[str, int]
"""Topic and partition."""
UNKNOWN, ACKED, ABORTED = "unknown", "acknowledged", "aborted"


@dataclass(eq=False)
class Written:
    """One record from its writer's view. No two records have the same value."""

    writer: str
    """The client; a client that had to begin anew has another name."""
    value: bytes
    place: Place
    sent_s: float
    key: bytes | None = None
    outcome: str = UNKNOWN
    offset: int = -1
    transaction: Transaction | None = None


@dataclass(eq=False)
class Transaction:
    """The records that exist together or not at all."""

    writer: str
    records: list[Written] = field(default_factory=list)
    outcome: str = UNKNOWN


@dataclass
class Reader:
    """The records that one reader got, in its order, by partition."""

    name: str
    is_committed: bool
    """Reads with read_committed."""
    got: dict[Place, list[tuple[int, bytes]]] = field(default_factory=dict)

    def take(self, place: Place, offset: int, value: bytes) -> None:
        self.got.setdefault(place, []).append((offset, value))

    def position(self, place: Place) -> int:
        """Return the offset after the last record of a partition; 0 before the first."""
        got = self.got.get(place)
        return got[-1][0] + 1 if got else 0


class Group:
    """The commits and the records of the members of one group."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.committed: dict[Place, int] = {}
        """The highest successful commit of each partition."""
        self.got: dict[Place, set[int]] = {}
        self.broken: list[str] = []
        self._lock = threading.Lock()

    def floors(self, places: list[Place]) -> dict[Place, int]:
        """Return the positions that a member which owns `places` from now on has to begin at."""
        with self._lock:
            return {place: self.committed.get(place, 0) for place in places}

    def took(self, member: str, place: Place, offsets: list[int], floor: int | None) -> None:
        """Note records of a member; `floor` with the first of an assignment."""
        with self._lock:
            self.got.setdefault(place, set()).update(offsets)
            if floor is not None and offsets[0] < floor:
                self.broken.append(
                    f"{self.name}: {member} got {place} from {offsets[0]}, {floor} was committed"
                )

    def stored(self, positions: dict[Place, int]) -> None:
        """Note a commit that has succeeded."""
        with self._lock:
            for place, position in positions.items():
                self.committed[place] = max(position, self.committed.get(place, 0))


@dataclass
class History:
    """All writers, readers and groups of one run."""

    written: list[Written] = field(default_factory=list)
    transactions: list[Transaction] = field(default_factory=list)
    readers: list[Reader] = field(default_factory=list)
    groups: list[Group] = field(default_factory=list)
    restarts: list[str] = field(default_factory=list)
    """A client that had to begin anew, and the error."""
    broken: list[str] = field(default_factory=list)
    """What clients found broken by themselves."""
    made_s: dict[str, float] = field(default_factory=dict)
    """When the present topic of that name was made."""
    trimmed: dict[Place, int] = field(default_factory=dict)
    """The highest offset of all DeleteRecords requests."""

    def write(self, writer: str, value: bytes, place: Place, key: bytes | None = None) -> Written:
        """Note a record before it is sent."""
        written = Written(writer, value, place, time.monotonic(), key)
        self.written.append(written)
        return written


@dataclass
class Final:
    """The content of the topics when all is quiet, by an independent reader."""

    start: dict[Place, int]
    committed: dict[Place, dict[int, bytes]]
    """Value by offset that read_committed shows."""
    everything: dict[Place, dict[int, bytes]]
    """Value by offset that read_uncommitted shows."""
    keys: dict[Place, dict[int, bytes | None]]
    numbers: dict[Place, dict[int, tuple[int, int, int]]] = field(default_factory=dict)
    """Producer id, epoch and sequence by offset."""
