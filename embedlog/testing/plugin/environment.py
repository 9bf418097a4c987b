"""Environment variables that lead the tested program to the cluster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from embedlog.errors import ConfigError

_ADDRESSES = "{bootstrap_servers}"
_WELL_KNOWN = {
    "KAFKA_BOOTSTRAP_SERVERS": _ADDRESSES,
    "KAFKA_BOOTSTRAP_SERVER": _ADDRESSES,
    "KAFKA_BROKERS": _ADDRESSES,
    "KAFKA_BROKER": _ADDRESSES,
    "KAFKA_URL": _ADDRESSES,
    "KAFKA_HOST": "{host}",
    "KAFKA_PORT": "{port}",
}
"""The variables of `env=True`."""


def variables(wanted: Any, addresses: str) -> dict[str, str]:
    """Return environment variables and their values.

    `wanted` is True for the usual names, a name, names, or a dict of names and templates. A
    template may contain {bootstrap_servers}, {host} and {port}; the last two are of the first
    broker. A name alone has the template of its end: _HOST, _PORT or the addresses.

    >>> variables({"BROKER_URL": "kafka://{host}:{port}/0"}, "127.0.0.1:9092")
    {'BROKER_URL': 'kafka://127.0.0.1:9092/0'}

    Raises:
        ConfigError: a template has another field, or `wanted` is of another type.
    """
    host, _, port = addresses.partition(",")[0].rpartition(":")
    fields = {"bootstrap_servers": addresses, "host": host, "port": port}
    return {name: _filled(name, text, fields) for name, text in _templates(wanted).items()}


def _templates(wanted: Any) -> dict[str, str]:
    if wanted is True:
        return _WELL_KNOWN
    if not wanted:
        return {}
    if isinstance(wanted, Mapping):
        return dict(wanted)
    names = [wanted] if isinstance(wanted, str) else wanted
    if not isinstance(names, list | tuple | set | frozenset):
        raise ConfigError(f"env={wanted!r}: expected True, a name, names, or a dict of templates")
    given = [str(each).partition("=") for each in names]
    return {name: template or _template_of(name) for name, _, template in given}


def _template_of(name: str) -> str:
    if name.endswith("_HOST"):
        return "{host}"
    return "{port}" if name.endswith("_PORT") else _ADDRESSES


def _filled(name: str, template: str, fields: Mapping[str, str]) -> str:
    try:
        return template.format_map(fields)
    except (KeyError, IndexError, ValueError):
        known = ", ".join(f"{{{each}}}" for each in fields)
        raise ConfigError(f"env {name}={template!r}: a template may contain {known}") from None
