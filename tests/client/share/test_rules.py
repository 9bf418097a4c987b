"""The client's own rules, against a broker whose answers the test scripts."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from embedlog import (
    AcknowledgeType,
    ClosedError,
    ConfigError,
    IllegalState,
    RecordUnreadable,
    ShareConsumer,
    TopicPartition,
    WakeupError,
    errors,
)
from embedlog.client.errors import ConcurrentUse
from embedlog.runtime.pending import Pending
from tests.client.scripted_broker import PASS
from tests.client.share.places import EXPLICIT
from tests.client.share.scripted_share_broker import INTERVAL_MS, LOCK_MS, ScriptedShareBroker
from wire.error_codes import ErrorCode
from wire.schemas import share_acknowledge, share_fetch, share_group_heartbeat
from wire.schemas.find_coordinator import FindCoordinatorRequest
from wire.schemas.metadata import MetadataRequest
from wire.schemas.share_acknowledge import ShareAcknowledgeRequest
from wire.schemas.share_fetch import ShareFetchRequest
from wire.schemas.share_group_heartbeat import ShareGroupHeartbeatRequest

HERE = TopicPartition("jobs", 0)
RELEASE, REJECT, RENEW = AcknowledgeType.RELEASE, AcknowledgeType.REJECT, AcknowledgeType.RENEW
GAP = 0


def broker_with(*values: bytes, partitions: int = 1) -> ScriptedShareBroker:
    broker = ScriptedShareBroker({"jobs": partitions, "more": 1})
    if values:
        broker.write("jobs", *values)
    return broker


def consumer_of(
    broker: ScriptedShareBroker, *settings: dict[str, Any], **more: Any
) -> ShareConsumer:
    chosen: dict[str, Any] = {"group.id": "workers"}
    for each in settings:
        chosen.update(each)
    consumer = ShareConsumer(broker.transport(), chosen, **more)
    consumer.subscribe(["jobs"])
    return consumer


def answer_once(broker: ScriptedShareBroker, kind: type[Any], response: Any) -> None:
    """Answer the next request of a kind with `response`."""

    def fault(request: Any) -> Any:
        if not isinstance(request, kind):
            return PASS
        broker.faults.remove(fault)
        return response

    broker.faults.append(fault)


def pass_time(broker: ScriptedShareBroker, milliseconds: int) -> None:
    broker.runtime.clock.advance(milliseconds)  # type: ignore[attr-defined]


def sent(broker: ScriptedShareBroker, kind: type[Any]) -> Any:
    """Return the only request of a kind, and forget all requests."""
    (found,) = broker.of_kind(kind)
    broker.requests.clear()
    return found


def batches(request: Any) -> list[tuple[int, int, list[int]]]:
    return [
        (batch.first_offset, batch.last_offset, batch.acknowledge_types)
        for topic in request.topics
        for each in topic.partitions
        for batch in each.acknowledgement_batches
    ]


# Settings and arguments


@pytest.mark.parametrize(
    "setting",
    [
        {"auto_offset_reset": "earliest"},
        {"enable_auto_commit": True},
        {"group_instance_id": "one"},
        {"isolation_level": "read_committed"},
        {"partition_assignment_strategy": "range"},
        {"interceptor_classes": []},
        {"session_timeout_ms": 1},
        {"heartbeat_interval_ms": 1},
        {"group_protocol": "consumer"},
        {"group_remote_assignor": "uniform"},
        {"group_id": ""},
        {"share_acknowledgement_mode": "manual"},
        {"share_acquire_mode": "all"},
    ],
    ids=lambda setting: next(iter(setting)),
)
def test_settings_of_other_consumers_are_refused(setting: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(setting)).replace("_", ".")):
        ShareConsumer(broker_with().transport(), {"group.id": "workers"}, **setting)


def test_a_group_is_needed() -> None:
    with pytest.raises(ConfigError, match=r"group\.id"):
        ShareConsumer(broker_with().transport())


def test_wrong_arguments_are_refused() -> None:
    broker = broker_with(b"a")
    with consumer_of(broker, EXPLICIT) as consumer:
        (record,) = consumer.poll(0)
        for wrong in (0, 5, True, "ACCEPT"):
            with pytest.raises(ValueError, match="AcknowledgeType"):
                consumer.acknowledge(record, wrong)  # type: ignore[arg-type]
        with pytest.raises(TypeError):
            consumer.acknowledge(b"a")  # type: ignore[arg-type]
        with pytest.raises(TypeError):
            consumer.subscribe("jobs")
        with pytest.raises(TypeError):
            consumer.poll("soon")  # type: ignore[arg-type]
        with pytest.raises(TypeError):
            consumer.set_acknowledgement_commit_callback(3)  # type: ignore[arg-type]


def test_the_implicit_mode_takes_no_acknowledgements() -> None:
    broker = broker_with(b"a")
    with consumer_of(broker) as consumer:
        (record,) = consumer.poll(0)
        with pytest.raises(IllegalState, match="explicit"):
            consumer.acknowledge(record)
        with pytest.raises(IllegalState, match="explicit"):
            consumer.acknowledge_offset(HERE, 0)


def test_a_closed_consumer_refuses_calls() -> None:
    consumer = consumer_of(broker_with())
    consumer.close()
    consumer.close()
    for call in (consumer.poll, consumer.commit_sync, consumer.subscription):
        with pytest.raises(ClosedError):
            call()
    assert "closed" in repr(consumer)


def test_one_thread_at_a_time_may_use_it() -> None:
    broker = broker_with()
    raised: list[BaseException] = []
    with consumer_of(broker) as consumer:

        def use(_request: Any) -> Any:
            def call() -> None:
                try:
                    consumer.poll(0)
                except ConcurrentUse as error:
                    raised.append(error)

            thread = threading.Thread(target=call)
            thread.start()
            thread.join()
            return PASS

        broker.faults.append(use)
        consumer.poll(0)
        broker.faults.clear()
    assert raised


def test_wakeup_before_a_poll_ends_it() -> None:
    with consumer_of(broker_with(b"a")) as consumer:
        consumer.wakeup()
        with pytest.raises(WakeupError):
            consumer.poll(0)
        assert len(consumer.poll(0)) == 1


# Fetching and acknowledging


def test_the_first_fetch_has_the_limits_of_the_settings() -> None:
    broker = broker_with()
    limits = {"max.poll.records": 7, "fetch.min.bytes": 2, "fetch.max.bytes": 99}
    more = {"fetch.max.wait.ms": 11, "share.acquire.mode": "record_limit"}
    with consumer_of(broker, limits, more) as consumer:
        consumer.poll(0)
        first = broker.of_kind(ShareFetchRequest)[0]
    assert (first.max_records, first.batch_size) == (7, 7)
    assert (first.min_bytes, first.max_bytes, first.max_wait_ms) == (2, 99, 11)
    assert first.share_acquire_mode == 1
    assert first.share_session_epoch == 0
    assert not first.is_renew_ack


def test_a_poll_sends_the_acknowledgements_with_its_fetch() -> None:
    broker = broker_with(*[b"%d" % number for number in range(14)])
    with consumer_of(broker) as consumer:
        assert len(consumer.poll(0)) == 14
        assert len(broker.of_kind(ShareFetchRequest)) == 1, "nothing is fetched ahead"
        broker.requests.clear()
        assert not consumer.poll(0)
        fetch = broker.of_kind(ShareFetchRequest)[0]
        assert fetch.share_session_epoch == 1
        assert batches(fetch) == [(0, 13, [1])]
        assert not broker.of_kind(ShareAcknowledgeRequest)


def test_a_late_answer_is_returned_without_another_fetch() -> None:
    broker = broker_with(b"a")
    with consumer_of(broker) as consumer:
        held: Pending[Any] = Pending()
        answer_once(broker, ShareFetchRequest, held)
        assert not consumer.poll(0)
        broker.node_id = 1
        held.complete(broker.answer(broker.of_kind(ShareFetchRequest)[0]))
        assert len(consumer.poll(0)) == 1
        assert len(broker.of_kind(ShareFetchRequest)) == 1


def test_a_session_names_a_partition_once() -> None:
    broker = broker_with()
    with consumer_of(broker) as consumer:
        consumer.poll(0)
        broker.requests.clear()
        consumer.poll(0)
        for fetch in broker.of_kind(ShareFetchRequest):
            assert not fetch.topics
            assert not fetch.forgotten_topics_data


def test_a_partition_that_is_taken_away_is_forgotten() -> None:
    broker = broker_with(b"a", partitions=2)
    with consumer_of(broker) as consumer:
        assert len(consumer.poll(0)) == 1
        broker.assigned = [("jobs", 1)]
        consumer.subscribe(["jobs", "more"])
        consumer.poll(0)
        fetch = broker.of_kind(ShareFetchRequest)[-1]
        assert broker.sessions[1][1] == {("jobs", 1)}
        assert broker.done["jobs", 0] == {0: 1}, "it takes the acknowledgement first"
        assert [each.partitions for each in fetch.forgotten_topics_data] == [[0]]


def test_commit_sync_sends_a_request_of_its_own() -> None:
    broker = broker_with(b"a", b"b")
    with consumer_of(broker) as consumer:
        consumer.poll(0)
        broker.requests.clear()
        assert consumer.commit_sync() == {HERE: None}
        request = sent(broker, ShareAcknowledgeRequest)
        assert request.share_session_epoch == 1
        assert batches(request) == [(0, 1, [1])]
        assert consumer.commit_sync() == {}
        assert not broker.requests
        assert consumer.acquisition_lock_timeout_ms() == LOCK_MS


def test_commit_async_tells_the_callback() -> None:
    broker = broker_with(b"a", b"b")
    told: list[Any] = []
    with consumer_of(broker) as consumer:
        consumer.set_acknowledgement_commit_callback(lambda *outcome: told.append(outcome))
        consumer.poll(0)
        consumer.commit_async()
        assert told == [({HERE: {0, 1}}, None)]


def test_the_callback_cannot_use_the_consumer() -> None:
    broker = broker_with(b"a")
    consumer = consumer_of(broker)
    consumer.set_acknowledgement_commit_callback(lambda *_outcome: consumer.poll(0))
    consumer.poll(0)
    with pytest.raises(IllegalState, match="callback"):
        consumer.commit_sync()
    assert len(consumer.subscription()) == 1
    consumer.close()


def test_an_error_of_the_callback_is_raised_by_the_call() -> None:
    broker = broker_with(b"a")

    def callback(*_outcome: Any) -> None:
        raise KeyError("mine")

    consumer = consumer_of(broker, EXPLICIT)
    consumer.set_acknowledgement_commit_callback(callback)
    (record,) = consumer.poll(0)
    consumer.acknowledge(record)
    with pytest.raises(KeyError):
        consumer.close()
    assert "closed" in repr(consumer)
    assert broker.sessions == {}


def test_renewals_have_a_request_without_a_fetch() -> None:
    broker = broker_with(b"a", b"b")
    with consumer_of(broker, EXPLICIT) as consumer:
        first, second = consumer.poll(0)
        consumer.acknowledge(first, RENEW)
        consumer.acknowledge(second)
        broker.requests.clear()
        assert list(consumer.poll(0)) == [first]
        request = sent(broker, ShareAcknowledgeRequest)
        assert request.is_renew_ack
        assert batches(request) == [(0, 1, [4, 1])]
        assert consumer.metrics()["records-consumed-total"] == 2, "a renewal is no delivery"
        consumer.acknowledge(first)
        assert consumer.commit_sync() == {HERE: None}
        assert not sent(broker, ShareAcknowledgeRequest).is_renew_ack


def test_a_refused_renewal_does_not_bring_the_record_back() -> None:
    broker = broker_with(b"a")
    with consumer_of(broker, EXPLICIT) as consumer:
        (record,) = consumer.poll(0)
        consumer.acknowledge(record, RENEW)
        broker.locked["jobs", 0] = set()
        (error,) = consumer.commit_sync().values()
        assert isinstance(error, errors.InvalidRecordState)
        with pytest.raises(IllegalState):
            consumer.acknowledge(record)


def test_nothing_is_fetched_while_a_renewal_is_under_way() -> None:
    broker = broker_with(b"a", partitions=2)
    broker.leaders["jobs", 1] = 2
    with consumer_of(broker, EXPLICIT) as consumer:
        (record,) = consumer.poll(0)
        consumer.acknowledge(record, RENEW)
        held: Pending[Any] = Pending()
        answer_once(broker, ShareAcknowledgeRequest, held)
        broker.requests.clear()
        assert not consumer.poll(0)
        assert not broker.of_kind(ShareFetchRequest)
        held.complete(broker.answer(broker.of_kind(ShareAcknowledgeRequest)[0]))
        assert list(consumer.poll(0)) == [record]
        consumer.acknowledge(record)


def test_offsets_without_a_record_are_gaps() -> None:
    broker = broker_with(b"a", b"b")
    broker.write_marker("jobs")
    broker.write("jobs", b"d")
    told: list[Any] = []
    with consumer_of(broker, EXPLICIT) as consumer:
        consumer.set_acknowledgement_commit_callback(lambda *outcome: told.append(outcome))
        records = consumer.poll(0)
        assert [record.offset for record in records] == [0, 1, 3]
        for record in records:
            consumer.acknowledge(record)
        broker.requests.clear()
        assert consumer.commit_sync() == {HERE: None}
        assert batches(sent(broker, ShareAcknowledgeRequest)) == [(0, 3, [1, 1, GAP, 1])]
        assert told == [({HERE: {0, 1, 3}}, None)], "the callback hears only of records"


def test_a_poll_goes_on_after_an_answer_with_gaps_only() -> None:
    broker = broker_with()
    broker.write_marker("jobs")
    with consumer_of(broker) as consumer:
        assert not consumer.poll(0)
        broker.write("jobs", b"b")
        assert [record.offset for record in consumer.poll(0)] == [1]
        assert broker.done["jobs", 0] == {0: GAP}


def test_only_acquired_records_are_returned() -> None:
    broker = broker_with(*[b"%d" % number for number in range(6)])
    broker.done["jobs", 0] = {0: 1, 2: 1, 5: 3}
    with consumer_of(broker) as consumer:
        assert [record.value for record in consumer.poll(0)] == [b"1", b"3", b"4"]


def test_a_damaged_batch_is_rejected_and_the_next_poll_goes_on() -> None:
    broker = broker_with(b"first", b"second")
    broken = bytearray(broker.logs["jobs", 0][0])
    broken[-1] ^= 1
    broker.logs["jobs", 0][0] = bytes(broken)
    broker.write("jobs", b"third")
    with consumer_of(broker) as consumer:
        with pytest.raises(RecordUnreadable, match="REJECT") as raised:
            consumer.poll(0)
        assert raised.value.offset == 0
        assert [record.value for record in consumer.poll(0)] == [b"third"]
        assert consumer.commit_sync() == {HERE: None}
        assert broker.done["jobs", 0] == {0: REJECT, 1: REJECT, 2: 1}


def test_check_crcs_may_be_off() -> None:
    broker = broker_with(b"first")
    broken = bytearray(broker.logs["jobs", 0][0])
    broken[-2] ^= 1
    broker.logs["jobs", 0][0] = bytes(broken)
    with consumer_of(broker, check_crcs=False) as consumer:
        assert len(consumer.poll(0)) == 1


def test_a_refused_record_is_released_unless_the_user_says_otherwise() -> None:
    broker = broker_with(b"1", b"bad", b"3")
    with consumer_of(broker, EXPLICIT, value_deserializer=int) as consumer:
        (first,) = consumer.poll(0)
        consumer.acknowledge(first)
        with pytest.raises(RecordUnreadable, match="int"):
            consumer.poll(0)
        consumer.acknowledge_offset(HERE, 1, REJECT)
        (third,) = consumer.poll(0)
        assert third.value == 3
        consumer.acknowledge(third)
        consumer.commit_sync()
        assert broker.done["jobs", 0] == {0: 1, 1: REJECT, 2: 1}


def test_the_implicit_mode_does_not_accept_a_refused_record() -> None:
    broker = broker_with(b"1", b"bad")
    with consumer_of(broker, value_deserializer=int) as consumer:
        consumer.poll(0)
        with pytest.raises(RecordUnreadable):
            consumer.poll(0)
        assert consumer.commit_sync() == {HERE: None}
        assert broker.done["jobs", 0] == {0: 1, 1: RELEASE}


# Errors of acknowledgements


def refuse(broker: ScriptedShareBroker, code: int) -> None:
    data = share_acknowledge.PartitionData(error_code=code)
    topic = share_acknowledge.ShareAcknowledgeTopicResponse(
        topic_id=broker.ids["jobs"], partitions=[data]
    )
    response = share_acknowledge.ShareAcknowledgeResponse(responses=[topic])

    def fault(request: Any) -> Any:
        if not isinstance(request, ShareAcknowledgeRequest):
            return PASS
        broker.faults.remove(fault)
        assert not broker.session_error(request.share_session_epoch)
        return response

    broker.faults.append(fault)


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INVALID_RECORD_STATE,
        ErrorCode.INVALID_REQUEST,
    ],
)
def test_these_errors_end_an_acknowledgement(code: int) -> None:
    broker = broker_with(b"a")
    with consumer_of(broker) as consumer:
        consumer.poll(0)
        refuse(broker, code)
        (error,) = consumer.commit_sync().values()
        assert error is not None
        assert error.code == code
        assert len(broker.of_kind(ShareAcknowledgeRequest)) == 1
        assert consumer.metrics()["acknowledgements-error-total"] == 1


@pytest.mark.parametrize(
    "code", [ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS]
)
def test_a_passing_error_is_retried_within_the_commit(code: int) -> None:
    broker = broker_with(b"a")
    told: list[Any] = []
    with consumer_of(broker) as consumer:
        consumer.set_acknowledgement_commit_callback(lambda *outcome: told.append(outcome))
        consumer.poll(0)
        refuse(broker, code)
        assert consumer.commit_sync() == {HERE: None}
        assert len(broker.of_kind(ShareAcknowledgeRequest)) == 2
        assert told == [({HERE: {0}}, None)], "the callback hears of the last attempt only"


def test_a_commit_that_runs_out_of_time_says_so() -> None:
    broker = broker_with(b"a")
    with consumer_of(broker) as consumer:
        consumer.poll(0)
        refuse(broker, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        (error,) = consumer.commit_sync(timeout_ms=1).values()
        assert isinstance(error, errors.RequestTimedOut)
        assert "CoordinatorNotAvailable" in str(error)


def test_an_answer_that_omits_the_partition_is_an_error() -> None:
    broker = broker_with(b"a")
    with consumer_of(broker) as consumer:
        consumer.poll(0)
        answer_once(broker, ShareAcknowledgeRequest, share_acknowledge.ShareAcknowledgeResponse())
        (error,) = consumer.commit_sync().values()
        assert isinstance(error, errors.InvalidRecordState)


@pytest.mark.parametrize(
    "code", [ErrorCode.SHARE_SESSION_NOT_FOUND, ErrorCode.INVALID_SHARE_SESSION_EPOCH]
)
def test_a_lost_session_fails_its_acknowledgements_and_is_opened_again(code: int) -> None:
    broker = broker_with(b"a")
    told: list[Any] = []
    with consumer_of(broker) as consumer:
        consumer.set_acknowledgement_commit_callback(lambda *outcome: told.append(outcome))
        consumer.poll(0)
        broker.sessions.clear()
        answer_once(broker, ShareFetchRequest, share_fetch.ShareFetchResponse(error_code=code))
        broker.write("jobs", b"b")
        assert not consumer.poll(0)
        assert [record.value for record in consumer.poll(0)] == [b"b"]
        ((offsets, error),) = told
        assert offsets == {HERE: {0}}
        assert error.code == code
        assert broker.of_kind(ShareFetchRequest)[-1].share_session_epoch == 0


def test_a_broken_connection_fails_the_acknowledgements_and_opens_a_session() -> None:
    broker = broker_with(b"a")
    with consumer_of(broker) as consumer:
        consumer.poll(0)
        broken: Pending[Any] = Pending()
        broken.fail(errors.Network("cut"))
        answer_once(broker, ShareAcknowledgeRequest, broken)
        (error,) = consumer.commit_sync().values()
        assert isinstance(error, errors.Network)
        broker.write("jobs", b"b")
        pass_time(broker, 10_000)
        assert [record.value for record in consumer.poll(0)] == [b"b"]
        assert broker.of_kind(ShareFetchRequest)[-1].share_session_epoch == 0


def test_an_acknowledgement_without_a_session_fails_without_a_request() -> None:
    broker = broker_with(b"a", b"b")
    with consumer_of(broker, EXPLICIT) as consumer:
        first, second = consumer.poll(0)
        consumer.acknowledge(first)
        broken: Pending[Any] = Pending()
        broken.fail(errors.Network("cut"))
        answer_once(broker, ShareAcknowledgeRequest, broken)
        consumer.commit_sync()
        consumer.acknowledge(second)
        broker.requests.clear()
        (error,) = consumer.commit_sync().values()
        assert isinstance(error, errors.NotLeaderOrFollower)
        assert not broker.of_kind(ShareAcknowledgeRequest)


def test_a_full_broker_is_asked_again_after_a_pause() -> None:
    broker = broker_with(b"a")
    full = share_fetch.ShareFetchResponse(error_code=ErrorCode.SHARE_SESSION_LIMIT_REACHED)
    answer_once(broker, ShareFetchRequest, full)
    with consumer_of(broker) as consumer:
        assert not consumer.poll(0)
        assert len(broker.of_kind(ShareFetchRequest)) == 1
        pass_time(broker, 1_000)
        assert len(consumer.poll(0)) == 1


def test_a_refused_group_is_an_error_of_the_poll() -> None:
    broker = broker_with(b"a")
    refused = share_fetch.ShareFetchResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    answer_once(broker, ShareFetchRequest, refused)
    with consumer_of(broker) as consumer:
        with pytest.raises(errors.GroupAuthorizationFailed):
            consumer.poll(0)
        pass_time(broker, 1_000)
        assert len(consumer.poll(0)) == 1


# Leaders


def test_records_of_two_leaders_are_acknowledged_to_each() -> None:
    broker = broker_with(b"a", partitions=2)
    broker.write("jobs", b"b", partition=1)
    broker.leaders["jobs", 1] = 2
    with consumer_of(broker) as consumer:
        found = list(consumer.poll(0))
        if len(found) < 2:
            found += consumer.poll(0)
        assert sorted(record.value for record in found) == [b"a", b"b"]
        consumer.commit_sync()
        assert broker.done == {("jobs", 0): {0: 1}, ("jobs", 1): {0: 1}}
        assert broker.sessions.keys() == {1, 2}
    assert broker.sessions == {}


def test_record_limit_fetches_from_one_leader_at_a_time() -> None:
    broker = broker_with(b"a", partitions=2)
    broker.write("jobs", b"b", partition=1)
    broker.leaders["jobs", 1] = 2
    with consumer_of(broker, share_acquire_mode="record_limit") as consumer:
        assert [record.value for record in consumer.poll(0)] == [b"a"]
        assert broker.sessions.keys() == {1}
        assert [record.value for record in consumer.poll(0)] == [b"b"]
        assert broker.done["jobs", 0] == {0: 1}, "the other leader got the acknowledgement"


def test_a_named_leader_is_asked_at_once() -> None:
    broker = broker_with()
    data = share_fetch.PartitionData(
        error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER,
        current_leader=share_fetch.LeaderIdAndEpoch(leader_id=2, leader_epoch=5),
        records=memoryview(b""),
    )
    moved = share_fetch.ShareFetchResponse(
        responses=[
            share_fetch.ShareFetchableTopicResponse(topic_id=broker.ids["jobs"], partitions=[data])
        ],
        node_endpoints=[share_fetch.NodeEndpoint(node_id=2, host="localhost", port=9093)],
    )
    with consumer_of(broker) as consumer:
        consumer.poll(0)
        answer_once(broker, ShareFetchRequest, moved)
        answer_once(broker, MetadataRequest, Pending())  # only the answer names the leader
        broker.write("jobs", b"a")
        assert not consumer.poll(0)
        assert [record.value for record in consumer.poll(0)] == [b"a"]
        assert broker.sessions[2][1] == {("jobs", 0)}


def test_acknowledgements_for_a_former_leader_fail_without_a_request() -> None:
    broker = broker_with(b"a")
    with consumer_of(broker) as consumer:
        consumer.poll(0)
        broker.leaders["jobs", 0] = 2
        broker.leader_epoch = 1
        pass_time(broker, 400_000)  # metadata.max.age.ms
        broker.requests.clear()
        (error,) = consumer.commit_sync().values()
        assert isinstance(error, errors.NotLeaderOrFollower)
        assert not broker.of_kind(ShareAcknowledgeRequest)


# The group


def test_names_are_sent_only_on_joining_and_changes() -> None:
    broker = broker_with()
    with consumer_of(broker) as consumer:
        consumer.poll(0)
        pass_time(broker, INTERVAL_MS)
        consumer.poll(0)
        consumer.subscribe(["jobs", "more"])
        consumer.poll(0)
        told = [
            (each.member_epoch, each.subscribed_topic_names)
            for each in broker.of_kind(ShareGroupHeartbeatRequest)
        ]
    assert told[0] == (0, ["jobs"])
    assert told[-1] == (1, ["jobs", "more"])
    assert all(names is None for _, names in told[1:-1])
    last = broker.of_kind(ShareGroupHeartbeatRequest)[-1]
    assert (last.member_epoch, last.subscribed_topic_names) == (-1, [])


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.FENCED_MEMBER_EPOCH,
        ErrorCode.GROUP_ID_NOT_FOUND,
    ],
)
def test_a_removed_member_joins_again_with_its_id(code: int) -> None:
    broker = broker_with(b"a")
    with consumer_of(broker) as consumer:
        assert len(consumer.poll(0)) == 1
        pass_time(broker, INTERVAL_MS)
        removed = share_group_heartbeat.ShareGroupHeartbeatResponse(error_code=code)
        answer_once(broker, ShareGroupHeartbeatRequest, removed)
        broker.requests.clear()
        consumer.poll(0)
        broker.write("jobs", b"b")
        found = list(consumer.poll(0)) or list(consumer.poll(0))
        assert [record.value for record in found] == [b"b"]
        beats = broker.of_kind(ShareGroupHeartbeatRequest)
        assert beats[-1].member_epoch == 0
        assert len({each.member_id for each in beats}) == 1


def test_a_full_group_is_an_error_of_the_poll() -> None:
    broker = broker_with(b"a")
    code = ErrorCode.GROUP_MAX_SIZE_REACHED
    full = share_group_heartbeat.ShareGroupHeartbeatResponse(error_code=code)
    answer_once(broker, ShareGroupHeartbeatRequest, full)
    with consumer_of(broker) as consumer:
        with pytest.raises(errors.GroupMaxSizeReached):
            for _ in range(3):
                consumer.poll(0)
        assert len(consumer.poll(0)) == 1


def test_a_coordinator_that_has_moved_is_looked_up_again() -> None:
    broker = broker_with(b"a")
    code = ErrorCode.NOT_COORDINATOR
    moved = share_group_heartbeat.ShareGroupHeartbeatResponse(error_code=code)
    answer_once(broker, ShareGroupHeartbeatRequest, moved)
    with consumer_of(broker) as consumer:
        consumer.poll(0)
        pass_time(broker, 1_000)
        assert len(consumer.poll(0)) == 1
        assert len(broker.of_kind(FindCoordinatorRequest)) == 2


def test_a_member_without_partitions_asks_again_soon() -> None:
    broker = broker_with(b"a")
    broker.assigned = []
    with consumer_of(broker) as consumer:
        consumer.poll(0)
        before = len(broker.of_kind(ShareGroupHeartbeatRequest))
        pass_time(broker, 60)
        consumer.poll(0)
        assert len(broker.of_kind(ShareGroupHeartbeatRequest)) > before


def test_a_member_that_is_not_polled_leaves() -> None:
    broker = broker_with(b"a")
    with consumer_of(broker, max_poll_interval_ms=10_000) as consumer:
        consumer.poll(0)
        pass_time(broker, 10_001)
        broker.runtime.scheduler.drive()
        assert broker.of_kind(ShareGroupHeartbeatRequest)[-1].member_epoch == -1
        broker.write("jobs", b"b")
        found = list(consumer.poll(0)) or list(consumer.poll(0))
        assert [record.value for record in found] == [b"b"]


def test_close_ends_the_sessions_before_it_leaves() -> None:
    broker = broker_with(b"a", b"b")
    consumer = consumer_of(broker, EXPLICIT)
    first, _ = consumer.poll(0)
    consumer.acknowledge(first)
    broker.requests.clear()
    consumer.close()
    acknowledged, left = broker.requests
    assert acknowledged.share_session_epoch == -1
    assert batches(acknowledged) == [(0, 0, [1])]
    assert (left.member_epoch, left.subscribed_topic_names) == (-1, [])
    assert broker.done["jobs", 0] == {0: 1}
    assert broker.locked["jobs", 0] == set()


def test_close_waits_for_acknowledgements_that_are_under_way() -> None:
    broker = broker_with(b"a")
    told: list[Any] = []
    consumer = consumer_of(broker)
    consumer.set_acknowledgement_commit_callback(lambda *outcome: told.append(outcome))
    consumer.poll(0)
    held: Pending[Any] = Pending()
    answer_once(broker, ShareFetchRequest, held)
    assert not consumer.poll(0)
    broker.node_id = 1
    answer = broker.answer(broker.of_kind(ShareFetchRequest)[-1])

    class Later:
        """Answers the fetch while somebody waits."""

        due_ms = broker.runtime.clock.monotonic_ms() + 100

        def run_once(self, now_ms: int) -> int | None:
            if now_ms < self.due_ms:
                return self.due_ms - now_ms
            held.complete(answer)
            broker.runtime.scheduler.remove(self)
            return None

    later = Later()
    broker.runtime.scheduler.add(later)
    consumer.close()
    assert told == [({HERE: {0}}, None)]


def test_close_ends_a_session_that_is_being_opened() -> None:
    broker = broker_with(b"a")
    consumer = consumer_of(broker)
    answer_once(broker, ShareFetchRequest, Pending())
    assert not consumer.poll(0)
    answer_once(broker, ShareAcknowledgeRequest, share_acknowledge.ShareAcknowledgeResponse())
    consumer.close()
    assert broker.of_kind(ShareAcknowledgeRequest)[0].share_session_epoch == -1


def test_records_that_arrive_for_a_lost_partition_are_released() -> None:
    broker = broker_with(b"a", partitions=2)
    with consumer_of(broker) as consumer:
        held: Pending[Any] = Pending()
        answer_once(broker, ShareFetchRequest, held)
        consumer.poll(0)
        broker.assigned = [("jobs", 1)]
        consumer.subscribe(["jobs", "more"])
        consumer.poll(0)
        broker.node_id = 1
        held.complete(broker.answer(broker.of_kind(ShareFetchRequest)[0]))
        assert not consumer.poll(0)
        consumer.poll(0)
        assert broker.done["jobs", 0] == {0: RELEASE}
