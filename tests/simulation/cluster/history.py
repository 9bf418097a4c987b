"""The records of all clients, and a check that replication has kept its promises.

acknowledged by all    exists in the end, at its offset, unless an unclean election lost it
acknowledged by one    exists, unless a later leader lacked it when its term began
idempotent             exists once, in the order of the sends; at most once if the outcome is
unknown
refused                does not exist
returned to a reader   lies below the high watermark of its answer; after the truncations that
leader
                       epochs demand, the reader's records are the log, record for record
nothing was lost       no reader had to drop anything
at rest                all replicas hold the same bytes; a term began with these records in the log
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tests.simulation.cluster.client import Place
from tests.simulation.cluster.logs import Batch, Row, rows
from tests.simulation.cluster.watch import ALL, Watch, Watched, common

ONE = 1
UNKNOWN, ACKED, REFUSED = "unknown", "acknowledged", "refused"


@dataclass
class Written:
    """One record from its producer's view; no two records have the same value."""

    value: str
    writer: str
    place: Place
    acks: int
    is_idempotent: bool
    outcome: str = UNKNOWN
    offset: int = -1
    epoch: int = -1
    """The epoch of the leader that acknowledged it, or of a later leader."""


@dataclass
class Read:
    """One record that a reader got."""

    reader: str
    place: Place
    row: Row
    high_watermark: int


@dataclass
class View:
    """The content of a partition from a reader's view."""

    reader: str
    place: Place
    rows: list[Row] = field(default_factory=list)
    position: int = 0
    epoch: int = -1
    """The last leader epoch that the reader has validated its records with."""
    cuts: int = 0
    """How often the reader had to drop records."""


@dataclass
class History:
    """Everything that the clients recorded, and the final content of the replicas."""

    watch: Watch
    written: list[Written] = field(default_factory=list)
    reads: list[Read] = field(default_factory=list)
    views: list[View] = field(default_factory=list)
    lost_touch: list[tuple[str, int]] = field(default_factory=list)
    """Idempotent writers that got an error about a gap in their sequence, and when."""
    replicas: dict[Place, dict[int, list[Batch]]] = field(default_factory=dict)
    """The final batches of each replica, up to its high watermark."""


def broken(history: History) -> list[str]:
    """Return the broken promises."""
    found = list(history.watch.broken)
    for place, replicas in history.replicas.items():
        found += _replicas(place, replicas, history.watch.partitions[place])
        log = next(iter(replicas.values()))
        found += _place(history, place, log)
    return [*found, *_readers(history)]


def _replicas(
    place: Place, replicas: Mapping[int, Sequence[Batch]], watched: Watched
) -> Iterator[str]:
    (first, log), *others = replicas.items()
    for node_id, other in others:
        if other != log:
            kept = common(log, other)
            yield f"{place}: {first} has {log[kept:]} where {node_id} has {other[kept:]}"
    for before, after in zip(log, log[1:], strict=False):
        if before.next_offset != after.base_offset or before.epoch > after.epoch:
            yield f"{place}: {after} follows {before}"
    begun = [each.began_with for each in watched.elections.values() if each.began_with is not None]
    for what, known in (("committed", watched.committed), ("a term's beginning", begun[-1])):
        if common(known, log) < len(known):
            yield f"{place}: {known[common(known, log) :]} is {what}, and not there in the end"


def _place(history: History, place: Place, log: Sequence[Batch]) -> Iterator[str]:
    watched = history.watch.partitions[place]
    in_the_end = {row.offset: row.value for row in rows(log)}
    offsets = defaultdict(list)
    for offset, value in in_the_end.items():
        offsets[value].append(offset)
    last: dict[str, int] = {}
    for each in history.written:
        if each.place != place:
            continue
        found = offsets.pop(each.value, [])
        name = f"{place}: {each}"
        if each.outcome == REFUSED and found:
            yield f"{name} is there at {found}"
        if each.is_idempotent and len(found) > 1:
            yield f"{name} is there at {found}"
        if each.outcome == ACKED and in_the_end.get(each.offset) != each.value:
            may_lose = _may_be_lost(watched, each, is_clean=each.acks != ALL)
            if not (may_lose and (each.acks != ALL or history.watch.may_lose)):
                yield f"{name} is lost"
        if each.is_idempotent and found:
            if found[0] <= last.get(each.writer, -1):
                yield f"{name} is at {found[0]}, before an earlier record of its writer"
            last[each.writer] = found[0]
    for value, found in offsets.items():
        yield f"{place}: {value!r} at {found} was never written"


def _may_be_lost(watched: Watched, each: Written, *, is_clean: bool) -> bool:
    """Return whether a later leader began without the record; for `is_clean=False` only leaders of
    unclean elections count.
    """
    return any(
        epoch > each.epoch
        and (is_clean or election.is_unclean)
        and election.began_with is not None
        and (each.offset, each.value)
        not in [(row.offset, row.value) for row in rows(election.began_with)]
        for epoch, election in watched.elections.items()
    )


def _readers(history: History) -> Iterator[str]:
    for read in history.reads:
        if read.row.offset >= read.high_watermark:
            yield f"{read} is above the high watermark"
    for view in history.views:
        if view.cuts and not history.watch.may_lose:
            yield f"{view.place}: {view.reader} had to drop records {view.cuts} times"
        (log, *_) = history.replicas[view.place].values()
        wanted = [row for row in rows(log) if row.offset < view.position]
        if view.rows != wanted:
            yield f"{view.place}: {view.reader} read {view.rows}, and there is {wanted}"
    if history.lost_touch and not history.watch.may_lose:
        yield f"writers with gaps: {history.lost_touch}"
