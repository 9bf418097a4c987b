"""Schemas by id: from a directory of files, or from a schema registry over HTTP.

A registry may ask for a user and a password. They go to its own address only, never along a
redirect, and no error contains them.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Mapping
from http.client import HTTPException
from typing import Any, NamedTuple
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import Request, urlopen

from embedlog.errors import EmbedlogError
from embedlog.runtime import real_runtime
from embedlog.spark.pipeline.decode import foreign
from embedlog.spark.pipeline.errors import DecodeError
from embedlog.spark.pipeline.project import Decode

_SUFFIXES = {".avsc": "AVRO", ".proto": "PROTOBUF", ".desc": "DESCRIPTOR", ".json": "JSON"}
_TIMEOUT_S = 10
_ANSWER_MAX = 16 * 1024 * 1024
_REFERENCES_MAX = 1000

Parse = Callable[[Any, Mapping[str, Any]], Any]


class RegistryUnavailable(EmbedlogError):
    """The schema registry did not answer. The batch fails and is repeated; no record is dropped."""


class RegisteredSchema(NamedTuple):
    """A schema with its id. `kind` is AVRO, PROTOBUF (text), DESCRIPTOR (binary) or JSON."""

    id: int
    kind: str
    text: bytes
    references: Mapping[str, bytes]
    """The schemas that it refers to, by the names in it; each comes before its first use."""


class Registry:
    """Schemas by id; each is looked up once."""

    def __init__(self, decode: Decode) -> None:
        self._directory = decode.registry_directory
        self._url = decode.registry_url
        self._user_info = decode.registry_user_info
        self._known: dict[int, RegisteredSchema | None] = {}
        self._parsed: dict[int, Any] = {}

    def schema(self, number: int) -> RegisteredSchema:
        """Return the schema with this id.

        Raises:
            DecodeError: the id, or a schema that it refers to, is unknown.
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

    def parsed(self, number: int, kind: str, parse: Parse) -> Any:
        """Return the result of `parse` for a schema's document and its references' documents.

        Each schema is parsed once.

        Raises:
            DecodeError: the id is unknown, or the schema is not of this kind or cannot be parsed.
            RegistryUnavailable: the registry did not answer.
        """
        if number not in self._parsed:
            schema, what = self.schema(number), f"schema id {number}"
            expect_kind(schema, kind)
            document = foreign.call(json.loads, schema.text, what=what)
            others = {
                name: foreign.call(json.loads, text, what=f"{what}: {name}")
                for name, text in schema.references.items()
            }
            self._parsed[number] = foreign.call(parse, document, others, what=what)
        return self._parsed[number]

    def _from_directory(self, number: int) -> RegisteredSchema | None:
        files = real_runtime().files
        for suffix, kind in _SUFFIXES.items():
            path = f"{self._directory}/{number}{suffix}"
            if files.stat(path) is not None:
                return RegisteredSchema(number, kind, files.read(path), {})
        return None

    def _from_url(self, number: int) -> RegisteredSchema | None:
        found = self._get(f"/schemas/ids/{number}")
        if found is None:
            return None
        references: dict[str, bytes] = {}
        self._follow(found, references, f"schema id {number}", ())
        kind = found.get("schemaType", "AVRO")
        return RegisteredSchema(number, kind, found["schema"].encode(), references)

    def _follow(
        self, found: Any, references: dict[str, bytes], what: str, above: tuple[str, ...]
    ) -> None:
        """Add the schemas to which an answer refers, the innermost first."""
        for each in found.get("references") or ():
            name, subject, version = each["name"], each["subject"], each["version"]
            if name in references:
                continue
            if name in above or len(references) >= _REFERENCES_MAX:
                raise DecodeError(f"{what} refers to {name!r} in a circle, or to too many others")
            inner = self._get(f"/subjects/{quote(subject, safe='')}/versions/{version:d}")
            if inner is None:
                raise DecodeError(f"{what} refers to {subject!r} version {version}: not found")
            self._follow(inner, references, what, (*above, name))
            references[name] = inner["schema"].encode()

    def _get(self, path: str) -> Any:
        """Return the answer to a request, or None if there is no such thing.

        Raises:
            RegistryUnavailable: no answer, or an answer that a registry does not give.
        """
        address = f"{str(self._url).rstrip('/')}{path}"
        request = Request(address, headers={"Accept": "application/vnd.schemaregistry.v1+json"})
        if self._user_info is not None:
            credentials = b64encode(self._user_info.encode()).decode()
            request.add_unredirected_header("Authorization", f"Basic {credentials}")
        try:
            with urlopen(request, timeout=_TIMEOUT_S) as answer:
                found: Any = json.loads(answer.read(_ANSWER_MAX))
            _check_answer(found)
        except HTTPError as error:
            if error.code == 404:
                return None
            hint = "; see `user_info` of [decode.registry]" if error.code in (401, 403) else ""
            raise RegistryUnavailable(f"{address}: status {error.code}{hint}") from None
        except (HTTPException, OSError, ValueError) as error:
            raise RegistryUnavailable(f"{address}: {error}") from None
        return found


def _check_answer(found: Any) -> None:
    """Raise ValueError if an answer has not the form of a registry's."""
    if not isinstance(found, Mapping) or not isinstance(found.get("schema"), str):
        raise ValueError("the answer has no schema")
    found["schema"].encode()
    for each in found.get("references") or ():
        is_reference = isinstance(each, Mapping) and isinstance(each.get("version"), int)
        if not is_reference or not all(isinstance(each.get(n), str) for n in ("name", "subject")):
            raise ValueError("the answer has a reference of another form")


def expect_kind(schema: RegisteredSchema, *kinds: str) -> None:
    """Raise a DecodeError for a schema of another format."""
    if schema.kind not in kinds:
        raise DecodeError(f"schema id {schema.id} is {schema.kind}, {kinds[0]} is expected")
