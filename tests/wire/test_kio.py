"""Our bytes equal the bytes of kio, an independent implementation of the protocol.

kio has one dataclass per message and version, with special types for error codes, times and ids.
`to_kio` converts our message to kio's, field by field in order, because kio's field names differ.
"""

from __future__ import annotations

import dataclasses
import datetime
import io
import types
import typing
import uuid
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from kio.index import load_entity_schema
from kio.schema.errors import ErrorCode
from kio.schema.index import schema_name_map
from kio.serial import entity_writer

import wire
from tests.wire.generate import messages, random_message
from wire.layout import Layout, Slot, layout

EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
ERROR_CODES = [code.value for code in ErrorCode]
PAIRS_MIN = 570
"""(message, version) pairs that both know; a lower number means that the test lost its subject."""


def shared_pairs() -> list[tuple[type[Any], int, type[Any]]]:
    ours = {cls.__name__: cls for cls in messages()}
    pairs = []
    for name, kio_versions in schema_name_map.items():
        for version, kinds in kio_versions.items():
            for kind, path in kinds.items():
                cls = ours.get(path.rpartition(":")[2])
                if cls is not None:
                    pairs.append((cls, version, load_entity_schema(name, version, kind)))
    return pairs


def fields_in_order(part: Layout) -> list[Slot]:
    slots = {slot.name: slot for slot in part.slots + part.tagged}
    return [slots[field.name] for field in part.cls.__fields__ if field.name in slots]


def to_kio(message: Any, part: Layout, kio_class: type[Any]) -> Any:
    """Return kio's form of a message; change `message` if kio's types hold less than ours."""
    kio_fields = dataclasses.fields(kio_class)
    slots = fields_in_order(part)
    assert len(kio_fields) == len(slots), (part.cls, kio_class)
    types_of = typing.get_type_hints(kio_class)
    values = {}
    for slot, field in zip(slots, kio_fields, strict=True):
        kind = field.metadata.get("kafka_type")
        value = narrowed(getattr(message, slot.name), kind)
        if value is not getattr(message, slot.name):
            setattr(message, slot.name, value)
        values[field.name] = convert(value, slot, kind, types_of[field.name])
    return kio_class(**values)


def narrowed(value: Any, kind: str | None) -> Any:
    """Return a value that kio's type for `kind` can hold; the same if it can."""
    if isinstance(value, list):
        return [narrowed(item, kind) for item in value] if kind == "error_code" else value
    if kind == "error_code" and value not in ERROR_CODES:
        return ERROR_CODES[value % len(ERROR_CODES)]
    if kind == "datetime_i64" and not 0 <= value < 1 << 42:
        return -1 if value == -1 else value % (1 << 42)
    if kind == "timedelta_i64" and not abs(value) < 1 << 42:
        return value % (1 << 42)
    return value


def convert(value: Any, slot: Slot, kind: str | None, hint: Any) -> Any:
    if value is None:
        return None
    if slot.element is not None:
        element = slot.element
        return tuple(convert(item, element, kind, element_hint(hint)) for item in value)
    if slot.layout is not None:
        return to_kio(value, slot.layout, without_none(hint))
    if kind == "error_code":
        return ErrorCode(value)
    if kind == "uuid":
        return None if value == bytes(16) else uuid.UUID(bytes=value)
    if kind in ("timedelta_i32", "timedelta_i64"):
        return datetime.timedelta(milliseconds=value)
    if kind == "datetime_i64":
        nullable = value == -1 and without_none(hint) is not hint
        return None if nullable else EPOCH + datetime.timedelta(milliseconds=max(value, 0))
    return value


def element_hint(hint: Any) -> Any:
    return typing.get_args(without_none(hint))[0]


def without_none(hint: Any) -> Any:
    if isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union:
        return next(part for part in typing.get_args(hint) if part is not types.NoneType)
    return hint


@pytest.mark.slow
def test_every_shared_message_and_version_has_the_same_bytes(
    record_property: Callable[[str, object], None],
) -> None:
    random = Random(3)
    pairs = shared_pairs()
    differing = []
    for cls, version, kio_class in pairs:
        write = entity_writer(kio_class)
        part = layout(cls, version)
        for _ in range(3):
            message = random_message(cls, version, random)
            theirs = io.BytesIO()
            write(theirs, to_kio(message, part, kio_class))
            if wire.encode(message, version) != theirs.getvalue():
                differing.append((cls.__name__, version))
                break
    assert differing == []
    record_property("kio_pairs", len(pairs))
    print(f"{len(pairs)} pairs of message and version compared with kio")
    assert len(pairs) >= PAIRS_MIN, len(pairs)
