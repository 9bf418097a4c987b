"""The layout of a message class at one version: its fields, their encoding and their order.

The declarations of `wire.schema` cover all versions. Encoders and decoders are generated from the
`Layout` of one version.
"""

from __future__ import annotations

import struct

from wire.schema import Field, declaration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FORMATS = {
    "int8": "b",
    "int16": "h",
    "int32": "i",
    "int64": "q",
    "uint16": "H",
    "uint32": "I",
    "float64": "d",
    "boolean": "?",
    "uuid": "16s",
}
"""The `struct` formats of the fixed-size kinds, to be read big-endian."""

SIZES = {kind: struct.calcsize(">" + code) for kind, code in FORMATS.items()}


class Slot:
    """One field of a layout.

    If `compact`, the field's length or count is an unsigned varint of the length plus 1; otherwise
    it is an int16 or int32. `path` names the field in error messages. `size_min` is the minimum
    size of the encoded field.
    """

    __slots__ = (
        "compact",
        "element",
        "field",
        "kind",
        "layout",
        "name",
        "nullable",
        "path",
        "size_min",
        "tag",
    )

    def __init__(self, field: Field, version: int, *, flexible: bool, path: str) -> None:
        self.field = field
        self.kind = field.kind
        self.name = field.name
        self.path = path
        self.nullable = field.is_nullable(version)
        self.tag = field.tag if field.is_tagged(version) else None
        self.compact = flexible and not field.old_form
        self.element: Slot | None = None
        self.layout: Layout | None = None
        if field.element is not None:
            self.element = Slot(field.element, version, flexible=flexible, path=path + "[]")
        elif field.struct is not None:
            self.layout = Layout(field.struct, version, flexible=flexible, path=path)
        self.size_min = self._size_min()

    def _size_min(self) -> int:
        if self.kind in SIZES:
            return SIZES[self.kind]
        if self.layout is not None:
            return 1 if self.nullable else self.layout.size_min
        if self.compact:
            return 1
        return 2 if self.kind == "string" else 4


class Layout:
    """The fields of one class at one version.

    `slots` are the plain fields in wire order, `tagged` the tagged fields ascending by tag, and
    `absent` the fields that only other versions have.
    """

    __slots__ = ("absent", "cls", "flexible", "path", "size_min", "slots", "tagged")

    def __init__(self, cls: type[Any], version: int, *, flexible: bool, path: str) -> None:
        self.cls = cls
        self.flexible = flexible
        self.path = path
        self.slots: list[Slot] = []
        self.tagged: list[Slot] = []
        self.absent: list[Field] = []
        for field in cls.__fields__:
            if not field.exists(version):
                self.absent.append(field)
                continue
            inner = f"{path}.{field.name}" if path else field.name
            slot = Slot(field, version, flexible=flexible, path=inner)
            (self.slots if slot.tag is None else self.tagged).append(slot)
        self.tagged.sort(key=lambda slot: slot.tag or 0)
        self.size_min = sum([slot.size_min for slot in self.slots]) + flexible


def layout(cls: type[Any], version: int) -> Layout:
    """Return the layout of a message class at a declared version."""
    return Layout(cls, version, flexible=declaration(cls).is_flexible(version), path="")


def has_records(layout: Layout) -> bool:
    """Return whether the message or a nested struct has a field of record batches."""
    return any(
        slot.kind == "records_" or (inner is not None and has_records(inner))
        for slot, inner in _with_structs(layout)
    )


def has_arrays(layout: Layout) -> bool:
    """Return whether the message or a nested struct has an array."""
    return any(
        slot.kind == "array" or (inner is not None and has_arrays(inner))
        for slot, inner in _with_structs(layout)
    )


def _with_structs(layout: Layout) -> list[tuple[Slot, Layout | None]]:
    """Return each field with the layout of its struct or of its elements, or with None."""
    return [
        (slot, slot.layout or (slot.element.layout if slot.element else None))
        for slot in layout.slots + layout.tagged
    ]
