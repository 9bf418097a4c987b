"""The key of a share partition: it chooses the shard, and FindCoordinator takes it."""

from __future__ import annotations

from embedlog.common import uuid_to_text

Place = tuple[bytes, int]
"""Topic id (16 bytes), partition number."""
ShareKey = tuple[str, bytes, int]
"""Group id, topic id, partition number."""


def key_text(group_id: str, place: Place) -> str:
    """Return the key of FindCoordinator.

    >>> key_text("g", (bytes(16), 3))
    'g:AAAAAAAAAAAAAAAAAAAAAA:3'
    """
    topic_id, partition = place
    return f"{group_id}:{uuid_to_text(topic_id)}:{partition}"
