"""Answers of the door as the values that the same calls return in Python.

The table names the type of each answer: `list[LogRecord]` makes `LogRecord`s again, and
`dict[TopicPartition, int]` has its keys again. Types that are not listed here stay as they are.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from functools import cache
from typing import Any

from embedlog.common import TopicPartition
from embedlog.testing.control.tags import place_of
from embedlog.testing.inspection.connections import ConnectionValue
from embedlog.testing.inspection.group_values import GroupMember, GroupValue
from embedlog.testing.inspection.partition import EpochValue, ProducerValue
from embedlog.testing.inspection.transactions import TransactionValue
from embedlog.testing.leaks import Leak
from embedlog.testing.registry.faults import RegistryRequest
from embedlog.testing.seen_request import SeenRequest
from embedlog.testing.time.timers import DueTimer
from embedlog.testing.timeline.event import Event
from embedlog.testing.topics.record import LogRecord

_CLASSES: dict[str, type] = {
    each.__name__: each
    for each in (
        ConnectionValue,
        DueTimer,
        EpochValue,
        Event,
        GroupMember,
        GroupValue,
        Leak,
        LogRecord,
        ProducerValue,
        RegistryRequest,
        SeenRequest,
        TransactionValue,
    )
}
_LISTS: dict[str, Callable[[Any], Any]] = {
    "list": list,
    "Sequence": list,
    "Iterable": list,
    "tuple": tuple,
    "set": set,
    "frozenset": frozenset,
}
_KEYS: dict[str, Callable[[str], Any]] = {
    "int": int,
    "TopicPartition": lambda text: TopicPartition(*place_of(text)),
}


def typed(annotation: str, value: Any) -> Any:
    """Return an answer with the type that an annotation names."""
    return _typed(_parsed(annotation), value) if annotation else value


@cache
def _parsed(annotation: str) -> ast.expr:
    return ast.parse(annotation, mode="eval").body


def _typed(node: ast.expr, value: Any) -> Any:
    if value is None:
        return None
    if isinstance(node, ast.BinOp):  # `X | None`; other unions are of plain types
        return _typed(node.left, value)
    if isinstance(node, ast.Subscript):
        return _generic(node, value)
    name = node.id if isinstance(node, ast.Name) else ""
    if name == "TopicPartition" and isinstance(value, list):
        return TopicPartition(*value)
    if name == "datetime" and isinstance(value, str):
        return datetime.fromisoformat(value)
    kind = _CLASSES.get(name)
    if kind is None or not is_dataclass(kind) or not isinstance(value, Mapping):
        return value
    given = {
        each.name: typed(str(each.type), value[each.name])
        for each in fields(kind)
        if each.name in value
    }
    return kind(**given)


def _generic(node: ast.Subscript, value: Any) -> Any:
    name = node.value.id if isinstance(node.value, ast.Name) else ""
    inner = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    if name in {"dict", "Mapping"} and isinstance(value, Mapping):
        key_name = inner[0].id if isinstance(inner[0], ast.Name) else ""
        if key_name not in _KEYS:
            return value
        key = _KEYS[key_name]
        return {key(each): _typed(inner[1], below) for each, below in value.items()}
    if name not in _LISTS or not isinstance(value, list):
        return value
    is_fixed = name == "tuple" and not isinstance(inner[-1], ast.Constant)
    if is_fixed and len(inner) == len(value):
        return tuple(_typed(*pair) for pair in zip(inner, value, strict=True))
    return _LISTS[name](_typed(inner[0], each) for each in value)
