"""Leaders' requests to the controller, elections and reassignments, with Kafka's refusals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from embedlog import errors
from embedlog.common import TopicPartition
from embedlog.controller.controller import NewTopic
from embedlog.controller.metadata import (
    RESOURCE_BROKER,
    RESOURCE_TOPIC,
    MetadataDelta,
    PartitionImage,
)
from embedlog.errors import KafkaError
from tests.controller.metadata_state import Opened

T0 = TopicPartition("t", 0)


@pytest.fixture
def opened() -> Opened:
    """Open three brokers, and a topic of one partition on all of them."""
    made = Opened(node_ids=(1, 2, 3))
    made.controller.create_topics(
        [NewTopic("t", assignments=[(0, [1, 2, 3])], configs={"min.insync.replicas": "2"})]
    )
    return made


def state(opened: Opened) -> PartitionImage:
    found = opened.controller.image.partition("t", 0)
    assert found is not None
    return found


def alter(opened: Opened, isr: Sequence[int], **given: Any) -> PartitionImage:
    """Send AlterPartition as the leader would, except for the `given` fields.

    `epochs` are the broker epochs of `isr`.
    """
    asked = dict(given)
    present = state(opened)
    node_id = asked.get("node_id", present.leader)
    brokers = opened.controller.image.brokers
    values: dict[str, Any] = {
        "node_id": node_id,
        "broker_epoch": opened.epoch(node_id),
        "topic_id": opened.controller.image.topics_by_name["t"].topic_id,
        "partition": 0,
        "leader_epoch": present.leader_epoch,
        "partition_epoch": present.partition_epoch,
    }
    known = [brokers[node].epoch if node in brokers else -1 for node in isr]
    values["isr"] = list(zip(isr, asked.pop("epochs", known), strict=True))
    return opened.controller.partitions.alter(**(values | asked))


def test_a_leader_changes_the_in_sync_set(opened: Opened) -> None:
    heard: list[MetadataDelta] = []
    opened.controller.on_change = heard.append
    shrunk = alter(opened, [1, 3])
    assert (shrunk.isr, shrunk.leader_epoch, shrunk.partition_epoch) == ((1, 3), 0, 1)
    assert state(opened).isr == (1, 3)
    grown = alter(opened, [1, 3, 2], epochs=[-1, -1, -1])
    assert (grown.isr, grown.partition_epoch) == ((1, 3, 2), 2)
    assert [delta.partitions_changed for delta in heard] == [[T0], [T0]]
    assert not any(delta.brokers_changed for delta in heard)


def test_a_set_as_it_is_changes_nothing(opened: Opened) -> None:
    before = opened.controller.image
    assert alter(opened, [1, 2, 3]) is state(opened)
    assert opened.controller.image is before


@pytest.mark.parametrize(
    ("isr", "asked", "error"),
    [
        ([1], {"broker_epoch": 999}, errors.StaleBrokerEpoch),
        ([1], {"topic_id": b"x" * 16}, errors.UnknownTopicId),
        ([1], {"partition": 7}, errors.UnknownTopicOrPartition),
        ([1], {"partition": -1}, errors.UnknownTopicOrPartition),
        ([1], {"leader_epoch": 2}, errors.NotController),
        ([1], {"partition_epoch": 9}, errors.NotController),
        ([1], {"leader_epoch": 0}, errors.FencedLeaderEpoch),
        ([1], {"node_id": 2, "leader_epoch": 0}, errors.FencedLeaderEpoch),
        ([3], {"node_id": 3}, errors.InvalidRequest),
        ([1], {"partition_epoch": 0}, errors.InvalidUpdateVersion),
        ([1, 9], {}, errors.InvalidRequest),
        ([1, 1], {}, errors.InvalidRequest),
        ([2], {}, errors.InvalidRequest),
        ([], {}, errors.InvalidRequest),
        ([1], {"is_recovering": True}, errors.InvalidRequest),
        ([1, 2], {"epochs": [-1, 999]}, errors.IneligibleReplica),
    ],
)
def test_what_cannot_be_is_refused(
    opened: Opened, isr: list[int], asked: dict[str, Any], error: type[KafkaError]
) -> None:
    opened.controller.bump_leader_epochs([T0])
    before = opened.controller.image
    with pytest.raises(error) as caught:
        alter(opened, isr, **asked)
    assert type(caught.value) is error
    assert opened.controller.image is before


def test_who_is_not_active_cannot_be_in_sync(opened: Opened) -> None:
    opened.controller.brokers.fence(3)
    with pytest.raises(errors.IneligibleReplica):
        alter(opened, [1, 2, 3])
    opened.controller.brokers.begin_controlled_shutdown(2, opened.epoch(2))
    with pytest.raises(errors.IneligibleReplica):
        alter(opened, [1, 2])
    opened.controller.brokers.unregister(3)
    with pytest.raises(errors.IneligibleReplica):
        alter(opened, [1, 3])


def test_a_leader_that_has_recovered_says_so(opened: Opened) -> None:
    partitions, brokers = opened.controller.partitions, opened.controller.brokers
    brokers.fence(2)
    brokers.fence(3)
    brokers.fence(1)
    for node_id in (2, 3):
        opened.start(node_id)
    assert state(opened).elr == (1,)
    assert partitions.elect_leaders(1, [T0]) == {T0: None}
    elected = state(opened)
    assert (elected.leader, elected.isr, elected.is_recovering) == (2, (2,), True)
    with pytest.raises(errors.InvalidRequest):
        alter(opened, [2, 3], is_recovering=True)
    recovered = alter(opened, [2])
    assert (recovered.is_recovering, recovered.leader_epoch) == (False, elected.leader_epoch)
    assert alter(opened, [2, 3]).isr == (2, 3)


def elections(opened: Opened, kind: int, *partitions: TopicPartition) -> list[tuple[int, Any]]:
    found = opened.controller.partitions.elect_leaders(kind, list(partitions) or None)
    return [(error.code, error.message) if error else (0, None) for error in found.values()]


def test_the_preferred_leader_leads_again_when_it_is_in_sync(opened: Opened) -> None:
    assert elections(opened, 0, T0) == [(84, None)]
    assert elections(opened, 0) == []
    opened.controller.brokers.fence(1)
    assert elections(opened, 0, T0) == [(80, None)]
    opened.start(1, previous_epoch=opened.epoch(1))
    assert elections(opened, 0, T0) == [(80, None)]
    alter(opened, [2, 3, 1])
    assert elections(opened, 0) == [(0, None)]
    assert (state(opened).leader, state(opened).leader_epoch) == (1, 2)


def test_an_unclean_election_is_for_partitions_without_a_leader(opened: Opened) -> None:
    brokers = opened.controller.brokers
    assert elections(opened, 1, T0) == [(84, None)]
    for node_id in (3, 1, 2):
        brokers.fence(node_id)
    assert (state(opened).leader, state(opened).elr) == (-1, (1, 2))
    assert elections(opened, 1, T0) == [(83, None)]
    opened.start(3)
    assert state(opened).leader == -1
    assert elections(opened, 1) == [(0, None)]
    assert (state(opened).leader, state(opened).isr, state(opened).is_recovering) == (3, (3,), True)


def test_an_election_of_what_does_not_exist_is_refused(opened: Opened) -> None:
    missing = [TopicPartition("t", 7), TopicPartition("nope", 0), TopicPartition("t", -1)]
    assert elections(opened, 0, *missing) == [
        (3, "No such partition as t-7"),
        (3, "No such topic as nope"),
        (3, "No such partition as t--1"),
    ]
    with pytest.raises(errors.InvalidRequest, match="Unknown election type 2"):
        opened.controller.partitions.elect_leaders(2, None)


def test_leaders_are_balanced(opened: Opened) -> None:
    opened.controller.create_topics([NewTopic("u", assignments=[(0, [1, 2]), (1, [2, 1])])])
    opened.controller.brokers.fence(1)
    opened.start(1, previous_epoch=opened.epoch(1))
    partitions = opened.controller.partitions
    assert partitions.rebalance_leaders() == 0
    alter(opened, [2, 3, 1])
    assert partitions.rebalance_leaders() == 1
    assert state(opened).leader == 1


def test_a_setting_that_allows_unclean_elections_brings_them_at_once(opened: Opened) -> None:
    brokers, partitions = opened.controller.brokers, opened.controller.partitions
    for node_id in (3, 1, 2):
        brokers.fence(node_id)
    opened.start(3)
    assert partitions.elect_unclean() == 0
    opened.controller.alter_configs(
        RESOURCE_TOPIC, "t", [(0, "unclean.leader.election.enable", "true")]
    )
    assert (state(opened).leader, state(opened).is_recovering) == (3, True)


def test_the_cluster_may_allow_unclean_elections_too(opened: Opened) -> None:
    for node_id in (3, 1, 2):
        opened.controller.brokers.fence(node_id)
    opened.start(3)
    opened.controller.alter_configs(
        RESOURCE_BROKER, "", [(0, "unclean.leader.election.enable", "true")]
    )
    assert state(opened).leader == 3
    opened.controller.brokers.fence(3)
    opened.start(2)
    assert (state(opened).leader, state(opened).isr) == (2, (2,))


def test_another_least_size_forgets_who_was_eligible(opened: Opened) -> None:
    opened.controller.brokers.fence(3)
    opened.controller.brokers.fence(2)
    before = state(opened)
    assert (before.isr, before.elr) == ((1,), (2,))
    heard: list[MetadataDelta] = []
    opened.controller.on_change = heard.append
    opened.controller.alter_configs(RESOURCE_TOPIC, "t", [(0, "min.insync.replicas", "3")])
    after = state(opened)
    assert (after.isr, after.elr, after.partition_epoch) == ((1,), (), before.partition_epoch + 1)
    (delta,) = heard
    assert (delta.changed_configs, delta.partitions_changed) == (["t"], [T0])
    opened.controller.brokers.fence(1)
    assert state(opened).elr == (1,)
    opened.controller.alter_configs(RESOURCE_BROKER, "", [(0, "min.insync.replicas", "2")])
    assert (state(opened).elr, state(opened).last_known_elr) == ((), ())


def reassign(opened: Opened, replicas: list[int] | None, **how: Any) -> None:
    opened.controller.partitions.reassign("t", 0, replicas, **how)


def moving(opened: Opened) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    present = state(opened)
    return present.replicas, present.adding_replicas, present.removing_replicas


@pytest.fixture
def pair() -> Opened:
    """Open four brokers, and a topic of one partition on the first two."""
    made = Opened(node_ids=(1, 2, 3, 4))
    made.controller.create_topics([NewTopic("t", assignments=[(0, [1, 2])])])
    return made


def test_a_reassignment_ends_when_its_target_is_in_sync(pair: Opened) -> None:
    reassign(pair, [3, 2])
    assert moving(pair) == ((3, 2, 1), (3,), (1,))
    assert (state(pair).leader, state(pair).leader_epoch, state(pair).partition_epoch) == (1, 0, 1)
    listed = pair.controller.partitions.reassignments()
    assert {name: [each.partition for each in found] for name, found in listed.items()} == {
        "t": [0]
    }
    assert pair.controller.partitions.reassignments({"t": [0, 5], "nope": [0]}) == listed
    assert pair.controller.partitions.reassignments({"t": []}) == {}
    with pytest.raises(errors.NewLeaderElected):
        alter(pair, [1, 2, 3])
    ended = state(pair)
    assert moving(pair) == ((3, 2), (), ())
    assert (ended.leader, ended.isr, ended.leader_epoch) == (3, (2, 3), 1)
    assert pair.controller.partitions.reassignments() == {}


def test_another_order_is_there_at_once(pair: Opened) -> None:
    reassign(pair, [2, 1])
    assert moving(pair) == ((2, 1), (), ())
    assert (state(pair).leader, state(pair).leader_epoch, state(pair).partition_epoch) == (1, 0, 1)
    reassign(pair, [2])
    assert (state(pair).replicas, state(pair).isr, state(pair).leader) == ((2,), (2,), 2)


def test_a_reassignment_may_be_taken_back(pair: Opened) -> None:
    with pytest.raises(errors.NoReassignmentInProgress):
        reassign(pair, None)
    reassign(pair, [3, 4])
    alter(pair, [1, 2, 3])
    assert moving(pair) == ((3, 4, 1, 2), (3, 4), (1, 2))
    reassign(pair, None)
    assert moving(pair) == ((1, 2), (), ())
    assert (state(pair).leader, state(pair).isr, state(pair).leader_epoch) == (1, (1, 2), 1)


def test_a_reassignment_gives_way_to_the_next(pair: Opened) -> None:
    """Kafka would add and remove 3 at once, for ever."""
    reassign(pair, [1, 2, 3])
    reassign(pair, [2, 1])
    assert moving(pair) == ((2, 1), (), ())
    reassign(pair, [3, 2])
    reassign(pair, [3, 4])
    assert moving(pair) == ((3, 4, 1, 2), (3, 4), (1, 2))
    reassign(pair, [1, 2, 4])
    assert moving(pair) == ((1, 2, 4, 3), (4,), (3,))
    alter(pair, [1, 2, 4])
    assert moving(pair) == ((1, 2, 4), (), ())


def test_taking_back_needs_somebody_in_sync_unless_losses_are_allowed(pair: Opened) -> None:
    reassign(pair, [3, 4])
    alter(pair, [1, 2, 3])
    pair.controller.brokers.fence(1)
    pair.controller.brokers.fence(2)
    assert (state(pair).leader, state(pair).isr) == (3, (3,))
    with pytest.raises(errors.InvalidReplicaAssignment) as caught:
        reassign(pair, None)
    assert caught.value.message == (
        "Unable to revert partition assignment for t:0 because it would require an unclean leader"
        " election."
    )
    pair.controller.alter_configs(
        RESOURCE_TOPIC, "t", [(0, "unclean.leader.election.enable", "true")]
    )
    reassign(pair, None)
    assert (moving(pair), state(pair).isr) == (((1, 2), (), ()), (1,))


@pytest.mark.parametrize(
    ("replicas", "how", "code", "message"),
    [
        ([], {}, 39, "The manual partition assignment includes an empty replica list."),
        (
            [2, 2],
            {},
            39,
            "The manual partition assignment includes the broker 2 more than once.",
        ),
        (
            [9, 9],
            {},
            39,
            "The manual partition assignment includes broker 9, but no such broker is registered.",
        ),
        (
            [1, 2, 3],
            {"allow_replication_factor_change": False},
            38,
            "The replication factor is changed from 2 to 3",
        ),
    ],
)
def test_a_reassignment_that_cannot_be_is_refused(
    pair: Opened, replicas: list[int], how: dict[str, Any], code: int, message: str
) -> None:
    reassign(pair, [2, 3])
    before = pair.controller.image
    with pytest.raises(KafkaError) as caught:
        reassign(pair, replicas, **how)
    assert (caught.value.code, caught.value.message) == (code, message)
    assert pair.controller.image is before


def test_a_reassignment_of_what_does_not_exist_is_refused(pair: Opened) -> None:
    partitions = pair.controller.partitions
    with pytest.raises(errors.UnknownTopicOrPartition, match="Unable to find a topic named nope."):
        partitions.reassign("nope", 0, [1])
    with pytest.raises(errors.UnknownTopicOrPartition, match="Unable to find partition t:7."):
        partitions.reassign("t", 7, None)
