"""Expired offsets and empty groups are deleted, and no others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from embedlog.broker import topics
from embedlog.broker.context import RequestContext
from embedlog.cluster.cluster import Cluster
from embedlog.coordinator.group.group import Group
from embedlog.coordinator.group.offsets.expiry import expired
from embedlog.coordinator.group.offsets.store import OffsetStore
from embedlog.runtime.pending import Pending
from embedlog.testing import SimRuntime, sim_runtime
from tests.support.offsets import commit, fetch, fetched
from wire.schema import declaration
from wire.schemas.group_metadata import OffsetCommitKey, OffsetCommitValue
from wire.schemas.list_groups import ListGroupsRequest

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
RETENTION_MS = 7 * DAY_MS


class Rig:
    """A simulated cluster with one topic, "t"."""

    def __init__(self, cluster: Cluster, runtime: SimRuntime) -> None:
        self.cluster = cluster
        self.runtime = runtime
        assert topics.ensure_internal_topic(cluster.broker().core, "__consumer_offsets")
        if "t" not in cluster.topics:
            cluster.create_topic("t", 2)

    def ask(self, request: Any, version: int | None = None) -> Any:
        declared = declaration(type(request))
        assert declared.api is not None
        newest = declared.last_version if version is None else version
        answer = self.cluster.broker().core.handle(RequestContext(declared.api, newest), request)
        if isinstance(answer, Pending):
            assert self.runtime.scheduler.wait(answer, 60_000)
            return answer.result()
        return answer

    def fetch(self, group_id: str = "g") -> dict[Any, int]:
        return fetched(self.ask(fetch(group_id), 9))

    def groups(self) -> list[str]:
        return [group.group_id for group in self.ask(ListGroupsRequest()).groups]

    def pass_time(self, delay_ms: int) -> None:
        self.runtime.scheduler.run_for(delay_ms)


@pytest.fixture
def make_rig() -> Iterator[Callable[..., Rig]]:
    made: list[Cluster] = []

    def make(path: str | None = None, files: Any = None, **config: Any) -> Rig:
        runtime = sim_runtime(seed=3, files=files)
        made.append(
            Cluster(path, {k.replace("_", "."): v for k, v in config.items()}, runtime=runtime)
        )
        return Rig(made[-1], runtime)

    yield make
    for cluster in made:
        cluster.close()


@pytest.mark.slow
def test_offsets_of_a_simple_group_expire_by_their_commit_and_the_group_with_them(
    make_rig: Callable[..., Rig],
) -> None:
    rig = make_rig()
    rig.ask(commit("g", {("t", 0): 5}), 9)
    rig.pass_time(DAY_MS)
    rig.ask(commit("g", {("t", 1): 6}), 9)
    rig.pass_time(RETENTION_MS - DAY_MS - HOUR_MS)
    assert rig.fetch() == {("t", 0): 5, ("t", 1): 6}
    rig.pass_time(2 * HOUR_MS)
    assert rig.fetch() == {("t", 1): 6}
    assert rig.groups() == ["g"]
    rig.pass_time(DAY_MS)
    assert rig.fetch() == {}
    assert rig.groups() == []


@pytest.mark.slow
def test_a_commit_begins_the_time_anew(make_rig: Callable[..., Rig]) -> None:
    rig = make_rig()
    for _ in range(10):
        rig.ask(commit("g", {("t", 0): 5}), 9)
        rig.pass_time(DAY_MS)
    assert rig.fetch() == {("t", 0): 5}


@pytest.mark.parametrize("version", [2, 3, 4])
def test_old_clients_may_say_how_long(make_rig: Callable[..., Rig], version: int) -> None:
    rig = make_rig()
    rig.ask(commit("g", {("t", 0): 5}, retention_time_ms=HOUR_MS), version)
    rig.ask(commit("g", {("t", 1): 6}, retention_time_ms=-1), version)
    rig.pass_time(HOUR_MS - 1)
    assert rig.fetch() == {("t", 0): 5, ("t", 1): 6}
    rig.pass_time(HOUR_MS)
    assert rig.fetch() == {("t", 1): 6}


def test_retention_and_interval_are_settings(make_rig: Callable[..., Rig]) -> None:
    rig = make_rig(offsets_retention_minutes=2, offsets_retention_check_interval_ms=1000)
    rig.ask(commit("g", {("t", 0): 5}), 9)
    rig.pass_time(119_000)
    assert rig.fetch() == {("t", 0): 5}
    rig.pass_time(2_000)
    assert rig.fetch() == {}


def test_no_offset_expires_while_the_wall_clock_is_in_doubt(make_rig: Callable[..., Rig]) -> None:
    rig = make_rig("data", offsets_retention_minutes=10)
    rig.ask(commit("g", {("t", 0): 5}), 9)
    clock = rig.runtime.clock
    clock.set_wall(clock.wall_ms() + 11 * 60_000)
    rig.cluster.broker().core.group_coordinator.expire_offsets()
    assert rig.fetch() == {("t", 0): 5}


@pytest.mark.slow
def test_a_wall_clock_that_jumps_ahead_costs_no_offset(make_rig: Callable[..., Rig]) -> None:
    rig = make_rig("data")
    rig.ask(commit("g", {("t", 0): 5}), 9)
    clock = rig.runtime.clock
    clock.set_wall(clock.wall_ms() + RETENTION_MS + HOUR_MS)
    rig.pass_time(HOUR_MS // 2)
    assert rig.cluster.health()[0].kind == "retention paused"
    clock.set_wall(clock.wall_ms() - RETENTION_MS - HOUR_MS)
    rig.pass_time(HOUR_MS)
    assert rig.fetch() == {("t", 0): 5}
    assert rig.cluster.health() == []
    clock.advance(RETENTION_MS)
    rig.pass_time(HOUR_MS)
    assert rig.fetch() == {}


def test_a_group_that_lost_its_offsets_goes_at_the_next_look(
    make_rig: Callable[..., Rig],
) -> None:
    rig = make_rig()
    rig.ask(commit("g", {("t", 0): 5}), 9)
    controller = rig.cluster.broker().core.controller
    controller.delete_topic(controller.image.topics_by_name["t"].topic_id)
    assert rig.groups() == ["g"]
    rig.pass_time(HOUR_MS)
    assert rig.groups() == []


@pytest.mark.slow
def test_what_has_expired_is_gone_after_a_restart(make_rig: Callable[..., Rig]) -> None:
    first = make_rig("data")
    first.ask(commit("g", {("t", 0): 5}), 9)
    first.ask(commit("other", {("t", 0): 6}, retention_time_ms=HOUR_MS), 4)
    first.pass_time(2 * HOUR_MS)
    first.cluster.close()
    second = make_rig("data", first.runtime.files)
    assert second.groups() == ["g"]
    assert second.fetch() == {("t", 0): 5}
    assert second.fetch("other") == {}


def test_a_shard_that_was_not_asked_for_expires_when_it_is(make_rig: Callable[..., Rig]) -> None:
    first = make_rig("data")
    first.ask(commit("g", {("t", 0): 5}), 9)
    first.cluster.close()
    second = make_rig("data", first.runtime.files)
    second.runtime.clock.advance(RETENTION_MS + HOUR_MS)
    assert second.fetch() == {("t", 0): 5}
    second.pass_time(HOUR_MS)
    assert second.fetch() == {}


# The rules alone: a group's answers about its offsets, and transactions


class _Told(Group):
    """A group with answers chosen by a test."""

    GROUP_TYPE = "classic"
    protocol_type = "consumer"
    empty = False
    subscribed: frozenset[str] = frozenset()
    base: Any = staticmethod(lambda commit_timestamp_ms: commit_timestamp_ms)

    def state_name(self) -> str:
        return "Stable"

    def is_empty(self) -> bool:
        return self.empty

    def validate_offset_commit(self, *_: Any, **__: Any) -> None: ...
    def validate_offset_fetch(self, *_: Any) -> None: ...
    def validate_offset_delete(self) -> None: ...
    def validate_delete(self) -> None: ...

    def is_subscribed_to(self, topic: str) -> bool:
        return topic in self.subscribed

    def offset_expiry_base(self) -> Any:
        return self.base

    def tombstones(self) -> list[Any]:
        return ["the group"]


def _expire(group: Group, store: OffsetStore) -> list[Any]:
    found = expired(store, {group.group_id: group}, now_ms=1000, retention_ms=100)
    return [
        record if record == "the group" else (record.key.topic, record.key.partition)
        for record in found
    ]


def _store(*, expire_timestamp: int = -1, commit_timestamp: int = 900) -> OffsetStore:
    store = OffsetStore()
    for topic in ("read", "unread"):
        store.replay(
            OffsetCommitKey(group="g", topic=topic),
            OffsetCommitValue(
                offset=1, commit_timestamp=commit_timestamp, expire_timestamp=expire_timestamp
            ),
            offset=0,
        )
    return store


def test_topics_that_members_read_keep_their_offsets() -> None:
    group = _Told("g")
    group.subscribed = frozenset(("read",))
    assert _expire(group, _store()) == [("unread", 0)]
    assert _expire(group, _store(commit_timestamp=901)) == []


def test_nothing_expires_while_the_group_says_so() -> None:
    group = _Told("g")
    group.base = None
    assert _expire(group, _store()) == []
    assert _expire(group, _store(expire_timestamp=0)) == []


def test_a_time_of_its_own_counts_instead_of_the_retention() -> None:
    assert len(_expire(_Told("g"), _store(expire_timestamp=1000, commit_timestamp=1000))) == 2
    assert _expire(_Told("g"), _store(expire_timestamp=1001, commit_timestamp=0)) == []


def test_a_group_goes_with_its_last_offset_if_it_has_no_members() -> None:
    group = _Told("g")
    group.empty = True
    assert _expire(group, _store()) == [("read", 0), ("unread", 0), "the group"]
    assert _expire(group, _store(commit_timestamp=950)) == []
    assert _expire(group, OffsetStore()) == ["the group"]
    assert _expire(_Told("g"), OffsetStore()) == []


def test_what_an_open_transaction_is_about_to_change_stays_and_its_group_too() -> None:
    group = _Told("g")
    group.empty = True
    store = _store()
    key = OffsetCommitKey(group="g", topic="read")
    store.replay(key, OffsetCommitValue(offset=2), offset=5, producer_id=7)
    assert _expire(group, store) == [("unread", 0)]
    only_open = OffsetStore()
    only_open.replay(key, OffsetCommitValue(offset=2), offset=5, producer_id=7)
    assert _expire(group, only_open) == []
