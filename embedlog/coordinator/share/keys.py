"""The key of a share partition: it chooses the shard, and FindCoordinator takes it."""

from __future__ import annotations

from embedlog.common import grouped, uuid_to_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

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


def by_topic(places: Iterable[Place]) -> Iterable[tuple[bytes, list[Place]]]:
    """Return the places of each topic id; all keep their order."""
    return grouped(places, lambda place: place[0]).items()
