"""Requests about committed offsets, and short forms of their answers.

Offsets are dicts: {(topic, partition): offset}; topics are names, or ids from version 10 on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from wire.schemas.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from wire.schemas.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from wire.schemas.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
)

Topic = str | bytes
Place = tuple[Topic, int]


def commit(
    group_id: str,
    offsets: Mapping[Place, int],
    *,
    member_id: str = "",
    generation: int = -1,
    metadata: str | None = "",
    leader_epoch: int = -1,
    **fields: Any,
) -> OffsetCommitRequest:
    """Return a request that commits `offsets`, all with the same metadata and epoch."""
    by_topic: dict[Topic, list[OffsetCommitRequestPartition]] = {}
    for (topic, number), offset in offsets.items():
        by_topic.setdefault(topic, []).append(
            OffsetCommitRequestPartition(
                partition_index=number,
                committed_offset=offset,
                committed_leader_epoch=leader_epoch,
                committed_metadata=metadata,
            )
        )
    return OffsetCommitRequest(
        group_id=group_id,
        generation_id_or_member_epoch=generation,
        member_id=member_id,
        topics=[
            OffsetCommitRequestTopic(**_named(topic), partitions=partitions)
            for topic, partitions in by_topic.items()
        ],
        **fields,
    )


def commit_codes(response: OffsetCommitResponse) -> dict[Place, int]:
    """Return the error code of each partition."""
    return {
        (_name(topic), partition.partition_index): partition.error_code
        for topic in response.topics
        for partition in topic.partitions
    }


def fetch(
    group_id: str,
    places: Sequence[Place] | None = None,
    *,
    require_stable: bool = False,
    **fields: Any,
) -> OffsetFetchRequest:
    """Return a request of version 8 or newer for one group; None fetches all its offsets."""
    return OffsetFetchRequest(
        groups=[question(group_id, places, **fields)], require_stable=require_stable
    )


def question(
    group_id: str, places: Sequence[Place] | None = None, **fields: Any
) -> OffsetFetchRequestGroup:
    """Return the part for one group of such a request."""
    return OffsetFetchRequestGroup(
        group_id=group_id,
        topics=None
        if places is None
        else [
            OffsetFetchRequestTopics(**_named(topic), partition_indexes=numbers)
            for topic, numbers in _grouped(places).items()
        ],
        **fields,
    )


def older_fetch(group_id: str, places: Sequence[tuple[str, int]] | None) -> OffsetFetchRequest:
    """Return a request of a version before 8."""
    return OffsetFetchRequest(
        group_id=group_id,
        topics=None
        if places is None
        else [
            OffsetFetchRequestTopic(name=str(topic), partition_indexes=numbers)
            for topic, numbers in _grouped(places).items()
        ],
    )


def fetched(
    answer: OffsetFetchResponse | OffsetFetchResponseGroup,
) -> dict[Place, int]:
    """Return the offset of each partition of the only group; fail for an error."""
    if isinstance(answer, OffsetFetchResponse) and answer.groups:
        (group,) = answer.groups
        return fetched(group)
    assert answer.error_code == 0, answer
    found: dict[Place, int] = {}
    for topic in answer.topics:
        for partition in topic.partitions:
            assert partition.error_code == 0, answer
            found[_name(topic), partition.partition_index] = partition.committed_offset
    return found


def delete(group_id: str, places: Sequence[tuple[str, int]]) -> OffsetDeleteRequest:
    """Return a request that deletes offsets."""
    return OffsetDeleteRequest(
        group_id=group_id,
        topics=[
            OffsetDeleteRequestTopic(
                name=str(topic),
                partitions=[OffsetDeleteRequestPartition(partition_index=n) for n in numbers],
            )
            for topic, numbers in _grouped(places).items()
        ],
    )


def delete_codes(response: OffsetDeleteResponse) -> dict[Place, int]:
    """Return the error code of each partition; fail for an error of the whole answer."""
    assert response.error_code == 0, response
    return {
        (topic.name, partition.partition_index): partition.error_code
        for topic in response.topics
        for partition in topic.partitions
    }


def _grouped(places: Sequence[Place] | Sequence[tuple[str, int]]) -> dict[Topic, list[int]]:
    by_topic: dict[Topic, list[int]] = {}
    for topic, number in places:
        by_topic.setdefault(topic, []).append(number)
    return by_topic


def _named(topic: Topic) -> dict[str, Any]:
    return {"topic_id": topic} if isinstance(topic, bytes) else {"name": topic}


def _name(topic: Any) -> Topic:
    name: Topic = topic.name or topic.topic_id
    return name
