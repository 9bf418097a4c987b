"""Errors of the registry, with the codes and texts of Confluent's."""

from __future__ import annotations

from collections.abc import Iterable

from embedlog.testing.http.messages import HttpError


class RegistryError(HttpError):
    """A refusal with the code that clients act on, such as 40401 for a missing subject."""

    def __init__(self, code: int, message: str) -> None:
        status = code if code < 1000 else code // 100
        super().__init__(status, {"error_code": code, "message": message})
        self.code = code
        self.message = message

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"


def subject_not_found(subject: object) -> RegistryError:
    """The subject does not exist."""
    return RegistryError(40401, f"Subject '{subject}' not found.")


def version_not_found(version: object) -> RegistryError:
    """The subject has no such version."""
    return RegistryError(40402, f"Version {version} not found.")


def schema_not_found(what: object = None) -> RegistryError:
    """There is no such id, or the subject has no such schema."""
    return RegistryError(40403, "Schema not found" if what is None else f"Schema {what} not found")


def subject_soft_deleted(subject: object) -> RegistryError:
    """The subject is deleted already."""
    text = f"Subject '{subject}' was soft deleted. Set permanent=true to delete permanently"
    return RegistryError(40404, text)


def subject_not_soft_deleted(subject: object) -> RegistryError:
    """A permanent deletion needs a soft one before."""
    text = f"Subject '{subject}' was not deleted first before being permanently deleted"
    return RegistryError(40405, text)


def version_soft_deleted(subject: object, version: int) -> RegistryError:
    """The version is deleted already."""
    text = (
        f"Subject '{subject}' Version {version} was soft deleted. "
        "Set permanent=true to delete permanently"
    )
    return RegistryError(40406, text)


def version_not_soft_deleted(subject: object, version: int) -> RegistryError:
    """A permanent deletion needs a soft one before."""
    text = (
        f"Subject '{subject}' Version {version} was not deleted first before being "
        "permanently deleted"
    )
    return RegistryError(40407, text)


def no_config(subject: object) -> RegistryError:
    """The subject has no configuration of its own."""
    text = f"Subject '{subject}' does not have subject-level compatibility configured"
    return RegistryError(40408, text)


def no_mode(subject: object) -> RegistryError:
    """The subject has no mode of its own."""
    return RegistryError(40409, f"Subject '{subject}' does not have subject-level mode configured")


def incompatible(subject: object, messages: Iterable[str]) -> RegistryError:
    """The compatibility level forbids the schema."""
    text = (
        "Schema being registered is incompatible with an earlier schema for subject "
        f'"{subject}", details: [{", ".join(messages)}]'
    )
    return RegistryError(409, text)


def invalid_schema(text: str, details: object) -> RegistryError:
    """The text is no schema."""
    return RegistryError(42201, f"Invalid schema {text[:1000]}, details: {details}")


def invalid_version(version: str) -> RegistryError:
    """The text is no version."""
    text = (
        f"The specified version '{version}' is not a valid version id. "
        'Allowed values are between [1, 2^31-1] and the string "latest"'
    )
    return RegistryError(42202, text)


def not_permitted(text: str) -> RegistryError:
    """The mode forbids the call."""
    return RegistryError(42205, text)


def referenced(subject: object, version: int) -> RegistryError:
    """Other schemas refer to the version."""
    text = (
        "One or more references exist to the schema "
        f"{{magic=1,keytype=SCHEMA,subject={subject},version={version}}}."
    )
    return RegistryError(42206, text)
