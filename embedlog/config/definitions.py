"""What settings exist: the tables of `embedlog.config.tables`, looked up one row at a time.

There are four kinds of settings (broker, topic, group, client metrics) and 450 rows. Opening a log
asks for a few dozen of them, so the tables stay text and a row is parsed when it is first named:
making an object for every row would cost more than opening does. A row and its documentation:

    num.partitions int 1 >=1 read-only
        Partitions of a topic whose creator names no count.

The columns are name, type, default, rule (see `embedlog.config.types`) and how it can change:
`read-only`, `per-broker` or `cluster-wide`; `internal` settings work but are never described.
A default of `""` is the empty text or list, `null` is no value, `required` has no default.
"""

from __future__ import annotations

from embedlog.config import types

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from embedlog.config.types import Value

_LIKENESS_MIN = 0.8
"""As difflib counts it: a letter missing, not another word."""

_BROKER_TABLES = ("own", "log", "network", "groups", "cluster", "security")
"""In the order in which opening asks: a table is imported when the ones before have no such row."""


class ConfigKey:
    """One setting: its type, default text, rule and how it can change."""

    __slots__ = ("default", "mode", "name", "rule", "type")

    def __init__(self, name: str, type_: int, default: str | None, rule: str, mode: str) -> None:
        self.name = name
        self.type = type_
        self.default = default
        self.rule = rule
        self.mode = mode

    @property
    def is_dynamic(self) -> bool:
        """Can a running broker change it?"""
        return self.mode in ("per-broker", "cluster-wide")

    @property
    def is_internal(self) -> bool:
        """Is it left out of what DescribeConfigs answers?"""
        return self.mode == "internal"

    @property
    def is_sensitive(self) -> bool:
        """Is its value never shown?"""
        return self.type == types.PASSWORD

    def parse(self, text: str) -> Value:
        """The value of a text, held against the rule.

        Raises:
            ConfigError: not of the type, or against the rule.
        """
        value = types.parse(self.name, self.type, text)
        types.check(self.name, self.rule, value)
        return value

    def default_value(self) -> Value:
        """The default as a value; None where there is none."""
        return None if self.default is None else types.parse(self.name, self.type, self.default)

    def __repr__(self) -> str:
        return f"ConfigKey({self.name!r}, default={self.default!r}, {self.mode})"


class Definitions:
    """The settings of one kind of resource, by name, in the order of their names."""

    def __init__(self, *tables: str) -> None:
        self._table_names = tables
        self._tables: dict[str, str] = {}
        self._keys: dict[str, ConfigKey | None] = {}

    def find(self, name: str) -> ConfigKey | None:
        """The definition of a setting, None when there is none of that name."""
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
        """Every name, sorted, internal ones too."""
        return sorted(
            line.partition(" ")[0]
            for table in self._texts()
            for line in table.splitlines()
            if line and not line.startswith(" ")
        )

    def documentation(self, name: str) -> str:
        """One sentence about a setting; empty when there is none of that name."""
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
        """The name that a misspelt one most likely meant; None when none is very much like it."""
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
