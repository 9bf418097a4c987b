"""The end offsets of partitions, from their leaders: one ListOffsets to each leader.

If the leader of a partition is unknown or does not answer, the partition has an error code.
"""

from __future__ import annotations

from embedlog.broker.context import RequestContext
from embedlog.coordinator.answers import combined
from embedlog.runtime.pending import Pending, completed
from wire.api_keys import ApiKey
from wire.error_codes import ErrorCode
from wire.registry import stable_versions
from wire.schemas.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from embedlog.broker.broker import Broker

    Place = tuple[str, int]
    """Topic name and partition number."""
    Found = Mapping[Place, tuple[int, int]]
    """Error code and high watermark of each partition."""

_NOBODY = -1
_LATEST = -1
_CONSUMER = -1
_TIMEOUT_MS = 30_000
_, _VERSION = stable_versions(ApiKey.LIST_OFFSETS)


def end_offsets(
    broker: Broker, places: Sequence[Place]
) -> Pending[Mapping[Place, tuple[int, int]]]:
    """Return (error code, high watermark) of each partition."""
    by_leader: dict[int, list[Place]] = {}
    for topic, number in places:
        known = broker.image.partition(topic, number)
        leader = _NOBODY if known is None else known.leader
        by_leader.setdefault(leader, []).append((topic, number))
    parts = [_ask(broker, leader, some) for leader, some in by_leader.items()]

    def whole(found: list[Found]) -> Found:
        return {place: each for part in found for place, each in part.items()}

    found = combined(parts, whole)
    return found if isinstance(found, Pending) else completed(found)


def _ask(broker: Broker, leader: int, places: Sequence[Place]) -> Found | Pending[Found]:
    if leader == _NOBODY:
        return dict.fromkeys(places, (int(ErrorCode.LEADER_NOT_AVAILABLE), -1))
    request = _request(places)
    if broker.peers is None or leader == broker.node_id:
        context = RequestContext(ApiKey.LIST_OFFSETS, _VERSION)
        answer = broker.handle(context, request)
        if not isinstance(answer, Pending):
            return _read(answer)
    else:
        answer = broker.peers.send(leader, request, timeout_ms=_TIMEOUT_MS)
    found: Pending[Found] = Pending()

    def arrived(done: Pending[ListOffsetsResponse]) -> None:
        error = done.error()
        if error is None:
            found.complete(_read(done.result()))
        else:
            code = getattr(error, "code", ErrorCode.UNKNOWN_SERVER_ERROR)
            found.complete(dict.fromkeys(places, (int(code), -1)))

    answer.add_callback(arrived)
    return found


def _request(places: Sequence[Place]) -> ListOffsetsRequest:
    numbers: dict[str, list[int]] = {}
    for topic, number in dict.fromkeys(places):
        numbers.setdefault(topic, []).append(number)
    return ListOffsetsRequest(
        replica_id=_CONSUMER,
        topics=[
            ListOffsetsTopic(
                name=topic,
                partitions=[
                    ListOffsetsPartition(partition_index=number, timestamp=_LATEST)
                    for number in some
                ],
            )
            for topic, some in numbers.items()
        ],
    )


def _read(response: ListOffsetsResponse) -> Found:
    return {
        (topic.name, each.partition_index): (each.error_code, each.offset)
        for topic in response.topics
        for each in topic.partitions
    }
