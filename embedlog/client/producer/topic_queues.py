"""The batches of one topic that wait to be sent: a queue for each partition."""

from __future__ import annotations

from embedlog.client.producer.partitioner import POSITIVE, StickyPartition, murmur2
from embedlog.common import deque

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.client.metadata import TopicInfo
    from embedlog.client.producer.partitioner import NodeLatencies
    from embedlog.client.producer.producer_batch import ProducerBatch
    from wire.produce_template import ProduceTarget

_CACHED_KEYS_MAX = 65_536
_RATIO_WORSE_STEP = 0.05
_RATIO_BETTER_STEP = 0.005


class PartitionQueue:
    """The batches of one partition that wait for the sender, oldest first."""

    __slots__ = ("batches", "is_muted", "open", "partition", "target", "topic")

    def __init__(self, topic: TopicQueues, partition: int) -> None:
        self.topic = topic
        self.partition = partition
        self.batches: deque[ProducerBatch] = deque()
        self.open: ProducerBatch | None = None
        """The last batch, while records may still join it."""
        self.is_muted = False
        """One request at a time (max.in.flight 1), and one is under way."""
        self.target: ProduceTarget | None = None
        """What its requests have in common, once the sender has made one."""

    def close_open(self) -> None:
        """Let no more records into the last batch."""
        if self.open is not None:
            self.open.close()
            self.open = None

    def insert(self, batch: ProducerBatch) -> None:
        """Put back a batch that was sent, before what was not.

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
    """The queues of one topic, and which of them records without a key join."""

    __slots__ = ("by_key", "compression_ratio", "info", "name", "queues", "sticky", "sticky_queue")

    def __init__(self, name: str, sticky: StickyPartition, info: TopicInfo) -> None:
        self.name = name
        self.info = info
        """The topic as metadata last described it."""
        self.queues: dict[int, PartitionQueue] = {}
        self.by_key: dict[bytes, PartitionQueue] = {}
        """Where records with these keys go, as long as the topic has so many partitions."""
        self.sticky = sticky
        self.sticky_queue: PartitionQueue | None = None
        """The queue of the sticky partition; None when another is to be chosen."""
        self.compression_ratio = 1.0
        """Estimate of compressed to plain size."""

    def queue(self, partition: int) -> PartitionQueue:
        """The queue of `partition`, made when first asked for."""
        found = self.queues.get(partition)
        if found is None:
            found = self.queues[partition] = PartitionQueue(self, partition)
        return found

    def queue_of(self, key: bytes) -> PartitionQueue:
        """The queue that the hash of `key` decides, remembered: hashing 8 bytes takes 1 us.

        When the memory is full it is emptied; a dict that evicts one by one would cost each hit.
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
        """Move the estimate: up fast when batches compress worse, down slowly."""
        if observed > self.compression_ratio:
            self.compression_ratio = max(self.compression_ratio + _RATIO_WORSE_STEP, observed)
        else:
            self.compression_ratio = max(self.compression_ratio - _RATIO_BETTER_STEP, observed)

    def choose_sticky(self, latencies: NodeLatencies, *, adaptive: bool) -> PartitionQueue:
        """Choose the next partition for records without a key.

        At random among those that have a leader. `adaptive`, once each partition of the topic has
        had a batch: rather one with a short queue, and none whose leader does not keep up.
        """
        info = self.info
        available = info.available or [each.partition for each in info.partitions]
        sizes = None
        if adaptive and len(self.queues) >= len(info.partitions):
            if latencies.is_watching:
                quick = [
                    number
                    for number in available
                    if not latencies.is_slow(info.partitions[number].leader)
                ]
                available = quick or available
            sizes = [len(self.queue(number).batches) for number in available]
        chosen = self.sticky_queue = self.queue(self.sticky.choose(available, sizes))
        return chosen


def _is_before(waiting: ProducerBatch, batch: ProducerBatch) -> bool:
    """Do the numbers of `waiting` come before those of `batch`? They may have begun again at 0."""
    if waiting.base_sequence < 0:
        return False
    return 0 < (batch.base_sequence - waiting.base_sequence) & 0x7FFF_FFFF < 0x4000_0000
