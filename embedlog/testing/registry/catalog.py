"""`Catalog`: the registry's operations on subjects and schemas, without HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from embedlog.testing.registry import compatibility, errors
from embedlog.testing.registry.errors import RegistryError
from embedlog.testing.registry.reader import SchemaReader
from embedlog.testing.registry.settings import READ_ONLY, Settings
from embedlog.testing.registry.store import Store
from embedlog.testing.registry.values import (
    DEFAULT_CONTEXT,
    VERSION_LAST,
    Schema,
    Subject,
    Version,
)


class Catalog:
    """Subjects and schemas. Requires: the registry's lock."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.settings = Settings(store)
        self.reader = SchemaReader(store)

    # Registering and looking up

    def register(self, subject: Subject, body: Any, *, normalize: bool) -> Version:
        """Register a schema, or return the version that has it already.

        Raises:
            RegistryError: the schema, its compatibility or the mode forbids it.
        """
        config = self.settings.config(subject)
        normalize = normalize or bool(config.get("normalize"))
        schema = self.reader.schema_of(body, subject.context, normalize=normalize)
        versions = self.store.versions(subject)
        schema = self._completed(schema, versions, config)
        given_id, given_version = _number(body, "id"), _number(body, "version")
        for each in reversed(versions):
            if each.schema == schema and given_id in {None, each.id}:
                return each
        mode = self.settings.mode(subject)
        self._expect_writable(subject)
        if given_id is not None:
            if mode != "IMPORT":
                raise errors.not_permitted(f"Subject {subject} is not in import mode")
            known = self.store.contexts.get(subject.context)
            if known and known.schemas.get(given_id, schema) != schema:
                text = f"Overwrite new schema with id {given_id} is not permitted."
                raise errors.not_permitted(text)
            return self.store.add(subject, schema, version=given_version, id=given_id)
        if mode == "IMPORT":
            raise errors.not_permitted(f"Subject {subject} is not in read-write mode")
        level = config["compatibilityLevel"]
        found = compatibility.messages(
            schema,
            compatibility.against(level, versions),
            level,
            self.reader.parse,
            config.get("compatibilityGroup"),
        )
        if found:
            raise errors.incompatible(subject, found)
        if given_version not in {None, -1} and given_version != self._next_version(subject):
            text = f"Version is not one more than previous version: {given_version}"
            raise RegistryError(42201, text)
        return self.store.add(subject, schema)

    def _next_version(self, subject: Subject) -> int:
        return max(self.store.subjects.get(subject, {}), default=0) + 1

    def _completed(
        self, schema: Schema, versions: list[Version], config: Mapping[str, Any]
    ) -> Schema:
        """Add metadata and rules from the last version and from the configuration."""
        last = versions[-1].schema if versions else Schema("")
        metadata = last.metadata if schema.metadata is None else schema.metadata
        rules = last.rule_set if schema.rule_set is None else schema.rule_set
        metadata = _merged(config.get("defaultMetadata"), metadata, config.get("overrideMetadata"))
        rules = _merged(config.get("defaultRuleSet"), rules, config.get("overrideRuleSet"))
        return Schema(schema.text, schema.kind, schema.references, metadata, rules)

    def lookup(self, subject: Subject, body: Any, *, normalize: bool, deleted: bool) -> Version:
        """Return the version of a subject that has a schema.

        Raises:
            RegistryError: there is no such subject, or it has no such schema.
        """
        versions = self._expect_versions(subject, deleted=deleted)
        normalize = normalize or bool(self.settings.config(subject).get("normalize"))
        schema = self.reader.schema_of(body, subject.context, normalize=normalize)
        for each in reversed(versions):
            is_same = schema.metadata in (None, each.schema.metadata)
            is_same &= schema.rule_set in (None, each.schema.rule_set)
            if is_same and schema.has_text_of(each.schema):
                return each
        raise errors.schema_not_found()

    def version(self, subject: Subject, text: str, *, deleted: bool = False) -> Version:
        """Return a version by its number, "latest" or "-1".

        Raises:
            RegistryError: there is no such subject or version.
        """
        number = version_number(text)
        versions = self._expect_versions(subject, deleted=deleted)
        for each in reversed(versions):
            if number in {-1, each.version}:
                return each
        raise errors.version_not_found(text)

    def by_id(self, context: str, text: str) -> Schema:
        """Return the schema with an id.

        Raises:
            RegistryError: there is none.
        """
        known = self.store.contexts.get(context)
        is_number = text.isdecimal() and len(text) <= 10
        found = known.schemas.get(int(text)) if known and is_number else None
        if found is None:
            raise errors.schema_not_found(text)
        return found

    def context_of(self, hint: Subject, text: str) -> str | None:
        """Return the context in which a reader of a subject finds an id; None if there is none."""
        if not hint.name:
            return hint.context
        users = [
            each.subject.context
            for each in self.store.all_versions(deleted=True)
            if each.subject.name == hint.name and str(each.id) == text
        ]
        if hint.context != DEFAULT_CONTEXT:
            return hint.context if hint.context in users else None
        return min(users, default=DEFAULT_CONTEXT)

    def compatible(
        self, subject: Subject, version: str | None, body: Any, *, normalize: bool
    ) -> list[str]:
        """Return why a schema may not follow a version, or the versions of the level (None).

        Raises:
            RegistryError: there is no such version, or no schema in the body.
        """
        config = self.settings.config(subject)
        level = config["compatibilityLevel"]
        schema = self.reader.schema_of(body, subject.context, normalize=normalize)
        versions = self.store.versions(subject)
        if version is None:
            olds = compatibility.against(level, versions)
        elif version_number(version) == -1:
            olds = versions[-1:]
        else:
            olds = [each for each in versions if each.version == int(version)]
            if not olds:
                raise errors.version_not_found(version)
        if level == "NONE":
            return []
        group = config.get("compatibilityGroup")
        return compatibility.messages(schema, olds, level, self.reader.parse, group)

    # Deleting

    def delete_subject(self, subject: Subject, *, permanent: bool) -> list[int]:
        """Delete all versions of a subject, and return their numbers.

        Raises:
            RegistryError: there is no such subject, the mode or a reference forbids it, or the
                deletion of the other sort must come first.
        """
        self._expect_writable(subject)
        versions = self.store.versions(subject, deleted=True)
        if not versions:
            raise errors.subject_not_found(subject)
        live = [each for each in versions if not each.is_deleted]
        if permanent and live:
            raise errors.subject_not_soft_deleted(subject)
        if not permanent and not live:
            raise errors.subject_soft_deleted(subject)
        for each in versions if permanent else live:
            self._expect_unreferenced(each)
        for each in versions if permanent else live:
            self._delete(each, permanent=permanent)
        return [each.version for each in (versions if permanent else live)]

    def delete_version(self, subject: Subject, text: str, *, permanent: bool) -> int:
        """Delete one version and return its number; see `delete_subject`."""
        self._expect_writable(subject)
        found = self.version(subject, text, deleted=True)
        if version_number(text) == -1 and not permanent:
            found = self.version(subject, text)
        if permanent and not found.is_deleted:
            raise errors.version_not_soft_deleted(subject, found.version)
        if not permanent and found.is_deleted:
            raise errors.version_soft_deleted(subject, found.version)
        self._expect_unreferenced(found)
        self._delete(found, permanent=permanent)
        return found.version

    def _delete(self, version: Version, *, permanent: bool) -> None:
        if permanent:
            self.store.remove(version)
        version.is_deleted = True
        if not self.store.versions(version.subject):
            # The settings of a subject end with its last version.
            self.store.configs.pop(version.subject, None)
            self.store.modes.pop(version.subject, None)

    def referencing(self, version: Version) -> list[Version]:
        """Return the versions that refer to a version."""
        subject = str(version.subject)
        last = self.store.versions(version.subject)
        is_latest = bool(last) and last[-1] is version
        numbers = {version.version, -1} if is_latest else {version.version}
        return [
            each
            for each in self.store.all_versions()
            if any(r.subject == subject and r.version in numbers for r in each.schema.references)
        ]

    # Checks

    def _expect_versions(self, subject: Subject, *, deleted: bool = False) -> list[Version]:
        found = self.store.versions(subject, deleted=deleted)
        if not found:
            raise errors.subject_not_found(subject)
        return found

    def versions(self, subject: Subject, *, deleted: bool = False) -> list[Version]:
        """Return the versions of a subject.

        Raises:
            RegistryError: it has none.
        """
        return self._expect_versions(subject, deleted=deleted)

    def _expect_writable(self, subject: Subject) -> None:
        if self.settings.mode(subject) in READ_ONLY:
            text = f"Subject {subject} in context {subject.context} is in read-only mode"
            raise errors.not_permitted(text)

    def _expect_unreferenced(self, version: Version) -> None:
        if self.referencing(version):
            raise errors.referenced(version.subject, version.version)

    def subject_of(self, text: str, context: str = DEFAULT_CONTEXT) -> Subject:
        """Return the subject of a name, or the subject that its alias names."""
        subject = Subject.of(text, context)
        alias = self.store.configs.get(subject, {}).get("alias")
        return Subject.of(alias, subject.context) if alias else subject


def version_number(text: str) -> int:
    """Return the number of a version; -1 for the latest.

    Raises:
        RegistryError: the text is no version.
    """
    if text in {"latest", "-1"}:
        return -1
    if text.isdecimal() and len(text) <= 10 and 1 <= int(text) <= VERSION_LAST:
        return int(text)
    raise errors.invalid_version(text)


def _number(body: Mapping[str, Any], name: str) -> int | None:
    found = body.get(name)
    if found is not None and (not isinstance(found, int) or isinstance(found, bool)):
        raise RegistryError(400, f"{name}: expected a number, found {found!r}")
    return None if found in (None, -1, 0) else found


def _merged(*given: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Return the union of metadata or rules; later ones win, rules by their names."""
    made: dict[str, Any] | None = None
    for each in given:
        if each is None:
            continue
        made = dict(made or {})
        for name, value in each.items():
            if isinstance(value, dict) and isinstance(made.get(name), dict):
                made[name] = _merged(made[name], value)
            elif isinstance(value, list) and isinstance(made.get(name), list):
                made[name] = list({_name_of(item): item for item in (*made[name], *value)}.values())
            else:
                made[name] = value
    return made


def _name_of(item: Any) -> str:
    """Return the name of a rule, or the text of another item of a list."""
    return str(item.get("name", item)) if isinstance(item, dict) else str(item)
