"""`Store`: the subjects, versions and ids of a registry, and their settings. It decides nothing."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from embedlog.testing.registry.values import DEFAULT_CONTEXT, Schema, Subject, Version


@dataclass(slots=True)
class Context:
    """The ids of one context. Each context counts on its own."""

    schemas: dict[int, Schema] = field(default_factory=dict)
    ids: dict[str, int] = field(default_factory=dict)
    """By guid."""
    last_id: int = 0


class Store:
    """Everything that a registry remembers. Requires: the registry's lock."""

    def __init__(self) -> None:
        self.contexts: dict[str, Context] = {DEFAULT_CONTEXT: Context()}
        self.subjects: dict[Subject, dict[int, Version]] = {}
        self.configs: dict[Subject | None, dict[str, Any]] = {}
        """Settings of a subject, of a context (its name is empty), or of all (None)."""
        self.modes: dict[Subject | None, str] = {}

    def copy(self) -> Store:
        """Return a copy that later changes do not reach."""
        made = Store()
        made.replace_by(self)
        return made

    def replace_by(self, other: Store) -> None:
        """Forget everything, and take a copy of another store's content."""
        self.contexts = deepcopy(other.contexts)
        self.subjects = deepcopy(other.subjects)
        self.configs = deepcopy(other.configs)
        self.modes = dict(other.modes)

    def versions(self, subject: Subject, *, deleted: bool = False) -> list[Version]:
        """Return the versions of a subject in order, with the deleted ones on request."""
        found = self.subjects.get(subject, {})
        return [each for _, each in sorted(found.items()) if deleted or not each.is_deleted]

    def all_versions(self, *, deleted: bool = False) -> Iterator[Version]:
        """Yield the versions of all subjects by name."""
        for subject in sorted(self.subjects, key=str):
            yield from self.versions(subject, deleted=deleted)

    def add(
        self, subject: Subject, schema: Schema, *, version: int | None = None, id: int | None = None
    ) -> Version:
        """Add a version. The id of equal content in the context is used again."""
        context = self.contexts.setdefault(subject.context, Context())
        number = context.ids.get(schema.guid) if id is None else id
        if number is None:
            number = context.last_id + 1
        context.last_id = max(context.last_id, number)
        context.schemas[number] = schema
        context.ids[schema.guid] = number
        versions = self.subjects.setdefault(subject, {})
        made = Version(subject, version or max(versions, default=0) + 1, number, schema)
        versions[made.version] = made
        return made

    def remove(self, version: Version) -> None:
        """Remove a version for ever, and its id if no other version has it."""
        versions = self.subjects[version.subject]
        del versions[version.version]
        if not versions:
            del self.subjects[version.subject]
        context = self.contexts[version.subject.context]
        if not self.having(version.subject.context, version.id, deleted=True):
            del context.schemas[version.id]
            del context.ids[version.schema.guid]

    def having(self, context: str, id: int, *, deleted: bool = False) -> list[Version]:
        """Return the versions of a context that have an id."""
        return [
            each
            for each in self.all_versions(deleted=deleted)
            if each.id == id and each.subject.context == context
        ]
