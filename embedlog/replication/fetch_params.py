"""What a fetch asks for as a whole: how much, how long to wait, for whom."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from wire.schemas import fetch

FIRST_WITH_IDS = 13
"""The version from which topics are named by id."""

FIRST_WITH_STATE = 15
"""The version from which the replica's id is in `replica_state`."""


class FetchParams:
    """The part of a fetch that holds for all its partitions."""

    __slots__ = (
        "isolation",
        "max_bytes",
        "max_wait_ms",
        "min_bytes",
        "replica_id",
        "target_bytes",
        "uses_topic_ids",
    )

    def __init__(self, version: int, request: fetch.FetchRequest, max_bytes: int) -> None:
        """`max_bytes` is the most that the broker gives, whatever is asked for."""
        asked = request.max_bytes
        self.max_bytes = max_bytes = asked if asked < max_bytes else max_bytes
        asked = request.min_bytes
        self.min_bytes = asked if asked < max_bytes else max_bytes
        self.max_wait_ms = request.max_wait_ms
        self.isolation = request.isolation_level
        self.replica_id = (
            request.replica_id if version < FIRST_WITH_STATE else request.replica_state.replica_id
        )
        """-1 is a consumer, as is every other negative number."""
        self.uses_topic_ids = version >= FIRST_WITH_IDS
        self.target_bytes = max_bytes
        """Once that much was read no further partition is."""
