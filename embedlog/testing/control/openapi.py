"""The OpenAPI 3.1 page of a table of verbs."""

from __future__ import annotations

from typing import Any

from embedlog.testing.control.types import type_of
from embedlog.testing.control.verbs import Table, Verb
from embedlog.version import __version__

_ERROR = {
    "type": "object",
    "properties": {
        "error": {"type": "string", "description": "the class of the error"},
        "message": {"type": "string"},
        "near": {"type": "array", "items": {"type": "string"}},
        "is_assertion": {"type": "boolean", "description": "the test has failed"},
    },
    "required": ["error", "message"],
}
_ABOUT = """The calls of `embedlog.testing.Kafka`.

Bytes are objects with `@text` or `@base64`. Objects that the door keeps, such as rules of faults,
are `{"@kept": "fault-1", ...}`; the parameter `id` of later calls takes the id. Partitions as names
of members are `orders-0`. An expected record is `{"key": ..., "value": {"@json_like": {...}}}`.
Functions cannot travel.
"""
_FAILURES = {
    "400": "called wrongly: an argument is unknown, missing or of another type",
    "401": "the token is missing or wrong",
    "404": "there is no such verb",
    "409": "refused: the call was right, and the cluster could not do it",
}


def page(table: Table, url: str, *, with_token: bool) -> dict[str, Any]:
    """Return the page as JSON."""
    paths: dict[str, Any] = {}
    for verb in table.verbs.values():
        method = "get" if verb.is_value else "post"
        paths[verb.path] = {method: _operation(verb)}
    made = {
        "openapi": "3.1.0",
        "info": {
            "title": "embedlog control door",
            "version": __version__,
            "description": _ABOUT,
        },
        "servers": [{"url": url}],
        "paths": paths,
        "components": {
            "schemas": {"Error": _ERROR},
            "responses": {status: _failure(text) for status, text in _FAILURES.items()},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }
    return {**made, "security": [{"token": []}]} if with_token else made


def _failure(text: str) -> dict[str, Any]:
    schema = {"$ref": "#/components/schemas/Error"}
    return {"description": text, "content": {"application/json": {"schema": schema}}}


def _operation(verb: Verb) -> dict[str, Any]:
    failures = {status: {"$ref": f"#/components/responses/{status}"} for status in _FAILURES}
    value = type_of(verb.returns).schema() if verb.returns else {}
    answer = {"type": "object", "properties": {"value": value}, "required": ["value"]}
    made: dict[str, Any] = {
        "operationId": verb.name.replace(" ", "_"),
        "tags": [verb.noun.name or "kafka"],
        "summary": verb.text.partition("\n")[0],
        "description": verb.text,
        "responses": {
            "200": {
                "description": verb.returns or "done",
                "content": {"application/json": {"schema": answer}},
            },
            **failures,
        },
    }
    if verb.is_value:
        made["parameters"] = [
            {"in": "query", "name": each.name, "schema": each.type.schema(),
             "required": each.is_required}
            for each in verb.parameters
        ]  # fmt: skip
        return made
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {each.name: each.described()["schema"] for each in verb.parameters},
        "additionalProperties": verb.is_open,
    }
    required = [each.name for each in verb.parameters if each.is_required]
    if required:
        schema["required"] = required
    made["requestBody"] = {
        "required": bool(required),
        "content": {"application/json": {"schema": schema}},
    }
    return made
