"""Checks that a reopened directory holds the promises of a history."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from embedlog.errors import EmbedlogError
from tests.crash.simulated import GROUP, Shown, log_of, shown

if TYPE_CHECKING:
    from embedlog.cluster.cluster import Cluster
    from tests.crash.history import History, Promise, Sent
    from tests.crash.oracle import OracleRecord


class Broken(Exception):
    """A broken promise."""


class Ending(NamedTuple):
    """The kind of end of the process that made the promises."""

    keeps: frozenset[str]
    """Levels whose acknowledged records survive it."""
    is_exact: bool = True
    """Whether no call failed before: the log is then exactly a prefix of the sent records.
    Otherwise any record of a failed call may be missing.
    """
    is_live: bool = False
    """The process has not ended: a log may have failed, and its last records be invisible."""
    tells_offsets: bool = True
    """Whether committed offsets can be requested."""


KILLED = Ending(frozenset(("os", "fsync")))
LOST_POWER = Ending(frozenset(("fsync",)))


def check(history: History, cluster: Cluster, ending: Ending) -> dict[str, Shown]:
    """Raise `Broken` unless everything holds; return the visible content of every topic."""
    image = cluster.broker().core.controller.image
    found: dict[str, Shown] = {}
    for name, promise in history.topics.items():
        topic = image.topics_by_name.get(name)
        if topic is None:
            _expect(promise.existence != "there", f"topic {name} is gone")
            continue
        _expect(promise.existence != "gone", f"topic {name} is back")
        configs = image.topic_configs.get(name, {})
        retention_ms = configs.get("retention.ms")
        _expect(
            retention_ms in promise.retention_ms, f"{name} has retention.ms {retention_ms}", configs
        )
        count = len(topic.partitions)
        _expect(count >= promise.partition_count, f"{name} has {count} partitions")
        found[name] = _check_log(cluster, name, promise, ending)
    unknown = {name for name, topic in image.topics_by_name.items() if not topic.is_internal}
    _expect(unknown <= history.topics.keys(), f"topics nobody made: {unknown}")
    _check_commit(history, cluster, ending)
    return found


def _expect(holds: bool, what: str, *more: object) -> None:
    if not holds:
        raise Broken(" ".join([what, *map(str, more)]))


def _check_log(cluster: Cluster, name: str, promise: Promise, ending: Ending) -> Shown:
    log = log_of(cluster, name)
    _expect(ending.is_live or log.failure is None, f"{name} refuses writes: {log.failure}")
    try:
        seen = shown(log)
    except (AssertionError, EmbedlogError) as error:
        raise Broken(f"{name} cannot be read: {error!r}") from error
    _expect(
        ending.is_live or seen.end == log.log_end_offset,
        f"{name}: high watermark {seen.end} of {log.log_end_offset} after the open",
    )
    keeps = promise.level in ending.keeps
    _expect(
        seen.start <= promise.start_asked or log.config.compact,
        f"{name} begins at {seen.start}, no deletion reached beyond {promise.start_asked}",
    )
    if keeps:
        _expect(
            seen.start >= promise.start_promised,
            f"{name} begins at {seen.start}, records below {promise.start_promised} were deleted",
        )
        _expect(seen.end >= promise.end, f"{name} ends at {seen.end}, acked up to {promise.end}")
    elif seen.end < promise.end:
        image = cluster.broker().core.controller.image.partition(name, 0)
        assert image is not None
        _expect(
            image.leader_epoch > promise.epoch,
            f"{name} has lost records, and its epoch is {image.leader_epoch} as before",
        )
    if log.config.compact:
        _check_compacted(name, promise, seen, ending, keeps=keeps)
    elif ending.is_exact:
        _check_prefix(name, promise, seen)
    else:
        _check_some(name, promise, seen, keeps=keeps)
    _check_committed(name, promise, seen)
    return seen


def _check_prefix(name: str, promise: Promise, seen: Shown) -> None:
    """The log has exactly the sent records between start and end, in their places."""
    expected = promise.attempts[seen.start : seen.end]
    _expect(
        seen.end <= len(promise.attempts),
        f"{name} ends at {seen.end}, {len(promise.attempts)} were sent",
    )
    offsets = [record.offset for record in seen.records]
    _expect(offsets == list(range(seen.start, seen.end)), f"{name} has offsets {offsets}")
    for record, sent in zip(seen.records, expected, strict=True):
        _expect(_is(record, sent), f"{name} has {record}, sent was {sent}")


def _check_some(name: str, promise: Promise, seen: Shown, *, keeps: bool) -> None:
    """The log has sent records only, in order, once; acknowledged ones at their offsets."""
    attempts = iter(promise.attempts)
    by_offset = {}
    for record in seen.records:
        _expect(
            any(_is(record, sent) for sent in attempts), f"{name} has {record} where none was sent"
        )
        by_offset[record.offset] = record
    for offset, sent in promise.acknowledged.items():
        if offset >= seen.start and (keeps or offset < seen.end):
            there = by_offset.get(offset)
            _expect(
                there is not None and _is(there, sent),
                f"{name} has {there} at {offset}, acknowledged was {sent}",
            )


def _check_compacted(
    name: str, promise: Promise, seen: Shown, ending: Ending, *, keeps: bool
) -> None:
    """For each key the last record is there; all records are as sent, in their places.

    This holds even without promises of the level: only the end of the log may be lost.
    """
    last: dict[bytes | None, int] = {}
    if ending.is_exact:
        for offset, sent in enumerate(promise.attempts[: seen.end]):
            last[sent.key] = offset
        for record in seen.records:
            sent = promise.attempts[record.offset]
            _expect(_is(record, sent), f"{name} has {record}, sent was {sent}")
    else:
        _check_some_compacted(name, promise, seen)
        for offset, sent in sorted(promise.acknowledged.items()):
            if keeps:
                last[sent.key] = offset
    offsets = {record.offset for record in seen.records}
    later = {record.key: record.offset for record in seen.records}
    for key, offset in last.items():
        _expect(
            offset in offsets or (not ending.is_exact and later.get(key, -1) > offset),
            f"{name} has lost offset {offset}, the last of key {key!r}",
        )


def _check_some_compacted(name: str, promise: Promise, seen: Shown) -> None:
    attempts = iter(promise.attempts)
    for record in seen.records:
        _expect(
            any(_is(record, sent) for sent in attempts), f"{name} has {record} where none was sent"
        )


def _last_stable_offset(seen: Shown, aborted: set[bytes | None]) -> float:
    """Return the offset where an unfinished transaction holds readers back."""
    stable = math.inf
    for record in seen.records:
        if record.is_control:
            stable = math.inf
        elif record.value in aborted:
            stable = min(stable, record.offset)
    return stable


def _check_committed(name: str, promise: Promise, seen: Shown) -> None:
    """A reader with read_committed gets all records except aborted ones."""
    aborted = {sent.value for sent in promise.attempts if sent.kind == "aborted"}
    shown_values = {record.value for record in seen.committed}
    _expect(not aborted & shown_values - {None}, f"{name} shows aborted {aborted & shown_values}")
    stable = _last_stable_offset(seen, aborted)
    expected = [
        r for r in seen.records if not r.is_control and r.value not in aborted and r.offset < stable
    ]
    _expect(
        list(seen.committed) == expected or not aborted,
        f"{name} hides records from read_committed",
    )


def _is(record: OracleRecord, sent: Sent) -> bool:
    if record.is_control or sent.kind == "control":
        return record.is_control == (sent.kind == "control")
    return (record.key, record.value) == (sent.key, sent.value)


def _check_commit(history: History, cluster: Cluster, ending: Ending) -> None:
    if not history.commits or not ending.tells_offsets:
        return
    consumer = cluster.consumer(group_id=GROUP, enable_auto_commit=False)
    found = next(iter(consumer.committed([("a", 0)]).values()), None)
    offset = -1 if found is None else found.offset
    allowed = set(history.commits)
    if history.level in ending.keeps:
        allowed = {number for number in allowed if number >= history.commit_promised}
        if history.commit_promised < 0:
            allowed.add(-1)
    else:
        allowed.add(-1)
    _expect(offset in allowed, f"committed is {offset}, allowed are {sorted(allowed)}")
