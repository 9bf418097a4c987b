"""`SchemaReader`: reads schemas from requests, and parses them with their references."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from embedlog.testing.registry import errors
from embedlog.testing.registry.errors import RegistryError
from embedlog.testing.registry.schemas.kinds import (
    KINDS,
    ParsedSchema,
    Referenced,
    UnreadableSchema,
)
from embedlog.testing.registry.schemas.lookup import kind_of
from embedlog.testing.registry.store import Store
from embedlog.testing.registry.values import Reference, Schema, Subject


class SchemaReader:
    """Reads schemas. Requires: the registry's lock."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._parsed: dict[str, ParsedSchema] = {}
        """By guid, without the schemas that have references, whose content may change."""

    def schema_of(self, body: Any, context: str, *, normalize: bool) -> Schema:
        """Return the schema of a request's body, its text in the canonical form.

        Raises:
            RegistryError: the body holds no schema that can be read.
        """
        _expect_object(body)
        text, kind = body.get("schema"), body.get("schemaType") or "AVRO"
        if not isinstance(text, str) or not text.strip():
            raise RegistryError(42201, "Empty schema")
        if kind not in KINDS:
            raise errors.invalid_schema(text, f"Invalid schema type {kind}; known are {KINDS}")
        references = tuple(map(_reference, body.get("references") or ()))
        given = Schema(
            text,
            kind,
            tuple(
                Reference(r.name, str(Subject.of(r.subject, context)), r.version)
                for r in references
            ),
            _object(body, "metadata"),
            _object(body, "ruleSet"),
        )
        parsed = self.parse(given)
        made = parsed.normalized() if normalize else parsed.canonical
        return Schema(made, kind, given.references, given.metadata, given.rule_set)

    def parse(self, schema: Schema) -> ParsedSchema:
        """Parse a schema with its references.

        Raises:
            RegistryError: it cannot be read.
        """
        key = schema.guid
        known = None if schema.references else self._parsed.get(key)
        if known is not None:
            return known
        referenced: dict[str, str] = {}
        self._collect(schema, referenced, [])
        try:
            found = kind_of(schema.kind).parse(
                schema.text, [Referenced(name, text) for name, text in referenced.items()]
            )
        except UnreadableSchema as error:
            raise errors.invalid_schema(schema.text, error) from None
        if not schema.references:
            self._parsed[key] = found
        return found

    def _collect(self, schema: Schema, into: dict[str, str], above: list[Reference]) -> None:
        """Collect the referenced texts by name, each after the texts that it uses itself."""
        for each in schema.references:
            subject = Subject.of(each.subject)
            versions = self._store.subjects.get(subject, {})
            last = self._store.versions(subject)[-1:]
            found = versions.get(last[0].version if last and each.version == -1 else each.version)
            if found is None or each in above:
                text = (
                    f'No schema reference found for subject "{each.subject}" and '
                    f"version {each.version}"
                )
                raise errors.invalid_schema(schema.text, text)
            self._collect(found.schema, into, [*above, each])
            into.setdefault(each.name, found.schema.text)


def _reference(given: Any) -> Reference:
    try:
        return Reference(str(given["name"]), str(given["subject"]), int(given["version"]))
    except (TypeError, KeyError, ValueError):
        text = f"a reference needs name, subject and version, found {given!r}"
        raise RegistryError(42201, f"Invalid schema, details: {text}") from None


def _expect_object(body: Any) -> None:
    if body is None:
        raise RegistryError(422, "the body must not be empty")
    if not isinstance(body, dict):
        raise RegistryError(400, f"expected an object with 'schema', found {body!r:.200}")


def _object(body: Mapping[str, Any], name: str) -> Mapping[str, Any] | None:
    found = body.get(name)
    if found is not None and not isinstance(found, dict):
        raise RegistryError(400, f"{name}: expected an object, found {found!r}")
    return found
