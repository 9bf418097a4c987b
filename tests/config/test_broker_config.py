"""The settings of a broker: from the start, changed, and their precedence."""

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


def test_an_argument_of_open_is_proposed_too() -> None:
    with pytest.warns(UserWarning, match=r"'durabilty'; did you mean 'durability'\?"):
        BrokerConfig({"durabilty": "os"})


def test_keyword_arguments_are_settings_with_underscores() -> None:
    assert normalise_names({"num_partitions": 3}) == {"num.partitions": 3}


@pytest.mark.parametrize("name", ["transactional.id", "foo", "consumer.timeout.ms", "zookeeper"])
def test_nothing_is_proposed_for_a_name_that_is_like_no_other(name: str) -> None:
    with pytest.warns(UserWarning) as caught:
        BrokerConfig({name: "x"})
    assert [str(warning.message) for warning in caught] == [f"unknown broker setting {name!r}"]


def test_a_topics_name_for_a_setting_brings_up_the_brokers() -> None:
    with pytest.warns(UserWarning, match=r"did you mean 'message.max.bytes'\?"):
        BrokerConfig({"max.message.bytes": 1})


def test_warnings_point_at_the_users_line() -> None:
    import embedlog

    for settings in ({"num_partition": 1}, {"sasl_enabled_mechanisms": "PLAIN"}):
        with pytest.warns(UserWarning) as caught:
            embedlog.open(**settings).close()
        assert [warning.filename for warning in caught] == [__file__]


def test_settings_without_effect_say_so_once() -> None:
    settings = {
        "sasl.enabled.mechanisms": "PLAIN",
        "security.inter.broker.protocol": "SSL",
        "num.io.threads": 16,
        "ssl.keystore.password": "secret",
        "num.partitions": 3,
    }
    with pytest.warns(UserWarning) as caught:
        BrokerConfig(settings)
    assert [str(warning.message) for warning in caught] == [
        "broker settings without effect in embedlog: sasl.enabled.mechanisms=PLAIN, "
        "security.inter.broker.protocol=SSL, num.io.threads=16, ssl.keystore.password=[hidden]; "
        "listeners neither encrypt nor authenticate"
    ]


def test_defaults_and_kafkas_own_file_are_taken_without_a_word(
    recwarn: pytest.WarningsRecorder,
) -> None:
    BrokerConfig(
        {
            "process.roles": "broker,controller",
            "node.id": 1,
            "controller.quorum.bootstrap.servers": "localhost:9093",
            "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
            "inter.broker.listener.name": "PLAINTEXT",
            "advertised.listeners": "PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL",
            "num.network.threads": 3,
            "num.io.threads": 8,
            "socket.send.buffer.bytes": 102400,
            "socket.receive.buffer.bytes": 102400,
            "socket.request.max.bytes": 104857600,
            "num.partitions": 1,
            "num.recovery.threads.per.data.dir": 2,
            "offsets.topic.replication.factor": 1,
            "share.coordinator.state.topic.replication.factor": 1,
            "share.coordinator.state.topic.min.isr": 1,
            "transaction.state.log.replication.factor": 1,
            "transaction.state.log.min.isr": 1,
            "log.retention.hours": 168,
            "log.segment.bytes": 1073741824,
            "log.retention.check.interval.ms": 300000,
        }
    )
    assert not recwarn.list
