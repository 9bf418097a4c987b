"""Values of the registry: names of subjects, schemas with their surroundings, versions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import md5
from typing import Any, NamedTuple

from embedlog.testing.registry.errors import RegistryError

DEFAULT_CONTEXT = "."
VERSION_LAST = (1 << 31) - 1


class Subject(NamedTuple):
    """The name of a subject, and its context. An empty name stands for the whole context."""

    context: str
    name: str

    @classmethod
    def of(cls, text: str, context: str = DEFAULT_CONTEXT) -> Subject:
        """Read `name` or `:.context:name`.

        Raises:
            RegistryError: the name has a character that no subject may have.
        """
        if any(ord(each) < 32 or ord(each) == 127 for each in text) or text in {
            "__GLOBAL",
            "__EMPTY",
        }:
            raise RegistryError(42208, f"The specified subject '{text}' is not a valid subject.")
        if text.startswith(":."):
            given, mark, name = text[1:].partition(":")
            if mark:
                return cls(given, name)
        return cls(context, text)

    def __str__(self) -> str:
        if self.context == DEFAULT_CONTEXT and self.name:
            return self.name
        return f":{self.context}:{self.name}"


class Reference(NamedTuple):
    """A use of another schema: its name in the text, and the place of the other schema."""

    name: str
    subject: str
    version: int
    """-1 is the latest."""


@dataclass(frozen=True, slots=True)
class Schema:
    """The whole content that an id stands for.

    >>> Schema('"string"').kind
    'AVRO'
    """

    text: str
    kind: str = "AVRO"
    references: tuple[Reference, ...] = ()
    metadata: Mapping[str, Any] | None = None
    rule_set: Mapping[str, Any] | None = None

    @property
    def guid(self) -> str:
        """The id that is the same in every registry: a digest of the content."""
        parts = [self.kind, self.text, self.references, self.metadata, self.rule_set]
        digest = md5(json.dumps(parts, sort_keys=True).encode(), usedforsecurity=False).hexdigest()
        ends = (0, 8, 12, 16, 20, 32)
        return "-".join(digest[a:b] for a, b in zip(ends, ends[1:], strict=False))

    def has_text_of(self, other: Schema) -> bool:
        """Return whether kind, text and references are equal."""
        mine = (self.kind, self.text, self.references)
        return mine == (other.kind, other.text, other.references)

    def answer(self) -> dict[str, Any]:
        """Return the fields of an answer that hold the content."""
        found: dict[str, Any] = {"schemaType": self.kind}
        if self.references:
            found["references"] = [each._asdict() for each in self.references]
        if self.metadata is not None:
            found["metadata"] = self.metadata
        if self.rule_set is not None:
            found["ruleSet"] = self.rule_set
        return {**found, "schema": self.text, "guid": self.guid}


@dataclass(slots=True)
class Version:
    """A schema as a version of a subject. The store alone changes it."""

    subject: Subject
    version: int
    id: int
    schema: Schema
    is_deleted: bool = field(default=False)

    def answer(self) -> dict[str, Any]:
        """Return the fields of an answer."""
        found = {"subject": str(self.subject), "version": self.version, "id": self.id}
        found.update(self.schema.answer())
        if self.is_deleted:
            found["deleted"] = True
        return found
