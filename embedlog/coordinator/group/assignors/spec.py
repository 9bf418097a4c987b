"""An assignor's input for one member of a consumer group."""

from __future__ import annotations

from collections.abc import Mapping, Set

from embedlog.common import Value

Partitions = Mapping[bytes, Set[int]]
"""Topic id -> partition numbers; topics without partitions are absent."""


class MemberSpec(Value):
    """One member of a group."""

    topics: frozenset[bytes]
    """Ids of the topics that the member subscribes to. Members with equal subscriptions should
    share one set, which makes comparisons cheap."""
    assigned: Partitions
    """The last assignment; it may name topics and partitions that no longer exist."""
    instance_id: str | None = None
    """A static member's instance id, which outlives its member id."""


def is_homogeneous(members: Mapping[str, MemberSpec]) -> bool:
    """Return whether all members subscribe to the same topics."""
    specs = iter(members.values())
    first = next(specs, None)
    return first is None or all(spec.topics == first.topics for spec in specs)
