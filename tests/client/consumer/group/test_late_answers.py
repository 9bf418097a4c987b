"""Answers of the coordinator that arrive after the membership or the positions have changed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from embedlog import Consumer, TopicPartition, errors
from embedlog.client.consumer.group.group_offsets import OffsetAndMetadata
from embedlog.client.errors import CommitFailed
from embedlog.errors import TimedOut
from tests.client.consumer.group.test_groups import Report
from tests.client.faulty_cluster import FaultyCluster, faulty_cluster, poll_until
from tests.client.held_answers import HeldAnswers
from wire.error_codes import ErrorCode
from wire.schemas.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from wire.schemas.find_coordinator import FindCoordinatorRequest
from wire.schemas.heartbeat import HeartbeatRequest, HeartbeatResponse
from wire.schemas.join_group import JoinGroupRequest
from wire.schemas.leave_group import LeaveGroupRequest
from wire.schemas.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from wire.schemas.offset_fetch import OffsetFetchRequest
from wire.schemas.sync_group import SyncGroupRequest

ZERO, ONE, OTHER = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)
PROTOCOLS = ("classic", "consumer")


@pytest.fixture
def cluster() -> Iterator[FaultyCluster]:
    with faulty_cluster(t=2, u=1) as made:
        yield made


@pytest.fixture
def late(cluster: FaultyCluster) -> HeldAnswers:
    return HeldAnswers(cluster)


def joined(cluster: FaultyCluster, **settings: Any) -> tuple[Consumer, Report]:
    """A single member that has read all of "t" to the end."""
    consumer, report = cluster.member(**settings), Report()
    consumer.subscribe(["t"], listener=report)
    poll_until(lambda: consumer.assignment() == {ZERO, ONE}, consumer)
    while consumer.poll(10):
        pass
    return consumer, report


def join_again(consumer: Consumer, report: Report) -> None:
    """Leave the group, then join it for another topic."""
    consumer.unsubscribe()
    consumer.subscribe(["u"], listener=report)


def store(cluster: FaultyCluster, offset: int, *partitions: TopicPartition) -> None:
    with cluster.member(enable_auto_commit=False) as consumer:
        consumer.commit(dict.fromkeys(partitions, offset))


def stored(cluster: FaultyCluster, partition: TopicPartition) -> int:
    with cluster.member(enable_auto_commit=False) as consumer:
        found = consumer.committed([partition])[partition]
    return -1 if found is None else found.offset


def refuse_held(late: HeldAnswers, code: int) -> None:
    """Make the held answer to a commit a refusal."""
    for topic in late.held[0][1].topics:
        for each in topic.partitions:
            each.error_code = code


# Committed offsets


def test_committed_offsets_that_come_after_a_seek_are_dropped(
    cluster: FaultyCluster, late: HeldAnswers
) -> None:
    store(cluster, 2, ZERO)
    with cluster.member() as consumer:
        consumer.assign([ZERO])
        late.hold(OffsetFetchRequest)
        assert not consumer.poll(0)
        consumer.seek(ZERO, 4)
        late.release()
        assert [record.offset for record in consumer.poll(100)] == [4]


def test_a_seek_drops_the_committed_offset_of_no_other_partition(
    cluster: FaultyCluster, late: HeldAnswers
) -> None:
    store(cluster, 3, ONE)
    with cluster.member() as consumer:
        consumer.assign([ZERO, ONE])
        late.hold(OffsetFetchRequest)
        assert not consumer.poll(0)
        consumer.seek(ZERO, 4)
        late.release()
        assert consumer.position(ONE, timeout_ms=1000) == 3


def test_committed_offsets_refused_after_a_seek_are_no_error(
    cluster: FaultyCluster, late: HeldAnswers
) -> None:
    with cluster.member(enable_auto_commit=False) as consumer:
        consumer.assign([ZERO])
        late.hold(OffsetFetchRequest)
        assert not consumer.poll(0)
        consumer.seek(ZERO, 4)
        late.held[0][1].groups[0].error_code = ErrorCode.GROUP_AUTHORIZATION_FAILED
        late.release()
        assert [record.offset for record in consumer.poll(100)] == [4]


def test_committed_offsets_of_an_earlier_assignment_are_dropped(
    cluster: FaultyCluster, late: HeldAnswers
) -> None:
    store(cluster, 2, ZERO)
    with cluster.member(enable_auto_commit=False) as consumer:
        consumer.assign([ZERO])
        late.hold(OffsetFetchRequest)
        assert not consumer.poll(0)
        consumer.unassign()
        store(cluster, 3, ZERO)
        consumer.assign([ZERO])
        late.release()
        assert consumer.position(ZERO) == 3


def test_a_partition_is_read_while_the_offset_of_another_is_in_a_transaction(
    cluster: FaultyCluster,
) -> None:
    with cluster.cluster.producer(transactional_id="x") as producer:
        producer.init_transactions()
        producer.begin_transaction()
        with cluster.member() as other:
            producer.send_offsets_to_transaction({ZERO: 2}, other.group_metadata())
        with cluster.member() as consumer:
            consumer.assign([ZERO, ONE])
            found = consumer.poll(1_000)
            assert {record.partition for record in found} == {1}
            producer.commit_transaction()
            assert consumer.position(ZERO) == 2


def test_committed_offsets_keep_their_topic_although_it_was_made_anew(
    cluster: FaultyCluster, late: HeldAnswers
) -> None:
    store(cluster, 2, ZERO)
    with cluster.member(metadata_max_age_ms=1_000) as consumer:
        consumer.assign([ZERO])
        consumer.partitions_for("t")
        late.hold(OffsetFetchRequest)
        assert not consumer.poll(0)
        with cluster.cluster.admin() as admin:
            admin.delete_topics(["t"]).check()
        cluster.cluster.create_topic("t", 2)
        with cluster.cluster.producer() as producer:
            producer.send_batch("t", [b"%d" % number for number in range(5)], partition=0).result()
        consumer.list_topics()
        late.release()
        assert consumer.position(ZERO) == 2


def test_an_answer_to_a_call_that_timed_out_is_not_taken_by_the_next(
    cluster: FaultyCluster, late: HeldAnswers
) -> None:
    store(cluster, 2, ZERO)
    with cluster.member() as consumer:
        late.hold(OffsetFetchRequest)
        with pytest.raises(TimedOut):
            consumer.committed([ZERO], timeout_ms=50)
        store(cluster, 3, ZERO)
        late.release()
        assert consumer.committed([ZERO]) == {ZERO: OffsetAndMetadata(3)}


# Commits


def test_the_retry_of_a_commit_leaves_later_commits_alone(cluster: FaultyCluster) -> None:
    consumer, _ = joined(cluster, auto_commit_interval_ms=1_000_000)

    def refuse(request: OffsetCommitRequest) -> OffsetCommitResponse:
        topics = []
        for topic in request.topics:
            code = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
            refused = [
                OffsetCommitResponsePartition(partition_index=each.partition_index, error_code=code)
                for each in topic.partitions
            ]
            topics.append(OffsetCommitResponseTopic(topic_id=topic.topic_id, partitions=refused))
        return OffsetCommitResponse(topics=topics)

    cluster.answer(OffsetCommitRequest, refuse)
    consumer.enforce_rebalance()
    consumer.poll(0)  # commits the positions before it gives the partitions up
    consumer.commit_async({ZERO: 4})
    assert (stored(cluster, ZERO), stored(cluster, ONE)) == (4, -1)
    poll_until(lambda: stored(cluster, ONE) == 5, consumer)
    assert stored(cluster, ZERO) == 4
    consumer.close()


def test_the_retry_of_a_commit_is_over_if_later_ones_have_its_partitions(
    cluster: FaultyCluster,
) -> None:
    consumer, report = joined(cluster, auto_commit_interval_ms=1_000_000)
    cluster.fail(OffsetCommitRequest, errors.Network("gone"))
    consumer.enforce_rebalance()
    consumer.poll(0)
    consumer.commit_async({ZERO: 4, ONE: 4})
    poll_until(lambda: len(report.calls) == 3, consumer)
    assert len(cluster.of_kind(OffsetCommitRequest)) == 2
    assert (stored(cluster, ZERO), stored(cluster, ONE)) == (4, 4)
    consumer.close()


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_commit_refused_in_an_earlier_membership_ends_no_later_one(
    cluster: FaultyCluster, late: HeldAnswers, protocol: str
) -> None:
    settings = {"group_protocol": protocol, "enable_auto_commit": False}
    consumer, report = joined(cluster, **settings)
    told: list[Any] = []
    late.hold(OffsetCommitRequest)
    consumer.commit_async({ZERO: 3}, lambda _offsets, error: told.append(error))
    join_again(consumer, report)
    poll_until(lambda: consumer.assignment() == {OTHER}, consumer)
    before, calls = consumer.group_metadata(), list(report.calls)
    refuse_held(late, ErrorCode.UNKNOWN_MEMBER_ID)
    late.release()
    consumer.poll(2_000)
    assert [type(error) for error in told] == [CommitFailed]
    assert consumer.group_metadata() == before
    assert report.calls == calls
    consumer.close()


def test_a_commit_refused_after_its_call_timed_out_is_no_news(
    cluster: FaultyCluster, late: HeldAnswers
) -> None:
    consumer, _ = joined(cluster, enable_auto_commit=False)
    late.hold(OffsetCommitRequest)
    with pytest.raises(TimedOut):
        consumer.commit({ZERO: 3}, timeout_ms=50)
    consumer.commit({ZERO: 4})
    refuse_held(late, ErrorCode.UNKNOWN_MEMBER_ID)
    late.release()
    consumer.poll(500)
    assert consumer.assignment() == {ZERO, ONE}
    assert stored(cluster, ZERO) == 4
    consumer.close()


def test_positions_are_committed_before_a_newer_target_revokes_more(
    cluster: FaultyCluster, late: HeldAnswers
) -> None:
    """While the commit is under way that precedes the first target, the next takes all away."""
    settings = {"group_protocol": "consumer", "auto_commit_interval_ms": 1_000_000}
    consumer, _ = joined(cluster, **settings)
    late.hold(OffsetCommitRequest)
    target = [ONE]

    def assign(request: ConsumerGroupHeartbeatRequest) -> ConsumerGroupHeartbeatResponse:
        image = cluster.cluster.broker().core.controller.image
        numbers = [each.partition for each in target]
        given = TopicPartitions(topic_id=image.topics_by_name["t"].topic_id, partitions=numbers)
        return ConsumerGroupHeartbeatResponse(
            member_id=request.member_id,
            member_epoch=max(request.member_epoch, 1),
            heartbeat_interval_ms=5_000,
            assignment=Assignment(topic_partitions=[given]),
        )

    cluster.answer(ConsumerGroupHeartbeatRequest, assign, count=1_000)
    poll_until(lambda: bool(late.held), consumer)
    with cluster.cluster.producer() as producer:
        producer.send("t", b"new", partition=1).result()
    poll_until(lambda: consumer.position(ONE) == 6, consumer)
    target.clear()
    consumer.poll(10_000)
    late.release()
    poll_until(lambda: not consumer.assignment(), consumer)
    assert stored(cluster, ONE) == 6
    cluster.faults.clear()
    consumer.close()


# Membership


def test_the_heartbeat_of_an_earlier_generation_ends_no_later_one(
    cluster: FaultyCluster, late: HeldAnswers
) -> None:
    consumer, report = joined(cluster)
    late.hold(HeartbeatRequest)
    poll_until(lambda: bool(late.held), consumer)
    consumer.enforce_rebalance()
    poll_until(lambda: len(report.calls) == 3, consumer)
    request, _, pending = late.held.pop()
    pending.complete(HeartbeatResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID))
    consumer.poll(2_000)
    assert request.generation_id < consumer.group_metadata().generation_id
    assert len(report.calls) == 3
    consumer.close()


@pytest.mark.parametrize("kind", [JoinGroupRequest, SyncGroupRequest])
def test_a_round_answered_after_the_member_left_assigns_nothing(
    cluster: FaultyCluster, late: HeldAnswers, kind: type[Any]
) -> None:
    consumer, report = cluster.member(), Report()
    consumer.subscribe(["t"], listener=report)
    late.hold(kind, which=lambda request: bool(request.member_id))
    poll_until(lambda: bool(late.held), consumer)
    join_again(consumer, report)
    late.release()
    poll_until(lambda: bool(consumer.assignment()), consumer)
    assert consumer.assignment() == {OTHER}
    assert report.calls == [("assigned", [OTHER])]
    consumer.close()


def test_a_heartbeat_answered_after_the_member_left_assigns_nothing(
    cluster: FaultyCluster, late: HeldAnswers
) -> None:
    consumer, report = cluster.member(group_protocol="consumer"), Report()
    consumer.subscribe(["t"], listener=report)
    late.hold(ConsumerGroupHeartbeatRequest)
    poll_until(lambda: bool(late.held), consumer)
    join_again(consumer, report)
    late.release()
    poll_until(lambda: bool(consumer.assignment()), consumer)
    assert consumer.assignment() == {OTHER}
    assert report.calls == [("assigned", [OTHER])]
    consumer.close()


@pytest.mark.parametrize(
    ("protocol", "kind"),
    [("classic", HeartbeatRequest), ("consumer", ConsumerGroupHeartbeatRequest)],
)
def test_the_error_of_a_membership_ends_with_it(
    cluster: FaultyCluster, protocol: str, kind: type[Any]
) -> None:
    consumer, report = joined(cluster, group_protocol=protocol)
    cluster.refuse(kind, ErrorCode.GROUP_AUTHORIZATION_FAILED)
    cluster.pass_time(10_000)
    join_again(consumer, report)
    poll_until(lambda: consumer.assignment() == {OTHER}, consumer)
    consumer.close()


@pytest.mark.parametrize(
    ("protocol", "kind"),
    [("classic", LeaveGroupRequest), ("consumer", ConsumerGroupHeartbeatRequest)],
)
def test_the_answer_to_a_leave_does_not_touch_the_next_membership(
    cluster: FaultyCluster, late: HeldAnswers, protocol: str, kind: type[Any]
) -> None:
    consumer, report = joined(cluster, group_protocol=protocol, enable_auto_commit=False)
    late.hold(kind, which=lambda request: getattr(request, "member_epoch", -1) < 0)
    join_again(consumer, report)
    assert len(late.held) == 1
    poll_until(lambda: consumer.assignment() == {OTHER}, consumer)
    late.release()
    consumer.poll(6_000)
    assert consumer.assignment() == {OTHER}
    assert report.calls[-1] == ("assigned", [OTHER])
    consumer.close()


def test_the_coordinator_may_be_found_after_the_close(
    cluster: FaultyCluster, late: HeldAnswers
) -> None:
    late.hold(FindCoordinatorRequest)
    consumer = cluster.member()
    consumer.subscribe(["t"])
    poll_until(lambda: bool(late.held), consumer)
    consumer.close(0)
    count = len(cluster.requests)
    late.release()
    assert len(cluster.requests) == count


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_answers_after_the_close_change_nothing(
    cluster: FaultyCluster, late: HeldAnswers, protocol: str
) -> None:
    consumer, report = joined(cluster, group_protocol=protocol, enable_auto_commit=False)
    for kind in (HeartbeatRequest, ConsumerGroupHeartbeatRequest, OffsetCommitRequest):
        late.hold(kind, which=lambda request: getattr(request, "member_epoch", 0) >= 0)
    consumer.commit_async({ZERO: 3})
    poll_until(lambda: len(late.held) == 2, consumer)
    consumer.close(0)
    calls, count = list(report.calls), len(cluster.requests)
    late.release()
    late.release()
    cluster.pass_time(60_000)
    assert report.calls == calls
    assert len(cluster.requests) == count
