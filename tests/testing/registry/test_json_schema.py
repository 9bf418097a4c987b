"""JSON Schemas: reading, and the rules of compatibility."""

from __future__ import annotations

import json
from typing import Any

import pytest

from embedlog.testing.registry.schemas.json_schema import JsonSchema
from embedlog.testing.registry.schemas.kinds import Referenced, UnreadableSchema


def _schema(document: Any) -> JsonSchema:
    return JsonSchema.parse(json.dumps(document), [])


def test_the_canonical_text_has_no_space_and_keeps_the_order() -> None:
    assert JsonSchema.parse('{ "b": 1,\n"a": "é" }', []).canonical == '{"b":1,"a":"é"}'
    assert JsonSchema.parse('{"b":{"d":1,"c":2},"a":3}', []).normalized() == (
        '{"a":3,"b":{"c":2,"d":1}}'
    )


@pytest.mark.parametrize(
    "text",
    ["", "3", '"x"', "[1]", '{"type":"text"}', '{"properties":3}', '{"required":"a"}',
     "[" * 100_000],
)  # fmt: skip
def test_a_text_that_is_no_schema_is_refused(text: str) -> None:
    with pytest.raises(UnreadableSchema):
        JsonSchema.parse(text, [])


def _object(closed: bool = False, **properties: Any) -> dict[str, Any]:
    made: dict[str, Any] = {"type": "object", "properties": properties}
    return {**made, "additionalProperties": False} if closed else made


INT, NUMBER, TEXT = {"type": "integer"}, {"type": "number"}, {"type": "string"}
ADDED_OPEN = "PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL"


@pytest.mark.parametrize(
    ("new", "old", "kind"),
    [
        (NUMBER, INT, None),
        (INT, NUMBER, "TYPE_NARROWED"),
        ({"type": ["string", "null"]}, TEXT, None),
        (TEXT, {"type": ["string", "null"]}, "TYPE_NARROWED"),
        (True, INT, None),
        ({}, INT, None),
        (INT, {}, "TYPE_NARROWED"),
        (False, INT, "SCHEMA_REMOVED"),
        (INT, False, None),
        ({"enum": [1, 2]}, {"enum": [1]}, None),
        ({"enum": [1]}, {"enum": [1, 2]}, "ENUM_ARRAY_NARROWED"),
        ({"const": 1}, {}, "ENUM_ARRAY_ADDED"),
        ({"maxLength": 5}, {"maxLength": 4}, None),
        ({"maxLength": 4}, {"maxLength": 5}, "MAX_LENGTH_DECREASED"),
        ({"maxLength": 4}, {}, "MAX_LENGTH_ADDED"),
        ({"minimum": 3}, {"minimum": 4}, None),
        ({"minimum": 4}, {"minimum": 3}, "MINIMUM_INCREASED"),
        ({"minimum": 4}, {}, "MINIMUM_ADDED"),
        ({"multipleOf": 2}, {"multipleOf": 4}, None),
        ({"multipleOf": 4}, {"multipleOf": 2}, "MULTIPLE_OF_CHANGED"),
        ({"pattern": "a"}, {}, "PATTERN_ADDED"),
        ({"pattern": "a"}, {"pattern": "a"}, None),
        ({"pattern": "a"}, {"pattern": "b"}, "PATTERN_CHANGED"),
        ({}, {"pattern": "a"}, None),
        ({"title": "x", "description": "y", "format": "date"}, {"title": "z"}, None),
        # Properties
        (_object(a=NUMBER), _object(a=INT), None),
        (_object(a=INT), _object(a=TEXT), "TYPE_CHANGED"),
        (_object(), _object(a=INT), None),
        (_object(closed=True), _object(closed=True, a=INT),
         "PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL"),
        (_object(a=INT), _object(), ADDED_OPEN),
        (_object(a={}), _object(), None),
        (_object(closed=True, a=INT), _object(closed=True), None),
        ({**_object(closed=True, a=INT), "required": ["a"]}, _object(closed=True),
         "REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL"),
        ({**_object(closed=True, a={**INT, "default": 1}), "required": ["a"]},
         _object(closed=True), None),
        ({**_object(a=INT), "additionalProperties": INT},
         {**_object(), "additionalProperties": INT}, None),
        ({**_object(a=TEXT), "additionalProperties": INT},
         {**_object(), "additionalProperties": INT},
         "PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL"),
        ({**_object(), "additionalProperties": INT},
         {**_object(a=TEXT), "additionalProperties": INT},
         "PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL"),
        ({**_object(a=INT), "additionalProperties": INT, "required": ["a"]},
         {**_object(), "additionalProperties": INT},
         "REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL"),
        ({**_object(a=INT), "required": ["a"]}, _object(a=INT), "REQUIRED_ATTRIBUTE_ADDED"),
        ({**_object(a=INT), "required": ["b"]}, _object(a=INT), None),
        (_object(a=INT), {**_object(a=INT), "required": ["a"]}, None),
        (_object(closed=True), _object(), "ADDITIONAL_PROPERTIES_REMOVED"),
        (_object(), _object(closed=True), None),
        ({"type": "object", "additionalProperties": INT},
         {"type": "object", "additionalProperties": NUMBER}, "ADDITIONAL_PROPERTIES_NARROWED"),
        ({"dependencies": {"a": ["b", "c"]}}, {"dependencies": {"a": ["b"]}},
         "DEPENDENCY_ARRAY_EXTENDED"),
        ({"dependencies": {"a": ["b"]}}, {"dependencies": {"a": ["b", "c"]}}, None),
        ({"dependentSchemas": {"a": INT}}, {}, "DEPENDENCY_SCHEMA_ADDED"),
        # Arrays
        ({"type": "array", "items": NUMBER}, {"type": "array", "items": INT}, None),
        ({"type": "array", "items": INT}, {"type": "array", "items": NUMBER}, "TYPE_NARROWED"),
        ({"type": "array", "uniqueItems": True}, {"type": "array"}, "UNIQUE_ITEMS_ADDED"),
        ({"type": "array", "items": [INT, TEXT]}, {"type": "array", "items": [INT]},
         "TYPE_NARROWED"),
        ({"type": "array", "items": [INT], "additionalItems": False},
         {"type": "array", "items": [INT]}, "ADDITIONAL_ITEMS_REMOVED"),
        ({"additionalItems": TEXT}, {"additionalItems": INT}, "TYPE_CHANGED"),
        # Combined schemas
        ({"anyOf": [INT, TEXT]}, INT, None),
        ({"anyOf": [NUMBER, TEXT]}, INT, None),
        ({"oneOf": [INT, TEXT]}, {"oneOf": [INT]}, None),
        ({"oneOf": [INT]}, {"oneOf": [INT, TEXT]}, "COMBINED_TYPE_SUBSCHEMAS_CHANGED"),
        (NUMBER, {"oneOf": [INT, TEXT]}, "COMBINED_TYPE_SUBSCHEMAS_CHANGED"),
        ({"anyOf": [INT]}, TEXT, "SUM_TYPE_NARROWED"),
        ({"allOf": [INT]}, {"allOf": [INT, {"minimum": 1}]}, None),
        (INT, {"allOf": [INT, {"minimum": 1}]}, None),
        ({"anyOf": [NUMBER, TEXT]}, {"allOf": [INT]}, None),
        ({"allOf": [INT, {"minimum": 1}]}, {"allOf": [INT]}, "PRODUCT_TYPE_EXTENDED"),
        ({"not": INT}, {"not": NUMBER}, None),
        ({"not": NUMBER}, {"not": INT}, "NOT_TYPE_EXTENDED"),
        ({"not": INT}, {}, "NOT_TYPE_EXTENDED"),
    ],
)  # fmt: skip
def test_the_new_schema_accepts_what_the_old_accepts(new: Any, old: Any, kind: str | None) -> None:
    found = {each.kind for each in _schema(new).problems_with(_schema(old))}
    assert found == ({kind} if kind else set())


@pytest.mark.parametrize(
    "document",
    [
        {"$ref": "#/definitions/a", "definitions": {"a": INT}},
        {"oneOf": [INT, TEXT, _object(closed=True, a=INT)]},
        {**_object(a=INT, b={"allOf": [TEXT, {"minLength": 1}]}), "required": ["a"]},
        {"patternProperties": {"^x": INT}, "additionalProperties": False},
        {"type": "array", "prefixItems": [INT, TEXT], "items": False},
        {"definitions": {"t": _object(next={"$ref": "#/definitions/t"})},
         "$ref": "#/definitions/t"},
    ],
)  # fmt: skip
def test_each_schema_accepts_what_it_accepts_itself(document: Any) -> None:
    assert not _schema(document).problems_with(_schema(document))


def test_a_reference_into_the_document_is_followed() -> None:
    def made(inner: Any) -> JsonSchema:
        return _schema({**_object(a={"$ref": "#/definitions/i"}), "definitions": {"i": inner}})

    assert not made(NUMBER).problems_with(made(INT))
    assert [each.kind for each in made(INT).problems_with(made(NUMBER))] == ["TYPE_NARROWED"]


def test_a_registered_reference_is_followed() -> None:
    def made(inner: Any) -> JsonSchema:
        text = json.dumps(_object(a={"$ref": "inner.json"}))
        return JsonSchema.parse(text, [Referenced("inner.json", json.dumps(inner))])

    assert not made(NUMBER).problems_with(made(INT))
    assert [each.kind for each in made(INT).problems_with(made(NUMBER))] == ["TYPE_NARROWED"]


def test_a_circle_of_references_ends() -> None:
    document = {"$ref": "#/definitions/a", "definitions": {"a": {"$ref": "#/definitions/a"}}}
    assert not _schema(document).problems_with(_schema(document))
