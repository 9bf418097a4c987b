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
from embedlog.controller.topic_names import is_valid_name
from embedlog.coordinator.answers import then
from embedlog.coordinator.group.group import ClientIdentity
from embedlog.coordinator.group.streams import request_checks, status

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.broker.broker import Broker
    from embedlog.broker.context import RequestContext
    from embedlog.coordinator.group.streams.streams_heartbeats import Answer
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
    finished = then(pending, lambda answer: _with_topics(broker, request.group_id, answer))
    return settle(context, request, finished)


def _with_topics(broker: Broker, group_id: str, answer: Answer) -> StreamsGroupHeartbeatResponse:
    """Create the missing internal topics; name earlier failures in the answer."""
    response, missing = answer
    if missing:
        texts = broker.image.group_configs.get(group_id, {})
        interval_ms = group_value("streams.heartbeat.interval.ms", texts, broker.config)
        assert isinstance(interval_ms, int), interval_ms
        failed = broker.streams_topics.problems(topic.name for topic in missing)
        for row in response.status or ():
            if failed and row.status_code == status.MISSING_INTERNAL_TOPICS:
                row.status_detail += f"; Creation failed: {failed}."
        broker.streams_topics.create(broker, missing, keep_ms=2 * interval_ms)
    return response
