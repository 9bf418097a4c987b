"""The settings of each kind of resource, with the codes and messages of a Kafka 4.4 broker."""

from __future__ import annotations

import pytest

from embedlog.controller.metadata import (
    RESOURCE_BROKER,
    RESOURCE_CLIENT_METRICS,
    RESOURCE_GROUP,
    RESOURCE_TOPIC,
)
from embedlog.errors import KafkaError
from tests.controller.made_topics import create_topic
from tests.controller.metadata_state import Opened

SET, DELETE, APPEND, SUBTRACT = range(4)
TOPIC, BROKER, METRICS, GROUP = (
    RESOURCE_TOPIC,
    RESOURCE_BROKER,
    RESOURCE_CLIENT_METRICS,
    RESOURCE_GROUP,
)


@pytest.fixture
def opened() -> Opened:
    opened = Opened()
    create_topic(opened.controller, "t", configs={"cleanup.policy": "compact"})
    return opened


@pytest.mark.parametrize(
    ("kind", "name", "changes", "code", "message"),
    [
        (
            TOPIC,
            "t",
            [(SET, "retention.ms", "1"), (SET, "retention.ms", "2")],
            42,
            "Error due to duplicate config keys",
        ),
        (
            TOPIC,
            "t",
            [(SET, "retention.ms", None)],
            42,
            "Null value not supported for : retention.ms",
        ),
        (TOPIC, "t", [(4, "retention.ms", "1")], -1, None),
        (TOPIC, "t", [(-1, "retention.ms", "1")], -1, None),
        (
            TOPIC,
            "t",
            [(APPEND, "retention.ms", "1")],
            40,
            "Can't APPEND to key retention.ms because its type is not LIST.",
        ),
        (
            TOPIC,
            "t",
            [(SUBTRACT, "nope", "1")],
            40,
            "Can't SUBTRACT to key nope because its type is not LIST.",
        ),
        (
            TOPIC,
            "t",
            [(APPEND, "cleanup.policy", "foo")],
            40,
            "Invalid value foo for configuration cleanup.policy: String must be one of: compact,"
            " delete",
        ),
        (TOPIC, "t", [(SET, "nope", "1")], 40, "Unknown topic config name: nope"),
        (TOPIC, "nope", [(SET, "retention.ms", "1")], 3, "The topic 'nope' does not exist."),
        (TOPIC, "", [(SET, "retention.ms", "1")], 42, "Default topic resources are not allowed."),
        (
            TOPIC,
            "",
            [(SET, "retention.ms", None)],
            42,
            "Null value not supported for : retention.ms",
        ),
        (
            BROKER,
            "2",
            [(SET, "log.retention.ms", "7")],
            42,
            "Unexpected broker id, expected 1, but received 2",
        ),
        (
            BROKER,
            "x",
            [(SET, "log.retention.ms", "7")],
            42,
            "Node id must be an integer, but it is: x",
        ),
        (
            BROKER,
            "1",
            [(SET, "log.dirs", "x"), (SET, "log.cleaner.threads", "1"), (SET, "zz", "u")],
            42,
            "Cannot update these configs dynamically: [log.dirs]",
        ),
        (
            BROKER,
            "",
            [(SET, "num.partitions", "7")],
            42,
            "Cannot update these configs dynamically: [num.partitions]",
        ),
        (
            BROKER,
            "",
            [(SET, "listeners", "PLAINTEXT://:1")],
            42,
            "Cannot update these configs at default cluster level, broker id must be specified:"
            " [listeners]",
        ),
        (
            BROKER,
            "1",
            [(SET, "ssl.keystore.password", "secret")],
            42,
            "These security configs can be dynamically updated only per-listener using the"
            " listener prefix: [ssl.keystore.password]",
        ),
        (
            BROKER,
            "",
            [(SET, "message.max.bytes", "x")],
            42,
            "Invalid value x for configuration message.max.bytes: Not a number of type INT",
        ),
        (
            BROKER,
            "",
            [(SET, "log.retention.ms", "0")],
            42,
            "requirement failed: log.retention.ms must be unlimited (-1) or, greater than or equal"
            " to 1",
        ),
        (
            BROKER,
            "1",
            [(SET, "min.insync.replicas", "2")],
            40,
            "Broker-level min.insync.replicas cannot be altered while ELR is enabled.",
        ),
        (
            BROKER,
            "",
            [(DELETE, "min.insync.replicas", None)],
            40,
            "Cluster-level min.insync.replicas cannot be removed while ELR is enabled.",
        ),
        (
            BROKER,
            "1",
            [(APPEND, "log.retention.ms", "1")],
            40,
            "Config value append is not allowed for config key: log.retention.ms",
        ),
        (
            GROUP,
            "g",
            [(SET, "consumer.session.timeout.ms", "5")],
            40,
            "consumer.session.timeout.ms must be in the range 45000 to 60000 inclusive.",
        ),
        (GROUP, "g", [(SET, "nope", "5")], 40, "Unknown group config name: nope"),
        (GROUP, "", [(SET, "nope", "5")], 42, "Default group resources are not allowed."),
        (
            GROUP,
            "g",
            [(SET, "share.isolation.level", "x")],
            40,
            "Invalid value x for configuration share.isolation.level: String must be one of:"
            " read_committed, read_uncommitted",
        ),
        (
            GROUP,
            "g",
            [(SET, "streams.num.standby.replicas", "3")],
            40,
            "streams.num.standby.replicas must be less than or equal to 2",
        ),
        (
            GROUP,
            "g",
            [(SET, "streams.task.offset.interval.ms", "1")],
            40,
            "streams.task.offset.interval.ms must be greater than or equal to 15000",
        ),
        (
            GROUP,
            "g",
            [(SET, "streams.assignor.name", "x")],
            40,
            "streams.assignor.name 'x' is not a registered task assignor. Registered assignors"
            " are: [sticky].",
        ),
        (
            GROUP,
            "g",
            [(APPEND, "streams.rack.aware.assignment.tags", "a")],
            40,
            "Can't APPEND to key streams.rack.aware.assignment.tags because its type is not LIST.",
        ),
        (
            METRICS,
            "m",
            [(SET, "interval.ms", "5")],
            42,
            "Invalid value 5 for interval.ms, interval must be between 100 and 3600000 (1 hour)",
        ),
        (METRICS, "m", [(SET, "match", "foo")], 40, "Illegal client matching pattern: foo"),
        (METRICS, "m", [(SET, "match", "foo=.*")], 40, "Illegal client matching pattern: foo=.*"),
        (
            METRICS,
            "m",
            [(SET, "interval.ms", "x")],
            40,
            "Invalid value x for configuration interval.ms: Not a number of type INT",
        ),
        (METRICS, "m", [(SET, "nope", "x")], 42, "Unknown client metrics configuration: nope"),
        (METRICS, "", [(SET, "metrics", "x")], 42, "Subscription name can't be empty"),
    ],
)
def test_what_kafka_refuses_is_refused_in_its_words(
    opened: Opened,
    kind: int,
    name: str,
    changes: list[tuple[int, str, str | None]],
    code: int,
    message: str | None,
) -> None:
    with pytest.raises(KafkaError) as caught:
        opened.controller.alter_configs(kind, name, changes)
    assert (caught.value.code, caught.value.message) == (code, message)


def test_lists_grow_and_shrink_by_item(opened: Opened) -> None:
    def after(operation: int, value: str) -> str | None:
        opened.controller.alter_configs(TOPIC, "t", [(operation, "cleanup.policy", value)])
        return opened.controller.image.topic_configs["t"].get("cleanup.policy")

    assert after(APPEND, "delete") == "compact,delete"
    assert after(APPEND, "delete") == "compact,delete"
    assert after(SUBTRACT, "compact") == "delete"
    assert after(SUBTRACT, "nothing") == "delete"
    assert after(SUBTRACT, "delete") == ""


def test_a_list_that_was_not_set_grows_from_its_default(opened: Opened) -> None:
    opened.controller.alter_configs(BROKER, "1", [(APPEND, "log.cleanup.policy", "compact")])
    configs = opened.controller.image.broker_configs["1"]
    assert configs["log.cleanup.policy"] == "delete,compact"


def test_deleting_goes_back_to_the_default_and_an_unknown_key_is_no_error(opened: Opened) -> None:
    opened.controller.alter_configs(
        TOPIC, "t", [(DELETE, "cleanup.policy", None), (DELETE, "nope", None)]
    )
    assert "t" not in opened.controller.image.topic_configs


def test_unknown_broker_settings_are_kept(opened: Opened) -> None:
    opened.controller.alter_configs(BROKER, "", [(SET, "zzz", "1")])
    assert opened.controller.image.broker_configs[""]["zzz"] == "1"


def test_replacing_drops_what_is_not_named(opened: Opened) -> None:
    opened.controller.replace_configs(TOPIC, "t", [("retention.ms", "7")])
    assert opened.controller.image.topic_configs["t"] == {"retention.ms": "7"}
    opened.controller.replace_configs(TOPIC, "t", [])
    assert "t" not in opened.controller.image.topic_configs
    with pytest.raises(KafkaError, match="Error due to duplicate config keys"):
        opened.controller.replace_configs(TOPIC, "t", [("a", "1"), ("a", "2")])
    with pytest.raises(KafkaError, match="Null value not supported for : a"):
        opened.controller.replace_configs(TOPIC, "t", [("a", None)])


def test_a_topic_remembers_its_durability(opened: Opened) -> None:
    opened.controller.alter_configs(TOPIC, "t", [(SET, "embedlog.durability", "fsync")])
    assert opened.controller.image.topic_configs["t"]["embedlog.durability"] == "fsync"
    with pytest.raises(KafkaError, match="one of: memory, os, fsync"):
        opened.controller.alter_configs(TOPIC, "t", [(SET, "embedlog.durability", "maybe")])


def test_settings_of_every_broker_of_several_are_the_controllers() -> None:
    controller = Opened(node_ids=(1, 2)).controller
    controller.alter_configs(RESOURCE_BROKER, "2", [(SET, "log.cleaner.threads", "2")])
    assert controller.image.broker_configs["2"] == {"log.cleaner.threads": "2"}
    with pytest.raises(KafkaError) as caught:
        controller.alter_configs(RESOURCE_BROKER, "3", [(SET, "log.cleaner.threads", "2")])
    assert (caught.value.code, caught.value.message) == (102, "No node with id 3 found.")
    with pytest.raises(KafkaError) as caught:
        controller.alter_configs(RESOURCE_BROKER, "x", [(SET, "log.cleaner.threads", "2")])
    assert caught.value.message == "Node id must be an integer, but it is: x"
