"""Compatibility of a new schema with the earlier versions of its subject."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from embedlog.testing.registry.schemas.kinds import ParsedSchema, Problem
from embedlog.testing.registry.values import Schema, Version

Parse = Callable[[Schema], ParsedSchema]


def against(level: str, versions: Sequence[Version]) -> list[Version]:
    """Return the versions that a level compares with, the latest first."""
    if level == "NONE":
        return []
    return list(reversed(versions)) if level.endswith("_TRANSITIVE") else list(versions[-1:])


def messages(
    new: Schema, olds: Sequence[Version], level: str, parse: Parse, group: str | None = None
) -> list[str]:
    """Return the reasons why a schema may not follow; empty if it may.

    `group` names a property of the metadata: only versions with the same value count.
    """
    parsed = parse(new)
    for old in olds:
        if group and _property(new, group) != _property(old.schema, group):
            continue
        found = _problems(parsed, new.kind, parse(old.schema), old.schema.kind, level)
        if found:
            return [
                *map(str, found),
                f"{{oldSchemaVersion: {old.version}}}",
                f"{{oldSchema: '{old.schema.text}'}}",
                f"{{compatibility: '{level}'}}",
            ]
    return []


def _problems(
    new: ParsedSchema, new_kind: str, old: ParsedSchema, old_kind: str, level: str
) -> list[Problem]:
    if new_kind != old_kind:
        text = f"The type of the schema changed from {old_kind} to {new_kind}"
        return [Problem("SCHEMA_TYPE_CHANGED", "/", text)]
    found = []
    if level.startswith(("BACKWARD", "FULL")):
        found += new.problems_with(old)
    if level.startswith(("FORWARD", "FULL")):
        found += old.problems_with(new)
    return found


def _property(schema: Schema, name: str) -> Any:
    metadata: Mapping[str, Any] = schema.metadata or {}
    return (metadata.get("properties") or {}).get(name)
