"""Fetch (api key 1), versions 0-18: whole record batches from an offset on, waiting for more.

In v0-v3 batches are converted to message sets (of magic 0 before v2). v3 limits the whole answer.
v4 isolation level. v5 log start offset. v7 sessions (KIP-227). v9 leader epochs (KIP-320). v11 a
replica in the consumer's rack (KIP-392). v12 diverging epochs (KIP-595). v13 topic ids. v16 the
answer names the leader after an error (KIP-951). The answer waits until `min_bytes` can be read, at
most `max_wait_ms`. The first batch is returned whole, even if it exceeds the limits. A follower
reads to the end of the log, and its fetch offset acknowledges all records before it. Not served:
tiered storage.

Over a connection, no further partition is read after `TARGET_SIZE`, even if the client and the
broker would allow more: clients read an answer only when it is complete.
"""

from __future__ import annotations

from embedlog import errors
from embedlog.broker import topics
from embedlog.replication.delayed_fetch import DelayedFetch, fetch
from embedlog.replication.fetch_context import FullFetch
from embedlog.replication.fetch_params import FIRST_WITH_IDS, FetchParams
from embedlog.replication.fetch_reader import FetchRead, refusal
from wire.error_codes import ErrorCode
from wire.records.errors import RecordsError, UnsupportedCodec
from wire.schemas.fetch import (
    FetchableTopicResponse,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.broker.broker import Broker
    from embedlog.broker.context import RequestContext
    from embedlog.runtime.pending import Pending
    from wire.schemas.fetch import FetchRequest

TARGET_SIZE = 4 * 1024 * 1024
"""Once an answer has this many bytes of records, no further partition is read for it. With this
limit librdkafka read 100-byte records 1.3 to 1.5 times faster than with answers of 50 MiB, and
records of 1 KiB equally fast."""

_FIRST_WITH_TIMESTAMPS = 2
_FIRST_WITH_ANSWER_LIMIT = 3
_FIRST_WITH_BATCHES = 4
_FIRST_WITH_STORAGE_ERROR = 6
_FIRST_WITH_LEADER = 16

_NEEDS_LEADER = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)


def handle(
    broker: Broker, context: RequestContext, request: FetchRequest
) -> FetchResponse | Pending[FetchResponse]:
    version = context.api_version
    connection = context.connection
    if request.isolation_level not in (0, 1):
        raise errors.UnknownServerError(f"Unknown isolation level {request.isolation_level}")
    try:
        asked = broker.fetch_sessions.begin(request, version, broker.topic_name)
    except errors.KafkaError as error:
        return FetchResponse(error_code=error.code)
    params = FetchParams(version, request, broker.fetch_max_bytes)
    replication = broker.replica_manager.replication
    if replication is not None:
        replication.complete(params, request.rack_id)
    if not context.in_process:
        params.target_bytes = max(params.min_bytes, TARGET_SIZE)
    if isinstance(asked, FullFetch):
        asked.first = context.fetch_first

    def respond(found: FetchRead) -> FetchResponse:
        if connection is not None:
            broker.parked.unpark(connection)
        if version < _FIRST_WITH_STORAGE_ERROR:
            _make_older(found, version)
        if isinstance(asked, FullFetch):
            context.fetch_first = asked.cut_at
        response = asked.respond(found)
        if found.must_answer and version >= _FIRST_WITH_LEADER:
            _tell_leaders(broker, context, response, with_nodes=params.replica_id < 0)
        return response

    answer = fetch(broker.replica_manager, params, asked, respond)
    if not isinstance(answer, DelayedFetch):
        return answer
    if connection is not None:
        broker.parked.park(connection, answer)
    return answer.pending


def refused(request: FetchRequest, version: int, error: errors.KafkaError) -> FetchResponse:
    """Return the error at the top; before v13 also in every partition."""
    response = FetchResponse(error_code=error.code, session_id=request.session_id)
    if version < FIRST_WITH_IDS:
        response.responses = [
            FetchableTopicResponse(
                topic=topic.topic,
                partitions=[refusal(asked.partition, error) for asked in topic.partitions],
            )
            for topic in request.topics
        ]
    return response


def _make_older(read: FetchRead, version: int) -> None:
    """Convert the records and errors in `read` to the form that clients of `version` know."""
    data = read.data
    for index, (found, asked) in enumerate(zip(data, read.asked, strict=True)):
        if found.error_code == ErrorCode.KAFKA_STORAGE_ERROR:
            found.error_code = ErrorCode.NOT_LEADER_OR_FOLLOWER
        if version >= _FIRST_WITH_BATCHES or not found.records:
            continue
        from wire.records.legacy_conversion import down_convert

        try:
            records = down_convert(
                memoryview(found.records),
                magic=0 if version < _FIRST_WITH_TIMESTAMPS else 1,
                first_offset=asked.fetch_offset,
            )
        except UnsupportedCodec:
            data[index] = refusal(asked.partition, errors.UnsupportedCompressionType())
            continue
        except RecordsError as error:
            data[index] = refusal(asked.partition, errors.CorruptMessage(str(error)))
            continue
        if version < _FIRST_WITH_ANSWER_LIMIT:
            # Cut the last message at the client's limit. Half a message tells clients before v3
            # that their limit is too small.
            records = records[: asked.max_bytes]
        found.records = records


def _tell_leaders(
    broker: Broker, context: RequestContext, response: FetchResponse, *, with_nodes: bool
) -> None:
    """Add the leader of each partition whose answer says that the client has the wrong leader.

    This saves the client a Metadata request (KIP-951).
    """
    leaders: set[int] = set()
    for topic in response.responses:
        for found in topic.partitions:
            if found.error_code not in _NEEDS_LEADER:
                continue
            leader, epoch = topics.leader_of(broker, topic.topic, found.partition_index)
            found.current_leader = LeaderIdAndEpoch(leader_id=leader, leader_epoch=epoch)
            leaders.add(leader)
    response.node_endpoints = [
        NodeEndpoint(node_id=node.node_id, host=node.host, port=node.port, rack=node.rack)
        for leader in sorted(leaders if with_nodes else ())
        if (node := topics.node(broker, context, leader)) is not None
    ]
