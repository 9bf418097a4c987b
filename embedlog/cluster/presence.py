"""`Presence`: the state of one broker that the other brokers of its cluster see."""

from __future__ import annotations

from collections.abc import Callable

from embedlog.cluster.door import Door
from embedlog.cluster.listening import Listening
from embedlog.cluster.running_broker import RunningBroker
from embedlog.config.broker_config import BrokerConfig


class Presence:
    """One broker over its starts and stops. Its `ClusterMember` alone changes it."""

    __slots__ = (
        "config", "door", "give_up", "is_hidden", "left_ms", "listening", "node_id", "running"
    )  # fmt: skip

    def __init__(
        self,
        node_id: int,
        config: BrokerConfig,
        door: Door,
        listening: Listening,
        give_up: Callable[[], None],
    ) -> None:
        self.node_id = node_id
        self.config = config
        self.door = door
        self.listening = listening
        self.give_up = give_up
        """Kills the broker, if it runs; called when its first log directory failed."""
        self.running: RunningBroker | None = None
        """None while the broker does not run."""
        self.is_hidden = False
        """True if metadata for clients leaves the broker out."""
        self.left_ms: int | None = None
        """Monotonic time of the last stop or kill."""
