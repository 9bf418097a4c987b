"""Find the field that prevents the encoding of a message, and the fault of its value.

This runs only after the generated encoder has failed, so the encoder itself needs no checks.
"""

from __future__ import annotations

import struct

from wire.layout import FORMATS, Layout, Slot
from wire.primitives import STRING_SIZE_MAX
from wire.schema import Message

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def find_invalid(part: Layout, message: Any) -> str | None:
    """Return for example "topics[].name is null", or None if every value seems to fit."""
    if not isinstance(message, Message) or message.__fields__ is not part.cls.__fields__:
        return f"{part.path or 'the message'} is {message!r}, not a {part.cls.__name__}"
    for slot in part.slots + part.tagged:
        found = _invalid_value(slot, getattr(message, slot.name))
        if found is not None:
            return found
    return None


def _invalid_value(slot: Slot, value: Any) -> str | None:
    if value is None:
        return None if slot.nullable else f"{slot.path} is null"
    if slot.layout is not None:
        return find_invalid(slot.layout, value)
    if slot.element is not None:
        return _invalid_element(slot, value)
    if not _fits(slot.kind, value):
        return f"{slot.path} is {value!r}, which is no {slot.kind.rstrip('_')}"
    return None


def _invalid_element(slot: Slot, values: Any) -> str | None:
    assert slot.element is not None, slot.path
    if not isinstance(values, (list, tuple)):
        return f"{slot.path} is {values!r}, which is no list"
    for value in values:
        found = _invalid_value(slot.element, value)
        if found is not None:
            return found
    return None


def _fits(kind: str, value: Any) -> bool:
    try:
        if kind == "uuid":
            return len(bytes(value)) == 16
        if kind in FORMATS:
            struct.pack(">" + FORMATS[kind], value)
        elif kind == "string":
            return len(value.encode()) <= STRING_SIZE_MAX
        else:
            memoryview(value)
    except (struct.error, TypeError, AttributeError, UnicodeEncodeError):
        return False
    return True
