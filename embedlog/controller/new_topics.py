"""New topics and partitions: checked by Kafka's rules, and placed."""

from __future__ import annotations

from embedlog import errors
from embedlog.common import Value
from embedlog.config import BrokerConfig, topic_config
from embedlog.controller import placement, topic_names
from embedlog.controller.metadata import MetadataImage, PartitionImage, TopicImage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from embedlog.runtime import Random

PARTITIONS_PER_REQUEST_MAX = 10_000


class NewTopic(Value):
    """A requested topic. Counts of -1 mean the broker's defaults.

    `assignments` gives the replicas instead of counts: (partition, node ids), in any order.
    """

    name: str
    partition_count: int = -1
    replication_factor: int = -1
    assignments: Sequence[tuple[int, Sequence[int]]] = ()
    configs: Mapping[str, str | None] = {}


class Planner:
    """Plans topics and partitions for one image, without changing it. Errors are Kafka's."""

    def __init__(self, image: MetadataImage, config: BrokerConfig, random: Random) -> None:
        self._image = image
        self._config = config
        self._random = random
        self._collisions = topic_names.Collisions(image.topics_by_name)

    def refuse_too_many_partitions(self, topics: Sequence[NewTopic]) -> None:
        default: int = self._config.num_partitions
        total = sum(
            len(topic.assignments)
            or (default if topic.partition_count == -1 else max(topic.partition_count, 0))
            for topic in topics
        )
        if total > PARTITIONS_PER_REQUEST_MAX:
            raise errors.PolicyViolation("Excessively large number of partitions per request.")

    def topic(self, wanted: NewTopic) -> tuple[TopicImage, dict[str, str]]:
        topic_names.refuse_metadata_topic(wanted.name)
        topic_names.validate_name(wanted.name)
        if wanted.name in self._image.topics_by_name:
            raise errors.TopicAlreadyExists(f"Topic '{wanted.name}' already exists.")
        self._collisions.refuse(wanted.name)
        configs = topic_config.validate(wanted.configs, self._config)
        partitions = tuple(
            placement.new_partition(self._image.brokers, number, nodes)
            for number, nodes in enumerate(self._place(wanted))
        )
        return TopicImage(wanted.name, self._random.uuid(), partitions), configs

    def additions(
        self, topic: TopicImage, count: int, assignments: Sequence[Sequence[int]] | None
    ) -> list[PartitionImage]:
        """Return the partitions that a topic needs to grow to `count`."""
        present = len(topic.partitions)
        _check_new_count(topic.name, present, count)
        brokers, added = self._image.brokers, count - present
        if assignments is None:
            placed = placement.place(brokers, added, topic.replication_factor, random=self._random)
        else:
            placed = self._manual_additions(topic, added, assignments)
        return [
            placement.new_partition(brokers, present + number, nodes)
            for number, nodes in enumerate(placed)
        ]

    def _place(self, topic: NewTopic) -> list[placement.Assignment]:
        brokers = self._image.brokers
        if topic.assignments:
            return placement.manual_assignments(
                brokers,
                topic.assignments,
                partition_count=topic.partition_count,
                replication_factor=topic.replication_factor,
            )
        placement.validate_counts(topic.partition_count, topic.replication_factor)
        count, factor = topic.partition_count, topic.replication_factor
        factor = self._config.default_replication_factor if factor == -1 else factor
        try:
            return placement.place(
                brokers,
                self._config.num_partitions if count == -1 else count,
                factor,
                random=self._random,
            )
        except errors.InvalidReplicationFactor as error:
            raise errors.InvalidReplicationFactor(
                f"Unable to replicate the partition {factor} time(s): {error.message}"
            ) from None

    def _manual_additions(
        self, topic: TopicImage, added: int, assignments: Sequence[Sequence[int]]
    ) -> list[placement.Assignment]:
        if len(assignments) != added:
            raise errors.InvalidReplicaAssignment(
                f"Attempted to add {added} additional partition(s), but only"
                f" {len(assignments)} assignment(s) were specified.",
            )
        brokers, factor = self._image.brokers, topic.replication_factor
        for number, nodes in enumerate(assignments, len(topic.partitions)):
            placement.validate_assignment(brokers, nodes, replication_factor=factor)
            placement.refuse_inactive(brokers, nodes, number)
        return [tuple(nodes) for nodes in assignments]


def _check_new_count(name: str, present: int, count: int) -> None:
    if count == present:
        raise errors.InvalidPartitions(f"Topic already has {present} partition(s).")
    if count < present:
        raise errors.InvalidPartitions(
            f"The topic {name} currently has {present} partition(s);"
            f" {count} would not be an increase.",
        )
    if count - present > PARTITIONS_PER_REQUEST_MAX:
        raise errors.PolicyViolation(
            "Excessively large number of additional partitions per request."
        )
