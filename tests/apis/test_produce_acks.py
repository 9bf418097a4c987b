"""Produce with acks=1 where topics sync: the answer waits for the disk, and only for it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from embedlog import errors
from embedlog.broker.apis.produce import append_one
from embedlog.broker.broker import Broker
from embedlog.broker.context import RequestContext
from embedlog.cluster.cluster import Cluster
from embedlog.runtime.pending import Pending
from embedlog.testing import SimRuntime, sim_runtime
from wire.api_keys import ApiKey
from wire.records import build_batch
from wire.schemas.produce import PartitionProduceData, ProduceRequest, TopicProduceData

WAIT_MS = 60_000


@pytest.fixture
def runtime() -> SimRuntime:
    return sim_runtime()


@pytest.fixture
def core(runtime: SimRuntime) -> Iterator[Broker]:
    with Cluster("/data", runtime=runtime, durability="fsync") as cluster:
        cluster.create_topic("t", 1)
        yield cluster.broker().core


@pytest.mark.parametrize("acks", [-1, 1])
def test_a_request_waits_for_the_disk(core: Broker, runtime: SimRuntime, acks: int) -> None:
    data = PartitionProduceData(index=0, records=build_batch([b"x"], timestamps=1))
    request = ProduceRequest(
        acks=acks,
        timeout_ms=10_000,
        topic_data=[TopicProduceData(name="t", partition_data=[data])],
    )
    answer = core.handle(RequestContext(ApiKey.PRODUCE, 12), request)
    assert isinstance(answer, Pending)
    assert not answer.done()
    assert runtime.scheduler.wait(answer, WAIT_MS)
    assert answer.result().responses[0].partition_responses[0].error_code == 0


@pytest.mark.parametrize("acks", [-1, 1])
def test_a_producer_in_the_process_waits_for_the_disk(
    core: Broker, runtime: SimRuntime, acks: int
) -> None:
    topic_id = core.image.topics_by_name["t"].topic_id
    records = build_batch([b"x"], timestamps=1)
    answer = append_one(core, "t", topic_id, 0, records, acks, 10_000, False)
    assert isinstance(answer, Pending)
    assert not answer.done()
    assert runtime.scheduler.wait(answer, WAIT_MS)


def test_a_producer_in_the_process_does_not_append_to_a_topic_made_anew(core: Broker) -> None:
    records = build_batch([b"x"], timestamps=1)
    with pytest.raises(errors.UnknownTopicId):
        append_one(core, "t", b"another topic id", 0, records, 1, 10_000, False)
