"""Reads a `.proto` file (proto2, proto3, editions) into a FileDescriptorProto.

Options stay uninterpreted, also the built-in ones, because the canonical text shows them as they
were written; `packed` and `map_entry` are exceptions, since compatibility and names depend on
them. Names of types stay as they were written: a descriptor pool resolves and checks them.
"""

from __future__ import annotations

from typing import Any

from embedlog.testing.http.extras import load
from embedlog.testing.registry.schemas.protobuf_tokens import Tokens, int_of, unquoted

SCALARS = {
    "double": 1, "float": 2, "int64": 3, "uint64": 4, "int32": 5, "fixed64": 6, "fixed32": 7,
    "bool": 8, "string": 9, "bytes": 12, "uint32": 13, "sfixed32": 15, "sfixed64": 16,
    "sint32": 17, "sint64": 18,
}  # fmt: skip
LABELS = {"optional": 1, "required": 2, "repeated": 3}
GROUP, MESSAGE = 10, 11
FIELD_NUMBER_END = 1 << 29
ENUM_NUMBER_LAST = (1 << 31) - 1
_EDITIONS = {"2023": 1000, "2024": 1001}


def parse(source: str, name: str) -> Any:
    """Return the FileDescriptorProto of a source, under this file name.

    Raises:
        UnreadableSchema: a line breaks the grammar.
    """
    return _Parser(source, name).file()


class _Parser:
    def __init__(self, source: str, name: str) -> None:
        self._tokens = Tokens(source)
        descriptor_pb2 = load("google.protobuf.descriptor_pb2", "registry", "a Protobuf schema")
        self._file = descriptor_pb2.FileDescriptorProto(name=name)

    def file(self) -> Any:
        tokens, file = self._tokens, self._file
        if tokens.meets("syntax"):
            tokens.expect("=")
            syntax = tokens.string()
            if syntax not in {"proto2", "proto3"}:
                raise tokens.unexpected(f"proto2 or proto3, not {syntax!r}, before")
            file.syntax = syntax
            tokens.expect(";")
        elif tokens.meets("edition"):
            tokens.expect("=")
            edition = tokens.string()
            if edition not in _EDITIONS:
                raise tokens.unexpected(f"one of {', '.join(_EDITIONS)}, not {edition!r}, before")
            file.syntax, file.edition = "editions", _EDITIONS[edition]
            tokens.expect(";")
        while tokens.now.kind != "end":
            self._statement()
        return file

    def _statement(self) -> None:
        tokens, file = self._tokens, self._file
        if tokens.meets(";"):
            return
        if tokens.meets("package"):
            file.package = tokens.name()
            tokens.expect(";")
        elif tokens.meets("import"):
            if tokens.meets("public"):
                file.public_dependency.append(len(file.dependency))
            elif tokens.meets("weak"):
                file.weak_dependency.append(len(file.dependency))
            file.dependency.append(tokens.string())
            tokens.expect(";")
        elif tokens.meets("option"):
            self._option(file.options)
            tokens.expect(";")
        elif tokens.meets("message"):
            self._message(file.message_type.add())
        elif tokens.meets("enum"):
            self._enum(file.enum_type.add())
        elif tokens.meets("service"):
            self._service(file.service.add())
        elif tokens.meets("extend"):
            self._extend(file.extension, file.message_type)
        else:
            raise tokens.unexpected("message, enum, service, extend, import, option or package")

    # Messages

    def _message(self, message: Any) -> None:
        message.name = self._tokens.name()
        self._body(message)

    def _body(self, message: Any) -> None:
        tokens = self._tokens
        tokens.expect("{")
        while not tokens.meets("}"):
            if tokens.meets(";"):
                continue
            if tokens.meets("message"):
                self._message(message.nested_type.add())
            elif tokens.meets("enum"):
                self._enum(message.enum_type.add())
            elif tokens.meets("extend"):
                self._extend(message.extension, message.nested_type)
            elif tokens.meets("oneof"):
                self._oneof(message)
            elif tokens.meets("option"):
                self._option(message.options)
                tokens.expect(";")
            elif tokens.meets("reserved"):
                self._reserved(message, FIELD_NUMBER_END)
            elif tokens.meets("extensions"):
                self._extensions(message)
            else:
                self._field(message.field, message.nested_type, message)
        self._order_oneofs(message)

    def _field(self, fields: Any, groups: Any, message: Any, oneof: int | None = None) -> None:
        tokens = self._tokens
        field = fields.add()
        label = tokens.now.text if tokens.comes(*LABELS) else None
        if label is not None:
            tokens.take()
        field.label = LABELS[label or "optional"]
        if oneof is not None:
            field.oneof_index = oneof
        if tokens.meets("map", "<"):
            self._map(field, groups)
        elif tokens.meets("group"):
            self._group(field, groups)
            return
        else:
            self._typed(field, tokens.name())
            field.name = tokens.name()
        tokens.expect("=")
        field.number = tokens.number()
        self._field_options(field)
        tokens.expect(";")
        if label == "optional" and self._file.syntax == "proto3" and message is not None:
            # A field with presence of its own is the only one of a oneof that protoc adds.
            field.proto3_optional = True

    def _typed(self, field: Any, name: str) -> None:
        if name in SCALARS:
            field.type = SCALARS[name]
        else:
            field.type_name = name

    def _map(self, field: Any, nested: Any) -> None:
        tokens = self._tokens
        key = tokens.name()
        tokens.expect(",")
        value = tokens.name()
        tokens.expect(">")
        field.name = tokens.name()
        field.label = LABELS["repeated"]
        entry = nested.add(name=entry_name(field.name))
        entry.options.map_entry = True
        for number, (name, kind) in enumerate((("key", key), ("value", value)), 1):
            self._typed(entry.field.add(name=name, number=number, label=1), kind)
        field.type, field.type_name = MESSAGE, entry.name

    def _group(self, field: Any, nested: Any) -> None:
        tokens = self._tokens
        name = tokens.name()
        tokens.expect("=")
        field.number, field.name = tokens.number(), name.lower()
        field.type, field.type_name = GROUP, name
        self._field_options(field)
        self._body(nested.add(name=name))

    def _oneof(self, message: Any) -> None:
        tokens = self._tokens
        index = len(message.oneof_decl)
        oneof = message.oneof_decl.add(name=tokens.name())
        tokens.expect("{")
        while not tokens.meets("}"):
            if tokens.meets("option"):
                self._option(oneof.options)
                tokens.expect(";")
            elif not tokens.meets(";"):
                self._field(message.field, message.nested_type, None, index)

    def _order_oneofs(self, message: Any) -> None:
        for field in message.field:
            if field.proto3_optional:
                field.oneof_index = len(message.oneof_decl)
                message.oneof_decl.add(name=f"_{field.name}")

    def _field_options(self, field: Any) -> None:
        tokens = self._tokens
        if not tokens.meets("["):
            return
        while True:
            if tokens.meets("default", "="):
                field.default_value = self._default()
            elif tokens.meets("json_name", "="):
                field.json_name = tokens.string()
            elif tokens.meets("packed", "="):
                field.options.packed = tokens.name() == "true"
            else:
                self._option(field.options)
            if not tokens.meets(","):
                break
        tokens.expect("]")

    def _default(self) -> str:
        tokens = self._tokens
        if tokens.now.kind == "text":
            return tokens.string()
        sign = "-" if tokens.meets("-") else ""
        found = tokens.take()
        return sign + (str(int_of(found.text)) if found.kind == "int" else found.text)

    def _extend(self, extensions: Any, groups: Any) -> None:
        tokens = self._tokens
        extendee = tokens.name()
        tokens.expect("{")
        while not tokens.meets("}"):
            if not tokens.meets(";"):
                self._field(extensions, groups, None)
                extensions[-1].extendee = extendee

    def _reserved(self, owner: Any, end: int) -> None:
        tokens = self._tokens
        while True:
            if tokens.now.kind == "text":
                owner.reserved_name.append(tokens.string())
            elif tokens.now.kind == "name":  # editions
                owner.reserved_name.append(tokens.name())
            else:
                first, last = self._range(end)
                # The end is exclusive for messages, and inclusive for enums.
                owner.reserved_range.add(start=first, end=last + (end == FIELD_NUMBER_END))
            if not tokens.meets(","):
                break
        tokens.expect(";")

    def _range(self, end: int) -> tuple[int, int]:
        tokens = self._tokens
        first = tokens.number()
        if not tokens.meets("to"):
            return first, first
        if tokens.meets("max"):
            return first, end - 1 if end == FIELD_NUMBER_END else end
        return first, tokens.number()

    def _extensions(self, message: Any) -> None:
        tokens = self._tokens
        while True:
            first, last = self._range(FIELD_NUMBER_END)
            made = message.extension_range.add(start=first, end=last + 1)
            if not tokens.meets(","):
                break
        self._field_options(made)
        tokens.expect(";")

    # Enums, services, options

    def _enum(self, enum: Any) -> None:
        tokens = self._tokens
        enum.name = tokens.name()
        tokens.expect("{")
        while not tokens.meets("}"):
            if tokens.meets(";"):
                continue
            if tokens.meets("option"):
                self._option(enum.options)
                tokens.expect(";")
            elif tokens.meets("reserved"):
                self._reserved(enum, ENUM_NUMBER_LAST)
            else:
                value = enum.value.add(name=tokens.name())
                tokens.expect("=")
                value.number = tokens.number()
                self._field_options(value)
                tokens.expect(";")

    def _service(self, service: Any) -> None:
        tokens = self._tokens
        service.name = tokens.name()
        tokens.expect("{")
        while not tokens.meets("}"):
            if tokens.meets("option"):
                self._option(service.options)
                tokens.expect(";")
            elif tokens.meets("rpc"):
                self._method(service.method.add(name=tokens.name()))
            else:
                tokens.expect(";")

    def _method(self, method: Any) -> None:
        tokens = self._tokens
        tokens.expect("(")
        if tokens.meets("stream"):
            method.client_streaming = True
        method.input_type = tokens.name()
        tokens.expect(")")
        tokens.expect("returns")
        tokens.expect("(")
        if tokens.meets("stream"):
            method.server_streaming = True
        method.output_type = tokens.name()
        tokens.expect(")")
        if not tokens.meets("{"):
            tokens.expect(";")
            return
        while not tokens.meets("}"):
            if tokens.meets("option"):
                self._option(method.options)
            tokens.expect(";")

    def _option(self, options: Any) -> None:
        """Read `name = value` into an uninterpreted option."""
        tokens = self._tokens
        option = options.uninterpreted_option.add()
        while True:
            if tokens.meets("("):
                option.name.add(name_part=tokens.name(), is_extension=True)
                tokens.expect(")")
            else:
                for part in tokens.name().lstrip(".").split("."):
                    option.name.add(name_part=part, is_extension=False)
            if not tokens.meets(".") and not tokens.now.text.startswith("."):
                break
        tokens.expect("=")
        if tokens.comes("{"):
            option.aggregate_value = self._aggregate()
            return
        sign = -1 if tokens.meets("-") else 1
        found = tokens.take()
        if found.kind == "text":
            text = unquoted(found.text)
            while tokens.now.kind == "text":
                text += unquoted(tokens.take().text)
            option.string_value = text.encode()
        elif found.kind == "float" or (found.kind == "name" and found.text in {"inf", "nan"}):
            option.double_value = sign * float(found.text)
        elif found.kind == "int":
            value = int_of(found.text)
            if sign < 0:
                option.negative_int_value = -value
            else:
                option.positive_int_value = value
        elif found.kind == "name":
            option.identifier_value = found.text
        else:
            raise tokens.unexpected(f"a value instead of {found.text!r} before")

    def _aggregate(self) -> str:
        """Return the tokens between braces, with a space between them."""
        tokens, depth = self._tokens, 0
        parts: list[str] = []
        while True:
            found = tokens.take()
            if found.kind == "end":
                raise tokens.unexpected("'}'")
            depth += {"{": 1, "}": -1}.get(found.text, 0) if found.kind == "sign" else 0
            if depth == 0:
                return " ".join(parts[1:])
            parts.append(found.text)


def entry_name(field: str) -> str:
    """Return the name of the message that protoc makes for a map: `by_key` -> `ByKeyEntry`."""
    return "".join(word[:1].upper() + word[1:] for word in field.split("_")) + "Entry"
