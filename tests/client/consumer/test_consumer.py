"""The consumer against a broker with scripted faults."""

from __future__ import annotations

import threading
from typing import Any

import pytest

import embedlog
from embedlog import TopicPartition, errors
from embedlog.client.consumer.consumer import Consumer
from embedlog.client.errors import (
    ConcurrentUse,
    IllegalState,
    NoOffsetForPartition,
    RecordUnreadable,
    WakeupError,
)
from embedlog.errors import ClosedError, ConfigError, TimedOut
from embedlog.testing import SimRuntime, sim_runtime
from embedlog.testing.loopback_transport import LoopbackTransport
from tests.client.scripted_broker import PASS, ScriptedBroker
from wire.records import build_batch
from wire.records.legacy_conversion import down_convert
from wire.schemas.fetch import AbortedTransaction, FetchRequest, FetchResponse
from wire.schemas.list_offsets import ListOffsetsRequest
from wire.schemas.metadata import MetadataRequest

HERE = TopicPartition("one", 0)


@pytest.fixture
def runtime() -> SimRuntime:
    return sim_runtime(seed=1)


@pytest.fixture
def broker(runtime: SimRuntime) -> ScriptedBroker:
    return ScriptedBroker({"one": 1, "three": 3}, runtime)


def earliest(broker: ScriptedBroker, **settings: Any) -> Consumer:
    consumer = Consumer(broker.transport(), auto_offset_reset="earliest", **settings)
    consumer.assign([HERE])
    return consumer


def put(broker: ScriptedBroker, *values: bytes, topic: str = "one", **fields: Any) -> None:
    broker.append(topic, 0, build_batch(list(values), timestamps=1000, **fields))


def values(records: Any) -> list[bytes | None]:
    return [record.value for record in records]


def refuse_partition(broker: ScriptedBroker, code: int, count: int) -> None:
    """Answer the next `count` fetches with an error of the partition."""
    left = [count]

    def fault(request: Any) -> Any:
        if not isinstance(request, FetchRequest) or not left[0] or not request.topics:
            return PASS
        left[0] -= 1
        answer = broker.fetch_partition("one", request.topics[0].partitions[0])
        answer.error_code = code
        answer.records = None
        response = FetchResponse()
        response.responses = _wrapped(request, answer)
        return response

    broker.faults.append(fault)


def _wrapped(request: Any, answer: Any) -> Any:
    from wire.schemas.fetch import FetchableTopicResponse

    return [FetchableTopicResponse(topic_id=request.topics[0].topic_id, partitions=[answer])]


def test_polling_without_an_assignment_is_an_error(broker: ScriptedBroker) -> None:
    with Consumer(broker.transport()) as consumer:
        with pytest.raises(IllegalState, match="assign"):
            consumer.poll(0)
        with pytest.raises(IllegalState, match="one-0 is not assigned"):
            consumer.seek(HERE, 0)
        with pytest.raises(ValueError, match="negative"):
            consumer.seek(HERE, -1)


def test_an_assignment_replaces_the_last_and_keeps_positions(broker: ScriptedBroker) -> None:
    put(broker, b"a", b"b")
    with earliest(broker, max_poll_records=1) as consumer:
        assert values(consumer.poll(10)) == [b"a"]
        consumer.assign([HERE, ("three", 2)])
        assert consumer.assignment() == {HERE, TopicPartition("three", 2)}
        assert consumer.position(HERE) == 1
        consumer.unassign()
        assert consumer.assignment() == set()
        consumer.assign([HERE])
        assert consumer.position(HERE) == 0, "forgotten with the assignment"


def test_the_poll_limit_cuts_batches_and_loses_nothing(broker: ScriptedBroker) -> None:
    put(broker, *[b"%d" % number for number in range(10)])
    put(broker, *[b"%d" % number for number in range(10, 13)])
    with earliest(broker, max_poll_records=4) as consumer:
        polled = [values(consumer.poll(10)) for _ in range(4)]
    assert [len(each) for each in polled] == [4, 4, 4, 1]
    assert sum(polled, []) == [b"%d" % number for number in range(13)]
    assert len(broker.of_kind(FetchRequest)) == 1


def test_a_poll_waits_for_its_time_only(broker: ScriptedBroker, runtime: SimRuntime) -> None:
    with earliest(broker) as consumer:
        assert not consumer.poll(250)
        assert runtime.clock.monotonic_ms() == 250


def test_without_a_policy_a_position_must_be_given(broker: ScriptedBroker) -> None:
    put(broker, b"a")
    with Consumer(broker.transport(), auto_offset_reset="none") as consumer:
        consumer.assign([HERE])
        with pytest.raises(NoOffsetForPartition, match="one-0"):
            consumer.poll(10)
        consumer.seek(HERE, 0)
        assert values(consumer.poll(10)) == [b"a"]
    with pytest.raises(ConfigError):
        Consumer(broker.transport(), auto_offset_reset="smallest")


def test_a_position_that_cannot_be_found_times_out(
    broker: ScriptedBroker, runtime: SimRuntime
) -> None:
    with Consumer(broker.transport()) as consumer:
        consumer.assign([("missing", 0)])
        with pytest.raises(TimedOut, match="missing-0"):
            consumer.position(("missing", 0), timeout_ms=700)
        assert runtime.clock.monotonic_ms() == 700


@pytest.mark.parametrize("code", [3, 6, 9, 56, 74, 75, 78, 100, -1])
def test_a_passing_error_is_retried_after_a_pause(
    broker: ScriptedBroker, runtime: SimRuntime, code: int
) -> None:
    put(broker, b"a")
    refuse_partition(broker, code, 2)
    with earliest(broker) as consumer:
        assert values(consumer.poll(5000)) == [b"a"]
    assert runtime.clock.monotonic_ms() == 200, "two pauses of retry.backoff.ms"
    asked_again = len(broker.of_kind(MetadataRequest)) > 1
    assert asked_again == (code != -1), "only topics that may have moved are requested again"


@pytest.mark.parametrize(
    ("code", "name"), [(29, "TopicAuthorizationFailed"), (2, "CorruptMessage")]
)
def test_an_error_that_stays_is_raised(broker: ScriptedBroker, code: int, name: str) -> None:
    refuse_partition(broker, code, 1)
    with earliest(broker) as consumer, pytest.raises(getattr(errors, name), match="one-0"):
        consumer.poll(1000)


def test_a_fetch_answered_after_a_seek_is_dropped(broker: ScriptedBroker) -> None:
    put(broker, b"a", b"b", b"c")
    with earliest(broker, max_poll_records=1) as consumer:
        assert values(consumer.poll(10)) == [b"a"]
        consumer.seek(HERE, 0)
        assert values(consumer.poll(10)) == [b"a"]
        consumer.seek(HERE, 2)
        assert values(consumer.poll(10)) == [b"c"]


def test_records_before_the_position_are_cut_off(broker: ScriptedBroker) -> None:
    put(broker, *[b"%d" % number for number in range(10)])
    with earliest(broker) as consumer:
        consumer.seek(HERE, 7)
        assert values(consumer.poll(10)) == [b"7", b"8", b"9"]
        consumer.seek(HERE, 7)
        (found,) = consumer.poll_columns(10)
        assert found.columns.values()[found.start :] == [b"7", b"8", b"9"]
        assert consumer.position(HERE) == 10


def test_columns_go_on_where_tuples_stopped(broker: ScriptedBroker) -> None:
    put(broker, *[b"%d" % number for number in range(10)])
    with earliest(broker) as consumer:
        assert len(consumer.poll(10, max_records=4)) == 4
        (found,) = consumer.poll_columns(10)
        assert found.columns.offsets[found.start :].tolist() == [4, 5, 6, 7, 8, 9]
        assert len(found) == 6


def damage(broker: ScriptedBroker, index: int) -> None:
    data = bytearray(broker.logs["one", 0][index])
    data[-1] ^= 1
    broker.logs["one", 0][index] = bytes(data)


@pytest.mark.parametrize("read", ["poll", "poll_batches", "poll_columns"])
def test_a_damaged_batch_stops_the_reader_until_it_seeks(broker: ScriptedBroker, read: str) -> None:
    put(broker, b"good")
    put(broker, b"damaged")
    put(broker, b"good again")
    damage(broker, 1)
    with earliest(broker) as consumer:
        poll = getattr(consumer, read)
        assert len(poll(10)) == 1, "the records before it are handed out first"
        for _ in range(2):
            with pytest.raises(RecordUnreadable, match="one-0 at offset 1: .*crc") as caught:
                poll(10)
            assert (caught.value.topic, caught.value.offset) == ("one", 1)
            assert consumer.position(HERE) == 1
        consumer.seek(HERE, 2)
        assert values(consumer.poll(10)) == [b"good again"]


def test_the_checksum_is_not_looked_at_when_told_so(broker: ScriptedBroker) -> None:
    put(broker, b"value")
    data = bytearray(broker.logs["one", 0][0])
    data[17] ^= 1
    broker.logs["one", 0][0] = bytes(data)
    with earliest(broker, check_crcs=False) as consumer:
        assert values(consumer.poll(10)) == [b"value"]


def test_a_deserializer_that_fails_stops_at_its_record(broker: ScriptedBroker) -> None:
    put(broker, b"1", b"2", b"three", b"4")
    with earliest(broker, value_deserializer=int, key_deserializer=bytes.decode) as consumer:
        records = list(consumer.poll(10))
        assert [(record.key, record.value) for record in records] == [(None, 1), (None, 2)]
        says = r"offset 2: the deserializer says ValueError.*\(value\.deserializer int\)"
        for _ in range(2):
            with pytest.raises(RecordUnreadable, match=says):
                consumer.poll(10)
        consumer.seek(HERE, 3)
        assert [record.value for record in consumer.poll(10)] == [4]
        assert consumer.metrics()["records-consumed-total"] == 3, "the records handed out, once"


def control(broker: ScriptedBroker, *, producer_id: int, commits: bool) -> None:
    key = b"\x00\x00\x00\x01" if commits else b"\x00\x00\x00\x00"
    data = build_batch(
        [b"\x00\x00\x00\x00\x00\x00"],
        keys=[key],
        timestamps=1000,
        producer_id=producer_id,
        producer_epoch=0,
        transactional=True,
        control=True,
    )
    broker.append("one", 0, data)


def in_transaction(broker: ScriptedBroker, producer_id: int, *batch: bytes) -> None:
    put(broker, *batch, producer_id=producer_id, producer_epoch=0, transactional=True)


def test_read_committed_leaves_out_what_was_aborted(broker: ScriptedBroker) -> None:
    in_transaction(broker, 7, b"aborted 1")  # 0
    in_transaction(broker, 8, b"committed 1")  # 1
    put(broker, b"plain")  # 2
    in_transaction(broker, 7, b"aborted 2")  # 3
    control(broker, producer_id=7, commits=False)  # 4
    in_transaction(broker, 7, b"committed 2")  # 5
    control(broker, producer_id=8, commits=True)  # 6
    control(broker, producer_id=7, commits=True)  # 7

    def name_aborted(request: Any) -> Any:
        if not isinstance(request, FetchRequest) or not request.topics:
            return PASS
        answer = broker.fetch_partition("one", request.topics[0].partitions[0])
        answer.aborted_transactions = [AbortedTransaction(producer_id=7, first_offset=0)]
        response = FetchResponse()
        response.responses = _wrapped(request, answer)
        return response

    broker.faults.append(name_aborted)
    everything = [
        b"aborted 1",
        b"committed 1",
        b"plain",
        b"aborted 2",
        b"committed 2",
    ]
    committed = [value for value in everything if not value.startswith(b"aborted")]
    for level, expected in (("read_committed", committed), ("read_uncommitted", everything)):
        with earliest(broker, isolation_level=level) as consumer:
            assert values(consumer.poll(10)) == expected
            assert consumer.position(HERE) == 8, "markers are skipped as well"
            consumer.seek(HERE, 0)
            found = consumer.poll_columns(10)
            assert [value for each in found for value in each.columns.values()] == expected


def test_a_poll_that_only_passed_markers_returns_early(
    broker: ScriptedBroker, runtime: SimRuntime
) -> None:
    control(broker, producer_id=7, commits=True)
    with earliest(broker) as consumer:
        assert not consumer.poll(10_000)
        assert consumer.position(HERE) == 1
        assert runtime.clock.monotonic_ms() == 0


def test_wakeup_ends_the_next_wait_once(broker: ScriptedBroker, runtime: SimRuntime) -> None:
    with earliest(broker) as consumer:
        consumer.wakeup()
        with pytest.raises(WakeupError):
            consumer.poll(10_000)
        assert runtime.clock.monotonic_ms() == 0
        assert not consumer.poll(10)


def test_wakeup_ends_a_wait_from_another_thread() -> None:
    broker = ScriptedBroker({"one": 1})
    with earliest(broker) as consumer:
        waker = threading.Timer(0.05, consumer.wakeup)
        waker.start()
        with pytest.raises(WakeupError):
            consumer.poll(60_000)
        waker.join()


def test_two_threads_may_not_use_one_consumer() -> None:
    broker = ScriptedBroker({"one": 1})
    with earliest(broker) as consumer:
        refused: list[BaseException] = []

        def intrude() -> None:
            try:
                consumer.position(HERE)
            except ConcurrentUse as error:
                refused.append(error)
            consumer.wakeup()

        thread = threading.Timer(0.05, intrude)
        thread.start()
        with pytest.raises(WakeupError):
            consumer.poll(60_000)
        thread.join()
        assert "one thread at a time" in str(refused[0])


def test_a_closed_consumer_refuses_and_ends_its_session(broker: ScriptedBroker) -> None:
    def open_session(request: Any) -> Any:
        if not isinstance(request, FetchRequest) or not request.topics:
            return PASS
        answer = broker.fetch_partition("one", request.topics[0].partitions[0])
        response = FetchResponse(session_id=77)
        response.responses = _wrapped(request, answer)
        return response

    broker.faults.append(open_session)
    put(broker, b"a")
    consumer = earliest(broker)
    consumer.poll(10)
    consumer.close()
    consumer.close()
    last = broker.of_kind(FetchRequest)[-1]
    assert (last.session_id, last.session_epoch, last.topics) == (77, -1, [])
    with pytest.raises(ClosedError):
        consumer.poll(10)


def test_a_session_names_only_what_changed(broker: ScriptedBroker) -> None:
    """The second fetch names the moved partition; a new session replaces a lost one."""
    epochs: list[tuple[int, int, int]] = []
    lost = [False]

    def session(request: Any) -> Any:
        if not isinstance(request, FetchRequest):
            return PASS
        named = sum(len(topic.partitions) for topic in request.topics)
        epochs.append((request.session_id, request.session_epoch, named))
        if lost[0]:
            lost[0] = False
            return FetchResponse(error_code=70)
        response = broker.answer(request)
        if isinstance(response, FetchResponse):
            response.session_id = 5
        return response

    broker.faults.append(session)
    consumer = Consumer(broker.transport(), auto_offset_reset="earliest", fetch_max_wait_ms=0)
    consumer.assign([HERE, ("three", 0), ("three", 1)])
    put(broker, b"a")
    assert values(consumer.poll(10)) == [b"a"]
    put(broker, b"b")
    assert values(consumer.poll(10)) == [b"b"]
    lost[0] = True
    put(broker, b"c")
    assert values(consumer.poll(10)) == [b"c"]
    consumer.pause(HERE)
    consumer.poll(0)
    consumer.close()
    assert epochs[0] == (0, 0, 3)
    assert epochs[1] == (5, 1, 1)
    # One request uses the lost session; the next names every partition, without a session.
    begun = epochs.index((0, 0, 3), 1)
    assert epochs[begun - 1] == (5, 2, 1)
    forgotten = [
        (topic.topic, topic.partitions)
        for request in broker.of_kind(FetchRequest)
        for topic in request.forgotten_topics_data
    ]
    assert forgotten == [("one", [0])]


def test_a_missing_partition_of_a_lookup_is_named(broker: ScriptedBroker) -> None:
    with Consumer(broker.transport()) as consumer:
        with pytest.raises(TimedOut, match="one-5"):
            consumer.end_offsets([("one", 5)], timeout_ms=300)
        assert consumer.end_offsets([HERE]) == {HERE: 0}
    assert len(broker.of_kind(ListOffsetsRequest)) == 1


@pytest.mark.parametrize("magic", [0, 1])
def test_messages_of_old_formats_are_read_too(broker: ScriptedBroker, magic: int) -> None:
    put(broker, b"a", b"b", b"c")
    batch = memoryview(broker.logs["one", 0][0])
    old = bytes(down_convert(batch, magic=magic, first_offset=0))

    def answer_in_old_format(request: Any) -> Any:
        if not isinstance(request, FetchRequest) or not request.topics:
            return PASS
        answer = broker.fetch_partition("one", request.topics[0].partitions[0])
        answer.records = memoryview(old) if answer.records else b""
        response = FetchResponse()
        response.responses = _wrapped(request, answer)
        return response

    broker.faults.append(answer_in_old_format)
    with earliest(broker) as consumer:
        for seek in (0, 1):
            consumer.seek(HERE, seek)
            records = list(consumer.poll(10))
            while len(records) < 3 - seek:
                records += consumer.poll(10)
            assert [(r.offset, r.value) for r in records] == [
                (0, b"a"),
                (1, b"b"),
                (2, b"c"),
            ][seek:]
            assert records[0].timestamp_type == (0 if magic else -1)
        consumer.seek(HERE, 1)
        found = consumer.poll_columns(10)
        assert [v for each in found for v in each.columns.values()[each.start :]] == [b"b", b"c"]
        assert consumer.position(HERE) == 3


def test_close_does_not_wait_for_a_fetch_that_waits() -> None:
    with embedlog.Cluster(runtime=sim_runtime(seed=1)) as cluster:
        cluster.create_topic("one", 1)
        with cluster.producer() as producer:
            producer.send("one", b"value").result()
        consumer = Consumer(
            LoopbackTransport(cluster), fetch_max_wait_ms=60_000, auto_offset_reset="earliest"
        )
        consumer.assign([HERE])
        assert values(consumer.poll(1)) == [b"value"], "a session has begun"
        assert len(consumer.poll(1)) == 0
        before = cluster.runtime.clock.monotonic_ms()
        consumer.close()
        assert cluster.runtime.clock.monotonic_ms() == before


def test_columns_of_batches_that_are_laid_out_alike_come_together(broker: ScriptedBroker) -> None:
    for number in range(12):
        put(broker, *[b"%02d" % number] * 10)
    with earliest(broker) as consumer:
        for _ in range(3):
            consumer.seek(HERE, 15)
            found = consumer.poll_columns(10, max_records=50)
            assert sum(map(len, found)) == 55, "the last batch exceeds the limit"
            assert consumer.position(HERE) == 70
            found += consumer.poll_columns(10)
            assert [v for each in found for v in each.values()] == [
                b"%02d" % (offset // 10) for offset in range(15, 120)
            ]
            assert [o for each in found for o in each.offsets.tolist()] == [*range(15, 120)]
        assert len(found) < 11
        damage(broker, 5)
        consumer.seek(HERE, 10)
        found = consumer.poll_columns(10)
        assert sum(map(len, found)) == 40, "the records before it are handed out first"
        with pytest.raises(RecordUnreadable, match="one-0 at offset 50: .*crc"):
            consumer.poll_columns(10)


@pytest.mark.parametrize("limit", [1, 3, 7, 10, 15, 100])
@pytest.mark.parametrize("key", [None, b"k"])
def test_batches_that_a_limit_cuts_go_on_where_they_were(
    broker: ScriptedBroker, limit: int, key: bytes | None
) -> None:
    expected = []
    for number in range(8):
        batch = [
            (number * 10 + index, 1000 + index // 4, key, b"%d" % index) for index in range(10)
        ]
        expected += batch
        _, stamps, keys, found = zip(*batch, strict=True)
        data = build_batch(found, keys=keys if key else None, timestamps=stamps)
        broker.append("one", 0, data)
    for _ in range(2):
        with earliest(broker) as consumer:
            records: list[Any] = []
            while len(records) < 80:
                polled = list(consumer.poll(10, max_records=limit))
                assert 0 < len(polled) <= limit
                records += [(r.offset, r.timestamp, r.key, r.value) for r in polled]
                assert consumer.position(HERE) == len(records)
            assert records == expected
        with earliest(broker) as consumer:
            tuples: list[Any] = []
            while len(tuples) < 80:
                for part in consumer.poll_batches(10, max_records=limit):
                    tuples += [row[:4] for row in part]
            assert tuples == expected
