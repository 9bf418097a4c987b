"""Metadata (api key 3), versions 0-13: the live brokers, and topics by name or by id.

v0 an empty list means all topics. v1 null means all topics; controller id; internal topics. v2
cluster id. v4 the client may forbid that topics are created. v5 offline replicas. v7 leader epochs.
v8-v10 authorized operations of the cluster, from v8 on also of topics. v9 flexible. v10 topic ids
in the answer. v12 topic ids in the request. v13 a top-level error.

A missing topic is created, but in this answer it is UNKNOWN_TOPIC_OR_PARTITION, as in Kafka; the
client repeats the request and finds it. If embedlog.auto.create.topics.await is true, this answer
already has the topic.
"""

from __future__ import annotations

from embedlog.broker import topics
from embedlog.common import ZERO_UUID
from embedlog.controller import topic_names
from embedlog.topic_names import INTERNAL_TOPICS
from wire.error_codes import ErrorCode
from wire.schemas.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from embedlog.broker.broker import Broker
    from embedlog.broker.context import RequestContext
    from embedlog.controller.metadata import MetadataImage, PartitionImage, TopicImage
    from embedlog.errors import KafkaError

_FIRST_WITH_NULL = 1
_FIRST_WITH_LISTENERS = 6
_FIRST_BY_ID = 12
_FIRST_WITH_ERROR = 13


def handle(broker: Broker, context: RequestContext, request: MetadataRequest) -> MetadataResponse:
    asked = request.topics
    if context.api_version < _FIRST_WITH_NULL and not asked:
        asked = None
    refusal = _refusal(context.api_version, asked)
    if refusal is not None:
        return _refuse(asked or [], refusal)
    operations = topics.OPERATIONS_NOT_ASKED_FOR
    if request.include_topic_authorized_operations:
        operations = topics.TOPIC_OPERATIONS
    nodes = topics.live_nodes(broker, context)
    describer = _TopicDescriber(operations, {node.node_id for node in nodes}, context.api_version)
    if asked is None:
        image = broker.image
        found = [describer.topic(image, topic) for topic in image.topics_by_name.values()]
    elif any(topic.topic_id != ZERO_UUID for topic in asked):
        found = _by_id(broker, asked, describer)
    else:
        found = _by_name(broker, request, describer)
    return MetadataResponse(
        brokers=[
            MetadataResponseBroker(
                node_id=node.node_id, host=node.host, port=node.port, rack=node.rack
            )
            for node in (*nodes, *topics.departed_nodes(broker, context))
        ],
        cluster_id=broker.cluster_id,
        controller_id=nodes[0].node_id if nodes else -1,
        topics=found,
        cluster_authorized_operations=(
            topics.CLUSTER_OPERATIONS
            if request.include_cluster_authorized_operations
            else topics.OPERATIONS_NOT_ASKED_FOR
        ),
    )


def refused(request: MetadataRequest, version: int, error: KafkaError) -> MetadataResponse | None:
    """Return the error in every topic, because before v13 the answer has no other place for it.

    Return None if the request names no topic: an answer without topics would mean that none exist.
    """
    if not request.topics and version < _FIRST_WITH_ERROR:
        return None
    return _refuse(request.topics or [], error.code)


def _refusal(version: int, asked: Sequence[MetadataRequestTopic] | None) -> int | None:
    """Return the error code for a request that is refused as a whole, or None."""
    if asked is None:
        return None
    if version < _FIRST_BY_ID:
        if any(topic.name is None or topic.topic_id != ZERO_UUID for topic in asked):
            return ErrorCode.INVALID_REQUEST
    elif any(topic.name is None and topic.topic_id == ZERO_UUID for topic in asked):
        return ErrorCode.UNKNOWN_SERVER_ERROR
    return None


def _refuse(asked: Sequence[MetadataRequestTopic], code: int) -> MetadataResponse:
    return MetadataResponse(
        topics=[
            MetadataResponseTopic(error_code=code, name=topic.name or "", topic_id=topic.topic_id)
            for topic in asked
        ],
        error_code=code,
    )


class _TopicDescriber:
    """Describes topics to clients that can reach the `live` brokers.

    If clients cannot reach the leader of a partition, the answer names no leader: the leader is
    down, or has no address for them.
    """

    __slots__ = ("_gone", "_live", "_names_offline", "_unheard", "operations")

    def __init__(self, operations: int, live: set[int], version: int) -> None:
        self.operations = operations
        self._live = live
        self._names_offline = version >= _FIRST_WITH_NULL
        self._gone = int(ErrorCode.LEADER_NOT_AVAILABLE)
        knows_listeners = version >= _FIRST_WITH_LISTENERS
        self._unheard = int(ErrorCode.LISTENER_NOT_FOUND) if knows_listeners else self._gone

    def topic(self, image: MetadataImage, topic: TopicImage) -> MetadataResponseTopic:
        return MetadataResponseTopic(
            name=topic.name,
            topic_id=topic.topic_id,
            is_internal=topic.is_internal,
            partitions=[self._partition(image, partition) for partition in topic.partitions],
            topic_authorized_operations=self.operations,
        )

    def _partition(
        self, image: MetadataImage, partition: PartitionImage
    ) -> MetadataResponsePartition:
        leader, code = partition.leader, 0
        if leader not in self._live:
            code = self._unheard if leader in image.brokers else self._gone
            leader = -1
        replicas = list(partition.replicas)
        if not self._names_offline and any(each not in self._live for each in replicas):
            # Clients of v0 assume that every named replica is live.
            replicas = [each for each in replicas if each in self._live]
            code = code or int(ErrorCode.REPLICA_NOT_AVAILABLE)
        return MetadataResponsePartition(
            error_code=code,
            partition_index=partition.partition,
            leader_id=leader,
            leader_epoch=partition.leader_epoch,
            replica_nodes=replicas,
            isr_nodes=list(partition.isr),
            offline_replicas=list(image.offline_replicas(partition)),
        )


def _by_id(
    broker: Broker, asked: Sequence[MetadataRequestTopic], describer: _TopicDescriber
) -> list[MetadataResponseTopic]:
    """Describe topics by id. The answer leaves out topics that the request names without an id."""
    image = broker.image
    by_id = image.topics_by_id
    ids = dict.fromkeys(topic.topic_id for topic in asked if topic.topic_id != ZERO_UUID)
    return [
        describer.topic(image, by_id[topic_id])
        if topic_id in by_id
        else MetadataResponseTopic(
            error_code=ErrorCode.UNKNOWN_TOPIC_ID, name=None, topic_id=topic_id
        )
        for topic_id in ids
    ]


def _by_name(
    broker: Broker, request: MetadataRequest, describer: _TopicDescriber
) -> list[MetadataResponseTopic]:
    image = broker.image
    names = [topic.name for topic in request.topics or [] if topic.name is not None]
    names = list(dict.fromkeys(names))
    missing = [name for name in names if name not in image.topics_by_name]
    if missing and request.allow_auto_topic_creation and broker.config.auto_create_topics_enable:
        if not broker.config.embedlog_auto_create_topics_await:
            topics.create_missing_later(broker, missing)
        else:
            topics.create_missing(broker, missing)
            image = broker.image
            missing = [name for name in names if name not in image.topics_by_name]
    known = (image.topics_by_name.get(name) for name in names)
    return [
        *(describer.topic(image, topic) for topic in known if topic is not None),
        *(_missing(name, describer.operations) for name in missing),
    ]


def _missing(name: str, operations: int) -> MetadataResponseTopic:
    is_valid = topic_names.is_valid_name(name)
    return MetadataResponseTopic(
        error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if is_valid
        else ErrorCode.INVALID_TOPIC_EXCEPTION,
        name=name,
        is_internal=name in INTERNAL_TOPICS,
        topic_authorized_operations=operations,
    )
