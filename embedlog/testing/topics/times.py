"""Timestamps of tests: milliseconds or a `datetime`."""

from __future__ import annotations

from datetime import datetime

_INT64_MAX = 2**63 - 1


def milliseconds_of(timestamp: int | datetime) -> int:
    """Return a timestamp in milliseconds since the epoch."""
    if isinstance(timestamp, datetime):
        if timestamp.tzinfo is None:
            raise ValueError(f"timestamp {timestamp!r} has no time zone")
        return round(timestamp.timestamp() * 1000)
    if type(timestamp) is not int:
        raise TypeError(f"timestamp {timestamp!r}: expected milliseconds as int, or a datetime")
    if not -1 <= timestamp <= _INT64_MAX:
        raise ValueError(f"timestamp {timestamp}: expected milliseconds from 0 on, or -1 for none")
    return timestamp
