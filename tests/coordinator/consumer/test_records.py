"""Records as Kafka 4.4 writes them, and reading them back."""

from __future__ import annotations

from typing import Any

import pytest

from embedlog.coordinator.group.consumer import member as states
from embedlog.coordinator.group.consumer import member_records
from embedlog.coordinator.group.consumer.member import ClassicFacts, ConsumerMember
from embedlog.coordinator.group.consumer.regexes import ResolvedRegex
from embedlog.coordinator.result import CoordinatorRecord
from tests.coordinator.consumer.world import World
from wire.schema import declaration
from wire.schemas import consumer_group_metadata as schema


@pytest.fixture
def world() -> World:
    made = World()
    made.make_topic("t", 4)
    return made


def types(batch: list[CoordinatorRecord]) -> list[int]:
    """Return record types; tombstones are negative."""
    found = []
    for record in batch:
        number = declaration(type(record.key)).record_type
        assert number is not None
        found.append(-number if record.value is None else number)
    return found


def last(world: World, record_type: int) -> Any:
    """Return the newest value of a type in the newest batch."""
    values = [
        record.value
        for record in world.batches[-1]
        if declaration(type(record.key)).record_type == record_type
    ]
    return values[-1]


def test_a_first_join(world: World) -> None:
    world.join("m", "t")
    [batch] = world.batches
    assert types(batch) == [5, 3, 7, 6, 8]
    member = batch[0].value
    assert member.subscribed_topic_names == ["t"]
    assert member.subscribed_topic_regex == ""
    assert (member.client_id, member.client_host) == ("test", "/127.0.0.1")
    assert batch[1].value.epoch == 2
    assert batch[1].value.metadata_hash != 0
    assert batch[3].value.assignment_epoch == 2
    assert batch[3].value.assignment_timestamp == world.context.wall_ms()
    assigned = batch[4].value
    assert (assigned.member_epoch, assigned.previous_member_epoch, assigned.state) == (2, 0, 0)
    [topic] = assigned.assigned_partitions
    assert topic.partitions == [0, 1, 2, 3]
    assert topic.assignment_epochs == [2, 2, 2, 2]


def test_a_rebalance(world: World) -> None:
    first, second = world.join("m1", "t"), world.join("m2", "t")
    assert types(world.batches[-1]) == [5, 3, 7, 7, 6, 8]
    assert last(world, 8).state == states.UNRELEASED_PARTITIONS
    first.beat()
    assert types(world.batches[-1]) == [8]
    told = last(world, 8)
    assert (told.member_epoch, told.state) == (2, states.UNREVOKED_PARTITIONS)
    [topic] = told.partitions_pending_revocation
    assert (topic.partitions, topic.assignment_epochs) == ([2, 3], [2, 2])
    first.confirm()
    assert types(world.batches[-1]) == [8]
    second.beat()
    assert last(world, 8).assigned_partitions[0].assignment_epochs == [3, 3]
    appends = len(world.batches)
    first.confirm()
    second.confirm()
    assert len(world.batches) == appends


def test_leaving(world: World) -> None:
    first, second = world.join("m1", "t"), world.join("m2", "t")
    first.leave()
    assert types(world.batches[-1]) == [-8, -7, -5, 3]
    second.leave()
    assert types(world.batches[-1]) == [-8, -7, -5, 3, 6]
    assert last(world, 3).metadata_hash == 0
    assert last(world, 6).assignment_timestamp == 0


def test_a_static_member_that_is_away_and_comes_back(world: World) -> None:
    world.join("m", "t", instance_id="i").leave(-2)
    assert types(world.batches[-1]) == [8]
    assert last(world, 8).member_epoch == -2
    world.join("n", "t", instance_id="i")
    assert types(world.batches[-1]) == [-8, -7, -5, 5, 7, 8, 8]


def test_a_pattern(world: World) -> None:
    member = world.join("m", subscribed_topic_regex="t")
    assert [types(batch) for batch in world.batches] == [[5, 8], [16, 3]]
    resolved = last(world, 16)
    assert resolved.topics == ["t"]
    assert resolved.version == world.image.end_offset
    member.leave()
    assert types(world.batches[-1]) == [-8, -7, -5, -16, 3, 6]


def test_deleting_a_group_leaves_nothing(world: World) -> None:
    world.join("m1", "t", subscribed_topic_regex="t")
    world.join("m2", "t")
    records = world.group().tombstones()
    assert types(records) == [-8, -8, -7, -7, -6, -5, -5, -16, -4, -3]
    world.log += [world.format.encode(record) for record in records]
    assert world.restarted().shard.groups == {}
    assert world.restarted(compacted=True).shard.groups == {}


def test_tombstones_of_what_is_not_there_are_nothing() -> None:
    world = World()
    records = member_records.without_group("g", ["m"], ["r"])
    world.log += [world.format.encode(record) for record in records]
    assert world.restarted().shard.groups == {}


@pytest.mark.parametrize(
    "member",
    [
        ConsumerMember("m"),
        ConsumerMember(
            "m",
            instance_id="i",
            rack_id="r",
            client_id="c",
            client_host="/h",
            rebalance_timeout_ms=7,
            server_assignor="range",
            topics=frozenset({"a", "b"}),
            regex="a.*",
            classic=ClassicFacts(9, (("range", b"x"), ("sticky", b""))),
            epoch=5,
            previous_epoch=3,
            state=states.UNREVOKED_PARTITIONS,
            assigned={bytes(16): {1: 2, 0: 4}},
            revoking={b"x" * 16: {3: 1}},
        ),
    ],
)
def test_members_read_back_equal(member: ConsumerMember) -> None:
    metadata = member_records.member_metadata("g", member).value
    current = member_records.current_assignment("g", member).value
    read = member_records.with_metadata(ConsumerMember("m"), metadata)
    assert member_records.with_assignment(read, current) == member


def test_what_was_written_before_assignment_epochs_has_the_members() -> None:
    value = schema.ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=7,
        assigned_partitions=[schema.TopicPartitions(topic_id=bytes(16), partitions=[1, 2])],
    )
    member = member_records.with_assignment(ConsumerMember("m"), value)
    assert member.assigned == {bytes(16): {1: 7, 2: 7}}


def test_a_state_of_a_later_version_is_unknown() -> None:
    value = schema.ConsumerGroupCurrentMemberAssignmentValue(member_epoch=7, state=9)
    assert member_records.with_assignment(ConsumerMember("m"), value).state == states.UNKNOWN


def test_a_resolved_pattern_reads_back_equal() -> None:
    resolved = ResolvedRegex(frozenset({"a", "b"}), 3, 4)
    value = member_records.resolved_regex("g", "r", resolved).value
    assert member_records.read_regex(value) == resolved


def test_partition_metadata_of_kafka_4_0_is_read_over() -> None:
    world = World()
    key = schema.ConsumerGroupPartitionMetadataKey(group_id="g")
    value = schema.ConsumerGroupPartitionMetadataValue()
    world.log = [world.format.encode(CoordinatorRecord(key, value))]
    assert world.restarted().group().is_empty()
