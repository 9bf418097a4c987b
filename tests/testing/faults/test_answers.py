"""Actions that change answers: epochs, leaders, checksums, throttling, frames cut short."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from typing import Any

import pytest

from embedlog.testing import Kafka, UnfiredFault
from tests.golden.batches import simple
from tests.testing.faults.conftest import Ask
from wire.api_keys import ApiKey
from wire.compiler import encode
from wire.error_codes import ErrorCode
from wire.headers import encode_request_header
from wire.records.batch import RecordBatch
from wire.schemas.api_versions import ApiVersionsRequest
from wire.schemas.fetch import FetchPartition, FetchRequest, FetchTopic
from wire.schemas.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from wire.schemas.metadata import MetadataRequest, MetadataRequestTopic
from wire.schemas.produce import PartitionProduceData, ProduceRequest, TopicProduceData

BOTH = {"partitions": 2, "replication_factor": 2}


@pytest.fixture
def kafka() -> Iterator[Kafka]:
    with Kafka(brokers=2, topics={"a": BOTH, "b": BOTH}) as made:
        yield made


def metadata(*names: str) -> MetadataRequest:
    return MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in names])


def leaders(answer: Any) -> dict[tuple[str, int], int]:
    return {
        (topic.name, each.partition_index): each.leader_id
        for topic in answer.topics
        for each in topic.partitions
    }


def epochs(answer: Any) -> dict[tuple[str, int], int]:
    return {
        (topic.name, each.partition_index): each.leader_epoch
        for topic in answer.topics
        for each in topic.partitions
    }


def move(kafka: Kafka, topic: str, partition: int) -> None:
    """Let the other broker lead."""
    place = kafka.partition(topic, partition)
    place.move_to(3 - (place.leader or 0))


def test_stale_metadata_names_the_leaders_of_the_rules_beginning(kafka: Kafka, ask: Ask) -> None:
    before = leaders(ask(metadata("a", "b"), 12))
    fault = kafka.fault("Metadata", action="stale-metadata", topic="a", partition=0, times=2)
    kafka.create_topic("new", 1)
    for topic in ("a", "b"):
        for partition in (0, 1):
            move(kafka, topic, partition)
    answer = ask(metadata("a", "b"), 12)
    moved = {place: 3 - leader for place, leader in before.items()}
    assert leaders(answer) == {**moved, ("a", 0): before["a", 0]}
    assert fault.hits == 1
    with kafka.fault("Metadata", action="stale-metadata", always=True):
        kafka.create_topic("newer", 1)
        answer = ask(MetadataRequest(topics=None), 12)
        codes = {topic.name: topic.error_code for topic in answer.topics}
        assert codes == {
            "a": 0, "b": 0, "new": 0, "newer": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        }  # fmt: skip


def test_wrong_epochs_are_put_at_the_partitions_of_the_rule(kafka: Kafka, ask: Ask) -> None:
    truth = epochs(ask(metadata("a", "b"), 12))
    assert set(truth.values()) == {0}
    with kafka.fault("Metadata", topic="a", partition=1, action="wrong-epoch", by=3) as fault:
        answer = ask(metadata("a", "b"), 12)
    assert epochs(answer) == {**truth, ("a", 1): 3}
    assert fault.hits == 1
    move(kafka, "a", 0)
    with kafka.fault("Metadata", "ListOffsets", action="wrong-epoch", times=2):
        assert epochs(ask(metadata("a"), 12))["a", 0] == 0
        asked = [ListOffsetsPartition(partition_index=0, timestamp=-1)]
        leader = kafka.partition("a", 0).leader
        request = ListOffsetsRequest(
            replica_id=-1, topics=[ListOffsetsTopic(name="a", partitions=asked)]
        )
        [topic] = ask(request, 7, node=leader).topics
        assert topic.partitions[0].leader_epoch == 0
    assert epochs(ask(metadata("a"), 12))["a", 0] == 1


def test_an_epoch_without_a_predecessor_is_no_hit(kafka: Kafka, ask: Ask) -> None:
    with (
        pytest.raises(UnfiredFault, match="never acted"),
        kafka.fault("Metadata", action="wrong-epoch"),
    ):
        assert set(epochs(ask(metadata("a"), 12)).values()) == {0}


def test_a_throttled_answer_has_the_time(kafka: Kafka, ask: Ask) -> None:
    with kafka.fault("Metadata", action="throttle", ms=70):
        assert ask(metadata("a"), 12).throttle_time_ms == 70
    assert ask(metadata("a"), 12).throttle_time_ms == 0


@pytest.mark.parametrize("version", [4, 18])
def test_only_records_are_corrupt_and_the_log_is_not(kafka: Kafka, ask: Ask, version: int) -> None:
    topic = kafka.broker(1).core.image.topics_by_name["a"]
    leader = kafka.partition("a", 0).leader
    produce = ProduceRequest(
        acks=-1,
        timeout_ms=5_000,
        topic_data=[
            TopicProduceData(
                topic_id=topic.topic_id,
                partition_data=[PartitionProduceData(index=0, records=simple(b"x"))],
            )
        ],
    )
    fetch = FetchRequest(
        topics=[
            FetchTopic(
                topic="a",
                topic_id=topic.topic_id,
                partitions=[FetchPartition(partition=0, partition_max_bytes=1_000)],
            )
        ]
    )
    with kafka.fault("Fetch", topic="a", action="corrupt-crc") as fault:
        ask(fetch, version, node=leader)
        assert fault.hits == 0  # there was nothing to corrupt
        ask(produce, node=leader)
        spoilt = ask(fetch, version, node=leader).responses[0].partitions[0]
        assert (fault.hits, spoilt.error_code) == (1, 0)
    whole = ask(fetch, version, node=leader).responses[0].partitions[0]
    different = [
        place
        for place, (left, right) in enumerate(zip(spoilt.records, whole.records, strict=True))
        if left != right
    ]
    assert different == [17]
    RecordBatch(memoryview(bytes(whole.records))).check_crc()


def test_a_truncated_frame_is_half_of_the_answer_and_the_end(kafka: Kafka) -> None:
    host, _, port = kafka.bootstrap_servers.split(",")[0].partition(":")
    header = encode_request_header(
        api_key=ApiKey.API_VERSIONS, api_version=0, correlation_id=7, client_id="raw"
    )
    body = header + encode(ApiVersionsRequest(), 0)

    def answer() -> bytes:
        with socket.create_connection((host, int(port)), 10) as connection:
            connection.sendall(struct.pack(">i", len(body)) + body)
            received = b""
            while chunk := connection.recv(65_536):
                received += chunk
                if len(received) >= 4 and len(received) == struct.unpack(">i", received[:4])[0] + 4:
                    break
            return received

    whole = answer()
    with kafka.fault("ApiVersions", client_id="raw", action="truncate"):
        assert answer() == whole[: len(whole) // 2]
    with kafka.fault("ApiVersions", client_id="raw", action="cut"):
        assert answer() == b""
    assert answer() == whole
