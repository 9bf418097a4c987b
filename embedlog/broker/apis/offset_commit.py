"""OffsetCommit (api key 8), versions 0-10: store the offsets of a group.

In old brokers, v0 requests wrote to ZooKeeper; here v0 stores like later versions. v1 member and
generation, a timestamp for each partition. v2-v4 retention time. v6 leader epochs. v7 static
members. v8 flexible. v9 groups of the consumer protocol. v10 topic ids.
`coordinator.group.offsets.commit` has the errors.
"""

from __future__ import annotations

from embedlog.coordinator.answers import answered
from embedlog.coordinator.group.offsets.commit import OffsetCommit
from wire.schemas.offset_commit import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.broker.broker import Broker
    from embedlog.broker.context import RequestContext
    from embedlog.errors import KafkaError
    from embedlog.runtime.pending import Pending
    from wire.schemas.offset_commit import OffsetCommitRequest


def handle(
    broker: Broker, context: RequestContext, request: OffsetCommitRequest
) -> OffsetCommitResponse | Pending[OffsetCommitResponse]:
    commit = OffsetCommit(request, context.api_version, broker.image)
    if not commit.wanted:
        return commit.response()
    pending = broker.group_coordinator.write(
        request.group_id, lambda shard: shard.commit_offsets(commit)
    )
    return answered(pending, commit.refused)


def refused(request: OffsetCommitRequest, version: int, error: KafkaError) -> OffsetCommitResponse:
    """Return the error in every partition."""
    return OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    OffsetCommitResponsePartition(
                        partition_index=asked.partition_index, error_code=error.code
                    )
                    for asked in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )
