"""The kinds of schemas (AVRO, JSON, PROTOBUF), and what each of them must offer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, Self

from embedlog.errors import EmbedlogError

KINDS = ("JSON", "PROTOBUF", "AVRO")
"""In the order in which Confluent's registry lists them."""


class UnreadableSchema(EmbedlogError, ValueError):
    """The text is no schema of its kind. The message says why."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One reason why a new schema cannot read data of an old one."""

    kind: str
    """Its name in capitals, such as READER_FIELD_MISSING_DEFAULT_VALUE."""
    path: str
    description: str

    def __str__(self) -> str:
        return (
            f"{{errorType:'{self.kind}', description:'{self.description}', "
            f"additionalInfo:'{self.path}'}}"
        )


@dataclass(frozen=True, slots=True)
class Referenced:
    """A schema that another schema uses by a name."""

    name: str
    """The name of an Avro type, the `$ref` of JSON Schema, or the path of a Protobuf import."""
    text: str


class ParsedSchema(Protocol):
    """A schema of one kind. `canonical` is the text without meaningless differences."""

    canonical: str

    @classmethod
    def parse(cls, text: str, references: Sequence[Referenced]) -> Self:
        """Read a schema. `references` come in order: each uses only earlier ones.

        Raises:
            UnreadableSchema: the text is no schema of this kind.
        """

    def normalized(self) -> str:
        """Return the canonical text with unordered parts sorted."""

    def formatted(self, form: str) -> str | None:
        """Return the text in another form, such as "serialized"; None if the kind has no such."""

    def problems_with(self, older: Self) -> list[Problem]:
        """Return the reasons why this schema cannot read data of an older one."""
