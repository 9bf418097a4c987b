"""Send the markers of transactions: one request to each broker that leads some of the partitions.

If the leader of a partition is unknown or does not answer, the partition has an error code in the
response, and the transaction coordinator sends its marker again later.
"""

from __future__ import annotations

from embedlog import errors
from embedlog.broker.context import RequestContext
from embedlog.coordinator.answers import combined
from embedlog.runtime.pending import Pending
from wire.api_keys import ApiKey
from wire.error_codes import ErrorCode
from wire.registry import stable_versions
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
    from collections.abc import Callable, Iterable

    from embedlog.broker.peers import Peers
    from embedlog.controller.metadata import MetadataImage

    Answer = WriteTxnMarkersResponse | Pending[WriteTxnMarkersResponse]


NOBODY = -1
_TIMEOUT_MS = 30_000
_, _VERSION = stable_versions(ApiKey.WRITE_TXN_MARKERS)


def send_markers(
    request: WriteTxnMarkersRequest,
    *,
    image: MetadataImage,
    node_id: int,
    peers: Peers | None,
    handle: Callable[[RequestContext, WriteTxnMarkersRequest], Answer],
) -> Answer:
    """Send the markers to all leaders; return their answers as one response.

    `handle` is `Broker.handle` of this broker, whose id is `node_id`.
    """
    if peers is None:
        return handle(RequestContext(ApiKey.WRITE_TXN_MARKERS, _VERSION), request)
    answers: list[Answer] = []
    for leader, asked in _by_leader(image, request).items():
        if leader == NOBODY:
            answers.append(all_refused(asked, ErrorCode.NOT_LEADER_OR_FOLLOWER))
        elif leader == node_id:
            context = RequestContext(ApiKey.WRITE_TXN_MARKERS, _VERSION)
            answers.append(handle(context, asked))
        else:
            answers.append(_ask(peers, leader, asked))
    return combined(
        answers,
        lambda found: WriteTxnMarkersResponse(
            markers=[marker for response in found for marker in response.markers]
        ),
    )


def _by_leader(
    image: MetadataImage, request: WriteTxnMarkersRequest
) -> dict[int, WriteTxnMarkersRequest]:
    """Split the request by the leaders of its partitions; `NOBODY` stands for an unknown leader."""
    parts: dict[int, WriteTxnMarkersRequest] = {}
    for marker in request.markers:
        places: dict[int, dict[str, list[int]]] = {}
        for topic in marker.topics:
            for index in topic.partition_indexes:
                known = image.partition(topic.name, index)
                leader = NOBODY if known is None else known.leader
                places.setdefault(leader, {}).setdefault(topic.name, []).append(index)
        for leader, topics in places.items():
            part = parts.setdefault(leader, WriteTxnMarkersRequest(markers=[]))
            part.markers.append(_of(marker, topics.items()))
    return parts


def _of(marker: WritableTxnMarker, topics: Iterable[tuple[str, list[int]]]) -> WritableTxnMarker:
    return WritableTxnMarker(
        producer_id=marker.producer_id,
        producer_epoch=marker.producer_epoch,
        transaction_result=marker.transaction_result,
        topics=[
            WritableTxnMarkerTopic(name=name, partition_indexes=indexes) for name, indexes in topics
        ],
        coordinator_epoch=marker.coordinator_epoch,
        transaction_version=marker.transaction_version,
    )


def _ask(peers: Peers, leader: int, asked: WriteTxnMarkersRequest) -> Answer:
    """Send a request to a leader. If the answer fails, return its error code for each partition."""
    answer: Pending[WriteTxnMarkersResponse] = Pending()

    def answered(done: Pending[WriteTxnMarkersResponse]) -> None:
        error = done.error()
        if error is None:
            answer.complete(done.result())
        elif isinstance(error, errors.KafkaError):
            answer.complete(all_refused(asked, error.code))
        else:
            answer.fail(error)

    peers.send(leader, asked, timeout_ms=_TIMEOUT_MS).add_callback(answered)
    return answer


def all_refused(request: WriteTxnMarkersRequest, code: int) -> WriteTxnMarkersResponse:
    """Return the same error for every partition."""
    return WriteTxnMarkersResponse(
        markers=[
            WritableTxnMarkerResult(
                producer_id=marker.producer_id,
                topics=[
                    WritableTxnMarkerTopicResult(
                        name=topic.name,
                        partitions=[
                            WritableTxnMarkerPartitionResult(partition_index=index, error_code=code)
                            for index in topic.partition_indexes
                        ],
                    )
                    for topic in marker.topics
                ],
            )
            for marker in request.markers
        ]
    )
