"""`Logs`: the partitions of a cluster for tests, each at the broker that leads it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from typing import TYPE_CHECKING, Any

from embedlog import errors
from embedlog.testing.names import hint
from embedlog.topic_names import INTERNAL_TOPICS

if TYPE_CHECKING:
    from embedlog.broker.broker import Broker
    from embedlog.client.producer.producer import Producer
    from embedlog.cluster.cluster import Cluster
    from embedlog.controller.metadata import MetadataImage
    from embedlog.replication.partition import Partition
    from embedlog.runtime import Runtime
    from embedlog.testing.topics.record import Formats


class Logs:
    """Finds the logs of a cluster, and keeps the memory of `kafka.topic(...)` between its calls.

    Every method may be called from any thread.
    """

    def __init__(
        self,
        cluster: Cluster,
        *,
        producer: Callable[..., Producer],
        registry: Callable[[], Any],
    ) -> None:
        """`producer` makes producers that are closed before the cluster. `registry` returns the
        schema registry of the test's cluster, or None.
        """
        self.cluster = cluster
        self.producer = producer
        self.registry = registry
        self.formats: dict[str, Formats] = {}
        """The formats of keys and values that the test gave for a topic."""
        self.unsettled: dict[tuple[str, int], int] = {}
        """End offsets that were not committed in time: do not wait for them again."""
        self._turns: dict[str, Iterator[int]] = {}
        self._transaction_numbers = count(1)

    @property
    def runtime(self) -> Runtime:
        return self.cluster.runtime

    def cores(self) -> list[Broker]:
        """Return the running brokers."""
        found = []
        for node in self.cluster.brokers:
            try:
                found.append(node.core)
            except errors.ClosedError:  # it does not run
                continue
        return found

    def image(self) -> MetadataImage:
        """Return the newest metadata that a running broker has.

        Raises:
            ClosedError: the cluster was closed, or no broker runs.
        """
        self.cluster.connect("")  # raises if the cluster was closed
        images = [core.image for core in self.cores()]
        if not images:
            raise errors.ClosedError("no broker runs, so there is no log to read")
        return max(images, key=lambda image: image.end_offset)

    def names(self) -> list[str]:
        """Return the names of all topics but the internal ones."""
        return sorted(self.image().topics_by_name.keys() - INTERNAL_TOPICS)

    def check(self, topic: str, *, missing_ok: bool = False) -> None:
        """Refuse a name that is no topic.

        Raises:
            UnknownTopicOrPartition: there is no such topic; the message has the nearest name.
            TypeError: the name is no text.
        """
        if not isinstance(topic, str):
            raise TypeError(f"a topic's name is a str, not {type(topic).__name__}: {topic!r}")
        image = self.image()
        if topic not in image.topics_by_name and not missing_ok:
            known = image.topics_by_name.keys() - INTERNAL_TOPICS
            raise errors.UnknownTopicOrPartition(
                f"there is no topic {topic!r}; {hint(topic, known)}"
            )

    def partition_count(self, topic: str) -> int:
        """Return the number of partitions; 0 for a topic that does not exist."""
        found = self.image().topics_by_name.get(topic)
        return 0 if found is None else len(found.partitions)

    def check_partition(self, topic: str, partition: int) -> None:
        """Refuse a partition that the topic does not have."""
        self.check(topic)
        partitions = self.partition_count(topic)
        if type(partition) is not int or not 0 <= partition < partitions:
            raise errors.UnknownTopicOrPartition(
                f"topic {topic!r} has no partition {partition!r}, only 0 to {partitions - 1}"
            )

    def hosts(self, topic: str, index: int) -> list[tuple[Broker, Partition]]:
        """Return every running broker that has a replica, with its replica."""
        found = []
        for core in self.cores():
            manager = core.replica_manager
            partition = manager.partitions.get((topic, index))
            if partition is None and _leads(core, topic, index):
                partition = manager.load(topic, index)
            if partition is not None:
                found.append((core, partition))
        return found

    def leader(self, topic: str, index: int) -> tuple[Broker, Partition]:
        """Return the broker that leads a partition, and its replica.

        Raises:
            LeaderNotAvailable: no running broker leads it.
        """
        found = leading(self.hosts(topic, index))
        if found is None:
            running = [core.node_id for core in self.cores()]
            raise errors.LeaderNotAvailable(
                f"partition {index} of {topic!r} has no leader: brokers {running} run"
            )
        return found

    def next_turn(self, topic: str) -> int:
        """Return a number that counts the records without a key: partitions take turns."""
        return next(self._turns.setdefault(topic, count()))

    def next_transactional_id(self) -> str:
        return f"embedlog-testing-{next(self._transaction_numbers)}"


def leading(hosts: list[tuple[Broker, Partition]]) -> tuple[Broker, Partition] | None:
    """Return the leader of the newest term, or None.

    A broker that is cut off may believe that it still leads.
    """
    leaders = [each for each in hosts if each[1].is_leader]
    return max(leaders, key=lambda each: each[1].leader_epoch, default=None)


def _leads(core: Broker, topic: str, index: int) -> bool:
    state = core.image.partition(topic, index)
    return state is not None and state.leader == core.node_id
