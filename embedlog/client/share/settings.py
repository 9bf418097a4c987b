"""The share consumer's configuration: Kafka's keys, and the consumer's keys that it refuses."""

from __future__ import annotations

from embedlog.client.parse_settings import parse
from embedlog.client.settings import COMMON, CONSUMER
from embedlog.errors import ConfigError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from embedlog.client.settings import Definitions, Parsed

EXPLICIT = "explicit"
RECORD_LIMIT = "record_limit"

_AS_IN_CONSUMERS = (
    "allow.auto.create.topics",
    "check.crcs",
    "client.rack",
    "default.api.timeout.ms",
    "fetch.max.bytes",
    "fetch.max.wait.ms",
    "fetch.min.bytes",
    "group.id",
    "key.deserializer",
    "max.poll.interval.ms",
    "max.poll.records",
    "value.deserializer",
)
_BY_BROKERS = "the group's setting on the brokers decides in a share group"
_NO_OFFSETS = "a share consumer has no positions to commit: it acknowledges records"
_NO_CHOICE = "a share consumer cannot set it"

SHARE_CONSUMER: Definitions = {
    **COMMON,
    **{name: CONSUMER[name] for name in _AS_IN_CONSUMERS},
    "share.acknowledgement.mode": ("choice", "implicit", ("implicit", EXPLICIT)),
    "share.acquire.mode": ("choice", "batch_optimized", ("batch_optimized", RECORD_LIMIT)),
    "auto.offset.reset": ("refused", None, f"{_BY_BROKERS} (share.auto.offset.reset)"),
    "enable.auto.commit": ("refused", None, _NO_OFFSETS),
    "group.instance.id": ("refused", None, "a share group has no static members"),
    "group.protocol": ("refused", None, _NO_CHOICE),
    "group.remote.assignor": ("refused", None, _BY_BROKERS),
    "heartbeat.interval.ms": ("refused", None, f"{_BY_BROKERS} (share.heartbeat.interval.ms)"),
    "interceptor.classes": ("refused", None, _NO_CHOICE),
    "isolation.level": ("refused", None, f"{_BY_BROKERS} (share.isolation.level)"),
    "partition.assignment.strategy": ("refused", None, _BY_BROKERS),
    "session.timeout.ms": ("refused", None, f"{_BY_BROKERS} (share.session.timeout.ms)"),
}
"""Kafka refuses the same keys."""


def settings_of(config: Mapping[str, Any] | None, settings: Mapping[str, Any]) -> Parsed:
    """Parse the settings that a user gave.

    Raises:
        ConfigError: a value is wrong, the key is refused, or group.id is missing.
    """
    parsed = parse(SHARE_CONSUMER, config, settings)
    if not parsed["group.id"]:
        raise ConfigError("a share consumer needs a group.id")
    if not parsed["client.id"]:
        parsed["client.id"] = f"share-consumer-{parsed['group.id']}"
    return parsed
