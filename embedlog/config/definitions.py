"""The definitions of settings: the tables of `embedlog.config.tables`, read one row at a time.

There are four kinds of settings (broker, topic, group, client metrics) and 450 rows. Opening a log
needs a few dozen, so the tables stay text and a row is parsed when it is first named: making an
object for every row would cost more than opening. A row and its documentation:

    num.partitions int 1 >=1 read-only
        Partitions of a topic whose creator names no count.

The columns are name, type, default, rule (see `embedlog.config.types`) and mode of change:
`read-only`, `per-broker` or `cluster-wide`; `internal` settings work but are never described. A
default of `""` is the empty text or list, `null` is no value, `required` has no default.
"""

from __future__ import annotations

from embedlog.config import types
from embedlog.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from embedlog.config.types import SettingValue

_LIKENESS_MIN = 0.8
"""By difflib's ratio: a missing letter is likely, another word is not."""

_BROKER_TABLES = ("own", "log", "network", "groups", "cluster", "security")
"""In the order that opening needs: a table is imported only if the ones before lack the row."""


class ConfigKey(Value):
    """One setting: its type, default text, rule and how it can change."""

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
        """Do the answers of DescribeConfigs leave the setting out?"""
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
    """The settings of one kind of resource, by name, in the order of their names."""

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
        """Return the name that a misspelt one most likely means, or None."""
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
TOPIC = Definitions("topic", "own")
GROUP = Definitions("group")
CLIENT_METRICS = Definitions("client_metrics")
