"""The consumer's configuration: Kafka's keys, their defaults, and how they depend on each other."""

from __future__ import annotations

from embedlog.client.settings import warn_idle
from embedlog.errors import ConfigError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.client.settings import Settings

HEARTBEAT_INTERVAL_MS = 3_000
IN_PROCESS_HEARTBEAT_INTERVAL_MS = 100
"""Shorter than over a network: in process a heartbeat is cheap, and tells of a rebalance early."""

_CLASSIC_ONLY = {
    "heartbeat.interval.ms": None,
    "partition.assignment.strategy": ("range", "cooperative-sticky"),
    "session.timeout.ms": 45_000,
}
"""Settings of the classic protocol and their defaults; in the consumer protocol brokers set them.
The default of the heartbeat interval is None here, because it depends on the transport."""

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
"""Settings that have no effect if the consumer has no group."""


def complete(settings: Settings) -> Settings:
    """Check the settings against each other and fill in defaults that depend on other settings.

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
        # Put the group into the client.id, because the broker begins the member id with it.
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
