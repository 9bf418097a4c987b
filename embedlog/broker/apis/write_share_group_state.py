"""WriteShareGroupState (api key 85), versions 0-1: update the stored state of share partitions.

The sender is the leader of a partition. v1 count of completed deliveries.
"""

from __future__ import annotations

from embedlog.broker.share_state_requests import all_refused, answer_each, whole
from embedlog.coordinator.answers import combined
from embedlog.coordinator.share import operations
from embedlog.coordinator.share.operations import StateWrite
from wire.schemas.write_share_group_state import (
    PartitionData,
    PartitionResult,
    WriteShareGroupStateRequest,
    WriteShareGroupStateResponse,
    WriteStateResult,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from embedlog.broker.broker import Broker
    from embedlog.broker.context import RequestContext
    from embedlog.coordinator.result import Result
    from embedlog.coordinator.share.keys import ShareKey
    from embedlog.coordinator.share.share_shard import ShareShard
    from embedlog.errors import KafkaError
    from embedlog.runtime.pending import Pending


def handle(
    broker: Broker, context: RequestContext, request: WriteShareGroupStateRequest
) -> WriteShareGroupStateResponse | Pending[WriteShareGroupStateResponse]:
    results = answer_each(
        broker,
        request.group_id,
        whole(request.group_id, request.topics),
        _operate,
        task="write share group state",
        result=WriteStateResult,
        row=PartitionResult,
        fields=_fields,
    )
    return combined([results], lambda found: WriteShareGroupStateResponse(results=found[0]))


def refused(
    request: WriteShareGroupStateRequest, version: int, error: KafkaError
) -> WriteShareGroupStateResponse:
    """Return the error for every partition."""
    rows = all_refused(request.topics, error, result=WriteStateResult, row=PartitionResult)
    return WriteShareGroupStateResponse(results=rows)


def _operate(shard: ShareShard, key: ShareKey, entry: PartitionData) -> Result[None]:
    wanted = StateWrite(
        state_epoch=entry.state_epoch,
        leader_epoch=entry.leader_epoch,
        start_offset=entry.start_offset,
        delivery_complete_count=entry.delivery_complete_count,
        batches=[
            (each.first_offset, each.last_offset, each.delivery_state, each.delivery_count)
            for each in entry.state_batches
        ],
    )
    return operations.write(shard, key, wanted)


def _fields(answer: None) -> dict[str, Any]:
    return {}
