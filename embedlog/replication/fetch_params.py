"""The parameters of a fetch as a whole: size, waiting time, isolation, reader."""

from __future__ import annotations

from embedlog.replication.partition import Isolation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.replication.throttles import Throttle
    from wire.schemas import fetch

FIRST_WITH_RACKS = 11
"""The first version in which a consumer names its rack and may read from followers."""

FIRST_WITH_IDS = 13
"""The first version that names topics by id."""

FIRST_WITH_STATE = 15
"""The first version with the replica's id in `replica_state`."""

NO_BROKER_EPOCH = -1


class FetchParams:
    """The parameters of one fetch that are the same for all its partitions."""

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
        """`max_bytes` is the broker's limit on the size of a response."""
        asked = request.max_bytes
        self.max_bytes = max_bytes = asked if asked < max_bytes else max_bytes
        asked = request.min_bytes
        self.min_bytes = asked if asked < max_bytes else max_bytes
        self.max_wait_ms = request.max_wait_ms
        self.isolation = request.isolation_level
        self.replica_id = (
            request.replica_id if version < FIRST_WITH_STATE else request.replica_state.replica_id
        )
        """The follower's broker id; negative for a consumer."""
        self.may_read_followers = version >= FIRST_WITH_RACKS and self.replica_id < 0
        """Whether a follower may serve the fetch: true for consumers that can name a rack."""
        self.rack_id = ""
        """The rack of the consumer, set only if `replica.selector.class` prefers replicas there."""
        self.leader_throttle: Throttle | None = None
        """The limit on the bytes that this broker sends to followers; None on the only broker."""
        self.tells_high_watermark = False
        """Whether a new high watermark ends the wait of a follower's fetch."""
        self.replica_epoch = NO_BROKER_EPOCH
        """The epoch of the follower's broker registration."""
        if self.replica_id >= 0:
            self.isolation = Isolation.LOG_END
            self.replica_epoch = request.replica_state.replica_epoch
        self.uses_topic_ids = version >= FIRST_WITH_IDS
        self.target_bytes = max_bytes
        """After this many bytes of records no further partition is read."""
