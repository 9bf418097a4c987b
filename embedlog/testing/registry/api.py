"""Confluent's HTTP API, as its clients use it: paths, parameters and answers.

Each function answers one verb. Its name is also the verb in `Registry.fault`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from embedlog.testing.http.messages import HttpRequest
from embedlog.testing.http.routes import Route, Routes
from embedlog.testing.registry import errors
from embedlog.testing.registry.catalog import Catalog
from embedlog.testing.registry.errors import RegistryError
from embedlog.testing.registry.schemas.kinds import KINDS
from embedlog.testing.registry.values import DEFAULT_CONTEXT, Schema, Subject, Version
from embedlog.version import __version__

_LIST_MAX = 1000


class Exchange:
    """One request, with its parameters read by the rules of the API."""

    def __init__(self, catalog: Catalog, request: HttpRequest, parameters: dict[str, str]) -> None:
        self.catalog = catalog
        self.request = request
        self.context = parameters.pop("context", DEFAULT_CONTEXT)
        self.parameters = parameters

    @property
    def named(self) -> Subject:
        """The subject in the path, without regard to aliases."""
        return Subject.of(self.parameters["subject"], self.context)

    @property
    def subject(self) -> Subject:
        """The subject in the path. An alias stands for another subject."""
        return self.catalog.subject_of(self.parameters["subject"], self.context)

    @property
    def body(self) -> Any:
        """The decoded body."""
        try:
            return self.request.json()
        except ValueError as error:
            raise RegistryError(400, f"The body is not JSON: {error}") from None

    def flag(self, name: str) -> bool:
        """Return a parameter of the query that is true or false."""
        return self.request.flag(name)

    def version(self) -> Version:
        """Return the version in the path."""
        number = self.parameters["version"]
        return self.catalog.version(self.subject, number, deleted=self.flag("deleted"))

    def by_id(self) -> tuple[str, Schema]:
        """Return the schema of the id in the path, and its context.

        The parameter `subject` chooses the context: by name, or as the first one where the subject
        uses the id.
        """
        number, hint = self.parameters["id"], self.request.last("subject")
        context = self.context
        if hint:
            found = self.catalog.context_of(self.catalog.subject_of(hint, self.context), number)
            if found is None:
                raise errors.schema_not_found(number)
            context = found
        return context, self.catalog.by_id(context, number)

    def page(self, found: Iterable[Any]) -> list[Any]:
        """Return the part of a list that `offset` and `limit` choose."""
        offset, limit = self._number("offset", 0), self._number("limit", -1)
        whole = list(found)[offset:]
        return whole[:limit] if limit > 0 else whole

    def _number(self, name: str, default: int) -> int:
        text = self.request.last(name, str(default))
        if not text.removeprefix("-").isdecimal() or len(text) > 10:
            raise RegistryError(422, f"{name}: expected a number, found {text!r}")
        return max(int(text), -1)

    def listed(self, versions: Iterable[Version]) -> list[Version]:
        """Return the versions that `deleted`, `deletedOnly` and `subjectPrefix` choose."""
        prefix = self.request.last("subjectPrefix", ":*:")
        only = self.flag("deletedOnly")
        return [
            each
            for each in versions
            if (each.is_deleted if only else True) and _begins(each.subject, prefix, self.context)
        ]

    @property
    def wants_deleted(self) -> bool:
        """Whether the answer includes deleted versions."""
        return self.flag("deleted") or self.flag("deletedOnly")


def _begins(subject: Subject, prefix: str, context: str) -> bool:
    if prefix.startswith(":*:"):
        in_context = context in (DEFAULT_CONTEXT, subject.context)
        return in_context and subject.name.startswith(prefix[3:])
    wanted = Subject.of(prefix, context)
    return subject.context == wanted.context and subject.name.startswith(wanted.name)


Verb = Callable[[Exchange], Any]


# Subjects


def list_subjects(call: Exchange) -> Any:
    """List the names of subjects."""
    found = call.listed(call.catalog.store.all_versions(deleted=call.wants_deleted))
    return call.page(dict.fromkeys(str(each.subject) for each in found))


def list_versions(call: Exchange) -> Any:
    """List the versions of a subject."""
    found = call.catalog.versions(call.subject, deleted=call.wants_deleted)
    return call.page(each.version for each in call.listed(found))


def register(call: Exchange) -> Any:
    """Register a schema."""
    made = call.catalog.register(call.subject, call.body, normalize=call.flag("normalize"))
    # Clients take a text in this answer for their own, and its form could be another.
    return {"id": made.id, "version": made.version, "guid": made.schema.guid}


def lookup(call: Exchange) -> Any:
    """Find the version that has a schema."""
    return call.catalog.lookup(
        call.subject, call.body, normalize=call.flag("normalize"), deleted=call.flag("deleted")
    ).answer()


def get_version(call: Exchange) -> Any:
    """Return a version."""
    return _formatted(call, call.version().answer(), call.version().schema)


def get_version_schema(call: Exchange) -> Any:
    """Return the text of a version alone."""
    return _text(call, call.version().schema)


def referenced_by(call: Exchange) -> Any:
    """List the ids of the schemas that refer to a version."""
    return call.page(sorted({each.id for each in call.catalog.referencing(call.version())}))


def get_by_metadata(call: Exchange) -> Any:
    """Return the latest version whose metadata has the given properties."""
    query = call.request.query
    wanted = dict(zip(query.get("key", ()), query.get("value", ()), strict=False))
    for each in reversed(call.catalog.versions(call.subject, deleted=call.flag("deleted"))):
        found = (each.schema.metadata or {}).get("properties") or {}
        if all(found.get(name) == value for name, value in wanted.items()):
            return _formatted(call, each.answer(), each.schema)
    raise errors.schema_not_found()


def delete_subject(call: Exchange) -> Any:
    """Delete a subject."""
    return call.catalog.delete_subject(call.subject, permanent=call.flag("permanent"))


def delete_version(call: Exchange) -> Any:
    """Delete a version."""
    number = call.parameters["version"]
    return call.catalog.delete_version(call.subject, number, permanent=call.flag("permanent"))


# Schemas by id


def get_schema(call: Exchange) -> Any:
    """Return the schema of an id."""
    context, found = call.by_id()
    answer = found.answer()
    if call.flag("fetchMaxId"):
        answer["maxId"] = call.catalog.store.contexts[context].last_id
    return _formatted(call, answer, found)


def get_schema_text(call: Exchange) -> Any:
    """Return the text of an id alone."""
    return _text(call, call.by_id()[1])


def get_schema_subjects(call: Exchange) -> Any:
    """List the subjects that use an id."""
    return call.page(dict.fromkeys(str(each.subject) for each in _with_id(call)))


def get_schema_versions(call: Exchange) -> Any:
    """List the versions that have an id."""
    rows = ({"subject": str(each.subject), "version": each.version} for each in _with_id(call))
    return call.page(rows)


def _with_id(call: Exchange) -> list[Version]:
    context, _ = call.by_id()
    number = int(call.parameters["id"])
    return call.catalog.store.having(context, number, deleted=call.flag("deleted"))


def get_schema_by_guid(call: Exchange) -> Any:
    """Return the schema of a guid."""
    wanted = call.parameters["guid"]
    for context in call.catalog.store.contexts.values():
        if wanted in context.ids:
            found = context.schemas[context.ids[wanted]]
            return _formatted(call, found.answer(), found)
    raise errors.schema_not_found(wanted)


def get_ids_by_guid(call: Exchange) -> Any:
    """List the contexts that have a guid, and its id in each."""
    wanted = call.parameters["guid"]
    return [
        {"context": name, "id": context.ids[wanted]}
        for name, context in sorted(call.catalog.store.contexts.items())
        if wanted in context.ids
    ]


def list_schemas(call: Exchange) -> Any:
    """List versions with their schemas."""
    found = call.listed(call.catalog.store.all_versions(deleted=call.wants_deleted))
    if call.flag("latestOnly"):
        found = list({each.subject: each for each in found}.values())
    return [each.answer() for each in call.page(found)[:_LIST_MAX]]


def list_types(_call: Exchange) -> Any:
    """List the kinds of schemas."""
    return list(KINDS)


def list_contexts(call: Exchange) -> Any:
    """List the contexts."""
    return call.page(sorted(call.catalog.store.contexts))


# Settings


def get_config(call: Exchange) -> Any:
    """Return the settings for all subjects."""
    return call.catalog.settings.config(None)


def set_config(call: Exchange) -> Any:
    """Change the settings for all subjects."""
    return call.catalog.settings.set_config(None, call.body)


def delete_config(call: Exchange) -> Any:
    """Reset the settings for all subjects."""
    return call.catalog.settings.delete_config(None)


def get_subject_config(call: Exchange) -> Any:
    """Return the settings of a subject."""
    if call.flag("defaultToGlobal"):
        return call.catalog.settings.config(call.named)
    return call.catalog.settings.own_config(call.named)


def set_subject_config(call: Exchange) -> Any:
    """Change the settings of a subject."""
    return call.catalog.settings.set_config(call.named, call.body)


def delete_subject_config(call: Exchange) -> Any:
    """Remove the settings of a subject."""
    return call.catalog.settings.delete_config(call.named)


def get_mode(call: Exchange) -> Any:
    """Return the mode for all subjects."""
    return {"mode": call.catalog.settings.mode(None)}


def set_mode(call: Exchange) -> Any:
    """Set the mode for all subjects."""
    return _set_mode(call, None)


def delete_mode(call: Exchange) -> Any:
    """Reset the mode for all subjects."""
    return {"mode": call.catalog.settings.delete_mode(None)}


def get_subject_mode(call: Exchange) -> Any:
    """Return the mode of a subject."""
    settings = call.catalog.settings
    inherits = call.flag("defaultToGlobal")
    return {"mode": settings.mode(call.named) if inherits else settings.own_mode(call.named)}


def set_subject_mode(call: Exchange) -> Any:
    """Set the mode of a subject."""
    return _set_mode(call, call.named)


def delete_subject_mode(call: Exchange) -> Any:
    """Remove the mode of a subject."""
    return {"mode": call.catalog.settings.delete_mode(call.named)}


def _set_mode(call: Exchange, subject: Subject | None) -> Any:
    body = call.body
    mode = body.get("mode") if isinstance(body, dict) else body
    call.catalog.settings.set_mode(subject, mode, force=call.flag("force"))
    return {"mode": mode}


# Compatibility and the rest


def check_compatibility(call: Exchange) -> Any:
    """Tell whether a schema may follow a version, or all versions of the level."""
    found = call.catalog.compatible(
        call.subject,
        call.parameters.get("version"),
        call.body,
        normalize=call.flag("normalize"),
    )
    answer: dict[str, Any] = {"is_compatible": not found}
    if call.flag("verbose"):
        answer["messages"] = found
    return answer


def get_root(_call: Exchange) -> Any:
    """Answer that the registry is there."""
    return {}


def get_server_id(_call: Exchange) -> Any:
    """Return the ids of the cluster and the group."""
    group = {"kafka-cluster": "embedlog", "schema-registry-cluster": "schema-registry"}
    return {"scope": {"path": [], "clusters": group}}


def get_server_version(_call: Exchange) -> Any:
    """Return the version of the server."""
    return {"version": __version__, "commitId": "embedlog"}


def _formatted(call: Exchange, answer: dict[str, Any], schema: Schema) -> dict[str, Any]:
    form = call.request.last("format")
    text = call.catalog.reader.parse(schema).formatted(form) if form else None
    return {**answer, "schema": text} if text is not None else answer


def _text(call: Exchange, schema: Schema) -> bytes:
    text: str = _formatted(call, {"schema": schema.text}, schema)["schema"]
    return text.encode()


_TABLE: tuple[tuple[str, str, Verb], ...] = (
    ("GET", "/", get_root),
    ("GET", "/subjects", list_subjects),
    ("POST", "/subjects/{subject}", lookup),
    ("DELETE", "/subjects/{subject}", delete_subject),
    ("GET", "/subjects/{subject}/versions", list_versions),
    ("POST", "/subjects/{subject}/versions", register),
    ("GET", "/subjects/{subject}/metadata", get_by_metadata),
    ("GET", "/subjects/{subject}/versions/{version}", get_version),
    ("DELETE", "/subjects/{subject}/versions/{version}", delete_version),
    ("GET", "/subjects/{subject}/versions/{version}/schema", get_version_schema),
    ("GET", "/subjects/{subject}/versions/{version}/referencedby", referenced_by),
    ("GET", "/schemas", list_schemas),
    ("GET", "/schemas/types", list_types),
    ("GET", "/schemas/ids/{id}", get_schema),
    ("GET", "/schemas/ids/{id}/schema", get_schema_text),
    ("GET", "/schemas/ids/{id}/subjects", get_schema_subjects),
    ("GET", "/schemas/ids/{id}/versions", get_schema_versions),
    ("GET", "/schemas/guids/{guid}", get_schema_by_guid),
    ("GET", "/schemas/guids/{guid}/ids", get_ids_by_guid),
    ("GET", "/contexts", list_contexts),
    ("GET", "/config", get_config),
    ("PUT", "/config", set_config),
    ("DELETE", "/config", delete_config),
    ("GET", "/config/{subject}", get_subject_config),
    ("PUT", "/config/{subject}", set_subject_config),
    ("DELETE", "/config/{subject}", delete_subject_config),
    ("GET", "/mode", get_mode),
    ("PUT", "/mode", set_mode),
    ("DELETE", "/mode", delete_mode),
    ("GET", "/mode/{subject}", get_subject_mode),
    ("PUT", "/mode/{subject}", set_subject_mode),
    ("DELETE", "/mode/{subject}", delete_subject_mode),
    ("POST", "/compatibility/subjects/{subject}/versions", check_compatibility),
    ("POST", "/compatibility/subjects/{subject}/versions/{version}", check_compatibility),
    ("GET", "/v1/metadata/id", get_server_id),
    ("GET", "/v1/metadata/version", get_server_version),
)
ROUTES: Routes[Verb] = Routes(*(Route(*row) for row in _TABLE))
VERBS = tuple(dict.fromkeys(handle.__name__ for _, _, handle in _TABLE))
"""The names of all verbs."""
