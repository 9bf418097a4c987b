"""Requests of members of consumer groups, for the tests of their APIs."""

from __future__ import annotations

from typing import Any

from wire.schemas.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

GROUP = "consumers"


def stay(member_id: str, epoch: int, **fields: Any) -> ConsumerGroupHeartbeatRequest:
    """Return a heartbeat with the required fields only."""
    said = {"group_id": GROUP, "member_id": member_id, "member_epoch": epoch}
    return ConsumerGroupHeartbeatRequest(**{**said, **fields})


def join(member_id: str, *topics: str, **fields: Any) -> ConsumerGroupHeartbeatRequest:
    """Return a first heartbeat."""
    full: dict[str, Any] = {
        "rebalance_timeout_ms": 30_000,
        "subscribed_topic_names": list(topics) or None,
        "topic_partitions": [],
    }
    return stay(member_id, 0, **{**full, **fields})


def owned(topic_id: bytes, *partitions: int) -> list[TopicPartitions]:
    """Return the partitions that a member reports as its own."""
    return [TopicPartitions(topic_id=topic_id, partitions=list(partitions))]


def assigned(response: ConsumerGroupHeartbeatResponse) -> dict[bytes, list[int]] | None:
    """Return the partitions that a response assigns; None without an assignment."""
    assert response.error_code == 0, response
    if response.assignment is None:
        return None
    return {t.topic_id: t.partitions for t in response.assignment.topic_partitions}
