"""Everything that a share group's members and their leaders said, in one order.

Each event has a place in the order of all events. What a leader did with a request lies between the
request's arrival and its answer, so that each event has a begin and an end.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.golden.sharing_requests import ACCEPT, GAP, REJECT
from tests.simulation.cluster.client import Place

FINAL_TYPES = (ACCEPT, GAP, REJECT)
REFUSALS = frozenset({3, 42, 100, 121, 122, 123})
"""Error codes after which an acknowledgement has certainly changed nothing."""
NEVER = 1 << 60


@dataclass
class Span:
    """The time of an event: order numbers, and milliseconds."""

    begun: int
    begun_ms: int
    done: int = NEVER
    done_ms: int = NEVER


@dataclass
class Delivery:
    """One range that an answer gave to a member."""

    place: Place
    member: str
    first: int
    last: int
    count: int
    span: Span
    term: int | None
    """The share partition in memory that gave it; None if it is not known."""


@dataclass
class Said:
    """An acknowledgement: types by offset."""

    place: Place
    member: str
    types: dict[int, int]
    span: Span
    term: int | None
    code: int | None = None
    """The answer; None as long as there is none."""

    @property
    def is_done(self) -> bool:
        """Whether it was answered with success."""
        return self.code == 0

    @property
    def may_be_done(self) -> bool:
        """Whether it may have been stored."""
        return self.code not in REFUSALS


@dataclass
class Ending:
    """The end of a session, which releases the member's records."""

    member: str
    begun: int


@dataclass
class Described:
    """An answer about the stored start."""

    place: Place
    start: int
    done: int


@dataclass
class Letter:
    """One dead letter."""

    place: Place
    offset: int
    message: str


@dataclass
class Content:
    """The content of a partition in the end."""

    log_start: int = 0
    end: int = 0
    records: set[int] = field(default_factory=set)
    """Offsets of data."""
    keys: dict[int, bytes] = field(default_factory=dict)
    """Offsets of data with a key."""
    aborted: set[int] = field(default_factory=set)
    """Offsets of aborted transactions' data."""


@dataclass
class History:
    """All events, and the final state."""

    delivery_limit: int
    lock_ms: int
    is_committed_only: bool
    has_letters: bool
    is_ordered: bool
    """Whether the group wants the order of keys."""
    deliveries: list[Delivery] = field(default_factory=list)
    said: list[Said] = field(default_factory=list)
    endings: list[Ending] = field(default_factory=list)
    described: list[Described] = field(default_factory=list)
    unanswered: int = 0
    """Number of fetches without an answer: each may have counted a delivery."""
    letters: list[Letter] = field(default_factory=list)
    content: dict[Place, Content] = field(default_factory=dict)
    cut: dict[Place, int] = field(default_factory=dict)
    """The highest offset below which records were deleted."""
    lags: dict[Place, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    """Promises that were broken on the way."""

    def offsets(self) -> Iterator[tuple[Place, int]]:
        """Return every offset that was ever delivered or still exists."""
        found = {(each.place, n) for each in self.deliveries for n in _range(each)}
        for place, content in self.content.items():
            found |= {(place, n) for n in content.records}
        yield from sorted(found)


def _range(each: Delivery) -> range:
    return range(each.first, each.last + 1)
