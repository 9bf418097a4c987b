"""Directories of replicas, and partitions after the loss of a broker's directory."""

from __future__ import annotations

from contextlib import suppress

import pytest

from embedlog.common import TopicPartition
from embedlog.controller.controller import NewTopic
from embedlog.controller.metadata import MetadataDelta
from embedlog.errors import (
    IneligibleReplica,
    InvalidReplicaAssignment,
    NewLeaderElected,
    StaleBrokerEpoch,
)
from tests.controller.metadata_state import Opened, plain

A, B, OTHER = (bytes([number]) * 16 for number in (1, 2, 3))
T0 = TopicPartition("t", 0)


@pytest.fixture
def opened() -> Opened:
    """Open three brokers, the first with two directories."""
    made = Opened(node_ids=(1, 2, 3))
    made.controller.directories.note(1, made.epoch(1), (A, B), ())
    return made


def create(opened: Opened, *replicas: tuple[int, ...]) -> None:
    topic = NewTopic("t", assignments=list(enumerate(replicas)))
    made = opened.controller.create_topics([topic])["t"]
    assert not isinstance(made, Exception), made


def assign(opened: Opened, places: dict[TopicPartition, bytes], node_id: int = 1) -> None:
    opened.controller.directories.assign(node_id, opened.epoch(node_id), places)


def note(opened: Opened, *online: bytes, cordoned: tuple[bytes, ...] = ()) -> None:
    opened.controller.directories.note(1, opened.epoch(1), online, cordoned)


def test_a_place_is_kept_and_told(opened: Opened) -> None:
    create(opened, (1, 2))
    heard: list[MetadataDelta] = []
    opened.controller.on_change = heard.append
    assign(opened, {T0: B})
    assert opened.partition("t").directories == {1: B}
    assert (opened.partition("t").partition_epoch, opened.partition("t").leader_epoch) == (1, 0)
    assert [delta.partitions_changed for delta in heard] == [[T0]]
    assign(opened, {T0: B})
    assert len(heard) == 1
    assign(opened, {TopicPartition("nowhere", 0): B, TopicPartition("t", 7): B})
    assign(opened, {T0: OTHER}, node_id=3)  # which has no replica
    assert opened.partition("t").directories == {1: B}
    with pytest.raises(StaleBrokerEpoch):
        opened.controller.directories.assign(1, opened.epoch(1) - 1, {T0: A})


def test_what_lies_in_a_directory_that_is_gone_is_led_by_others(opened: Opened) -> None:
    create(opened, (1, 2), (1, 3), (2, 1))
    assign(opened, {TopicPartition("t", number): (A, B)[number % 2] for number in range(3)})
    note(opened, A)
    first, second, third = (opened.partition("t", number) for number in range(3))
    assert (first.leader, first.isr) == (1, (1, 2))
    assert (second.leader, second.isr, second.leader_epoch) == (3, (3,), 1)
    assert (third.leader, third.isr) == (2, (2, 1))
    image = opened.controller.image
    assert [image.offline_replicas(each) for each in (first, second, third)] == [(), (1,), ()]
    assert image.is_active(1)
    note(opened, A, B)
    assert opened.partition("t", 1).leader == 3
    assert opened.controller.image.offline_replicas(opened.partition("t", 1)) == ()


def test_who_lost_a_replica_may_not_be_in_sync(opened: Opened) -> None:
    create(opened, (1, 2))
    assign(opened, {T0: B})
    note(opened, A)
    topic_id = opened.controller.image.topics_by_name["t"].topic_id
    now = opened.partition("t")
    with pytest.raises(IneligibleReplica):
        opened.controller.partitions.alter(
            2,
            opened.epoch(2),
            topic_id,
            0,
            leader_epoch=now.leader_epoch,
            partition_epoch=now.partition_epoch,
            isr=[(1, -1), (2, -1)],
        )


def test_brokers_look_again_at_every_replica_of_a_directory_that_goes_or_comes(
    opened: Opened,
) -> None:
    create(opened, (1, 2), (2, 3))
    assign(opened, {T0: B})
    opened.controller.brokers.fence(1)  # and it is out of the in-sync set
    heard: list[MetadataDelta] = []
    opened.controller.on_change = heard.append
    note(opened, A)
    note(opened, A, B)
    assert [delta.partitions_changed for delta in heard] == [[T0], [T0]]


def test_a_place_in_a_directory_that_is_gone_already_counts_at_once(opened: Opened) -> None:
    create(opened, (1, 2))
    note(opened, A)
    assign(opened, {T0: B})
    assert (opened.partition("t").leader, opened.partition("t").isr) == (2, (2,))


def test_a_broker_that_registers_without_a_directory_leads_nothing_there(opened: Opened) -> None:
    create(opened, (1, 2), (1, 2))
    assign(opened, {T0: A, TopicPartition("t", 1): B})
    brokers = opened.controller.brokers
    epoch = brokers.register(1, rack=None, incarnation=OTHER, directories=(A,))
    brokers.unfence(1, epoch)
    opened.controller.brokers.fence(2)
    assert (opened.partition("t", 0).leader, opened.partition("t", 1).leader) == (-1, -1)
    # With the same incarnation, as when all brokers are opened again.
    opened.controller.brokers.unfence(2, opened.epoch(2))
    for directories, isr in (((A,), (2,)), ((A, B), (2,))):
        brokers.register(1, rack=None, incarnation=OTHER, directories=directories)
        assert opened.partition("t", 1).isr == isr


def test_a_replica_that_is_moved_away_and_back_lies_nowhere(opened: Opened) -> None:
    create(opened, (1, 2))
    assign(opened, {T0: B})
    topic_id = opened.controller.image.topics_by_name["t"].topic_id
    for target in ((2, 3), (1, 2)):
        opened.controller.partitions.reassign("t", 0, target)
        now = opened.partition("t")
        with suppress(NewLeaderElected):
            opened.controller.partitions.alter(
                now.leader,
                opened.epoch(now.leader),
                topic_id,
                0,
                leader_epoch=now.leader_epoch,
                partition_epoch=now.partition_epoch,
                isr=[(node, -1) for node in now.replicas],
            )
    assert set(opened.partition("t").replicas) == {1, 2}
    assert opened.partition("t").directories == {}


def test_places_and_directories_outlive_a_restart_and_a_snapshot(opened: Opened) -> None:
    create(opened, (1, 2), (2, 3))
    assign(opened, {T0: B})
    assign(opened, {T0: OTHER}, node_id=2)
    note(opened, A, B, cordoned=(A,))
    before = opened.controller.image
    again = opened.reopen()
    assert plain(again.controller.image) == plain(before)
    assert again.controller.image.brokers[1].cordoned == (A,)
    assert again.partition("t").directories == {1: B, 2: OTHER}
    again.metadata_log.rewrite(again.controller.image)
    third = again.reopen()
    assert third.partition("t").directories == {1: B, 2: OTHER}
    assert third.controller.image.brokers[1].directories == (A, B)
    assert third.controller.image.brokers[1].cordoned == (A,)


def test_the_only_broker_says_it_without_a_registration() -> None:
    opened = Opened()
    opened.controller.create_topics([NewTopic("t", partition_count=2, replication_factor=1)])
    opened.controller.directories.note(1, -1, (A, B), ())
    opened.controller.directories.assign(1, -1, {T0: A, TopicPartition("t", 1): B})
    opened.controller.directories.note(1, -1, (A,), ())
    assert [opened.partition("t", number).leader for number in (0, 1)] == [1, -1]
    assert opened.controller.image.is_alone
    again = opened.reopen()
    assert again.controller.image.brokers[1].directories == ()
    again.controller.directories.note(1, -1, (A,), ())
    assert [again.partition("t", number).leader for number in (0, 1)] == [1, -1]
    again.controller.directories.note(1, -1, (A, B), ())
    assert [again.partition("t", number).leader for number in (0, 1)] == [1, 1]


def test_a_reassignment_to_a_broker_of_which_all_are_cordoned_is_refused(opened: Opened) -> None:
    create(opened, (2, 3))
    note(opened, A, B, cordoned=(A,))
    opened.controller.partitions.reassign("t", 0, (1, 2))
    opened.controller.partitions.reassign("t", 0, None)
    note(opened, A, B, cordoned=(A, B))
    with pytest.raises(InvalidReplicaAssignment, match="all its log directories are cordoned"):
        opened.controller.partitions.reassign("t", 0, (1, 2))
