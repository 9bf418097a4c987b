"""The admin client's calls about groups and the offsets they store.

Only what a caller must know stands here; the work is loaded with the first call.
"""

from __future__ import annotations

from embedlog.client.admin.part import AdminPart, in_turn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from embedlog.client.admin.group_results import GroupDescription, GroupListing
    from embedlog.client.admin.results import ItemResults
    from embedlog.client.group.group_offsets import OffsetAndMetadata
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
        """The groups of all brokers, by id; the error of a broker stands under its node id.

        `states` ("Stable", "Empty", ...) and `types` ("classic", "consumer", ...) choose some; case
        does not matter. A broker too old to choose answers UnsupportedVersion.
        """
        from embedlog.client.admin.group_calls import list_groups

        return list_groups(self._calls, list(states), list(types), timeout_ms)

    @in_turn
    def describe_groups(
        self,
        group_ids: Iterable[str],
        *,
        include_authorized_operations: bool = False,
        timeout_ms: int | None = None,
    ) -> ItemResults[str, GroupDescription]:
        """State, members and assignments of consumer and classic groups."""
        from embedlog.client.admin.group_calls import describe_groups

        return describe_groups(
            self._calls, list(group_ids), include_authorized_operations, timeout_ms
        )

    @in_turn
    def delete_groups(
        self, group_ids: Iterable[str], *, timeout_ms: int | None = None
    ) -> ItemResults[str, None]:
        """Delete groups without members, and their offsets."""
        from embedlog.client.admin.group_calls import delete_groups

        return delete_groups(self._calls, list(group_ids), timeout_ms)

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
        """Make members leave a group, by member id and static ones by instance id.

        Without either all are removed. The results stand under the ids that were given, those of
        all members under the instance id where there is one. A member that is still there learns
        it with its next heartbeat: its partitions are lost, and it joins again.

        Raises:
            KafkaError: nobody was removed, as the group or its coordinator has an error.
        """
        from embedlog.client.admin.group_calls import remove_members

        return remove_members(
            self._calls,
            group_id,
            None if member_ids is None else list(member_ids),
            None if instance_ids is None else list(instance_ids),
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
        """The offsets that groups have stored, for some partitions of each or (None) for all.

        A partition that was asked about and has none gives None. With `require_stable` offsets of
        open transactions are the error UnstableOffsetCommit (KIP-447).
        """
        from embedlog.client.admin.group_offsets import list_group_offsets

        return list_group_offsets(self._calls, groups, require_stable, timeout_ms)

    @in_turn
    def alter_group_offsets(
        self,
        group_id: str,
        offsets: Mapping[TopicPartition, OffsetAndMetadata | int]
        | Mapping[tuple[str, int], OffsetAndMetadata | int],
        *,
        timeout_ms: int | None = None,
    ) -> ItemResults[TopicPartition, None]:
        """Store offsets in place of a group that has no members (else UnknownMemberId).

        Raises:
            KafkaError: nothing was stored, as the group or its coordinator has an error.
        """
        from embedlog.client.admin.group_offsets import alter_group_offsets

        return alter_group_offsets(self._calls, group_id, offsets, timeout_ms)

    @in_turn
    def delete_group_offsets(
        self, group_id: str, partitions: Partitions, *, timeout_ms: int | None = None
    ) -> ItemResults[TopicPartition, None]:
        """Forget the stored offsets of partitions whose topics no member has subscribed to.

        Raises:
            KafkaError: nothing was deleted, as the group or its coordinator has an error.
        """
        from embedlog.client.admin.group_offsets import delete_group_offsets

        return delete_group_offsets(self._calls, group_id, list(partitions), timeout_ms)
