"""The consumer's configuration: Kafka's keys and defaults, and the rules between them."""

from __future__ import annotations

from embedlog.client.settings import COMMON, INT_MAX, NATURAL, warn_idle
from embedlog.errors import ConfigError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.client.settings import Definitions, Settings

CONSUMER: Definitions = {
    **COMMON,
    "allow.auto.create.topics": ("bool", True, None),
    "auto.commit.interval.ms": ("int", 5_000, NATURAL),
    "auto.offset.reset": ("text", "latest", None),
    "check.crcs": ("bool", True, None),
    "client.rack": ("text", "", None),
    "default.api.timeout.ms": ("int", 60_000, NATURAL),
    "enable.auto.commit": ("bool", None, None),
    "exclude.internal.topics": ("bool", True, None),
    "fetch.max.bytes": ("int", 52_428_800, NATURAL),
    "fetch.max.wait.ms": ("int", 500, NATURAL),
    "fetch.min.bytes": ("int", 1, NATURAL),
    "group.id": ("text", None, None),
    "group.instance.id": ("text", None, None),
    "group.protocol": ("choice", "classic", ("classic", "consumer")),
    "group.remote.assignor": ("text", None, None),
    "heartbeat.interval.ms": ("int", None, (1, INT_MAX)),
    "interceptor.classes": ("objects", (), None),
    "isolation.level": ("choice", "read_uncommitted", ("read_uncommitted", "read_committed")),
    "key.deserializer": ("converter", None, None),
    "max.partition.fetch.bytes": ("int", 1_048_576, NATURAL),
    "max.poll.interval.ms": ("int", 300_000, (1, INT_MAX)),
    "max.poll.records": ("int", 500, (1, INT_MAX)),
    "partition.assignment.strategy": ("objects", None, None),
    "session.timeout.ms": ("int", None, (1, INT_MAX)),
    "value.deserializer": ("converter", None, None),
}

HEARTBEAT_INTERVAL_MS = 3_000
IN_PROCESS_HEARTBEAT_INTERVAL_MS = 100
"""In process a heartbeat costs next to nothing, and members learn of a rebalance by it."""

_CLASSIC_ONLY = {
    "heartbeat.interval.ms": None,
    "partition.assignment.strategy": ("range", "cooperative-sticky"),
    "session.timeout.ms": 45_000,
}
"""Defaults of the classic protocol; in the consumer protocol brokers set these values. The default
of the heartbeat interval depends on the transport."""

_OF_GROUPS = (
    "auto.commit.interval.ms",
    "group.instance.id",
    "group.protocol",
    "group.remote.assignor",
    "heartbeat.interval.ms",
    "max.poll.interval.ms",
    "partition.assignment.strategy",
    "session.timeout.ms",
)
"""Settings without effect for a consumer without a group."""


def complete(settings: Settings) -> Settings:
    """Check the settings against each other and fill in defaults that depend on others.

    Raises:
        ConfigError: two settings contradict each other.
    """
    group_id = settings["group.id"]
    for key in ("group.id", "group.instance.id"):
        if settings[key] == "":
            raise ConfigError(f"{key} is empty")
    if settings["enable.auto.commit"] and group_id is None:
        raise ConfigError("enable.auto.commit=true needs a group.id")
    if group_id is None:
        warn_idle(settings, _OF_GROUPS, "the consumer has no group.id")
    if settings["enable.auto.commit"] is None:
        settings["enable.auto.commit"] = group_id is not None
    if group_id is not None and not settings["client.id"]:
        # The broker's member ids begin with it.
        names = ("consumer", group_id, settings["group.instance.id"])
        settings["client.id"] = "-".join(name for name in names if name)
    is_classic = settings["group.protocol"] == "classic"
    if is_classic and settings["group.remote.assignor"] is not None:
        raise ConfigError("group.remote.assignor needs group.protocol=consumer")
    for key, default in _CLASSIC_ONLY.items():
        if not is_classic and settings[key] is not None:
            raise ConfigError(f"{key} cannot be set with group.protocol=consumer")
        if settings[key] is None:
            settings[key] = default
    heartbeat_ms = settings["heartbeat.interval.ms"] or HEARTBEAT_INTERVAL_MS
    if heartbeat_ms >= settings["session.timeout.ms"]:
        raise ConfigError(
            f"heartbeat.interval.ms={heartbeat_ms} must be lower than "
            f"session.timeout.ms={settings['session.timeout.ms']}"
        )
    return settings
