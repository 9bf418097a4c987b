"""Python values as JSON: the answers of the control door.

bytes                     {"@text": "..."} if they are UTF-8, else {"@base64": "..."}
times                     text of ISO 8601
dataclasses, named tuples objects with their fields, without the fields that their text leaves out
other keys than text      their text; `orders-0` for a partition
objects of the table      {"@noun": "broker", "arguments": {"node_id": 1}}
kept objects              {"@noun": "fault", "@kept": "fault-1", "@repr": "<FaultRule ...>"}
all others                {"@repr": "..."}
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from enum import Enum
from typing import Any

from embedlog.common import Value
from embedlog.testing.control.tags import key_text

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
    if isinstance(value, datetime):
        return value.isoformat()
    found = handle(value)
    if found is not None:
        return found
    if isinstance(value, Mapping):
        return {key_text(name): as_json(each, handle) for name, each in value.items()}
    if is_dataclass(value):
        told = [each.name for each in fields(value) if each.repr]
        return {name: as_json(getattr(value, name), handle) for name in told}
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
