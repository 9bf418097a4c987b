"""Parse the settings that a user gave: names, types, ranges; make the serializers."""

from __future__ import annotations

from embedlog.client.settings import Parsed
from embedlog.errors import ConfigError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from embedlog.client.serializers import Converter
    from embedlog.client.settings import Definition, Definitions, Settings

_WORDS = {"true": True, "false": False}


def parse(definitions: Definitions, *given: Mapping[str, Any] | None) -> Parsed:
    """Return all settings by their dotted names: checked given values, else the defaults.

    The result's `given` lists the names that the user set. A later mapping wins. Keys with the
    value None keep their default.

    Raises:
        ConfigError: a value has the wrong type or is out of its range.
    """
    settings = Parsed({name: definition[1] for name, definition in definitions.items()})
    for mapping in given:
        for key, value in (mapping or {}).items():
            name = key.replace("_", ".")
            definition = definitions.get(name)
            if definition is None:
                from embedlog.client.network.security import ALIASES

                name = ALIASES.get(name, name)
                definition = definitions.get(name)
            if definition is None:
                from embedlog.client.unknown_settings import warn_unknown

                warn_unknown(key, definitions)
            elif value is not None:
                settings[name] = _checked(name, definition, value)
                settings.given.append(name)
    return settings


def one_of(definitions: Definitions, name: str, *given: Mapping[str, Any] | None) -> Any:
    """Parse the setting `name` as `parse` does, and ignore all other given settings."""
    known = {name: definitions[name]}
    return parse(
        known,
        *[{k: v for k, v in (each or {}).items() if k.replace("_", ".") == name} for each in given],
    )[name]


def converters(settings: Settings, kind: str) -> list[Converter | None]:
    """Make and configure the converters of key.`kind` and value.`kind`; None for an unset one.

    `kind` is "serializer" or "deserializer".
    """
    made: list[Converter | None] = []
    for setting in (f"key.{kind}", f"value.{kind}"):
        given = settings[setting]
        if given is None:
            made.append(None)
        else:
            from embedlog.client.serializers import Converter

            made.append(Converter(setting, given, settings))
    return made


def close_converters(key: Converter | None, value: Converter | None) -> None:
    """Close both converters; an object that serves keys and values is closed once."""
    if key is not None:
        key.close()
    if value is not None and (key is None or value.given is not key.given):
        value.close()


def _checked(name: str, definition: Definition, value: Any) -> Any:
    kind, _, rule = definition
    if kind == "int":
        number = _integer(name, value)
        if not rule[0] <= number <= rule[1]:
            raise ConfigError(f"{name}={number}: must be between {rule[0]} and {rule[1]}")
        return number
    if kind == "bool":
        found = value if isinstance(value, bool) else _WORDS.get(str(value).strip().lower())
        if found is None:
            raise ConfigError(f"{name}={value!r}: must be true or false")
        return found
    if kind == "converter":
        from embedlog.client.serializers import method_of

        if not callable(value) and not hasattr(value, method_of(name)):
            raise ConfigError(
                f"{name}={value!r}: must be a function, or an object with a method "
                f"{method_of(name)}(topic, data)"
            )
        return value
    if kind == "object":
        return value
    if kind == "refused":
        raise ConfigError(f"{name}={value!r}: {rule}")
    if kind == "secret":
        return str(value)
    if kind == "objects":
        if isinstance(value, str):
            return [item.strip() for item in value.split(",") if item.strip()]
        return list(value) if isinstance(value, list | tuple) else [value]
    if kind == "list":
        items = value.split(",") if isinstance(value, str) else list(value)
        return [item.strip() for item in items if item.strip()]
    text = str(value).strip()
    if kind == "choice":
        by_lower = {word.lower(): word for word in rule}
        if text.lower() not in by_lower:
            raise ConfigError(f"{name}={value!r}: must be one of {', '.join(rule)}")
        return by_lower[text.lower()]
    return text


def _integer(name: str, value: Any) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str):
        try:
            return int(value)
        except ValueError:
            pass
    if isinstance(value, float) and value.is_integer():
        return int(value)
    raise ConfigError(f"{name}={value!r}: must be a whole number")
