"""A stage that lets members of forgotten groups join again.

A consumer of the new protocol takes GROUP_ID_NOT_FOUND for fatal: a group with members cannot
vanish. In a restored state it can. UNKNOWN_MEMBER_ID makes the consumer join again, as it does in
a group that the state has.
"""

from __future__ import annotations

from typing import Any

from embedlog.runtime.pending import Pending
from embedlog.testing.interception import Call, Proceed
from wire.api_keys import ApiKey
from wire.error_codes import ErrorCode
from wire.schemas.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse


def rejoining(call: Call, proceed: Proceed) -> Any:
    """Answer a call as `Stage` does."""
    answer = proceed(call)
    if call.context.api_key != ApiKey.CONSUMER_GROUP_HEARTBEAT:
        return answer
    if not isinstance(answer, Pending):
        return _changed(answer)
    outer: Pending[Any] = Pending()

    def settled(done: Pending[Any]) -> None:
        error = done.error()
        if error is None:
            outer.complete(_changed(done.result()))
        else:
            outer.fail(error)

    answer.add_callback(settled)
    return outer


def _changed(answer: ConsumerGroupHeartbeatResponse) -> ConsumerGroupHeartbeatResponse:
    if answer.error_code != ErrorCode.GROUP_ID_NOT_FOUND:
        return answer
    return ConsumerGroupHeartbeatResponse(
        error_code=ErrorCode.UNKNOWN_MEMBER_ID,
        error_message="The state of the cluster was restored; the group is not in it.",
    )
