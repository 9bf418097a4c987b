"""JSON Schemas. `jsonschema` checks them against the meta-schema of their draft."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Self

from embedlog.testing.http.extras import load
from embedlog.testing.registry.schemas.json_rules import problems
from embedlog.testing.registry.schemas.kinds import Problem, Referenced, UnreadableSchema


class JsonSchema:
    """One JSON Schema. Without `$schema` it is one of draft 7, as in Confluent's registry."""

    def __init__(self, document: Any, others: Mapping[str, Any]) -> None:
        self._document = document
        self._others = others
        self.canonical = _text(document)

    @classmethod
    def parse(cls, text: str, references: Sequence[Referenced]) -> Self:
        """See `ParsedSchema.parse`."""
        jsonschema = load("jsonschema", "registry", "a JSON Schema")
        try:
            document = json.loads(text)
            others = {each.name: json.loads(each.text) for each in references}
        except (ValueError, RecursionError) as error:
            raise UnreadableSchema(str(error)) from None
        if not isinstance(document, dict | bool):
            raise UnreadableSchema(f"expected an object, true or false, found {text[:80]}")
        draft = jsonschema.validators.validator_for(document, jsonschema.Draft7Validator)
        try:
            draft.check_schema(document)
        except jsonschema.SchemaError as error:
            raise UnreadableSchema(f"{error.json_path}: {error.message}") from None
        return cls(document, others)

    def normalized(self) -> str:
        """See `ParsedSchema.normalized`: the members of objects are sorted."""
        return _text(self._document, sort=True)

    def formatted(self, form: str) -> str | None:
        """See `ParsedSchema.formatted`."""
        return None

    def problems_with(self, older: Self) -> list[Problem]:
        """See `ParsedSchema.problems_with`: `json_rules` has the rules."""
        return problems(self._document, self._others, older._document, older._others)


def _text(document: Any, *, sort: bool = False) -> str:
    return json.dumps(document, ensure_ascii=False, separators=(",", ":"), sort_keys=sort)
