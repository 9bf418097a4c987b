"""Debezium's envelope: `before`, `after`, `op`, with or without Connect's `schema`/`payload`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from embedlog.spark.pipeline.errors import DecodeError

_DELETE = "d"
_OPERATIONS = ("c", "u", "r", "d", "t")


class Change(NamedTuple):
    """One change of a table: the row after it, or for a deletion the row before it."""

    row: Any
    operation: str

    @property
    def is_delete(self) -> bool:
        return self.operation == _DELETE


def unwrap(value: Any) -> Change:
    """Return the row and the operation of an envelope.

    Raises:
        DecodeError: the value is not an envelope, or lacks the row that its operation needs.
    """
    envelope = value
    if isinstance(value, Mapping) and "payload" in value and "op" not in value:
        envelope = value["payload"]
    if not isinstance(envelope, Mapping) or "op" not in envelope:
        raise DecodeError("envelope: not a Debezium change: `op` is missing")
    operation = envelope["op"]
    if operation not in _OPERATIONS:
        raise DecodeError(f"envelope: unknown op {operation!r}")
    if operation == "t":
        raise DecodeError("envelope: op 't' truncates the table, which a sink cannot do")
    name = "before" if operation == _DELETE else "after"
    row = envelope.get(name)
    if row is None:
        raise DecodeError(f"envelope: op {operation!r} without `{name}`")
    return Change(row, operation)
