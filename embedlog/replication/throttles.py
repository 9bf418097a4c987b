"""Limits on the bytes a second that replication moves, for the partitions that are named (KIP-73).

    leader      sent to followers: leader.replication.throttled.rate, and a topic's
                leader.replication.throttled.replicas
    follower    fetched from leaders: the same names with follower

The throttle slows down only replicas that catch up, but in-sync replicas count as well. The rate is
an average over replication.quota.window.num windows of replication.quota.window.size.seconds.
"""

from __future__ import annotations

from embedlog.common import deque

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from embedlog.config import BrokerConfig

LEADER_RATE = "leader.replication.throttled.rate"
FOLLOWER_RATE = "follower.replication.throttled.rate"
ALL = "*"


class Throttle:
    """One direction of one broker. Callable from any thread; a sample lost to a race does no harm.

    `node_id` is the broker that a topic's setting must name, as in "partition:broker".
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
        """(begin of a window, bytes in it), the oldest first."""

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
        """Bytes a second, or None for no limit. The setting may change while the broker runs."""
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
