"""Admin calls about groups and their offsets.

This file has the public interface. The first call imports the implementation.
"""

from __future__ import annotations

from embedlog.client import arguments
from embedlog.client.admin.part import AdminPart, in_turn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from embedlog.client.admin.group_calls import GroupDescription, GroupListing
    from embedlog.client.admin.results import ItemResults
    from embedlog.client.consumer.group.group_offsets import OffsetAndMetadata
    from embedlog.common import TopicPartition

    Partitions = Iterable[TopicPartition | tuple[str, int]]
    StoredOffsets = ItemResults[TopicPartition, OffsetAndMetadata | None]


class GroupAdmin(AdminPart):
    """Lists, describes, changes and deletes groups and their offsets."""

    @in_turn
    def list_groups(
        self,
        *,
        states: Iterable[str] = (),
        types: Iterable[str] = (),
        timeout_ms: int | None = None,
    ) -> ItemResults[str | int, GroupListing]:
        """Return the groups of all brokers by group id; errors of brokers by node id.

        `states` ("Stable", "Empty", ...) and `types` ("classic", "consumer", ...) are filters that
        ignore case. A broker that is too old for a filter answers UnsupportedVersion.
        """
        from embedlog.client.admin.group_calls import list_groups

        states = arguments.names(states, "list_groups", "states", what="states of groups")
        types = arguments.names(types, "list_groups", "types", what="types of groups")
        return list_groups(self._calls, states, types, timeout_ms)

    @in_turn
    def describe_groups(
        self,
        group_ids: Iterable[str],
        *,
        include_authorized_operations: bool = False,
        timeout_ms: int | None = None,
    ) -> ItemResults[str, GroupDescription]:
        """Return state, members and assignments of consumer and classic groups."""
        from embedlog.client.admin.group_calls import describe_groups

        wanted = arguments.names(group_ids, "describe_groups", "group_ids", what="group ids")
        return describe_groups(self._calls, wanted, include_authorized_operations, timeout_ms)

    @in_turn
    def delete_groups(
        self, group_ids: Iterable[str], *, timeout_ms: int | None = None
    ) -> ItemResults[str, None]:
        """Delete groups without members, with their offsets."""
        from embedlog.client.admin.group_calls import delete_groups

        wanted = arguments.names(group_ids, "delete_groups", "group_ids", what="group ids")
        return delete_groups(self._calls, wanted, timeout_ms)

    @in_turn
    def remove_members(
        self,
        group_id: str,
        *,
        member_ids: Iterable[str] | None = None,
        instance_ids: Iterable[str] | None = None,
        reason: str | None = None,
        timeout_ms: int | None = None,
    ) -> ItemResults[str, None]:
        """Remove members from a group, by member id or, if static, by instance id.

        Without ids, all members are removed. The keys of the results are the given ids; if all
        members are removed, each member's instance id, or its member id if it is not static. A
        running member learns of its removal with the next heartbeat: it loses its partitions and
        joins again.

        Raises:
            KafkaError: the group or its coordinator has an error; no member was removed.
        """
        from embedlog.client.admin.group_calls import remove_members

        call = "remove_members"
        arguments.name(group_id, call, "group_id", what="a group's id")
        if member_ids is not None:
            member_ids = arguments.names(member_ids, call, "member_ids", what="member ids")
        if instance_ids is not None:
            instance_ids = arguments.names(instance_ids, call, "instance_ids", what="instance ids")
        return remove_members(
            self._calls,
            group_id,
            member_ids,
            instance_ids,
            reason=reason,
            timeout_ms=timeout_ms,
        )

    @in_turn
    def list_group_offsets(
        self,
        groups: Iterable[str] | Mapping[str, Partitions | None],
        *,
        require_stable: bool = False,
        timeout_ms: int | None = None,
    ) -> ItemResults[str, StoredOffsets]:
        """Return the committed offsets of groups.

        `groups` are group ids, or a dict with the partitions of each group (None for all). A named
        partition without an offset has the value None. With `require_stable`, an offset in an open
        transaction has the error UnstableOffsetCommit (KIP-447).
        """
        from embedlog.client.admin.group_offsets import list_group_offsets

        ids = arguments.names(groups, "list_group_offsets", "groups", what="group ids")
        wanted: dict[str, list[TopicPartition] | None] = dict.fromkeys(ids)
        for group, keys in groups.items() if hasattr(groups, "items") else ():
            if keys is not None:
                where = f"groups: {group}"
                wanted[group] = arguments.partitions(keys, "list_group_offsets", where)
        return list_group_offsets(self._calls, wanted, require_stable, timeout_ms)

    @in_turn
    def alter_group_offsets(
        self,
        group_id: str,
        offsets: Mapping[TopicPartition, OffsetAndMetadata | int]
        | Mapping[tuple[str, int], OffsetAndMetadata | int],
        *,
        timeout_ms: int | None = None,
    ) -> ItemResults[TopicPartition, None]:
        """Store offsets for a group without members. A group with members: UnknownMemberId.

        Raises:
            KafkaError: the group or its coordinator has an error; nothing was stored.
        """
        from embedlog.client.admin.group_offsets import alter_group_offsets
        from embedlog.client.consumer.group.group_offsets import offsets_of

        call = "alter_group_offsets"
        arguments.name(group_id, call, "group_id", what="a group's id")
        wanted = offsets_of(offsets, call)
        return alter_group_offsets(self._calls, group_id, wanted, timeout_ms)

    @in_turn
    def delete_group_offsets(
        self, group_id: str, partitions: Partitions, *, timeout_ms: int | None = None
    ) -> ItemResults[TopicPartition, None]:
        """Delete the offsets of partitions whose topics no member has subscribed to.

        Raises:
            KafkaError: the group or its coordinator has an error; nothing was deleted.
        """
        from embedlog.client.admin.group_offsets import delete_group_offsets

        arguments.name(group_id, "delete_group_offsets", "group_id", what="a group's id")
        wanted = arguments.partitions(partitions, "delete_group_offsets")
        return delete_group_offsets(self._calls, group_id, wanted, timeout_ms)
