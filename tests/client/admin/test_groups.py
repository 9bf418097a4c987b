"""The admin client's calls about groups and offsets, over every transport."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import embedlog
from embedlog import Admin, Consumer, Producer, TopicPartition, errors
from embedlog.client.consumer.group.group_offsets import CloseOptions, OffsetAndMetadata
from embedlog.testing.loopback_transport import LoopbackTransport
from tests.client.consumer.group.test_groups import Report, poll_until

Connect = Callable[[], Any]
ROUNDS_MAX = 1_500
PROTOCOLS: list[dict[str, Any]] = [
    {"partition_assignment_strategy": "range", "heartbeat_interval_ms": 100},
    {"group_protocol": "consumer"},
]
protocols = pytest.mark.parametrize("protocol", PROTOCOLS, ids=["classic", "consumer"])


@pytest.fixture
def cluster() -> Iterator[embedlog.Cluster]:
    """A cluster whose consumer-protocol groups have a short heartbeat interval."""
    quick = {
        "group.consumer.min.heartbeat.interval.ms": 100,
        "group.consumer.heartbeat.interval.ms": 100,
    }
    with embedlog.open(config=quick) as opened:
        yield opened


def parts(topic: str, count: int) -> list[TopicPartition]:
    return [TopicPartition(topic, number) for number in range(count)]


def joined(connect: Connect, topic: str, group: str, **settings: Any) -> Consumer:
    """A consumer that owns all partitions of `topic`."""
    settings = {"auto_offset_reset": "earliest", "enable_auto_commit": False, **settings}
    consumer = Consumer(connect(), group_id=group, **settings)
    consumer.subscribe([topic])
    for _ in range(ROUNDS_MAX):
        consumer.poll(20)
        if consumer.assignment():
            return consumer
    raise AssertionError(f"{group} gave no partitions")


def seen_client_id(connect: Connect, client_id: str) -> str:
    """The client id at the broker: a loopback transport has no client settings."""
    return "" if isinstance(connect(), LoopbackTransport) else client_id


def fill(connect: Connect, topic: str, partitions: int, count: int) -> None:
    with Admin(connect()) as admin, Producer(connect()) as producer:
        admin.create_topics({topic: partitions}).check()
        for partition in range(partitions):
            producer.send_batch(topic, [b"v"] * count, partition=partition).result(10)


def test_groups_are_listed_by_state_and_type(connect: Connect) -> None:
    fill(connect, "listed", 1, 1)
    with (
        Admin(connect()) as admin,
        joined(connect, "listed", "listed-classic", **PROTOCOLS[0]),
        joined(connect, "listed", "listed-consumer", **PROTOCOLS[1]),
    ):
        admin.alter_group_offsets("listed-empty", {("listed", 0): 1}).check()
        mine = ["listed-classic", "listed-consumer", "listed-empty"]
        found = admin.list_groups().check()
        listed = [(found[each].state, found[each].group_type) for each in mine]
        assert listed == [("Stable", "classic"), ("Stable", "consumer"), ("Empty", "classic")]
        assert [found[each].protocol_type for each in mine] == ["consumer", "consumer", ""]

        def chosen(**filters: Any) -> list[Any]:
            return [each for each in mine if each in admin.list_groups(**filters).check()]

        assert chosen(states=["stable"]) == mine[:2]
        assert chosen(types=["Classic"]) == [mine[0], mine[2]]
        assert chosen(states=["Stable"], types=["consumer"]) == [mine[1]]
        assert chosen(states=["Dead"]) == []


def test_a_classic_group_is_described(connect: Connect) -> None:
    fill(connect, "told", 2, 1)
    settings = {"client_id": "teller", "group_instance_id": "one", **PROTOCOLS[0]}
    with Admin(connect()) as admin, joined(connect, "told", "told-classic", **settings) as consumer:
        (group,) = admin.describe_groups(["told-classic"]).check().values()
        assert (group.group_id, group.group_type, group.state) == (
            "told-classic", "classic", "Stable",
        )  # fmt: skip
        assert (group.protocol_type, group.assignor) == ("consumer", "range")
        assert (group.group_epoch, group.target_assignment_epoch) == (-1, -1)
        assert group.authorized_operations is None
        assert group.coordinator.node_id == admin.describe_cluster().controller_id
        (member,) = group.members
        assert member.member_id == consumer.group_metadata().member_id
        assert member.client_id == seen_client_id(connect, "teller")
        assert member.instance_id == "one"
        assert member.assignment == parts("told", 2)
        assert member.subscribed_topics == ["told"]
        assert (member.target_assignment, member.member_epoch) == (None, -1)
        assert member.uses_consumer_protocol is False
        assert member.metadata != b"" != member.assignment_data


def test_a_group_of_the_consumer_protocol_is_described(connect: Connect) -> None:
    fill(connect, "told", 2, 1)
    settings = {"client_id": "teller", "client_rack": "r1", **PROTOCOLS[1]}
    with (
        Admin(connect()) as admin,
        joined(connect, "told", "told-consumer", **settings) as consumer,
    ):
        group = admin.describe_groups(["told-consumer"], include_authorized_operations=True)[
            "told-consumer"
        ]
        assert (group.group_type, group.state, group.assignor) == ("consumer", "Stable", "uniform")
        assert group.group_epoch == group.target_assignment_epoch > 0
        # Without an authorizer everything is allowed: read, delete, describe and two for configs.
        assert group.authorized_operations == {3, 6, 8, 10, 11}
        (member,) = group.members
        named = consumer.group_metadata()
        assert (member.member_id, member.member_epoch) == (named.member_id, named.generation_id)
        assert member.client_id == seen_client_id(connect, "teller")
        assert (member.instance_id, member.rack) == (None, "r1")
        assert member.assignment == member.target_assignment == parts("told", 2)
        assert (member.subscribed_topics, member.subscribed_pattern) == (["told"], None)
        assert member.uses_consumer_protocol is True


def test_each_group_has_its_own_error(connect: Connect) -> None:
    fill(connect, "mixed", 1, 1)
    with Admin(connect()) as admin, joined(connect, "mixed", "mixed-busy", **PROTOCOLS[1]):
        admin.alter_group_offsets("mixed-empty", {("mixed", 0): 1}).check()
        names = ["mixed-busy", "mixed-absent", "mixed-empty", "mixed-busy"]
        described = admin.describe_groups(names)
        assert sorted(described) == ["mixed-absent", "mixed-busy", "mixed-empty"]
        assert isinstance(described.errors["mixed-absent"], errors.GroupIdNotFound)
        assert "mixed-absent" in str(described.errors["mixed-absent"])
        assert described["mixed-empty"].members == []
        assert described["mixed-empty"].group_type == "classic"
        deleted = admin.delete_groups(names)
        assert list(deleted.values) == ["mixed-empty"]
        assert isinstance(deleted.errors["mixed-busy"], errors.NonEmptyGroup)
        assert isinstance(deleted.errors["mixed-absent"], errors.GroupIdNotFound)
        with pytest.raises(errors.GroupIdNotFound):
            admin.describe_groups(["mixed-empty"]).check()
        assert len(admin.describe_groups([])) == 0


def test_offsets_are_stored_listed_and_deleted(connect: Connect) -> None:
    fill(connect, "kept", 3, 5)
    one, two, three = parts("kept", 3)
    with Admin(connect()) as admin:
        altered = admin.alter_group_offsets(
            "kept-group", {one: OffsetAndMetadata(3, "why", 0), two: 4, ("kept", 9): 1}
        )
        assert list(altered.values) == [one, two]
        (refused,) = altered.errors.items()
        assert refused[0] == ("kept", 9)
        assert isinstance(refused[1], errors.UnknownTopicOrPartition)
        with Consumer(connect(), group_id="kept-group") as consumer:
            consumer.assign([one])
            assert consumer.committed([one])[one] == OffsetAndMetadata(3, "why", 0)

        everything = admin.list_group_offsets(["kept-group", "kept-absent"]).check()
        assert everything["kept-group"].check() == {
            one: OffsetAndMetadata(3, "why", 0),
            two: OffsetAndMetadata(4),
        }
        assert len(everything["kept-absent"]) == 0
        some = admin.list_group_offsets({"kept-group": [two, three]}, require_stable=True)
        assert some["kept-group"].check() == {two: OffsetAndMetadata(4), three: None}

        assert admin.delete_group_offsets("kept-group", [one, three]).check() == {
            one: None,
            three: None,
        }
        assert list(admin.list_group_offsets(["kept-group"])["kept-group"]) == [two]
        with pytest.raises(errors.GroupIdNotFound):
            admin.delete_group_offsets("kept-absent", [one])


@protocols
def test_offsets_of_a_group_in_use_are_protected(
    connect: Connect, protocol: dict[str, Any]
) -> None:
    topic, group = f"used-{len(protocol)}", f"used-{len(protocol)}"
    fill(connect, topic, 1, 5)
    (here,) = parts(topic, 1)
    with Admin(connect()) as admin, joined(connect, topic, group, **protocol) as consumer:
        consumer.commit({here: 2})
        altered = admin.alter_group_offsets(group, {here: 0})
        assert isinstance(altered.errors[here], errors.UnknownMemberId)
        deleted = admin.delete_group_offsets(group, [here])
        assert isinstance(deleted.errors[here], errors.GroupSubscribedToTopic)
        stored = admin.list_group_offsets([group])[group]
        assert [each.offset for each in stored.values.values() if each] == [2]


def test_a_group_reads_again_from_where_it_was_put(connect: Connect) -> None:
    fill(connect, "again", 1, 5)
    (here,) = parts("again", 1)
    with joined(connect, "again", "again-group", **PROTOCOLS[0]) as consumer:
        consumer.commit({here: 5})
    with Admin(connect()) as admin:
        admin.alter_group_offsets("again-group", {here: 3}).check()
    with joined(connect, "again", "again-group", **PROTOCOLS[0]) as consumer:
        assert consumer.position(here) in {3, 5}  # 5 when the first poll brought the records
        assert consumer.committed([here])[here] == OffsetAndMetadata(3)


@protocols
def test_members_are_removed_by_either_id(connect: Connect, protocol: dict[str, Any]) -> None:
    fill(connect, "leaving", 1, 1)
    group = "leaving-group"
    with Admin(connect()) as admin:
        first = joined(connect, "leaving", group, group_instance_id="static", **protocol)
        first.close(membership=CloseOptions.REMAIN_IN_GROUP)
        removed = admin.remove_members(
            group, member_ids=["stranger"], instance_ids=["static", "nobody"], reason="x"
        )
        assert list(removed.values) == ["static"]
        assert isinstance(removed.errors["stranger"], errors.UnknownMemberId)
        assert isinstance(removed.errors["nobody"], errors.UnknownMemberId)
        assert admin.describe_groups([group])[group].state == "Empty"

        with joined(connect, "leaving", group, **protocol) as second:
            member_id = second.group_metadata().member_id
            assert admin.remove_members(group, member_ids=[member_id]).check() == {member_id: None}
            assert admin.describe_groups([group])[group].members == []


@pytest.mark.slow
@protocols
def test_all_members_are_removed_at_once(connect: Connect, protocol: dict[str, Any]) -> None:
    fill(connect, "emptied", 1, 1)
    fill(connect, "emptied-too", 1, 1)
    group = "emptied-group"
    static = {"group_instance_id": "static", **protocol}
    with Admin(connect()) as admin, joined(connect, "emptied", group, **static):
        if protocol.get("group_protocol") == "consumer":
            second = joined(connect, "emptied-too", group, **protocol)
            both = {"static": None, second.group_metadata().member_id: None}
            assert admin.remove_members(group).check() == both
            second.close()
        else:
            assert admin.remove_members(group).check() == {"static": None}
        assert len(admin.remove_members(group)) == 0
        admin.delete_groups([group]).check()
        with pytest.raises(errors.GroupIdNotFound):
            admin.remove_members(group)


@pytest.mark.slow
@protocols
def test_a_removed_member_loses_its_partitions_and_joins_again(
    connect: Connect, protocol: dict[str, Any]
) -> None:
    fill(connect, "rejoined", 1, 1)
    report = Report()
    with (
        Admin(connect()) as admin,
        Consumer(
            connect(), group_id="rejoined-group", enable_auto_commit=False, **protocol
        ) as consumer,
    ):
        consumer.subscribe(["rejoined"], listener=report)
        here = parts("rejoined", 1)
        poll_until(lambda: report.held() == set(here), consumer)
        member_id = consumer.group_metadata().member_id
        admin.remove_members("rejoined-group", member_ids=[member_id]).check()
        poll_until(lambda: ("lost", here) in report.calls, consumer)
        poll_until(lambda: report.held() == set(here), consumer)
        assert "revoked" not in dict(report.calls)
        (described,) = admin.describe_groups(["rejoined-group"])["rejoined-group"].members
        assert described.member_id == consumer.group_metadata().member_id


def test_producers_of_partitions_are_described(connect: Connect) -> None:
    with Admin(connect()) as admin, Producer(connect(), enable_idempotence=True) as producer:
        admin.create_topics({"written": 2}).check()
        one, two = parts("written", 2)
        for _ in range(3):
            producer.send("written", b"v", partition=0, timestamp_ms=1_234).result(10)
        found = admin.describe_producers([one, two, ("written", 7)])
        (state,) = found[one]
        assert (state.producer_epoch, state.last_sequence) == (0, 2)
        assert (state.last_timestamp_ms, state.current_transaction_start_offset) == (1_234, -1)
        assert found[two] == []
        assert isinstance(
            found.errors[TopicPartition("written", 7)], errors.UnknownTopicOrPartition
        )
