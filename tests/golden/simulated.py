"""A cluster of this process as a target: connections without sockets, and simulated time."""

from __future__ import annotations

import struct
import time
from typing import Any

from embedlog.cluster.cluster import Cluster
from embedlog.testing import sim_runtime
from embedlog.testing.loopback_transport import LoopbackChannels
from tests.golden.targets import ANSWER_MS_MAX, Closed

_SIZE = struct.Struct(">i")


class Simulated:
    """A cluster in memory, in this thread, whose clock moves only during waits. Close
    it after use.
    """

    is_patient = False

    def __init__(self, settings: dict[str, str]) -> None:
        # The wall clock shows the present time, which answers are compared with.
        self._runtime = sim_runtime(seed=1, wall_ms=int(time.time() * 1000))
        self._cluster = Cluster(config=settings, runtime=self._runtime)

    def connect(self) -> LoopbackLink:
        """Return a connection without a socket."""
        return LoopbackLink(self._cluster)

    def let_pass(self, delay_ms: int) -> None:
        """Move the clock, and run due work."""
        self._runtime.scheduler.run_for(delay_ms)

    def close(self) -> None:
        self._cluster.close()


class LoopbackLink:
    """Frames to and from the network service of a cluster; it answers inside `send`."""

    def __init__(self, cluster: Cluster, node_id: int | None = None) -> None:
        """`node_id` chooses one of several brokers; a single broker needs none."""
        self._channels = LoopbackChannels(cluster, node_id)
        self._end = self._channels.connect("127.0.0.1", 9092)
        self._channels.poll(0)
        self._events: list[Any] = []

    def send(self, payload: bytes) -> None:
        """Send one frame."""
        if self._end.is_closed:
            raise Closed
        self._channels.send(self._end, [_SIZE.pack(len(payload)), payload])

    def receive(self) -> bytes:
        """Wait for one frame, letting simulated time pass."""
        if not self.answered():
            self._events += self._channels.poll(ANSWER_MS_MAX)
        if not self._events:
            raise TimeoutError
        event = self._events.pop(0)
        if event.reason:
            raise Closed
        return bytes(event.frame)

    def answered(self) -> bool:
        """Return whether a frame is available."""
        self._events += self._channels.poll(0)
        return bool(self._events)

    def close(self) -> None:
        self._channels.close_all()
