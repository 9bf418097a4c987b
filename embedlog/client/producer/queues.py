"""The queues of a producer's records, and the partition of records without a key.

Records without a key go to one partition until it has got about a batch, then to another partition
(KIP-794). This keeps batches full.
"""

from __future__ import annotations

from embedlog.client.producer.partitioners import POSITIVE, murmur2
from embedlog.common import deque

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _thread import RLock
    from collections.abc import Callable, Sequence

    from embedlog.client.metadata import TopicInfo
    from embedlog.client.producer.batch import ProducerBatch
    from embedlog.client.settings import Settings


class NodeLatencies:
    """The leaders that do not keep up: batches for them are ready, and none was sent for long.

    partitioner.availability.timeout.ms sets the limit; with 0 no leader is watched (KIP-794). Not
    thread-safe: the accumulator uses it under its lock.
    """

    def __init__(self, timeout_ms: int) -> None:
        self._timeout_ms = timeout_ms
        self._ready_ms: dict[int, int] = {}
        self._drained_ms: dict[int, int] = {}

    @property
    def is_watching(self) -> bool:
        return self._timeout_ms > 0

    def batch_was_ready(self, node_id: int, now_ms: int, *, could_be_sent: bool) -> None:
        """Note that a batch for the node was due, and whether it could be sent."""
        self._ready_ms[node_id] = now_ms
        if could_be_sent or node_id not in self._drained_ms:
            self._drained_ms[node_id] = now_ms

    def is_slow(self, node_id: int) -> bool:
        """Return whether batches for the node have waited longer than the limit."""
        ready_ms = self._ready_ms.get(node_id)
        return ready_ms is not None and ready_ms - self._drained_ms[node_id] > self._timeout_ms


_CACHED_KEYS_MAX = 65_536
_RATIO_WORSE_STEP = 0.05
_RATIO_BETTER_STEP = 0.005


class PartitionQueue:
    """The batches of one partition that wait for the sender, oldest first."""

    __slots__ = ("batches", "is_muted", "open", "partition", "topic")

    def __init__(self, topic: TopicQueues, partition: int) -> None:
        self.topic = topic
        self.partition = partition
        self.batches: deque[ProducerBatch] = deque()
        self.open: ProducerBatch | None = None
        """The last batch, while records may still join it."""
        self.is_muted = False
        """True while a request is in flight and max.in.flight allows only that one."""

    def close_open(self) -> None:
        if self.open is not None:
            self.open.close()
            self.open = None

    def insert(self, batch: ProducerBatch) -> None:
        """Put back a batch for a retry, before batches that were not sent.

        Batches with sequences stay in the order of their sequences.
        """
        position = 0
        if batch.base_sequence >= 0:
            for waiting in self.batches:
                if not _is_before(waiting, batch):
                    break
                position += 1
        self.batches.insert(position, batch)


class TopicQueues:
    """The queues of one topic; records without a key join its sticky queue."""

    def __init__(self, info: TopicInfo, rules: ProducerQueues) -> None:
        self.name = info.name
        self.info = info
        self.has_choice = len(info.partitions) > 1
        self.rules = rules
        self.queues: dict[int, PartitionQueue] = {}
        self.by_key: dict[bytes, PartitionQueue] = {}
        """The queues of these keys, while the topic has the same number of partitions."""
        self.sticky_queue: PartitionQueue | None = None
        """The queue for records without a key; None if the next record must choose one."""
        self.sticky_size = 0
        """Bytes of the batches that went to the sticky queue."""
        self.compression_ratio = 1.0

    def queue(self, partition: int) -> PartitionQueue:
        """Return the queue of `partition`, and make it at first use."""
        found = self.queues.get(partition)
        if found is None:
            found = self.queues[partition] = PartitionQueue(self, partition)
        return found

    def queue_of(self, key: bytes) -> PartitionQueue:
        """Return the queue of `key` by its hash, and remember it: hashing 8 bytes takes 1 us.

        A full cache is emptied at once; evicting keys one by one would slow down each hit.
        """
        by_key = self.by_key
        found = by_key.get(key)
        if found is None:
            hashed = murmur2(key) & POSITIVE
            if len(by_key) >= _CACHED_KEYS_MAX:
                by_key.clear()
            found = by_key[key] = self.queue(hashed % len(self.info.partitions))
        return found

    def learn_ratio(self, observed: float) -> None:
        """Adjust `compression_ratio`: raise it fast if batches compress worse, lower it slowly."""
        if observed > self.compression_ratio:
            self.compression_ratio = max(self.compression_ratio + _RATIO_WORSE_STEP, observed)
        else:
            self.compression_ratio = max(self.compression_ratio - _RATIO_BETTER_STEP, observed)

    def choose_sticky(self) -> PartitionQueue:
        """Choose the next partition for records without a key. Requires: the accumulator's lock.

        The choice is random among the partitions with a leader. Once each partition of the topic
        has had a batch, the adaptive rules apply: a shorter queue is more likely. A queue's weight
        is the length of the longest queue, plus 1, minus its own length.
        """
        info, rules = self.info, self.rules
        available = info.available or [each.partition for each in info.partitions]
        sizes: list[int] = []
        if rules.adaptive and len(self.queues) >= len(info.partitions):
            if rules.latencies.is_watching:
                is_slow = rules.latencies.is_slow
                quick = [n for n in available if not is_slow(info.partitions[n].leader)]
                available = quick or available
            sizes = [len(self.queue(number).batches) for number in available]
        self.sticky_size = 0
        if len(available) == 1:
            number = available[0]
        elif sizes and min(sizes) < max(sizes):
            number = _weighted(available, sizes, rules.below)
        else:
            number = available[rules.below(len(available))]
        chosen = self.sticky_queue = self.queue(number)
        return chosen

    def produced(self, queue: PartitionQueue, size: int) -> None:
        """Count a batch that went to `queue`; after enough bytes another queue becomes sticky.

        Requires: the accumulator's lock; the topic has several partitions.
        """
        if queue is self.sticky_queue:
            if self.rules.compresses:
                size = int(size * self.compression_ratio)
            self.sticky_size += size
            if self.sticky_size >= self.rules.switch_size:
                self.sticky_queue = None


def _weighted(
    available: Sequence[int], queue_sizes: Sequence[int], below: Callable[[int], int]
) -> int:
    longest = max(queue_sizes)
    drawn = below(sum(longest + 1 - size for size in queue_sizes))
    for partition, size in zip(available, queue_sizes, strict=True):
        drawn -= longest + 1 - size
        if drawn < 0:
            return partition
    raise AssertionError(f"weights of {queue_sizes} ended before the draw")


def _is_before(waiting: ProducerBatch, batch: ProducerBatch) -> bool:
    """Return whether `waiting` has lower sequences than `batch`, also after a restart at 0."""
    if waiting.base_sequence < 0:
        return False
    return 0 < (batch.base_sequence - waiting.base_sequence) & 0x7FFF_FFFF < 0x4000_0000


class ProducerQueues:
    """The queues of all topics that one producer has sent to."""

    def __init__(self, settings: Settings, below: Callable[[int], int], lock: RLock) -> None:
        """`below(n)` draws a number of [0, n). `lock` is the accumulator's."""
        self._lock = lock
        self._found: dict[str, TopicQueues] = {}
        self.below = below
        self.switch_size: int = max(min(settings["batch.size"], settings["buffer.memory"]), 1)
        """After this many bytes, when a batch ends, unkeyed records go to another partition."""
        self.adaptive: bool = settings["partitioner.adaptive.partitioning.enable"]
        """True to prefer short queues, and leaders that keep up."""
        self.compresses: bool = settings["compression.type"] != "none"
        self.latencies = NodeLatencies(settings["partitioner.availability.timeout.ms"])

    def queues(self, info: TopicInfo) -> TopicQueues:
        """Return the queues of a topic, made at first use, with the newest `info`."""
        found = self._found.get(info.name)
        if found is None:
            with self._lock:
                found = self._found.setdefault(info.name, TopicQueues(info, self))
        is_resized = len(info.partitions) != len(found.info.partitions)
        found.info = info
        if is_resized:
            found.has_choice = len(info.partitions) > 1
            found.by_key = {}  # set after `info`: a thread that fills it sees the new `info`
        return found

    def sticky_queue(self, topic: TopicQueues) -> PartitionQueue:
        """Return the queue that a record without a key joins now."""
        with self._lock:
            return topic.sticky_queue or topic.choose_sticky()
