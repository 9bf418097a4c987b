"""Protobuf schemas, as text or as a descriptor in base64, the form that confluent-kafka sends.

`protobuf` resolves and checks the types. The canonical text comes from the checked descriptor's
source form, so that a schema has one id in both forms.
"""

from __future__ import annotations

import base64
import binascii
import importlib
from collections.abc import Sequence
from typing import Any, Self

from embedlog.testing.http.extras import load
from embedlog.testing.registry.schemas.kinds import Problem, Referenced, UnreadableSchema
from embedlog.testing.registry.schemas.protobuf_parser import parse
from embedlog.testing.registry.schemas.protobuf_rules import problems
from embedlog.testing.registry.schemas.protobuf_text import text_of

_MAIN = "default.proto"
"""The name of the schema's own file, beside the imported files."""
_WELL_KNOWN = "google/protobuf/"


class ProtobufSchema:
    """One `.proto` file with the files that it imports."""

    def __init__(self, descriptor: Any) -> None:
        self._descriptor = descriptor
        """The file with all names resolved, as a FileDescriptor."""
        self._file = _readable(_resolved(descriptor))
        self.canonical = text_of(self._file)

    @classmethod
    def parse(cls, text: str, references: Sequence[Referenced]) -> Self:
        """See `ParsedSchema.parse`."""
        descriptor_pool = load("google.protobuf.descriptor_pool", "registry", "a Protobuf schema")
        if not text.strip():
            raise UnreadableSchema("the schema is empty")
        files = [_file(each.text, each.name) for each in references]
        main = _file(text, _MAIN)
        pool = descriptor_pool.DescriptorPool()
        for file in (*files, main):
            _add_well_known(pool, file.dependency, {each.name for each in files})
            found = _add(pool, file)
        return cls(found)

    def normalized(self) -> str:
        """See `ParsedSchema.normalized`: fields by number, imports and options by name."""
        return text_of(self._file, sort=True)

    def formatted(self, form: str) -> str | None:
        """See `ParsedSchema.formatted`: "serialized" is the descriptor in base64."""
        if form != "serialized":
            return None
        return base64.b64encode(_resolved(self._descriptor).SerializeToString()).decode()

    def problems_with(self, older: Self) -> list[Problem]:
        """See `ParsedSchema.problems_with`: `protobuf_rules` has the rules."""
        return problems(self._descriptor, older._descriptor)


def _file(text: str, name: str) -> Any:
    try:
        return parse(text, name)
    except UnreadableSchema:
        found = _decoded(text)
        if found is None:
            raise
        found.name = name
        return found


def _decoded(text: str) -> Any:
    """Return the descriptor that a base64 text holds; None if it holds none."""
    descriptor_pb2 = load("google.protobuf.descriptor_pb2", "registry", "a Protobuf schema")
    message = load("google.protobuf.message", "registry", "a Protobuf schema")
    file = descriptor_pb2.FileDescriptorProto()
    try:
        file.ParseFromString(base64.b64decode(text, validate=True))
    except (binascii.Error, ValueError, message.DecodeError):
        return None
    return file if file.ListFields() else None


def _resolved(descriptor: Any) -> Any:
    """Return the FileDescriptorProto of a checked file."""
    descriptor_pb2 = load("google.protobuf.descriptor_pb2", "registry", "a Protobuf schema")
    made = descriptor_pb2.FileDescriptorProto()
    descriptor.CopyToProto(made)
    return made


def _add(pool: Any, file: Any) -> Any:
    try:
        pool.Add(file)
        return pool.FindFileByName(file.name)
    except (TypeError, KeyError) as error:
        raise UnreadableSchema(str(error)) from None


def _add_well_known(pool: Any, names: Sequence[str], given: set[str]) -> None:
    for name in names:
        if not name.startswith(_WELL_KNOWN) or name in given:
            continue
        module = name.removesuffix(".proto").replace("/", ".") + "_pb2"
        try:
            found = importlib.import_module(module).DESCRIPTOR
        except ImportError:
            raise UnreadableSchema(
                f"{name!r} cannot be imported: protobuf has no such file"
            ) from None
        made = _resolved(found)
        _add_well_known(pool, made.dependency, given)
        _add(pool, made)


def _readable(file: Any) -> Any:
    """Name the types of a resolved file as people write them: without dot, package and message."""
    package = f"{file.package}." if file.package else ""
    local = {each.name for each in (*file.message_type, *file.enum_type)}
    local.update(file.package.split("."))

    def short(name: str) -> str:
        found = name.removeprefix(".")
        if package and found.startswith(package):
            return found.removeprefix(package)
        # A name of another package could also be one of a part of this file.
        return name if package and found.partition(".")[0] in local else found

    def name_fields(fields: Any, inside: str) -> None:
        for field in fields:
            if field.type_name:
                field.type_name = short(field.type_name).removeprefix(inside)
            if field.extendee:
                field.extendee = short(field.extendee)

    def visit(message: Any, scope: str) -> None:
        inside = scope if message.options.map_entry else f"{scope}{message.name}."
        name_fields((*message.field, *message.extension), inside)
        for nested in message.nested_type:
            visit(nested, inside)

    name_fields(file.extension, "")
    for message in file.message_type:
        visit(message, "")
    for service in file.service:
        for method in service.method:
            method.input_type = short(method.input_type)
            method.output_type = short(method.output_type)
    return file
