"""The answers of DescribeConfigs: values in force, their sources, and their synonyms.

The synonyms of a setting are all settings that give it a value, the strongest first. The first
synonym decides the source. If a broker setting exists in several units, Kafka leaves out the
synonyms before the first one with the name that the client requested. So while only
log.retention.hours is set, retention.ms has no synonyms.
"""

from __future__ import annotations

from embedlog.config import topic_config, types
from embedlog.config.broker_config import (
    CHAINS,
    SOURCE_DEFAULT,
    SOURCE_DYNAMIC_DEFAULT,
    BrokerConfig,
)
from embedlog.config.definitions import (
    BROKER,
    CLIENT_METRICS,
    GROUP,
    TOPIC,
    ConfigKey,
    Definitions,
)
from embedlog.config.topic_synonyms import BROKER_NAMES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from embedlog.config.types import SettingValue

    Texts = Mapping[str, str]
    Synonym = tuple[str, str | None, int]
    """(name, value, Kafka's number of the source)"""

SOURCE_TOPIC = 1
SOURCE_CLIENT_METRICS = 7
SOURCE_GROUP = 8

_CHAIN_OF = {member: chain for chain in CHAINS.values() for member, _ in chain}
_LISTENER_PREFIX = "listener.name."


class ConfigEntry:
    """One setting in an answer. `value` is None if the setting has no value or holds a secret."""

    __slots__ = ("name", "read_only", "sensitive", "source", "synonyms", "type", "value")

    def __init__(
        self,
        name: str,
        value: str | None,
        *,
        type_: int,
        synonyms: Sequence[Synonym] = (),
        source: int | None = None,
        read_only: bool = False,
        sensitive: bool = False,
    ) -> None:
        self.name = name
        self.value = None if sensitive else value
        self.type = type_
        self.synonyms = synonyms
        self.read_only = read_only
        self.sensitive = sensitive
        if source is None:
            source = synonyms[0][2] if synonyms else SOURCE_DEFAULT
        self.source = source


def describe_topic(
    texts: Texts, broker: BrokerConfig, names: Iterable[str] | None = None
) -> list[ConfigEntry]:
    """Describe a topic: the settings in `names`, or all. `texts` are the topic's own settings.

    The entries are shared: do not modify them.
    """
    entries = []
    changed = {*texts, *broker.set_names()}
    for key in _keys(TOPIC, texts, names):
        names_of_broker = _broker_names(key.name)
        if key.name in changed or not changed.isdisjoint(names_of_broker):
            entries.append(_topic_entry(key, texts, broker))
            continue
        entry = _topic_defaults.get(key.name)
        if entry is None:
            entry = _topic_defaults[key.name] = _topic_entry(key, {}, broker)
        entries.append(entry)
    return entries


_topic_defaults: dict[str, ConfigEntry] = {}
"""Topic setting -> its entry if neither the topic nor the broker sets it. To make it anew for every
new topic took a quarter of the time of an empty cluster with one topic."""
_names_of_broker: dict[str, tuple[str, ...]] = {}


def _broker_names(name: str) -> tuple[str, ...]:
    """Return the broker settings that give a topic setting its value."""
    found = _names_of_broker.get(name)
    if found is None:
        broker_name = BROKER_NAMES.get(name)
        chain = () if broker_name is None else _CHAIN_OF.get(broker_name, ((broker_name, 1),))
        found = _names_of_broker[name] = tuple(member for member, _ in chain)
    return found


def _topic_entry(key: ConfigKey, texts: Texts, broker: BrokerConfig) -> ConfigEntry:
    value = types.format_value(topic_config.effective(key.name, texts, broker))
    synonyms: list[Synonym] = []
    if key.name in texts:
        synonyms.append((key.name, value, SOURCE_TOPIC))
    broker_name = BROKER_NAMES.get(key.name)
    if broker_name is not None:
        synonyms.extend(_broker_synonyms(BROKER[broker_name], broker))
    return ConfigEntry(key.name, value, type_=key.type, synonyms=synonyms)


def describe_broker(broker: BrokerConfig, names: Iterable[str] | None = None) -> list[ConfigEntry]:
    """Describe the broker's settings, including dynamic ones with names unknown to embedlog."""
    unknown = [
        name
        for texts, source in broker.sources()
        for name in texts
        if BROKER.find(name) is None and source <= SOURCE_DYNAMIC_DEFAULT
    ]
    wanted = None if names is None else set(names)
    return [
        _broker_entry(name, broker)
        for name in dict.fromkeys([*_shown(BROKER), *unknown])
        if wanted is None or name in wanted
    ]


def describe_cluster_defaults(
    broker: BrokerConfig, texts: Texts, names: Iterable[str] | None = None
) -> list[ConfigEntry]:
    """Describe the cluster-wide dynamic settings, which are `texts`.

    Clients name the broker resource "" to get them.
    """
    wanted = None if names is None else set(names)
    entries = []
    for name in texts:
        if wanted is not None and name not in wanted:
            continue
        entry = _broker_entry(name, broker)
        synonym = (name, None if entry.sensitive else texts[name], SOURCE_DYNAMIC_DEFAULT)
        entries.append(
            ConfigEntry(
                name,
                texts[name],
                type_=entry.type,
                synonyms=[synonym],
                read_only=entry.read_only,
                sensitive=entry.sensitive,
            )
        )
    return entries


def describe_group(
    texts: Texts, broker: BrokerConfig, names: Iterable[str] | None = None
) -> list[ConfigEntry]:
    """Describe a group, whether or not it exists."""
    from embedlog.config import resources

    entries = []
    for key in _keys(GROUP, texts, names):
        value = types.format_value(resources.group_value(key.name, texts, broker))
        synonyms: list[Synonym] = []
        if key.name in texts:
            synonyms.append((key.name, value, SOURCE_GROUP))
        broker_name = resources.GROUP_BROKER_NAMES.get(key.name)
        if broker_name is not None:
            synonyms.extend(_broker_synonyms(BROKER[broker_name], broker))
        else:
            synonyms.append((key.name, key.default, SOURCE_DEFAULT))
        entries.append(ConfigEntry(key.name, value, type_=key.type, synonyms=synonyms))
    return entries


def describe_client_metrics(texts: Texts, names: Iterable[str] | None = None) -> list[ConfigEntry]:
    """Describe a client metrics subscription, whether or not it exists."""
    entries = []
    for key in _keys(CLIENT_METRICS, texts, names):
        own = texts.get(key.name)
        value = types.format_value(key.default_value() if own is None else key.parse(own))
        synonyms = [] if own is None else [(key.name, value, SOURCE_CLIENT_METRICS)]
        entries.append(ConfigEntry(key.name, value, type_=key.type, synonyms=synonyms))
    return entries


def _keys(definitions: Definitions, texts: Texts, names: Iterable[str] | None) -> list[ConfigKey]:
    """Return the definitions to describe. Internal settings must be set, or named in `names`."""
    wanted = [*_shown(definitions), *texts] if names is None else names
    found = (definitions.find(name) for name in dict.fromkeys(wanted))
    return [key for key in found if key is not None]


def _shown(definitions: Definitions) -> list[str]:
    return [name for name in definitions.names() if not definitions[name].is_internal]


def _broker_entry(name: str, broker: BrokerConfig) -> ConfigEntry:
    key = BROKER.find(name)
    if key is None:
        return _unknown_entry(name, broker)
    value: SettingValue = broker.value(name)
    return ConfigEntry(
        name,
        types.format_value(value),
        type_=key.type,
        synonyms=_broker_synonyms(key, broker),
        read_only=not key.is_dynamic,
        sensitive=key.is_sensitive,
    )


def _unknown_entry(name: str, broker: BrokerConfig) -> ConfigEntry:
    """Describe a setting, unknown or of a listener, without its value, which could be a secret."""
    type_ = 0
    if name.startswith(_LISTENER_PREFIX):
        plain = BROKER.find(name.removeprefix(_LISTENER_PREFIX).partition(".")[2])
        type_ = plain.type if plain is not None else 0
    synonyms = [(name, None, source) for texts, source in broker.sources() if name in texts]
    return ConfigEntry(name, None, type_=type_, synonyms=synonyms, read_only=True, sensitive=True)


def _broker_synonyms(key: ConfigKey, broker: BrokerConfig) -> list[Synonym]:
    members = [name for name, _ in _CHAIN_OF.get(key.name, ((key.name, 1),))]
    found: list[Synonym] = [
        (member, texts[member], source)
        for texts, source in broker.sources()
        for member in members
        if member in texts
    ]
    for member in members:
        default = BROKER[member].default
        if default is not None:
            found.append((member, default, SOURCE_DEFAULT))
    first = next((n for n, (name, _, _) in enumerate(found) if name == key.name), len(found))
    if key.is_sensitive:
        return [(name, None, source) for name, _, source in found[first:]]
    return found[first:]
