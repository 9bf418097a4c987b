"""The client of the share coordinators: answers, attempts and pauses, several brokers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from embedlog import errors
from embedlog.cluster.cluster import Cluster
from embedlog.coordinator.share.keys import Place
from embedlog.coordinator.share.state_client import (
    ShareState,
    ShareStateClient,
    ShareSummary,
    StateBatch,
)
from embedlog.runtime.pending import Pending
from embedlog.testing import SimRuntime, sim_runtime
from embedlog.topic_names import SHARE_STATE_TOPIC
from wire.api_keys import ApiKey

GROUP = "g"
APIS = (
    ApiKey.INITIALIZE_SHARE_GROUP_STATE,
    ApiKey.READ_SHARE_GROUP_STATE,
    ApiKey.WRITE_SHARE_GROUP_STATE,
    ApiKey.DELETE_SHARE_GROUP_STATE,
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY,
)
LONG_MS = 600_000


class Desk:
    """A broker whose share coordinator may be made to fail, and its client."""

    def __init__(self) -> None:
        self.runtime: SimRuntime = sim_runtime(seed=4)
        self.cluster = Cluster(runtime=self.runtime)
        self.core = self.cluster.broker().core
        self.core.interceptor = self._intercept
        self.cluster.create_topic("t", 4)
        self.topic_id = self.core.image.topics_by_name["t"].topic_id
        self.failures: list[Any] = []
        """An error for each of the next requests; None lets one pass."""
        self.asked: list[tuple[int, list[int]]] = []
        """Time and partitions of each request."""

    @property
    def client(self) -> ShareStateClient:
        return self.core.share_state

    def place(self, partition: int = 0) -> Place:
        return self.topic_id, partition

    def _intercept(self, context: Any, request: Any) -> Any:
        if context.api_key not in APIS:
            return None
        asked = [row.partition for topic in request.topics for row in topic.partitions]
        self.asked.append((self.runtime.clock.monotonic_ms(), asked))
        failure = self.failures.pop(0) if self.failures else None
        if failure is None:
            return None
        answer: Pending[Any] = Pending()
        answer.fail(failure)
        return answer

    def wait(self, pending: Pending[Any]) -> Any:
        assert self.runtime.scheduler.wait(pending, LONG_MS)
        return pending.result()

    def error(self, pending: Pending[Any]) -> BaseException | None:
        assert self.runtime.scheduler.wait(pending, LONG_MS)
        return pending.error()

    def write(self, *batches: StateBatch, **changes: Any) -> Pending[None]:
        fields: dict[str, Any] = {
            "state_epoch": 3, "leader_epoch": 0, "start_offset": 10,
            "delivery_complete_count": 2,
        }  # fmt: skip
        return self.client.write(GROUP, self.place(), batches=batches, **{**fields, **changes})


@pytest.fixture
def desk() -> Iterator[Desk]:
    made = Desk()
    yield made
    made.cluster.close()


def test_the_life_of_a_state(desk: Desk) -> None:
    client, place = desk.client, desk.place()
    assert SHARE_STATE_TOPIC not in desk.cluster.topics
    assert client.initialize(GROUP, 3, {place: 10}).result() == {place: 0}
    assert SHARE_STATE_TOPIC in desk.core.image.topics_by_name
    assert client.read(GROUP, place, 2).result() == ShareState(3, 10, [])
    batch = StateBatch(10, 14, 2, 1)
    assert desk.write(batch, leader_epoch=2).error() is None
    assert client.read(GROUP, place, 2).result() == ShareState(3, 10, [batch])
    found = client.summaries(GROUP, [place]).result()
    assert found == {place: ShareSummary(0, 3, 2, 10, 2)}
    assert client.delete(GROUP, [place]).result() == {place: 0}
    assert client.summaries(GROUP, [place]).result() == {place: ShareSummary()}


def test_a_call_about_many_places_is_one_request(desk: Desk) -> None:
    places = [desk.place(partition) for partition in range(4)]
    unknown = (bytes(15) + b"\x07", 0)
    starts = {place: index for index, place in enumerate([*places, unknown, desk.place(9)])}
    codes = desk.client.initialize(GROUP, 1, starts).result()
    assert codes == {**dict.fromkeys(places, 0), unknown: 3, desk.place(9): 3}
    assert len(desk.asked) == 1
    found = desk.client.summaries(GROUP, [*places, unknown]).result()
    assert [found[place].start_offset for place in places] == [0, 1, 2, 3]
    assert found[unknown].error_code == 3
    assert desk.client.delete(GROUP, starts).result() == codes
    assert len(desk.asked) == 3


def test_no_places_are_no_request(desk: Desk) -> None:
    assert desk.client.initialize(GROUP, 1, {}).result() == {}
    assert desk.client.delete(GROUP, []).result() == {}
    assert desk.client.summaries(GROUP, []).result() == {}
    assert desk.asked == []


def test_the_coordinators_errors_are_final(desk: Desk) -> None:
    client, place = desk.client, desk.place()
    assert isinstance(client.read(GROUP, place, 0).error(), errors.InvalidRequest)
    assert isinstance(desk.write().error(), errors.InvalidRequest)
    client.initialize(GROUP, 3, {place: 0})
    client.read(GROUP, place, 5)
    assert isinstance(client.read(GROUP, place, 4).error(), errors.FencedLeaderEpoch)
    assert isinstance(desk.write(leader_epoch=4).error(), errors.FencedLeaderEpoch)
    fenced = desk.write(leader_epoch=5, state_epoch=2)
    assert isinstance(fenced.error(), errors.FencedStateEpoch)
    assert client.initialize(GROUP, 2, {place: 0}).result() == {place: 124}
    assert len(desk.asked) == 8


@pytest.mark.parametrize(
    "failure",
    [
        errors.NotCoordinator(),
        errors.CoordinatorNotAvailable(),
        errors.CoordinatorLoadInProgress(),
        errors.Network("the connection broke"),
        errors.RequestTimedOut(),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_passing_error_is_tried_again_after_growing_pauses(
    desk: Desk, failure: errors.KafkaError
) -> None:
    desk.client.initialize(GROUP, 3, {desk.place(): 0})
    desk.asked.clear()
    desk.failures = [failure] * 4
    pending = desk.client.read(GROUP, desk.place(), 0)
    assert not pending.done()
    assert desk.wait(pending) == ShareState(3, 0, [])
    times = [time_ms for time_ms, _ in desk.asked]
    pauses = [later - earlier for earlier, later in zip(times, times[1:], strict=False)]
    assert len(pauses) == 4
    for pause_ms, nominal_ms in zip(pauses, (1000, 2000, 4000, 8000), strict=True):
        assert 0.8 * nominal_ms <= pause_ms <= 1.2 * nominal_ms
    assert pauses != [1000, 2000, 4000, 8000], "the pauses are spread"


def test_after_five_attempts_the_error_is_final(desk: Desk) -> None:
    desk.failures = [errors.NotCoordinator()] * 5
    assert isinstance(desk.error(desk.write()), errors.NotCoordinator)
    assert len(desk.asked) == 5
    desk.failures = [errors.CoordinatorNotAvailable()] * 5
    assert desk.wait(desk.client.delete(GROUP, [desk.place()])) == {desk.place(): 15}
    desk.failures = [errors.NotCoordinator()] * 5
    found = desk.wait(desk.client.summaries(GROUP, [desk.place()]))
    assert found == {desk.place(): ShareSummary(16)}


def test_only_places_without_an_answer_are_asked_again(desk: Desk) -> None:
    from wire.schemas import initialize_share_group_state as api

    places = [desk.place(partition) for partition in range(3)]
    answers: list[Any] = [
        api.InitializeShareGroupStateResponse(
            results=[
                api.InitializeStateResult(
                    topic_id=desk.topic_id,
                    partitions=[
                        api.PartitionResult(partition=0),
                        api.PartitionResult(partition=1, error_code=16),
                        # Nothing about partition 2: the answer of a broken coordinator.
                    ],
                )
            ]
        )
    ]
    seen: list[list[int]] = []

    def answer(context: Any, request: Any) -> Any:
        seen.append([row.partition for topic in request.topics for row in topic.partitions])
        return answers.pop(0) if answers else None

    desk.core.interceptor = answer
    codes = desk.wait(desk.client.initialize(GROUP, 1, dict.fromkeys(places, 0)))
    assert codes == {places[0]: 0, places[1]: 0, places[2]: -1}
    assert seen == [[0, 1, 2], [1]]


def test_closing_ends_a_call_that_waits_for_its_next_attempt(desk: Desk) -> None:
    desk.failures = [errors.NotCoordinator()]
    read = desk.client.read(GROUP, desk.place(), 0)
    deleted = desk.client.delete(GROUP, [desk.place()])
    assert not read.done()
    assert deleted.done()
    client = desk.client
    desk.cluster.close()
    assert isinstance(read.error(), errors.NotCoordinator)
    late = client.read(GROUP, desk.place(), 0)
    assert late.done()
    assert late.error() is not None


def test_a_bug_behind_the_door_is_an_answer(desk: Desk) -> None:
    desk.failures = [ValueError("a bug")]
    error = desk.write().error()
    assert isinstance(error, errors.UnknownServerError)


# Several brokers


@pytest.fixture
def three() -> Iterator[Cluster]:
    config = {"share.coordinator.state.topic.num.partitions": 6}
    with Cluster(brokers=3, runtime=sim_runtime(seed=9), config=config) as made:
        made.create_topic("t", 12)
        yield made


def _places(cluster: Cluster) -> list[Place]:
    topic_id = cluster.broker(1).core.image.topics_by_name["t"].topic_id
    return [(topic_id, partition) for partition in range(12)]


def _wait(cluster: Cluster, pending: Pending[Any]) -> Any:
    assert cluster.runtime.scheduler.wait(pending, LONG_MS)
    return pending.result()


def test_each_broker_reaches_all_coordinators(three: Cluster) -> None:
    places = _places(three)
    first, *others = [each.core.share_state for each in three.brokers]
    starts = {place: place[1] for place in places}
    assert _wait(three, first.initialize(GROUP, 1, starts)) == dict.fromkeys(places, 0)
    counts = [
        sum(len(shard.states) for shard in each.core.share_coordinator.runtime.loaded())
        for each in three.brokers
    ]
    assert sum(counts) == 12
    assert all(counts)
    for client in others:
        found = _wait(three, client.summaries(GROUP, places))
        assert {place: row.start_offset for place, row in found.items()} == starts


def test_states_move_with_the_leadership(three: Cluster) -> None:
    places = _places(three)
    client = three.broker(1).core.share_state
    _wait(three, client.initialize(GROUP, 1, dict.fromkeys(places, 5)))
    batch = StateBatch(6, 8, 4, 2)
    for place in places:
        _wait(
            three,
            client.write(
                GROUP, place, state_epoch=1, leader_epoch=0, start_offset=5,
                delivery_complete_count=3, batches=[batch],
            ),
        )  # fmt: skip
    before = three.broker(3).core.share_coordinator.runtime
    assert before.loaded()
    three.broker(3).kill()
    pending = [client.read(GROUP, place, 1) for place in places]
    assert [_wait(three, each) for each in pending] == [ShareState(1, 5, [batch])] * 12
    three.broker(3).start()
    again = three.broker(3).core.share_state
    found = _wait(three, again.summaries(GROUP, places))
    assert {row.leader_epoch for row in found.values()} == {1}


def test_a_leader_that_loses_the_partition_unloads_its_states(three: Cluster) -> None:
    places = _places(three)
    client = three.broker(1).core.share_state
    _wait(three, client.initialize(GROUP, 1, dict.fromkeys(places, 5)))
    three.broker(2).stop()
    _wait(three, client.summaries(GROUP, places))
    during = _loaded(three)
    assert during == _led(three)
    three.broker(2).start()
    three.runtime.scheduler.wait(Pending(), LONG_MS)
    after = _loaded(three)
    assert after == _led(three)
    assert after != during, "preferred leaders lead again"
    assert len(_wait(three, client.summaries(GROUP, places))) == 12


def _led(cluster: Cluster) -> dict[int, set[int]]:
    """Return the partitions of `__share_group_state` by leader."""
    topic = cluster.broker(1).core.image.topics_by_name[SHARE_STATE_TOPIC]
    return {
        node: {each.partition for each in topic.partitions if each.leader == node}
        for node in (1, 2, 3)
        if any(each.leader == node for each in topic.partitions)
    }


def _loaded(cluster: Cluster) -> dict[int, set[int]]:
    """Return the partitions whose shards are loaded, by broker."""
    return {
        node.node_id: {
            shard.context.partition for shard in node.core.share_coordinator.runtime.loaded()
        }
        for node in cluster.brokers
        if node.is_running
    }


def test_followers_delete_the_records_that_the_coordinator_deletes() -> None:
    config = {
        "share.coordinator.state.topic.num.partitions": 1,
        "share.coordinator.state.topic.prune.interval.ms": 1000,
        "share.coordinator.snapshot.update.records.per.snapshot": 0,
    }
    with Cluster(brokers=3, runtime=sim_runtime(seed=9), config=config) as cluster:
        cluster.create_topic("t", 12)
        place = _places(cluster)[0]
        client = cluster.broker(2).core.share_state
        for epoch in range(20):
            assert _wait(cluster, client.initialize(GROUP, epoch, {place: 0})) == {place: 0}
        cluster.runtime.scheduler.wait(Pending(), 10_000)
        starts = {
            node.core.replica_manager.partition(SHARE_STATE_TOPIC, 0).log.offsets.log_start_offset
            for node in cluster.brokers
        }
        assert starts == {19}
        for node in (1, 2, 3):
            cluster.broker(node).kill()
            client = cluster.broker(node % 3 + 1).core.share_state
            assert _wait(cluster, client.summaries(GROUP, [place]))[place].state_epoch == 19
            cluster.broker(node).start()
            cluster.runtime.scheduler.wait(Pending(), 10_000)


def test_states_of_a_deleted_topic_are_deleted_when_enough_replicas_are_back() -> None:
    config = {"share.coordinator.state.topic.num.partitions": 1}
    with Cluster(brokers=3, runtime=sim_runtime(seed=9), config=config) as cluster:
        cluster.create_topic("t", 12)
        topic_id, _ = place = _places(cluster)[0]
        core = cluster.broker(1).core
        assert _wait(cluster, core.share_state.initialize(GROUP, 1, {place: 0})) == {place: 0}
        leader = core.image.topics_by_name[SHARE_STATE_TOPIC].partitions[0].leader
        others = [node for node in (1, 2, 3) if node != leader]
        for node in others:
            cluster.broker(node).kill()
        core = cluster.broker(leader).core
        cluster.runtime.scheduler.wait(Pending(), 60_000)
        core.controller.delete_topic(topic_id)
        cluster.runtime.scheduler.wait(Pending(), 60_000)
        (shard,) = core.share_coordinator.runtime.loaded()
        assert list(shard.states) == [(GROUP, *place)]
        for node in others:
            cluster.broker(node).start()
        cluster.runtime.scheduler.wait(Pending(), 60_000)
        (shard,) = core.share_coordinator.runtime.loaded()
        assert not shard.states
