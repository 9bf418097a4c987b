"""Formats: bytes of keys and values to Python values, and back for seeding.

    kafka.topic("orders", value="json", key="text")
    kafka.topic("orders", value=avro(schema))
    kafka.topic("orders", value="confluent")            the schemas of `kafka.registry`

Avro and Protobuf load their libraries with the first record.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from embedlog.errors import ConfigError
from embedlog.testing.names import hint
from embedlog.testing.topics.formats.basic import BYTES, JSON, TEXT, Format, Function, Int

if TYPE_CHECKING:
    from embedlog.testing.topics.formats.confluent_values import SchemaById


_BY_NAME: dict[str, Format] = {
    "bytes": BYTES,
    "int32": Int(4),
    "int64": Int(8),
    "json": JSON,
    "text": TEXT,
}
_WITH_SCHEMA = ("avro", "protobuf")


def format_of(given: Any, registry: Callable[[], Any]) -> Format | None:
    """Return the format that a test named: a name, a function of bytes, or a format.

    `registry` returns the schema registry of the cluster, or None.

    Raises:
        ConfigError: the name is unknown, or needs a schema.
    """
    if given is None:
        return None
    if isinstance(given, str):
        if given in _WITH_SCHEMA:
            raise ConfigError(f"{given!r} needs a schema: embedlog.testing.{given}(schema)")
        if given == "confluent":
            return confluent(lambda schema_id: _present(registry()).schema_by_id(schema_id))
        found = _BY_NAME.get(given)
        if found is None:
            known = (*_BY_NAME, *_WITH_SCHEMA, "confluent")
            raise ConfigError(f"there is no format {given!r}; {hint(given, known)}")
        return found
    if hasattr(given, "decode") and hasattr(given, "encode"):
        return given  # type: ignore[no-any-return]
    if callable(given):
        return Function(given)
    raise ConfigError(f"{given!r} is no format: give a name, a function of bytes, or a format")


def _present(registry: Any) -> Any:
    if registry is None:
        raise ConfigError("there is no kafka.registry: give confluent(schema_by_id)")
    return registry


def avro(schema: Any) -> Format:
    """Return the format of Avro values without a header; `schema` is JSON text or its value.

    >>> kafka.topic("orders", value=avro({"type": "record", ...}))         # doctest: +SKIP
    """
    from embedlog.testing.topics.formats.avro_values import Avro

    return Avro(schema)


def protobuf(message: Any) -> Format:
    """Return the format of Protobuf messages without a header; `message` is a generated class.

    >>> kafka.topic("orders", value=protobuf(Order))                       # doctest: +SKIP
    """
    from embedlog.testing.topics.formats.protobuf_messages import Protobuf

    return Protobuf(message)


def confluent(
    schema_by_id: SchemaById, *, schema_id: int | None = None, message: Any = None
) -> Format:
    """Return the format of values with Confluent's header, whose schemas `schema_by_id` returns.

    `schema_id` is the schema of seeded values. `message` is the Protobuf class; without it a
    Protobuf schema is compiled.

    >>> kafka.topic("orders", value=confluent({7: schema}.__getitem__))    # doctest: +SKIP
    """
    from embedlog.testing.topics.formats.confluent_values import Confluent

    return Confluent(schema_by_id, schema_id=schema_id, message=message)
