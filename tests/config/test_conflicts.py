"""Settings that meet each other: units, layers, bounds and pairs."""

from __future__ import annotations

import pytest

from embedlog.config import BrokerConfig, describe, resources, topic_config, types
from embedlog.errors import ConfigError, InvalidConfig


def test_the_finest_unit_counts() -> None:
    config = BrokerConfig({"log.retention.minutes": 1, "log.retention.ms": 5})
    assert config.chain_ms("log.retention.ms") == 5


def test_a_static_value_leaves_the_dynamic_ones() -> None:
    config = BrokerConfig()
    config.set_dynamic({"message.max.bytes": "20"}, {"num.io.threads": "3"})
    config.set_static("listeners", "PLAINTEXT://127.0.0.1:1")
    assert (config.message_max_bytes, config.num_io_threads) == (20, 3)


def test_a_broker_of_a_cluster_has_its_own_id_under_both_names() -> None:
    config = BrokerConfig({"node.id": 1, "num.partitions": 3}).of_node(2)
    assert (config.node_id, config.value("node.id"), config.value("broker.id")) == (2, 2, 2)
    assert config.num_partitions == 3


@pytest.mark.parametrize(("type_", "bits"), [(types.SHORT, 16), (types.INT, 32), (types.LONG, 64)])
def test_integers_end_at_the_size_of_their_type(type_: int, bits: int) -> None:
    least, greatest = -(1 << bits - 1), (1 << bits - 1) - 1
    for value in (least, greatest):
        assert types.parse("k", type_, str(value)) == value
    for value in (least - 1, greatest + 1):
        with pytest.raises(ConfigError, match="Not a number of type"):
            types.parse("k", type_, str(value))


@pytest.mark.parametrize("item", ["1", "1:", ":1", "1:x", "x:1"])
def test_a_throttled_replica_names_a_partition_and_a_broker(item: str) -> None:
    types.check("k", "replicas", ("0:1", "1:2"))
    with pytest.raises(ConfigError, match="list of replicas"):
        types.check("k", "replicas", ("0:1", item))


@pytest.mark.parametrize(
    ("own", "brokers"),
    [
        ({"max.compaction.lag.ms": "5"}, {"log.cleaner.min.compaction.lag.ms": 6}),
        ({"min.compaction.lag.ms": "6"}, {"log.cleaner.max.compaction.lag.ms": 5}),
    ],
)
def test_a_topics_compaction_lag_must_fit_the_brokers(
    own: dict[str, str], brokers: dict[str, object]
) -> None:
    with pytest.raises(InvalidConfig, match=r"min.compaction.lag.ms \(6\) > .* \(5\)"):
        topic_config.validate(own, BrokerConfig(brokers))
    assert topic_config.validate(own, BrokerConfig()) == own


def test_a_group_setting_lies_between_the_brokers_bounds() -> None:
    broker = BrokerConfig(
        {
            "group.consumer.min.session.timeout.ms": 40_000,
            "group.consumer.max.session.timeout.ms": 50_000,
        }
    )
    for text in ("40000", "50000"):
        resources.validate_group({"consumer.session.timeout.ms": text}, broker)
    for text in ("39999", "50001"):
        with pytest.raises(InvalidConfig, match="in the range 40000 to 50000"):
            resources.validate_group({"consumer.session.timeout.ms": text}, broker)


def test_a_secret_for_the_whole_cluster_is_not_shown_as_its_own_synonym() -> None:
    texts = {"ssl.key.password": "secret"}
    (entry,) = describe.describe_cluster_defaults(BrokerConfig(), texts)
    assert (entry.value, entry.synonyms) == (None, [("ssl.key.password", None, 3)])
