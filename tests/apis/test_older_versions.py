"""Clients before 0.11: Produce 0-2 and Fetch 0-3, with message sets in place of batches."""

from __future__ import annotations

import pytest

from tests.apis.conftest import Client
from tests.golden.batches import BASE_TIMESTAMP, simple
from tests.golden.requests import Topic, fetch, produce
from wire.error_codes import ErrorCode
from wire.records import Record, build_batch, iter_batches
from wire.records.batch import RecordBatch
from wire.records.legacy import encode_message, encode_wrapper
from wire.schemas.fetch import PartitionData
from wire.schemas.produce import PartitionProduceResponse

NONE = ErrorCode.NONE


def send(client: Client, topic: Topic, version: int, data: bytes) -> PartitionProduceResponse:
    response = client.call(produce(topic, version, data), version)
    return response.responses[0].partition_responses[0]


def read(client: Client, topic: Topic, version: int, offset: int = 0, **how: int) -> PartitionData:
    response = client.call(fetch(topic, version, offset, **how), version)
    return response.responses[0].partitions[0]


def contents(data: PartitionData) -> list[tuple[int, int, int, bytes | None]]:
    """Return (magic, offset, timestamp, value) of every whole record."""
    assert data.records is not None
    return [
        (batch.magic, record.offset, record.timestamp, record.value)
        for batch in iter_batches(memoryview(data.records))
        for record in batch.records()
    ]


def messages(magic: int, *values: bytes) -> bytes:
    return b"".join(
        encode_message(
            offset=offset, magic=magic, timestamp=BASE_TIMESTAMP + offset, key=b"key", value=value
        )
        for offset, value in enumerate(values)
    )


@pytest.mark.parametrize("version, magic", [(0, 0), (1, 0), (2, 0), (2, 1)])
def test_message_sets_become_batches(client: Client, version: int, magic: int) -> None:
    topic = client.make_topic()
    first = send(client, topic, version, messages(magic, b"a", b"b"))
    assert (first.error_code, first.base_offset) == (NONE, 0)
    assert send(client, topic, version, messages(magic, b"c")).base_offset == 2
    stored = contents(read(client, topic, 12))
    assert [row[::3] for row in stored] == [(2, b"a"), (2, b"b"), (2, b"c")]
    assert [row[1] for row in stored] == [0, 1, 2]
    expected = [-1, -1, -1] if magic == 0 else [BASE_TIMESTAMP, BASE_TIMESTAMP + 1, BASE_TIMESTAMP]
    assert [row[2] for row in stored] == expected
    batch = RecordBatch(memoryview(bytes(read(client, topic, 12).records or b"")))
    assert batch.is_valid_crc()


@pytest.mark.parametrize("codec", [1, 2, 3])
def test_compressed_message_sets(client: Client, codec: int) -> None:
    topic = client.make_topic()
    inner = [Record((n, BASE_TIMESTAMP, b"k", value, ())) for n, value in enumerate((b"a", b"b"))]
    wrapped = encode_wrapper(inner, magic=1, codec=codec)
    assert send(client, topic, 2, wrapped).error_code == NONE
    assert [row[3] for row in contents(read(client, topic, 12))] == [b"a", b"b"]


def test_a_message_with_a_wrong_checksum(client: Client) -> None:
    topic = client.make_topic()
    data = bytearray(messages(1, b"a"))
    data[-1] ^= 1
    assert send(client, topic, 2, bytes(data)).error_code == ErrorCode.CORRUPT_MESSAGE
    assert contents(read(client, topic, 12)) == []


@pytest.mark.parametrize("version", range(3))
def test_zstd_batches_are_not_for_them(client: Client, version: int) -> None:
    topic = client.make_topic()
    answer = send(client, topic, version, build_batch([b"a"], timestamps=1, codec=4))
    assert answer.error_code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


@pytest.mark.parametrize("version, magic", [(0, 0), (1, 0), (2, 1), (3, 1)])
def test_batches_become_message_sets(client: Client, version: int, magic: int) -> None:
    topic = client.make_topic()
    client.call(produce(topic, 9, simple(b"a", b"b", key=b"k")), 9)
    client.call(produce(topic, 9, build_batch([b"c"] * 2, timestamps=5, codec=1)), 9)
    found = read(client, topic, version)
    assert (found.error_code, found.high_watermark) == (NONE, 4)
    rows = contents(found)
    assert [(row[0], row[1], row[3]) for row in rows] == [
        (magic, 0, b"a"),
        (magic, 1, b"b"),
        (magic, 2, b"c"),
        (magic, 3, b"c"),
    ]
    assert rows[3][2] == (5 if magic else -1)


def test_plain_records_below_the_offset_are_left_out(client: Client) -> None:
    topic = client.make_topic()
    client.call(produce(topic, 9, simple(b"a", b"b", b"c")), 9)
    assert [row[1] for row in contents(read(client, topic, 3, 1))] == [1, 2]


def test_zstd_cannot_be_converted(client: Client) -> None:
    topic = client.make_topic()
    client.call(produce(topic, 9, build_batch([b"a"], timestamps=1, codec=4)), 9)
    for version in range(4):
        found = read(client, topic, version)
        assert found.error_code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
        assert found.high_watermark == -1
    assert read(client, topic, 4).error_code == NONE


@pytest.mark.parametrize("version", range(4))
def test_a_message_larger_than_the_limit(client: Client, version: int) -> None:
    """Before v3 it is cut, which tells the client; since v3 it comes whole."""
    topic = client.make_topic()
    client.call(produce(topic, 9, simple(b"x" * 1000)), 9)
    found = read(client, topic, version, partition_max_bytes=100)
    assert found.records is not None
    if version < 3:
        assert (len(found.records), contents(found)) == (100, [])
    else:
        assert [row[3] for row in contents(found)] == [b"x" * 1000]


@pytest.mark.parametrize("version", range(4))
def test_nothing_to_read_is_not_null(client: Client, version: int) -> None:
    topic = client.make_topic()
    found = read(client, topic, version)
    assert (found.error_code, bytes(found.records or b"")) == (NONE, b"")
    assert found.records is not None


@pytest.mark.parametrize("version, code", [(4, 6), (5, 6), (6, 56), (12, 56)])
def test_a_failed_disk_has_its_own_code_since_v6(client: Client, version: int, code: int) -> None:
    from embedlog.errors import KafkaStorageError

    topic = client.make_topic()

    def failing(topic_name: str, index: int) -> None:
        raise KafkaStorageError("the log cannot be opened")

    client.broker.replica_manager.partitions.pop((topic[0], 0))
    client.broker.replica_manager.load = failing  # type: ignore[assignment]
    assert read(client, topic, version).error_code == code
