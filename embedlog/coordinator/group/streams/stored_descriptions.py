"""Which topology of a group has a stored description: the two epochs in the record of type 17.

UNCERTAIN stands before a call of the plugin, which the record's append cannot undo.
"""

from __future__ import annotations

from embedlog import errors
from embedlog.coordinator.group.streams import member_records
from embedlog.coordinator.group.streams.descriptions import NodeType
from embedlog.coordinator.group.streams.facts import NO_EPOCH
from embedlog.coordinator.group.streams.streams_group import StreamsGroup
from embedlog.coordinator.result import Result

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from embedlog.coordinator.group.streams.membership import Membership
    from embedlog.coordinator.result import CoordinatorRecord
    from wire.schemas.streams_group_topology_description_update import (
        StreamsGroupTopologyDescriptionUpdateRequest,
        TopologyDescription,
    )

UNCERTAIN = -2


class StoredDescriptions:
    """Changes the epochs of one shard's groups. Requires: the shard's lock."""

    def __init__(self, membership: Membership) -> None:
        self._membership = membership

    def begin(self, request: StreamsGroupTopologyDescriptionUpdateRequest) -> Result[None]:
        """Check a description, and note that the plugin is about to get it.

        Raises:
            GroupIdNotFound, UnknownMemberId: the group or the member does not exist.
            InvalidRequest: the description is malformed, or not of the group's present topology.
        """
        group = self._membership.group(request.group_id)
        group.member(request.member_id)
        if request.topology_epoch != group.topology_epoch:
            raise errors.InvalidRequest(
                f"Topology epoch {request.topology_epoch} does not match the group's current"
                f" topology epoch {group.topology_epoch}."
            )
        _check(request.topology_description)
        return Result(_uncertain(group))

    def stored(self, group_id: str, epoch: int) -> Result[None]:
        """Note that the plugin has the description. Raise GroupIdNotFound if the group is gone."""
        group = self._membership.group(group_id)
        known = group.stored_description_epoch
        # It was deleted meanwhile: the plugin may have it or not.
        epoch = UNCERTAIN if known == NO_EPOCH else max(known, epoch)
        return Result([_with(group, stored_description_epoch=epoch)])

    def failed(self, group_id: str, epoch: int) -> Result[None]:
        """Note that the plugin refuses the description for ever."""
        group = self._membership.group(group_id)
        epoch = max(group.failed_description_epoch, epoch)
        return Result([_with(group, failed_description_epoch=epoch)])

    def begin_deletion(self, group_id: str) -> Result[bool]:
        """Note that the plugin is about to forget an empty group; answer whether it has to."""
        group = self._membership.groups.get(group_id)
        if not isinstance(group, StreamsGroup) or group.members:
            return Result((), False)
        if group.stored_description_epoch == NO_EPOCH:
            return Result((), False)
        return Result(_uncertain(group), True)

    def deleted(self, group_id: str) -> Result[None]:
        """Note that the plugin has forgotten the group, unless it got another description."""
        group = self._membership.groups.get(group_id)
        if not isinstance(group, StreamsGroup) or group.stored_description_epoch == NO_EPOCH:
            return Result()
        is_certain = group.stored_description_epoch == UNCERTAIN
        epoch = NO_EPOCH if is_certain else UNCERTAIN
        return Result([_with(group, stored_description_epoch=epoch)])


def _uncertain(group: StreamsGroup) -> list[CoordinatorRecord]:
    if group.stored_description_epoch == UNCERTAIN:
        return []
    return [_with(group, stored_description_epoch=UNCERTAIN)]


def _with(group: StreamsGroup, **changes: Any) -> CoordinatorRecord:
    return member_records.group_facts(group.group_id, group.facts().replace(**changes))


def _check(description: TopologyDescription) -> None:
    nodes = [node for part in description.subtopologies for node in part.nodes]
    for store in description.global_stores:
        nodes += (store.source, store.processor)
    for node in nodes:
        if node.node_type not in (NodeType.SOURCE, NodeType.PROCESSOR, NodeType.SINK):
            raise errors.InvalidRequest(f"Unknown topology node type: {node.node_type}")
    for store in description.global_stores:
        types = store.source.node_type, store.processor.node_type
        if types != (NodeType.SOURCE, NodeType.PROCESSOR):
            raise errors.InvalidRequest(
                "Global store must be composed of a source and a processor node."
            )
