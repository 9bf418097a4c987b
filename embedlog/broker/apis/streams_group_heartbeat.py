"""StreamsGroupHeartbeat (api key 88), versions 0-1: join, stay in and leave a streams group.

The members of these groups run the tasks of a Kafka Streams application (KIP-1071). The first one
gives the topology; the broker creates the internal topics that it needs. The answer has the tasks
when the member joins and when they changed. v1 acceptable recovery lag as int64, and the request
for a description of the topology (KIP-1331).
"""

from __future__ import annotations

from embedlog import errors
from embedlog.broker.dispatch import settle
from embedlog.config.resources import group_value
from embedlog.controller.controller import NewTopic
from embedlog.controller.topic_names import is_valid_name
from embedlog.coordinator.answers import then
from embedlog.coordinator.group.group import ClientIdentity
from embedlog.coordinator.group.streams import request_checks, status
from embedlog.errors import KafkaError
from embedlog.logger import Logger

_BROKER_DEFAULT = -1
_FIRST_WITH_DESCRIPTIONS = 1
_KEPT_INTERVALS = 2
"""Heartbeat intervals for which an error of a topic's creation is kept."""

_log = Logger("broker")

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from embedlog.broker.broker import Broker
    from embedlog.broker.context import RequestContext
    from embedlog.coordinator.group.streams.streams_heartbeats import Answer
    from embedlog.coordinator.group.streams.topology import InternalTopic
    from embedlog.runtime.pending import Pending
    from wire.schemas.streams_group_heartbeat import (
        StreamsGroupHeartbeatRequest,
        StreamsGroupHeartbeatResponse,
    )


def handle(
    broker: Broker, context: RequestContext, request: StreamsGroupHeartbeatRequest
) -> StreamsGroupHeartbeatResponse | Pending[StreamsGroupHeartbeatResponse]:
    if not broker.serves_streams_groups:
        raise errors.UnsupportedVersion()
    if request.topology is not None:
        request_checks.check_topics(request.topology, is_valid_name)
    request_checks.check(request)
    client = ClientIdentity.of(context.client_id, context.client_host)
    version = context.api_version
    pending = broker.group_coordinator.write(
        request.group_id, lambda shard: shard.streams_heartbeat(client, request, version)
    )

    def finish(answer: Answer) -> StreamsGroupHeartbeatResponse:
        _create_topics(broker, request.group_id, answer)
        if version >= _FIRST_WITH_DESCRIPTIONS and not answer.is_described:
            _ask_for_description(broker, request.group_id, answer)
        return answer.response

    finished = then(pending, finish)
    return settle(context, request, finished)


def _ask_for_description(broker: Broker, group_id: str, answer: Answer) -> None:
    """Let the member send a description of the topology, unless a pause is on."""
    descriptions = broker.group_coordinator.descriptions
    if descriptions is not None and descriptions.ask(group_id, answer.topology_epoch):
        answer.response.topology_description_required = True


def _create_topics(broker: Broker, group_id: str, answer: Answer) -> None:
    """Create the missing internal topics; name earlier failures in the answer."""
    if not answer.missing:
        return
    kept = broker.group_coordinator.creation_errors
    failed = kept.summary(topic.name for topic in answer.missing)
    for row in answer.response.status or ():
        if failed and row.status_code == status.MISSING_INTERNAL_TOPICS:
            row.status_detail += f"; Creation failed: {failed}."
    wanted = [topic for topic in answer.missing if kept.of(topic.name) is None]
    if wanted:
        _create(broker, group_id, wanted)


def _create(broker: Broker, group_id: str, topics: Sequence[InternalTopic]) -> None:
    texts = broker.image.group_configs.get(group_id, {})
    interval_ms = group_value("streams.heartbeat.interval.ms", texts, broker.config)
    assert isinstance(interval_ms, int), interval_ms
    try:
        if not broker.reaches_controller():
            raise errors.RequestTimedOut()
        made = broker.controller.create_topics([_new_topic(topic) for topic in topics])
    except KafkaError as error:
        made = {topic.name: error for topic in topics}
    for name, result in made.items():
        # Another broker may have created the topic for another group.
        if isinstance(result, KafkaError) and not isinstance(result, errors.TopicAlreadyExists):
            _log.warning("internal topic %s cannot be created: %s", name, result)
            broker.group_coordinator.creation_errors.keep(
                name, str(result), keep_ms=_KEPT_INTERVALS * interval_ms
            )


def _new_topic(topic: InternalTopic) -> NewTopic:
    return NewTopic(
        topic.name,
        partition_count=topic.partition_count,
        replication_factor=topic.replication_factor or _BROKER_DEFAULT,
        configs=dict(topic.configs),
    )
