"""The records of all clients, and a check that transactions have kept their promises.

committed transaction                all its records exist once, for every reader, in the end
aborted, or without a commit request  no read_committed reader ever gets a record of it
transaction with unknown end          all of its records exist, or none
record of a read_committed reader     exists in the end, at the same offset
copy                                  exists exactly once for each source record
in the end                            no transaction is undecided
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

Place = tuple[str, int]
"""A topic and a partition."""

OPEN = "open"
COMMITTED = "committed"
ABORTED = "aborted"
REFUSED = "refused"
"""The coordinator refused its end, and no answer was lost."""
UNKNOWN = "unknown"


@dataclass
class Transaction:
    """One transaction from its producer's view."""

    name: str
    outcome: str = OPEN
    is_commit_sent: bool = False
    """Whether a request to commit it may have reached the coordinator."""
    values: list[str] = field(default_factory=list)
    """The values that it may have written; no two are equal."""

    @property
    def must_be_seen(self) -> bool | None:
        """Return whether readers must see its records; None if both are right."""
        if self.outcome == COMMITTED:
            return True
        if self.outcome in (ABORTED, REFUSED) or not self.is_commit_sent:
            return False
        return None


@dataclass(frozen=True)
class Read:
    """One record that a reader got."""

    reader: str
    place: Place
    offset: int
    value: str
    stable_offset: int
    """The last stable offset of the answer."""


@dataclass
class History:
    """Everything that the clients recorded, and the final content of the partitions."""

    transactions: list[Transaction] = field(default_factory=list)
    reads: list[Read] = field(default_factory=list)
    """Reads with read_committed."""
    in_the_end: dict[Place, list[tuple[int, str]]] = field(default_factory=dict)
    """(offset, value) of everything that a read_committed reader gets from the beginning."""
    undecided: list[Place] = field(default_factory=list)
    """Partitions whose last stable offset is below the end."""


def copy_of(value: str) -> str:
    """Return the value that a copier writes for a record."""
    return f"copy of {value}"


def broken(history: History, *, source: str, target: str) -> list[str]:
    """Return the broken promises. `target` is the topic of the copies of `source`."""
    return [
        *_transactions(history, source),
        *_reads(history),
        *_copies(history.in_the_end, source, target),
        *(f"{place} is undecided in the end" for place in history.undecided),
    ]


def _transactions(history: History, source: str) -> Iterator[str]:
    seen = Counter(_values(history.in_the_end, source))
    for transaction in history.transactions:
        counts = [seen.pop(value, 0) for value in transaction.values]
        name = f"{transaction.name} ({transaction.outcome})"
        if any(count > 1 for count in counts):
            yield f"{name} is there twice: {counts}"
        elif transaction.must_be_seen is True and not all(counts):
            yield f"{name} is lost: {counts}"
        elif transaction.must_be_seen is False and any(counts):
            yield f"{name} is there: {counts}"
        elif any(counts) and not all(counts):
            yield f"{name} is there in part: {counts}"
    for value in seen:
        yield f"{value!r} was never written"


def _values(in_the_end: Mapping[Place, Sequence[tuple[int, str]]], topic: str) -> Iterator[str]:
    for (name, _), rows in in_the_end.items():
        if name == topic:
            yield from (value for _, value in rows)


def _reads(history: History) -> Iterator[str]:
    rows: Mapping[Place, Mapping[int, str]] = {
        place: dict(found) for place, found in history.in_the_end.items()
    }
    for read in history.reads:
        if rows.get(read.place, {}).get(read.offset) != read.value:
            yield f"{read.reader} read {read.value!r}, which is not there in the end"
        if read.offset >= read.stable_offset:
            yield f"{read.reader} read {read.value!r} above the last stable offset"


def _copies(
    in_the_end: Mapping[Place, Sequence[tuple[int, str]]], source: str, target: str
) -> Iterator[str]:
    wanted = Counter(copy_of(value) for value in _values(in_the_end, source))
    found = Counter(_values(in_the_end, target))
    for value, count in (found - wanted).items():
        yield f"{value!r} is there {count} times too often"
    for value in wanted - found:
        yield f"{value!r} is missing"
