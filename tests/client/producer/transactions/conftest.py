"""A cluster in simulated time, and producers that use both kinds of transactions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from embedlog import Producer
from tests.client.faulty_cluster import FaultyCluster, faulty_cluster
from tests.support.turns import take_turns
from wire.schemas.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from wire.schemas.api_versions import FinalizedFeatureKey as Feature

MakeProducer = Callable[..., Producer]


@pytest.fixture
def cluster() -> Iterator[FaultyCluster]:
    with faulty_cluster() as made:
        made.cluster.create_topic("out", 2)
        made.cluster.create_topic("other", 1)
        yield made


@pytest.fixture
def has_groups(cluster: FaultyCluster) -> None:
    """Let groups have coordinators at their first look-up."""
    with cluster.cluster.consumer(group_id="readers") as consumer:
        consumer.committed([("other", 0)])


VERSIONS = {"v2": 2, "v1": 1}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    take_turns(items, Path(__file__).parent, ["transaction_version"])


@pytest.fixture(params=VERSIONS)
def transaction_version(request: pytest.FixtureRequest) -> int:
    """The feature transaction.version that the cluster announces."""
    return VERSIONS[request.param]


def transaction_features(answer: ApiVersionsResponse, level: int) -> ApiVersionsResponse:
    """The answer of a cluster that has this transaction.version."""
    feature = Feature(name="transaction.version", max_version_level=level, min_version_level=level)
    return ApiVersionsResponse(
        api_keys=answer.api_keys, finalized_features=[feature], finalized_features_epoch=level
    )


def tell_version(cluster: FaultyCluster, level: int) -> None:
    """Announce this transaction.version to clients from here on."""
    served = [
        ApiVersion(api_key=key, min_version=low, max_version=high)
        for key, (low, high) in (cluster.connect().versions(-1) or {}).items()
    ]
    answer = transaction_features(ApiVersionsResponse(api_keys=served), level)
    cluster.answer(ApiVersionsRequest, lambda _request: answer, count=1_000)


@pytest.fixture
def make(cluster: FaultyCluster, transaction_version: int) -> Iterator[MakeProducer]:
    """Return a function that makes producers, with the id "me" by default."""
    tell_version(cluster, transaction_version)
    made: list[Producer] = []

    def make_producer(**settings: Any) -> Producer:
        given = {"transactional.id": "me", **settings}
        producer = Producer(cluster, given)
        made.append(producer)
        return producer

    yield make_producer
    cluster.faults.clear()
    for producer in made:
        producer.close(0)


@pytest.fixture
def producer(make: MakeProducer, cluster: FaultyCluster) -> Producer:
    """An initialized producer."""
    made = make()
    made.init_transactions()
    cluster.requests.clear()
    return made


def committed(cluster: FaultyCluster, topic: str, isolation: str = "read_committed") -> list[bytes]:
    """Return the values that committed readers see, over all partitions."""
    with cluster.cluster.consumer(isolation_level=isolation) as consumer:
        places = [(topic, each.partition) for each in consumer.partitions_for(topic)]
        consumer.assign(places)
        consumer.seek_to_beginning()
        found: list[bytes] = []
        while True:
            polled = consumer.poll(0)
            found += [record.value or b"" for record in polled]
            if all(not consumer.current_lag(place) for place in places) and not polled:
                return found


def names(cluster: FaultyCluster) -> list[str]:
    """Return the kinds of the requests so far, without metadata requests."""
    return [
        type(each).__name__.removesuffix("Request")
        for each in cluster.requests
        if type(each).__name__ != "MetadataRequest"
    ]
