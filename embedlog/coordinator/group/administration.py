"""ListGroups, DescribeGroups and DeleteGroups of one shard.

Requires for every function: the shard's lock.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from embedlog import errors
from embedlog.coordinator.group.classic.classic_group import ClassicGroup
from embedlog.coordinator.group.group import Group
from embedlog.coordinator.group.offsets.store import OffsetStore, offset_tombstone
from embedlog.coordinator.result import CoordinatorRecord
from wire.error_codes import ErrorCode
from wire.schemas.describe_groups import DescribedGroup
from wire.schemas.list_groups import ListedGroup

_FIRST_WITH_NOT_FOUND = 6
_FILTERS = {"NotReady": "not_ready"}
"""State -> its spelling in filters, if it is not the state in lower case."""


def listed(
    groups: Mapping[str, Group], states: Collection[str], types: Collection[str]
) -> list[ListedGroup]:
    """List the groups that have one of the states and one of the types.

    Both are given in lower case; an empty collection allows any.
    """
    found = []
    for group in groups.values():
        state = group.state_name()
        if states and _FILTERS.get(state, state.lower()) not in states:
            continue
        if types and group.GROUP_TYPE not in types:
            continue
        found.append(
            ListedGroup(
                group_id=group.group_id,
                protocol_type=group.protocol_type,
                group_state=state,
                group_type=group.GROUP_TYPE,
            )
        )
    return found


def described(groups: Mapping[str, Group], group_id: str, version: int) -> DescribedGroup:
    """Describe a classic group. Any other group is described as dead, from v6 on as an error."""
    group = groups.get(group_id)
    if isinstance(group, ClassicGroup):
        return group.described()
    what = "not found." if group is None else "is not a classic group."
    return dead(group_id, version, f"Group {group_id} {what}")


def dead(group_id: str, version: int, message: str) -> DescribedGroup:
    """Describe a group that is absent or of the wrong type."""
    if version < _FIRST_WITH_NOT_FOUND:
        return DescribedGroup(group_id=group_id, group_state="Dead")
    return DescribedGroup(
        group_id=group_id,
        group_state="Dead",
        error_code=ErrorCode.GROUP_ID_NOT_FOUND,
        error_message=message,
    )


def deletion(
    groups: Mapping[str, Group], store: OffsetStore, group_id: str
) -> list[CoordinatorRecord]:
    """Return the records that delete a group and all its offsets.

    Raises:
        GroupIdNotFound: the group does not exist.
        NonEmptyGroup: the group has members.
    """
    group = groups.get(group_id)
    if group is None:
        raise errors.GroupIdNotFound()
    group.validate_delete()
    places = {
        (topic, number): None
        for topic, partitions in store.of_group(group_id).items()
        for number in partitions
    }
    places.update((place, None) for place in store.pending_places(group_id))
    tombstones = [offset_tombstone(group_id, topic, number) for topic, number in places]
    return tombstones + group.tombstones()
