"""InitializeShareGroupState (api key 83), version 0: begin the stored state of share partitions.

The sender is the group coordinator: the state epoch is the epoch of the group. Topics without
partitions are left out of the answer.
"""

from __future__ import annotations

from embedlog.broker.share_state_requests import all_refused, answer_each
from embedlog.coordinator.answers import combined
from embedlog.coordinator.share import operations
from wire.schemas.initialize_share_group_state import (
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateResponse,
    InitializeStateResult,
    PartitionData,
    PartitionResult,
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
    broker: Broker, context: RequestContext, request: InitializeShareGroupStateRequest
) -> InitializeShareGroupStateResponse | Pending[InitializeShareGroupStateResponse]:
    results = answer_each(
        broker,
        request.group_id,
        [topic for topic in request.topics if topic.partitions] if request.group_id else [],
        _operate,
        task="initialize share group state",
        result=InitializeStateResult,
        row=PartitionResult,
        fields=_fields,
    )
    return combined([results], lambda found: InitializeShareGroupStateResponse(results=found[0]))


def refused(
    request: InitializeShareGroupStateRequest, version: int, error: KafkaError
) -> InitializeShareGroupStateResponse:
    """Return the error for every partition."""
    rows = all_refused(request.topics, error, result=InitializeStateResult, row=PartitionResult)
    return InitializeShareGroupStateResponse(results=rows)


def _operate(shard: ShareShard, key: ShareKey, entry: PartitionData) -> Result[None]:
    return operations.initialize(
        shard, key, state_epoch=entry.state_epoch, start_offset=entry.start_offset
    )


def _fields(answer: None) -> dict[str, Any]:
    return {}
