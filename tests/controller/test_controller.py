"""The controller: Kafka's rules, one change at a time, notified to the broker in order."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Thread

import pytest

from embedlog.common import TopicPartition
from embedlog.controller.controller import NewTopic
from embedlog.controller.metadata import (
    RESOURCE_BROKER,
    RESOURCE_CLIENT_METRICS,
    RESOURCE_GROUP,
    RESOURCE_TOPIC,
    MetadataDelta,
)
from embedlog.controller.topic_names import Collisions
from embedlog.errors import (
    InvalidPartitions,
    InvalidReplicaAssignment,
    InvalidRequest,
    InvalidTopic,
    KafkaError,
    PolicyViolation,
    TopicAlreadyExists,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from tests.controller.made_topics import create_topic
from tests.controller.metadata_state import Opened, plain


def refusal(opened: Opened, topic: NewTopic) -> tuple[int, str | None]:
    found = opened.controller.create_topics([topic])[topic.name]
    assert isinstance(found, KafkaError), found
    return found.code, found.message


def test_a_topic_has_an_id_and_one_leader_for_each_partition() -> None:
    opened = Opened(config={"num.partitions": 3})
    topic = create_topic(opened.controller, "events")
    assert len(topic.partitions) == 3
    assert len(topic.topic_id) == 16
    for number, partition in enumerate(topic.partitions):
        assert partition.partition == number
        assert (partition.leader, partition.leader_epoch) == (1, 0)
        assert (partition.replicas, partition.isr) == ((1,), (1,))
    image = opened.controller.image
    assert image.topics_by_name["events"] is image.topics_by_id[topic.topic_id]


@pytest.mark.parametrize(
    ("topic", "code", "message"),
    [
        (NewTopic(""), 17, "Topic name is invalid: the empty string is not allowed"),
        (NewTopic(".."), 17, "Topic name is invalid: '..' is not allowed"),
        (
            NewTopic("a b"),
            17,
            "Topic name is invalid: 'a b' contains one or more characters other than ASCII"
            " alphanumerics, '.', '_' and '-'",
        ),
        (
            NewTopic("x" * 250),
            17,
            f"Topic name is invalid: the length of '{'x' * 250}' is longer than the max allowed"
            " length 249",
        ),
        (
            NewTopic("t", partition_count=0),
            37,
            "Number of partitions was set to an invalid non-positive value.",
        ),
        (
            NewTopic("t", partition_count=0, replication_factor=0),
            38,
            "Replication factor must be larger than 0, or -1 to use the default value.",
        ),
        (
            NewTopic("t", replication_factor=2),
            38,
            "Unable to replicate the partition 2 time(s): The target replication factor of 2"
            " cannot be reached because only 1 broker(s) are registered or some brokers have all"
            " their log directories cordoned.",
        ),
        (
            NewTopic("t", partition_count=0, configs={"nope": "1"}),
            40,
            "Unknown topic config name: nope",
        ),
        (
            NewTopic("t", partition_count=1, assignments=[(0, [1])]),
            42,
            "A manual partition assignment was specified, but numPartitions was not set to -1.",
        ),
        (
            NewTopic("t", partition_count=1, replication_factor=1, assignments=[(0, [1])]),
            42,
            "A manual partition assignment was specified, but replication factor was not set to"
            " -1.",
        ),
        (
            NewTopic("t", assignments=[(0, [1]), (2, [1])]),
            39,
            "partitions should be a consecutive 0-based integer sequence",
        ),
        (
            NewTopic("t", assignments=[(0, [1]), (0, [1])]),
            39,
            "Found multiple manual partition assignments for partition 0",
        ),
        (
            NewTopic("t", assignments=[(0, [7])]),
            39,
            "The manual partition assignment includes broker 7, but no such broker is registered.",
        ),
        (
            NewTopic("t", assignments=[(0, [])]),
            39,
            "The manual partition assignment includes an empty replica list.",
        ),
        (
            NewTopic("t", assignments=[(0, [1, 1])]),
            39,
            "The manual partition assignment includes the broker 1 more than once.",
        ),
        (
            NewTopic("__cluster_metadata"),
            42,
            "Creation of internal topic __cluster_metadata is prohibited.",
        ),
    ],
)
def test_what_kafka_refuses_is_refused_in_its_words(
    topic: NewTopic, code: int, message: str
) -> None:
    opened = Opened()
    before = opened.metadata_log.end_offset
    assert refusal(opened, topic) == (code, message)
    assert opened.metadata_log.end_offset == before


def test_a_name_is_given_once_and_dots_and_underscores_are_one() -> None:
    opened = Opened()
    create_topic(opened.controller, "c.d")
    assert refusal(opened, NewTopic("c.d")) == (36, "Topic 'c.d' already exists.")
    collision = (17, "Topic 'c_d' collides with existing topic: c.d")
    assert refusal(opened, NewTopic("c_d")) == collision
    with pytest.raises(TopicAlreadyExists):
        create_topic(opened.controller, "c.d")
    with pytest.raises(InvalidTopic):
        create_topic(opened.controller, "c_d")


def test_existing_names_are_looked_at_once_for_all_new_ones() -> None:
    looks = []

    class Names(dict[str, None]):
        def __iter__(self) -> Iterator[str]:
            looks.append(1)
            return super().__iter__()

    collisions = Collisions(Names.fromkeys(f"existing_{n}" for n in range(100)))
    for n in range(100):
        collisions.refuse(f"new_{n}")
    with pytest.raises(InvalidTopic, match="existing_7"):
        collisions.refuse("existing.7")
    assert len(looks) == 1


def test_one_bad_topic_does_not_hold_back_the_others() -> None:
    opened = Opened()
    found = opened.controller.create_topics([NewTopic("a"), NewTopic("b c"), NewTopic("d")])
    assert list(found) == ["a", "b c", "d"]
    assert set(opened.controller.image.topics_by_name) == {"a", "d"}


def test_more_than_ten_thousand_partitions_in_a_request_are_refused() -> None:
    controller = Opened().controller
    topics = [NewTopic("a", partition_count=6000), NewTopic("b", partition_count=4001)]
    with pytest.raises(PolicyViolation, match="Excessively large number of partitions per req"):
        controller.create_topics(topics)
    assert not controller.image.topics_by_name


def test_validation_alone_changes_nothing() -> None:
    opened = Opened()
    before = plain(opened.controller.image)
    topic = create_topic(opened.controller, "a", partition_count=2, validate_only=True)
    assert len(topic.partitions) == 2
    assert plain(opened.controller.image) == before
    create_topic(opened.controller, "a")
    opened.controller.create_partitions("a", 3, validate_only=True)
    opened.controller.alter_configs(
        RESOURCE_TOPIC, "a", [(0, "retention.ms", "1")], validate_only=True
    )
    assert len(opened.controller.image.topics_by_name["a"].partitions) == 1
    assert opened.controller.image.topic_configs == {}


def test_replicas_are_spread_and_every_broker_leads() -> None:
    opened = Opened(node_ids=(1, 2, 3))
    topic = create_topic(opened.controller, "a", partition_count=6, replication_factor=2)
    assert sorted(partition.leader for partition in topic.partitions) == [1, 1, 2, 2, 3, 3]
    for partition in topic.partitions:
        assert len(set(partition.replicas)) == 2
        assert partition.leader == partition.replicas[0]


def test_replicas_of_one_topic_have_one_count() -> None:
    opened = Opened(node_ids=(1, 2))
    laid_down = NewTopic("a", assignments=[(0, [1]), (1, [2, 1])])
    code, message = refusal(opened, laid_down)
    assert code == 39
    assert message is not None
    assert "2 replica(s)" in message
    opened.controller.create_topics([NewTopic("a", assignments=[(1, [2]), (0, [1])])])
    partitions = opened.controller.image.topics_by_name["a"].partitions
    assert [partition.replicas for partition in partitions] == [(1,), (2,)]


def test_a_deleted_topic_takes_its_settings_along() -> None:
    opened = Opened()
    controller = opened.controller
    topic = create_topic(controller, "a", configs={"retention.ms": "5"})
    assert controller.image.topic_configs == {"a": {"retention.ms": "5"}}
    assert controller.delete_topic(topic.topic_id) is topic
    assert controller.image.topic_configs == {}
    assert not controller.image.topics_by_id
    with pytest.raises(UnknownTopicId):
        controller.delete_topic(topic.topic_id)
    assert create_topic(controller, "a").topic_id != topic.topic_id


@pytest.mark.parametrize(
    ("count", "message"),
    [
        (2, "Topic already has 2 partition(s)."),
        (1, "The topic p currently has 2 partition(s); 1 would not be an increase."),
        (-1, "The topic p currently has 2 partition(s); -1 would not be an increase."),
    ],
)
def test_partitions_only_grow(count: int, message: str) -> None:
    controller = Opened().controller
    create_topic(controller, "p", partition_count=2)
    with pytest.raises(InvalidPartitions) as caught:
        controller.create_partitions("p", count)
    assert caught.value.message == message


def test_new_partitions_go_where_they_are_told() -> None:
    controller = Opened(node_ids=(1, 2)).controller
    create_topic(controller, "p", partition_count=1)
    for assignments in ([], [[1], [1]]):
        with pytest.raises(InvalidReplicaAssignment, match="Attempted to add 1 additional"):
            controller.create_partitions("p", 2, assignments=assignments)
    with pytest.raises(InvalidReplicaAssignment, match="broker 7, but no such broker"):
        controller.create_partitions("p", 2, assignments=[[7]])
    with pytest.raises(UnknownTopicOrPartition):
        controller.create_partitions("nope", 2)
    with pytest.raises(PolicyViolation):
        controller.create_partitions("p", 10_002)
    controller.create_partitions("p", 2, assignments=[[2]])
    partitions = controller.image.topics_by_name["p"].partitions
    assert [partition.replicas for partition in partitions][1] == (2,)


def test_epochs_rise_and_nothing_else_changes() -> None:
    controller = Opened().controller
    create_topic(controller, "a", partition_count=2)
    controller.bump_leader_epochs([TopicPartition("a", 1), TopicPartition("nope", 0)])
    first, second = controller.image.topics_by_name["a"].partitions
    assert (first.leader_epoch, first.partition_epoch) == (0, 0)
    assert (second.leader_epoch, second.partition_epoch, second.leader) == (1, 1, 1)
    before = controller.image
    controller.bump_leader_epochs([TopicPartition("nope", 0)])
    assert controller.image is before


def test_producer_ids_are_given_once_also_over_restarts() -> None:
    opened = Opened()
    assert opened.controller.allocate_producer_ids() == range(1000)
    assert opened.controller.allocate_producer_ids(5) == range(1000, 1005)
    assert opened.reopen().controller.allocate_producer_ids(1) == range(1005, 1006)


def test_every_change_is_told_once_in_order() -> None:
    controller = Opened().controller
    heard: list[MetadataDelta] = []
    controller.on_change = heard.append
    topic = create_topic(controller, "a")
    controller.create_partitions("a", 3)
    controller.bump_leader_epochs([TopicPartition("a", 0)])
    controller.alter_configs(RESOURCE_TOPIC, "a", [(0, "retention.ms", "5")])
    controller.alter_configs(RESOURCE_TOPIC, "a", [(0, "retention.ms", "5")])
    controller.alter_configs(RESOURCE_BROKER, "", [(0, "log.retention.ms", "5")])
    controller.alter_configs(RESOURCE_GROUP, "g", [(0, "share.isolation.level", "read_committed")])
    controller.alter_configs(RESOURCE_CLIENT_METRICS, "m", [(0, "metrics", "*")])
    controller.delete_topic(topic.topic_id)
    created, added, epochs, topic_config, broker_config, group, metrics, deleted = heard
    assert created.created == [topic]
    assert [(image.name, numbers) for image, numbers in added.partitions_added] == [
        ("a", range(1, 3))
    ]
    assert epochs.partitions_changed == [TopicPartition("a", 0)]
    assert topic_config.changed_configs == ["a"]
    assert broker_config.broker_configs_changed
    assert group.groups_changed == ["g"]
    assert metrics.image.client_metrics_configs == {"m": {"metrics": "*"}}
    assert [image.topic_id for image in deleted.deleted] == [topic.topic_id]
    ends = [delta.image.end_offset for delta in heard]
    assert ends == sorted(set(ends))


def test_a_change_may_ask_for_another_one() -> None:
    controller = Opened().controller

    def follow(delta: MetadataDelta) -> None:
        if any(topic.name == "a" for topic in delta.created):
            create_topic(controller, "b")

    controller.on_change = follow
    create_topic(controller, "a")
    assert set(controller.image.topics_by_name) == {"a", "b"}


def test_broker_settings_are_in_force_at_once_and_after_a_restart() -> None:
    opened = Opened()
    opened.controller.alter_configs(RESOURCE_BROKER, "", [(0, "message.max.bytes", "500")])
    assert opened.config.message_max_bytes == 500
    opened.controller.alter_configs(RESOURCE_BROKER, "1", [(0, "message.max.bytes", "600")])
    assert opened.config.message_max_bytes == 600
    again = opened.reopen()
    assert again.config.message_max_bytes == 600


def test_an_image_never_changes() -> None:
    controller = Opened().controller
    before = controller.image
    create_topic(controller, "a", configs={"retention.ms": "5"})
    assert before.topics_by_name == {}
    assert before.topic_configs == {}
    with pytest.raises(InvalidRequest):
        controller.alter_configs(RESOURCE_TOPIC, "", [])


def test_threads_get_different_ids_and_lose_no_topic() -> None:
    opened = Opened()
    controller = opened.controller
    ends: list[int] = []
    controller.on_change = lambda delta: ends.append(delta.image.end_offset)
    given: list[range] = []

    def work(number: int) -> None:
        for step in range(20):
            create_topic(controller, f"t{number}-{step}")
            given.append(controller.allocate_producer_ids(10))

    threads = [Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(controller.image.topics_by_name) == 80
    assert len({first for ids in given for first in ids}) == 800
    assert ends == sorted(ends)
    published = plain(controller.image)
    assert plain(opened.reopen().controller.image) == published
