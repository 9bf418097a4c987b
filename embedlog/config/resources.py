"""Settings of groups and of client metrics subscriptions, and of single listeners."""

from __future__ import annotations

from embedlog import errors
from embedlog.config.definitions import CLIENT_METRICS, GROUP
from embedlog.errors import ConfigError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from embedlog.config.broker_config import BrokerConfig
    from embedlog.config.types import SettingValue


GROUP_BROKER_NAMES = {
    "consumer.assignment.interval.ms": "group.consumer.assignment.interval.ms",
    "consumer.heartbeat.interval.ms": "group.consumer.heartbeat.interval.ms",
    "consumer.session.timeout.ms": "group.consumer.session.timeout.ms",
    "share.assignment.interval.ms": "group.share.assignment.interval.ms",
    "share.delivery.count.limit": "group.share.delivery.count.limit",
    "share.heartbeat.interval.ms": "group.share.heartbeat.interval.ms",
    "share.partition.max.record.locks": "group.share.partition.max.record.locks",
    "share.record.lock.duration.ms": "group.share.record.lock.duration.ms",
    "share.session.timeout.ms": "group.share.session.timeout.ms",
    "streams.assignment.interval.ms": "group.streams.assignment.interval.ms",
    "streams.assignor.name": "group.streams.assignors",
    "streams.heartbeat.interval.ms": "group.streams.heartbeat.interval.ms",
    "streams.initial.rebalance.delay.ms": "group.streams.initial.rebalance.delay.ms",
    "streams.num.standby.replicas": "group.streams.num.standby.replicas",
    "streams.rack.aware.assignment.tags": "group.streams.rack.aware.assignment.tags",
    "streams.session.timeout.ms": "group.streams.session.timeout.ms",
}
"""Group setting -> the broker setting that gives its default. Group settings that are missing here
have the default in their own row."""

_UNBOUNDED = {
    "streams.assignor.name",
    "streams.initial.rebalance.delay.ms",
    "streams.num.standby.replicas",
    "streams.rack.aware.assignment.tags",
}
"""Settings of GROUP_BROKER_NAMES that do not have two bounds. For the others, such as
share.session.timeout.ms, broker settings are the bounds: group.share.min.session.timeout.ms and
group.share.max.session.timeout.ms."""

_UPPER_ONLY = {
    "streams.num.standby.replicas": "group.streams.max.standby.replicas",
    "streams.num.warmup.replicas": "group.streams.max.warmup.replicas",
}
_LOWER_ONLY = {"streams.task.offset.interval.ms": "group.streams.min.task.offset.interval.ms"}

_INTERVAL_MIN_MS = 100
_INTERVAL_MAX_MS = 3_600_000
_MATCH_KEYS = (
    "client_instance_id",
    "client_id",
    "client_software_name",
    "client_software_version",
    "client_source_address",
    "client_source_port",
)
_PER_LISTENER = frozenset(
    (
        "ssl.key.password",
        "ssl.keystore.certificate.chain",
        "ssl.keystore.key",
        "ssl.keystore.location",
        "ssl.keystore.password",
        "ssl.keystore.type",
        "ssl.truststore.certificates",
        "ssl.truststore.location",
        "ssl.truststore.password",
        "ssl.truststore.type",
    )
)


def is_per_listener(name: str) -> bool:
    """Return whether a prefix `listener.name.<name>.` can change this setting for one listener."""
    return name in _PER_LISTENER


def group_value(name: str, texts: Mapping[str, str], broker: BrokerConfig) -> SettingValue:
    """Return the value in force of a group setting; `texts` are the group's own settings."""
    key = GROUP[name]
    if name in texts:
        return key.parse(texts[name])
    broker_name = GROUP_BROKER_NAMES.get(name)
    if broker_name is None:
        return key.default_value()
    value = broker.value(broker_name)
    if broker_name == "group.streams.assignors":
        assert isinstance(value, tuple), value
        return value[0] if value else None
    return value


def validate_group(texts: Mapping[str, str], broker: BrokerConfig) -> None:
    """Raise InvalidConfig unless a group can have these settings."""
    for name in texts:
        if GROUP.find(name) is None:
            raise errors.InvalidConfig(f"Unknown group config name: {name}")
    try:
        values = {name: GROUP[name].parse(text) for name, text in texts.items()}
    except ConfigError as error:
        raise errors.InvalidConfig(str(error)) from None
    for name, value in values.items():
        _check_bounds(name, value, broker)
    assignor = values.get("streams.assignor.name")
    known = broker.group_streams_assignors
    if assignor is not None and assignor not in known:
        raise errors.InvalidConfig(
            f"streams.assignor.name '{assignor}' is not a registered task assignor."
            f" Registered assignors are: [{', '.join(known)}].",
        )


def _check_bounds(name: str, value: SettingValue, broker: BrokerConfig) -> None:
    if name in GROUP_BROKER_NAMES and name not in _UNBOUNDED:
        group_type, _, rest = name.partition(".")
        low = broker.value(f"group.{group_type}.min.{rest}")
        high = broker.value(f"group.{group_type}.max.{rest}")
        if not _integer(low) <= _integer(value) <= _integer(high):
            message = f"{name} must be in the range {low} to {high} inclusive."
            raise errors.InvalidConfig(message)
    elif name in _UPPER_ONLY:
        high = broker.value(_UPPER_ONLY[name])
        if _integer(value) > _integer(high):
            message = f"{name} must be less than or equal to {high}"
            raise errors.InvalidConfig(message)
    elif name in _LOWER_ONLY:
        low = broker.value(_LOWER_ONLY[name])
        if _integer(value) < _integer(low):
            message = f"{name} must be greater than or equal to {low}"
            raise errors.InvalidConfig(message)


def _integer(value: SettingValue) -> int:
    assert isinstance(value, int), value
    return value


def validate_client_metrics(texts: Mapping[str, str]) -> None:
    """Raise InvalidRequest or InvalidConfig unless a subscription can have these settings."""
    for name, text in texts.items():
        key = CLIENT_METRICS.find(name)
        if key is None:
            raise errors.InvalidRequest(f"Unknown client metrics configuration: {name}")
        try:
            value = key.parse(text)
        except ConfigError as error:
            raise errors.InvalidConfig(str(error)) from None
        if isinstance(value, int) and not _INTERVAL_MIN_MS <= value <= _INTERVAL_MAX_MS:
            raise errors.InvalidRequest(
                f"Invalid value {value} for interval.ms, interval must be between"
                f" {_INTERVAL_MIN_MS} and {_INTERVAL_MAX_MS} (1 hour)",
            )
        if name == "match":
            assert isinstance(value, tuple), value
            for pattern in value:
                _check_match(pattern)


def _check_match(pattern: str) -> None:
    key, equals, expression = pattern.partition("=")
    if not equals or key.strip() not in _MATCH_KEYS or not expression.strip():
        raise errors.InvalidConfig(f"Illegal client matching pattern: {pattern}")
