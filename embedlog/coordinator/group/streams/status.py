"""The status codes of a StreamsGroupHeartbeat's answer.

They tell the application about its group, beside an answer that has no error.
"""

from __future__ import annotations

from embedlog.common import Value
from wire.schemas.streams_group_heartbeat import Status

STALE_TOPOLOGY = 0
MISSING_SOURCE_TOPICS = 1
INCORRECTLY_PARTITIONED_TOPICS = 2
MISSING_INTERNAL_TOPICS = 3
SHUTDOWN_APPLICATION = 4
ASSIGNMENT_DELAYED = 5
MISSING_CLIENT_TAGS = 6


class Problem(Value):
    """A reason for which no tasks can be assigned now."""

    code: int
    text: str


def row(code: int, text: str) -> Status:
    """Return a status as the answer has it."""
    return Status(status_code=code, status_detail=text)
