"""Writes a FileDescriptorProto as the canonical `.proto` text: fixed layout, no comments."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

from embedlog.testing.registry.schemas.protobuf_parser import (
    ENUM_NUMBER_LAST,
    FIELD_NUMBER_END,
    GROUP,
    LABELS,
    SCALARS,
)

_TYPES = {number: name for name, number in SCALARS.items()}
_LABELS = {number: name for name, number in LABELS.items()}
_EDITIONS = {1000: "2023", 1001: "2024"}


def text_of(file: Any, *, sort: bool = False) -> str:
    """Return the text of a file. `sort` puts unordered parts in order: see `normalized`."""
    return "\n".join(_Writer(file, sort=sort).file()) + "\n"


class _Writer:
    def __init__(self, file: Any, *, sort: bool) -> None:
        self._file = file
        self._sort = sort

    def file(self) -> Iterator[str]:
        file = self._file
        if file.syntax == "editions":
            yield f'edition = "{_EDITIONS.get(file.edition, file.edition)}";'
        else:  # a descriptor of proto2 does not name its syntax
            yield f'syntax = "{file.syntax or "proto2"}";'
        if file.package:
            yield f"package {file.package};"
        if file.dependency:
            yield ""
            imports = [self._import(index) for index in range(len(file.dependency))]
            yield from sorted(imports) if self._sort else imports
        options = list(self._options(file.options))
        if options:
            yield ""
            yield from (f"option {each};" for each in options)
        # Confluent's header of a record counts messages, so even the normal form keeps their order.
        for message in file.message_type:
            yield ""
            yield from self._message(message)
        for enum in file.enum_type:
            yield ""
            yield from self._enum(enum)
        yield from self._extensions(file.extension)
        for service in file.service:
            yield ""
            yield from self._service(service)

    def _import(self, index: int) -> str:
        word = "public " if index in self._file.public_dependency else ""
        word = "weak " if index in self._file.weak_dependency else word
        return f'import {word}"{self._file.dependency[index]}";'

    # Messages

    def _message(self, message: Any, head: str | None = None) -> Iterator[str]:
        yield head or f"message {message.name} {{"
        yield from _indented(self._members(message))
        yield "}"

    def _members(self, message: Any) -> Iterator[str]:
        yield from (f"option {each};" for each in self._options(message.options))
        yield from _reserved(message, inclusive=False)
        for each in message.extension_range:
            last = "max" if each.end == FIELD_NUMBER_END else str(each.end - 1)
            span = str(each.start) if last == str(each.start) else f"{each.start} to {last}"
            yield f"extensions {span}{self._bracket(list(self._options(each.options)))};"
        entries = {each.name: each for each in message.nested_type if each.options.map_entry}
        groups = {_last(each.type_name) for each in message.field if each.type == GROUP}
        named = {each.name: each for each in message.nested_type}
        written: set[int] = set()
        fields = sorted(message.field, key=_number) if self._sort else message.field
        for field in fields:
            if not field.HasField("oneof_index") or field.proto3_optional:
                yield from self._field(field, entries, named)
            elif field.oneof_index not in written:
                written.add(field.oneof_index)
                yield from self._oneof(message, field.oneof_index, entries, named)
        for nested in message.nested_type:
            if nested.name not in entries and nested.name not in groups:
                yield from self._message(nested)
        for enum in message.enum_type:
            yield from self._enum(enum)
        yield from self._extensions(message.extension)

    def _oneof(
        self, message: Any, index: int, entries: dict[str, Any], named: dict[str, Any]
    ) -> Iterator[str]:
        oneof = message.oneof_decl[index]
        yield f"oneof {oneof.name} {{"
        yield from _indented(f"option {each};" for each in self._options(oneof.options))
        inside = [
            each
            for each in message.field
            if each.HasField("oneof_index") and each.oneof_index == index
        ]
        for field in sorted(inside, key=_number) if self._sort else inside:
            yield from _indented(self._field(field, entries, named))
        yield "}"

    def _field(self, field: Any, entries: dict[str, Any], named: dict[str, Any]) -> Iterator[str]:
        entry = entries.get(_last(field.type_name)) if field.label == LABELS["repeated"] else None
        options = self._field_options(field)
        if entry is not None:
            key, value = (_type(each) for each in entry.field)
            yield f"map<{key}, {value}> {field.name} = {field.number}{options};"
            return
        label = self._label(field)
        if field.type == GROUP:
            name = _last(field.type_name)
            head = f"{label}group {name} = {field.number}{options} {{"
            yield from self._message(named[name], head)
            return
        yield f"{label}{_type(field)} {field.name} = {field.number}{options};"

    def _label(self, field: Any) -> str:
        is_plain = field.label == LABELS["optional"] and (
            field.HasField("oneof_index") or self._file.syntax in {"proto3", "editions"}
        )
        if is_plain and not field.proto3_optional:
            return ""
        return f"{_LABELS[field.label]} "

    def _field_options(self, field: Any) -> str:
        found = []
        if field.HasField("default_value"):
            is_text = field.type in {SCALARS["string"], SCALARS["bytes"]}
            found.append(
                f"default = {_quoted(field.default_value) if is_text else field.default_value}"
            )
        if field.HasField("json_name") and field.json_name != json_name(field.name):
            found.append(f"json_name = {_quoted(field.json_name)}")
        return self._bracket([*found, *self._options(field.options)])

    def _extensions(self, extensions: Any) -> Iterator[str]:
        extendees = dict.fromkeys(each.extendee for each in extensions)
        for extendee in extendees:
            yield ""
            yield f"extend {extendee} {{"
            for field in extensions:
                if field.extendee == extendee:
                    yield from _indented(self._field(field, {}, {}))
            yield "}"

    # Enums, services, options

    def _enum(self, enum: Any) -> Iterator[str]:
        yield f"enum {enum.name} {{"
        yield from _indented(f"option {each};" for each in self._options(enum.options))
        yield from _indented(_reserved(enum, inclusive=True))
        for value in enum.value:
            options = self._bracket(list(self._options(value.options)))
            yield f"  {value.name} = {value.number}{options};"
        yield "}"

    def _service(self, service: Any) -> Iterator[str]:
        yield f"service {service.name} {{"
        yield from _indented(f"option {each};" for each in self._options(service.options))
        for method in service.method:
            given = ("stream " if method.client_streaming else "") + method.input_type
            made = ("stream " if method.server_streaming else "") + method.output_type
            head = f"  rpc {method.name} ({given}) returns ({made})"
            options = list(self._options(method.options))
            if not options:
                yield f"{head};"
                continue
            yield f"{head} {{"
            yield from (f"    option {each};" for each in options)
            yield "  }"
        yield "}"

    def _bracket(self, options: list[str]) -> str:
        return f" [{', '.join(options)}]" if options else ""

    def _options(self, options: Any) -> list[str]:
        found = []
        for field, value in options.ListFields():
            if field.message_type is None and field.name != "map_entry":
                values = value if field.is_repeated else [value]
                found += [f"{field.name} = {_known(field, each)}" for each in values]
        for option in options.uninterpreted_option:
            name = ".".join(
                f"({part.name_part})" if part.is_extension else part.name_part
                for part in option.name
            )
            found.append(f"{name} = {_value(option)}")
        return sorted(found) if self._sort else found


def json_name(name: str) -> str:
    """Return the name of a field in JSON: `customer_id` -> `customerId`."""
    first, *rest = name.split("_")
    return first + "".join(word[:1].upper() + word[1:] for word in rest)


def _indented(lines: Iterable[str]) -> Iterator[str]:
    return (f"  {each}" if each else each for each in lines)


def _number(field: Any) -> int:
    return int(field.number)


def _last(name: str) -> str:
    return name.rpartition(".")[2]


def _type(field: Any) -> str:
    return str(field.type_name) or _TYPES[field.type]


def _reserved(owner: Any, *, inclusive: bool) -> Iterator[str]:
    ranges = []
    for each in owner.reserved_range:
        last = each.end if inclusive else each.end - 1
        is_open = last == (ENUM_NUMBER_LAST if inclusive else FIELD_NUMBER_END - 1)
        text = "max" if is_open else str(last)
        ranges.append(str(each.start) if last == each.start else f"{each.start} to {text}")
    if ranges:
        yield f"reserved {', '.join(ranges)};"
    if owner.reserved_name:
        yield f"reserved {', '.join(map(_quoted, owner.reserved_name))};"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _known(field: Any, value: Any) -> str:
    if field.enum_type is not None:
        return str(field.enum_type.values_by_number[value].name)
    if isinstance(value, bool):
        return "true" if value else "false"
    return _quoted(value) if isinstance(value, str) else str(value)


def _value(option: Any) -> str:
    if option.HasField("string_value"):
        return _quoted(option.string_value.decode("utf-8", "replace"))
    if option.HasField("aggregate_value"):
        return f"{{ {option.aggregate_value} }}"
    if option.HasField("identifier_value"):
        return str(option.identifier_value)
    if option.HasField("double_value"):
        value = option.double_value
        return repr(value) if math.isfinite(value) else str(value)
    if option.HasField("negative_int_value"):
        return str(option.negative_int_value)
    return str(option.positive_int_value)
