"""An admin call takes no answer to an earlier call, and each item has its own outcome in time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from embedlog import Admin, Consumer, OffsetSpec, errors
from embedlog.errors import TimedOut
from tests.client.admin.test_coordinators import NEWEST, Nodes, deleted
from tests.client.faulty_cluster import FaultyCluster, faulty_cluster
from tests.client.held_answers import HeldAnswers
from wire.api_keys import ApiKey
from wire.schemas.delete_groups import DeleteGroupsRequest
from wire.schemas.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from wire.schemas.find_coordinator import Coordinator, FindCoordinatorRequest
from wire.schemas.find_coordinator import FindCoordinatorResponse as Found
from wire.schemas.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from wire.schemas.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)


@pytest.fixture
def cluster() -> Iterator[FaultyCluster]:
    with faulty_cluster(t=1) as made:
        yield made


@pytest.fixture
def late(cluster: FaultyCluster) -> HeldAnswers:
    return HeldAnswers(cluster)


CALLS: dict[str, Callable[[Any, int], Any]] = {
    "list_topics": lambda client, timeout_ms: client.list_topics(timeout_ms=timeout_ms)["t"],
    "describe_topics": lambda client, timeout_ms: client.describe_topics(
        ["t"], timeout_ms=timeout_ms
    )["t"],
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("earlier", CALLS)
def test_metadata_that_an_earlier_call_asked_for_is_not_believed(
    cluster: FaultyCluster, late: HeldAnswers, call: str, earlier: str
) -> None:
    with Admin(cluster) as admin:
        assert len(CALLS[call](admin, 1_000).partitions) == 1
        late.hold(MetadataRequest, 2)
        with pytest.raises(TimedOut):
            CALLS[earlier](admin, 50)
        with cluster.cluster.admin() as other:
            other.create_partitions({"t": 2}).check()
        late.release_every(20)
        assert len(CALLS[call](admin, 1_000).partitions) == 2


def test_metadata_that_a_consumer_asked_for_earlier_is_not_believed(
    cluster: FaultyCluster, late: HeldAnswers
) -> None:
    with Consumer(cluster) as consumer:
        late.hold(MetadataRequest, 2)
        with pytest.raises(TimedOut):
            consumer.list_topics(timeout_ms=50)
        with cluster.cluster.admin() as other:
            other.create_partitions({"t": 2}).check()
        late.release_every(20)
        assert len(consumer.list_topics()["t"].partitions) == 2


def _described(_request: Any) -> MetadataResponse:
    """Nodes 1 and 2 lead partitions 0 and 1."""
    partitions = [
        MetadataResponsePartition(partition_index=each, leader_id=each + 1, leader_epoch=0)
        for each in (0, 1)
    ]
    topic = MetadataResponseTopic(name="t", topic_id=b"t" * 16, partitions=partitions)
    nodes = [
        MetadataResponseBroker(node_id=each, host="localhost", port=9091 + each) for each in (1, 2)
    ]
    return MetadataResponse(brokers=nodes, controller_id=1, topics=[topic])


def _deleted(request: DeleteRecordsRequest) -> DeleteRecordsResponse:
    (topic,) = request.topics
    results = [
        DeleteRecordsPartitionResult(
            partition_index=each.partition_index, low_watermark=each.offset
        )
        for each in topic.partitions
    ]
    return DeleteRecordsResponse(topics=[DeleteRecordsTopicResult(name="t", partitions=results)])


@pytest.mark.parametrize("answers", [(_deleted, None), (None, _deleted)])
def test_a_leader_that_does_not_answer_takes_nothing_from_the_others(answers: Any) -> None:
    nodes = Nodes({**NEWEST, ApiKey.DELETE_RECORDS: (0, 2)})
    nodes.script(MetadataRequest, _described)
    nodes.script(DeleteRecordsRequest, *answers)
    silent = answers.index(None)
    with Admin(nodes) as admin:
        results = admin.delete_records({("t", 0): 3, ("t", 1): 4}, timeout_ms=200)
    assert results.values == {("t", 1 - silent): 4 - silent}
    assert isinstance(results.errors["t", silent], errors.RequestTimedOut)


def _listed(request: ListOffsetsRequest) -> ListOffsetsResponse:
    (topic,) = request.topics
    answers = [
        ListOffsetsPartitionResponse(partition_index=each.partition_index, offset=5, timestamp=-1)
        for each in topic.partitions
    ]
    return ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name="t", partitions=answers)])


@pytest.mark.parametrize("answers", [(_listed, None), (None, _listed)])
def test_offsets_that_were_found_survive_the_time_out_of_others(answers: Any) -> None:
    nodes = Nodes({**NEWEST, ApiKey.LIST_OFFSETS: (1, 9)})
    nodes.script(MetadataRequest, _described)
    nodes.script(ListOffsetsRequest, *answers)
    silent = answers.index(None)
    specs = {("t", number): OffsetSpec.LATEST for number in (0, 1, 2)}
    with Admin(nodes) as admin:
        results = admin.list_offsets(specs, timeout_ms=200)
    assert {key: found.offset for key, found in results.values.items() if found} == {
        ("t", 1 - silent): 5
    }
    assert isinstance(results.errors["t", silent], errors.RequestTimedOut)
    assert "t-2" not in str(results.errors["t", silent])
    assert isinstance(results.errors["t", 2], errors.RequestTimedOut)
    assert "no partition t-2: topic 't' has 2" in str(results.errors["t", 2])


def test_if_no_leader_answers_the_call_times_out() -> None:
    nodes = Nodes({**NEWEST, ApiKey.DELETE_RECORDS: (0, 2)})
    nodes.script(MetadataRequest, _described)
    nodes.script(DeleteRecordsRequest, None)
    with Admin(nodes) as admin, pytest.raises(TimedOut, match="DeleteRecords"):
        admin.delete_records({("t", 0): 3, ("t", 1): 4}, timeout_ms=200)


@pytest.mark.parametrize("answers", [(deleted(one=0), None), (None, deleted(two=0))])
def test_a_coordinator_that_does_not_answer_takes_nothing_from_the_others(answers: Any) -> None:
    def find(request: FindCoordinatorRequest) -> Found:
        ports = {"one": 1, "two": 2}
        return Found(
            coordinators=[
                Coordinator(key=key, node_id=ports[key], host="localhost", port=9091 + ports[key])
                for key in request.coordinator_keys
            ]
        )

    nodes = Nodes()
    nodes.script(FindCoordinatorRequest, find)
    nodes.script(DeleteGroupsRequest, *answers)
    answered, silent = ("one", "two") if answers[1] is None else ("two", "one")
    with Admin(nodes) as admin:
        results = admin.delete_groups(["one", "two"], timeout_ms=200)
    assert results.values == {answered: None}
    assert isinstance(results.errors[silent], errors.RequestTimedOut)
