"""The settings of one broker: what it was started with, and what was changed while it ran.

Kafka's own names and texts: `BrokerConfig({"num.partitions": 3})`. A setting is read as an
attribute with underscores for dots, as a value of its type: `config.num_partitions`.

    per-broker change  >  cluster-wide change  >  started with  >  default
"""

from __future__ import annotations

from embedlog.config import types
from embedlog.config.definitions import BROKER, ConfigKey
from embedlog.errors import ConfigError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from embedlog.config.types import Value

    Texts = Mapping[str, str]

SOURCE_DYNAMIC_BROKER = 2
SOURCE_DYNAMIC_DEFAULT = 3
SOURCE_STATIC = 4
SOURCE_DEFAULT = 5

_NODE_ID = 1
"""Of a broker that was not told its number."""

_UNSET_NODE_ID = "-1"

_NODE_ID_NAMES = ("node.id", "broker.id")
"""Two names of one setting: the second is the older one."""

_DEDUPE_SIZE_MIN = 1 << 20
"""Memory for the keys of logs under compaction that each thread needs more than."""

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
"""Settings that exist in several units: the first that is set counts, times its milliseconds."""


class BrokerConfig:
    """Reads are safe from any thread; `set_dynamic` replaces the changed layers at once."""

    __slots__ = ("_layers", "logger_levels", "node_id", "unknown")

    def __init__(self, values: Mapping[str, object] | None = None) -> None:
        """Settings by Kafka's names; values as text or as Python values.

        A name that does not exist is kept in `unknown` and warned about, with a name that it may
        have meant; it is not an error in Kafka either. A value other than the default of a setting
        without effect is warned about too. The warnings name the user's line.

        Raises:
            ConfigError: a value that its setting does not take.
        """
        self.unknown: dict[str, str] = {}
        self.logger_levels = {"root": "INFO"}
        """Levels of loggers by name, which live as long as the broker does."""
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

    def value(self, name: str) -> Value:
        """The value of a setting by Kafka's name; None when it has none.

        Raises:
            AttributeError: there is no such setting.
        """
        return self._layers.value(name)

    def chain_ms(self, name: str) -> int:
        """Milliseconds of a setting that exists in several units; -1 for any negative value."""
        for member, unit_ms in CHAINS[name]:
            value = self._layers.value(member)
            if value is not None:
                assert isinstance(value, int), (member, value)
                return value * unit_ms if value >= 0 else -1
        raise AssertionError(name)

    def check_together(self) -> None:
        """Hold settings against the rules that no single one can break.

        Raises:
            ConfigError: one is broken.
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
        """Take over the changes made while running: cluster-wide ones, and this broker's own."""
        self._layers = _Layers(broker, cluster, self._layers.static)

    def with_dynamic(self, cluster: Texts, broker: Texts) -> BrokerConfig:
        """What the settings would be after such changes; these stay as they are."""
        other = BrokerConfig({"node.id": self.node_id})
        other._layers = _Layers(broker, cluster, self._layers.static)
        return other

    def of_node(self, node_id: int) -> BrokerConfig:
        """The same settings for another broker, but for what was changed while running."""
        other = BrokerConfig({"node.id": node_id})
        other.unknown = self.unknown
        other._layers = _Layers({}, {}, {**self._layers.static, **_ids(node_id)})
        return other

    def set_static(self, name: str, text: str) -> None:
        """Record what the start of the process decided, such as the directory or a listener."""
        layers = self._layers
        self._layers = _Layers(layers.broker, layers.cluster, {**layers.static, name: text})

    def is_set(self, name: str) -> bool:
        """Is there any value beside the default?"""
        return any(name in texts for texts, _ in self._layers.sources())

    def set_names(self) -> set[str]:
        """Every name with a value beside the default."""
        return {name for texts, _ in self._layers.sources() for name in texts}

    def sources(self) -> tuple[tuple[Texts, int], ...]:
        """The layers as (texts by name, Kafka's number of the source), strongest first."""
        return self._layers.sources()


class _Layers:
    """One state of the three layers, and the values read from it so far."""

    __slots__ = ("broker", "cluster", "static", "values")

    def __init__(self, broker: Texts, cluster: Texts, static: Texts) -> None:
        self.broker = broker
        self.cluster = cluster
        self.static = static
        # Kept per state: a value computed from an old state can never outlive it.
        self.values: dict[str, Value] = {}

    def sources(self) -> tuple[tuple[Texts, int], ...]:
        return (
            (self.broker, SOURCE_DYNAMIC_BROKER),
            (self.cluster, SOURCE_DYNAMIC_DEFAULT),
            (self.static, SOURCE_STATIC),
        )

    def value(self, name: str) -> Value:
        try:
            return self.values[name]
        except KeyError:
            key = BROKER.find(name)
            if key is None:
                raise AttributeError(f"no broker setting {name!r}") from None
            value = self.values[name] = self._read(key)
            return value

    def _read(self, key: ConfigKey) -> Value:
        for texts, _ in self.sources():
            if key.name in texts:
                return types.parse(key.name, key.type, texts[key.name])
        return key.default_value()


def _node_id(settings: Texts) -> int:
    """The number of the broker that is started with `settings`.

    Raises:
        ConfigError: its two names say different ones.
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
    """What every embedlog broker is; Kafka wants it spelled out."""
    return {
        "process.roles": "broker,controller",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": f"{node_id}@localhost:9093",
    }


def normalise_names(values: Mapping[str, object]) -> dict[str, object]:
    """Keyword arguments as settings: underscores become dots."""
    return {name.replace("_", "."): value for name, value in values.items()}


def text_of(value: object) -> str | None:
    """Text of a value given in Python; None means: leave the default."""
    if isinstance(value, list):
        value = tuple(value)
    if value is None or isinstance(value, str | bool | int | float | tuple):
        return types.format_value(value)
    raise ConfigError(f"a setting is text, a number, a truth value or a list, not {value!r}")


def _unmet(rule: str) -> ConfigError:
    return ConfigError(f"requirement failed: {rule}")
