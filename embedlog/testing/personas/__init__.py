"""Personas: a cluster that serves the APIs, versions and features of another broker.

    Kafka(persona="kafka-3.9")          what a client sees of a broker of that release
    Kafka(max_versions={"Produce": 9})  one API, at most in this version

A persona narrows the versions of each API and the features, and with them the group protocol and
the transaction protocol that clients choose. Within a version a cluster answers as Kafka 4.4 does.
The brokers themselves gave the tables: see `tables`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from embedlog.broker.dispatch import VERSIONS
from embedlog.broker.narrowed_versions import SETTING, api_key
from embedlog.errors import ConfigError
from embedlog.testing.personas.tables import TABLE

if TYPE_CHECKING:
    from embedlog.testing.personas.persona import Persona


def named(name: str) -> Persona:
    """Return the persona of this name.

    >>> named("kafka-3.9").versions["Fetch"]
    (0, 17)

    Raises:
        ConfigError: there is none of this name. The text has all names.
    """
    from embedlog.testing.personas.persona import Persona

    found = _personas()
    if name not in found:
        raise ConfigError(f"persona {name!r}: expected one of {', '.join(found)}")
    return Persona(name, found[name])


def settings(persona: str | None, max_versions: Mapping[str, int]) -> dict[str, Any]:
    """Return the settings of a broker with this persona and these highest versions.

    Raises:
        ConfigError: the persona, an API or a version does not exist.
    """
    made: dict[str, Any] = {} if persona is None else dict(named(persona).settings)
    if persona is None and not max_versions:
        return made
    served = VERSIONS if persona is None else named(persona).served
    limits = {_served_api(name): _version(name, last) for name, last in max_versions.items()}
    texts = [
        f"{key}:{first}-{last}"
        for key, (first, served_last) in served.items()
        if (last := min(served_last, limits.get(key, served_last))) >= first
    ]
    return {**made, SETTING: ",".join(texts)}


def _served_api(name: str) -> int:
    key = api_key(name)
    if key not in VERSIONS:
        raise ConfigError(f"max_versions: {name} is not served")
    return key


def _version(name: str, version: int) -> int:
    first, last = VERSIONS[api_key(name)]
    if not isinstance(version, int) or not first <= version <= last:
        raise ConfigError(f"max_versions: {name}={version!r}: expected {first} to {last}")
    return version


@cache
def _personas() -> dict[str, dict[str, str]]:
    """Return the rows of the table: name -> kind of line -> text."""
    found: dict[str, dict[str, str]] = {}
    for block in TABLE.strip().split("\n\n"):
        name, _, rest = block.partition("\n")
        lines: dict[str, str] = {}
        for line in rest.splitlines():
            if not line.startswith("        "):
                kind, _, line = line.strip().partition(" ")
                lines[kind] = ""
            lines[kind] += f" {line.strip()}"
        found[name] = lines
    return found
