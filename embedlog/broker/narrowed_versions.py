"""The versions of a broker that serves less than it could: the setting embedlog.api.versions."""

from __future__ import annotations

from embedlog.errors import ConfigError
from wire.api_keys import NAMES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

SETTING = "embedlog.api.versions"


def narrowed(
    texts: Iterable[str], served: Mapping[int, tuple[int, int]]
) -> dict[int, tuple[int, int]]:
    """Return the part of `served` that the texts name, each as `API:first-last`.

    The API is a name or a number. APIs and versions that are not served are left out, so that the
    list of another broker can be given as it is.

    Raises:
        ConfigError: a text has another form, or names an API that Kafka does not have.
    """
    found: dict[int, tuple[int, int]] = {}
    for text in texts:
        key, first, last = _parsed(text)
        if key in served:
            first, last = max(first, served[key][0]), min(last, served[key][1])
            if first <= last:
                found[key] = first, last
    return found


def api_key(name: str) -> int:
    """Return the number of an API, from its name or its number.

    Raises:
        ConfigError: Kafka has no such API.
    """
    if name.isdecimal():
        return int(name)
    for key, known in NAMES.items():
        if known.lower() == name.lower():
            return key
    from difflib import get_close_matches

    near = get_close_matches(name, NAMES.values(), 1, 0.5)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    raise ConfigError(f"{name!r} is no API of Kafka{hint}")


def _parsed(text: str) -> tuple[int, int, int]:
    name, _, versions = text.partition(":")
    first, _, last = versions.partition("-")
    if not (first.isdecimal() and last.isdecimal()):
        raise ConfigError(f"{SETTING}: {text!r}: expected API:first-last, for example Produce:3-9")
    return api_key(name.strip()), int(first), int(last)
