"""Compatibility of Protobuf schemas: can the new schema read messages of the old one?

The rules, as Confluent's registry documents them:

    package              stays
    message              may be added, not removed
    enum                 may be added or removed, and its values as well
    field                may be added, removed or renamed, but a required field only renamed
    type of a field      may change inside a group of types that look alike on the wire: {int32,
                         uint32, int64, uint64, bool, enums}, {sint32, sint64}, {string, bytes},
                         {fixed32, sfixed32}, {fixed64, sfixed64}; a message keeps its name inside
                         its package, and an imported one follows these rules itself
    label of a field     of a string, bytes or message may change between single and repeated
    oneof                may be added or removed, and may gain fields. It may not lose one, nor take
                         in two fields of the message, nor one beside fields of an old oneof
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from embedlog.testing.registry.schemas.kinds import Problem

_DOUBLE, _FLOAT, _INT64, _UINT64, _INT32, _FIXED64, _FIXED32, _BOOL, _STRING = range(1, 10)
_GROUP, _MESSAGE, _BYTES, _UINT32, _ENUM, _SFIXED32, _SFIXED64, _SINT32, _SINT64 = range(10, 19)
_WIRE = {
    **dict.fromkeys((_INT32, _UINT32, _INT64, _UINT64, _BOOL, _ENUM), "varint"),
    **dict.fromkeys((_SINT32, _SINT64), "zigzag"),
    **dict.fromkeys((_STRING, _BYTES), "text"),
    **dict.fromkeys((_FIXED32, _SFIXED32), "fixed32"),
    **dict.fromkeys((_FIXED64, _SFIXED64), "fixed64"),
    _DOUBLE: "double",
    _FLOAT: "float",
    _MESSAGE: "message",
    _GROUP: "group",
}


def problems(new: Any, old: Any) -> list[Problem]:
    """Return the reasons why the file `new` cannot read messages of `old`; FileDescriptors both."""
    found = []
    if new.package != old.package:
        text = f"The package changed from {old.package!r} to {new.package!r}"
        found.append(Problem("PACKAGE_CHANGED", "#/", text))
    comparison = _Comparison(new, old)
    for name, message in old.message_types_by_name.items():
        found += comparison.message(new.message_types_by_name.get(name), message, f"#/{name}")
    return found


class _Comparison:
    """One comparison of a new and an old file."""

    def __init__(self, new: Any, old: Any) -> None:
        self._files = (new.name, old.name)
        self._begun: set[tuple[str, str]] = set()
        """Imported messages that are compared: they may contain themselves."""

    def message(self, new: Any, old: Any, path: str) -> Iterator[Problem]:
        if new is None:
            yield Problem("MESSAGE_REMOVED", path, "The new schema lacks a message of the old one")
            return
        for name, nested in old.nested_types_by_name.items():
            if not nested.GetOptions().map_entry:
                yield from self.message(
                    new.nested_types_by_name.get(name), nested, f"{path}/{name}"
                )
        fields, before = dict(new.fields_by_number), dict(old.fields_by_number)
        for number in sorted(fields.keys() & before.keys()):
            yield from self._field(fields[number], before[number], f"{path}/{number}")
        for number in sorted(before.keys() - fields.keys()):
            if _is_required(before[number]):
                text = "The new schema lacks a required field"
                yield Problem("REQUIRED_FIELD_REMOVED", f"{path}/{number}", text)
        for number in sorted(fields.keys() - before.keys()):
            if _is_required(fields[number]):
                text = "The new schema has a new required field"
                yield Problem("REQUIRED_FIELD_ADDED", f"{path}/{number}", text)
        yield from _oneofs(new, old, path)

    def _field(self, new: Any, old: Any, path: str) -> Iterator[Problem]:
        if _is_map(new) != _is_map(old):
            yield Problem("FIELD_KIND_CHANGED", path, "One of the two fields is a map")
            return
        if _is_map(new):
            for name in ("key", "value"):
                ours, theirs = (each.message_type.fields_by_name[name] for each in (new, old))
                yield from self._field(ours, theirs, f"{path}/{name}")
            return
        if _is_required(new) and not _is_required(old):
            yield Problem("REQUIRED_FIELD_ADDED", path, "The field became required")
        if new.is_repeated != old.is_repeated and _WIRE[old.type] not in {"text", "message"}:
            text = "The label of a numeric field changed"
            yield Problem("FIELD_NUMERIC_LABEL_CHANGED", path, text)
        yield from self._type(new, old, path)

    def _type(self, new: Any, old: Any, path: str) -> Iterator[Problem]:
        ours, theirs = _WIRE[new.type], _WIRE[old.type]
        if ours != theirs:
            is_scalar = new.message_type is None and old.message_type is None
            kind = "FIELD_SCALAR_KIND_CHANGED" if is_scalar else "FIELD_KIND_CHANGED"
            yield Problem(kind, path, "The type of a field changed to another form on the wire")
        elif ours in {"message", "group"}:
            yield from self._named_type(new.message_type, old.message_type, path)

    def _named_type(self, new: Any, old: Any, path: str) -> Iterator[Problem]:
        found: list[Problem] = []
        pair = (new.full_name, old.full_name)
        is_imported = (new.file.name, old.file.name) != self._files
        is_same = _local_name(new) == _local_name(old)
        if is_same and is_imported and pair not in self._begun:
            self._begun.add(pair)
            found = list(self.message(new, old, f"#/{_local_name(old).replace('.', '/')}"))
        yield from found
        if not is_same or found:
            text = f"The type {old.full_name} changed to {new.full_name}"
            yield Problem("FIELD_NAMED_TYPE_CHANGED", path, text)


def _local_name(message: Any) -> str:
    """Return the name of a message without the package of its file."""
    return str(message.full_name).removeprefix(f"{message.file.package}.")


def _oneofs(new: Any, old: Any, path: str) -> Iterator[Problem]:
    ours, theirs = _numbers(new), _numbers(old)
    for name in sorted(ours.keys() & theirs.keys()):
        for number in sorted(theirs[name] - ours[name]):
            text = "The new oneof lacks a field"
            yield Problem("ONEOF_FIELD_REMOVED", f"{path}/{name}/{number}", text)
    inside = {number for numbers in theirs.values() for number in numbers}
    outside = {each.number for each in old.fields} - inside
    for name in sorted(ours):
        moved = sorted(ours[name] & outside)
        if len(moved) > 1:
            text = f"The fields {moved} moved into one oneof"
            yield Problem("MULTIPLE_FIELDS_MOVED_TO_ONEOF", f"{path}/{name}", text)
        elif moved and ours[name] & inside:
            text = f"The field {moved[0]} moved into a oneof that exists"
            yield Problem("FIELD_MOVED_TO_EXISTING_ONEOF", f"{path}/{name}", text)


def _numbers(message: Any) -> dict[str, set[int]]:
    """Return the field numbers of each oneof that a person wrote."""
    return {
        name: {field.number for field in oneof.fields}
        for name, oneof in message.oneofs_by_name.items()
        if not (len(oneof.fields) == 1 and name == f"_{oneof.fields[0].name}")
    }


def _is_required(field: Any) -> bool:
    return bool(field.is_required)


def _is_map(field: Any) -> bool:
    return field.message_type is not None and field.message_type.GetOptions().map_entry
