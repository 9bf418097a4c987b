"""Settings of topics: refusals, values in force, and the settings of the log."""

from __future__ import annotations

import pytest

from embedlog.config import BrokerConfig, topic_config
from embedlog.config.definitions import TOPIC
from embedlog.errors import InvalidConfig
from embedlog.storage.log_config import DEFAULTS, LogConfig


@pytest.mark.parametrize(
    ("configs", "message"),
    [
        ({"nope": "1"}, "Unknown topic config name: nope"),
        ({"": "1"}, "Unknown topic config name: "),
        ({"message.format.version": "3.0"}, "Unknown topic config name: message.format.version"),
        ({"nope": "1", "retention.ms": "x"}, "Unknown topic config name: nope"),
        (
            {"retention.ms": "x"},
            "Invalid value x for configuration retention.ms: Not a number of type LONG",
        ),
        ({"retention.ms": None}, "Null value not supported for topic configs: retention.ms"),
        (
            {"retention.ms": "-2"},
            "Invalid value -2 for configuration retention.ms: Value must be at least -1",
        ),
        (
            {"segment.bytes": "1"},
            "Invalid value 1 for configuration segment.bytes: Value must be at least 1048576",
        ),
        (
            {"cleanup.policy": "foo"},
            "Invalid value foo for configuration cleanup.policy: String must be one of: compact,"
            " delete",
        ),
        (
            {"min.compaction.lag.ms": "10", "max.compaction.lag.ms": "5"},
            "conflict topic config setting min.compaction.lag.ms (10) > max.compaction.lag.ms (5)",
        ),
        (
            {"remote.storage.enable": "true"},
            "Tiered Storage functionality is disabled in the broker. Topic cannot be configured"
            " with remote log storage.",
        ),
    ],
)
def test_refusals_have_kafkas_words(configs: dict[str, str | None], message: str) -> None:
    with pytest.raises(InvalidConfig) as caught:
        topic_config.validate(configs, BrokerConfig())
    assert caught.value.message == message


@pytest.mark.parametrize(
    "configs",
    [
        {"cleanup.policy": ""},
        {"cleanup.policy": "compact, delete"},
        {"cleanup.policy": "delete,delete"},
        {"retention.bytes": "-2"},
        {"retention.ms": " 5 "},
        {"preallocate": "TRUE"},
        {"leader.replication.throttled.replicas": "*"},
        {"local.retention.ms": "10", "retention.ms": "5"},
    ],
)
def test_what_kafka_accepts_is_accepted(configs: dict[str, str | None]) -> None:
    assert topic_config.validate(configs, BrokerConfig()) == configs


def test_the_topic_wins_over_the_broker_and_the_broker_over_the_default() -> None:
    broker = BrokerConfig({"log.retention.hours": 2, "message.max.bytes": 500})
    assert topic_config.effective("retention.ms", {}, broker) == 7_200_000
    assert topic_config.effective("retention.ms", {"retention.ms": "9"}, broker) == 9
    assert topic_config.effective("max.message.bytes", {}, broker) == 500
    assert topic_config.effective("segment.ms", {}, broker) == 604_800_000
    assert topic_config.effective("min.insync.replicas", {}, broker) == 1


def test_only_what_differs_from_the_defaults_reaches_the_log() -> None:
    assert topic_config.log_settings({}, BrokerConfig()) == {}
    broker = BrokerConfig({"log.roll.hours": 1, "producer.id.expiration.ms": 7})
    settings = topic_config.log_settings({"cleanup.policy": "compact, delete"}, broker)
    assert settings == {
        "segment_ms": 3_600_000,
        "producer_id_expiration_ms": 7,
        "cleanup_policy": "compact,delete",
    }
    config = LogConfig(**settings)
    assert (config.compact, config.delete) == (True, True)


def test_the_test_size_of_segments_wins() -> None:
    texts = {"internal.segment.bytes": "100", "segment.bytes": "1048576"}
    assert topic_config.log_settings(texts, BrokerConfig()) == {"segment_bytes": 100}


def test_every_topic_setting_has_its_place_in_the_log_or_a_reason_not_to() -> None:
    for name in TOPIC.names():
        attribute = name.removeprefix("embedlog.").replace(".", "_")
        default = TOPIC[name].default_value()
        if name in topic_config.NOT_OF_A_LOG or name == "internal.segment.bytes":
            assert attribute not in DEFAULTS, name
        elif default is not None:
            shown = ",".join(default) if isinstance(default, tuple) else default
            assert DEFAULTS[attribute] == shown, name
