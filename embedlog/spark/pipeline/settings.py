"""Reads a table of a project file: every key is known and has a type; errors name wrong keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from embedlog.spark.pipeline.errors import ProjectError
from embedlog.spark.pipeline.secrets import expanded, sounds_secret

_DURATION_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


class Settings:
    """One table. `finish` refuses the keys that no method has read."""

    def __init__(self, table: object, where: str) -> None:
        if not isinstance(table, Mapping):
            raise ProjectError(f"{where}: a table is needed, found {type(table).__name__}")
        self._table = dict(table)
        self._asked: set[str] = set()
        self.where = where

    def text(self, key: str, default: str | None = None) -> str:
        """Return a text; it must be there if there is no default."""
        value = self._value(key, default)
        if not isinstance(value, str) or (default is None and not value):
            raise self.wrong(key, value, "a text")
        return value

    def choice(self, key: str, among: Sequence[str], default: str | None = None) -> str:
        value = self.text(key, default)
        if value not in among:
            raise self.wrong(key, value, f"one of {', '.join(among)}")
        return value

    def integer(
        self, key: str, default: int, minimum: int = 0, maximum: int = (1 << 63) - 1
    ) -> int:
        """Return a whole number from `minimum` to `maximum`."""
        value = self._value(key, default)
        if not isinstance(value, int) or isinstance(value, bool) or value < minimum:
            raise self.wrong(key, value, f"a whole number from {minimum} on")
        if value > maximum:
            raise self.wrong(key, value, f"a whole number up to {maximum}")
        return value

    def optional_integer(self, key: str, maximum: int = (1 << 63) - 1) -> int | None:
        """Return a whole number of at least 0, or None if the key is missing."""
        self._asked.add(key)
        return self.integer(key, 0, maximum=maximum) if key in self._table else None

    def flag(self, key: str, default: bool) -> bool:
        value = self._value(key, default)
        if not isinstance(value, bool):
            raise self.wrong(key, value, "true or false")
        return value

    def texts(self, key: str, default: Sequence[str] | None = None) -> tuple[str, ...]:
        """Return a list of texts; a single text is a list of one."""
        value = self._value(key, default)
        found = [value] if isinstance(value, str) else value
        if not isinstance(found, list | tuple) or not all(isinstance(t, str) for t in found):
            raise self.wrong(key, value, "a list of texts")
        if default is None and not found:
            raise self.wrong(key, value, "a list that is not empty")
        return tuple(found)

    def secret(self, key: str) -> str | None:
        """Return a text with the values of its environment variables; no error shows it."""
        value = self._value(key, None)
        if value is not None and (not isinstance(value, str) or not value):
            raise ProjectError(f"{self.where}: {key}: a text is needed")
        return value if value is None else expanded(value, f"{self.where}: {key}")

    def options(self, key: str) -> dict[str, str]:
        """Return the options of a Spark format: texts, numbers and flags, all as text.

        `${NAME}` in a text is the value of an environment variable.
        """
        value = self._value(key, {})
        if not isinstance(value, Mapping):
            raise ProjectError(f"{self.where}: {key}: a table is needed")
        made = {}
        for name, each in value.items():
            if not isinstance(each, str | int | float):
                raise ProjectError(
                    f"{self.where}: {key}.{name}: a text, a number or a flag is needed"
                )
            text = str(each).lower() if isinstance(each, bool) else str(each)
            made[str(name)] = expanded(text, f"{self.where}: {key}.{name}")
        return made

    def duration_ms(self, key: str, default: str | None = None) -> int:
        """Return a time such as `500ms`, `10s`, `5m`, `2h` or `1d` in milliseconds."""
        text = self.text(key, default)
        number = text.rstrip("mshd ").strip()
        unit = text[len(number) :].strip() if text.startswith(number) else ""
        if not number.isdecimal() or unit not in _DURATION_MS:
            raise self.wrong(key, text, "a time such as 500ms, 10s, 5m, 2h or 1d")
        return int(number) * _DURATION_MS[unit]

    def table(self, key: str) -> Settings | None:
        value = self._value(key, {})
        return Settings(value, f"{self.where}.{key}") if key in self._table else None

    def tables(self, key: str) -> list[Settings]:
        value = self._value(key, [])
        if not isinstance(value, list | tuple):
            raise self.wrong(key, value, "a list of tables")
        return [Settings(each, f"{self.where}.{key}[{n}]") for n, each in enumerate(value)]

    def any(self, key: str) -> Any:
        """Return a value of any type, or None."""
        self._asked.add(key)
        return self._table.get(key)

    def has(self, key: str) -> bool:
        return key in self._table

    def wrong(self, key: str, value: object, wanted: str) -> ProjectError:
        if key not in self._table:
            return ProjectError(f"{self.where}: `{key}` is missing: {wanted}")
        if sounds_secret(key):
            return ProjectError(f"{self.where}: {key}: {wanted} is needed")
        return ProjectError(f"{self.where}: {key} = {value!r}: {wanted} is needed")

    def finish(self) -> None:
        """Refuse unknown keys, and suggest the nearest known one."""
        for key in self._table:
            if key not in self._asked:
                near = get_close_matches(str(key), self._asked, 1)
                hint = f"; did you mean `{near[0]}`?" if near else ""
                known = ", ".join(sorted(self._asked))
                raise ProjectError(f"{self.where}: unknown key `{key}`{hint} Known: {known}")

    def _value(self, key: str, default: object) -> object:
        self._asked.add(key)
        return self._table.get(key, default)
