"""All fetchers of a broker, one for each leader, as one duty of the scheduler.

Any thread may report a changed partition (`note`); the duty acts on it. A round of the duty steps
only the fetchers that have work: an answer, the end of a delay, a partition to follow.
"""

from __future__ import annotations

from _heapq import heappop, heappush

from embedlog.replication.fetcher.followed_partition import FollowedPartition
from embedlog.replication.fetcher.replica_fetcher import ReplicaFetcher
from embedlog.runtime.locks import Rank, ranked_lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from embedlog.common import TopicPartition
    from embedlog.replication.membership import Membership
    from embedlog.replication.partition import Partition
    from embedlog.replication.throttles import Throttle
    from embedlog.runtime import Runtime


class Fetchers:
    """The fetchers of one broker. Any thread may call the public methods, with any lock held.

    `wake` is called without any lock when a partition may have new records or offsets to read.
    """

    def __init__(
        self,
        runtime: Runtime,
        node_id: int,
        membership: Membership,
        throttle: Throttle,
        wake: Callable[[Partition], None],
    ) -> None:
        self._scheduler = runtime.scheduler
        self._clock = runtime.clock
        self._node_id = node_id
        self._membership = membership
        self._throttle = throttle
        self._wake = wake
        self._lock = ranked_lock(Rank.FETCHERS)
        self._news: dict[TopicPartition, Partition] = {}
        """Changed partitions. The duty decides from which leader to fetch them, if any."""
        self._held: dict[TopicPartition, Partition | None] = {}
        """Partition that a test holds back -> the `Partition` to fetch after `release`, or None."""
        self._followed: dict[TopicPartition, FollowedPartition] = {}
        self._fetchers: dict[int, ReplicaFetcher] = {}
        self._ready: dict[ReplicaFetcher, None] = {}
        self._due: list[tuple[int, int]] = []
        """A heap of (monotonic time, leader)."""
        self._is_closed = False
        runtime.scheduler.add(self)

    def close(self) -> None:
        self._is_closed = True
        self._scheduler.remove(self)

    def note(self, partition: Partition) -> None:
        """Let the duty fetch a changed partition from its present leader, or stop fetching it."""
        with self._lock:
            self._news[partition.topic_partition] = partition
        self._scheduler.notify(self)

    def hold(self, topic_partition: TopicPartition) -> None:
        """Stop fetching the partition until `release` is called, so that its replica lags."""
        with self._lock:
            followed = self._followed.get(topic_partition)
            self._held.setdefault(topic_partition, None)
            if followed is not None:
                self._news[topic_partition] = followed.partition
        self._scheduler.notify(self)

    def release(self, topic_partition: TopicPartition) -> None:
        with self._lock:
            partition = self._held.pop(topic_partition, None)
            if partition is not None:
                self._news[topic_partition] = partition
        self._scheduler.notify(self)

    # Called by the scheduler

    def run_once(self, now_ms: int) -> int | None:
        """Act on changed partitions, and step every fetcher that has work."""
        if self._news:
            with self._lock:
                news = self._news.copy()
            for key, partition in news.items():
                self._place_news(key, partition)
        while self._due and self._due[0][0] <= now_ms:
            self._ready[self._fetchers[self._due[0][1]]] = None
            heappop(self._due)
        for fetcher in list(self._ready):
            self._step(fetcher)
        if self._ready or self._news:
            return 0
        return max(0, self._due[0][0] - now_ms) if self._due else None

    def _place_news(self, key: TopicPartition, partition: Partition) -> None:
        # An instruction next to the `try`: no Ctrl-C can come in between and lose the partition.
        # It leaves the table before the work, because it may change again meanwhile.
        del self._news[key]
        try:
            self._place(partition)
        except BaseException:
            self._news.setdefault(key, partition)
            raise

    def _step(self, fetcher: ReplicaFetcher) -> None:
        if fetcher not in self._ready:
            return
        del self._ready[fetcher]
        try:
            next_ms = fetcher.step()
            if next_ms is not None and (next_ms, fetcher.leader) not in self._due:
                heappush(self._due, (next_ms, fetcher.leader))
        except BaseException:
            self._ready[fetcher] = None
            raise

    def _place(self, partition: Partition) -> None:
        """Fetch the partition from its present leader, or stop fetching it."""
        key = partition.topic_partition
        former = self._followed.pop(key, None)
        if former is not None:
            fetcher = self._fetchers[former.leader]
            is_same = (
                former.partition is partition
                and former.leader == partition.leader
                and former.leader_epoch == partition.leader_epoch
                and key not in self._held
            )
            if is_same and not partition.is_leader and not partition.retired_with:
                self._followed[key] = former
                return
            fetcher.remove(former)
            self._ready[fetcher] = None
        leader = partition.leader
        if partition.is_leader or partition.retired_with or leader < 0 or leader == self._node_id:
            return
        if key in self._held:
            self._held[key] = partition
            return
        followed = self._followed[key] = FollowedPartition(partition)
        fetcher = self._fetcher(followed.leader)
        fetcher.add(followed)
        self._ready[fetcher] = None

    def _fetcher(self, leader: int) -> ReplicaFetcher:
        fetcher = self._fetchers.get(leader)
        if fetcher is None:
            fetcher = self._fetchers[leader] = ReplicaFetcher(
                leader,
                self._node_id,
                self._membership,
                self._clock,
                throttle=self._throttle,
                is_ready=self._is_ready,
                wake=self._wake,
            )
        return fetcher

    def _is_ready(self, fetcher: ReplicaFetcher) -> None:
        if not self._is_closed:
            self._ready[fetcher] = None
            self._scheduler.notify(self)
