"""Commits and committed offsets for every answer of the coordinator, in simulated time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from embedlog import Consumer, TopicPartition, errors
from embedlog.client.consumer.group.group_offsets import ConsumerGroupMetadata, OffsetAndMetadata
from embedlog.client.errors import CommitFailed, RetriableCommitFailed, WakeupError
from embedlog.errors import TimedOut, error_for
from tests.client.faulty_cluster import PASS, FaultyCluster, faulty_cluster, poll_until
from wire.error_codes import ErrorCode
from wire.schemas.find_coordinator import FindCoordinatorRequest
from wire.schemas.join_group import JoinGroupRequest
from wire.schemas.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from wire.schemas.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from wire.schemas.sync_group import SyncGroupRequest

ZERO, ONE = TopicPartition("t", 0), TopicPartition("t", 1)


@pytest.fixture
def cluster() -> Iterator[FaultyCluster]:
    with faulty_cluster(t=2) as made:
        yield made


def joined(cluster: FaultyCluster, **settings: Any) -> Consumer:
    """A single member that has read both partitions to the end."""
    consumer = cluster.member(**{"enable_auto_commit": False, **settings})
    consumer.subscribe(["t"])
    assert len(poll_until(lambda: _is_read(consumer), consumer)) == 10
    return consumer


def _is_read(consumer: Consumer) -> bool:
    return bool(consumer.assignment()) and all(
        consumer.position(each) == 5 for each in consumer.assignment()
    )


def refuse_commit(cluster: FaultyCluster, code: int, count: int = 1) -> None:
    """Answer the next commits with this error for each partition."""

    def answer(request: OffsetCommitRequest) -> OffsetCommitResponse:
        topics = [
            OffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    OffsetCommitResponsePartition(
                        partition_index=each.partition_index, error_code=code
                    )
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ]
        return OffsetCommitResponse(topics=topics)

    cluster.answer(OffsetCommitRequest, answer, count)


def refuse_fetch(
    cluster: FaultyCluster, *, group_code: int = 0, partition_code: int = 0, count: int = 1
) -> None:
    def answer(request: OffsetFetchRequest) -> OffsetFetchResponse:
        (asked,) = request.groups
        topics = [
            OffsetFetchResponseTopics(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    OffsetFetchResponsePartitions(
                        partition_index=number,
                        committed_offset=-1,
                        metadata="",
                        error_code=partition_code,
                    )
                    for number in topic.partition_indexes
                ],
            )
            for topic in asked.topics or []
        ]
        group = OffsetFetchResponseGroup(
            group_id=asked.group_id, topics=[] if group_code else topics, error_code=group_code
        )
        return OffsetFetchResponse(groups=[group])

    cluster.answer(OffsetFetchRequest, answer, count)


# Synchronous


@pytest.mark.parametrize(
    ("code", "asks_again"),
    [
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, False),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, False),
        (ErrorCode.UNKNOWN_TOPIC_ID, False),
        (ErrorCode.NOT_COORDINATOR, True),
        (ErrorCode.COORDINATOR_NOT_AVAILABLE, True),
        (ErrorCode.REQUEST_TIMED_OUT, True),
    ],
)
def test_a_commit_is_retried_while_that_may_help(
    cluster: FaultyCluster, code: int, asks_again: bool
) -> None:
    with joined(cluster) as consumer:
        refuse_commit(cluster, code, 2)
        before = cluster.runtime.clock.monotonic_ms()
        consumer.commit()
        assert cluster.runtime.clock.monotonic_ms() - before >= 200
        assert len(cluster.of_kind(OffsetCommitRequest)) == 3
        assert (len(cluster.of_kind(FindCoordinatorRequest)) > 1) == asks_again
        assert consumer.committed([ZERO]) == {ZERO: OffsetAndMetadata(5, "", 0)}


def test_a_commit_that_is_never_taken_times_out(cluster: FaultyCluster) -> None:
    with joined(cluster, default_api_timeout_ms=3_000) as consumer:
        refuse_commit(cluster, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, 1_000)
        before = cluster.runtime.clock.monotonic_ms()
        with pytest.raises(TimedOut, match="the last error was: CoordinatorLoadInProgress: "):
            consumer.commit()
        assert cluster.runtime.clock.monotonic_ms() - before == 3_000
        with pytest.raises(TimedOut):
            consumer.commit(timeout_ms=500)
        assert cluster.runtime.clock.monotonic_ms() - before == 3_500
        cluster.faults.clear()
        sent = len(cluster.of_kind(OffsetCommitRequest))
        consumer.poll(1_000)
        assert len(cluster.of_kind(OffsetCommitRequest)) == sent, "it was given up"


@pytest.mark.parametrize(
    "name",
    [
        "GROUP_AUTHORIZATION_FAILED",
        "TOPIC_AUTHORIZATION_FAILED",
        "OFFSET_METADATA_TOO_LARGE",
        "INVALID_COMMIT_OFFSET_SIZE",
        "FENCED_INSTANCE_ID",
    ],
)
def test_a_commit_refused_for_good_is_raised(cluster: FaultyCluster, name: str) -> None:
    with joined(cluster) as consumer:
        code = getattr(ErrorCode, name)
        refuse_commit(cluster, code)
        with pytest.raises(type(error_for(code))):
            consumer.commit()
        assert len(cluster.of_kind(OffsetCommitRequest)) == 1


@pytest.mark.parametrize("code", [ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION])
def test_a_commit_of_one_who_is_no_member_fails_and_the_next_poll_joins(
    cluster: FaultyCluster, code: int
) -> None:
    with joined(cluster) as consumer:
        refuse_commit(cluster, code)
        with pytest.raises(CommitFailed, match="gone on without this member"):
            consumer.commit()
        with pytest.raises(CommitFailed, match="not a member"):
            consumer.commit()
        joins = len(cluster.of_kind(JoinGroupRequest))
        poll_until(lambda: len(cluster.of_kind(JoinGroupRequest)) > joins, consumer)
        poll_until(lambda: len(consumer.assignment()) == 2, consumer)
        consumer.commit()


def test_a_commit_while_the_group_rebalances_is_to_be_tried_again(
    cluster: FaultyCluster,
) -> None:
    with joined(cluster) as consumer:
        refuse_commit(cluster, ErrorCode.REBALANCE_IN_PROGRESS)
        joins = len(cluster.of_kind(JoinGroupRequest))
        with pytest.raises(errors.RebalanceInProgress):
            consumer.commit()
        poll_until(lambda: len(cluster.of_kind(JoinGroupRequest)) > joins, consumer)


def test_a_broken_connection_does_not_lose_a_commit(cluster: FaultyCluster) -> None:
    with joined(cluster) as consumer:
        cluster.fail(OffsetCommitRequest, error_for(ErrorCode.NETWORK_EXCEPTION), 2)
        consumer.commit({ZERO: 3})
        assert consumer.committed([ZERO, ONE]) == {ZERO: OffsetAndMetadata(3), ONE: None}


def test_wakeup_ends_a_commit_that_waits(cluster: FaultyCluster) -> None:
    with joined(cluster) as consumer:
        cluster.silence(OffsetCommitRequest)
        consumer.wakeup()
        with pytest.raises(WakeupError):
            consumer.commit()
        cluster.faults.clear()
        consumer.commit()


def test_what_is_committed_can_be_named_in_several_ways(cluster: FaultyCluster) -> None:
    with joined(cluster) as consumer:
        consumer.commit({("t", 0): 2, ONE: OffsetAndMetadata(3, "note", 7)})
        (sent,) = cluster.of_kind(OffsetCommitRequest)
        (topic,) = sent.topics
        assert [
            (each.committed_offset, each.committed_metadata, each.committed_leader_epoch)
            for each in topic.partitions
        ] == [(2, "", -1), (3, "note", 7)]
        assert sent.member_id == consumer.group_metadata().member_id
        assert sent.generation_id_or_member_epoch == 1
        consumer.commit({})
        assert len(cluster.of_kind(OffsetCommitRequest)) == 1
        for wrong in ({ZERO: -1}, {("t",): 1}):
            with pytest.raises((ValueError, TypeError)):
                consumer.commit(wrong)  # type: ignore[arg-type]


# Asynchronous


def test_an_asynchronous_commit_is_not_retried(cluster: FaultyCluster) -> None:
    told: list[Any] = []
    with joined(cluster) as consumer:
        refuse_commit(cluster, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        consumer.commit_async({ZERO: 1}, lambda *news: told.append(news))
        refuse_commit(cluster, ErrorCode.OFFSET_METADATA_TOO_LARGE)
        consumer.commit_async({ZERO: 2}, lambda *news: told.append(news))
        consumer.poll(0)
        assert [type(error) for _, error in told] == [
            RetriableCommitFailed,
            errors.OffsetMetadataTooLarge,
        ]
        assert [offsets[ZERO].offset for offsets, _ in told] == [1, 2]
        assert len(cluster.of_kind(OffsetCommitRequest)) == 2


def test_callbacks_run_in_order_in_the_users_calls(cluster: FaultyCluster) -> None:
    told: list[int] = []
    with joined(cluster) as consumer:
        for number in range(5):
            consumer.commit_async(
                {ZERO: number}, lambda offsets, _error: told.append(offsets[ZERO].offset)
            )
        consumer.commit({ZERO: 5})
        assert told == [0, 1, 2, 3, 4]
        consumer.commit_async({ZERO: 4}, lambda offsets, _error: told.append(99))
    assert told[-1] == 99, "close calls it as well"


def test_a_callback_that_raises_ends_the_poll_and_the_next_is_told(
    cluster: FaultyCluster,
) -> None:
    told: list[Any] = []

    def broken(_offsets: Any, _error: Any) -> None:
        raise ZeroDivisionError

    with joined(cluster) as consumer:
        consumer.commit_async({ZERO: 1}, broken)
        with pytest.raises(ZeroDivisionError) as caught:
            consumer.poll(0)
        (note,) = caught.value.__notes__
        assert note.endswith("<locals>.broken, called for the commit of t-0")
        consumer.commit_async({ZERO: 2}, lambda *news: told.append(news))
        consumer.poll(0)
        assert len(told) == 1


def test_a_commit_waits_for_those_before_it(cluster: FaultyCluster) -> None:
    told: list[Any] = []
    with joined(cluster) as consumer:
        refuse_commit(cluster, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, 1)
        consumer.commit_async({ZERO: 1}, lambda *news: told.append("first"))
        consumer.commit({ZERO: 2})
        told.append("second")
    assert told == ["first", "second"]


# Automatic


def test_positions_are_committed_every_interval_and_on_close(cluster: FaultyCluster) -> None:
    settings = {"enable_auto_commit": True, "auto_commit_interval_ms": 1_000}
    consumer = joined(cluster, max_poll_records=1, **settings)
    sent = len(cluster.of_kind(OffsetCommitRequest))
    consumer.poll(3_500)
    assert len(cluster.of_kind(OffsetCommitRequest)) - sent in {3, 4}
    sent = len(cluster.of_kind(OffsetCommitRequest))
    cluster.pass_time(10_000)
    assert len(cluster.of_kind(OffsetCommitRequest)) == sent, "not while the user works"
    consumer.seek(ZERO, 2)
    consumer.close()
    with cluster.member() as other:
        assert other.committed([ZERO, ONE]) == {
            ZERO: OffsetAndMetadata(2),
            ONE: OffsetAndMetadata(5, "", 0),
        }


def test_the_interval_begins_again_with_a_new_assignment(cluster: FaultyCluster) -> None:
    consumer = joined(cluster, enable_auto_commit=True, auto_commit_interval_ms=5_000)
    consumer.poll(4_000)
    joins = len(cluster.of_kind(SyncGroupRequest))
    consumer.enforce_rebalance()
    poll_until(lambda: len(cluster.of_kind(SyncGroupRequest)) > joins, consumer)
    sent = len(cluster.of_kind(OffsetCommitRequest))
    assert sent == 1, "the commit before the rebalance"
    consumer.poll(4_500)
    assert len(cluster.of_kind(OffsetCommitRequest)) == sent
    consumer.poll(1_000)
    assert len(cluster.of_kind(OffsetCommitRequest)) == sent + 1


def test_only_what_earlier_polls_returned_is_committed(cluster: FaultyCluster) -> None:
    with cluster.member(auto_commit_interval_ms=0, max_poll_records=1) as consumer:
        consumer.assign([ZERO])
        seen = 0
        while seen < 4:
            seen += len(consumer.poll(10))
            committed = consumer.committed([ZERO])[ZERO]
            assert (committed.offset if committed else 0) == max(seen - 1, 0)


def test_an_automatic_commit_that_fails_is_tried_again_soon(cluster: FaultyCluster) -> None:
    settings = {"enable_auto_commit": True, "auto_commit_interval_ms": 5_000}
    consumer = joined(cluster, **settings)
    refuse_commit(cluster, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, 2)
    consumer.poll(5_500)
    assert len(cluster.of_kind(OffsetCommitRequest)) == 3
    cluster.faults.clear()
    refuse_commit(cluster, ErrorCode.UNKNOWN_MEMBER_ID)
    consumer.close()


def test_closing_does_not_wait_longer_than_told_for_a_commit(cluster: FaultyCluster) -> None:
    consumer = joined(cluster, enable_auto_commit=True)
    refuse_commit(cluster, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, 10_000)
    before = cluster.runtime.clock.monotonic_ms()
    consumer.close(timeout=1.5)
    assert cluster.runtime.clock.monotonic_ms() - before == 1_500


# Committed


@pytest.mark.parametrize("name", ["COORDINATOR_LOAD_IN_PROGRESS", "NOT_COORDINATOR"])
def test_committed_offsets_are_asked_for_until_they_come(cluster: FaultyCluster, name: str) -> None:
    with joined(cluster) as consumer:
        consumer.commit()
        refuse_fetch(cluster, group_code=getattr(ErrorCode, name), count=2)
        assert consumer.committed([ONE, ("t", 7)]) == {
            ONE: OffsetAndMetadata(5, "", 0),
            TopicPartition("t", 7): None,
        }
        refuse_fetch(cluster, partition_code=ErrorCode.UNSTABLE_OFFSET_COMMIT, count=2)
        assert consumer.committed([ONE])[ONE] == OffsetAndMetadata(5, "", 0)
        assert cluster.of_kind(OffsetFetchRequest)[-1].require_stable
        with pytest.raises(TimedOut):
            cluster.silence(OffsetFetchRequest)
            consumer.committed([ONE], timeout_ms=500)


def test_committed_offsets_one_may_not_know_are_an_error(cluster: FaultyCluster) -> None:
    with joined(cluster) as consumer:
        refuse_fetch(cluster, group_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
        with pytest.raises(errors.GroupAuthorizationFailed):
            consumer.committed([ONE])
        refuse_fetch(cluster, partition_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        with pytest.raises(errors.TopicAuthorizationFailed):
            consumer.committed([ONE])
        assert consumer.committed([]) == {}


def test_an_old_broker_is_asked_in_its_own_words(cluster: FaultyCluster) -> None:
    """Brokers before 3.0 accept one group for each request."""
    from wire import encode

    cluster.versions |= {8: (0, 9), 9: (0, 7), 10: (0, 3)}
    with cluster.member() as consumer:
        consumer.assign([ZERO])
        assert len(consumer.poll(100)) == 5
        consumer.commit()
    for kind, version in ((FindCoordinatorRequest, 3), (OffsetFetchRequest, 7)):
        assert encode(cluster.of_kind(kind)[0], version)
    assert encode(cluster.of_kind(OffsetCommitRequest)[0], 9)


def test_who_a_consumer_is_survives_a_copy() -> None:
    import pickle

    for value in (
        OffsetAndMetadata(3, "x", 4),
        ConsumerGroupMetadata("g", 3, "m", "i"),
    ):
        assert pickle.loads(pickle.dumps(value)) == value
    assert repr(OffsetAndMetadata(3, "x", 4)) == "OffsetAndMetadata(3, 'x', leader_epoch=4)"
    with pytest.raises(ValueError, match="negative"):
        OffsetAndMetadata(-1)


def test_a_topic_without_a_known_id_is_committed_by_its_name(cluster: FaultyCluster) -> None:
    versions: list[int] = []

    def note(request: Any) -> Any:
        if isinstance(request, OffsetCommitRequest):
            assert cluster.context is not None
            versions.append(cluster.context.api_version)
        return PASS

    cluster.faults.append(note)
    with cluster.member() as consumer:
        consumer.commit({ZERO: 1})
        assert consumer.committed([ZERO]) == {ZERO: OffsetAndMetadata(1)}
    assert versions == [9]


def test_a_commit_that_no_retry_can_store_is_not_sent_again(cluster: FaultyCluster) -> None:
    codes = (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.TOPIC_AUTHORIZATION_FAILED)

    def answer(request: OffsetCommitRequest) -> OffsetCommitResponse:
        (topic,) = request.topics
        partitions = [
            OffsetCommitResponsePartition(partition_index=index, error_code=code)
            for index, code in enumerate(codes)
        ]
        refused = OffsetCommitResponseTopic(
            name=topic.name, topic_id=topic.topic_id, partitions=partitions
        )
        return OffsetCommitResponse(topics=[refused])

    consumer = joined(cluster)
    cluster.answer(OffsetCommitRequest, answer, 100)
    with pytest.raises(errors.TopicAuthorizationFailed):
        consumer.commit()
    assert len(cluster.of_kind(OffsetCommitRequest)) == 1
    consumer.close()


@pytest.mark.parametrize("code", [ErrorCode.STALE_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID])
def test_committed_offsets_are_asked_for_again_with_the_epoch_that_has_come(
    cluster: FaultyCluster, code: int
) -> None:
    refuse_fetch(cluster, group_code=code)
    with cluster.member() as consumer:
        assert consumer.committed([ZERO]) == {ZERO: None}
    assert len(cluster.of_kind(OffsetFetchRequest)) == 2


def test_positions_of_a_deleted_topic_are_left_out_of_automatic_commits(
    cluster: FaultyCluster,
) -> None:
    cluster.cluster.create_topic("gone", 1)
    consumer = cluster.member(metadata_max_age_ms=1_000, allow_auto_create_topics=False)
    consumer.assign([ZERO, ("gone", 0)])
    assert len(poll_until(lambda: consumer.position(("gone", 0)) == 0, consumer)) == 5
    with cluster.cluster.admin() as admin:
        admin.delete_topics(["gone"]).check()
    consumer.poll(4_000)
    cluster.requests.clear()
    consumer.close()
    (request,) = cluster.of_kind(OffsetCommitRequest)
    assert [topic.name for topic in request.topics] == ["t"]
