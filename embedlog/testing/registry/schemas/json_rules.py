"""Compatibility of JSON Schemas: does the new schema accept every document that the old accepts?

The rules, as Confluent's registry documents them:

    type                 may grow: {integer} -> {number}, {string} -> {string, null}
    enum                 may grow or vanish; `const` is an enum of one
    limits               may widen or vanish (maxLength, minimum, multipleOf, maxItems, ...)
    pattern, format      pattern may vanish; format does not count
    required             may lose names, and gain names of properties with a default; names
                         without a schema in `properties` do not count
    dependencies         may vanish; a list may lose names
    property removed     if the new schema takes other properties: any value (open content model),
                         or values of a schema that accepts the old property (partially open)
    property added       if the old schema was open: only with a schema that accepts everything;
                         else optional or with a default, and if the old schema was partially open,
                         with a schema that accepts the old additional properties
    additionalProperties may open or widen, not close or narrow; so also the items of arrays
    allOf                each new part must accept the old schema or one of its parts; a schema
                         that accepts one part of an old allOf accepts the whole
    anyOf, oneOf         each old part must be accepted by a new part
    not                  may narrow or vanish

`$ref` leads into the document, or to a registered reference.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from embedlog.testing.registry.schemas.kinds import Problem

_TYPES = frozenset(("null", "boolean", "object", "array", "number", "integer", "string"))
_UPPER = {
    "maxLength": "MAX_LENGTH", "maximum": "MAXIMUM", "exclusiveMaximum": "EXCLUSIVE_MAXIMUM",
    "maxItems": "MAX_ITEMS", "maxProperties": "MAX_PROPERTIES",
}  # fmt: skip
_LOWER = {
    "minLength": "MIN_LENGTH", "minimum": "MINIMUM", "exclusiveMinimum": "EXCLUSIVE_MINIMUM",
    "minItems": "MIN_ITEMS", "minProperties": "MIN_PROPERTIES",
}  # fmt: skip
_SUMS = ("anyOf", "oneOf")


def problems(
    new: Any, new_others: Mapping[str, Any], old: Any, old_others: Mapping[str, Any]
) -> list[Problem]:
    """Return the reasons why `new` refuses documents of `old`; each with its named references."""
    return _Comparison(_Document(new, new_others), _Document(old, old_others)).run(new, old, "#")


class _Document:
    """A document and its references by name."""

    def __init__(self, document: Any, others: Mapping[str, Any]) -> None:
        self._document = document
        self._others = others

    def resolve(self, schema: Any) -> Any:
        """Follow `$ref` to the schema itself."""
        for _ in range(100):  # a circle of references alone accepts nothing; JSON Schema forbids it
            if not (isinstance(schema, dict) and isinstance(schema.get("$ref"), str)):
                return schema
            schema = self._target(schema["$ref"])
        return True

    def _target(self, reference: str) -> Any:
        name, _, pointer = reference.partition("#")
        found = self._others.get(name, True) if name else self._document
        if name and isinstance(self._document, dict) and self._document.get("$id") == name:
            found = self._document
        for part in pointer.split("/")[1:]:
            key = part.replace("~1", "/").replace("~0", "~")
            if isinstance(found, dict):
                found = found.get(key, True)
            elif isinstance(found, list) and key.isdigit() and int(key) < len(found):
                found = found[int(key)]
            else:
                return True
        return found


class _Comparison:
    """One comparison of a new and an old document."""

    def __init__(self, new: _Document, old: _Document) -> None:
        self._new = new
        self._old = old
        self._begun: set[tuple[int, int]] = set()
        """Pairs under comparison: a recursive schema meets them again."""

    def run(self, new: Any, old: Any, path: str) -> list[Problem]:
        new, old = self._new.resolve(new), self._old.resolve(old)
        if _accepts_all(new) or old is False:
            return []
        if new is False:
            return [Problem("SCHEMA_REMOVED", path, "The new schema accepts nothing")]
        if old is True:
            old = {}
        pair = (id(new), id(old))
        if pair in self._begun:
            return []
        self._begun.add(pair)
        try:
            return self._compared(new, old, path)
        finally:
            self._begun.discard(pair)

    def _accepts(self, new: Any, old: Any) -> bool:
        return not self.run(new, old, "#")

    def _compared(self, new: dict[str, Any], old: dict[str, Any], path: str) -> list[Problem]:
        for word in _SUMS:
            if word in old and _is_only(old, word):
                return self._old_sum(new, old[word], word, path)
        if any(self._accepts(new, part) for part in old.get("allOf", ())):
            return []  # documents of the old schema satisfy each part
        found = self._products(new, old, path)
        found += self._new_sums(new, old, path)
        if "not" in new and not ("not" in old and self._accepts(old["not"], new["not"])):
            text = "The new schema excludes more by 'not'"
            found.append(Problem("NOT_TYPE_EXTENDED", f"{path}/not", text))
        found += _values(new, old, path)
        types = _types(old)
        if types & {"number", "integer"}:
            found += _multiples(new, old, path)
        if "object" in types:
            found += self._objects(new, old, path)
        if "array" in types:
            found += self._arrays(new, old, path)
        return found

    # Combined schemas

    def _old_sum(
        self, new: dict[str, Any], parts: list[Any], word: str, path: str
    ) -> list[Problem]:
        text = f"The new schema refuses a part of the old {word}"
        return [
            Problem("COMBINED_TYPE_SUBSCHEMAS_CHANGED", f"{path}/{word}/{index}", text)
            for index, part in enumerate(parts)
            if not self._accepts(new, part)
        ]

    def _new_sums(self, new: dict[str, Any], old: dict[str, Any], path: str) -> list[Problem]:
        found = []
        for word in _SUMS:
            if word not in new:
                continue
            olds = old.get(word, [old])
            for index, part in enumerate(olds):
                if not any(self._accepts(each, part) for each in new[word]):
                    text = f"No part of the new {word} accepts the old schema's part {index}"
                    found.append(Problem("SUM_TYPE_NARROWED", f"{path}/{word}", text))
        return found

    def _products(self, new: dict[str, Any], old: dict[str, Any], path: str) -> list[Problem]:
        whole = {name: value for name, value in old.items() if name != "allOf"}
        found = []
        for index, part in enumerate(new.get("allOf", ())):
            olds = [*old.get("allOf", ()), whole]
            if not any(self._accepts(part, each) for each in olds):
                text = "The new schema requires more by 'allOf'"
                found.append(Problem("PRODUCT_TYPE_EXTENDED", f"{path}/allOf/{index}", text))
        return found

    # Objects

    def _objects(self, new: dict[str, Any], old: dict[str, Any], path: str) -> list[Problem]:
        ours, theirs = new.get("properties", {}), old.get("properties", {})
        found = []
        for name in sorted(ours.keys() & theirs.keys()):
            found += self.run(ours[name], theirs[name], f"{path}/properties/{name}")
        for name in sorted(theirs.keys() - ours.keys()):
            found += self._removed(new, theirs[name], name, path)
        for name in sorted(ours.keys() - theirs.keys()):
            found += self._added(new, old, name, path)
        found += self._rest_of_object(new, old, path)
        found += self._dependencies(new, old, path)
        required = set(new.get("required", ())) - set(old.get("required", ()))
        for name in sorted(required & ours.keys() & theirs.keys()):
            if not _has_default(self._new.resolve(ours[name])):
                place = f"{path}/required/{name}"
                text = "The new schema requires a property that was optional"
                found.append(Problem("REQUIRED_ATTRIBUTE_ADDED", place, text))
        return found

    def _removed(self, new: dict[str, Any], property_: Any, name: str, path: str) -> list[Problem]:
        place = f"{path}/properties/{name}"
        others = _others(new, name)
        if others is False and self._old.resolve(property_) is not False:
            text = "The new schema lacks a property and allows no others"
            return [Problem("PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL", place, text)]
        if others is False or self._accepts(others, property_):
            return []
        kind = "PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL"
        return [Problem(kind, place, "The new schema's other properties refuse the removed one")]

    def _added(
        self, new: dict[str, Any], old: dict[str, Any], name: str, path: str
    ) -> list[Problem]:
        place = f"{path}/properties/{name}"
        property_ = self._new.resolve(new["properties"][name])
        others = _others(old, name)
        is_required = name in new.get("required", ()) and not _has_default(property_)
        if is_required and not _accepts_all(others):
            kind = "REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL"
            return [Problem(kind, place, "The new schema requires a property that is new")]
        if others is False or self._accepts(property_, others):
            return []
        if _accepts_all(others):
            kind = "PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL"
            text = "The old schema allows any value for the new property"
        else:
            kind = "PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL"
            text = "The new property refuses values of the old schema's other properties"
        return [Problem(kind, place, text)]

    def _rest_of_object(self, new: dict[str, Any], old: dict[str, Any], path: str) -> list[Problem]:
        place = f"{path}/additionalProperties"
        ours, theirs = new.get("additionalProperties", True), old.get("additionalProperties", True)
        found = []
        if ours is False and theirs is not False:
            text = "The new schema allows no other properties"
            found.append(Problem("ADDITIONAL_PROPERTIES_REMOVED", place, text))
        elif theirs is not False and not self._accepts(ours, theirs):
            text = "The new schema allows fewer other properties"
            found.append(Problem("ADDITIONAL_PROPERTIES_NARROWED", place, text))
        patterns, before = new.get("patternProperties", {}), old.get("patternProperties", {})
        for pattern in sorted(patterns):
            found += self.run(
                patterns[pattern],
                before.get(pattern, theirs),
                f"{path}/patternProperties/{pattern}",
            )
        for pattern in sorted(before.keys() - patterns.keys()):
            found += self.run(ours, before[pattern], f"{path}/patternProperties/{pattern}")
        return found

    def _dependencies(self, new: dict[str, Any], old: dict[str, Any], path: str) -> list[Problem]:
        found = []
        for word in ("dependencies", "dependentRequired", "dependentSchemas"):
            before = old.get(word, {})
            for name, given in sorted(new.get(word, {}).items()):
                place, was = f"{path}/{word}/{name}", before.get(name)
                if isinstance(given, list):
                    if not (isinstance(was, list) and set(given) <= set(was)):
                        text = "The new schema requires more properties beside this one"
                        found.append(Problem("DEPENDENCY_ARRAY_EXTENDED", place, text))
                elif was is None or isinstance(was, list) or not self._accepts(given, was):
                    text = "The new schema requires more of objects with this property"
                    found.append(Problem("DEPENDENCY_SCHEMA_ADDED", place, text))
        return found

    # Arrays

    def _arrays(self, new: dict[str, Any], old: dict[str, Any], path: str) -> list[Problem]:
        found = []
        if new.get("uniqueItems") and not old.get("uniqueItems"):
            text = "The new schema requires different items"
            found.append(Problem("UNIQUE_ITEMS_ADDED", f"{path}/uniqueItems", text))
        ours, our_rest = _items(new)
        theirs, their_rest = _items(old)
        for index in range(max(len(ours), len(theirs))):
            mine = ours[index] if index < len(ours) else our_rest
            other = theirs[index] if index < len(theirs) else their_rest
            found += self.run(mine, other, f"{path}/items/{index}")
        found += self._further(our_rest, their_rest, f"{path}/items")
        # A validator ignores it beside one schema for all items; Confluent's registry does not.
        word = "additionalItems"
        if not isinstance(new.get("items"), list) and word in new:
            found += self._further(new[word], old.get(word, True), f"{path}/{word}")
        return found

    def _further(self, new: Any, old: Any, path: str) -> list[Problem]:
        """Compare the schemas of all further items."""
        if new is False and old is not False:
            text = "The new schema allows no further items"
            return [Problem("ADDITIONAL_ITEMS_REMOVED", path, text)]
        return self.run(new, old, path)


def _accepts_all(schema: Any) -> bool:
    return schema is True or schema == {}


def _is_only(schema: dict[str, Any], word: str) -> bool:
    notes = {word, "title", "description", "$id", "$schema", "default", "definitions", "$defs"}
    return not schema.keys() - notes


def _types(schema: dict[str, Any]) -> set[str]:
    given = schema.get("type")
    found = set(_TYPES) if given is None else {given} if isinstance(given, str) else set(given)
    return found | {"integer"} if "number" in found else found


def _has_default(schema: Any) -> bool:
    return isinstance(schema, dict) and "default" in schema


def _others(schema: dict[str, Any], name: str) -> Any:
    """Return the schema of a property that `properties` does not name."""
    for pattern, found in schema.get("patternProperties", {}).items():
        if _matches(pattern, name):
            return found
    return schema.get("additionalProperties", True)


def _matches(pattern: str, name: str) -> bool:
    import re

    try:
        return re.search(pattern, name) is not None
    except re.error:  # a pattern of JavaScript that Python does not know
        return False


def _items(schema: dict[str, Any]) -> tuple[list[Any], Any]:
    """Return the schemas of the first items, and the schema of all others."""
    items = schema.get("prefixItems", schema.get("items", True))
    if isinstance(items, list):
        rest = "items" if "prefixItems" in schema else "additionalItems"
        return items, schema.get(rest, True)
    return [], items


def _values(new: dict[str, Any], old: dict[str, Any], path: str) -> list[Problem]:
    """Return the problems of type, enum and limits."""
    found = []
    if not _types(old) <= _types(new):
        lost = ", ".join(sorted(_types(old) - _types(new)))
        kind = "TYPE_NARROWED" if _types(old) & _types(new) else "TYPE_CHANGED"
        found.append(Problem(kind, path, f"The new schema refuses the type {lost}"))
    allowed, before = _choices(new), _choices(old)
    if allowed is not None and (before is None or any(each not in allowed for each in before)):
        kind = "ENUM_ARRAY_NARROWED" if before is not None else "ENUM_ARRAY_ADDED"
        found.append(Problem(kind, f"{path}/enum", "The new schema refuses values by 'enum'"))
    if before is None:
        found += _limits(new, old, path)
    return found


def _choices(schema: dict[str, Any]) -> list[Any] | None:
    if "const" in schema:
        return [schema["const"]]
    return schema.get("enum")


def _limits(new: dict[str, Any], old: dict[str, Any], path: str) -> list[Problem]:
    found = []
    for words, sign, verb in ((_UPPER, 1, "DECREASED"), (_LOWER, -1, "INCREASED")):
        for word, name in words.items():
            ours, theirs = new.get(word), old.get(word)
            # Draft 4 has booleans as exclusive limits.
            if ours is None or ours is False or (word.startswith("min") and ours == 0):
                continue
            if theirs is None or theirs is False:
                kind = f"{name}_ADDED"
            elif (ours - theirs) * sign < 0:
                kind = f"{name}_{verb}"
            else:
                continue
            text = f"The new schema has {word} {ours}, the old one {theirs}"
            found.append(Problem(kind, f"{path}/{word}", text))
    if "pattern" in new and new["pattern"] != old.get("pattern"):
        kind = "PATTERN_CHANGED" if "pattern" in old else "PATTERN_ADDED"
        found.append(Problem(kind, f"{path}/pattern", "The new schema has another pattern"))
    return found


def _multiples(new: dict[str, Any], old: dict[str, Any], path: str) -> list[Problem]:
    ours, theirs = new.get("multipleOf"), old.get("multipleOf")
    if ours is None or (theirs is not None and theirs % ours == 0):
        return []
    kind = "MULTIPLE_OF_CHANGED" if theirs is not None else "MULTIPLE_OF_ADDED"
    text = f"The new schema has multipleOf {ours}, the old one {theirs}"
    return [Problem(kind, f"{path}/multipleOf", text)]
