"""ReadShareGroupStateSummary (api key 87), versions 0-1: stored states without their batches.

The sender is the group coordinator. The leader epoch is ignored. v1 count of completed deliveries.
"""

from __future__ import annotations

from embedlog.broker.share_state_requests import all_refused, answer_each, whole
from embedlog.coordinator.answers import combined
from embedlog.coordinator.share import operations
from wire.schemas.read_share_group_state_summary import (
    PartitionData,
    PartitionResult,
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryResponse,
    ReadStateSummaryResult,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from embedlog.broker.broker import Broker
    from embedlog.broker.context import RequestContext
    from embedlog.coordinator.result import Result
    from embedlog.coordinator.share.keys import ShareKey
    from embedlog.coordinator.share.operations import StateSummary
    from embedlog.coordinator.share.share_shard import ShareShard
    from embedlog.errors import KafkaError
    from embedlog.runtime.pending import Pending


def handle(
    broker: Broker, context: RequestContext, request: ReadShareGroupStateSummaryRequest
) -> ReadShareGroupStateSummaryResponse | Pending[ReadShareGroupStateSummaryResponse]:
    results = answer_each(
        broker,
        request.group_id,
        whole(request.group_id, request.topics),
        _operate,
        task="read share group state summary",
        result=ReadStateSummaryResult,
        row=PartitionResult,
        fields=_fields,
    )
    return combined([results], lambda found: ReadShareGroupStateSummaryResponse(results=found[0]))


def refused(
    request: ReadShareGroupStateSummaryRequest, version: int, error: KafkaError
) -> ReadShareGroupStateSummaryResponse:
    """Return the error for every partition."""
    rows = all_refused(request.topics, error, result=ReadStateSummaryResult, row=PartitionResult)
    return ReadShareGroupStateSummaryResponse(results=rows)


def _operate(shard: ShareShard, key: ShareKey, entry: PartitionData) -> Result[StateSummary]:
    return operations.summarize(shard, key)


def _fields(answer: StateSummary) -> dict[str, Any]:
    return {
        "state_epoch": answer.state_epoch,
        "leader_epoch": answer.leader_epoch,
        "start_offset": answer.start_offset,
        "delivery_complete_count": answer.delivery_complete_count,
    }
