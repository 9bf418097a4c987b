"""Confluent's header, and the schemas of its ids: in a directory of files, or a registry.

byte  0      0, the magic byte
bytes 1..4   schema id, big-endian
Protobuf     then the indexes of the message in its file: their count and the indexes, as zig-zag
             varints; a lone 0 means the first message
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from embedlog.errors import EmbedlogError
from embedlog.runtime import real_runtime
from embedlog.spark.pipeline.decode import foreign
from embedlog.spark.pipeline.errors import DecodeError, ProjectError
from embedlog.spark.pipeline.project import Decode

_SUFFIXES = {".avsc": "AVRO", ".proto": "PROTOBUF", ".desc": "DESCRIPTOR", ".json": "JSON"}
_TIMEOUT_S = 10
_ANSWER_MAX = 16 * 1024 * 1024


class RegistryUnavailable(EmbedlogError):
    """The schema registry did not answer. The batch fails and is repeated; no record is dropped."""


class RegisteredSchema(NamedTuple):
    """A schema with its id. `kind` is AVRO, PROTOBUF (text), DESCRIPTOR (binary) or JSON."""

    id: int
    kind: str
    text: bytes


def split(value: bytes) -> tuple[int, bytes]:
    """Return the schema id and the rest of the value. Raises DecodeError if there is no header."""
    if len(value) < 5 or value[0] != 0:
        raise DecodeError(f"no Confluent header: begins with {bytes(value[:5])!r}")
    return int.from_bytes(value[1:5], "big"), value[5:]


def split_message_indexes(rest: bytes) -> tuple[list[int], bytes]:
    """Return Protobuf's message indexes and the message after them.

    Raises:
        DecodeError: the indexes are cut off, or their count is negative or exceeds the bytes.
    """
    count, position = _zigzag(rest, 0)
    if count == 0:
        return [0], rest[position:]
    if not 0 < count <= len(rest):
        raise DecodeError(f"{count} message indexes in {len(rest)} bytes")
    indexes = []
    for _ in range(count):
        index, position = _zigzag(rest, position)
        indexes.append(index)
    return indexes, rest[position:]


def _zigzag(data: bytes, position: int) -> tuple[int, int]:
    number = shift = 0
    while position < len(data) and shift < 35:
        byte = data[position]
        number |= (byte & 0x7F) << shift
        position, shift = position + 1, shift + 7
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), position
    raise DecodeError(f"the message indexes are cut off at byte {position}")


class Registry:
    """Schemas by id; each is looked up once."""

    def __init__(self, decode: Decode) -> None:
        self._directory = decode.registry_directory
        self._url = decode.registry_url
        if self._url is not None and urlsplit(self._url).scheme not in ("http", "https"):
            raise ProjectError(f"registry url {self._url!r}: http or https is needed")
        self._known: dict[int, RegisteredSchema | None] = {}
        self._parsed: dict[int, Any] = {}

    def schema(self, number: int) -> RegisteredSchema:
        """Return the schema with this id.

        Raises:
            DecodeError: the id is unknown.
            RegistryUnavailable: the registry did not answer.
        """
        if number not in self._known:
            found = self._from_directory(number) if self._directory else None
            if found is None and self._url:
                found = self._from_url(number)
            self._known[number] = found
        schema = self._known[number]
        if schema is None:
            raise DecodeError(f"schema id {number} is not known to {self._directory or self._url}")
        return schema

    def parsed(self, number: int, kind: str, parse: Callable[[Any], Any]) -> Any:
        """Return the result of `parse` for the JSON document of a schema; each is parsed once.

        Raises:
            DecodeError: the id is unknown, or the schema is not of this kind or cannot be parsed.
            RegistryUnavailable: the registry did not answer.
        """
        if number not in self._parsed:
            schema, what = self.schema(number), f"schema id {number}"
            expect_kind(schema, kind)
            document = foreign.call(json.loads, schema.text, what=what)
            self._parsed[number] = foreign.call(parse, document, what=what)
        return self._parsed[number]

    def _from_directory(self, number: int) -> RegisteredSchema | None:
        files = real_runtime().files
        for suffix, kind in _SUFFIXES.items():
            path = f"{self._directory}/{number}{suffix}"
            if files.stat(path) is not None:
                return RegisteredSchema(number, kind, files.read(path))
        return None

    def _from_url(self, number: int) -> RegisteredSchema | None:
        address = f"{str(self._url).rstrip('/')}/schemas/ids/{number}"
        request = Request(address, headers={"Accept": "application/vnd.schemaregistry.v1+json"})
        try:
            with urlopen(request, timeout=_TIMEOUT_S) as answer:
                found: Any = json.loads(answer.read(_ANSWER_MAX))
        except HTTPError as error:
            if error.code == 404:
                return None
            raise RegistryUnavailable(f"{address}: status {error.code}") from None
        except (URLError, OSError, ValueError) as error:
            raise RegistryUnavailable(f"{address}: {error}") from None
        if found.get("references"):
            raise DecodeError(f"schema id {number} refers to others, which is not supported")
        return RegisteredSchema(number, found.get("schemaType", "AVRO"), found["schema"].encode())


def expect_kind(schema: RegisteredSchema, *kinds: str) -> None:
    """Raise a DecodeError for a schema of another format."""
    if schema.kind not in kinds:
        raise DecodeError(f"schema id {schema.id} is {schema.kind}, {kinds[0]} is expected")


def row_of(decode: Decode, schema: Any) -> Any:
    """Return the type of the rows in values of `schema`; for Debezium's envelope, of `after`."""
    if decode.envelope != "debezium":
        return schema
    after = next((each for each in schema.fields if each.name == "after"), None)
    if after is None or not hasattr(after.type, "fields"):
        raise ProjectError(f"{decode.schema}: no Debezium envelope: `after` is no record")
    return after.type
