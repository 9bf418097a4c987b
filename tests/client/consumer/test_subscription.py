"""The allowed calls of `subscribe` and `assign`, and their order."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from embedlog import TopicPartition, errors
from embedlog.client.consumer.rebalance_listener import ConsumerRebalanceListener
from embedlog.client.consumer.subscription_state import (
    VALID_PREVIOUS,
    FetchState,
    PartitionState,
    SubscriptionPattern,
    SubscriptionState,
    SubscriptionType,
)
from embedlog.client.errors import ConcurrentUse, IllegalState
from tests.client.faulty_cluster import FaultyCluster, faulty_cluster, poll_until
from wire.schemas.join_group import JoinGroupRequest
from wire.schemas.leave_group import LeaveGroupRequest

HERE, THERE = TopicPartition("t", 0), TopicPartition("u", 0)


@pytest.fixture
def state() -> SubscriptionState:
    return SubscriptionState()


@pytest.fixture
def cluster() -> Iterator[FaultyCluster]:
    with faulty_cluster(t=1, u=1, tt=1) as made:
        yield made


WAYS = {
    "topics": lambda state: state.subscribe(["t"], None),
    "pattern": lambda state: state.subscribe_pattern(re.compile("t.*"), None),
    "server pattern": lambda state: state.subscribe_server_pattern("t.*", None),
    "assignment": lambda state: state.assign_by_user([HERE]),
}


@pytest.mark.parametrize("first", WAYS)
@pytest.mark.parametrize("second", WAYS)
def test_one_way_excludes_the_others_until_unsubscribed(
    state: SubscriptionState, first: str, second: str
) -> None:
    WAYS[first](state)
    if first != second:
        with pytest.raises(IllegalState, match="unsubscribe first"):
            WAYS[second](state)
        state.unsubscribe()
        assert state.type == SubscriptionType.NONE
        assert not state.partitions
    WAYS[second](state)
    assert state.is_automatic == (second != "assignment")


def test_a_pattern_matches_whole_names(state: SubscriptionState) -> None:
    state.subscribe_pattern(re.compile("t|uu"), None)
    assert state.match(["t", "tt", "u", "uu"])
    assert state.topics == {"t", "uu"}
    assert not state.match(["uu", "t"])
    assert state.is_asked_for("uu")
    assert not state.is_asked_for("tt")


def test_what_stays_assigned_keeps_its_position(state: SubscriptionState) -> None:
    state.subscribe(["t", "u"], None)
    state.assign_from_group([HERE, THERE])
    state.state(HERE).seek(7)
    state.state(HERE).is_paused = True
    state.mark_revoking([HERE])
    assert not state.state(HERE).is_fetchable
    state.assign_from_group([HERE])
    assert (state.state(HERE).offset, state.state(HERE).is_paused) == (7, True)
    assert not state.state(HERE).is_revoking
    with pytest.raises(IllegalState, match="u-0 is not assigned"):
        state.state(THERE)
    state.assign_from_group([])
    state.assign_from_group([HERE])
    assert state.state(HERE).offset == -1


def test_the_states_of_a_partition_follow_the_table() -> None:
    partition = PartitionState(HERE)
    assert not partition.has_position
    for target, allowed in VALID_PREVIOUS.items():
        for before in range(4):
            partition.state = before
            if before in allowed:
                partition.transition_to(target)
            else:
                with pytest.raises(AssertionError):
                    partition.transition_to(target)
    partition.state = FetchState.INITIALIZING
    partition.seek_unproven(5, 3)
    assert (partition.state, partition.has_position) == (FetchState.AWAIT_VALIDATION, True)
    partition.seek_unproven(5, -1)
    assert partition.state == FetchState.FETCHING


def test_names_are_checked(cluster: FaultyCluster) -> None:
    with cluster.member() as consumer:
        for wrong in ("t", [""], ["t", " "], [None]):
            with pytest.raises(ValueError, match="name"):
                consumer.subscribe(wrong)  # type: ignore[arg-type]
        with pytest.raises(IllegalState, match="subscribe or assign"):
            consumer.poll(0)
        for empty in ([], None):
            consumer.subscribe(["t"])
            consumer.subscribe(empty)
            with pytest.raises(IllegalState):
                consumer.poll(0)
        consumer.subscribe(["t"])
        consumer.assign([]) if not consumer.assignment() else None
        consumer.assign([HERE])
        with pytest.raises(IllegalState):
            consumer.subscribe(["t"])


def test_a_pattern_may_be_text_or_compiled(cluster: FaultyCluster) -> None:
    for settings in ({"pattern": "t+"}, {"topics": re.compile("t+")}):
        with cluster.member() as consumer:
            consumer.subscribe(**settings)  # type: ignore[arg-type]
            poll_until(lambda: len(consumer.assignment()) == 2, consumer)  # noqa: B023
            assert consumer.subscription() == {"t", "tt"}


def test_internal_topics_match_only_when_wanted(cluster: FaultyCluster) -> None:
    with cluster.member() as consumer:
        consumer.subscribe(["t"])
        poll_until(lambda: bool(consumer.assignment()), consumer)  # creates __consumer_offsets
    for excludes, expected in ((True, {"u"}), (False, {"u", "__consumer_offsets"})):
        with cluster.member(exclude_internal_topics=excludes) as consumer:
            consumer.subscribe(pattern="u|__consumer_.*")
            poll_until(lambda: bool(consumer.assignment()), consumer)  # noqa: B023
            assert consumer.subscription() == expected


def test_a_topic_that_can_never_be_is_an_error_and_others_are_read(cluster: FaultyCluster) -> None:
    with cluster.member() as consumer:
        consumer.subscribe(["t", "no such name"])
        with pytest.raises(errors.InvalidTopic, match="no such name"):
            consumer.poll(1_000)
        poll_until(lambda: consumer.assignment() == {HERE}, consumer)


def test_members_are_called_after_their_group(cluster: FaultyCluster) -> None:
    for settings, expected in (
        ({}, "consumer-readers"),
        ({"group_instance_id": "i"}, "consumer-readers-i"),
        ({"client_id": "mine"}, "mine"),
    ):
        with cluster.member(**settings) as consumer:
            consumer.subscribe(["t"])
            poll_until(lambda: bool(consumer.assignment()), consumer)  # noqa: B023
            member_id = consumer.group_metadata().member_id
            assert member_id.startswith("i-" if "group_instance_id" in settings else expected)
            assert expected in repr(consumer)


def test_a_pattern_without_matches_joins_and_waits(cluster: FaultyCluster) -> None:
    with cluster.member(metadata_max_age_ms=500) as consumer:
        consumer.subscribe(pattern="later.*")
        consumer.poll(100)
        assert consumer.assignment() == set()
        assert cluster.of_kind(JoinGroupRequest)
        cluster.cluster.create_topic("later-on", 1)
        poll_until(lambda: bool(consumer.assignment()), consumer)


def test_unsubscribing_leaves_and_tells(cluster: FaultyCluster) -> None:
    told: list[Any] = []

    class Listener(ConsumerRebalanceListener):
        def on_partitions_revoked(self, partitions: list[TopicPartition]) -> None:
            told.append(partitions)

    with cluster.member() as consumer:
        consumer.subscribe(["t"], listener=Listener())
        poll_until(lambda: bool(consumer.assignment()), consumer)
        consumer.unsubscribe()
        assert told == [[HERE]]
        (left,) = cluster.of_kind(LeaveGroupRequest)
        assert left.members[0].reason == "the consumer unsubscribed from all topics"
        consumer.unsubscribe()
        assert len(cluster.of_kind(LeaveGroupRequest)) == 1
        consumer.subscribe(["u"])
        poll_until(lambda: consumer.assignment() == {THERE}, consumer)


def test_topics_deleted_under_a_subscriber_are_given_up(cluster: FaultyCluster) -> None:
    with cluster.member(metadata_max_age_ms=500) as consumer:
        consumer.subscribe(pattern="t+")
        poll_until(lambda: len(consumer.assignment()) == 2, consumer)
        with cluster.cluster.admin() as admin:
            admin.delete_topics(["tt"]).check()
        poll_until(lambda: consumer.assignment() == {HERE}, consumer)


def test_a_listener_needs_no_base_class(cluster: FaultyCluster) -> None:
    told: list[Any] = []

    class Partial:
        def on_partitions_assigned(self, partitions: list[TopicPartition]) -> None:
            told.append(partitions)

    with cluster.member() as consumer:
        consumer.subscribe(["t"], listener=Partial())  # type: ignore[arg-type]
        poll_until(lambda: bool(told), consumer)
    assert told == [[HERE]]


def test_another_thread_is_refused_whatever_it_calls(cluster: FaultyCluster) -> None:
    import threading

    consumer = cluster.member()
    refused: list[str] = []

    def intrude() -> None:
        for call in (consumer.commit, consumer.unsubscribe, consumer.close):
            try:
                call()
            except ConcurrentUse:
                refused.append(call.__name__)

    class Listener(ConsumerRebalanceListener):
        def on_partitions_assigned(self, partitions: list[TopicPartition]) -> None:
            thread = threading.Thread(target=intrude)
            thread.start()
            thread.join()

    consumer.subscribe(["t"], listener=Listener())
    poll_until(lambda: bool(consumer.assignment()), consumer)
    assert refused == ["commit", "unsubscribe", "close"]
    consumer.close()


def test_a_pattern_for_the_broker_shows_itself() -> None:
    assert repr(SubscriptionPattern("a.*")) == "SubscriptionPattern('a.*')"
