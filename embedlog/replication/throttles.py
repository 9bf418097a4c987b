"""Throttles: limits on the bytes a second of replication, for named replicas (KIP-73).

                limited bytes           broker setting with the limit
    leader      sent to followers       leader.replication.throttled.rate
    follower    fetched from leaders    follower.replication.throttled.rate

The topic settings leader.replication.throttled.replicas and follower.replication.throttled.replicas
name the replicas. A throttle delays only replicas that are catching up, but it also counts the
bytes of named in-sync replicas. The rate is an average over replication.quota.window.num windows of
replication.quota.window.size.seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from embedlog.common import deque
from embedlog.config import BrokerConfig

LEADER_RATE = "leader.replication.throttled.rate"
FOLLOWER_RATE = "follower.replication.throttled.rate"
ALL = "*"


class Throttle:
    """The throttle of one broker in one direction.

    Callable from any thread. If a race loses a sample, that does no harm. A topic's setting
    concerns this broker if it is "*" or names `node_id`, as in "partition:broker".
    """

    def __init__(
        self, name: str, node_id: int, config: BrokerConfig, monotonic_ms: Callable[[], int]
    ) -> None:
        self._name = name
        self._node_id = node_id
        self._config = config
        self._monotonic_ms = monotonic_ms
        self._topics: dict[str, frozenset[int] | None] = {}
        """Topic -> its throttled partitions; None for all."""
        self._samples: deque[tuple[int, int]] = deque()
        """(start of a window, bytes counted in it), the oldest first."""

    def configure(self, topic: str, replicas: Sequence[str]) -> None:
        """Take over the setting of a topic: "*", or "partition:broker" texts such as "0:1"."""
        if ALL in replicas:
            self._topics[topic] = None
            return
        pairs = [text.split(":") for text in replicas]
        named = frozenset(
            int(partition) for partition, node_id in pairs if int(node_id) == self._node_id
        )
        if named:
            self._topics[topic] = named
        else:
            self._topics.pop(topic, None)

    def covers(self, topic: str, partition: int) -> bool:
        if not self._topics or topic not in self._topics:
            return False
        named = self._topics[topic]
        return named is None or partition in named

    def record(self, size: int) -> None:
        """Count `size` bytes of a throttled partition."""
        window_ms = self._window_ms
        begin_ms = self._monotonic_ms() // window_ms * window_ms
        samples = self._samples
        if samples and samples[-1][0] == begin_ms:
            size += samples.pop()[1]
        samples.append((begin_ms, size))

    @property
    def is_exceeded(self) -> bool:
        rate = self._rate
        samples = self._samples
        if rate is None or not samples:
            return False
        now_ms, window_ms = self._monotonic_ms(), self._window_ms
        count: int = self._config.replication_quota_window_num
        while samples and samples[0][0] <= now_ms - count * window_ms:
            samples.popleft()
        if not samples:
            return False
        elapsed_ms = max(now_ms - samples[0][0], window_ms)
        return sum(size for _, size in samples) * 1000 > rate * elapsed_ms

    @property
    def _window_ms(self) -> int:
        seconds: int = self._config.replication_quota_window_size_seconds
        return seconds * 1000

    @property
    def _rate(self) -> int | None:
        """The limit in bytes a second; None without a limit. It may change at any time."""
        for texts, _ in self._config.sources():
            if self._name in texts:
                return int(texts[self._name])
        return None


class Throttles:
    """The throttles of both directions."""

    def __init__(self, node_id: int, config: BrokerConfig, monotonic_ms: Callable[[], int]) -> None:
        self.leader = Throttle(LEADER_RATE, node_id, config, monotonic_ms)
        self.follower = Throttle(FOLLOWER_RATE, node_id, config, monotonic_ms)

    def configure(
        self, topic: str, *, leader_replicas: Sequence[str], follower_replicas: Sequence[str]
    ) -> None:
        self.leader.configure(topic, leader_replicas)
        self.follower.configure(topic, follower_replicas)
