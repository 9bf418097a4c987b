"""JoinGroup (api key 11), versions 0-9: become a member of a classic group.

v1 rebalance timeout. v4 a first join without a member id gets only an id, with which the client
joins again (KIP-394). v5 static members (KIP-345). v6 flexible. v7 null for no protocol. v8 reason,
not used. v9 a restarted leader skips the assignment. Requests are parked until the generation is
complete.

First the request itself is checked, then the group's state, in `coordinator.group.classic.join`:
    empty group id                                              INVALID_GROUP_ID
    session timeout outside group.{min,max}.session.timeout.ms  INVALID_SESSION_TIMEOUT
"""

from __future__ import annotations

from embedlog import errors
from embedlog.broker.dispatch import settle
from embedlog.coordinator.answers import then
from embedlog.coordinator.group.group import ClientIdentity
from embedlog.errors import KafkaError
from wire.error_codes import ErrorCode
from wire.schemas.join_group import JoinGroupRequest, JoinGroupResponse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.broker.broker import Broker
    from embedlog.broker.context import RequestContext
    from embedlog.runtime.pending import Pending

_FIRST_WITH_NULL_PROTOCOL = 7


def handle(
    broker: Broker, context: RequestContext, request: JoinGroupRequest
) -> JoinGroupResponse | Pending[JoinGroupResponse]:
    if not request.group_id:
        raise errors.InvalidGroupId()
    config = broker.config
    shortest_ms = config.group_min_session_timeout_ms
    if not shortest_ms <= request.session_timeout_ms <= config.group_max_session_timeout_ms:
        raise errors.InvalidSessionTimeout()
    client = ClientIdentity.of(context.client_id, context.client_host)
    coordinator = broker.group_coordinator

    def join() -> Pending[JoinGroupResponse]:
        return coordinator.write(
            request.group_id, lambda shard: shard.join(client, request, context.api_version)
        )

    if coordinator.descriptions is None:
        return settle(context, request, join())
    # The classic group may replace an empty streams group, whose description then has to go.
    forgotten = coordinator.forget_description(request.group_id)
    return settle(context, request, then(forgotten, lambda _: join()))


def refused(request: JoinGroupRequest, version: int, error: KafkaError) -> JoinGroupResponse:
    """Return the error with the member id of the request, and without a generation."""
    code = error.code
    if code == ErrorCode.GROUP_DELETION_FAILED:
        code = ErrorCode.REBALANCE_IN_PROGRESS
    return JoinGroupResponse(
        error_code=code,
        protocol_name=None if version >= _FIRST_WITH_NULL_PROTOCOL else "",
        member_id=request.member_id,
    )
