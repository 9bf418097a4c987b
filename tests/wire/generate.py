"""Values for any declared message and version: from hypothesis, or fast from a seeded Random.

Both respect the version: fields that do not exist keep their default, only nullable fields are
null, and some tagged fields keep their default.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
from random import Random
from typing import Any

from hypothesis import strategies as st

import wire
import wire.schemas
from wire.layout import Layout, Slot, layout

INT_BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
UINT_BITS = {"uint16": 16, "uint32": 32}
EXTREMES = (0, 1, -1, 127, 128, -128)


def messages() -> list[type[Any]]:
    """Return every declared message class."""
    found = []
    for module in pkgutil.iter_modules(wire.schemas.__path__):
        for cls in vars(importlib.import_module(f"wire.schemas.{module.name}")).values():
            if isinstance(cls, type) and getattr(cls, "__declaration__", None) is not None:
                found.append(cls)
    return found


def versions(cls: type[Any]) -> range:
    declared = wire.declaration(cls)
    return range(declared.first_version, declared.last_version + 1)


def all_versions() -> list[tuple[type[Any], int]]:
    return [(cls, version) for cls in messages() for version in versions(cls)]


# Strategies of hypothesis.


@functools.cache
def message_strategy(cls: type[Any], version: int) -> st.SearchStrategy[Any]:
    return _struct_strategy(layout(cls, version))


def _struct_strategy(part: Layout) -> st.SearchStrategy[Any]:
    fields = {slot.name: _slot_strategy(slot) for slot in part.slots + part.tagged}
    built = st.builds(part.cls, **fields)
    if not part.flexible:
        return built
    known = {slot.tag for slot in part.tagged}
    tag = st.integers(0, 2**31 - 1).filter(lambda number: number not in known)
    tags = st.one_of(st.just({}), st.dictionaries(tag, st.binary(max_size=8), max_size=2))
    return st.builds(_with_tags, built, tags)


def _with_tags(message: Any, tags: dict[int, bytes]) -> Any:
    if tags:
        message.unknown_tags = tags
    return message


def _slot_strategy(slot: Slot) -> st.SearchStrategy[Any]:
    strategy = _value_strategy(slot)
    if slot.nullable:
        strategy = st.none() | strategy
    if slot.tag is not None:
        strategy = st.just(slot.field.default_value()) | strategy
    return strategy


def _value_strategy(slot: Slot) -> st.SearchStrategy[Any]:
    kind = slot.kind
    if kind == "array":
        assert slot.element is not None
        return st.lists(_value_strategy(slot.element), max_size=2)
    if slot.layout is not None:
        return _struct_strategy(slot.layout)
    if kind in INT_BITS:
        half = 1 << INT_BITS[kind] - 1
        return st.integers(-half, half - 1)
    if kind in UINT_BITS:
        return st.integers(0, (1 << UINT_BITS[kind]) - 1)
    plain: dict[str, st.SearchStrategy[Any]] = {
        "boolean": st.booleans(),
        "float64": st.floats(allow_nan=False),
        "uuid": st.binary(min_size=16, max_size=16),
        "string": st.text(st.characters(codec="utf-8"), max_size=12),
        "bytes_": st.binary(max_size=12),
        "records_": st.binary(max_size=200),
    }
    return plain[kind]


# The same values, made faster, for tests that need many.


def random_message(cls: type[Any], version: int, random: Random) -> Any:
    """Return a message without unknown tags, which other implementations may not know."""
    return _random_struct(layout(cls, version), random)


def _random_struct(part: Layout, random: Random) -> Any:
    values = {}
    for slot in part.slots:
        values[slot.name] = _random_value(slot, random)
    for slot in part.tagged:
        if random.random() < 0.6:
            values[slot.name] = _random_value(slot, random)
    return part.cls(**values)


def _random_value(slot: Slot, random: Random) -> Any:
    if slot.nullable and random.random() < 0.2:
        return None
    kind = slot.kind
    if kind == "array":
        assert slot.element is not None
        count = 130 if random.random() < 0.004 else random.randrange(4)
        return [_random_value(slot.element, random) for _ in range(count)]
    if slot.layout is not None:
        return _random_struct(slot.layout, random)
    if kind in INT_BITS:
        if random.random() < 0.3:
            return random.choice(EXTREMES[:3])
        half = 1 << INT_BITS[kind] - 1
        return random.randrange(-half, half)
    if kind in UINT_BITS:
        return random.randrange(1 << UINT_BITS[kind])
    if kind == "boolean":
        return random.random() < 0.5
    if kind == "float64":
        return random.uniform(-1e300, 1e300)
    if kind == "uuid":
        return random.randbytes(16)
    size = random.choice((0, 1, 2, 7, 20, 126, 127, 128, 300) if random.random() < 0.1 else (0, 3))
    if kind == "string":
        return "".join(random.choice("abcÄ€😀\0") for _ in range(size))
    return random.randbytes(size * (60 if kind == "records_" else 1))
