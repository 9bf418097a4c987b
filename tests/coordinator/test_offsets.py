"""Committed offsets across restarts and losses of power, and a shard's store of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from embedlog.broker import topics
from embedlog.broker.context import RequestContext
from embedlog.cluster.cluster import Cluster
from embedlog.common import ZERO_UUID
from embedlog.coordinator.group.offsets.commit import OffsetCommit
from embedlog.coordinator.group.offsets.fetch import OffsetFetch
from embedlog.coordinator.group.offsets.store import OffsetStore
from embedlog.runtime.pending import Pending
from embedlog.runtime.randomness import seeded
from embedlog.storage.validation.origin import AppendOrigin
from embedlog.testing import SimFiles, SimRuntime, sim_runtime
from embedlog.testing.sim_files import SimulatedCrash
from tests.support.offsets import commit, commit_codes, fetch, fetched, question
from wire.error_codes import ErrorCode
from wire.records import build_batch
from wire.schema import declaration
from wire.schemas.describe_groups import DescribeGroupsRequest
from wire.schemas.group_metadata import OffsetCommitKey, OffsetCommitValue
from wire.schemas.list_groups import ListGroupsRequest

TOPIC = "__consumer_offsets"
GROUPS = ("g", "another", "a third one")
WAIT_MS = 60_000


class Rig:
    """A simulated cluster with one topic, "t"."""

    def __init__(self, cluster: Cluster, runtime: SimRuntime) -> None:
        self.cluster = cluster
        self.runtime = runtime
        assert topics.ensure_internal_topic(cluster.broker().core, "__consumer_offsets")
        if "t" not in cluster.topics:
            cluster.create_topic("t", 2)

    def send(self, request: Any, version: int | None = None) -> Any:
        """Return the answer, or a pending of it."""
        declared = declaration(type(request))
        assert declared.api is not None
        newest = declared.last_version if version is None else version
        return self.cluster.broker().core.handle(RequestContext(declared.api, newest), request)

    def ask(self, request: Any, version: int | None = None) -> Any:
        """Return the answer, however long it takes."""
        answer = self.send(request, version)
        if isinstance(answer, Pending):
            assert self.runtime.scheduler.wait(answer, WAIT_MS)
            return answer.result()
        return answer

    def commit(self, group_id: str, offset: int, **how: Any) -> None:
        """Commit for ("t", 0)."""
        response = self.ask(commit(group_id, {("t", 0): offset}, **how), 9)
        assert commit_codes(response) == {("t", 0): 0}

    def fetch(self, group_id: str) -> dict[Any, int]:
        return fetched(self.ask(fetch(group_id), 9))

    def groups(self) -> list[str]:
        return sorted(group.group_id for group in self.ask(ListGroupsRequest()).groups)

    def partition(self, group_id: str) -> Any:
        """Return the group's partition of the offsets topic."""
        index = self.cluster.broker().core.group_coordinator.partition_for(group_id)
        return self.cluster.broker().core.replica_manager.partition(TOPIC, index)


@pytest.fixture
def make_rig() -> Iterator[Callable[..., Rig]]:
    """`make_rig(files=None, path="data", ...)`: close the earlier rig first."""
    made: list[Cluster] = []

    def make(files: SimFiles | None = None, path: str | None = "data", **how: Any) -> Rig:
        runtime = sim_runtime(seed=3, files=files)
        made.append(Cluster(path, runtime=runtime, **how))
        return Rig(made[-1], runtime)

    yield make
    for cluster in made:
        cluster.close()


# Deleted topics


def test_a_commit_finds_that_its_topic_was_deleted_meanwhile(make_rig: Callable[..., Rig]) -> None:
    rig = make_rig()
    rig.commit("g", 1)
    broker = rig.cluster.broker().core
    late = OffsetCommit(commit("g", {("t", 0): 2}), 9, broker.controller.image)
    assert late.wanted
    broker.controller.delete_topic(broker.controller.image.topics_by_name["t"].topic_id)
    answer = broker.group_coordinator.write("g", lambda shard: shard.commit_offsets(late))
    assert rig.runtime.scheduler.wait(answer, WAIT_MS)
    assert commit_codes(answer.result()) == {("t", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert rig.fetch("g") == {}


# Restarts


@pytest.mark.parametrize("durability", ["os", "fsync"])
def test_offsets_outlive_a_restart(make_rig: Callable[..., Rig], durability: str) -> None:
    first = make_rig(durability=durability)
    for offset in range(3):
        for group_id in GROUPS:
            first.commit(group_id, offset)
    first.cluster.close()
    second = make_rig(first.runtime.files, durability=durability)
    assert [second.fetch(group_id) for group_id in GROUPS] == [{("t", 0): 2}] * 3
    assert second.groups() == sorted(GROUPS)
    second.commit("g", 7)
    assert second.fetch("g") == {("t", 0): 7}


def test_only_partitions_with_groups_have_logs(make_rig: Callable[..., Rig]) -> None:
    rig = make_rig(durability="fsync")
    rig.commit("g", 1)
    rig.fetch("g")
    manager = rig.cluster.broker().core.log_manager
    assert [place for place in manager.partitions() if place[0] == TOPIC] == [
        rig.partition("g").topic_partition
    ]


def test_metadata_and_epochs_outlive_a_restart(make_rig: Callable[..., Rig]) -> None:
    first = make_rig(durability="os")
    first.commit("g", 5, metadata="here", leader_epoch=4)
    first.cluster.close()
    second = make_rig(first.runtime.files, durability="os")
    (group,) = second.ask(fetch("g"), 9).groups
    (found,) = group.topics[0].partitions
    assert (found.committed_offset, found.metadata) == (5, "here")
    assert found.committed_leader_epoch == 4


def test_offsets_of_a_topic_deleted_before_its_groups_were_asked_for_are_gone(
    make_rig: Callable[..., Rig],
) -> None:
    first = make_rig(durability="fsync")
    first.commit("g", 5)
    first.cluster.close()
    second = make_rig(first.runtime.files, durability="fsync")
    controller = second.cluster.broker().core.controller
    controller.delete_topic(controller.image.topics_by_name["t"].topic_id)
    second.runtime.scheduler.run_for(10)
    second.cluster.close()
    third = make_rig(first.runtime.files, durability="fsync")
    assert third.fetch("g") == {}


def test_offsets_that_an_older_kafka_stored_are_read(make_rig: Callable[..., Rig]) -> None:
    rig = make_rig(path=None)
    partition = rig.partition("g")
    key = b"\0\0" + b"\0\1g" + b"\0\1t" + b"\0\0\0\1"
    value = b"\0\0" + bytes(7) + b"\x09" + b"\0\1m" + bytes(8)
    batch = build_batch([value], keys=[key], timestamps=1)
    manager = rig.cluster.broker().core.replica_manager
    manager.append(partition, batch, acks=-1, origin=AppendOrigin.COORDINATOR)
    assert rig.fetch("g") == {("t", 1): 9}
    assert rig.groups() == ["g"]


# Loss of power


class _Acknowledged:
    """The acknowledged offset of a run of commits, and the one under way."""

    def __init__(self) -> None:
        self.offsets = dict.fromkeys(GROUPS, -1)
        self.attempted = dict.fromkeys(GROUPS, -1)


def _commit_until_the_crash(files: SimFiles) -> tuple[_Acknowledged, int, int]:
    """Return (acknowledged offsets, number of the first file call of the commits, of the last)."""
    runtime = sim_runtime(seed=3, files=files)
    told = _Acknowledged()
    first = 0
    try:
        rig = Rig(Cluster("data", runtime=runtime, durability="fsync"), runtime)
        first = files.calls
        for offset in range(2):
            for group_id in GROUPS:
                told.attempted[group_id] = offset
                rig.commit(group_id, offset)
                told.offsets[group_id] = offset
    except SimulatedCrash:
        pass
    return told, first, files.calls


def _check_survivor(image: SimFiles, told: _Acknowledged) -> None:
    runtime = sim_runtime(seed=3, files=image)
    with Cluster("data", runtime=runtime, durability="fsync") as cluster:
        rig = Rig(cluster, runtime)
        for group_id in GROUPS:
            found = rig.fetch(group_id).get(("t", 0), -1)
            assert told.offsets[group_id] <= found <= told.attempted[group_id], group_id
        rig.commit("g", 100)
        assert rig.fetch("g") == {("t", 0): 100}


@pytest.mark.slow
def test_no_acknowledged_offset_is_lost_wherever_power_fails() -> None:
    _, first, end = _commit_until_the_crash(SimFiles())
    assert end - first > 20
    for call in range(first, end):
        for after in (False, True):
            files = SimFiles()
            files.crash(call, after=after)
            told, _, _ = _commit_until_the_crash(files)
            for image in files.crash_images(seeded(call), 2):
                _check_survivor(image, told)


def test_an_offset_whose_answer_never_came_may_be_there_or_not(
    make_rig: Callable[..., Rig],
) -> None:
    rig = make_rig(durability="fsync")
    rig.commit("g", 1)
    pending = rig.send(commit("g", {("t", 0): 2}), 9)
    assert not pending.done()
    told = _Acknowledged()
    told.offsets["g"], told.attempted["g"] = 1, 2
    found = set()
    for image in rig.runtime.files.crash_images(seeded(1), 8):
        runtime = sim_runtime(seed=3, files=image)
        with Cluster("data", runtime=runtime, durability="fsync") as cluster:
            found.add(Rig(cluster, runtime).fetch("g")["t", 0])
    assert found == {1, 2}


def test_nobody_is_told_an_offset_that_power_loss_could_take(make_rig: Callable[..., Rig]) -> None:
    rig = make_rig(durability="fsync")
    rig.commit("g", 1)
    committing = rig.send(commit("g", {("t", 0): 2}), 9)
    asking = rig.send(fetch("g"), 9)
    describing = rig.send(DescribeGroupsRequest(groups=["g"]))
    listing = rig.send(ListGroupsRequest())
    assert not any(p.done() for p in (committing, asking, describing, listing))
    assert rig.runtime.scheduler.wait(asking, WAIT_MS)
    assert fetched(asking.result()) == {("t", 0): 2}
    assert committing.done()


# Offsets of a transaction. Their records come from the log: no operation appends them here.


class _Facts:
    """Metadata with at most one topic, "t"."""

    def __init__(self, topic_id: bytes | None = None) -> None:
        self.name = "t"
        self.topic_id = topic_id or b""
        self.topics_by_name = {} if topic_id is None else {"t": self}
        self.topics_by_id = {} if topic_id is None else {topic_id: self}


def _put(
    store: OffsetStore,
    offset: int,
    number: int,
    producer_id: int = -1,
    topic_id: bytes = ZERO_UUID,
) -> None:
    key = OffsetCommitKey(group="g", topic="t", partition=0)
    value = None if number < 0 else OffsetCommitValue(offset=number, topic_id=topic_id)
    store.replay(key, value, offset=offset, producer_id=producer_id)


def _asked(store: OffsetStore, *, require_stable: bool) -> tuple[int, int]:
    facts: Any = _Facts()
    asking = OffsetFetch(store, facts, "g", by_id=False, require_stable=require_stable)
    answer = asking.answer(question("g", [("t", 0)]), None)
    (found,) = answer.topics[0].partitions
    return found.committed_offset, found.error_code


def test_an_open_transaction_hides_its_offset_and_is_seen_by_who_insists() -> None:
    store = OffsetStore()
    _put(store, 0, 5)
    _put(store, 1, 6, producer_id=7)
    assert _asked(store, require_stable=False) == (5, 0)
    assert _asked(store, require_stable=True) == (-1, ErrorCode.UNSTABLE_OFFSET_COMMIT)
    assert store.has_open("g")
    store.end_transaction(7, is_committed=True)
    assert _asked(store, require_stable=True) == (6, 0)
    assert not store.has_open("g")


def test_an_aborted_transaction_changes_nothing() -> None:
    store = OffsetStore()
    _put(store, 0, 5)
    _put(store, 1, 6, producer_id=7)
    store.end_transaction(7, is_committed=False)
    assert _asked(store, require_stable=True) == (5, 0)


def test_of_a_plain_commit_and_a_transaction_the_later_in_the_log_wins() -> None:
    store = OffsetStore()
    _put(store, 0, 5, producer_id=7)
    _put(store, 1, 6)
    store.end_transaction(7, is_committed=True)
    assert _asked(store, require_stable=False) == (6, 0)


def test_two_transactions_may_be_open_at_one_partition() -> None:
    store = OffsetStore()
    _put(store, 0, 5, producer_id=7)
    _put(store, 1, 6, producer_id=8)
    store.end_transaction(8, is_committed=True)
    assert _asked(store, require_stable=True) == (-1, ErrorCode.UNSTABLE_OFFSET_COMMIT)
    store.end_transaction(7, is_committed=True)
    assert _asked(store, require_stable=True) == (6, 0)


def test_a_tombstone_ends_what_transactions_are_about_to_commit() -> None:
    store = OffsetStore()
    _put(store, 0, 5, producer_id=7)
    assert store.places_of("t") == [("g", "t", 0)]
    _put(store, 1, -1)
    store.end_transaction(7, is_committed=True)
    assert _asked(store, require_stable=True) == (-1, 0)
    assert store.of_group("g") == {}
    assert store.places_of("t") == []


def test_offsets_of_a_former_topic_of_that_name_do_not_show() -> None:
    """A crash may come between the deletion of a topic and the deletion of its offsets."""
    former, present = b"former" + bytes(10), b"present" + bytes(9)
    for stored_id, is_shown in ((former, False), (present, True), (ZERO_UUID, True)):
        store = OffsetStore()
        _put(store, 0, 5, topic_id=stored_id)
        facts: Any = _Facts(present)
        for by_id in (False, True):
            asking = OffsetFetch(store, facts, "g", by_id=by_id, require_stable=False)
            place = (present if by_id else "t"), 0
            assert fetched(asking.answer(question("g"), None)) == ({place: 5} if is_shown else {})
            answer = asking.answer(question("g", [place]), None)
            assert fetched(answer) == {place: 5 if is_shown else -1}
