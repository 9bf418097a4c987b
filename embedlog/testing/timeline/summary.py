"""What a request names and what its answer refuses, read from the decoded messages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from embedlog.errors import error_name

_NAMES = {
    "name": "topics",
    "topic": "topics",
    "topic_name": "topics",
    "group_id": "groups",
    "group": "groups",
    "transactional_id": "transactional_ids",
    "member_id": "members",
}
"""Field -> the list of an event's `fields` that has its values."""
_INDEXES = ("index", "partition", "partition_index")
_TOPIC_IDS = ("topic_id",)
_SHOWN_MAX = 8
"""Places in the text of an event."""


def places(request: Any, topic_name: Any) -> dict[str, list[str]]:
    """Return the topics, partitions, groups, ids and members that a request names.

    `topic_name` returns the name of a topic id, or "".
    """
    found: dict[str, list[str]] = {}
    for owner, name, value in _walk(request):
        if name in _TOPIC_IDS and any(value):
            _put(found, "topics", topic_name(value) or value.hex())
        elif name == "name" and "Topic" not in type(owner).__name__:
            continue  # of a protocol, a setting, a feature
        elif name in _NAMES and value and isinstance(value, str):
            _put(found, _NAMES[name], value)
        elif name in _INDEXES and isinstance(value, int):
            topic = found.get("topics", [""])[-1]
            _put(found, "partitions", f"{topic}-{value}" if topic else str(value))
        elif name in ("key", "coordinator_keys") and value and "key_type" in _fields(owner):
            _put(found, "groups" if owner.key_type == 0 else "transactional_ids", value)
    return found


def shown(found: dict[str, list[str]]) -> str:
    """Return the places as a text for people."""
    topics = found.get("partitions") or found.get("topics") or []
    others = [
        f"{kind[:-1].replace('_', ' ')} {each}"
        for kind in ("groups", "transactional_ids", "members")
        for each in found.get(kind, ())
    ]
    parts = [*topics[:_SHOWN_MAX], *others]
    if len(topics) > _SHOWN_MAX:
        parts.insert(_SHOWN_MAX, f"and {len(topics) - _SHOWN_MAX} more")
    return ", ".join(parts)


def errors(response: Any) -> tuple[str, ...]:
    """Return the names of the errors in an answer, each once, in their order."""
    found: dict[str, None] = {}
    for _, name, value in _walk(response):
        if name == "error_code" and value:
            found[error_name(value)] = None
    return tuple(found)


def _put(found: dict[str, list[str]], kind: str, text: str) -> None:
    values = found.setdefault(kind, [])
    if text not in values:
        values.append(text)


def _fields(message: Any) -> tuple[str, ...]:
    return getattr(type(message), "__slots__", ())


def _walk(message: Any) -> Iterator[tuple[Any, str, Any]]:
    """Yield (owner, field, value) of a message and everything inside it, in the declared order."""
    for name in _fields(message):
        value = getattr(message, name)
        if isinstance(value, list):
            for each in value:
                if _fields(each):
                    yield from _walk(each)
                elif isinstance(each, str | int):
                    yield message, _SINGULAR.get(name, name), each
        elif _fields(value):
            yield from _walk(value)
        else:
            yield message, name, value


_SINGULAR = {
    "topics": "topic",
    "topic_names": "topic",
    "groups": "group",
    "groups_names": "group",
    "partitions": "partition",
    "partition_indexes": "partition",
    "transactional_ids": "transactional_id",
}
"""Field that is a list of plain values -> the field that one value would be."""
