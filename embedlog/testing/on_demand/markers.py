"""WriteTxnMarkers in two parts: the markers that a test holds, and the others."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from wire.schemas.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)


def divided(
    request: WriteTxnMarkersRequest, places: Collection[tuple[str, int]]
) -> tuple[WriteTxnMarkersRequest, WriteTxnMarkersRequest]:
    """Return the part of a request for these partitions, and the rest."""
    return _part(request, places, is_inside=True), _part(request, places, is_inside=False)


def _part(
    request: WriteTxnMarkersRequest, places: Collection[tuple[str, int]], *, is_inside: bool
) -> WriteTxnMarkersRequest:
    markers = []
    for marker in request.markers:
        topics = []
        for topic in marker.topics:
            chosen = [
                index
                for index in topic.partition_indexes
                if ((topic.name, index) in places) == is_inside
            ]
            if chosen:
                topics.append(WritableTxnMarkerTopic(name=topic.name, partition_indexes=chosen))
        if topics:
            markers.append(
                WritableTxnMarker(
                    producer_id=marker.producer_id,
                    producer_epoch=marker.producer_epoch,
                    transaction_result=marker.transaction_result,
                    topics=topics,
                    coordinator_epoch=marker.coordinator_epoch,
                    transaction_version=marker.transaction_version,
                )
            )
    return WriteTxnMarkersRequest(markers=markers)


def joined(parts: Sequence[WriteTxnMarkersResponse]) -> WriteTxnMarkersResponse:
    """Return the answers of both parts as one."""
    return WriteTxnMarkersResponse(markers=[each for part in parts for each in part.markers])
