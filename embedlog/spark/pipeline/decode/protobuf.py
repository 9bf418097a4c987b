"""Protobuf with Confluent's header: messages decoded with the frozen descriptor.

A descriptor is a `.proto` file, or a descriptor set written by protoc (`--include_imports
--descriptor_set_out`). If a field's type changed, protobuf itself keeps the field as an unknown one
and reads null. This decoder makes the record an error; likewise if a field number has different
kinds of types in the writer's schema and in the frozen one. Keys of maps become text.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Any

from embedlog.runtime import real_runtime
from embedlog.runtime.files import make_directory, write_fully
from embedlog.spark.pipeline.decode import foreign
from embedlog.spark.pipeline.decode.confluent import row_of, split, split_message_indexes
from embedlog.spark.pipeline.decode.registry import RegisteredSchema, Registry, expect_kind
from embedlog.spark.pipeline.errors import DecodeError, ProjectError
from embedlog.spark.pipeline.project import Decode, read_file
from embedlog.spark.pipeline.schema import Array, Field, Map, Primitive, Struct, Type

_TIMESTAMP = "google.protobuf.Timestamp"
# `FieldDescriptor.TYPE_*` -> (the row's type, the kind that may not change).
_SCALARS = {
    1: ("double", "double"), 2: ("float", "float"), 3: ("long", "varint"),
    4: ("unsigned", "varint"),
    5: ("integer", "varint"), 6: ("unsigned", "fixed64"), 7: ("long", "fixed32"),
    8: ("boolean", "boolean"), 9: ("string", "string"), 12: ("binary", "bytes"),
    13: ("long", "varint"), 14: ("string", "enum"), 15: ("integer", "sfixed32"),
    16: ("long", "sfixed64"), 17: ("integer", "zigzag"), 18: ("long", "zigzag"),
}  # fmt: skip
_MAIN = "embedlog_schema.proto"
"""The file of the schema itself, beside the files that it imports."""
_MESSAGE = 11
_ENUM = 14
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


class ProtobufDecoder:
    """Decodes one message in a value."""

    def __init__(self, decode: Decode) -> None:
        try:
            from google.protobuf import message_factory
        except ImportError:
            raise ProjectError("protobuf is missing: pip install 'embedlog[pipeline]'") from None
        assert decode.schema is not None, decode
        assert decode.message is not None, decode
        content = read_file(decode.schema)
        kind = "PROTOBUF" if decode.schema.endswith(".proto") else "DESCRIPTOR"
        try:
            self._descriptor = descriptor(kind, content, decode.message)
        except DecodeError as error:
            raise ProjectError(f"{decode.schema}: {error}") from None
        self.message_type: Any = message_factory.GetMessageClass(self._descriptor)
        whole = _struct(self._descriptor, decode.schema, ())
        self.schema: Struct = row_of(decode, whole)
        self._name = decode.message
        self._registry = Registry(decode) if decode.header == "confluent" else None
        self._checked: set[int] = set()

    def parse(self, value: bytes) -> Any:
        if self._registry is not None:
            number, rest = split(value)
            _, value = split_message_indexes(rest)
            self._check_writer(number)
        message = foreign.call(self.message_type.FromString, value, what="protobuf")
        # Fields are read lazily: proto2 checks a text's UTF-8 only here.
        return foreign.call(_row, message, "", what="protobuf")

    def _check_writer(self, number: int) -> None:
        if number in self._checked:
            return
        assert self._registry is not None
        schema: RegisteredSchema = self._registry.schema(number)
        expect_kind(schema, "PROTOBUF", "DESCRIPTOR")
        writer = descriptor(schema.kind, schema.text, self._name, schema.references)
        for problem in _differences(self._descriptor, writer, ""):
            raise DecodeError(f"schema id {number}: {problem}")
        self._checked.add(number)


def descriptor(
    kind: str, content: bytes, name: str, references: Mapping[str, bytes] = MappingProxyType({})
) -> Any:
    """Return the descriptor of the message `name`; `references` are the files that it imports.

    Raises:
        DecodeError: the schema cannot be read, or has no such message.
    """
    from google.protobuf import descriptor_pb2, descriptor_pool

    if kind == "PROTOBUF":
        content = _compiled(content, references)
    files = descriptor_pb2.FileDescriptorSet()
    foreign.call(files.ParseFromString, content, what="descriptor set")
    pool = descriptor_pool.DescriptorPool()
    for file in files.file:
        foreign.call(pool.Add, file, what=file.name)
    try:
        return pool.FindMessageTypeByName(name)
    except KeyError:
        raise DecodeError(f"no message {name!r}") from None


def _compiled(text: bytes, references: Mapping[str, bytes]) -> bytes:
    import tempfile

    try:
        from grpc_tools import protoc
    except ImportError:
        raise ProjectError(
            "a .proto file needs grpcio-tools (pip install 'embedlog[pipeline]'), or give a "
            "descriptor set made by protoc --include_imports --descriptor_set_out"
        ) from None
    from importlib.resources import files as resources

    files = real_runtime().files
    with tempfile.TemporaryDirectory() as directory:
        for name, content in {**references, _MAIN: text}.items():
            path = PurePosixPath(name)
            if path.is_absolute() or ".." in path.parts:
                raise DecodeError(f"the import {name!r} is not a path below the schema's")
            make_directory(files, str(Path(directory, path).parent), sync=False)
            with closing(files.open(str(Path(directory, path)), create=True)) as source:
                write_fully(source.write, [content], 0)
        made = f"{directory}/{_MAIN}.desc"
        status = protoc.main(
            [
                "protoc", f"-I{directory}", f"-I{resources('grpc_tools') / '_proto'}",
                "--include_imports", f"--descriptor_set_out={made}", f"{directory}/{_MAIN}",
            ]
        )  # fmt: skip
        if status:
            raise DecodeError("protoc refuses the schema; it says why on standard error")
        return files.read(made)


def _struct(message: Any, where: str, above: tuple[str, ...]) -> Struct:
    if message.full_name in above:
        raise ProjectError(f"{where}: {message.full_name} contains itself, which a row cannot")
    inside = (*above, message.full_name)
    return Struct(
        tuple(
            Field(each.name, _type(each, f"{where}.{each.name}", inside), each.has_presence)
            for each in message.fields
        )
    )


def _type(field: Any, where: str, above: tuple[str, ...]) -> Type:
    if _is_map(field):
        values = field.message_type.fields_by_name["value"]
        return Map(_single(values, where, above), False)
    kind = _single(field, where, above)
    return Array(kind, False) if field.is_repeated else kind


def _single(field: Any, where: str, above: tuple[str, ...]) -> Type:
    if field.type == _MESSAGE:
        if field.message_type.full_name == _TIMESTAMP:
            return Primitive("timestamp")
        return _struct(field.message_type, where, above)
    if field.type not in _SCALARS:
        raise ProjectError(f"{where}: a group cannot be a column")
    name = _SCALARS[field.type][0]
    return Primitive("decimal", 20, 0) if name == "unsigned" else Primitive(name)


def _is_map(field: Any) -> bool:
    return bool(field.type == _MESSAGE and field.message_type.GetOptions().map_entry)


def _row(message: Any, path: str) -> dict[str, Any]:
    from google.protobuf.unknown_fields import UnknownFieldSet

    known = message.DESCRIPTOR.fields_by_number
    made: dict[str, Any] = {}
    for each in UnknownFieldSet(message):
        field = known.get(each.field_number)
        if field is not None and field.type != _ENUM:
            raise DecodeError(f"{path}{field.name}: its type changed (wire type {each.wire_type})")
        made[f"#{each.field_number}"] = str(each.data)
    for field in message.DESCRIPTOR.fields:
        if field.has_presence and not message.HasField(field.name):
            made[field.name] = None
            continue
        value, inner = getattr(message, field.name), f"{path}{field.name}."
        if _is_map(field):
            entry = field.message_type.fields_by_name["value"]
            made[field.name] = {str(key): _value(entry, value[key], inner) for key in value}
        elif field.is_repeated:
            made[field.name] = [_value(field, each, inner) for each in value]
        else:
            made[field.name] = _value(field, value, inner)
    return made


def _value(field: Any, value: Any, path: str) -> Any:
    if field.type == _ENUM:
        known = field.enum_type.values_by_number.get(value)
        if known is None:
            raise DecodeError(f"{path[:-1]}: {value} is no {field.enum_type.full_name}")
        return known.name
    if field.type != _MESSAGE:
        return value
    if field.message_type.full_name == _TIMESTAMP:
        try:
            since = datetime.timedelta(seconds=value.seconds, microseconds=value.nanos // 1000)
            return _EPOCH + since
        except OverflowError:
            raise DecodeError(
                f"{path[:-1]}: {value.seconds} s since 1970 is not in the years 1 to 9999"
            ) from None
    return _row(value, path)


def _differences(ours: Any, theirs: Any, path: str) -> Iterator[str]:
    for number, field in ours.fields_by_number.items():
        other = theirs.fields_by_number.get(number)
        if other is None:
            continue
        place = f"{path}{field.name}"
        if field.is_repeated != other.is_repeated or _kind(field) != _kind(other):
            yield f"{place} (number {number}): {_kind(other)} where {_kind(field)} is expected"
        elif field.type == _MESSAGE and field.message_type.full_name != _TIMESTAMP:
            yield from _differences(field.message_type, other.message_type, f"{place}.")


def _kind(field: Any) -> str:
    return "message" if field.type == _MESSAGE else _SCALARS[field.type][1]
