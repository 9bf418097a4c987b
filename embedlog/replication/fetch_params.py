"""What a fetch asks for as a whole: how much, how long to wait, for whom."""

from __future__ import annotations

from embedlog.replication.partition import Isolation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.replication.throttles import Throttle
    from wire.schemas import fetch

FIRST_WITH_RACKS = 11
"""The version from which a consumer says where it stands, and may read from followers."""

FIRST_WITH_IDS = 13
"""The version from which topics are named by id."""

FIRST_WITH_STATE = 15
"""The version from which the replica's id is in `replica_state`."""

NO_BROKER_EPOCH = -1


class FetchParams:
    """The part of a fetch that holds for all its partitions."""

    __slots__ = (
        "isolation",
        "leader_throttle",
        "max_bytes",
        "max_wait_ms",
        "may_read_followers",
        "min_bytes",
        "rack_id",
        "replica_epoch",
        "replica_id",
        "target_bytes",
        "tells_high_watermark",
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
        self.may_read_followers = version >= FIRST_WITH_RACKS and self.replica_id < 0
        """Will a replica that does not lead do? Consumers that know of racks may be sent to one."""
        self.rack_id = ""
        """Where the consumer stands, if a replica near to it is to be preferred."""
        self.leader_throttle: Throttle | None = None
        """The limit on what this broker sends to followers; None on the only broker."""
        self.tells_high_watermark = False
        """Is a new high watermark worth an answer to a follower that waits?"""
        self.replica_epoch = NO_BROKER_EPOCH
        """Of the registration of the follower's broker."""
        if self.replica_id >= 0:
            self.isolation = Isolation.LOG_END
            self.replica_epoch = request.replica_state.replica_epoch
        self.uses_topic_ids = version >= FIRST_WITH_IDS
        self.target_bytes = max_bytes
        """Once that much was read no further partition is."""
