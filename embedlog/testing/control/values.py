"""Python values as JSON: the answers of the control door.

bytes                     {"@text": "..."} if they are UTF-8, else {"@base64": "..."}
dataclasses, named tuples objects with their fields
other keys than text      their text
objects of the table      {"@noun": "broker", "arguments": {"node_id": 1}}
kept objects              {"@kept": "registry_fault-1", "@noun": "registry_fault"}
all others                {"@repr": "..."}
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

from embedlog.common import Value

Handle = Callable[[Any], dict[str, Any] | None]
"""Returns the reference to an object that is no value; None for other objects."""


def as_json(value: Any, handle: Handle) -> Any:
    """Return a value that `json.dumps` takes."""
    if value is None or isinstance(value, bool | int | str) and not isinstance(value, Enum):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, bytes | bytearray | memoryview):
        return _bytes(bytes(value))
    found = handle(value)
    if found is not None:
        return found
    if isinstance(value, Mapping):
        return {_key(name): as_json(each, handle) for name, each in value.items()}
    if is_dataclass(value):
        return {each.name: as_json(getattr(value, each.name), handle) for each in fields(value)}
    if isinstance(value, Value):
        return {name: as_json(each, handle) for name, each in vars(value).items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return {name: as_json(getattr(value, name), handle) for name in value._fields}
    if isinstance(value, set | frozenset):
        return [as_json(each, handle) for each in sorted(value, key=repr)]
    if isinstance(value, Iterable):
        return [as_json(each, handle) for each in value]
    return {"@repr": repr(value)}


def _bytes(value: bytes) -> dict[str, str]:
    try:
        return {"@text": value.decode()}
    except UnicodeDecodeError:
        return {"@base64": base64.b64encode(value).decode()}


def _key(name: Any) -> str:
    if isinstance(name, tuple):
        return "-".join(map(str, name))
    return name.decode("utf-8", "backslashreplace") if isinstance(name, bytes) else str(name)
