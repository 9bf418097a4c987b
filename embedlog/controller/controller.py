"""The controller: the one writer of the cluster's state.

Every change goes the same way: check it by Kafka's rules against the present image, write its
records to the metadata log as one batch, publish the new image by one assignment, tell the broker
through `on_change`. All of that happens under the controller lock, so changes and notifications
have one order. Lock order: controller, then partition. The lock may be taken again by the thread
that holds it, because what a change completes may ask for another one.
"""

from __future__ import annotations

from embedlog import errors
from embedlog.common import TopicPartition, uuid_to_text
from embedlog.config import topic_config
from embedlog.controller import features, placement, topic_names
from embedlog.controller.metadata import (
    RESOURCE_BROKER,
    RESOURCE_GROUP,
    RESOURCE_TOPIC,
    BrokerImage,
    MetadataDelta,
    MetadataImage,
    PartitionImage,
    TopicImage,
)
from embedlog.controller.metadata_records import (
    ClusterRecord,
    ConfigRecord,
    FeatureRecord,
    PartitionsRecord,
    ProducerIdsRecord,
    RemoveTopicRecord,
)
from embedlog.controller.replay import ImageBuilder, partition_state, topic_record
from embedlog.errors import KafkaError
from embedlog.logs import Log
from embedlog.runtime.locks import Rank, ranked_rlock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from typing import Any

    from embedlog.config import BrokerConfig
    from embedlog.controller import config_changes
    from embedlog.controller.metadata_log import MetadataLog
    from embedlog.runtime import Runtime

_log = Log("controller")

PARTITIONS_PER_REQUEST_MAX = 10_000
PRODUCER_ID_BLOCK_SIZE = 1000


class NewTopic:
    """A topic that somebody wants. Counts of -1 mean the broker's defaults.

    `assignments` lays down the replicas instead: (partition, node ids), in any order.
    """

    __slots__ = ("assignments", "configs", "name", "partition_count", "replication_factor")

    def __init__(
        self,
        name: str,
        *,
        partition_count: int = -1,
        replication_factor: int = -1,
        assignments: Sequence[tuple[int, Sequence[int]]] = (),
        configs: Mapping[str, str | None] | None = None,
    ) -> None:
        self.name = name
        self.partition_count = partition_count
        self.replication_factor = replication_factor
        self.assignments = assignments
        self.configs = configs or {}


class Controller:
    """Callable from any thread. Errors are `KafkaError`s with Kafka's codes and messages."""

    def __init__(
        self,
        runtime: Runtime,
        metadata_log: MetadataLog,
        config: BrokerConfig,
        *,
        cluster_id: str | None = None,
        node_ids: Sequence[int] = (),
    ) -> None:
        """Replay the log. A log without a cluster gets one: `cluster_id`, or a random one.

        The brokers are `node_ids`; the one that `config` is of when none are named.
        """
        nodes = node_ids or (config.node_id,)
        self.image = metadata_log.replay(_before_the_log(nodes, config))
        """The present state; take the reference once."""
        self.on_change: Callable[[MetadataDelta], None] = _ignore
        """Called after every change, under the controller lock, in the order of changes."""
        self._lock = ranked_rlock(Rank.CONTROLLER)
        self._random = runtime.random
        self._log = metadata_log
        self._config = config
        if not self.image.cluster_id:
            made = cluster_id or uuid_to_text(runtime.random.uuid())
            self._write([ClusterRecord(cluster_id=made)])
        self._apply_broker_configs()

    @property
    def removed_topic_ids(self) -> set[bytes]:
        """Topics deleted before this opening, whose data may still be there after a crash."""
        return self._log.removed_topic_ids

    def compact(self) -> None:
        """Rewrite the metadata log when it is much longer than what it says.

        Requires: nothing is left of the topics in `removed_topic_ids`.
        """
        with self._lock:
            if self._log.needs_snapshot(self.image):
                self._log.rewrite(self.image)

    # Topics

    def create_topics(
        self, topics: Sequence[NewTopic], *, validate_only: bool = False
    ) -> dict[str, TopicImage | KafkaError]:
        """Make those of the topics that can be made, in one batch; say what became of each.

        The names must differ. A topic id is drawn even when only validating, as Kafka does.

        Raises:
            PolicyViolation: more than 10,000 partitions in all.
        """
        with self._lock:
            self._refuse_too_many_partitions(topics)
            results: dict[str, TopicImage | KafkaError] = {}
            records: list[Any] = []
            collisions = topic_names.Collisions(self.image.topics_by_name)
            for topic in topics:
                try:
                    made, configs = self._plan_topic(topic, collisions)
                except KafkaError as error:
                    results[topic.name] = error
                    continue
                results[topic.name] = made
                records.append(topic_record(made))
                records.extend(_config_records(RESOURCE_TOPIC, topic.name, configs))
            if records and not validate_only:
                self._write(records)
                published = self.image.topics_by_name
                results = {
                    name: result if isinstance(result, KafkaError) else published[name]
                    for name, result in results.items()
                }
                created = [made for made in results.values() if isinstance(made, TopicImage)]
                self._publish(created=created)
        if records and not validate_only:
            for made in created:
                partitions = len(made.partitions)
                _log.info("created topic %s with %d partitions", made.name, partitions)
        return results

    def delete_topic(self, topic_id: bytes) -> TopicImage:
        """Remove a topic and its settings; its data goes when the broker hears of it.

        Raises:
            UnknownTopicId: there is none of that id.
        """
        with self._lock:
            topic = self.image.topics_by_id.get(topic_id)
            if topic is None:
                raise errors.UnknownTopicId("This server does not host this topic ID.")
            self._change([RemoveTopicRecord(topic_id=topic_id)], deleted=[topic])
        _log.info("deleted topic %s", topic.name)
        return topic

    def create_partitions(
        self,
        name: str,
        count: int,
        *,
        assignments: Sequence[Sequence[int]] | None = None,
        validate_only: bool = False,
    ) -> None:
        """Let a topic have `count` partitions; the node ids of each new one may be laid down.

        Raises:
            UnknownTopicOrPartition, InvalidPartitions, InvalidReplicaAssignment, PolicyViolation
        """
        with self._lock:
            topic = self.image.topics_by_name.get(name)
            if topic is None:
                raise errors.UnknownTopicOrPartition()
            present = len(topic.partitions)
            _check_new_count(name, present, count)
            added = count - present
            if assignments is None:
                placed = placement.place(
                    self.image.brokers,
                    added,
                    topic.replication_factor,
                    first_partition=present,
                    random=self._random,
                )
            else:
                placed = self._manual_additions(topic, added, assignments)
            if validate_only:
                return
            partitions = [_new_partition(present + n, nodes) for n, nodes in enumerate(placed)]
            record = PartitionsRecord(
                topic_id=topic.topic_id,
                partitions=[partition_state(partition) for partition in partitions],
            )
            self._write([record])
            grown = self.image.topics_by_name[name]
            self._publish(partitions_added=[(grown, range(present, count))])
        _log.info("topic %s has %d partitions, it had %d", name, count, present)

    def bump_leader_epochs(self, partitions: Iterable[TopicPartition], epoch_min: int = 0) -> None:
        """Begin a new leader epoch in each partition, `epoch_min` or later: its log may have lost
        records. Partitions that do not exist are left out.
        """
        with self._lock:
            by_topic: dict[str, list[PartitionImage]] = {}
            for topic, number in partitions:
                image = self.image.partition(topic, number)
                if image is not None:
                    by_topic.setdefault(topic, []).append(image.next_epoch(epoch_min))
            if not by_topic:
                return
            records = [
                PartitionsRecord(
                    topic_id=self.image.topics_by_name[topic].topic_id,
                    partitions=[partition_state(image) for image in images],
                )
                for topic, images in by_topic.items()
            ]
            changed = [
                TopicPartition(topic, image.partition)
                for topic, images in by_topic.items()
                for image in images
            ]
            self._change(records, epochs_changed=changed)
        _log.info("%d partitions begin a new leader epoch", len(changed))

    # Settings

    def alter_configs(
        self,
        resource_type: int,
        resource_name: str,
        changes: Sequence[config_changes.Change],
        *,
        validate_only: bool = False,
    ) -> None:
        """Change some settings of a topic, broker, group or client metrics subscription.

        Raises:
            InvalidRequest, InvalidConfig, InvalidTopic, UnknownTopicOrPartition
        """
        from embedlog.controller import config_changes

        with self._lock:
            before = self.image.configs(resource_type).get(resource_name, {})
            after = config_changes.apply(resource_type, before, changes)
            changed = self._put_configs(
                resource_type,
                resource_name,
                before,
                after,
                named={name for _, name, _ in changes},
                validate_only=validate_only,
            )
        _tell_changed(resource_type, resource_name, changed)

    def replace_configs(
        self,
        resource_type: int,
        resource_name: str,
        configs: Sequence[tuple[str, str | None]],
        *,
        validate_only: bool = False,
    ) -> None:
        """Let a resource have these settings and no others. Raises as `alter_configs` does."""
        from embedlog.controller import config_changes

        with self._lock:
            before = self.image.configs(resource_type).get(resource_name, {})
            after = config_changes.replacement(configs)
            changed = self._put_configs(
                resource_type,
                resource_name,
                before,
                after,
                named=after.keys(),
                validate_only=validate_only,
            )
        _tell_changed(resource_type, resource_name, changed)

    # Features

    def update_features(
        self, updates: Sequence[tuple[str, int, int]], *, validate_only: bool = False
    ) -> None:
        """Let features have other levels: (name, level, kind), see `features.changed_levels`.

        Raises:
            InvalidUpdateVersion
        """
        from embedlog.controller import config_changes

        with self._lock:
            present = self.image.feature_levels
            changes = features.changed_levels(present, updates, self._config.node_id)
            records: list[Any] = [
                FeatureRecord(name=name, level=level) for name, level in changes.items()
            ]
            if validate_only or not records:
                return
            if changes.get(features.ELIGIBLE_LEADER_REPLICAS):
                for resource, text in config_changes.one_min_isr(self.image, self._config).items():
                    changed = {config_changes.MIN_ISR: text}
                    records += _config_records(RESOURCE_BROKER, resource, changed)
            self._write(records)
            self._apply_broker_configs()
            self._publish(broker_configs_changed=True)
        for name, level in changes.items():
            _log.info("feature %s has level %d, it had %d", name, level, present.get(name, 0))

    # Producer ids

    def allocate_producer_ids(self, count: int = PRODUCER_ID_BLOCK_SIZE) -> range:
        """Ids that nobody else has or will have, also after a crash."""
        with self._lock:
            first = self.image.next_producer_id
            self._change([ProducerIdsRecord(next_producer_id=first + count)])
            return range(first, first + count)

    # How a change happens

    def _write(self, records: Sequence[Any]) -> None:
        builder = ImageBuilder(self.image)
        for record in records:
            builder.apply(record)
        self.image = builder.build(self._log.append(records))

    def _publish(self, **what: Any) -> None:
        self.on_change(MetadataDelta(self.image, **what))

    def _change(self, records: Sequence[Any], **what: Any) -> None:
        self._write(records)
        self._publish(**what)

    def _apply_broker_configs(self) -> None:
        configs = self.image.broker_configs
        self._config.set_dynamic(configs.get("", {}), configs.get(str(self._config.node_id), {}))

    def _put_configs(
        self,
        resource_type: int,
        resource_name: str,
        before: Mapping[str, str],
        after: Mapping[str, str],
        *,
        named: Collection[str],
        validate_only: bool,
    ) -> list[str]:
        """Returns the names of the settings that changed. `named` are those a request is about."""
        from embedlog.controller import config_changes

        config_changes.validate(
            self.image,
            self._config,
            resource_type,
            resource_name,
            before=before,
            after=after,
            named=named,
        )
        changes = {
            name: after.get(name)
            for name in sorted(before.keys() | after.keys())
            if before.get(name) != after.get(name)
        }
        records = _config_records(resource_type, resource_name, changes)
        if validate_only or not records:
            return []
        if resource_type == RESOURCE_BROKER:
            self._write(records)
            self._apply_broker_configs()
            self._publish(broker_configs_changed=True)
        elif resource_type == RESOURCE_GROUP:
            self._change(records, groups_changed=[resource_name])
        elif resource_type == RESOURCE_TOPIC:
            self._change(records, changed_configs=[resource_name])
        else:
            self._change(records)
        return list(changes)

    # Planning topics

    def _refuse_too_many_partitions(self, topics: Sequence[NewTopic]) -> None:
        default: int = self._config.num_partitions
        total = sum(
            len(topic.assignments)
            or (default if topic.partition_count == -1 else max(topic.partition_count, 0))
            for topic in topics
        )
        if total > PARTITIONS_PER_REQUEST_MAX:
            raise errors.PolicyViolation("Excessively large number of partitions per request.")

    def _plan_topic(
        self, topic: NewTopic, collisions: topic_names.Collisions
    ) -> tuple[TopicImage, dict[str, str]]:
        topic_names.refuse_metadata_topic(topic.name)
        topic_names.validate_name(topic.name)
        if topic.name in self.image.topics_by_name:
            raise errors.TopicAlreadyExists(f"Topic '{topic.name}' already exists.")
        collisions.refuse(topic.name)
        configs = topic_config.validate(topic.configs, self._config)
        nodes = self._place(topic)
        partitions = tuple(_new_partition(number, at) for number, at in enumerate(nodes))
        return TopicImage(topic.name, self._random.uuid(), partitions), configs

    def _place(self, topic: NewTopic) -> list[placement.Assignment]:
        brokers = self.image.brokers
        if topic.assignments:
            return placement.manual_assignments(
                brokers,
                topic.assignments,
                partition_count=topic.partition_count,
                replication_factor=topic.replication_factor,
            )
        placement.validate_counts(topic.partition_count, topic.replication_factor)
        count, factor = topic.partition_count, topic.replication_factor
        return placement.place(
            brokers,
            self._config.num_partitions if count == -1 else count,
            self._config.default_replication_factor if factor == -1 else factor,
            random=self._random,
        )

    def _manual_additions(
        self, topic: TopicImage, added: int, assignments: Sequence[Sequence[int]]
    ) -> list[placement.Assignment]:
        if len(assignments) != added:
            raise errors.InvalidReplicaAssignment(
                f"Attempted to add {added} additional partition(s), but only"
                f" {len(assignments)} assignment(s) were specified.",
            )
        factor = topic.replication_factor
        for nodes in assignments:
            placement.validate_assignment(self.image.brokers, nodes, replication_factor=factor)
        return [tuple(nodes) for nodes in assignments]


def _tell_changed(resource_type: int, resource_name: str, names: Sequence[str]) -> None:
    if names:
        kinds = {RESOURCE_TOPIC: "topic", RESOURCE_BROKER: "broker", RESOURCE_GROUP: "group"}
        kind = kinds.get(resource_type, "client metrics subscription")
        shown = f"{kind} {resource_name}" if resource_name else "all brokers"
        _log.info("settings of %s changed: %s", shown, ", ".join(names))


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


def _new_partition(number: int, nodes: Sequence[int]) -> PartitionImage:
    replicas = tuple(nodes)
    return PartitionImage(
        partition=number, leader=replicas[0], leader_epoch=0, replicas=replicas, isr=replicas
    )


def _config_records(
    resource_type: int, resource_name: str, texts: Mapping[str, str | None]
) -> list[ConfigRecord]:
    return [
        ConfigRecord(
            resource_type=resource_type, resource_name=resource_name, name=name, value=text
        )
        for name, text in texts.items()
    ]


def _before_the_log(node_ids: Sequence[int], config: BrokerConfig) -> MetadataImage:
    """What is true before the first record.

    Kafka's eligible leader replicas make the cluster-wide min.insync.replicas explicit, so that
    every topic reports it as a dynamic default.
    """
    rack = config.broker_rack if config.is_set("broker.rack") else None
    return MetadataImage(
        brokers={node: BrokerImage(node, rack) for node in node_ids},
        broker_configs={"": {"min.insync.replicas": str(config.min_insync_replicas)}},
    )


def _ignore(_delta: MetadataDelta) -> None:
    """No broker is connected yet."""
