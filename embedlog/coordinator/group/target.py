"""`TargetAssignment`: the partitions that each member of a modern group shall have from an epoch
on.
"""

from __future__ import annotations

from embedlog.common import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from embedlog.controller.metadata import MetadataImage
    from embedlog.coordinator.group.assignors.spec import Partitions
    from embedlog.coordinator.group.modern_group import ModernGroup
    from embedlog.coordinator.result import CoordinatorRecord

    MakeRecord = Callable[[str, str, Partitions], CoordinatorRecord]
    """Group id, member id, target -> its record."""


class TargetAssignment(Value):
    """A target assignment, and its records."""

    epoch: int
    members: Mapping[str, Partitions]
    records: list[CoordinatorRecord]


def changed_targets(
    group: ModernGroup[Any, Partitions], found: Mapping[str, Partitions], record: MakeRecord
) -> list[CoordinatorRecord]:
    """Return a record for each member whose target is not its present one."""
    return [
        record(group.group_id, member_id, target)
        for member_id, target in found.items()
        if group.target.get(member_id) != target
    ]


def ids_of(topics: frozenset[str], metadata: MetadataImage) -> frozenset[bytes]:
    """Return the ids of the topics that exist."""
    by_name = metadata.topics_by_name
    return frozenset(by_name[name].topic_id for name in topics if name in by_name)
