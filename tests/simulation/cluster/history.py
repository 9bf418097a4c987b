"""What every client wrote down, and whether it can have happened under the promises of replicas.

acknowledged by all    there in the end, at its offset; unless an unclean election took it
acknowledged by one    there, unless a later leader did not have it when its term began
idempotent             once, in the order of its sending; at most once where nobody knows
refused                not there
what a reader got      below the high watermark that came with it; what it has not dropped, as the
                       epochs told it to, is the log, record for record
nothing was lost       no reader had to drop anything
at rest                all replicas hold the same bytes; a term's beginning is the log's
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
    """One record as its producer saw it; its value is unlike any other."""

    value: str
    writer: str
    place: Place
    acks: int
    is_idempotent: bool
    outcome: str = UNKNOWN
    offset: int = -1
    epoch: int = -1
    """Of the leader that acknowledged it, or of a later one."""


@dataclass
class Read:
    """One record as a reader got it."""

    reader: str
    place: Place
    row: Row
    high_watermark: int


@dataclass
class View:
    """What a reader believes a partition to hold."""

    reader: str
    place: Place
    rows: list[Row] = field(default_factory=list)
    position: int = 0
    epoch: int = -1
    """The last leader epoch under which that was checked."""
    cuts: int = 0
    """How often it had to drop something."""


@dataclass
class History:
    """Everything that was written down, and what is there in the end."""

    watch: Watch
    written: list[Written] = field(default_factory=list)
    reads: list[Read] = field(default_factory=list)
    views: list[View] = field(default_factory=list)
    lost_touch: list[tuple[str, int]] = field(default_factory=list)
    """Idempotent writers that were told of a gap in their sequence, and when."""
    replicas: dict[Place, dict[int, list[Batch]]] = field(default_factory=dict)
    """What each replica holds in the end, up to its high watermark."""


def broken(history: History) -> list[str]:
    """The promises that were not kept."""
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
                yield f"{name} is at {found[0]}, before what was written before it"
            last[each.writer] = found[0]
    for value, found in offsets.items():
        yield f"{place}: {value!r} at {found} was never written"


def _may_be_lost(watched: Watched, each: Written, *, is_clean: bool) -> bool:
    """Did a later leader begin without it? `is_clean`: any, else one of an unclean election."""
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
            yield f"{view.place}: {view.reader} was told {view.cuts} times that records are gone"
        (log, *_) = history.replicas[view.place].values()
        wanted = [row for row in rows(log) if row.offset < view.position]
        if view.rows != wanted:
            yield f"{view.place}: {view.reader} read {view.rows}, and there is {wanted}"
    if history.lost_touch and not history.watch.may_lose:
        yield f"told of gaps: {history.lost_touch}"
