"""WriteTxnMarkers (api key 27), versions 0-2: write the end of a transaction to its partitions.

The senders are transaction coordinators, and administrators who end a hanging transaction. The
marker is one control batch in each partition, appended with acks=all. In `__consumer_offsets` a
commit marker makes the offsets of the transaction valid, and an abort marker drops them. v1
flexible. v2 has the transaction version: if it is at least 2, a marker with the producer's present
epoch is a retry, which the broker refuses if the producer has an open transaction (KIP-890).

As in Kafka, a marker without producer id or epoch (-1) refuses the whole request, and the markers
of one producer share an entry of the answer, which leaves out topics without partitions.
"""

from __future__ import annotations

from embedlog import errors
from embedlog.broker.dispatch import as_kafka_error
from embedlog.broker.marker_routes import all_refused
from embedlog.common import grouped
from embedlog.coordinator.answers import combined
from embedlog.coordinator.result import Marker, Result
from embedlog.runtime.pending import Pending
from embedlog.topic_names import OFFSETS_TOPIC
from wire.error_codes import STALE_COORDINATOR, ErrorCode
from wire.records.control import BuiltMarker, ControlType, EndTransactionMarker
from wire.schemas.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopic,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from embedlog.broker.broker import Broker
    from embedlog.broker.context import RequestContext

_TIMEOUT_MS = 30_000
_NONE = -1


def handle(
    broker: Broker, context: RequestContext, request: WriteTxnMarkersRequest
) -> WriteTxnMarkersResponse | Pending[WriteTxnMarkersResponse]:
    markers = _with_partitions(request)
    if any(marker.producer_id == _NONE or marker.producer_epoch == _NONE for marker in markers):
        raise errors.UnknownServerError("a marker without producer id or epoch")
    return combined([_write_marker(broker, marker) for marker in markers], _answer)


def refused(
    request: WriteTxnMarkersRequest, version: int, error: errors.KafkaError
) -> WriteTxnMarkersResponse:
    """Return the error in every partition."""
    return all_refused(WriteTxnMarkersRequest(markers=_with_partitions(request)), error.code)


def _with_partitions(request: WriteTxnMarkersRequest) -> list[WritableTxnMarker]:
    """Return the markers that have partitions, without their topics that have none."""
    return [
        WritableTxnMarker(
            producer_id=marker.producer_id,
            producer_epoch=marker.producer_epoch,
            transaction_result=marker.transaction_result,
            topics=topics,
            coordinator_epoch=marker.coordinator_epoch,
            transaction_version=marker.transaction_version,
        )
        for marker in request.markers
        if (topics := [topic for topic in marker.topics if topic.partition_indexes])
    ]


def _answer(results: list[WritableTxnMarkerResult]) -> WriteTxnMarkersResponse:
    """Return the results by producer; of a partition that has two the last one."""
    markers = []
    for producer_id, entries in grouped(results, lambda result: result.producer_id).items():
        by_topic: dict[str, dict[int, WritableTxnMarkerPartitionResult]] = {}
        for topic in [topic for entry in entries for topic in entry.topics]:
            partitions = by_topic.setdefault(topic.name, {})
            partitions.update({each.partition_index: each for each in topic.partitions})
        topics = [
            WritableTxnMarkerTopicResult(name=name, partitions=[*partitions.values()])
            for name, partitions in by_topic.items()
        ]
        markers.append(WritableTxnMarkerResult(producer_id=producer_id, topics=topics))
    return WriteTxnMarkersResponse(markers=markers)


def _write_marker(
    broker: Broker, marker: WritableTxnMarker
) -> WritableTxnMarkerResult | Pending[WritableTxnMarkerResult]:
    control_type = ControlType.COMMIT if marker.transaction_result else ControlType.ABORT
    batch = BuiltMarker(
        EndTransactionMarker(control_type, marker.coordinator_epoch),
        producer_id=marker.producer_id,
        producer_epoch=marker.producer_epoch,
        timestamp=broker.runtime.clock.wall_ms(),
    )
    return combined(
        [_write_to_topic(broker, marker, topic, batch) for topic in marker.topics],
        lambda topics: WritableTxnMarkerResult(producer_id=marker.producer_id, topics=topics),
    )


def _write_to_topic(
    broker: Broker, marker: WritableTxnMarker, topic: WritableTxnMarkerTopic, batch: BuiltMarker
) -> WritableTxnMarkerTopicResult | Pending[WritableTxnMarkerTopicResult]:
    return combined(
        [_write(broker, marker, topic.name, index, batch) for index in topic.partition_indexes],
        lambda results: WritableTxnMarkerTopicResult(name=topic.name, partitions=results),
    )


def _write(
    broker: Broker, marker: WritableTxnMarker, topic: str, index: int, batch: BuiltMarker
) -> WritableTxnMarkerPartitionResult | Pending[WritableTxnMarkerPartitionResult]:
    try:
        written = _append(broker, marker, topic, index, batch)
    except errors.NotLeaderOrFollower:
        # As in Kafka, the error depends on whether this broker has a replica.
        known = broker.image.partition(topic, index)
        is_follower = known is not None and broker.node_id in known.replicas
        code = ErrorCode.NOT_LEADER_OR_FOLLOWER
        return _result(index, code if is_follower else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    except errors.EmbedlogError as error:
        return _result(index, _code(error))
    if written is None:
        return _result(index, ErrorCode.NONE)
    answer: Pending[WritableTxnMarkerPartitionResult] = Pending()

    def settled(done: Pending[Any]) -> None:
        error = done.error()
        if error is None:
            answer.complete(_result(index, ErrorCode.NONE))
        elif isinstance(error, errors.EmbedlogError):
            answer.complete(_result(index, _code(error)))
        else:
            answer.fail(error)

    written.add_callback(settled)
    return answer.result() if answer.done() else answer


def _append(
    broker: Broker, marker: WritableTxnMarker, topic: str, index: int, batch: BuiltMarker
) -> Pending[Any] | None:
    """Append the marker. Return None if it is committed already, otherwise a pending."""
    version = marker.transaction_version
    if broker.image.partition(topic, index) is None:
        raise errors.UnknownTopicOrPartition()
    if version == _NONE:
        raise errors.UnknownServerError("a marker of transaction version -1")
    if topic == OFFSETS_TOPIC:
        ended = Marker(
            batch,
            marker.producer_id,
            is_committed=marker.transaction_result,
            transaction_version=version,
        )
        return broker.group_coordinator.runtime.write(index, lambda _shard: Result(marker=ended))
    manager = broker.replica_manager
    partition = manager.partition(topic, index)
    info = manager.append_marker(partition, batch, transaction_version=version)
    if partition.log.offsets.high_watermark > info.last_offset:
        return None
    waiting = manager.await_append(_TIMEOUT_MS, partition, info)
    return waiting if isinstance(waiting, Pending) else None


def _code(error: errors.EmbedlogError) -> int:
    """Return the error code for a partition. It is NOT_LEADER_OR_FOLLOWER if another broker is the
    coordinator of the group.
    """
    code = as_kafka_error(error).code
    return ErrorCode.NOT_LEADER_OR_FOLLOWER if code in STALE_COORDINATOR else code


def _result(index: int, code: int) -> WritableTxnMarkerPartitionResult:
    return WritableTxnMarkerPartitionResult(partition_index=index, error_code=code)
