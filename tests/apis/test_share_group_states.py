"""The five APIs about stored states of share partitions: errors of whole requests, large ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from embedlog import errors
from embedlog.broker import dispatch
from embedlog.broker.context import RequestContext
from embedlog.cluster.cluster import Cluster
from tests.apis.ask import ask, opened, versions
from tests.golden import share_state_requests as requests
from wire.schema import declaration
from wire.schemas import read_share_group_state as reads
from wire.schemas.find_coordinator import FindCoordinatorRequest

MAKERS = (
    requests.initialize,
    requests.read,
    requests.write,
    requests.delete,
    requests.summary,
)
REPEATED = 20_000


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with opened(share_coordinator_state_topic_num_partitions=1) as made:
        made.create_topic("t", 2)
        key = requests.key_of("g", topic_id(made))
        request = FindCoordinatorRequest(coordinator_keys=[key], key_type=2)
        assert ask(made, request, 6).coordinators[0].error_code == 0
        yield made


def topic_id(cluster: Cluster) -> bytes:
    return bytes(cluster.broker().core.image.topics_by_name["t"].topic_id)


@pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)
def test_every_version_is_answered(cluster: Cluster, make: Any) -> None:
    ask(cluster, requests.initialize("g", topic_id(cluster)), 0)
    request = make("g", topic_id(cluster))
    for version in versions(type(request)):
        (topic,) = ask(cluster, request, version).results
        assert topic.topic_id == topic_id(cluster)
        assert [(row.partition, row.error_code) for row in topic.partitions] == [(0, 0)]


@pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)
def test_a_refused_request_has_the_error_in_each_partition(cluster: Cluster, make: Any) -> None:
    request = make("g", topic_id(cluster), partition=1)
    api_key = declaration(type(request)).api
    assert api_key is not None
    context = RequestContext(api_key, 0)
    answer = dispatch.error_response(request, context, errors.InvalidRequest("no"))
    (topic,) = answer.results
    assert topic.topic_id == topic_id(cluster)
    (row,) = topic.partitions
    assert (row.partition, row.error_code, row.error_message) == (1, 42, "no")


def test_a_partition_that_is_read_many_times_is_answered_once(cluster: Cluster) -> None:
    ask(cluster, requests.initialize("g", topic_id(cluster)), 0)
    batches = [(2 * n, 2 * n, 2, 1) for n in range(1000)]
    ask(cluster, requests.write("g", topic_id(cluster), *batches), 1)
    rows = [reads.PartitionData(partition=0, leader_epoch=0)] * REPEATED
    topic = reads.ReadStateData(topic_id=topic_id(cluster), partitions=rows)
    request = reads.ReadShareGroupStateRequest(group_id="g", topics=[topic, topic])
    (found,) = ask(cluster, request, 0).results
    (row,) = found.partitions
    assert len(row.state_batches) == 1000


def test_the_feature_does_not_gate_the_states(cluster: Cluster) -> None:
    core = cluster.broker().core
    core.controller.update_features([("share.version", 0, 2)])
    assert core.image.feature_level("share.version") == 0
    (topic,) = ask(cluster, requests.initialize("g", topic_id(cluster)), 0).results
    assert topic.partitions[0].error_code == 0
