"""Produce: offsets, errors and their order, acknowledgements."""

from __future__ import annotations

import pytest

from embedlog.broker import topics
from tests.apis.conftest import Client, Closed, InProcess
from tests.golden.batches import BASE_TIMESTAMP, gzipped, records, simple
from tests.golden.requests import Topic, fetch, list_offsets, produce
from wire.error_codes import ErrorCode
from wire.records import build_batch
from wire.records.batch import RecordBatch
from wire.schemas.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from wire.schemas.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)

CURRENT = range(3, 14)
NONE = ErrorCode.NONE
TRANSACTIONAL = 0x10


def send(client: Client, topic: Topic, version: int, *batches: bytes | None, **fields: object
         ) -> PartitionProduceResponse:  # fmt: skip
    """Produce to one partition; return its part of the answer."""
    response = client.call(produce(topic, version, *batches, **fields), version)
    [answers] = response.responses
    [answer] = answers.partition_responses
    return answer


def stored(client: Client, topic: Topic, partition: int = 0) -> list[bytes | None]:
    """Return the values of a partition."""
    response = client.call(fetch(topic, 12, partition=partition), 12)
    data = memoryview(response.responses[0].partitions[0].records)
    values = []
    while data:
        batch = RecordBatch(data)
        values += [record.value for record in batch.records()]
        data = data[batch.size :]
    return values


@pytest.mark.parametrize("version", CURRENT)
def test_records_get_the_next_offsets(client: Client, version: int) -> None:
    topic = client.make_topic()
    first = send(client, topic, version, simple(b"a", b"b"))
    assert (first.error_code, first.base_offset, first.log_append_time_ms) == (NONE, 0, -1)
    if version >= 5:
        assert first.log_start_offset == 0
    assert send(client, topic, version, simple(b"c")).base_offset == 2
    assert stored(client, topic) == [b"a", b"b", b"c"]


@pytest.mark.parametrize("version", [9, 13])
def test_the_response_has_every_field(client: Client, version: int) -> None:
    topic = client.make_topic()
    response = client.call(produce(topic, version, simple(b"a")), version)
    [answers] = response.responses
    assert response == ProduceResponse(
        responses=[
            TopicProduceResponse(
                name=answers.name,
                topic_id=answers.topic_id,
                partition_responses=[
                    PartitionProduceResponse(index=0, base_offset=0, log_start_offset=0)
                ],
            )
        ]
    )


@pytest.mark.parametrize("acks", [1, -1])
def test_acks_1_and_all_are_answered_after_the_append(client: Client, acks: int) -> None:
    topic = client.make_topic()
    assert send(client, topic, 9, simple(b"a"), acks=acks).error_code == NONE
    assert stored(client, topic) == [b"a"]


def test_acks_0_has_no_answer(client: Client) -> None:
    topic = client.make_topic()
    client.post(produce(topic, 9, simple(b"a"), acks=0), 9)
    assert stored(client, topic) == [b"a"]


def test_an_error_under_acks_0_closes_the_connection(client: Client) -> None:
    request = produce(("nowhere", b""), 9, simple(b"a"), acks=0)
    if isinstance(client, InProcess) and not hasattr(client, "connection"):
        client.post(request, 9)  # in process there is nothing to close
        return
    with pytest.raises(Closed):
        client.post(request, 9)


def test_a_refused_request_under_acks_0_closes_the_connection(client: Client) -> None:
    topic = client.make_topic()
    request = produce(topic, 9, simple(b"a", attributes=TRANSACTIONAL), acks=0)
    if isinstance(client, InProcess) and not hasattr(client, "connection"):
        client.post(request, 9)
        return
    with pytest.raises(Closed):
        client.post(request, 9)


@pytest.mark.parametrize("acks", [2, -2, 100])
@pytest.mark.parametrize("version", [3, 8, 13])
def test_other_acks_are_refused(client: Client, version: int, acks: int) -> None:
    topic = client.make_topic()
    answer = send(client, topic, version, simple(b"a"), acks=acks)
    assert answer.error_code == ErrorCode.INVALID_REQUIRED_ACKS
    assert (answer.base_offset, answer.log_start_offset) == (-1, -1)
    assert stored(client, topic) == []


@pytest.mark.parametrize("name", ["nowhere", "", "a b", ".", "a" * 300])
def test_unknown_and_impossible_names_are_unknown(client: Client, name: str) -> None:
    answer = send(client, (name, b""), 9, simple(b"a"))
    assert answer.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert answer.error_message is None


def test_an_unknown_partition_and_an_unknown_id(client: Client) -> None:
    topic = client.make_topic()
    for version in (9, 13):
        answer = send(client, topic, version, simple(b"a"), partition=5)
        assert answer.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    for unknown in (bytes(16), b"x" * 16):
        answer = send(client, ("", unknown), 13, simple(b"a"))
        assert answer.error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_internal_topics_are_for_the_admin_client_only(client: Client) -> None:
    internal = client.cluster.create_topic("__consumer_offsets", 1)
    topic = internal.name, internal.topic_id
    assert send(client, topic, 9, simple(b"a")).error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    admin = client.another("__admin_client")
    assert send(admin, topic, 9, simple(b"a")).error_code == NONE
    admin.close()


@pytest.mark.parametrize(
    "data, code, message",
    [
        (None, ErrorCode.INVALID_RECORD, None),
        (b"", ErrorCode.INVALID_RECORD, None),
        (simple(b"a")[:60], ErrorCode.INVALID_RECORD, None),
        (simple(b"a")[:-1], ErrorCode.INVALID_RECORD, None),
        (simple(b"a", length=58), ErrorCode.INVALID_RECORD, None),
        (simple(b"a") + simple(b"b"), ErrorCode.INVALID_RECORD, None),
        (simple(b"a", crc=1), ErrorCode.CORRUPT_MESSAGE, None),
        (simple(b"a") + bytes(61), ErrorCode.CORRUPT_MESSAGE, None),
        (
            bytes(16),
            ErrorCode.CORRUPT_MESSAGE,
            "Record size 0 is less than the minimum record overhead (14)",
        ),
        (simple(b"a", magic=3), ErrorCode.CORRUPT_MESSAGE, "Invalid magic found in record: 3"),
        (simple(b"a", magic=-1), ErrorCode.CORRUPT_MESSAGE, "Invalid magic found in record: -1"),
        (
            simple(b"a", length=13),
            ErrorCode.CORRUPT_MESSAGE,
            "Record size 13 is less than the minimum record overhead (14)",
        ),
    ],
)
def test_anything_but_one_whole_batch_is_refused(
    client: Client, data: bytes | None, code: int, message: str | None
) -> None:
    topic = client.make_topic()
    answer = send(client, topic, 9, data)
    assert (answer.error_code, answer.error_message) == (code, message)
    assert (answer.base_offset, answer.log_start_offset) == (-1, -1)
    assert stored(client, topic) == []


def test_a_cut_second_batch_is_trimmed(client: Client) -> None:
    topic = client.make_topic()
    assert send(client, topic, 9, simple(b"a") + simple(b"b")[:-1]).error_code == NONE
    assert stored(client, topic) == [b"a"]


def test_refused_records_are_named_from_v8_on(client: Client) -> None:
    topic = client.make_topic(cleanup_policy="compact")
    assert send(client, topic, 7, simple(b"a", b"b")).error_code == ErrorCode.INVALID_RECORD
    for version in (8, 13):
        answer = send(client, topic, version, simple(b"a", b"b"))
        assert answer.error_code == ErrorCode.INVALID_RECORD
        assert answer.log_start_offset == 0
        assert [error.batch_index for error in answer.record_errors] == [0, 1]
        assert answer.error_message.startswith("One or more records have been rejected")


@pytest.mark.parametrize("version", [3, 6, 7, 13])
def test_zstd_needs_v7(client: Client, version: int) -> None:
    topic = client.make_topic()
    answer = send(client, topic, version, build_batch([b"a"], timestamps=1, codec=4))
    expected = NONE if version >= 7 else ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert answer.error_code == expected


@pytest.mark.parametrize("codec", [0, 1, 2, 3, 4])
def test_every_codec_is_stored_as_it_came(client: Client, codec: int) -> None:
    topic = client.make_topic()
    values = [b"value" * 50] * 20
    sent = build_batch(values, timestamps=1, codec=codec)
    assert send(client, topic, 9, sent).error_code == NONE
    assert stored(client, topic) == values
    response = client.call(fetch(topic, 12), 12)
    assert len(response.responses[0].partitions[0].records) == len(sent)


def test_the_answer_has_the_log_append_time(client: Client) -> None:
    topic = client.make_topic(message_timestamp_type="LogAppendTime")
    before = client.cluster.runtime.clock.wall_ms()
    answer = send(client, topic, 9, simple(b"a"))
    assert before <= answer.log_append_time_ms <= client.cluster.runtime.clock.wall_ms()


def test_a_batch_larger_than_the_limit(client: Client) -> None:
    topic = client.make_topic(max_message_bytes=100)
    answer = send(client, topic, 9, simple(b"a" * 100))
    assert answer.error_code == ErrorCode.MESSAGE_TOO_LARGE
    assert (answer.error_message, answer.log_start_offset) == (None, -1)


def test_min_insync_replicas_is_at_most_the_number_of_replicas(client: Client) -> None:
    topic = client.make_topic(min_insync_replicas=2)
    assert send(client, topic, 9, simple(b"a"), acks=-1).error_code == NONE


def test_too_few_in_sync_replicas_refuse_acks_all_only(client: Client) -> None:
    topic = client.make_topic(min_insync_replicas=2)
    partition = client.broker.replica_manager.partition(topic[0], 0)
    partition.min_isr = 2
    answer = send(client, topic, 9, simple(b"a"), acks=-1)
    assert answer.error_code == ErrorCode.NOT_ENOUGH_REPLICAS
    assert send(client, topic, 9, simple(b"a"), acks=1).error_code == NONE


def test_without_a_leader_the_client_is_told_who_leads(client: Client) -> None:
    topic = client.make_topic()
    partition = client.broker.replica_manager.partition(topic[0], 0)
    partition.is_leader = False
    for version in (9, 10, 13):
        response = client.call(produce(topic, version, simple(b"a")), version)
        [answer] = response.responses[0].partition_responses
        assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        if version >= 10:
            assert (answer.current_leader.leader_id, answer.current_leader.leader_epoch) == (1, 0)
            assert [node.node_id for node in response.node_endpoints] == [1]


def test_duplicates_gaps_and_old_epochs(client: Client) -> None:
    topic = client.make_topic()

    def idempotent(sequence: int, epoch: int = 0, *values: bytes) -> PartitionProduceResponse:
        batch = simple(
            *(values or (b"v",)), producer_id=9, producer_epoch=epoch, base_sequence=sequence
        )
        return send(client, topic, 9, batch)

    assert idempotent(0).base_offset == 0
    assert idempotent(1).base_offset == 1
    duplicate = idempotent(0)
    assert (duplicate.error_code, duplicate.base_offset) == (NONE, 0)
    assert duplicate.log_append_time_ms == BASE_TIMESTAMP
    gap = idempotent(3)
    assert gap.error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert (gap.base_offset, gap.log_start_offset) == (-1, 0)
    assert idempotent(0, 1).base_offset == 2
    assert idempotent(2, 0).error_code == ErrorCode.INVALID_PRODUCER_EPOCH


def test_a_duplicate_of_deleted_records_is_still_known(client: Client) -> None:
    topic = client.make_topic()
    batch = simple(b"a", b"b", producer_id=9, producer_epoch=0, base_sequence=0)
    send(client, topic, 9, batch)
    partition = DeleteRecordsPartition(partition_index=0, offset=2)
    client.call(
        DeleteRecordsRequest(
            topics=[DeleteRecordsTopic(name=topic[0], partitions=[partition])], timeout_ms=1000
        )
    )
    again = send(client, topic, 9, batch)
    assert (again.error_code, again.base_offset, again.log_start_offset) == (NONE, 0, 2)


def test_transactional_records_need_a_known_transactional_id(client: Client) -> None:
    topic = client.make_topic()
    other = client.make_topic()
    batch = simple(b"a", attributes=TRANSACTIONAL, producer_id=9, producer_epoch=0, base_sequence=0)
    request = produce(topic, 9, batch)
    request.topic_data += produce(other, 9, simple(b"b")).topic_data
    response = client.call(request, 9)
    codes = [t.partition_responses[0].error_code for t in response.responses]
    assert codes == [ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED] * 2
    assert stored(client, other) == []
    assert topics.ensure_internal_topic(client.broker, "__transaction_state")
    unknown = send(client, topic, 9, batch, transactional_id="nobody")
    assert unknown.error_code == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert unknown.log_start_offset == -1
    plain = send(client, topic, 9, simple(b"c"), transactional_id="nobody")
    assert plain.error_code == NONE


def test_each_partition_succeeds_or_fails_for_itself(client: Client) -> None:
    topic = client.make_topic(partitions=3)
    request = ProduceRequest(
        acks=-1,
        timeout_ms=1000,
        topic_data=[
            TopicProduceData(
                name=topic[0],
                partition_data=[
                    PartitionProduceData(index=0, records=simple(b"a")),
                    PartitionProduceData(index=1, records=simple(b"b", crc=1)),
                    PartitionProduceData(index=7, records=simple(b"c")),
                    PartitionProduceData(index=2, records=gzipped(b"d", b"e")),
                ],
            ),
            TopicProduceData(name="empty", partition_data=[]),
        ],
    )
    response = client.call(request, 9)
    assert [t.name for t in response.responses] == [topic[0]]
    answers = response.responses[0].partition_responses
    assert [(a.index, a.error_code, a.base_offset) for a in answers] == [
        (0, NONE, 0),
        (1, ErrorCode.CORRUPT_MESSAGE, -1),
        (7, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1),
        (2, NONE, 0),
    ]
    assert stored(client, topic, 2) == [b"d", b"e"]


def test_of_a_partition_named_twice_the_last_records_count(client: Client) -> None:
    topic = client.make_topic()
    answer = send(client, topic, 9, simple(b"a"), simple(b"b"))
    assert answer.base_offset == 0
    assert stored(client, topic) == [b"b"]


def test_the_callers_records_are_not_touched(client: Client) -> None:
    topic = client.make_topic(message_timestamp_type="LogAppendTime")
    records_sent = bytearray(simple(b"a", b"b"))
    before = bytes(records_sent)
    send(client, topic, 9, simple(b"first"))
    send(client, topic, 9, records_sent)
    assert bytes(records_sent) == before
    records_sent[:] = bytes(len(records_sent))
    assert stored(client, topic) == [b"first", b"a", b"b"]


def test_records_may_be_any_buffer(client: Client) -> None:
    topic = client.make_topic()
    for index, made in enumerate((bytes, bytearray, memoryview)):
        assert send(client, topic, 9, made(simple(b"a"))).base_offset == index


def test_produced_records_have_their_leader_epoch_and_place(client: Client) -> None:
    topic = client.make_topic()
    send(client, topic, 9, simple(b"a"))
    send(client, topic, 9, simple(b"b", leader_epoch=77))
    response = client.call(fetch(topic, 12, 1), 12)
    batch = RecordBatch(memoryview(response.responses[0].partitions[0].records))
    assert (batch.base_offset, batch.partition_leader_epoch, batch.is_valid_crc()) == (1, 0, True)
    assert bytes(batch.payload()) == records(b"b")
    latest = client.call(list_offsets(topic[0], -1), 7)
    assert latest.topics[0].partitions[0].offset == 2


@pytest.mark.slow
@pytest.mark.parametrize("acks", [1, -1])
def test_on_disk_the_answer_comes_after_the_sync(durable_client: Client, acks: int) -> None:
    topic = durable_client.make_topic(partitions=2)
    request = produce(topic, 9, simple(b"a"), acks=acks)
    request.topic_data += produce(topic, 9, simple(b"b"), partition=1).topic_data
    response = durable_client.call(request, 9)
    codes = [each.error_code for t in response.responses for each in t.partition_responses]
    assert codes == [NONE, NONE]
    for index in (0, 1):
        log = durable_client.broker.replica_manager.partition(topic[0], index).log
        assert (log.durability.synced_offset, log.offsets.high_watermark) == (1, 1)
    assert stored(durable_client, topic) == [b"a"]


def test_a_batch_that_becomes_too_large_is_refused_with_the_name_of_the_setting(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    topic = client.make_topic(max_decompressed_message_bytes="1000")
    for version in (7, 9, 13):
        answer = send(client, topic, version, gzipped(bytes(2000)))
        assert answer.error_code == ErrorCode.MESSAGE_TOO_LARGE
        if version >= 8:
            assert "more than the allowed 1000 bytes" in str(answer.error_message)
            assert "max.decompressed.message.bytes" in str(answer.error_message)
    (line,) = (each.message for each in caplog.records if each.levelname == "WARNING")
    assert line.startswith(f"records for {topic[0]}-0 were refused: gzip: decompresses to more")
    assert send(client, topic, 9, gzipped(bytes(500)), gzipped(bytes(500))).error_code == NONE
