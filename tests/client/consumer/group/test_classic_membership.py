"""A classic member and every answer of the coordinator, in simulated time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from embedlog import Consumer, TopicPartition, errors
from embedlog.client.consumer.group.embedded_protocol import decode_subscription
from embedlog.client.consumer.group.group_offsets import CloseOptions
from embedlog.client.errors import CommitFailed, IllegalState
from embedlog.errors import ConfigError, error_for
from embedlog.runtime.pending import Pending
from embedlog.transport import ANY_NODE, InProcessTransport
from tests.client.consumer.group.test_groups import Report
from tests.client.faulty_cluster import PASS, FaultyCluster, faulty_cluster, poll_until
from wire.error_codes import ErrorCode
from wire.schemas.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from wire.schemas.heartbeat import HeartbeatRequest
from wire.schemas.join_group import JoinGroupRequest
from wire.schemas.leave_group import LeaveGroupRequest
from wire.schemas.metadata import MetadataRequest
from wire.schemas.sync_group import SyncGroupRequest

ZERO, ONE = TopicPartition("t", 0), TopicPartition("t", 1)


@pytest.fixture
def cluster() -> Iterator[FaultyCluster]:
    with faulty_cluster(t=2, u=1) as made:
        yield made


def joined(cluster: FaultyCluster, **settings: Any) -> tuple[Consumer, Report]:
    """A single member that has read all of "t" to the end."""
    consumer, report = cluster.member(**settings), Report()
    consumer.subscribe(["t"], listener=report)
    poll_until(lambda: consumer.assignment() == {ZERO, ONE}, consumer)
    while consumer.poll(10):
        pass
    return consumer, report


def refuse_lookup(cluster: FaultyCluster, code: int, count: int = 1) -> None:
    cluster.answer(
        FindCoordinatorRequest,
        lambda request: FindCoordinatorResponse(
            coordinators=[Coordinator(key="readers", node_id=-1, host="", port=-1, error_code=code)]
        ),
        count,
    )


# Finding the coordinator


@pytest.mark.parametrize("code", [14, 15])
def test_a_coordinator_that_is_not_there_yet_is_asked_for_again(
    cluster: FaultyCluster, code: int
) -> None:
    refuse_lookup(cluster, code, 3)
    consumer, _ = joined(cluster)
    assert len(cluster.of_kind(FindCoordinatorRequest)) == 4
    assert 500 <= cluster.runtime.clock.monotonic_ms() <= 1_500, "backing off 100, 200, 400 ms"
    consumer.close()


def test_a_coordinator_one_may_not_know_is_an_error_each_time(cluster: FaultyCluster) -> None:
    refuse_lookup(cluster, ErrorCode.GROUP_AUTHORIZATION_FAILED, 3)
    with cluster.member() as consumer:
        consumer.subscribe(["t"])
        with pytest.raises(errors.GroupAuthorizationFailed):
            consumer.poll(100)
        with pytest.raises(errors.GroupAuthorizationFailed):
            consumer.committed([ZERO])
        with pytest.raises(errors.GroupAuthorizationFailed):
            consumer.commit({ZERO: 1})
        consumer.unsubscribe()
        consumer.assign([ZERO])
        assert len(consumer.poll(2_000)) == 5


# Joining


def test_the_first_join_is_told_its_member_id(cluster: FaultyCluster) -> None:
    consumer, report = joined(cluster, session_timeout_ms=7_000, max_poll_interval_ms=9_000)
    first, second = cluster.of_kind(JoinGroupRequest)
    assert (first.member_id, first.session_timeout_ms, first.rebalance_timeout_ms) == (
        "",
        7_000,
        9_000,
    )
    assert second.member_id == consumer.group_metadata().member_id
    assert [protocol.name for protocol in first.protocols] == ["range", "cooperative-sticky"]
    assert report.calls == [("assigned", [ZERO, ONE])]
    consumer.close()


def test_a_join_tells_the_rack(cluster: FaultyCluster) -> None:
    consumer, _ = joined(cluster, client_rack="east")
    for protocol in cluster.of_kind(JoinGroupRequest)[-1].protocols:
        assert decode_subscription(protocol.metadata).rack_id == "east"
    consumer.close()


@pytest.mark.parametrize(
    ("code", "asks_again"),
    [
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, False),
        (ErrorCode.COORDINATOR_NOT_AVAILABLE, True),
        (ErrorCode.NOT_COORDINATOR, True),
        (ErrorCode.REBALANCE_IN_PROGRESS, False),
        (ErrorCode.UNKNOWN_MEMBER_ID, False),
    ],
)
@pytest.mark.parametrize("kind", [JoinGroupRequest, SyncGroupRequest])
def test_a_round_that_fails_begins_again(
    cluster: FaultyCluster, kind: type[Any], code: int, asks_again: bool
) -> None:
    cluster.refuse(kind, code)
    consumer, report = joined(cluster)
    assert report.calls[-1] == ("assigned", [ZERO, ONE])
    assert len(cluster.of_kind(FindCoordinatorRequest)) == 1 + asks_again
    consumer.close()


def test_a_broken_connection_begins_the_round_again(cluster: FaultyCluster) -> None:
    cluster.fail(JoinGroupRequest, error_for(ErrorCode.NETWORK_EXCEPTION))
    cluster.fail(SyncGroupRequest, error_for(ErrorCode.REQUEST_TIMED_OUT))
    consumer, _ = joined(cluster)
    assert len(cluster.of_kind(FindCoordinatorRequest)) == 3
    consumer.close()


@pytest.mark.parametrize(
    "name",
    [
        "INCONSISTENT_GROUP_PROTOCOL",
        "INVALID_SESSION_TIMEOUT",
        "INVALID_GROUP_ID",
        "GROUP_AUTHORIZATION_FAILED",
        "GROUP_MAX_SIZE_REACHED",
        "FENCED_INSTANCE_ID",
        "UNSUPPORTED_VERSION",
    ],
)
def test_a_refusal_for_good_is_raised(cluster: FaultyCluster, name: str) -> None:
    cluster.refuse(JoinGroupRequest, getattr(ErrorCode, name))
    with cluster.member() as consumer:
        consumer.subscribe(["t"])
        expected = type(error_for(getattr(ErrorCode, name)))
        with pytest.raises(expected, match="readers"):
            consumer.poll(1_000)
        poll_until(lambda: len(consumer.assignment()) == 2, consumer)


def test_members_without_a_common_assignor_refuse_each_other(cluster: FaultyCluster) -> None:
    first, _ = joined(cluster, partition_assignment_strategy="range")
    with cluster.member(partition_assignment_strategy=["sticky"]) as second:
        second.subscribe(["t"])
        with pytest.raises(errors.InconsistentGroupProtocol):
            second.poll(1_000)
    first.close()


def test_an_assignor_of_ones_own_decides(cluster: FaultyCluster) -> None:
    from embedlog.client.assignors.assignor import Assignment

    class OneForAll:
        name = "one-for-all"

        def assign(self, topics: Any, members: Any) -> Any:
            chosen = max(members)
            wanted = [topic for each in members.values() for topic in each.topics]
            return {chosen: Assignment(topics.partitions_of(wanted))}

    consumers = [cluster.member(partition_assignment_strategy=[OneForAll()]) for _ in range(3)]
    for consumer in consumers:
        consumer.subscribe(["t"])
    generation = [0]

    def has_settled() -> bool:
        held = sorted(len(consumer.assignment()) for consumer in consumers)
        generations = {consumer.group_metadata().generation_id for consumer in consumers}
        generation[0] = max(generations)
        return held == [0, 0, 2] and len(generations) == 1

    poll_until(has_settled, *consumers)
    for consumer in consumers:
        consumer.close()


def test_a_cooperative_assignor_must_not_move_what_is_held(cluster: FaultyCluster) -> None:
    from embedlog.client.assignors.assignor import COOPERATIVE, Assignment

    class Rash:
        name = "rash"
        protocols = (COOPERATIVE,)

        def assign(self, topics: Any, members: Any) -> Any:
            newest = [each for each in members if not members[each].owned_partitions]
            return {newest[0] if newest else min(members): Assignment([ZERO, ONE])}

    first, _ = joined(cluster, partition_assignment_strategy=[Rash()])
    second = cluster.member(partition_assignment_strategy=[Rash()])
    second.subscribe(["t"])
    with pytest.raises(IllegalState, match="'rash' gives t-0, t-1"):
        poll_until(lambda: False, first, second)
    for consumer in (first, second):
        consumer.close()


# Staying


def test_heartbeats_go_out_while_the_user_polls_and_between(cluster: FaultyCluster) -> None:
    consumer, _ = joined(cluster, heartbeat_interval_ms=1_000, session_timeout_ms=6_000)
    consumer.poll(10_500)
    polled = len(cluster.of_kind(HeartbeatRequest))
    assert polled in {10, 11}
    cluster.pass_time(60_000)
    assert 45 <= len(cluster.of_kind(HeartbeatRequest)) - polled <= 61
    assert consumer.metrics()["last-heartbeat-seconds-ago"] <= 1
    generation = consumer.group_metadata().generation_id
    consumer.poll(0)
    assert consumer.group_metadata().generation_id == generation
    assert len(cluster.of_kind(JoinGroupRequest)) == 2
    consumer.close()


def test_who_does_not_poll_leaves_and_joins_again(cluster: FaultyCluster) -> None:
    consumer, report = joined(cluster, max_poll_interval_ms=20_000)
    cluster.pass_time(19_000)
    assert not cluster.of_kind(LeaveGroupRequest)
    cluster.pass_time(2_000)
    (left,) = cluster.of_kind(LeaveGroupRequest)
    assert left.members[0].reason == "consumer poll timeout has expired."
    with pytest.raises(CommitFailed):
        consumer.commit({ZERO: 1})
    poll_until(lambda: len(report.calls) > 2, consumer)
    assert report.calls[1:] == [("lost", [ZERO, ONE]), ("assigned", [ZERO, ONE])]
    consumer.close()


def test_a_static_member_that_does_not_poll_goes_without_a_word(cluster: FaultyCluster) -> None:
    consumer, report = joined(cluster, max_poll_interval_ms=20_000, group_instance_id="i")
    cluster.pass_time(21_000)
    assert not cluster.of_kind(LeaveGroupRequest)
    sent = len(cluster.of_kind(HeartbeatRequest))
    cluster.pass_time(10_000)
    assert len(cluster.of_kind(HeartbeatRequest)) == sent
    poll_until(lambda: len(report.calls) > 2, consumer)
    assert report.calls[1:] == [("lost", [ZERO, ONE]), ("assigned", [ZERO, ONE])]
    consumer.close()


def test_a_slow_user_whom_nobody_watched_leaves_at_the_next_call(cluster: FaultyCluster) -> None:
    consumer, report = joined(cluster, max_poll_interval_ms=20_000)
    cluster.runtime.clock.advance(30_000)  # no thread runs the scheduler
    with pytest.raises(CommitFailed):
        consumer.commit({ZERO: 1})
    poll_until(lambda: len(report.calls) > 2, consumer)
    assert report.calls[1:] == [("lost", [ZERO, ONE]), ("assigned", [ZERO, ONE])]
    consumer.close()


@pytest.mark.parametrize(
    ("code", "keeps_id"),
    [(ErrorCode.UNKNOWN_MEMBER_ID, False), (ErrorCode.ILLEGAL_GENERATION, True)],
)
def test_an_expelled_member_loses_everything_and_joins_again(
    cluster: FaultyCluster, code: int, keeps_id: bool
) -> None:
    consumer, report = joined(cluster)
    before = consumer.group_metadata().member_id
    cluster.refuse(HeartbeatRequest, code)
    poll_until(lambda: len(report.calls) == 3, consumer)
    assert report.calls[1:] == [("lost", [ZERO, ONE]), ("assigned", [ZERO, ONE])]
    assert (consumer.group_metadata().member_id == before) == keeps_id
    consumer.close()


def test_a_heartbeat_may_say_that_the_group_rebalances(cluster: FaultyCluster) -> None:
    consumer, report = joined(cluster)
    cluster.refuse(HeartbeatRequest, ErrorCode.REBALANCE_IN_PROGRESS)
    poll_until(lambda: len(report.calls) == 3, consumer)
    assert [kind for kind, _ in report.calls] == ["assigned", "revoked", "assigned"]
    consumer.close()


@pytest.mark.parametrize("name", ["FENCED_INSTANCE_ID", "GROUP_AUTHORIZATION_FAILED"])
def test_a_heartbeat_refused_for_good_is_raised_by_the_next_poll(
    cluster: FaultyCluster, name: str
) -> None:
    consumer, _ = joined(cluster)
    cluster.refuse(HeartbeatRequest, getattr(ErrorCode, name))
    cluster.pass_time(1_000)
    with pytest.raises(type(error_for(getattr(ErrorCode, name)))):
        consumer.poll(0)
    consumer.close()


@pytest.mark.parametrize("code", [ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE])
def test_a_coordinator_that_moved_is_found_without_a_rebalance(
    cluster: FaultyCluster, code: int
) -> None:
    consumer, report = joined(cluster)
    cluster.refuse(HeartbeatRequest, code)
    cluster.pass_time(2_000)
    assert len(cluster.of_kind(FindCoordinatorRequest)) == 2
    consumer.poll(10)
    assert len(report.calls) == 1
    consumer.close()


def test_a_silent_coordinator_is_looked_for_after_the_session(cluster: FaultyCluster) -> None:
    consumer, report = joined(cluster, session_timeout_ms=6_000, heartbeat_interval_ms=1_000)
    speak = cluster.silence(HeartbeatRequest)
    cluster.pass_time(5_500)
    assert len(cluster.of_kind(FindCoordinatorRequest)) == 1
    cluster.pass_time(3_000)
    assert len(cluster.of_kind(FindCoordinatorRequest)) == 2
    speak()
    poll_until(lambda: len(report.calls) == 3, consumer)
    assert report.calls[1][0] == "lost", "the broker has removed the member meanwhile"
    consumer.close()


# Rebalancing


def test_eager_commits_and_gives_everything_up_before_it_joins(cluster: FaultyCluster) -> None:
    consumer, report = joined(cluster)
    consumer.enforce_rebalance()
    poll_until(lambda: len(report.calls) == 3, consumer)
    kinds = [type(request).__name__ for request in cluster.requests]
    last_join = len(kinds) - 1 - kinds[::-1].index("JoinGroupRequest")
    assert "OffsetCommitRequest" in kinds[:last_join]
    assert [kind for kind, _ in report.calls] == ["assigned", "revoked", "assigned"]
    assert cluster.of_kind(JoinGroupRequest)[-1].reason == "rebalance enforced by user"
    consumer.close()


@pytest.mark.parametrize(("strategy", "outlives"), [("range", False), ("cooperative-sticky", True)])
def test_a_pause_outlives_cooperative_rebalances_only(
    cluster: FaultyCluster, strategy: str, outlives: bool
) -> None:
    consumer, _ = joined(cluster, partition_assignment_strategy=[strategy])
    consumer.pause(ZERO)
    generation = consumer.group_metadata().generation_id
    consumer.enforce_rebalance()
    poll_until(lambda: consumer.group_metadata().generation_id > generation, consumer)
    assert consumer.paused() == ({ZERO} if outlives else set())
    consumer.close()


def test_a_cooperative_member_reads_on_while_others_join(cluster: FaultyCluster) -> None:
    settings = {"partition_assignment_strategy": "cooperative-sticky", "max_poll_records": 1}
    first, second = cluster.member(**settings), cluster.member(**settings)
    first.subscribe(["t"])
    poll_until(lambda: len(first.assignment()) == 2, first)
    second.subscribe(["t"])
    second.poll(0)
    speak = cluster.silence(SyncGroupRequest)
    poll_until(lambda: len(cluster.of_kind(JoinGroupRequest)) > 4, first, second)
    assert first.group_metadata().generation_id > 0
    with cluster.cluster.producer() as producer:
        for partition in range(2):
            producer.send("t", b"new", partition=partition).result()
    assert len(first.poll(10)) == 1, "a round is running"
    with pytest.raises(errors.RebalanceInProgress):
        first.commit()
    speak()
    for consumer in (first, second):
        consumer.close(timeout=1)


def test_the_leader_waits_for_topics_it_does_not_know(cluster: FaultyCluster) -> None:
    first, _ = joined(cluster)
    second = cluster.member()
    second.subscribe(["u"])
    poll_until(lambda: second.assignment() == {TopicPartition("u", 0)}, first, second)
    assert first.assignment() == {ZERO, ONE}
    for consumer in (first, second):
        consumer.close()


def test_the_leader_has_the_group_rebalance_when_a_topic_grows(cluster: FaultyCluster) -> None:
    first, _ = joined(cluster, metadata_max_age_ms=1_000)
    second = cluster.member()
    second.subscribe(["u"])
    poll_until(lambda: len(second.assignment()) == 1, first, second)
    with cluster.cluster.admin() as admin:
        admin.create_partitions({"u": 3}).check()
    poll_until(lambda: len(second.assignment()) == 3, first, second)
    for consumer in (first, second):
        consumer.close()


@pytest.mark.parametrize("rack", ["east", ""])
def test_a_leader_in_a_rack_has_the_group_rebalance_when_those_of_replicas_change(
    cluster: FaultyCluster, rack: str
) -> None:
    racks = ["east"]
    transport = cluster.connect()

    def in_a_rack(request: Any) -> Any:
        if not isinstance(request, MetadataRequest):
            return PASS
        cluster.faults.remove(in_a_rack)
        answer = transport.send(ANY_NODE, request).result()
        cluster.faults.append(in_a_rack)
        for broker in answer.brokers:
            broker.rack = racks[-1]
        return answer

    cluster.faults.append(in_a_rack)
    consumer, _ = joined(cluster, client_rack=rack, metadata_max_age_ms=1_000)
    rounds = len(cluster.of_kind(JoinGroupRequest))

    def pass_answers() -> None:
        seen = len(cluster.of_kind(MetadataRequest))
        poll_until(lambda: len(cluster.of_kind(MetadataRequest)) > seen + 4, consumer)

    pass_answers()
    assert len(cluster.of_kind(JoinGroupRequest)) == rounds
    racks.append("west")
    pass_answers()
    assert (len(cluster.of_kind(JoinGroupRequest)) > rounds) == bool(rack)
    consumer.close()


# Leaving


@pytest.mark.parametrize(
    ("instance", "operation", "is_told"),
    [
        (None, CloseOptions.DEFAULT, True),
        (None, CloseOptions.REMAIN_IN_GROUP, False),
        ("i", CloseOptions.DEFAULT, False),
        ("i", CloseOptions.LEAVE_GROUP, True),
    ],
)
def test_closing_leaves_the_group_or_not(
    cluster: FaultyCluster, instance: str | None, operation: int, is_told: bool
) -> None:
    consumer, report = joined(cluster, group_instance_id=instance)
    consumer.close(membership=operation)
    told = cluster.of_kind(LeaveGroupRequest)
    assert len(told) == is_told
    if told:
        assert told[0].members[0].group_instance_id == instance
        assert told[0].members[0].reason == "the consumer is being closed"
    assert report.calls[-1] == ("revoked", [ZERO, ONE])
    cluster.pass_time(100_000)
    assert not cluster.of_kind(HeartbeatRequest)[1:], "no duty keeps a closed member alive"


def test_closing_spends_no_longer_than_told(cluster: FaultyCluster) -> None:
    consumer, report = joined(cluster)
    cluster.silence(LeaveGroupRequest)
    before = cluster.runtime.clock.monotonic_ms()
    consumer.close(timeout=2)
    assert cluster.runtime.clock.monotonic_ms() - before <= 2_000
    assert report.calls[-1][0] == "revoked"


def test_what_a_listener_raises_on_close_is_raised_when_all_is_closed(
    cluster: FaultyCluster,
) -> None:
    class Broken(Report):
        def on_partitions_revoked(self, partitions: Any) -> None:
            raise ZeroDivisionError

    consumer = cluster.member()
    consumer.subscribe(["t"], listener=Broken())
    poll_until(lambda: len(consumer.assignment()) == 2, consumer)
    with pytest.raises(ZeroDivisionError):
        consumer.close()
    assert cluster.of_kind(LeaveGroupRequest)
    consumer.close()


def test_a_wakeup_does_not_cut_a_close_or_a_callback_short(cluster: FaultyCluster) -> None:
    class Waker(Report):
        def on_partitions_assigned(self, partitions: Any) -> None:
            consumer.wakeup()
            assert consumer.position(ZERO) == 0
            super().on_partitions_assigned(partitions)

        def on_partitions_revoked(self, partitions: Any) -> None:
            consumer.commit({ZERO: 1})
            super().on_partitions_revoked(partitions)

    report = Waker()
    consumer = cluster.member(enable_auto_commit=False)
    consumer.subscribe(["t"], listener=report)
    with pytest.raises(errors.EmbedlogError, match="wakeup"):
        poll_until(lambda: False, consumer)
    assert report.calls == [("assigned", [ZERO, ONE])]
    consumer.wakeup()
    consumer.close()
    assert report.calls[-1] == ("revoked", [ZERO, ONE])


@pytest.mark.parametrize(
    "settings",
    [
        {"group_id": ""},
        {"group_id": "g", "group_instance_id": ""},
        {"enable_auto_commit": True},
        {"group_id": "g", "heartbeat_interval_ms": 5_000, "session_timeout_ms": 5_000},
        {"group_id": "g", "group_protocol": "consumer", "session_timeout_ms": 9_000},
        {"group_id": "g", "group_protocol": "consumer", "heartbeat_interval_ms": 9_000},
        {
            "group_id": "g",
            "group_protocol": "consumer",
            "partition_assignment_strategy": "range",
        },
        {"group_id": "g", "group_remote_assignor": "uniform"},
        {"group_id": "g", "group_protocol": "newest"},
        {"group_id": "g", "partition_assignment_strategy": "fair"},
        {"group_id": "g", "max_poll_interval_ms": 0},
    ],
)
def test_settings_that_contradict_each_other_are_refused(
    cluster: FaultyCluster, settings: dict[str, Any]
) -> None:
    with pytest.raises(ConfigError):
        Consumer(cluster, **settings)


def test_a_member_whose_id_a_round_refuses_joins_without_it(cluster: FaultyCluster) -> None:
    consumer, _ = joined(cluster)
    before = consumer.group_metadata().member_id
    cluster.refuse(JoinGroupRequest, ErrorCode.UNKNOWN_MEMBER_ID)
    consumer.enforce_rebalance()
    poll_until(lambda: consumer.group_metadata().member_id not in ("", before), consumer)
    assert [each.member_id for each in cluster.of_kind(JoinGroupRequest)][-3:-1] == [before, ""]
    consumer.close()


def test_a_round_may_take_as_long_as_a_slow_member_does(
    cluster: FaultyCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits: dict[type[Any], int | None] = {}
    send: Any = InProcessTransport.send

    def noting(transport: Any, node_id: int, request: Any, **more: Any) -> Any:
        limits[type(request)] = more.get("timeout_ms")
        return send(transport, node_id, request, **more)

    monkeypatch.setattr(InProcessTransport, "send", noting)
    consumer, _ = joined(cluster, max_poll_interval_ms=400_000)
    assert limits[JoinGroupRequest] == limits[SyncGroupRequest] == 405_000
    consumer.close()


def test_a_member_waits_longer_and_longer_for_a_coordinator_that_loads(
    cluster: FaultyCluster,
) -> None:
    cluster.refuse(JoinGroupRequest, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, 3)
    began_ms = cluster.runtime.clock.monotonic_ms()
    consumer, _ = joined(cluster)
    assert cluster.runtime.clock.monotonic_ms() - began_ms >= 500, "100, 200, 400 ms"
    consumer.close()


def test_a_lost_heartbeat_is_not_the_last(cluster: FaultyCluster) -> None:
    consumer, _ = joined(cluster, session_timeout_ms=6_000, heartbeat_interval_ms=1_000)
    cluster.answer(HeartbeatRequest, lambda _request: Pending())
    cluster.pass_time(5_500)
    assert len(cluster.of_kind(HeartbeatRequest)) == 1
    cluster.pass_time(3_000)
    assert len(cluster.of_kind(HeartbeatRequest)) > 1
    consumer.close()


def test_a_refused_heartbeat_is_sent_again_long_before_the_next_one(
    cluster: FaultyCluster,
) -> None:
    consumer, _ = joined(cluster, session_timeout_ms=30_000, heartbeat_interval_ms=9_000)
    cluster.refuse(HeartbeatRequest, ErrorCode.NOT_COORDINATOR)
    before = len(cluster.of_kind(HeartbeatRequest))
    while len(cluster.of_kind(HeartbeatRequest)) == before:
        cluster.pass_time(100)
    cluster.pass_time(2_000)
    assert len(cluster.of_kind(HeartbeatRequest)) == before + 2
    consumer.close()


def test_a_poll_in_the_last_moment_of_the_interval_is_in_time(cluster: FaultyCluster) -> None:
    consumer, report = joined(cluster, max_poll_interval_ms=20_000)
    consumer.poll(0)
    cluster.runtime.clock.advance(20_000)
    consumer.commit({ZERO: 1})
    consumer.poll(0)
    assert report.calls == [("assigned", [ZERO, ONE])]
    assert not cluster.of_kind(LeaveGroupRequest)
    consumer.close()


def test_topics_that_the_leader_does_not_know_are_assigned_in_the_first_round(
    cluster: FaultyCluster,
) -> None:
    first, _ = joined(cluster)
    second = cluster.member()
    second.subscribe(["u"])
    generation = first.group_metadata().generation_id
    poll_until(lambda: bool(second.assignment()), first, second)
    assert second.group_metadata().generation_id == generation + 1
    for consumer in (first, second):
        consumer.close()


def test_a_broker_that_refuses_the_first_version_of_a_look_up_is_asked_in_another(
    cluster: FaultyCluster,
) -> None:
    refuse_lookup(cluster, ErrorCode.UNSUPPORTED_VERSION)
    consumer, _ = joined(cluster)
    assert len(cluster.of_kind(FindCoordinatorRequest)) == 2
    consumer.close()
