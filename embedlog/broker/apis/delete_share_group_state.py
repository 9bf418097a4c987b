"""DeleteShareGroupState (api key 86), version 0: delete the stored state of share partitions.

The sender is the group coordinator. An unknown state is no error.
"""

from __future__ import annotations

from embedlog.broker.share_state_requests import all_refused, answer_each, whole
from embedlog.coordinator.answers import combined
from embedlog.coordinator.share import operations
from wire.schemas.delete_share_group_state import (
    DeleteShareGroupStateRequest,
    DeleteShareGroupStateResponse,
    DeleteStateResult,
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
    broker: Broker, context: RequestContext, request: DeleteShareGroupStateRequest
) -> DeleteShareGroupStateResponse | Pending[DeleteShareGroupStateResponse]:
    results = answer_each(
        broker,
        request.group_id,
        whole(request.group_id, request.topics),
        _operate,
        task="delete share group state",
        result=DeleteStateResult,
        row=PartitionResult,
        fields=_fields,
    )
    return combined([results], lambda found: DeleteShareGroupStateResponse(results=found[0]))


def refused(
    request: DeleteShareGroupStateRequest, version: int, error: KafkaError
) -> DeleteShareGroupStateResponse:
    """Return the error for every partition."""
    rows = all_refused(request.topics, error, result=DeleteStateResult, row=PartitionResult)
    return DeleteShareGroupStateResponse(results=rows)


def _operate(shard: ShareShard, key: ShareKey, entry: PartitionData) -> Result[None]:
    return operations.delete(shard, key)


def _fields(answer: None) -> dict[str, Any]:
    return {}
