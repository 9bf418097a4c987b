"""ReadShareGroupState (api key 84), version 0: the stored state of share partitions.

The sender is the leader of a partition when it begins to lead; its epoch fences former leaders.
"""

from __future__ import annotations

from embedlog.broker.share_state_requests import all_refused, answer_each, whole
from embedlog.coordinator.answers import combined
from embedlog.coordinator.share import operations
from wire.schemas.read_share_group_state import (
    PartitionData,
    PartitionResult,
    ReadShareGroupStateRequest,
    ReadShareGroupStateResponse,
    ReadStateResult,
    StateBatch,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from embedlog.broker.broker import Broker
    from embedlog.broker.context import RequestContext
    from embedlog.coordinator.result import Result
    from embedlog.coordinator.share.keys import ShareKey
    from embedlog.coordinator.share.operations import StateRead
    from embedlog.coordinator.share.share_shard import ShareShard
    from embedlog.errors import KafkaError
    from embedlog.runtime.pending import Pending


def handle(
    broker: Broker, context: RequestContext, request: ReadShareGroupStateRequest
) -> ReadShareGroupStateResponse | Pending[ReadShareGroupStateResponse]:
    results = answer_each(
        broker,
        request.group_id,
        whole(request.group_id, request.topics),
        _operate,
        task="read share group state",
        result=ReadStateResult,
        row=PartitionResult,
        fields=_fields,
    )
    return combined([results], lambda found: ReadShareGroupStateResponse(results=found[0]))


def refused(
    request: ReadShareGroupStateRequest, version: int, error: KafkaError
) -> ReadShareGroupStateResponse:
    """Return the error for every partition."""
    rows = all_refused(request.topics, error, result=ReadStateResult, row=PartitionResult)
    return ReadShareGroupStateResponse(results=rows)


def _operate(shard: ShareShard, key: ShareKey, entry: PartitionData) -> Result[StateRead]:
    return operations.read(shard, key, leader_epoch=entry.leader_epoch)


def _fields(answer: StateRead) -> dict[str, Any]:
    return {
        "state_epoch": answer.state_epoch,
        "start_offset": answer.start_offset,
        "state_batches": [
            StateBatch(
                first_offset=first, last_offset=last, delivery_state=state, delivery_count=count
            )
            for first, last, state, count in answer.batches
        ],
    }
