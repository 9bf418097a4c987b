"""What an assignor is told about one member of a consumer group."""

from __future__ import annotations

from collections.abc import Mapping, Set

from embedlog.value import Value

Partitions = Mapping[bytes, Set[int]]
"""Topic id -> partition numbers; topics without any are absent."""


class MemberSpec(Value):
    """One member, as an assignor sees it."""

    topics: frozenset[bytes]
    """Ids of the topics it subscribes to. Equal sets are best shared: they are compared."""
    assigned: Partitions
    """What the last assignment gave it; it may name topics and partitions that are gone."""
    instance_id: str | None = None
    """Set for static members: the name that outlives its member id."""


def is_homogeneous(members: Mapping[str, MemberSpec]) -> bool:
    """Do all members subscribe to the same topics?"""
    specs = iter(members.values())
    first = next(specs, None)
    return first is None or all(spec.topics == first.topics for spec in specs)
