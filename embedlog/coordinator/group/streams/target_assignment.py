"""The next target assignment of a streams group: each member's tasks from an epoch on."""

from __future__ import annotations

from collections.abc import Mapping

from embedlog.common import Value
from embedlog.coordinator.group.streams import member_records, sticky_assignor
from embedlog.coordinator.group.streams.sticky_assignor import MemberSpec, SubtopologySpec
from embedlog.coordinator.group.streams.tasks import NO_TASKS, Tasks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.coordinator.group.streams.configured_topology import ConfiguredTopology
    from embedlog.coordinator.group.streams.member import StreamsMember
    from embedlog.coordinator.group.streams.streams_group import StreamsGroup
    from embedlog.coordinator.result import CoordinatorRecord

STANDBY_COUNT = "num.standby.replicas"
RACK_TAGS = "rack.aware.assignment.tags"


class TargetAssignment(Value):
    """A target assignment, and its records."""

    epoch: int
    members: Mapping[str, Tasks]
    records: list[CoordinatorRecord]


def make_target_assignment(
    group: StreamsGroup,
    members: Mapping[str, StreamsMember],
    configured: ConfiguredTopology,
    *,
    configs: Mapping[str, str],
    epoch: int,
    now_ms: int,
) -> TargetAssignment:
    """Assign all tasks to `members`; none while topics are missing or do not fit.

    Only changed assignments become records. `configs` are the settings of the assignment.
    """
    if configured.is_ready:
        assert configured.subtopologies is not None, configured
        found = sticky_assignor.assign(
            {member_id: _spec(group, member) for member_id, member in members.items()},
            {
                name: SubtopologySpec(part.task_count, part.is_stateful)
                for name, part in configured.subtopologies.items()
            },
            standby_count=int(configs.get(STANDBY_COUNT, "0")),
        )
    else:
        found = dict.fromkeys(members, NO_TASKS)
    records = [
        member_records.target_assignment(group.group_id, member_id, target)
        for member_id, target in found.items()
        if group.stored_target(members[member_id]) != target
    ]
    records.append(member_records.target_epoch(group.group_id, epoch, now_ms))
    return TargetAssignment(epoch, found, records)


def members_after(group: StreamsGroup, updated: StreamsMember) -> dict[str, StreamsMember]:
    """Return the members with `updated` in place of the member that it replaces."""
    members = dict(group.members)
    if updated.instance_id is not None:
        former = group.static_members.get(updated.instance_id)
        if former != updated.member_id:
            members.pop(former or "", None)
    members[updated.member_id] = updated
    return members


def _spec(group: StreamsGroup, member: StreamsMember) -> MemberSpec:
    reported = group.task_offsets.get(member.member_id)
    return MemberSpec(
        process_id=member.process_id,
        active=member.assigned.active_numbers(),
        standby=member.assigned.standby,
        offsets={} if reported is None else reported.offsets,
    )
