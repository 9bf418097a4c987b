"""Settings of the registry: compatibility levels and modes, by subject, context and for all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from embedlog.testing.registry import errors
from embedlog.testing.registry.errors import RegistryError
from embedlog.testing.registry.store import Store
from embedlog.testing.registry.values import DEFAULT_CONTEXT, Subject

LEVELS = (
    "NONE", "BACKWARD", "BACKWARD_TRANSITIVE", "FORWARD", "FORWARD_TRANSITIVE", "FULL",
    "FULL_TRANSITIVE",
)  # fmt: skip
MODES = ("READWRITE", "READONLY", "READONLY_OVERRIDE", "IMPORT", "FORWARD")
READ_ONLY = frozenset(("READONLY", "READONLY_OVERRIDE", "FORWARD"))
_DEFAULTS: dict[str, Any] = {"compatibilityLevel": "BACKWARD"}
_FIELDS = {
    "alias": str, "normalize": bool, "validateFields": bool, "compatibilityGroup": str,
    "defaultMetadata": dict, "overrideMetadata": dict, "defaultRuleSet": dict,
    "overrideRuleSet": dict,
}  # fmt: skip
"""Settings besides the level, with the types of their values."""


class Settings:
    """Configurations and modes in a store.

    A subject that has none inherits them as a whole: in the default context the ones for all, in
    another context the ones of the context.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    # Configurations

    def config(self, subject: Subject | None) -> dict[str, Any]:
        """Return the settings in force."""
        for place in _places(subject):
            if place in self._store.configs:
                return {**_DEFAULTS, **self._store.configs[place]}
        return dict(_DEFAULTS)

    def own_config(self, subject: Subject) -> dict[str, Any]:
        """Return the settings of a subject alone.

        Raises:
            RegistryError: it has none.
        """
        found = self._store.configs.get(subject)
        if found is None:
            raise errors.no_config(subject)
        return {**_DEFAULTS, **found}

    def set_config(self, subject: Subject | None, given: Any) -> Mapping[str, Any]:
        """Change the given settings, keep the others, and return the given ones.

        Raises:
            RegistryError: a setting has a value that it cannot have, or the mode forbids a change.
        """
        self._expect_writable(subject)
        if not isinstance(given, dict):
            raise RegistryError(42203, f"{_LEVEL_TEXT}; found {given!r}")
        made: dict[str, Any] = {}
        level = given.get("compatibility", given.get("compatibilityLevel"))
        if level is not None:
            made["compatibilityLevel"] = level_of(level)
        for name, kind in _FIELDS.items():
            value = given.get(name)
            if value is not None:
                if not isinstance(value, kind):
                    text = f"{name}: expected a {kind.__name__}, found {value!r}"
                    raise RegistryError(400, text)
                made[name] = value
        self._store.configs.setdefault(subject, {}).update(made)
        return given

    def delete_config(self, subject: Subject | None) -> dict[str, Any]:
        """Remove the settings of one place, and return them.

        Raises:
            RegistryError: the subject has none, or the mode forbids a change.
        """
        self._expect_writable(subject)
        found = self._store.configs.pop(subject, None)
        if found is None and subject is not None:
            raise errors.subject_not_found(subject)
        return {**_DEFAULTS, **(found or {})}

    def _expect_writable(self, subject: Subject | None) -> None:
        if self.mode(subject) in READ_ONLY:
            raise errors.not_permitted(f"Subject {subject or ''} is in read-only mode")

    # Modes

    def mode(self, subject: Subject | None) -> str:
        """Return the mode in force. READONLY_OVERRIDE for all wins everywhere."""
        if self._store.modes.get(None) == "READONLY_OVERRIDE":
            return "READONLY_OVERRIDE"
        for place in _places(subject):
            if place in self._store.modes:
                return self._store.modes[place]
        return "READWRITE"

    def own_mode(self, subject: Subject) -> str:
        """Return the mode of a subject alone.

        Raises:
            RegistryError: it has none.
        """
        if subject not in self._store.modes:
            raise errors.no_mode(subject)
        return self._store.modes[subject]

    def set_mode(self, subject: Subject | None, mode: object, *, force: bool) -> None:
        """Set a mode.

        Raises:
            RegistryError: there is no such mode, or schemas forbid IMPORT.
        """
        if mode not in MODES:
            raise RegistryError(42204, f"Invalid mode. Valid values are {', '.join(MODES)}")
        if mode == "IMPORT" and not force and self._has_schemas(subject):
            raise errors.not_permitted("Cannot import since found existing subjects")
        self._store.modes[subject] = str(mode)

    def delete_mode(self, subject: Subject | None) -> str:
        """Remove the mode of one place, and return it.

        Raises:
            RegistryError: the subject has none.
        """
        found = self._store.modes.pop(subject, None)
        if found is None:
            if subject is None:
                return "READWRITE"
            raise errors.subject_not_found(subject)
        return found

    def _has_schemas(self, subject: Subject | None) -> bool:
        if subject is not None and subject.name:
            return bool(self._store.versions(subject))
        return any(
            subject is None or each.subject.context == subject.context
            for each in self._store.all_versions()
        )


_LEVEL_TEXT = (
    "Invalid compatibility level. Valid values are none, backward, forward, full, "
    "backward_transitive, forward_transitive, and full_transitive"
)


def level_of(given: object) -> str:
    """Return the name of a compatibility level.

    Raises:
        RegistryError: there is no such level.
    """
    found = given.upper() if isinstance(given, str) else ""
    if found not in LEVELS:
        raise RegistryError(42203, f"{_LEVEL_TEXT}; found {given!r}")
    return found


def _places(subject: Subject | None) -> list[Subject | None]:
    """Return the places of settings for a subject, the nearest first."""
    if subject is None:
        return [None]
    around = None if subject.context == DEFAULT_CONTEXT else Subject(subject.context, "")
    return [subject, around] if subject != around else [subject]
