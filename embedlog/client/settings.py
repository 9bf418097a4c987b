"""Configuration of the clients: Kafka's keys, types, defaults and rules.

A key may be written with dots in a dict or with underscores as a keyword argument:
`{"linger.ms": 5}` is `linger_ms=5`. Values may be text, as in a properties file. An unknown key
warns at the user's line, and so does one without effect; a wrong value is a `ConfigError`.
"""

from __future__ import annotations

from embedlog.errors import ConfigError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Mapping
    from typing import Any

    from embedlog.client.serializers import Converter

    # kind, default, then (lowest, highest) of a number or the allowed words of a text
    Definition = tuple[str, Any, Any]
    Definitions = Mapping[str, Definition]
    Settings = dict[str, Any]

INT_MAX = 2**31 - 1
LONG_MAX = 2**63 - 1
NATURAL = (0, INT_MAX)

COMMON: Definitions = {
    "bootstrap.servers": ("list", None, None),
    "client.id": ("text", "", None),
    "client.dns.lookup": (
        "choice",
        "use_all_dns_ips",
        ("use_all_dns_ips", "resolve_canonical_bootstrap_servers_only"),
    ),
    "connections.max.idle.ms": ("int", 540_000, (-1, INT_MAX)),
    "metadata.max.age.ms": ("int", 300_000, NATURAL),
    "metadata.recovery.rebootstrap.trigger.ms": ("int", 300_000, NATURAL),
    "metadata.recovery.strategy": ("choice", "rebootstrap", ("none", "rebootstrap")),
    # Kafka's clients ask for 32 or 64 KiB and 128 KiB; -1, the system's own choice, grows.
    "receive.buffer.bytes": ("int", -1, (-1, INT_MAX)),
    "send.buffer.bytes": ("int", -1, (-1, INT_MAX)),
    "reconnect.backoff.ms": ("int", 50, NATURAL),
    "reconnect.backoff.max.ms": ("int", 1_000, NATURAL),
    "request.timeout.ms": ("int", 30_000, NATURAL),
    "retry.backoff.ms": ("int", 100, NATURAL),
    "retry.backoff.max.ms": ("int", 1_000, NATURAL),
    "security.protocol": (
        "choice",
        "PLAINTEXT",
        ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"),
    ),
    "sasl.mechanism": ("choice", None, ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")),
    "sasl.jaas.config": ("secret", None, None),
    "sasl.username": ("secret", None, None),
    "sasl.password": ("secret", None, None),
    # Kafka's default for both types is JKS, which only Java can read.
    "ssl.truststore.type": ("choice", "PEM", ("PEM",)),
    "ssl.truststore.location": ("text", None, None),
    "ssl.truststore.certificates": ("text", None, None),
    "ssl.keystore.type": ("choice", "PEM", ("PEM",)),
    "ssl.keystore.location": ("text", None, None),
    "ssl.keystore.certificate.chain": ("text", None, None),
    "ssl.keystore.key": ("secret", None, None),
    "ssl.key.location": ("text", None, None),
    "ssl.key.password": ("secret", None, None),
    "ssl.endpoint.identification.algorithm": ("choice", "https", ("https", "none", "")),
    "enable.ssl.certificate.verification": ("bool", True, None),
    "ssl.enabled.protocols": ("list", ["TLSv1.2", "TLSv1.3"], None),
    "ssl.cipher.suites": ("list", [], None),
    "socket.connection.setup.timeout.ms": ("int", 10_000, NATURAL),
    "socket.connection.setup.timeout.max.ms": ("int", 30_000, NATURAL),
}

ADMIN: Definitions = {
    **COMMON,
    "default.api.timeout.ms": ("int", 60_000, NATURAL),
    "retries": ("int", INT_MAX, NATURAL),
}

_WORDS = {"true": True, "false": False}


class Parsed(dict[str, "Any"]):
    """Settings, and the names of those that the user has set."""

    __slots__ = ("given",)

    def __init__(self, settings: Mapping[str, Any]) -> None:
        super().__init__(settings)
        self.given: list[str] = []


def parse(definitions: Definitions, *given: Mapping[str, Any] | None) -> Parsed:
    """All settings by their dotted names: what was given, checked, over the defaults.

    The result's `given` are the names that were set.

    A later mapping wins. Keys of value None keep their default.

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


def warn_idle(settings: Settings, names: Container[str], reason: str) -> None:
    """Warn of those of `names` that the user has set and that do nothing, for this `reason`."""
    idle = [name for name in sorted(set(getattr(settings, "given", ()))) if name in names]
    if idle:
        from embedlog.user_warnings import warn_user

        warn_user(f"no effect of {', '.join(map(repr, idle))}: {reason}")


def one_of(definitions: Definitions, name: str, *given: Mapping[str, Any] | None) -> Any:
    """What `parse` makes of one setting; it warns of none of the others."""
    known = {name: definitions[name]}
    return parse(
        known,
        *[{k: v for k, v in (each or {}).items() if k.replace("_", ".") == name} for each in given],
    )[name]


def converters(settings: Settings, kind: str) -> list[Converter | None]:
    """What key.`kind` and value.`kind` name, made and configured; None for one that is not set.

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
    """Close both; an object that serves keys and values alike only once."""
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
