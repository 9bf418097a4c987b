"""ShareAcknowledge (api key 79), versions 1-2: acknowledge records of a share group.

v2 renewal of locks. The request counts in the epochs of the member's share session; epoch -1 closes
it and releases the records of its partitions. The answer comes when the share coordinator has
stored the moves. The batches of a partition are taken together or not at all.
"""

from __future__ import annotations

from embedlog import errors
from embedlog.broker.share_requests import (
    check_member,
    close_after,
    endpoints_of,
    last_batches,
    leaders_of,
)
from embedlog.coordinator.answers import combined
from embedlog.coordinator.share.keys import by_topic
from embedlog.sharing.share_sessions import OPENING
from wire.schemas.share_acknowledge import (
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
    ShareAcknowledgeResponse,
    ShareAcknowledgeTopicResponse,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.broker.broker import Broker
    from embedlog.broker.context import RequestContext
    from embedlog.coordinator.share.state_client import Place
    from embedlog.runtime.pending import Pending
    from wire.schemas.share_acknowledge import ShareAcknowledgeRequest


def handle(
    broker: Broker, context: RequestContext, request: ShareAcknowledgeRequest
) -> ShareAcknowledgeResponse | Pending[ShareAcknowledgeResponse]:
    group_id, member_id = check_member(broker, request.group_id, request.member_id)
    if request.share_session_epoch == OPENING:
        raise errors.InvalidShareSessionEpoch()
    sharing = broker.sharing
    version = context.api_version
    session = sharing.sessions.go_on((group_id, member_id), request.share_session_epoch)
    batches = last_batches(request.topics)
    answers = [
        sharing.acknowledge(
            group_id,
            member_id,
            place,
            rows,
            version=version,
            is_renewal=request.is_renew_ack,
        )
        for place, rows in batches.items()
        if rows
    ]
    close_after(broker, context, session, request.share_session_epoch, answers)
    places = [place for place, rows in batches.items() if rows]

    def respond(found: list[errors.KafkaError | None]) -> ShareAcknowledgeResponse:
        outcomes = dict(zip(places, found, strict=True))
        lock_ms = sharing.context.settings(group_id).lock_duration_ms
        response = ShareAcknowledgeResponse(acquisition_lock_timeout_ms=lock_ms)
        if outcomes:
            _fill(broker, context, response, {place: outcomes.get(place) for place in batches})
        return response

    return combined(answers, respond)


def refused(
    _request: ShareAcknowledgeRequest, _version: int, error: errors.KafkaError
) -> ShareAcknowledgeResponse:
    """Return the error without a message, as Kafka does."""
    return ShareAcknowledgeResponse(error_code=error.code)


def _fill(
    broker: Broker,
    context: RequestContext,
    response: ShareAcknowledgeResponse,
    outcomes: dict[Place, errors.KafkaError | None],
) -> None:
    rows = {place: PartitionData(partition_index=place[1]) for place in outcomes}
    for place, error in outcomes.items():
        if error is not None:
            rows[place].error_code = error.code
            rows[place].error_message = error.message
    leaders = leaders_of(broker, {place: (row.error_code,) for place, row in rows.items()})
    for place, (leader, epoch) in leaders.items():
        rows[place].current_leader = LeaderIdAndEpoch(leader_id=leader, leader_epoch=epoch)
    response.responses = [
        ShareAcknowledgeTopicResponse(topic_id=topic_id, partitions=[rows[each] for each in places])
        for topic_id, places in by_topic(rows)
    ]
    response.node_endpoints = [
        NodeEndpoint(node_id=node.node_id, host=node.host, port=node.port, rack=node.rack)
        for node in endpoints_of(broker, context, leaders)
    ]
