"""Limits from settings: each holds at its default, and at another value."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest

import embedlog
from embedlog.config import BrokerConfig
from embedlog.errors import ConfigError
from tests.server.wire_client import WireClient
from wire.records.encode.builder import build_batch
from wire.records.format import Codec
from wire.schemas.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from wire.schemas.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from wire.schemas.delete_groups import DeleteGroupsRequest
from wire.schemas.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from wire.schemas.describe_producers import DescribeProducersRequest, TopicRequest
from wire.schemas.fetch import FetchPartition, FetchRequest, FetchTopic
from wire.schemas.find_coordinator import FindCoordinatorRequest
from wire.schemas.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from wire.schemas.leave_group import LeaveGroupRequest
from wire.schemas.metadata import MetadataRequest, MetadataRequestTopic
from wire.schemas.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from wire.schemas.offset_fetch import OffsetFetchRequest
from wire.schemas.produce import PartitionProduceData, ProduceRequest, TopicProduceData

UNKNOWN_MEMBER_ID = 25
GROUP_MAX_SIZE_REACHED = 81
MEMBER_ID_REQUIRED = 79
MESSAGE_TOO_LARGE = 10
POLICY_VIOLATION = 44


@contextmanager
def served(**config: object) -> Iterator[WireClient]:
    """A client of a broker with those settings, without `embedlog.`, with underscores for dots."""
    named = {f"embedlog.{name.replace('_', '.')}": value for name, value in config.items()}
    with embedlog.open(config=named) as cluster:
        cluster.create_topic("t", 1)
        listener = cluster.listen()
        with WireClient((listener.host, listener.port)) as client:
            yield client


@pytest.mark.parametrize(
    ("name", "default", "least"),
    [
        ("embedlog.max.request.elements", 50_000, 1),
        ("embedlog.max.fetch.session.partitions", 10_000, 0),
        ("embedlog.max.fetch.session.cache.partitions", 100_000, 0),
        ("embedlog.group.max.pending.members", 1_000, 1),
        ("embedlog.max.batch.headers", None, 1),
        ("embedlog.max.compressed.records", None, 1),
        ("embedlog.max.groups", 10_000, 1),
        ("embedlog.max.response.bytes", 64 << 20, 1_024),
        ("embedlog.max.partition.producer.ids", 10_000, 1),
    ],
)
def test_every_limit_has_a_default_and_a_least_value(
    name: str, default: int | None, least: int
) -> None:
    assert BrokerConfig().value(name) == default
    assert BrokerConfig({name: least}).value(name) == least
    with pytest.raises(ConfigError, match=f"{name}: Value must be at least {least}"):
        BrokerConfig({name: least - 1})


def test_size_of_a_request(caplog: pytest.LogCaptureFixture) -> None:
    """As in Kafka, one limit holds for every API, not only for Produce."""
    metadata = bytes(3_000_000)
    with served() as client:
        client.ask(FindCoordinatorRequest(key="g"), 1)
        assert client.ask(_join("g", metadata), 3).error_code == 0
    with embedlog.open(socket_request_max_bytes=2_000_000) as cluster:
        listener = cluster.listen()
        client = WireClient((listener.host, listener.port))
        client.ask(FindCoordinatorRequest(key="g"), 1)
        assert client.ask(_join("g", metadata[:1_900_000]), 3).error_code == 0
        with suppress(OSError):  # the listener may close while the client still sends
            client.send(_join("h", metadata), 3)
        assert client.is_closed()
        client.close()
    (line,) = (each.message for each in caplog.records if "socket.request" in each.message)
    assert line.endswith("a request of 3000054 bytes is more than socket.request.max.bytes=2000000")


def test_elements_of_a_request() -> None:
    topics = [MetadataRequestTopic(name="t")] * 3
    with served(max_request_elements=3) as client:
        assert client.ask(MetadataRequest(topics=topics), 1).topics
        client.send(MetadataRequest(topics=topics * 2), 1)
        assert client.is_closed()


def test_elements_of_a_request_that_another_thread_decodes() -> None:
    creation = CreateTopicsRequest(topics=[_topic("a"), _topic("b")], timeout_ms=1_000)
    with served(max_request_elements=2) as client:
        assert len(client.ask(creation, 5).topics) == 2
        creation.topics.append(_topic("c"))
        client.send(creation, 5)
        assert client.is_closed()


def test_elements_of_a_produce_request() -> None:
    with served(max_request_elements=3) as client:
        assert len(client.ask(_produce(*[None] * 2), 9).responses[0].partition_responses) == 2
        client.send(_produce(*[None] * 3), 9)
        assert client.is_closed()


def test_partitions_of_a_fetch_session_and_of_all() -> None:
    with served(max_fetch_session_partitions=3, max_fetch_session_cache_partitions=5) as client:
        assert client.ask(_fetch(4), 7).session_id == 0
        assert client.ask(_fetch(3), 7).session_id
        assert client.ask(_fetch(3), 7).session_id == 0, "two would be left for it"
        assert client.ask(_fetch(2), 7).session_id


def test_member_ids_that_nobody_has_come_back_with() -> None:
    with served(group_max_pending_members=2) as client:
        client.ask(FindCoordinatorRequest(key="g", key_type=0), 2)
        codes = [client.ask(_join("g"), 5).error_code for _ in range(3)]
        assert codes == [MEMBER_ID_REQUIRED, MEMBER_ID_REQUIRED, GROUP_MAX_SIZE_REACHED]


def test_records_of_a_compressed_batch() -> None:
    few, many = (
        build_batch([b"v"] * n, timestamps=1_700_000_000_000, codec=Codec.GZIP) for n in (5, 6)
    )
    with served(max_compressed_records=5) as client:
        assert _code_of(client.ask(_produce(few), 9)) == 0
        assert _code_of(client.ask(_produce(many), 9)) == MESSAGE_TOO_LARGE
        own = CreatableTopicConfig(name="embedlog.max.compressed.records", value="6")
        client.ask(CreateTopicsRequest(topics=[_topic("own", own)], timeout_ms=1_000), 5)
        assert _code_of(client.ask(_produce(many, topic="own"), 9)) == 0, "the topic's own counts"


def test_headers_of_a_batch() -> None:
    header: list[tuple[str, bytes | None]] = [("", None)]

    def batch(*counts: int, codec: Codec = Codec.NONE) -> bytes:
        headers = [header * n for n in counts]
        values = [b"v"] * len(counts)
        return build_batch(values, timestamps=1_700_000_000_000, headers=headers, codec=codec)

    with served(max_batch_headers=5) as client:
        for codec in (Codec.NONE, Codec.GZIP):
            assert _code_of(client.ask(_produce(batch(5, codec=codec)), 9)) == 0
            assert _code_of(client.ask(_produce(batch(2, 0, 3, codec=codec)), 9)) == 0
            answer = client.ask(_produce(batch(2, 1, 3, codec=codec)), 9)
            assert _code_of(answer) == MESSAGE_TOO_LARGE, "all of the batch count"
        own = CreatableTopicConfig(name="embedlog.max.batch.headers", value="6")
        client.ask(CreateTopicsRequest(topics=[_topic("own", own)], timeout_ms=1_000), 5)
        assert _code_of(client.ask(_produce(batch(6), topic="own"), 9)) == 0
    default = 1_048_588 // 10
    with served() as client:
        for count, code in ((default, 0), (default + 1, MESSAGE_TOO_LARGE)):
            assert _code_of(client.ask(_produce(batch(count, codec=Codec.GZIP)), 9)) == code


def test_producers_that_a_partition_remembers() -> None:
    with served(max_partition_producer_ids=3) as client:
        for producer_id in range(5):
            batch = build_batch(
                [b"v"],
                timestamps=1_700_000_000_000,
                producer_id=producer_id,
                producer_epoch=0,
                base_sequence=0,
            )
            assert _code_of(client.ask(_produce(batch), 9)) == 0
        asked = TopicRequest(name="t", partition_indexes=[0])
        (topic,) = client.ask(DescribeProducersRequest(topics=[asked]), 0).topics
        (partition,) = topic.partitions
        assert {each.producer_id for each in partition.active_producers} == {2, 3, 4}


def test_size_of_an_answer() -> None:
    one = [DescribeConfigsResource(resource_type=2, resource_name="t")]
    with served(max_response_bytes=4_000) as client:
        (found,) = client.ask(DescribeConfigsRequest(resources=one), 4).results
        assert (found.error_code, bool(found.configs)) == (0, True)
        answer = client.ask(DescribeConfigsRequest(resources=one * 3), 4)
        assert {each.error_code for each in answer.results} == {POLICY_VIOLATION}
        assert "embedlog.max.response.bytes" in answer.results[0].error_message
        (found,) = client.ask(DescribeConfigsRequest(resources=one), 4).results
        assert found.error_code == 0


def test_an_answer_that_is_too_large_and_has_no_room_for_an_error_closes_the_connection() -> None:
    with served(max_response_bytes=2_000) as client:
        client.ask(CreateTopicsRequest(topics=[_topic("x" * 200)], timeout_ms=1_000), 5)
        assert client.ask(MetadataRequest(topics=None), 1).topics
        names = [_topic(f"{n}" * 200) for n in range(10)]
        client.ask(CreateTopicsRequest(topics=names, timeout_ms=1_000), 5)
        client.send(MetadataRequest(topics=None), 1)
        assert client.is_closed()


def test_no_other_limit_than_its_own_holds_for_a_fetch() -> None:
    with served(max_response_bytes=1_024) as client:
        batch = build_batch([b"v" * 5_000], timestamps=1_700_000_000_000)
        assert _code_of(client.ask(_produce(batch), 9)) == 0
        request = _fetch(1)
        request.max_bytes = request.topics[0].partitions[0].partition_max_bytes = 10_000
        (topic,) = client.ask(request, 7).responses
        assert len(topic.partitions[0].records) == len(batch)


def test_groups_of_all_kinds_count_together() -> None:
    with served(max_groups=3) as client:
        client.ask(FindCoordinatorRequest(key="g", key_type=0), 2)
        assert client.ask(_join("classic"), 5).error_code == MEMBER_ID_REQUIRED
        assert client.ask(_heartbeat("consumer"), 1).error_code == 0
        assert _commit(client, "simple") == 0
        assert client.ask(_join("more"), 5).error_code == POLICY_VIOLATION
        assert client.ask(_join("more"), 3).error_code == POLICY_VIOLATION
        refused = client.ask(_heartbeat("more"), 1)
        assert refused.error_code == POLICY_VIOLATION
        assert "There are 3 groups" in refused.error_message
        assert _commit(client, "more") == POLICY_VIOLATION


def test_groups_that_are_there_go_on_and_make_room_when_they_are_deleted() -> None:
    with served(max_groups=1) as client:
        client.ask(FindCoordinatorRequest(key="g", key_type=0), 2)
        assert _commit(client, "simple") == 0
        assert _commit(client, "simple") == 0
        assert _commit(client, "more") == POLICY_VIOLATION
        deleted = client.ask(DeleteGroupsRequest(groups_names=["simple"]), 1)
        assert deleted.results[0].error_code == 0
        assert _commit(client, "more") == 0


def test_what_reads_or_leaves_a_group_makes_none() -> None:
    with served(max_groups=1) as client:
        client.ask(FindCoordinatorRequest(key="g", key_type=0), 2)
        assert _commit(client, "simple") == 0
        fetched = client.ask(OffsetFetchRequest(group_id="other", topics=None), 5)
        assert (fetched.error_code, fetched.topics) == (0, [])
        left = client.ask(LeaveGroupRequest(group_id="other", member_id="m"), 1)
        assert left.error_code == UNKNOWN_MEMBER_ID


def _heartbeat(group_id: str) -> ConsumerGroupHeartbeatRequest:
    return ConsumerGroupHeartbeatRequest(
        group_id=group_id,
        member_id="0123456789abcdefghijkl",
        member_epoch=0,
        rebalance_timeout_ms=30_000,
        subscribed_topic_names=["t"],
        topic_partitions=[],
    )


def _commit(client: WireClient, group_id: str) -> int:
    """Commit an offset without being a member of the group; return the error code."""
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    request = OffsetCommitRequest(
        group_id=group_id,
        generation_id_or_member_epoch=-1,
        member_id="",
        topics=[OffsetCommitRequestTopic(name="t", partitions=[partition])],
    )
    code: int = client.ask(request, 8).topics[0].partitions[0].error_code
    return code


def _topic(name: str, *configs: CreatableTopicConfig) -> CreatableTopic:
    return CreatableTopic(name=name, num_partitions=1, replication_factor=1, configs=list(configs))


def _produce(*records: bytes | None, topic: str = "t") -> ProduceRequest:
    data = [PartitionProduceData(index=n, records=each) for n, each in enumerate(records)]
    return ProduceRequest(
        acks=-1, timeout_ms=1_000, topic_data=[TopicProduceData(name=topic, partition_data=data)]
    )


def _code_of(response: Any) -> int:
    code: int = response.responses[0].partition_responses[0].error_code
    return code


def _fetch(count: int) -> FetchRequest:
    partitions = [FetchPartition(partition=n, partition_max_bytes=1) for n in range(count)]
    return FetchRequest(
        max_wait_ms=0,
        max_bytes=1_000,
        session_epoch=0,
        topics=[FetchTopic(topic="t", partitions=partitions)],
    )


def _join(group_id: str, metadata: bytes = b"") -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id=group_id,
        session_timeout_ms=30_000,
        rebalance_timeout_ms=30_000,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=metadata)],
    )
