"""The definitions of settings: the tables of `embedlog.config.tables`, read one row at a time.

There are four kinds of settings (broker, topic, group, client metrics) and 450 rows. Opening a log
needs a few dozen of them. So the tables stay text, and a row is parsed when its setting is first
used: an object for every row would cost more than the opening. A row and its documentation:

    num.partitions int 1 >=1 read-only
        Partitions of a topic whose creator names no count.

The columns are name, type, default, rule for values (see `embedlog.config.types`) and mode. The
modes `read-only`, `per-broker` and `cluster-wide` say how the setting can change while the broker
runs. An `internal` setting works, but DescribeConfigs does not list it. The default `""` is the
empty text or list, `null` is no value, and `required` means that there is no default.
"""

from __future__ import annotations

from embedlog.common import Value
from embedlog.config import types

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from embedlog.config.types import SettingValue

_LIKENESS_MIN = 0.8
"""`nearest` regards a name as misspelt if difflib's ratio is at least this: one with a missing
letter is misspelt, a different word is not."""

_BROKER_TABLES = (
    "broker_and_topic",
    "broker_log",
    "broker_network",
    "broker_coordinators",
    "broker_cluster",
    "broker_security",
)
"""Modules of `embedlog.config.tables`, in the order of search. Opening a broker finds its settings
in the first ones; the others are not imported."""


class ConfigKey(Value):
    """The definition of one setting: the columns of its row."""

    name: str
    type: int
    default: str | None
    rule: str
    mode: str

    @property
    def is_dynamic(self) -> bool:
        return self.mode in ("per-broker", "cluster-wide")

    @property
    def is_internal(self) -> bool:
        """Whether DescribeConfigs leaves the setting out when it lists all of them."""
        return self.mode == "internal"

    @property
    def is_sensitive(self) -> bool:
        return self.type == types.PASSWORD

    def parse(self, text: str) -> SettingValue:
        """Return the value of a text after checking the rule.

        Raises:
            ConfigError: the text is not of the type, or breaks the rule.
        """
        value = types.parse(self.name, self.type, text)
        types.check(self.name, self.rule, value)
        return value

    def default_value(self) -> SettingValue:
        """Return the value of the default, or None without one."""
        return None if self.default is None else types.parse(self.name, self.type, self.default)


class Definitions:
    """The definitions of all settings of one kind of resource."""

    def __init__(self, *tables: str) -> None:
        self._table_names = tables
        self._tables: dict[str, str] = {}
        self._keys: dict[str, ConfigKey | None] = {}

    def find(self, name: str) -> ConfigKey | None:
        """Return the definition of a setting, or None for an unknown name."""
        known = self._keys.get(name, self)
        if known is not self:
            return known  # type: ignore[return-value]
        row = self._row(name)
        key = None if row is None else _parse_row(row)
        self._keys[name] = key
        return key

    def __getitem__(self, name: str) -> ConfigKey:
        key = self.find(name)
        if key is None:
            raise KeyError(name)
        return key

    def names(self) -> list[str]:
        """Return every name, sorted, including internal ones."""
        return sorted(
            line.partition(" ")[0]
            for table in self._texts()
            for line in table.splitlines()
            if line and not line.startswith(" ")
        )

    def documentation(self, name: str) -> str:
        """Return a short description of a setting; empty for an unknown name."""
        for table in self._texts():
            start = _find_row(table, name)
            if start < 0:
                continue
            sentences = []
            for line in table[start + 1 :].split("\n")[1:]:
                if not line.startswith(" "):
                    break
                sentences.append(line.strip())
            return " ".join(sentences)
        return ""

    def nearest(self, name: str) -> str | None:
        """Return the setting that a misspelt `name` most likely means, or None."""
        from difflib import get_close_matches

        matches = get_close_matches(name, self.names(), 1, _LIKENESS_MIN)
        return matches[0] if matches else None

    def _row(self, name: str) -> str | None:
        for table in self._texts():
            start = _find_row(table, name)
            if start >= 0:
                return table[start + 1 : table.index("\n", start + 1)]
        return None

    def _texts(self) -> Iterator[str]:
        for name in self._table_names:
            text = self._tables.get(name)
            if text is None:
                module = __import__(f"embedlog.config.tables.{name}", fromlist=("TABLE",))
                text = self._tables[name] = module.TABLE
            yield text


def _find_row(table: str, name: str) -> int:
    return -1 if not name or " " in name or "\n" in name else table.find(f"\n{name} ")


def _parse_row(row: str) -> ConfigKey:
    name, type_, default, rule, mode = row.split(" ")
    texts = {"null": None, "required": None, '""': ""}
    return ConfigKey(name, types.TYPES[type_], texts.get(default, default), rule, mode)


BROKER = Definitions(*_BROKER_TABLES)
TOPIC = Definitions("topic", "broker_and_topic")
GROUP = Definitions("group")
CLIENT_METRICS = Definitions("client_metrics")
