"""Metadata, as a Kafka 4.4 broker answers it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import embedlog
from embedlog.cluster.cluster import Cluster
from embedlog.common import ZERO_UUID
from embedlog.runtime.pending import Pending
from tests.apis.ask import PORT, ask, opened, versions
from wire.schemas.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)

NOT_ASKED_FOR = -(2**31)


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with opened() as cluster:
        yield cluster


def names(*wanted: str, create: bool = False) -> MetadataRequest:
    return MetadataRequest(
        topics=[MetadataRequestTopic(name=name) for name in wanted],
        allow_auto_topic_creation=create,
    )


def one(response: MetadataResponse) -> MetadataResponseTopic:
    (topic,) = response.topics
    return topic


def wait_for_topics(cluster: Cluster, *names: str) -> None:
    """Return once the topics exist, which are created soon after the answer."""
    core = cluster.broker().core
    while not core.image.topics_by_name.keys() >= {*names}:
        cluster.runtime.scheduler.wait(Pending(), 10)


@pytest.mark.parametrize("version", versions(MetadataRequest))
def test_a_topic_and_its_broker(cluster: Cluster, version: int) -> None:
    made = cluster.create_topic("t", 2)
    response = ask(cluster, MetadataRequest(topics=[MetadataRequestTopic(name="t")]), version)
    (broker,) = response.brokers
    assert (broker.node_id, broker.host, broker.port, broker.rack) == (1, "127.0.0.1", PORT, None)
    assert response.controller_id == (1 if version >= 1 else -1)
    assert response.cluster_id == (cluster.cluster_id if version >= 2 else None)
    topic = one(response)
    assert (topic.error_code, topic.name, topic.is_internal) == (0, "t", False)
    assert topic.topic_id == (made.topic_id if version >= 10 else ZERO_UUID)
    for number, partition in enumerate(topic.partitions):
        assert (partition.error_code, partition.partition_index) == (0, number)
        assert (partition.leader_id, partition.replica_nodes, partition.isr_nodes) == (1, [1], [1])
        assert partition.leader_epoch == (0 if version >= 7 else -1)


@pytest.mark.parametrize("version", versions(MetadataRequest))
def test_a_topic_that_is_created_is_unknown_once(cluster: Cluster, version: int) -> None:
    request = names("new", create=True)
    first = one(ask(cluster, request, version))
    assert (first.error_code, first.name, first.partitions) == (3, "new", [])
    again = one(ask(cluster, request, version))
    assert (again.error_code, cluster.topics) == (3, []), "before the topic exists"
    wait_for_topics(cluster, "new")
    assert one(ask(cluster, request, version)).error_code == 0


@pytest.mark.parametrize("version", versions(MetadataRequest))
def test_a_topic_that_is_created_is_in_the_first_answer_if_wanted(version: int) -> None:
    with opened(embedlog_auto_create_topics_await=True, num_partitions=3) as cluster:
        request = names("new", "a b", "__consumer_offsets", create=True)
        found = {topic.name: topic for topic in ask(cluster, request, version).topics}
        topic = found["new"]
        assert (topic.error_code, len(topic.partitions)) == (0, 3)
        assert [partition.leader_id for partition in topic.partitions] == [1, 1, 1]
        image = cluster.broker().core.controller.image
        made = image.topics_by_name["new"]
        assert topic.topic_id == (made.topic_id if version >= 10 else ZERO_UUID)
        assert found["a b"].error_code == 17
        offsets = found["__consumer_offsets"]
        assert (offsets.error_code, offsets.is_internal) == (0, version >= 1)
        again = {topic.name: topic for topic in ask(cluster, request, version).topics}
        assert again["new"] == topic


def test_an_opened_cluster_answers_with_the_topic_unless_told() -> None:
    with embedlog.open() as cluster:
        assert one(ask(cluster, names("new", create=True), 12)).error_code == 0
    with Cluster() as cluster:
        assert one(ask(cluster, names("new", create=True), 12)).error_code == 3


@pytest.mark.parametrize("version", range(4, 14))
def test_a_client_may_forbid_creation(cluster: Cluster, version: int) -> None:
    ask(cluster, names("new"), version)
    assert cluster.topics == []


def test_the_broker_may_forbid_creation() -> None:
    with opened(auto_create_topics_enable=False) as cluster:
        assert one(ask(cluster, names("new", create=True), 12)).error_code == 3
        assert cluster.topics == []


def test_created_topics_have_the_brokers_counts() -> None:
    with opened(num_partitions=3) as cluster:
        ask(cluster, names("new", create=True), 12)
        wait_for_topics(cluster, "new")
        assert len(one(ask(cluster, names("new"), 12)).partitions) == 3


@pytest.mark.parametrize("version", versions(MetadataRequest))
def test_null_is_all_and_so_is_empty_at_version_0(cluster: Cluster, version: int) -> None:
    cluster.create_topic("a")
    cluster.create_topic("b")
    everything = MetadataRequest(topics=None if version else [])
    assert {topic.name for topic in ask(cluster, everything, version).topics} == {"a", "b"}
    nothing = ask(cluster, MetadataRequest(topics=[]), version)
    assert [topic.name for topic in nothing.topics] == (["a", "b"] if version == 0 else [])


def test_bad_names_are_errors_and_create_nothing(cluster: Cluster) -> None:
    wanted = ["a b", "", "x" * 250, "__cluster_metadata", "nope"]
    response = ask(cluster, names(*wanted, create=True), 12)
    codes = {topic.name: topic.error_code for topic in response.topics}
    assert codes == {"a b": 17, "": 17, "x" * 250: 17, "__cluster_metadata": 3, "nope": 3}
    wait_for_topics(cluster, "nope")
    assert cluster.topics == ["nope"]


def test_a_name_that_collides_stays_unknown(cluster: Cluster) -> None:
    cluster.create_topic("c.d")
    for _ in range(2):
        assert one(ask(cluster, names("c_d", create=True), 12)).error_code == 3


def test_a_name_asked_for_twice_is_answered_once(cluster: Cluster) -> None:
    cluster.create_topic("a")
    assert one(ask(cluster, names("a", "a"), 12)).name == "a"


def test_a_coordinators_topic_is_made_as_it_must_be(cluster: Cluster) -> None:
    first = one(ask(cluster, names("__transaction_state", create=True), 12))
    assert (first.error_code, first.is_internal) == (3, True)
    wait_for_topics(cluster, "__transaction_state")
    topic = one(ask(cluster, names("__transaction_state"), 12))
    assert (topic.error_code, topic.is_internal, len(topic.partitions)) == (0, True, 50)
    configs = cluster.broker().core.controller.image.topic_configs["__transaction_state"]
    assert configs["cleanup.policy"] == "compact"
    assert cluster.topics == []


def test_topics_by_id(cluster: Cluster) -> None:
    made = cluster.create_topic("a")
    cluster.create_topic("b")
    unknown = bytes([9] * 16)

    def by_id(*asked: MetadataRequestTopic) -> list[tuple[int, str | None, bytes]]:
        response = ask(cluster, MetadataRequest(topics=list(asked)), 12)
        return [(topic.error_code, topic.name, topic.topic_id) for topic in response.topics]

    known = MetadataRequestTopic(topic_id=made.topic_id, name=None)
    assert by_id(known, known) == [(0, "a", made.topic_id)]
    assert by_id(MetadataRequestTopic(topic_id=unknown, name=None)) == [(100, None, unknown)]
    assert by_id(MetadataRequestTopic(topic_id=made.topic_id, name="b")) == [
        (0, "a", made.topic_id)
    ]
    assert by_id(MetadataRequestTopic(name="b"), known) == [(0, "a", made.topic_id)]


@pytest.mark.parametrize("version", [10, 11])
def test_ids_cannot_be_asked_for_before_version_12(cluster: Cluster, version: int) -> None:
    made = cluster.create_topic("a")
    asked = [
        MetadataRequestTopic(topic_id=made.topic_id, name="a"),
        MetadataRequestTopic(name="a"),
    ]
    response = ask(cluster, MetadataRequest(topics=asked), version)
    assert [(topic.error_code, topic.name) for topic in response.topics] == [(42, "a"), (42, "a")]
    assert (response.brokers, response.controller_id, response.cluster_id) == ([], -1, None)
    nameless = MetadataRequest(topics=[MetadataRequestTopic(name=None)])
    assert one(ask(cluster, nameless, version)).error_code == 42


def test_neither_name_nor_id_spoils_the_request(cluster: Cluster) -> None:
    cluster.create_topic("b")
    asked = [MetadataRequestTopic(name=None), MetadataRequestTopic(name="b")]
    response = ask(cluster, MetadataRequest(topics=asked), 13)
    assert [(topic.error_code, topic.name) for topic in response.topics] == [(-1, ""), (-1, "b")]
    assert (response.brokers, response.controller_id, response.error_code) == ([], -1, -1)


def test_operations_are_in_the_answer_on_request(cluster: Cluster) -> None:
    cluster.create_topic("a")
    response = ask(cluster, names("a"), 8)
    assert one(response).topic_authorized_operations == NOT_ASKED_FOR
    assert response.cluster_authorized_operations == NOT_ASKED_FOR
    request = names("a")
    request.include_topic_authorized_operations = True
    request.include_cluster_authorized_operations = True
    response = ask(cluster, request, 8)
    assert one(response).topic_authorized_operations == 3576
    assert response.cluster_authorized_operations == 8096


def test_the_answer_has_the_rack() -> None:
    with opened(broker_rack="r1") as cluster:
        (broker,) = ask(cluster, MetadataRequest(topics=[]), 12).brokers
        assert broker.rack == "r1"
