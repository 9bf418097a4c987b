"""`Admin`: makes, describes, changes and deletes topics, settings and records.

    with cluster.admin() as admin:
        admin.create_topics([NewTopic("events", 3)]).check()

Every call about several items answers with one result or error for each, see `ItemResults`.
"""

from __future__ import annotations

from embedlog.client.admin_calls import AdminCalls
from embedlog.client.admin_results import (
    ClusterDescription,
    ConfigEntry,
    ConfigResource,
    CreatedTopic,
    ItemResults,
    LogDirectory,
    NewTopic,
    ReplicaInLogDirectory,
    ResourceType,
)
from embedlog.client.connect import connect
from embedlog.client.metadata import Node
from embedlog.client.offset_lookup import OffsetLookup
from embedlog.client.settings import ADMIN, parse
from embedlog.common import TopicPartition
from embedlog.errors import KafkaError, error_for
from embedlog.transport import ANY_NODE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from embedlog.client.connect import Target
    from embedlog.client.metadata import TopicInfo
    from embedlog.client.offset_lookup import OffsetAndTimestamp

_DELETES_BY_ID_FROM = 6
_BROKER_RESOURCES = (ResourceType.BROKER, ResourceType.BROKER_LOGGER)


class Admin:
    """The admin client. One thread at a time uses it.

    `target` is a cluster of this process or "host:port". `timeout_ms` of a call defaults to
    default.api.timeout.ms; a call that gets no answer in that time raises TimedOut.

    >>> with embedlog.open() as cluster, embedlog.Admin(cluster) as admin:
    ...     made = admin.create_topics({"events": 3})
    ...     len(admin.describe_topics(["events"])["events"].partitions)
    3
    """

    def __init__(
        self, target: Target = None, config: Mapping[str, Any] | None = None, **settings: Any
    ) -> None:
        self._settings = parse(ADMIN, config, settings)
        self._transport = connect(target, self._settings)
        self._calls = AdminCalls(self._transport, self._settings)
        self._metadata = self._calls.metadata

    # Topics

    def create_topics(
        self,
        topics: Iterable[NewTopic | str] | dict[str, int],
        *,
        validate_only: bool = False,
        timeout_ms: int | None = None,
    ) -> ItemResults[str, CreatedTopic]:
        """Make topics: of each a `NewTopic`, its name, or in a dict its name and partition count.

        A plain name leaves every choice to the broker.
        """
        from wire.schemas.create_topics import (
            CreatableReplicaAssignment,
            CreatableTopic,
            CreatableTopicConfig,
            CreateTopicsRequest,
        )

        wanted = (
            [NewTopic(name, count) for name, count in topics.items()]
            if isinstance(topics, dict)
            else [NewTopic(each) if isinstance(each, str) else each for each in topics]
        )
        request = CreateTopicsRequest(
            topics=[
                CreatableTopic(
                    name=each.name,
                    num_partitions=-1 if each.assignments else each.partition_count,
                    replication_factor=-1 if each.assignments else each.replication_factor,
                    assignments=[
                        CreatableReplicaAssignment(partition_index=index, broker_ids=list(ids))
                        for index, ids in each.assignments.items()
                    ],
                    configs=[
                        CreatableTopicConfig(name=key, value=_text(value))
                        for key, value in each.configs.items()
                    ],
                )
                for each in wanted
            ],
            timeout_ms=self._calls.timeout(timeout_ms),
            validate_only=validate_only,
        )
        response = self._calls.to_controller(request, timeout_ms)
        results: ItemResults[str, CreatedTopic] = ItemResults()
        for made in response.topics:
            if made.error_code:
                results.errors[made.name] = error_for(made.error_code, made.error_message)
                continue
            results.values[made.name] = CreatedTopic(
                made.name,
                made.topic_id,
                made.num_partitions,
                made.replication_factor,
                {config.name: config.value for config in made.configs or []},
            )
        return results

    def delete_topics(
        self, topics: Iterable[str | bytes], *, timeout_ms: int | None = None
    ) -> ItemResults[str | bytes, None]:
        """Delete topics with all their records, by name or by id (16 bytes)."""
        from wire.schemas.delete_topics import DeleteTopicsRequest, DeleteTopicState

        wanted = list(topics)
        request = DeleteTopicsRequest(timeout_ms=self._calls.timeout(timeout_ms))
        if self._calls.newest_version(DeleteTopicsRequest, timeout_ms) >= _DELETES_BY_ID_FROM:
            request.topics = [
                DeleteTopicState(name=each) if isinstance(each, str) else _by_id(each)
                for each in wanted
            ]
        else:
            request.topic_names = [each for each in wanted if isinstance(each, str)]
        response = self._calls.to_controller(request, timeout_ms)
        results: ItemResults[str | bytes, None] = ItemResults()
        for gone in response.responses:
            item = gone.topic_id if gone.topic_id in wanted else (gone.name or gone.topic_id)
            _put(results, item, None, gone.error_code, gone.error_message)
        return results

    def list_topics(
        self, *, include_internal: bool = False, timeout_ms: int | None = None
    ) -> dict[str, TopicInfo]:
        """Every topic of the cluster."""
        self._calls.describe_all(timeout_ms)
        topics = self._metadata.topics
        return {
            name: info for name, info in topics.items() if include_internal or not info.is_internal
        }

    def describe_topics(
        self, topics: Iterable[str], *, timeout_ms: int | None = None
    ) -> ItemResults[str, TopicInfo]:
        """Partitions, leaders and replicas of topics. Never makes a topic."""
        names = list(topics)
        results: ItemResults[str, TopicInfo] = ItemResults()
        self._calls.until_described(names, self._calls.timeout(timeout_ms))
        for name in names:
            info = self._metadata.topics.get(name)
            if info is not None:
                results.values[name] = info
                continue
            results.errors[name] = self._metadata.errors[name]
        return results

    def create_partitions(
        self,
        counts: Mapping[str, int],
        *,
        validate_only: bool = False,
        timeout_ms: int | None = None,
    ) -> ItemResults[str, None]:
        """Raise the number of partitions of topics to the given totals."""
        from wire.schemas.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic

        request = CreatePartitionsRequest(
            topics=[
                CreatePartitionsTopic(name=name, count=count, assignments=None)
                for name, count in counts.items()
            ],
            timeout_ms=self._calls.timeout(timeout_ms),
            validate_only=validate_only,
        )
        results: ItemResults[str, None] = ItemResults()
        for answer in self._calls.to_controller(request, timeout_ms).results:
            _put(results, answer.name, None, answer.error_code, answer.error_message)
        self._metadata.request_update()
        return results

    # Settings

    def describe_configs(
        self,
        resources: Iterable[ConfigResource],
        *,
        names: Sequence[str] | None = None,
        include_synonyms: bool = False,
        include_documentation: bool = False,
        timeout_ms: int | None = None,
    ) -> ItemResults[ConfigResource, dict[str, ConfigEntry]]:
        """The settings of topics, brokers, ...; `names` chooses some, else all."""
        from wire.schemas.describe_configs import DescribeConfigsRequest, DescribeConfigsResource

        results: ItemResults[ConfigResource, dict[str, ConfigEntry]] = ItemResults()
        for node_id, wanted in _by_node(resources).items():
            request = DescribeConfigsRequest(
                resources=[
                    DescribeConfigsResource(
                        resource_type=each.resource_type,
                        resource_name=each.name,
                        configuration_keys=None if names is None else list(names),
                    )
                    for each in wanted
                ],
                include_synonyms=include_synonyms,
                include_documentation=include_documentation,
            )
            for described in self._calls.call(node_id, request, timeout_ms).results:
                resource = ConfigResource(described.resource_type, described.resource_name)
                entries = {config.name: _config_entry(config) for config in described.configs}
                _put(results, resource, entries, described.error_code, described.error_message)
        return results

    def incremental_alter_configs(
        self,
        changes: Mapping[ConfigResource, Mapping[str, tuple[int, Any]]],
        *,
        validate_only: bool = False,
        timeout_ms: int | None = None,
    ) -> ItemResults[ConfigResource, None]:
        """Change single settings: {resource: {name: (AlterOperation, value)}}; others stay."""
        from wire.schemas.incremental_alter_configs import (
            AlterableConfig,
            AlterConfigsResource,
            IncrementalAlterConfigsRequest,
        )

        results: ItemResults[ConfigResource, None] = ItemResults()
        for node_id, wanted in _by_node(changes).items():
            request = IncrementalAlterConfigsRequest(
                resources=[
                    AlterConfigsResource(
                        resource_type=each.resource_type,
                        resource_name=each.name,
                        configs=[
                            AlterableConfig(name=name, config_operation=op, value=_text(value))
                            for name, (op, value) in changes[each].items()
                        ],
                    )
                    for each in wanted
                ],
                validate_only=validate_only,
            )
            self._put_altered(results, self._calls.call(node_id, request, timeout_ms))
        return results

    def alter_configs(
        self,
        configs: Mapping[ConfigResource, Mapping[str, Any]],
        *,
        validate_only: bool = False,
        timeout_ms: int | None = None,
    ) -> ItemResults[ConfigResource, None]:
        """Replace all settings of resources: what is not named goes back to its default."""
        from wire.schemas.alter_configs import (
            AlterableConfig,
            AlterConfigsRequest,
            AlterConfigsResource,
        )

        results: ItemResults[ConfigResource, None] = ItemResults()
        for node_id, wanted in _by_node(configs).items():
            request = AlterConfigsRequest(
                resources=[
                    AlterConfigsResource(
                        resource_type=each.resource_type,
                        resource_name=each.name,
                        configs=[
                            AlterableConfig(name=name, value=_text(value))
                            for name, value in configs[each].items()
                        ],
                    )
                    for each in wanted
                ],
                validate_only=validate_only,
            )
            self._put_altered(results, self._calls.call(node_id, request, timeout_ms))
        return results

    # Records

    def delete_records(
        self,
        offsets: Mapping[TopicPartition, int] | Mapping[tuple[str, int], int],
        *,
        timeout_ms: int | None = None,
    ) -> ItemResults[TopicPartition, int]:
        """Delete the records before an offset of each partition (-1: all); the new first offset."""
        from wire.schemas.delete_records import (
            DeleteRecordsPartition,
            DeleteRecordsRequest,
            DeleteRecordsTopic,
        )

        wanted = {TopicPartition(*key): offset for key, offset in offsets.items()}
        results: ItemResults[TopicPartition, int] = ItemResults()

        def request_for(keys: list[TopicPartition]) -> Any:
            topics: dict[str, DeleteRecordsTopic] = {}
            for key in keys:
                topic = topics.setdefault(key.topic, DeleteRecordsTopic(name=key.topic))
                topic.partitions.append(
                    DeleteRecordsPartition(partition_index=key.partition, offset=wanted[key])
                )
            return DeleteRecordsRequest(
                topics=list(topics.values()), timeout_ms=self._calls.timeout(timeout_ms)
            )

        def take(response: Any) -> dict[TopicPartition, tuple[int, int]]:
            return {
                TopicPartition(topic.name, each.partition_index): (
                    each.error_code,
                    each.low_watermark,
                )
                for topic in response.topics
                for each in topic.partitions
            }

        for key, outcome in self._calls.to_leaders(wanted, request_for, take, timeout_ms).items():
            if isinstance(outcome, KafkaError):
                results.errors[key] = outcome
            else:
                results.values[key] = outcome
        return results

    def list_offsets(
        self,
        specs: Mapping[TopicPartition, int] | Mapping[tuple[str, int], int],
        *,
        isolation_level: str = "read_uncommitted",
        timeout_ms: int | None = None,
    ) -> ItemResults[TopicPartition, OffsetAndTimestamp | None]:
        """Offsets by `OffsetSpec` or timestamp (ms); None where no record is that young."""
        wanted = {TopicPartition(*key): stamp for key, stamp in specs.items()}
        settings = {**self._settings, "isolation.level": isolation_level}
        lookup = OffsetLookup(
            self._transport, self._metadata, settings, wanted, self._calls.arrived
        )
        self._calls.drive(lambda: lookup.is_done, timeout_ms, lookup.advance)
        results: ItemResults[TopicPartition, OffsetAndTimestamp | None] = ItemResults()
        results.values.update(lookup.found)
        results.errors.update(lookup.failed)
        return results

    # The cluster

    def describe_cluster(self, *, timeout_ms: int | None = None) -> ClusterDescription:
        """Its id, its controller, its brokers."""
        from wire.schemas.describe_cluster import DescribeClusterRequest

        response = self._calls.call(ANY_NODE, DescribeClusterRequest(), timeout_ms)
        if response.error_code:
            raise error_for(response.error_code, response.error_message)
        nodes = {
            each.broker_id: Node(each.broker_id, each.host, each.port, each.rack)
            for each in response.brokers
        }
        return ClusterDescription(response.cluster_id, response.controller_id, nodes)

    def describe_log_dirs(
        self, node_ids: Iterable[int] | None = None, *, timeout_ms: int | None = None
    ) -> dict[int, dict[str, LogDirectory]]:
        """The data directories of brokers (all of them by default), by node id and path."""
        from wire.schemas.describe_log_dirs import DescribeLogDirsRequest

        chosen = list(node_ids) if node_ids is not None else self._node_ids(timeout_ms)
        found: dict[int, dict[str, LogDirectory]] = {}
        for node_id in chosen:
            response = self._calls.call(node_id, DescribeLogDirsRequest(topics=None), timeout_ms)
            if response.error_code:
                raise error_for(response.error_code)
            found[node_id] = {each.log_dir: _log_directory(each) for each in response.results}
        return found

    # Life

    def close(self) -> None:
        """Give back what is held. Again is allowed."""
        self._transport.close()

    def __enter__(self) -> Admin:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def _node_ids(self, timeout_ms: int | None) -> list[int]:
        if not self._metadata.nodes:
            self._calls.describe_all(timeout_ms)
        return list(self._metadata.nodes)

    def _put_altered(self, results: ItemResults[ConfigResource, None], response: Any) -> None:
        for answer in response.responses:
            resource = ConfigResource(answer.resource_type, answer.resource_name)
            _put(results, resource, None, answer.error_code, answer.error_message)


def _put(results: Any, item: Any, value: Any, code: int, message: str | None) -> None:
    if code:
        results.errors[item] = error_for(code, message)
    else:
        results.values[item] = value


def _by_node(resources: Iterable[ConfigResource]) -> dict[int, list[ConfigResource]]:
    """A broker's own settings are asked of that broker, everything else of any."""
    by_node: dict[int, list[ConfigResource]] = {}
    for each in resources:
        owned = each.resource_type in _BROKER_RESOURCES and each.name
        by_node.setdefault(int(each.name) if owned else ANY_NODE, []).append(each)
    return by_node


def _config_entry(config: Any) -> ConfigEntry:
    return ConfigEntry(
        config.name,
        config.value,
        source=config.config_source,
        is_read_only=config.read_only,
        is_sensitive=config.is_sensitive,
        synonyms=tuple([(each.name, each.value, each.source) for each in config.synonyms]),
        config_type=config.config_type,
        documentation=config.documentation,
    )


def _log_directory(described: Any) -> LogDirectory:
    replicas = {
        TopicPartition(topic.name, each.partition_index): ReplicaInLogDirectory(
            each.partition_size, each.offset_lag, each.is_future_key
        )
        for topic in described.topics
        for each in topic.partitions
    }
    error = error_for(described.error_code) if described.error_code else None
    return LogDirectory(
        described.log_dir, error, replicas, described.total_bytes, described.usable_bytes
    )


def _text(value: Any) -> str | None:
    """A setting's value as Kafka writes it."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return ",".join(str(each) for each in value)
    return str(value)


def _by_id(topic_id: bytes) -> Any:
    from wire.schemas.delete_topics import DeleteTopicState

    return DeleteTopicState(name=None, topic_id=topic_id)
