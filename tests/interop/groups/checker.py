"""Checks from the history alone whether a group kept its promises.

    every produced record is consumed, and no other
    a tenure starts at a committed offset, and continues without a gap or a repetition
    a commit never passes the consumed records, and is never forgotten
    a partition has one owner; a member that lost it unknowingly can no longer commit
    when the group is stable, every partition has an owner

At-least-once allows a record to be read again, but only by a new tenure, from the last commit on. A
tenure is the time between an assignment of a partition and its revocation, loss, or the end of its
member.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.interop.groups.history import Event, History, Partition

ENDLESS = float("inf")
UNKNOWINGLY = ("lost", "fenced", "killed")
"""Ends of a tenure for which the group did not wait."""


@dataclass(slots=True)
class Tenure:
    """A member's time as the owner of a partition."""

    member: str
    partition: Partition
    began: float
    generation: int | None
    ended: float = ENDLESS
    ending: str = ""
    records: list[Event] = field(default_factory=list)

    def __str__(self) -> str:
        generation = "" if self.generation is None else f" in generation {self.generation}"
        topic, number = self.partition
        return f"{self.member} owns {topic}-{number}{generation} from {self.began:.0f}"


@dataclass(slots=True)
class Commit:
    """One offset of one partition that a member tried to commit."""

    member: str
    partition: Partition
    offset: int
    attempted: float
    tenure: Tenure | None
    answered: float = ENDLESS
    accepted: bool = False
    refused: bool = False

    def __str__(self) -> str:
        topic, number = self.partition
        return f"{self.member} commits {self.offset} of {topic}-{number} at {self.attempted:.0f}"


def check(history: History) -> list[str]:
    """Return every broken promise in words; an empty list if all were kept."""
    tenures, commits, broken = _collect(history)
    broken += _consumed_everything(history)
    every = [tenure for of_it in tenures.values() for tenure in of_it]
    for partition in sorted({*history.produced, *tenures, *commits}):
        of_it = tenures.get(partition, [])
        tried = commits.get(partition, [])
        broken += _one_owner(of_it, every, history.instances)
        broken += _no_commit_without_ownership(of_it, tried)
        broken += _starts_where_it_was_committed(of_it, tried)
        broken += _without_gap_or_repetition(of_it)
        broken += _commits_only_consumed_records(of_it, tried)
        broken += _committed_is_kept(history, partition, tried)
    return broken


def owners(history: History, at: float) -> dict[Partition, list[str]]:
    """Partition -> the members that own it at a time."""
    tenures, _, _ = _collect(history)
    return {
        partition: [each.member for each in of_it if each.began <= at < each.ended]
        for partition, of_it in tenures.items()
    }


def losses(history: History) -> int:
    """Return how many tenures the group ended without waiting for a living member."""
    tenures, _, _ = _collect(history)
    return sum(each.ending == "lost" for of_it in tenures.values() for each in of_it)


# From events to tenures and commits


def _collect(
    history: History,
) -> tuple[dict[Partition, list[Tenure]], dict[Partition, list[Commit]], list[str]]:
    """Tenures and commits by partition, in the order in which they began."""
    tenures: dict[Partition, list[Tenure]] = defaultdict(list)
    commits: dict[Partition, list[Commit]] = defaultdict(list)
    held: dict[str, dict[Partition, Tenure]] = defaultdict(dict)
    tried: dict[tuple[str, int], list[Commit]] = defaultdict(list)
    broken: list[str] = []
    crashed = -ENDLESS
    for event in history.events:
        mine = held[event.member]
        if event.kind == "assigned":
            for partition in event.partitions:
                if partition in mine:
                    broken.append(f"{mine[partition]}, and again from {event.at:.0f}")
                tenure = Tenure(event.member, partition, event.at, event.generation)
                mine[partition] = tenure
                tenures[partition].append(tenure)
        elif event.kind in ("revoked", "lost"):
            for partition in event.partitions:
                _end(mine.pop(partition, None), event)
        elif event.kind in ("killed", "fenced", "closed"):
            for tenure in mine.values():
                _end(tenure, event)
            mine.clear()
        elif event.kind == "records":
            owned = mine.get(event.partitions[0])
            if owned is None:
                broken.append(f"{event.member} sees {_span(event)} and does not own it")
            else:
                owned.records.append(event)
        elif event.kind == "committing":
            for partition, offset in event.offsets.items():
                commit = Commit(event.member, partition, offset, event.at, mine.get(partition))
                commits[partition].append(commit)
                tried[event.member, event.id].append(commit)
        elif event.kind in ("committed", "refused"):
            for commit in tried[event.member, event.id]:
                commit.answered = event.at
                commit.accepted = event.kind == "committed"
                # A client may retry a commit that a dying broker has already stored.
                commit.refused = not commit.accepted and commit.attempted > crashed
        elif event.kind == "broker killed":
            crashed = event.at
    return tenures, commits, broken


def _end(tenure: Tenure | None, event: Event) -> None:
    if tenure is not None:
        tenure.ended = event.at
        tenure.ending = event.kind


# The promises


def _consumed_everything(history: History) -> Iterator[str]:
    seen: dict[Partition, set[int]] = defaultdict(set)
    for event in history.events:
        if event.kind == "records":
            seen[event.partitions[0]].update(range(event.first, event.last + 1))
    for (topic, number), count in sorted(history.produced.items()):
        missing = set(range(count)) - seen[topic, number]
        if missing:
            yield f"nobody saw {_offsets(missing)} of {topic}-{number}"
    for (topic, number), offsets in sorted(seen.items()):
        invented = offsets - set(range(history.produced.get((topic, number), 0)))
        if invented:
            yield f"nobody produced {_offsets(invented)} of {topic}-{number}"


def _one_owner(
    tenures: list[Tenure], every: list[Tenure], instances: dict[str, str]
) -> Iterator[str]:
    for position, older in enumerate(tenures):
        has_moved_on = False
        for newer in tenures[position + 1 :]:
            has_moved_on |= newer.generation != older.generation
            has_moved_on |= _counted_anew(every, older, newer)
            if newer.member == older.member:
                continue
            names = {instances.get(older.member), instances.get(newer.member)}
            is_same_name = len(names) == 1 and None not in names
            if newer.generation is not None and not has_moved_on and not is_same_name:
                yield f"two owners in one generation: {older}; {newer}"
                continue
            wrongful = older if _is_later(newer, older) else newer
            if newer.began < older.ended and wrongful.ending not in UNKNOWINGLY:
                until = "the end" if wrongful.ended == ENDLESS else f"{wrongful.ended:.0f}"
                rightful = newer if wrongful is older else older
                yield f"two owners: {wrongful} to {until}; {rightful}"


def _counted_anew(every: list[Tenure], older: Tenure, newer: Tenure) -> bool:
    """Return whether the partition had no owner for a while between two tenures.

    An empty group may be replaced by one of the other protocol, whose generations start low. A lost
    tenure may have ended long before its member noticed.
    """
    known = [each for each in every if each.ending not in ("lost", "fenced")]
    ends = [each.ended for each in known if older.ended <= each.ended < newer.began]
    return any(not any(each.began <= end < each.ended for each in known) for end in ends)


def _is_later(tenure: Tenure, other: Tenure) -> bool:
    """Return whether the group assigned the partition to `tenure` after `other`.

    The generation decides, if it is known, because an answer may reach a frozen member long after
    the group has moved on. It contradicts the order of time only within one group. An empty group
    may be replaced by one whose generations start low; then the lost tenure is the older one.
    """
    by_time = tenure.began > other.began
    if tenure.generation is None or other.generation is None:
        return by_time
    by_generation = (tenure.generation, tenure.began) > (other.generation, other.began)
    was_lost = other.ending == "lost"
    if by_generation != by_time and was_lost != (tenure.ending == "lost"):
        return was_lost
    return by_generation


def _no_commit_without_ownership(tenures: list[Tenure], commits: list[Commit]) -> Iterator[str]:
    """A member with an outdated tenure is fenced once another member's later tenure has begun."""
    for commit in commits:
        mine = commit.tenure
        if mine is None or not commit.accepted:
            continue
        for other in tenures:
            has_begun = other.began < commit.attempted and mine.began < other.ended
            if other.member != mine.member and has_begun and _is_later(other, mine):
                yield f"accepted though another had it: {commit}; {other}"
                break


def _starts_where_it_was_committed(tenures: list[Tenure], commits: list[Commit]) -> Iterator[str]:
    for tenure in tenures:
        if not tenure.records:
            continue
        first = tenure.records[0]
        allowed = _committed_between(commits, tenure.began, first.at)
        if first.first not in allowed:
            wanted = " or ".join(map(str, sorted(allowed)))
            yield f"{tenure} starts at {first.first}, committed was {wanted}"


def _committed_between(commits: list[Commit], start: float, end: float) -> set[int]:
    """Return the possible answers to a fetch of the committed offset between the two times.

    A commit takes effect between its attempt and its answer; without an answer (its member was
    killed) at any time after the attempt, or never. A refused commit never takes effect.
    """
    acknowledged = [each.offset for each in commits if each.accepted and each.answered <= start]
    base = max(acknowledged, default=0)
    under_way = {
        each.offset
        for each in commits
        if each.attempted <= end and not each.refused and each.offset > base
    }
    return {base} | under_way


def _without_gap_or_repetition(tenures: list[Tenure]) -> Iterator[str]:
    for tenure in tenures:
        for before, after in zip(tenure.records, tenure.records[1:], strict=False):
            if after.first != before.last + 1:
                yield f"{tenure}: {after.first} follows {before.last}"


def _commits_only_consumed_records(tenures: list[Tenure], commits: list[Commit]) -> Iterator[str]:
    spans = sorted(
        (record.at, record.first, record.last) for tenure in tenures for record in tenure.records
    )
    for commit in commits:
        consumed: set[int] = set()
        for at, first, last in spans:
            if at <= commit.attempted:
                consumed.update(range(first, last + 1))
        skipped = set(range(commit.offset)) - consumed
        if skipped:
            yield f"{commit}, but {_offsets(skipped)} nobody had seen"


def _committed_is_kept(
    history: History, partition: Partition, commits: list[Commit]
) -> Iterator[str]:
    if partition not in history.committed:
        return
    found = max(history.committed[partition], 0)
    allowed = _committed_between(commits, ENDLESS, ENDLESS)
    if found not in allowed:
        topic, number = partition
        wanted = " or ".join(map(str, sorted(allowed)))
        yield f"committed of {topic}-{number} is {found}, was {wanted}"


def _span(event: Event) -> str:
    topic, number = event.partitions[0]
    return f"{topic}-{number}:{event.first}..{event.last} at {event.at:.0f}"


def _offsets(offsets: set[int]) -> str:
    few = sorted(offsets)[:5]
    return ", ".join(map(str, few)) + (f" and {len(offsets) - 5} more" if len(offsets) > 5 else "")
