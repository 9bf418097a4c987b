"""`Heartbeats`: sessions of members in other processes, while time passes faster than for them.

Such a member sends its heartbeats by its own clock, a few in a minute of real time. When the
cluster's clock jumps, its session would end although the member is alive. This duty restarts the
time limits of members that would have sent their heartbeats.
"""

from __future__ import annotations

from collections.abc import Callable

from embedlog.cluster.cluster import Cluster
from embedlog.testing.time.traffic import Traffic
from embedlog.topic_names import OFFSETS_TOPIC

_INTERVAL_MS = 3_000
"""Interval while no member is alive: half of the shortest session that brokers allow by default."""


class Heartbeats:
    """A duty of the scheduler."""

    def __init__(self, cluster: Callable[[], Cluster], traffic: Traffic) -> None:
        self._cluster = cluster
        self._traffic = traffic

    def run_once(self, _now_ms: int) -> int | None:
        shortest: list[int] = []
        for node in self._cluster().brokers:
            if node.is_running and OFFSETS_TOPIC in node.core.image.topics_by_name:
                kept_ms = node.core.group_coordinator.keep_alive(self._traffic.is_alive)
                if kept_ms is not None:
                    shortest.append(kept_ms)
        return min(shortest) // 2 if shortest else _INTERVAL_MS
