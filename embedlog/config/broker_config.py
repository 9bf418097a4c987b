"""The settings of one broker: its start-up values, and the changes made while it runs.

Settings have Kafka's names and value texts: `BrokerConfig({"num.partitions": 3})`. Read a setting
as an attribute, with underscores for dots: `config.num_partitions` is the int 3.

A setting has the value of the strongest layer that names it:

    per-broker change  >  cluster-wide change  >  start-up value  >  default
"""

from __future__ import annotations

from embedlog.config import types
from embedlog.config.definitions import BROKER, ConfigKey
from embedlog.errors import ConfigError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from embedlog.config.types import SettingValue

    Texts = Mapping[str, str]

SOURCE_DYNAMIC_BROKER = 2
SOURCE_DYNAMIC_DEFAULT = 3
SOURCE_STATIC = 4
SOURCE_DEFAULT = 5

_NODE_ID = 1

_UNSET_NODE_ID = "-1"

_NODE_ID_NAMES = ("node.id", "broker.id")
"""Kafka's two names of the node id; `broker.id` is the older name."""

_DEDUPE_SIZE_MIN = 1 << 20
"""Each cleaner thread needs more bytes than this of log.cleaner.dedupe.buffer.size."""

CHAINS: dict[str, tuple[tuple[str, int], ...]] = {
    "log.retention.ms": (
        ("log.retention.ms", 1),
        ("log.retention.minutes", 60_000),
        ("log.retention.hours", 3_600_000),
    ),
    "log.roll.ms": (("log.roll.ms", 1), ("log.roll.hours", 3_600_000)),
    "log.roll.jitter.ms": (("log.roll.jitter.ms", 1), ("log.roll.jitter.hours", 3_600_000)),
    "log.flush.interval.ms": (
        ("log.flush.interval.ms", 1),
        ("log.flush.scheduler.interval.ms", 1),
    ),
}
"""Settings that Kafka has in several units, as (name, milliseconds in a unit). The first name that
has a value decides."""


class BrokerConfig:
    """The settings of one broker. Any thread may read them, even while `set_dynamic` runs."""

    __slots__ = ("_layers", "logger_levels", "node_id", "unknown")

    def __init__(self, values: Mapping[str, object] | None = None) -> None:
        """Take settings by Kafka's names, with values as text or as Python values.

        An unknown name is no error, as in Kafka. It is kept in `unknown`, and a warning suggests
        the name that the user may have meant. A setting without effect in embedlog causes a warning
        if its value is not the default. The warnings point to the line of the user's program.

        Raises:
            ConfigError: a value does not fit its setting, or two settings conflict.
        """
        self.unknown: dict[str, str] = {}
        self.logger_levels = {"root": "INFO"}
        """Log level by logger name, as an admin client has set it. Lost when the broker stops."""
        static: dict[str, str] = {}
        for name, value in (values or {}).items():
            text = text_of(value)
            if text is None:
                continue
            key = BROKER.find(name)
            if key is not None:
                key.parse(text)
                static[name] = text
            elif not name.startswith("listener.name."):
                self.unknown[name] = text
        self.node_id = _node_id(static)
        self._layers = _Layers({}, {}, {**_roles(self.node_id), **static, **_ids(self.node_id)})
        self.check_together()
        if values:
            from embedlog.config import warnings

            warnings.warn_of(self.unknown, static)

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("_"):
            raise AttributeError(attribute)
        return self._layers.value(attribute.replace("_", "."))

    def value(self, name: str) -> SettingValue:
        """Return the value of a setting by Kafka's name, or None without a value.

        Raises:
            AttributeError: there is no such setting.
        """
        return self._layers.value(name)

    def chain_ms(self, name: str) -> int:
        """Return a setting of CHAINS in milliseconds; -1 for any negative value."""
        for member, unit_ms in CHAINS[name]:
            value = self._layers.value(member)
            if value is not None:
                assert isinstance(value, int), (member, value)
                return value * unit_ms if value >= 0 else -1
        raise AssertionError(name)

    def check_together(self) -> None:
        """Check the rules that concern several settings.

        Raises:
            ConfigError: a rule is broken.
        """
        names = self.set_names()
        if any(name.startswith(("log.retention.", "log.roll.")) for name in names):
            if self.chain_ms("log.retention.ms") == 0:
                raise _unmet(
                    "log.retention.ms must be unlimited (-1) or, greater than or equal to 1"
                )
            if self.chain_ms("log.roll.ms") < 1:
                raise _unmet("log.roll.ms must be greater than or equal to 1")
            if self.chain_ms("log.roll.jitter.ms") < 0:
                raise _unmet("log.roll.jitter.ms must be greater than or equal to 0")
        if "log.cleaner.dedupe.buffer.size" in names or "log.cleaner.threads" in names:
            thread_count = max(self.log_cleaner_threads, 1)
            if self.log_cleaner_dedupe_buffer_size / thread_count <= _DEDUPE_SIZE_MIN:
                raise _unmet(
                    "log.cleaner.dedupe.buffer.size must be at least 1MB per cleaner thread."
                )

    def set_dynamic(self, cluster: Texts, broker: Texts) -> None:
        """Replace all dynamic changes: `cluster` for all brokers, `broker` for this one alone."""
        self._layers = _Layers(broker, cluster, self._layers.static)

    def with_dynamic(self, cluster: Texts, broker: Texts) -> BrokerConfig:
        """Return a copy with these dynamic changes in place of its own; see `set_dynamic`."""
        other = BrokerConfig({"node.id": self.node_id})
        other._layers = _Layers(broker, cluster, self._layers.static)
        return other

    def of_node(self, node_id: int) -> BrokerConfig:
        """Return the same settings for another broker, without its dynamic changes."""
        other = BrokerConfig({"node.id": node_id})
        other.unknown = self.unknown
        other._layers = _Layers({}, {}, {**self._layers.static, **_ids(node_id)})
        return other

    def set_static(self, name: str, text: str) -> None:
        """Set a start-up value that the program determined, such as the directory or a listener."""
        layers = self._layers
        self._layers = _Layers(layers.broker, layers.cluster, {**layers.static, name: text})

    def is_set(self, name: str) -> bool:
        """Return whether any layer gives the setting a value, which replaces the default."""
        return any(name in texts for texts, _ in self._layers.sources())

    def set_names(self) -> set[str]:
        """Return the names of all settings that some layer gives a value."""
        return {name for texts, _ in self._layers.sources() for name in texts}

    def sources(self) -> tuple[tuple[Texts, int], ...]:
        """Return the layers, strongest first: (text by name, Kafka's number of the source)."""
        return self._layers.sources()


class _Layers:
    """The texts of the three layers at one moment, and the values parsed from them so far."""

    __slots__ = ("broker", "cluster", "static", "values")

    def __init__(self, broker: Texts, cluster: Texts, static: Texts) -> None:
        self.broker = broker
        self.cluster = cluster
        self.static = static
        # No value of old texts stays cached: a change of settings replaces the whole object.
        self.values: dict[str, SettingValue] = {}

    def sources(self) -> tuple[tuple[Texts, int], ...]:
        return (
            (self.broker, SOURCE_DYNAMIC_BROKER),
            (self.cluster, SOURCE_DYNAMIC_DEFAULT),
            (self.static, SOURCE_STATIC),
        )

    def value(self, name: str) -> SettingValue:
        try:
            return self.values[name]
        except KeyError:
            key = BROKER.find(name)
            if key is None:
                raise AttributeError(f"no broker setting {name!r}") from None
            value = self.values[name] = self._read(key)
            return value

    def _read(self, key: ConfigKey) -> SettingValue:
        for texts, _ in self.sources():
            if key.name in texts:
                return types.parse(key.name, key.type, texts[key.name])
        return key.default_value()


def _node_id(settings: Texts) -> int:
    """Return the node id in `settings`, or 1 if they have none.

    Raises:
        ConfigError: `node.id` and `broker.id` differ.
    """
    numbers = {
        name: int(settings[name])
        for name in _NODE_ID_NAMES
        if settings.get(name, _UNSET_NODE_ID) != _UNSET_NODE_ID
    }
    if len(set(numbers.values())) > 1:
        raise ConfigError(
            "You must set `node.id` to the same value as `broker.id`: "
            + ", ".join(f"{name}={number}" for name, number in numbers.items())
        )
    return next(iter(numbers.values()), _NODE_ID)


def _ids(node_id: int) -> dict[str, str]:
    return dict.fromkeys(_NODE_ID_NAMES, str(node_id))


def _roles(node_id: int) -> dict[str, str]:
    """Return the settings with the roles of a process: each embedlog broker has both roles."""
    return {
        "process.roles": "broker,controller",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": f"{node_id}@localhost:9093",
    }


def normalise_names(values: Mapping[str, object]) -> dict[str, object]:
    """Turn keyword arguments into settings: underscores become dots."""
    return {name.replace("_", "."): value for name, value in values.items()}


def text_of(value: object) -> str | None:
    """Return the text of a Python value, or None for None, which means the default."""
    if isinstance(value, list):
        value = tuple(value)
    if value is None or isinstance(value, str | bool | int | float | tuple):
        return types.format_value(value)
    raise ConfigError(f"a setting is text, a number, a truth value or a list, not {value!r}")


def _unmet(rule: str) -> ConfigError:
    return ConfigError(f"requirement failed: {rule}")
