"""The controller: the only writer of the cluster's state.

Every change has the same steps: check it by Kafka's rules against the present image, write its
records to the metadata log as one batch, publish the new image by one assignment, notify the broker
through `on_change`. All of that happens under the controller lock, so changes and notifications
have one order. Lock order: controller, then partition. The lock is re-entrant, because a
notification may lead to another change.
"""

from __future__ import annotations

from embedlog import errors
from embedlog.common import TopicPartition, uuid_to_text
from embedlog.controller import config_changes, features
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
from embedlog.controller.new_topics import NewTopic as NewTopic
from embedlog.controller.new_topics import Planner
from embedlog.controller.replay import partition_registration, topic_record
from embedlog.controller.state import ControllerState
from embedlog.errors import KafkaError
from embedlog.logger import Logger

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from typing import Any

    from embedlog.config import BrokerConfig
    from embedlog.controller.brokers import Brokers
    from embedlog.controller.directories import Directories
    from embedlog.controller.metadata_log import MetadataLog
    from embedlog.controller.partitions import Partitions
    from embedlog.runtime import Runtime

_log = Logger("controller")

PRODUCER_ID_BLOCK_SIZE = 1000


class Controller:
    """The controller of one cluster, callable from any thread.

    Errors are `KafkaError`s with Kafka's codes and messages.
    """

    def __init__(
        self,
        runtime: Runtime,
        metadata_log: MetadataLog,
        config: BrokerConfig,
        *,
        cluster_id: str | None = None,
        node_ids: Sequence[int] = (),
    ) -> None:
        """Replay the log. A new log gets the cluster id `cluster_id`, or a random one.

        Without `node_ids` the only broker is the one in `config`. With them the cluster has several
        brokers, which must register: see `brokers`.
        """
        replayed = metadata_log.replay(_before_the_log(config, is_alone=not node_ids))
        self._state = state = ControllerState(metadata_log, config, replayed, runtime.clock)
        self._random = runtime.random
        self._config = config
        self._partitions: Partitions | None = None
        self._brokers: Brokers | None = None
        self._directories: Directories | None = None
        if not replayed.cluster_id:
            made = cluster_id or uuid_to_text(runtime.random.uuid())
            state.change([ClusterRecord(cluster_id=made)])
        state.apply_broker_configs()

    @property
    def image(self) -> MetadataImage:
        """The present state; read it once for one consistent view."""
        return self._state.image

    @property
    def on_change(self) -> Callable[[MetadataDelta], None]:
        """Called after every change, under the controller lock, in the order of changes."""
        return self._state.on_change

    @on_change.setter
    def on_change(self, heard: Callable[[MetadataDelta], None]) -> None:
        self._state.on_change = heard

    @property
    def removed_topic_ids(self) -> set[bytes]:
        """Ids of topics deleted before this opening, whose data a crash may have left behind."""
        return self._state.log.removed_topic_ids

    @property
    def partitions(self) -> Partitions:
        """The operations on partitions; made on first use, like `brokers` and `directories`."""
        with self._state.lock:
            if self._partitions is None:
                from embedlog.controller.partitions import Partitions

                self._partitions = Partitions(self._state)
            return self._partitions

    @property
    def brokers(self) -> Brokers:
        with self._state.lock:
            if self._brokers is None:
                from embedlog.controller.brokers import Brokers

                self._brokers = Brokers(self._state, self.partitions)
            return self._brokers

    @property
    def directories(self) -> Directories:
        with self._state.lock:
            if self._directories is None:
                from embedlog.controller.directories import Directories

                self._directories = Directories(self._state, self.partitions)
            return self._directories

    def compact(self) -> None:
        """Rewrite the metadata log if it is much longer than a snapshot.

        Requires: nothing is left of the topics in `removed_topic_ids`.
        """
        with self._state.lock:
            if self._state.log.needs_snapshot(self.image):
                self._state.log.rewrite(self.image)

    # Topics

    def create_topics(
        self, topics: Sequence[NewTopic], *, validate_only: bool = False
    ) -> dict[str, TopicImage | KafkaError]:
        """Create the valid topics of `topics` in one batch; return an image or error for each.

        The names must differ. A topic id is drawn even if the call only validates, as Kafka does.

        Raises:
            PolicyViolation: more than 10,000 partitions in all.
        """
        with self._state.lock:
            planner = Planner(self.image, self._config, self._random)
            planner.refuse_too_many_partitions(topics)
            results: dict[str, TopicImage | KafkaError] = {}
            records: list[Any] = []
            for topic in topics:
                try:
                    made, configs = planner.topic(topic)
                except KafkaError as error:
                    results[topic.name] = error
                    continue
                results[topic.name] = made
                records.append(topic_record(made))
                records.extend(_config_records(RESOURCE_TOPIC, topic.name, configs))
            if records and not validate_only:
                self._state.write(records, lambda: self._publish_created(results))
        if records and not validate_only:
            for result in results.values():
                if isinstance(result, TopicImage):
                    partitions = len(result.partitions)
                    _log.info("created topic %s with %d partitions", result.name, partitions)
        return results

    def _publish_created(self, results: dict[str, TopicImage | KafkaError]) -> None:
        """Publish the topics of `results`, and put their published images into it."""
        published = self.image.topics_by_name
        for name, result in results.items():
            if isinstance(result, TopicImage):
                results[name] = published[name]
        self._state.publish(
            created=[made for made in results.values() if isinstance(made, TopicImage)]
        )

    def delete_topic(self, topic_id: bytes) -> TopicImage:
        """Remove a topic and its settings; the broker deletes the data. Raises UnknownTopicId."""
        with self._state.lock:
            topic = self.image.topics_by_id.get(topic_id)
            if topic is None:
                raise errors.UnknownTopicId("This server does not host this topic ID.")
            self._state.change([RemoveTopicRecord(topic_id=topic_id)], deleted=[topic])
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
        """Grow a topic to `count` partitions; `assignments` gives the node ids of each new one.

        Raises:
            UnknownTopicOrPartition, InvalidPartitions, InvalidReplicaAssignment, PolicyViolation
        """
        with self._state.lock:
            topic = self.image.topics_by_name.get(name)
            if topic is None:
                raise errors.UnknownTopicOrPartition()
            planner = Planner(self.image, self._config, self._random)
            added = planner.additions(topic, count, assignments)
            present = len(topic.partitions)
            if validate_only:
                return
            record = PartitionsRecord(
                topic_id=topic.topic_id,
                partitions=[partition_registration(partition) for partition in added],
            )

            def publish() -> None:
                grown = self.image.topics_by_name[name]
                self._state.publish(partitions_added=[(grown, range(present, count))])

            self._state.write([record], publish)
        _log.info("topic %s has %d partitions, it had %d", name, count, present)

    def bump_leader_epochs(self, partitions: Iterable[TopicPartition], epoch_min: int = 0) -> None:
        """Begin a leader epoch, at least `epoch_min`, in partitions that may have lost
        records.

        Partitions that do not exist are left out.
        """
        with self._state.lock:
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
                    partitions=[partition_registration(image) for image in images],
                )
                for topic, images in by_topic.items()
            ]
            changed = [
                TopicPartition(topic, image.partition)
                for topic, images in by_topic.items()
                for image in images
            ]
            self._state.change(records, partitions_changed=changed)
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

        self._put_configs(
            resource_type,
            resource_name,
            lambda before: config_changes.apply(resource_type, before, changes),
            named={name for _, name, _ in changes},
            validate_only=validate_only,
        )

    def replace_configs(
        self,
        resource_type: int,
        resource_name: str,
        configs: Sequence[tuple[str, str | None]],
        *,
        validate_only: bool = False,
    ) -> None:
        """Replace all settings of a resource. Raises the errors of `alter_configs`."""
        from embedlog.controller import config_changes

        after = config_changes.replacement(configs)
        self._put_configs(
            resource_type,
            resource_name,
            lambda _before: after,
            named=after.keys(),
            validate_only=validate_only,
        )

    # Features

    def update_features(
        self, updates: Sequence[tuple[str, int, int]], *, validate_only: bool = False
    ) -> None:
        """Change levels of features: (name, level, kind). Raises InvalidUpdateVersion.

        See `features.changed_levels`.
        """
        from embedlog.controller import config_changes

        with self._state.lock:
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
            self._state.write(records, self._state.publish_broker_configs)
        for name, level in changes.items():
            _log.info("feature %s has level %d, it had %d", name, level, present.get(name, 0))

    # Producer ids

    def allocate_producer_ids(self, count: int = PRODUCER_ID_BLOCK_SIZE) -> range:
        """Return producer ids that no other call returns, not even after a crash."""
        with self._state.lock:
            first = self.image.next_producer_id
            self._state.change([ProducerIdsRecord(next_producer_id=first + count)])
            return range(first, first + count)

    def _put_configs(
        self,
        resource_type: int,
        resource_name: str,
        change: Callable[[Mapping[str, str]], dict[str, str]],
        *,
        named: Collection[str],
        validate_only: bool,
    ) -> None:
        """Replace a resource's settings by `change(present settings)`; log the names that changed.

        `named` are the settings that the request names, changed or not.
        """
        with self._state.lock:
            before = self.image.configs(resource_type).get(resource_name, {})
            changed = self._write_configs(
                resource_type,
                resource_name,
                before,
                change(before),
                named=named,
                validate_only=validate_only,
            )
        if changed:
            kinds = {RESOURCE_TOPIC: "topic", RESOURCE_BROKER: "broker", RESOURCE_GROUP: "group"}
            kind = kinds.get(resource_type, "client metrics subscription")
            shown = f"{kind} {resource_name}" if resource_name else "all brokers"
            _log.info("settings of %s changed: %s", shown, ", ".join(changed))

    def _write_configs(
        self,
        resource_type: int,
        resource_name: str,
        before: Mapping[str, str],
        after: Mapping[str, str],
        *,
        named: Collection[str],
        validate_only: bool,
    ) -> list[str]:
        """Validate and write the settings; return the names that changed. Requires: the lock."""
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
        state = self._state
        more, partitions = self._forget_eligible(resource_type, resource_name, changes)
        if resource_type == RESOURCE_BROKER:
            state.write([*records, *more], lambda: state.publish_broker_configs(partitions))
        elif resource_type == RESOURCE_GROUP:
            state.change(records, groups_changed=[resource_name])
        elif resource_type == RESOURCE_TOPIC:
            state.change(
                [*records, *more],
                changed_configs=[resource_name],
                partitions_changed=partitions,
            )
        else:
            state.change(records)
        if config_changes.UNCLEAN_ELECTIONS in changes and not self.image.is_alone:
            self.partitions.elect_unclean()
        return list(changes)

    def _forget_eligible(
        self, resource_type: int, resource_name: str, changes: Mapping[str, str | None]
    ) -> tuple[list[Any], Sequence[TopicPartition]]:
        """Return the records that follow from a new min.insync.replicas, and their partitions.

        Replicas that left an in-sync set under another minimum are no longer eligible to lead.
        """
        from embedlog.controller import config_changes

        image = self.image
        if config_changes.MIN_ISR not in changes or image.is_alone:
            return [], ()
        topics = image.topics_by_name
        concerned = topics.values() if resource_type != RESOURCE_TOPIC else [topics[resource_name]]
        forgotten = self.partitions.without_eligible(concerned)
        return forgotten.records(), forgotten.partitions


def _config_records(
    resource_type: int, resource_name: str, texts: Mapping[str, str | None]
) -> list[ConfigRecord]:
    return [
        ConfigRecord(
            resource_type=resource_type, resource_name=resource_name, name=name, value=text
        )
        for name, text in texts.items()
    ]


def _before_the_log(config: BrokerConfig, *, is_alone: bool) -> MetadataImage:
    """Return the image before the first record.

    As in Kafka with eligible leader replicas, the cluster-wide min.insync.replicas is explicit.
    """
    brokers = {}
    if is_alone:
        rack = config.broker_rack if config.is_set("broker.rack") else None
        brokers[config.node_id] = BrokerImage(config.node_id, rack)
    return MetadataImage(
        brokers=brokers,
        broker_configs={"": {"min.insync.replicas": str(config.min_insync_replicas)}},
    )
