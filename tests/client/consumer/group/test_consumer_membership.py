"""A member of the consumer protocol (KIP-848) and every answer to it, in simulated time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from embedlog import Consumer, TopicPartition, errors
from embedlog.client.consumer.group.group_offsets import CloseOptions, OffsetAndMetadata
from embedlog.client.consumer.subscription_state import SubscriptionPattern
from embedlog.client.errors import CommitFailed, IllegalState
from embedlog.errors import error_for
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
from wire.schemas.offset_commit import OffsetCommitRequest

ZERO, ONE = TopicPartition("t", 0), TopicPartition("t", 1)
LEAVE, LEAVE_FOR_A_WHILE = -1, -2


@pytest.fixture
def cluster() -> Iterator[FaultyCluster]:
    with faulty_cluster(t=2, u=1) as made:
        yield made


def member(cluster: FaultyCluster, **settings: Any) -> Consumer:
    return cluster.member(group_protocol="consumer", **settings)


def joined(cluster: FaultyCluster, **settings: Any) -> tuple[Consumer, Report]:
    consumer, report = member(cluster, **settings), Report()
    consumer.subscribe(["t"], listener=report)
    poll_until(lambda: consumer.assignment() == {ZERO, ONE}, consumer)
    while consumer.poll(10):
        pass
    return consumer, report


def beats(cluster: FaultyCluster) -> list[ConsumerGroupHeartbeatRequest]:
    return cluster.of_kind(ConsumerGroupHeartbeatRequest)


def test_the_first_heartbeat_tells_everything_and_later_ones_what_changed(
    cluster: FaultyCluster,
) -> None:
    consumer, report = joined(
        cluster, max_poll_interval_ms=60_000, client_rack="r1", group_remote_assignor="range"
    )
    first = beats(cluster)[0]
    assert (first.member_epoch, first.rebalance_timeout_ms, first.rack_id) == (0, 60_000, "r1")
    assert (first.subscribed_topic_names, first.server_assignor) == (["t"], "range")
    assert first.topic_partitions == []
    assert first.member_id == consumer.group_metadata().member_id
    consumer.poll(11_000)
    told = [each for each in beats(cluster) if each.topic_partitions]
    assert len(told) == 1, "the owned partitions are reported once"
    assert told[0].topic_partitions[0].partitions == [0, 1]
    last = beats(cluster)[-1]
    assert last.member_epoch == consumer.group_metadata().generation_id > 0
    for name in ("subscribed_topic_names", "server_assignor", "topic_partitions", "rack_id"):
        assert getattr(last, name) is None, name
    assert last.rebalance_timeout_ms == -1
    assert report.calls == [("assigned", [ZERO, ONE])]
    consumer.close()


def test_whoever_works_between_polls_is_heard_of_as_often_as_the_coordinator_wants() -> None:
    """A consumer assumes 100 ms in process until the broker answers; sessions here are shorter."""
    wanted = {"heartbeat.interval.ms": 10, "session.timeout.ms": 50}
    limits = {"min.heartbeat.interval.ms": 10, "min.session.timeout.ms": 50}
    config = {f"group.consumer.{name}": value for name, value in (limits | wanted).items()}
    with faulty_cluster(config, t=2) as cluster:
        consumer, report = joined(cluster)
        for _ in range(10):
            consumer.poll(33)  # the user's thread is inside, so the duty does nothing
            cluster.pass_time(300)
        assert report.calls == [("assigned", [ZERO, ONE])]
        assert 200 < len(beats(cluster)) < 400
        consumer.close()


def test_another_subscription_is_told_at_once(cluster: FaultyCluster) -> None:
    consumer, report = joined(cluster)
    before = cluster.runtime.clock.monotonic_ms()
    consumer.subscribe(["t", "u"], listener=report)
    consumer.poll(0)
    assert beats(cluster)[-1].subscribed_topic_names == ["t", "u"]
    assert cluster.runtime.clock.monotonic_ms() == before
    poll_until(lambda: len(consumer.assignment()) == 3, consumer)
    assert report.calls[1:] == [("assigned", [TopicPartition("u", 0)])]
    consumer.unsubscribe()
    assert beats(cluster)[-1].member_epoch == LEAVE
    consumer.subscribe(["u"])
    poll_until(lambda: len(consumer.assignment()) == 1, consumer)
    consumer.close()


def test_a_pattern_is_matched_by_the_broker_and_taken_back(cluster: FaultyCluster) -> None:
    consumer = member(cluster)
    consumer.subscribe(SubscriptionPattern("[t-u]"))
    poll_until(lambda: len(consumer.assignment()) == 3, consumer)
    assert beats(cluster)[0].subscribed_topic_regex == "[t-u]"
    with pytest.raises(IllegalState):
        consumer.subscribe(["t"])
    consumer.unsubscribe()
    consumer.subscribe(["t"])
    poll_until(lambda: len(consumer.assignment()) == 2, consumer)
    consumer.close()
    with member(cluster, group_id="others") as wrong:
        wrong.subscribe(SubscriptionPattern("["))
        with pytest.raises(errors.InvalidRegularExpression):
            wrong.poll(100)


@pytest.mark.parametrize("code", [ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH])
def test_a_fenced_member_loses_everything_and_joins_anew(cluster: FaultyCluster, code: int) -> None:
    consumer, report = joined(cluster)
    member_id = consumer.group_metadata().member_id
    cluster.refuse(ConsumerGroupHeartbeatRequest, code)
    poll_until(lambda: len(report.calls) == 3, consumer)
    assert report.calls[1:] == [("lost", [ZERO, ONE]), ("assigned", [ZERO, ONE])]
    assert consumer.group_metadata().member_id == member_id, "the member keeps the id that it chose"
    consumer.close()


@pytest.mark.parametrize(
    ("code", "asks_again"),
    [
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, False),
        (ErrorCode.NOT_COORDINATOR, True),
        (ErrorCode.COORDINATOR_NOT_AVAILABLE, True),
    ],
)
def test_a_coordinator_in_trouble_is_tried_again_with_everything(
    cluster: FaultyCluster, code: int, asks_again: bool
) -> None:
    consumer, report = joined(cluster)
    cluster.refuse(ConsumerGroupHeartbeatRequest, code, 2)
    sent = len(beats(cluster))
    consumer.poll(7_000)
    assert len(beats(cluster)) - sent >= 3
    assert (len(cluster.of_kind(FindCoordinatorRequest)) > 1) == asks_again
    after = beats(cluster)[sent + 2]
    assert after.subscribed_topic_names == ["t"]
    assert after.topic_partitions
    assert len(report.calls) == 1
    consumer.close()


@pytest.mark.parametrize(
    "name",
    [
        "GROUP_AUTHORIZATION_FAILED",
        "INVALID_REQUEST",
        "GROUP_MAX_SIZE_REACHED",
        "UNSUPPORTED_ASSIGNOR",
        "UNRELEASED_INSTANCE_ID",
        "FENCED_INSTANCE_ID",
        "UNSUPPORTED_VERSION",
    ],
)
def test_a_refusal_for_good_is_raised(cluster: FaultyCluster, name: str) -> None:
    code = getattr(ErrorCode, name)
    cluster.refuse(ConsumerGroupHeartbeatRequest, code, error_message="the broker's words")
    with member(cluster) as consumer:
        consumer.subscribe(["t"])
        with pytest.raises(type(error_for(code)), match="the broker's words"):
            consumer.poll(1_000)
        poll_until(lambda: len(consumer.assignment()) == 2, consumer)


def test_what_is_taken_away_is_committed_first(cluster: FaultyCluster) -> None:
    first, report = joined(cluster, auto_commit_interval_ms=1_000_000)
    second = member(cluster)
    second.subscribe(["t"])
    assert poll_until(lambda: len(second.assignment()) == 1, first, second) == []
    (gone,) = second.assignment()
    assert report.calls[1:] == [("revoked", [gone]), ("assigned", [])]
    assert second.committed([gone]) == {gone: OffsetAndMetadata(5, "", 0)}
    first.close()
    poll_until(lambda: len(second.assignment()) == 2, second)
    second.close()


def test_nothing_is_read_while_the_last_commit_is_under_way(cluster: FaultyCluster) -> None:
    first, report = joined(cluster, auto_commit_interval_ms=1_000_000)
    second = member(cluster)
    second.subscribe(["t"])
    answer = cluster.silence(OffsetCommitRequest)
    poll_until(lambda: bool(cluster.of_kind(OffsetCommitRequest)), first, second)
    with cluster.cluster.producer() as producer:
        for partition in range(2):
            producer.send("t", b"new", partition=partition).result()
    seen = [record.partition for _ in range(20) for record in first.poll(10)]
    assert len(set(seen)) <= 1
    assert len(report.calls) == 1
    answer()
    for consumer in (first, second):
        consumer.close(timeout=0.1)


def test_topics_that_are_not_known_yet_are_waited_for(cluster: FaultyCluster) -> None:
    consumer, report = joined(cluster)
    ghost = bytes(range(16))
    known = cluster.cluster.broker().core.controller.image.topics_by_name["t"].topic_id

    def assign_ghost(request: ConsumerGroupHeartbeatRequest) -> ConsumerGroupHeartbeatResponse:
        return ConsumerGroupHeartbeatResponse(
            member_id=request.member_id,
            member_epoch=request.member_epoch,
            heartbeat_interval_ms=5_000,
            assignment=Assignment(
                topic_partitions=[
                    TopicPartitions(topic_id=known, partitions=[1]),
                    TopicPartitions(topic_id=ghost, partitions=[0]),
                ]
            ),
        )

    cluster.answer(ConsumerGroupHeartbeatRequest, assign_ghost)
    poll_until(lambda: consumer.assignment() == {ONE}, consumer)
    assert report.calls[1:3] == [("revoked", [ZERO]), ("assigned", [])]
    consumer.close()


def test_who_does_not_poll_leaves_and_joins_again(cluster: FaultyCluster) -> None:
    consumer, report = joined(cluster, max_poll_interval_ms=20_000)
    cluster.pass_time(19_000)
    assert beats(cluster)[-1].member_epoch > 0
    cluster.pass_time(2_000)
    assert beats(cluster)[-1].member_epoch == LEAVE
    sent = len(beats(cluster))
    cluster.pass_time(30_000)
    assert len(beats(cluster)) == sent
    with pytest.raises(CommitFailed):
        consumer.commit({ZERO: 1})
    poll_until(lambda: len(report.calls) == 3, consumer)
    assert report.calls[1:] == [("lost", [ZERO, ONE]), ("assigned", [ZERO, ONE])]
    consumer.close()


def test_a_member_whose_user_works_stays_one(cluster: FaultyCluster) -> None:
    consumer, report = joined(cluster)
    epoch = consumer.group_metadata().generation_id
    cluster.pass_time(200_000)
    consumer.poll(0)
    assert consumer.group_metadata().generation_id == epoch
    assert len(report.calls) == 1
    consumer.close()


@pytest.mark.parametrize(
    ("instance", "operation", "epoch"),
    [
        (None, CloseOptions.DEFAULT, LEAVE),
        (None, CloseOptions.LEAVE_GROUP, LEAVE),
        (None, CloseOptions.REMAIN_IN_GROUP, None),
        ("i", CloseOptions.DEFAULT, LEAVE_FOR_A_WHILE),
        ("i", CloseOptions.LEAVE_GROUP, LEAVE),
        ("i", CloseOptions.REMAIN_IN_GROUP, LEAVE_FOR_A_WHILE),
    ],
)
def test_closing_says_whether_it_is_for_good(
    cluster: FaultyCluster, instance: str | None, operation: int, epoch: int | None
) -> None:
    consumer, report = joined(cluster, group_instance_id=instance)
    sent = len(beats(cluster))
    consumer.close(membership=operation)
    assert [each.member_epoch for each in beats(cluster)[sent:]] == [epoch] * (epoch is not None)
    assert report.calls[-1] == ("revoked", [ZERO, ONE])


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (ErrorCode.UNKNOWN_MEMBER_ID, CommitFailed),
        (ErrorCode.FENCED_INSTANCE_ID, errors.FencedInstanceId),
    ],
)
def test_a_commit_of_one_who_is_no_member_fails(
    cluster: FaultyCluster, code: int, kind: type[Exception]
) -> None:
    from tests.client.consumer.group.test_commits import refuse_commit

    consumer, _ = joined(cluster, enable_auto_commit=False)
    refuse_commit(cluster, code)
    with pytest.raises(kind):
        consumer.commit()
    consumer.commit()
    assert cluster.of_kind(OffsetCommitRequest)[-1].generation_id_or_member_epoch > 0
    consumer.close()


def test_a_commit_with_a_stale_epoch_is_tried_again(cluster: FaultyCluster) -> None:
    from tests.client.consumer.group.test_commits import refuse_commit

    consumer, _ = joined(cluster, enable_auto_commit=False)
    refuse_commit(cluster, ErrorCode.STALE_MEMBER_EPOCH, 2)
    consumer.commit()
    assert len(cluster.of_kind(OffsetCommitRequest)) == 3
    consumer.enforce_rebalance()
    consumer.close()


def test_buffered_records_of_a_partition_that_is_given_up_are_not_handed_out(
    cluster: FaultyCluster,
) -> None:
    with cluster.cluster.producer() as producer:
        for partition in range(2):
            producer.send_batch("t", [b"more"] * 500, partition=partition).result()
    first, second = member(cluster, max_poll_records=1), member(cluster)
    first.subscribe(["t"])
    poll_until(lambda: first.assignment() == {ZERO, ONE}, first)
    answer = cluster.silence(OffsetCommitRequest)
    second.subscribe(["t"])
    poll_until(lambda: bool(cluster.of_kind(OffsetCommitRequest)), first, second)
    found = first.poll(0, max_records=2_000)
    assert len({record.partition for record in found}) == 1
    answer()
    for consumer in (first, second):
        consumer.close(timeout=0.1)


def test_a_member_that_left_before_its_first_answer_says_so(cluster: FaultyCluster) -> None:
    late = HeldAnswers(cluster)
    consumer = member(cluster)
    late.hold(ConsumerGroupHeartbeatRequest)
    consumer.subscribe(["t"])
    poll_until(lambda: bool(late.held), consumer)
    consumer.unsubscribe()
    assert beats(cluster)[-1].member_epoch == LEAVE
    consumer.close()


def test_a_member_that_joins_again_does_not_wait_for_an_answer_of_before(
    cluster: FaultyCluster,
) -> None:
    late = HeldAnswers(cluster)
    consumer, _ = joined(cluster)
    late.hold(ConsumerGroupHeartbeatRequest)
    poll_until(lambda: bool(late.held), consumer)
    consumer.unsubscribe()
    consumer.subscribe(["u"])
    consumer.poll(0)
    told = [(each.member_epoch, each.subscribed_topic_names) for each in beats(cluster)]
    assert (0, ["u"]) in told
    consumer.close()


def test_a_member_that_gave_partitions_up_tells_the_broker_at_once(cluster: FaultyCluster) -> None:
    first, _ = joined(cluster)
    second = member(cluster)
    second.subscribe(["t"])
    poll_until(lambda: len(first.assignment()) == 1, first, second)
    began_ms = cluster.runtime.clock.monotonic_ms()
    first.poll(0)
    told = beats(cluster)[-1].topic_partitions
    assert told is not None
    assert sum(len(each.partitions) for each in told) == 1
    assert cluster.runtime.clock.monotonic_ms() - began_ms < 1_000
    for consumer in (first, second):
        consumer.close()
