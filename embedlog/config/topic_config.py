"""Settings of a topic: validation as in Kafka, and values in force.

A topic's own setting comes first, then the broker's setting of the same meaning, then the default.
"""

from __future__ import annotations

from embedlog import errors
from embedlog.config.broker_config import CHAINS, BrokerConfig
from embedlog.config.definitions import TOPIC
from embedlog.config.topic_synonyms import BROKER_NAMES
from embedlog.errors import ConfigError, KafkaError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from embedlog.config.types import SettingValue

_CHAIN_MEMBERS = {member: name for name, chain in CHAINS.items() for member, _ in chain}
_TOPIC_NAMES = {broker: topic for topic, broker in BROKER_NAMES.items()}
NOT_OF_A_LOG = frozenset(
    (
        "errors.deadletterqueue.group.enable",
        "follower.replication.throttled.replicas",
        "leader.replication.throttled.replicas",
        "local.retention.bytes",
        "local.retention.ms",
        "min.insync.replicas",
        "remote.copy.lag.bytes",
        "remote.copy.lag.ms",
        "remote.log.copy.disable",
        "remote.log.delete.on.disable",
        "remote.storage.enable",
        "unclean.leader.election.enable",
    )
)
_OF_THE_BROKER = (
    ("producer.id.expiration.ms", "producer_id_expiration_ms"),
    ("embedlog.max.partition.producer.ids", "max_partition_producer_ids"),
)
"""Broker settings that logs obey although topics cannot set them: (name, field of `LogConfig`)."""
_TEST_SEGMENT_BYTES = "internal.segment.bytes"


def validate(configs: Mapping[str, str | None], broker: BrokerConfig) -> dict[str, str]:
    """Return `configs` if a topic can have these settings.

    Raises:
        InvalidConfig: a value is null or wrong, a name is unknown, or two settings conflict.
    """
    nulls = [name for name, text in configs.items() if text is None]
    if nulls:
        raise _refuse(f"Null value not supported for topic configs: {','.join(nulls)}")
    for name in configs:
        if TOPIC.find(name) is None:
            raise _refuse(f"Unknown topic config name: {name}")
    texts = {name: text for name, text in configs.items() if text is not None}
    try:
        for name in sorted(texts):
            TOPIC[name].parse(texts[name])
    except ConfigError as error:
        raise _refuse(str(error)) from None
    _refuse_conflicts(texts, broker)
    return texts


def effective(name: str, texts: Mapping[str, str], broker: BrokerConfig) -> SettingValue:
    """Return the value in force of a topic setting; `texts` are the topic's own settings."""
    key = TOPIC[name]
    if name in texts:
        return key.parse(texts[name])
    broker_name = BROKER_NAMES.get(name)
    if broker_name is None:
        return key.default_value()
    if broker_name in CHAINS:
        return broker.chain_ms(broker_name)
    return broker.value(broker_name)


def log_settings(texts: Mapping[str, str], broker: BrokerConfig) -> dict[str, object]:
    """Return the keywords of `LogConfig` for a topic: all settings that it or the broker has set.

    `texts` are the topic's own settings, already validated.
    """
    changed = {
        _TOPIC_NAMES[primary]
        for name in broker.set_names()
        if (primary := _CHAIN_MEMBERS.get(name, name)) in _TOPIC_NAMES
    }
    settings: dict[str, object] = {}
    for name in (changed | texts.keys()) - NOT_OF_A_LOG:
        value = effective(name, texts, broker)
        if isinstance(value, tuple):
            value = ",".join(value)
        settings[name.removeprefix("embedlog.").replace(".", "_")] = value
    if _TEST_SEGMENT_BYTES in texts:
        settings["segment_bytes"] = settings.pop("internal_segment_bytes")
    for name, attribute in _OF_THE_BROKER:
        if broker.is_set(name):
            settings[attribute] = broker.value(name)
    return settings


def _refuse_conflicts(texts: Mapping[str, str], broker: BrokerConfig) -> None:
    if "min.compaction.lag.ms" in texts or "max.compaction.lag.ms" in texts:
        low = effective("min.compaction.lag.ms", texts, broker)
        high = effective("max.compaction.lag.ms", texts, broker)
        assert isinstance(low, int), low
        assert isinstance(high, int), high
        if low > high:
            raise _refuse(
                f"conflict topic config setting min.compaction.lag.ms ({low})"
                f" > max.compaction.lag.ms ({high})"
            )
    if effective("remote.storage.enable", texts, broker) is True:
        raise _refuse(
            "Tiered Storage functionality is disabled in the broker."
            " Topic cannot be configured with remote log storage."
        )


def _refuse(message: str) -> KafkaError:
    return errors.InvalidConfig(message)
