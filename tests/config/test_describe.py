"""Sources and synonyms of settings, as a Kafka 4.4 broker answers them."""

from __future__ import annotations

from embedlog.config import BrokerConfig, describe
from embedlog.config.describe import ConfigEntry


def one(entries: list[ConfigEntry]) -> ConfigEntry:
    (entry,) = entries
    return entry


def topic(texts: dict[str, str], broker: BrokerConfig, name: str) -> ConfigEntry:
    return one(describe.describe_topic(texts, broker, [name]))


def test_a_topic_setting_names_every_place_that_gives_it_a_value() -> None:
    broker = BrokerConfig()
    entry = topic({"cleanup.policy": "compact"}, broker, "cleanup.policy")
    assert (entry.value, entry.source, entry.read_only) == ("compact", 1, False)
    assert entry.synonyms == [
        ("cleanup.policy", "compact", 1),
        ("log.cleanup.policy", "delete", 5),
    ]
    entry = topic({"cleanup.policy": "compact, delete,delete"}, broker, "cleanup.policy")
    assert entry.value == entry.synonyms[0][1] == "compact,delete"
    assert topic({}, broker, "retention.ms").synonyms == []
    assert topic({}, broker, "retention.ms").source == 5


def test_hours_become_a_synonym_once_milliseconds_are_set() -> None:
    broker = BrokerConfig()
    broker.set_dynamic({"log.retention.ms": "70000"}, {"log.retention.ms": "7"})
    entry = topic({"retention.ms": "9000"}, broker, "retention.ms")
    assert entry.synonyms == [
        ("retention.ms", "9000", 1),
        ("log.retention.ms", "7", 2),
        ("log.retention.ms", "70000", 3),
        ("log.retention.hours", "168", 5),
    ]
    hours = one(describe.describe_broker(broker, ["log.retention.hours"]))
    assert hours.synonyms == [("log.retention.hours", "168", 5)]


def test_our_own_setting_is_shown_when_set_or_asked_for() -> None:
    broker = BrokerConfig()
    assert "embedlog.durability" not in {e.name for e in describe.describe_topic({}, broker)}
    texts = {"embedlog.durability": "fsync"}
    assert "embedlog.durability" in {e.name for e in describe.describe_topic(texts, broker)}
    assert topic({}, broker, "embedlog.durability").value is None


def test_secrets_and_unknown_settings_show_no_value() -> None:
    broker = BrokerConfig({"ssl.keystore.password": "secret"})
    broker.set_dynamic({}, {"zzz": "70000", "listener.name.x.ssl.keystore.password": "s"})
    secret = one(describe.describe_broker(broker, ["ssl.keystore.password"]))
    assert (secret.value, secret.sensitive, secret.source) == (None, True, 4)
    assert secret.synonyms == [("ssl.keystore.password", None, 4)]
    unknown = one(describe.describe_broker(broker, ["zzz"]))
    assert (unknown.value, unknown.sensitive, unknown.read_only) == (None, True, True)
    assert unknown.synonyms == [("zzz", None, 2)]
    listener = one(describe.describe_broker(broker, ["listener.name.x.ssl.keystore.password"]))
    assert listener.type == 9


def test_the_whole_cluster_has_its_dynamic_settings_only() -> None:
    texts = {"min.insync.replicas": "1", "zzz": "x"}
    broker = BrokerConfig()
    broker.set_dynamic(texts, {})
    entries = describe.describe_cluster_defaults(broker, texts)
    assert [(e.name, e.value, e.source) for e in entries] == [
        ("min.insync.replicas", "1", 3),
        ("zzz", None, 3),
    ]
    assert entries[0].synonyms == [("min.insync.replicas", "1", 3)]


def test_groups_and_subscriptions_have_settings_before_they_exist() -> None:
    broker = BrokerConfig()
    groups = {e.name: e for e in describe.describe_group({}, broker)}
    assert groups["streams.assignor.name"].value == "sticky"
    assert groups["streams.assignor.name"].synonyms == [("group.streams.assignors", "sticky", 5)]
    assert groups["share.auto.offset.reset"].synonyms == [("share.auto.offset.reset", "latest", 5)]
    own = one(describe.describe_group({"share.isolation.level": "read_committed"}, broker,
                                      ["share.isolation.level"]))  # fmt: skip
    assert own.source == 8
    metrics = {e.name: e for e in describe.describe_client_metrics({"metrics": "a,b"})}
    assert (metrics["metrics"].value, metrics["metrics"].source) == ("a,b", 7)
    assert (metrics["interval.ms"].value, metrics["interval.ms"].source) == ("300000", 5)
