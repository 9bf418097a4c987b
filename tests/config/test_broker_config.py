"""What a broker was started with, what was changed, and which of them counts."""

from __future__ import annotations

import pytest

from embedlog.config import BrokerConfig
from embedlog.config.broker_config import normalise_names
from embedlog.errors import ConfigError


def test_settings_are_attributes_with_the_value_of_their_type() -> None:
    config = BrokerConfig({"num.partitions": 3, "log.cleanup.policy": ["compact", "delete"]})
    assert config.num_partitions == 3
    assert config.log_cleanup_policy == ("compact", "delete")
    assert config.auto_create_topics_enable is True
    assert config.broker_rack is None
    assert config.node_id == 1
    assert config.process_roles == ("broker", "controller")


def test_the_strongest_layer_counts() -> None:
    config = BrokerConfig({"message.max.bytes": "10"})
    assert config.message_max_bytes == 10
    config.set_dynamic({"message.max.bytes": "20"}, {})
    assert config.message_max_bytes == 20
    config.set_dynamic({"message.max.bytes": "20"}, {"message.max.bytes": "30"})
    assert config.message_max_bytes == 30
    config.set_dynamic({}, {})
    assert config.message_max_bytes == 10


def test_retention_counts_in_the_unit_that_is_set() -> None:
    assert BrokerConfig().chain_ms("log.retention.ms") == 604_800_000
    assert BrokerConfig({"log.retention.hours": 1}).chain_ms("log.retention.ms") == 3_600_000
    both = BrokerConfig({"log.retention.hours": 1, "log.retention.minutes": 1})
    assert both.chain_ms("log.retention.ms") == 60_000
    assert BrokerConfig({"log.retention.hours": -1}).chain_ms("log.retention.ms") == -1


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            {"num.partitions": 0},
            "Invalid value 0 for configuration num.partitions: Value must be at least 1",
        ),
        (
            {"num.partitions": "many"},
            "Invalid value many for configuration num.partitions: Not a number of type INT",
        ),
        (
            {"compression.type": "brotli"},
            "Invalid value brotli for configuration compression.type: String must be one of:"
            " uncompressed, zstd, lz4, snappy, gzip, producer",
        ),
        (
            {"log.retention.hours": 0},
            "requirement failed: log.retention.ms must be unlimited (-1) or, greater than or equal"
            " to 1",
        ),
        (
            {"log.roll.ms": 0},
            "requirement failed: log.roll.ms must be greater than or equal to 1",
        ),
        (
            {"log.cleaner.dedupe.buffer.size": 3 << 20, "log.cleaner.threads": 3},
            "requirement failed: log.cleaner.dedupe.buffer.size must be at least 1MB per cleaner"
            " thread.",
        ),
        (
            {"node.id": 2, "broker.id": 3},
            "You must set `node.id` to the same value as `broker.id`: node.id=2, broker.id=3",
        ),
        ({"num.partitions": object}, "a setting is text, a number, a truth value or a list"),
    ],
)
def test_a_wrong_value_is_refused(values: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        BrokerConfig(values)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("values", "node_id"),
    [
        ({}, 1),
        ({"node.id": 0}, 0),
        ({"broker.id": "7"}, 7),
        ({"node.id": 4, "broker.id": -1}, 4),
        ({"node.id": 5, "broker.id": 5}, 5),
    ],
)
def test_a_broker_has_the_number_that_either_setting_gives_it(
    values: dict[str, object], node_id: int
) -> None:
    config = BrokerConfig(values)
    assert config.node_id == config.value("node.id") == config.value("broker.id") == node_id
    assert config.with_dynamic({}, {}).node_id == node_id
    assert config.controller_quorum_voters == (f"{node_id}@localhost:9093",)


def test_an_unknown_name_is_kept_and_warned_about_with_the_nearest() -> None:
    with pytest.warns(UserWarning, match=r"'log.retenton.hours'; did you mean 'log.retention.h"):
        config = BrokerConfig({"log.retenton.hours": 1})
    assert config.unknown == {"log.retenton.hours": "1"}
    with pytest.raises(AttributeError):
        config.log_retenton_hours  # noqa: B018


def test_keyword_arguments_are_settings_with_underscores() -> None:
    assert normalise_names({"num_partitions": 3}) == {"num.partitions": 3}
