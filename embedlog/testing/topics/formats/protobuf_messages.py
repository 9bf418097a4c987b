"""Protobuf messages, by a generated class or a schema's text."""

from __future__ import annotations

from typing import Any

from embedlog.errors import ConfigError
from embedlog.testing.topics.formats.basic import Undecodable

_MAIN = "schema.proto"


class Protobuf:
    """The messages of one class. Decoded values are messages; `json_like` reads them as objects."""

    def __init__(self, message: Any) -> None:
        if not hasattr(message, "FromString"):
            raise ConfigError(f"protobuf({message!r}): expected a generated message class")
        self._message = message

    def decode(self, data: bytes) -> Any:
        from google.protobuf.message import DecodeError

        try:
            return self._message.FromString(data)
        except DecodeError as error:
            raise Undecodable(f"{data!r} is no {self!r}: {error}") from None

    def encode(self, value: Any) -> bytes:
        try:
            made = self._message(**value) if isinstance(value, dict) else value
            return bytes(made.SerializeToString())
        except (TypeError, ValueError, AttributeError) as error:
            raise Undecodable(f"{value!r} is no {self!r}: {error}") from error

    def __repr__(self) -> str:
        return f"protobuf({self._message.DESCRIPTOR.full_name})"


def compiled_file(text: str) -> Any:
    """Return the file descriptor of a schema's text, which may import only Google's own files.

    Raises:
        ConfigError: the compiler is missing or refuses the text.
    """
    from tempfile import TemporaryDirectory

    try:
        from google.protobuf import descriptor_pb2, descriptor_pool
        from grpc_tools import protoc
    except ImportError:
        raise ConfigError(
            "a Protobuf schema as text needs grpcio-tools (pip install 'embedlog[testing]'), or "
            "give the generated class: confluent(..., message=Order)"
        ) from None
    from importlib.resources import files as resources

    from embedlog.runtime import real_runtime
    from embedlog.runtime.files import write_whole

    files = real_runtime().files
    with TemporaryDirectory() as directory:
        made = f"{directory}/schema.desc"
        write_whole(files, f"{directory}/{_MAIN}", text.encode(), sync=False)
        status = protoc.main(
            ["protoc", f"-I{directory}", f"-I{resources('grpc_tools') / '_proto'}"]
            + ["--include_imports", f"--descriptor_set_out={made}", f"{directory}/{_MAIN}"]
        )
        if status:
            raise ConfigError(f"protoc refuses the schema, see standard error: {text!r}")
        content = files.read(made)
    pool = descriptor_pool.DescriptorPool()
    for file in descriptor_pb2.FileDescriptorSet.FromString(content).file:
        pool.Add(file)
    return pool.FindFileByName(_MAIN)


def class_at(file: Any, indexes: list[int]) -> Any:
    """Return the class of the message with these indexes: of the file, then of each message."""
    from google.protobuf import message_factory

    names = list(file.message_types_by_name.values())
    found: Any = None
    for index in indexes:
        if not 0 <= index < len(names):
            raise Undecodable(f"the schema has no message {indexes}")
        found = names[index]
        names = list(found.nested_types)
    return message_factory.GetMessageClass(found)


def plain(message: Any) -> dict[str, Any]:
    """Return a message as an object: names of fields and of enums, numbers as numbers."""
    return {field.name: _plain(field, getattr(message, field.name)) for field in _set(message)}


def _set(message: Any) -> list[Any]:
    return [
        field
        for field in message.DESCRIPTOR.fields
        if not field.has_presence or message.HasField(field.name)
    ]


def _plain(field: Any, value: Any) -> Any:
    inner = field.message_type
    if inner is not None and inner.GetOptions().map_entry:
        kind = inner.fields_by_name["value"]
        return {key: _one(kind, value[key]) for key in value}
    return [_one(field, each) for each in value] if field.is_repeated else _one(field, value)


def _one(field: Any, value: Any) -> Any:
    if field.message_type is not None:
        return plain(value)
    if field.enum_type is not None:
        known = field.enum_type.values_by_number.get(value)
        return value if known is None else known.name
    return value
