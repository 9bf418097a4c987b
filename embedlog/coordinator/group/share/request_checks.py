"""Validation of a ShareGroupHeartbeat, in Kafka's order, before any state is looked at."""

from __future__ import annotations

from embedlog import errors
from embedlog.coordinator.group.share.member import JOIN_EPOCH, LEAVE_EPOCH

TYPE_CHECKING = False
if TYPE_CHECKING:
    from wire.schemas.share_group_heartbeat import ShareGroupHeartbeatRequest


def check(request: ShareGroupHeartbeatRequest) -> None:
    """Raise InvalidRequest for a request that is invalid in any state."""
    fields = {"MemberId": request.member_id, "GroupId": request.group_id, "RackId": request.rack_id}
    for field, text in fields.items():
        if text is not None and not text.strip():
            raise errors.InvalidRequest(f"{field} can't be empty.")
    if request.member_epoch == JOIN_EPOCH:
        if not request.subscribed_topic_names:
            raise errors.InvalidRequest("SubscribedTopicNames must be set in first request.")
    elif request.member_epoch < LEAVE_EPOCH:
        raise errors.InvalidRequest("MemberEpoch is invalid.")
