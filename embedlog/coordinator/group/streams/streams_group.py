"""`StreamsGroup`: the state of one streams group (KIP-1071).

group epoch     rises with every change of members, topics, topology or settings of the assignment
target epoch    the group epoch of the target assignment
member epoch    the target epoch that a member has reached; each member has its own

Empty        no members
NotReady     the topology lacks topics, or their partition counts do not fit
Assigning    group epoch > target epoch
Reconciling  some member has not reached the target
Stable       all members have reached it
"""

from __future__ import annotations

from embedlog import errors
from embedlog.coordinator.group.static_members import StaticMembersGroup
from embedlog.coordinator.group.streams.commit_check import check_commit
from embedlog.coordinator.group.streams.facts import NO_EPOCH, Facts, TaskOffsets
from embedlog.coordinator.group.streams.member import StreamsMember
from embedlog.coordinator.group.streams.task_holders import TaskHolders
from embedlog.coordinator.group.streams.tasks import NO_TASKS, Tasks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from embedlog.controller.metadata import MetadataImage
    from embedlog.coordinator.group.group import ExpiryBase
    from embedlog.coordinator.group.streams.configured_topology import ConfiguredTopology
    from embedlog.coordinator.group.streams.topology import Topology
    from embedlog.coordinator.result import CoordinatorRecord

EMPTY = "Empty"
NOT_READY = "NotReady"
ASSIGNING = "Assigning"
RECONCILING = "Reconciling"
STABLE = "Stable"

_FIRST_COMMIT_VERSION = 9


class StreamsGroup(StaticMembersGroup["StreamsMember", "Tasks"]):
    """One group. Only replay changes it, except for the last attributes of `__init__`."""

    GROUP_TYPE = "streams"

    def __init__(self, group_id: str, metadata: Callable[[], MetadataImage]) -> None:
        """`metadata` returns the present image of the cluster."""
        super().__init__(group_id)
        self._metadata = metadata
        self.topology: Topology | None = None
        self.validated_topology_epoch = NO_EPOCH
        self.assignment_configs: tuple[tuple[str, str], ...] = ()
        """The settings of the last assignment, in the order of their names."""
        self.stored_description_epoch = NO_EPOCH
        """Epoch of the topology whose description is stored; -2: it is uncertain."""
        self.failed_description_epoch = NO_EPOCH
        self.holders = TaskHolders()
        # These are not stored.
        self.configured: ConfiguredTopology | None = None
        """The topology with the metadata that `metadata_hash` stands for."""
        self.task_offsets: dict[str, TaskOffsets] = {}
        """Member id -> the offsets that it last reported."""
        self.shutdown_by: str | None = None
        """The member that asked to shut down the application, until the group is empty."""
        self.endpoint_epoch = 0
        """Rises when a member's endpoint changes, or the tasks of a member with an endpoint."""

    # State

    @property
    def protocol_type(self) -> str:
        return self.GROUP_TYPE

    @property
    def topology_epoch(self) -> int:
        return NO_EPOCH if self.topology is None else self.topology.epoch

    def facts(self) -> Facts:
        """Return the present content of the group's own record."""
        return Facts(
            self.group_epoch,
            self.metadata_hash,
            self.validated_topology_epoch,
            self.assignment_configs,
            self.stored_description_epoch,
            self.failed_description_epoch,
        )

    def state_name(self) -> str:
        """Return the state; see the module. O(members), so that a changed member need not update
        counters.
        """
        if not self.members:
            return EMPTY
        if self.topology is None or self.topology.epoch != self.validated_topology_epoch:
            return NOT_READY
        if self.group_epoch > self.target_epoch:
            return ASSIGNING
        if all(member.is_reconciled_to(self.target_epoch) for member in self.members.values()):
            return STABLE
        return RECONCILING

    def target_of(self, member: StreamsMember) -> Tasks:
        found = self.stored_target(member)
        return NO_TASKS if found is None else found

    # As any group

    def validate_offset_commit(
        self,
        member_id: str,
        instance_id: str | None,
        generation_or_epoch: int,
        *,
        is_transactional: bool,
        api_version: int,
        partitions: Iterable[tuple[bytes, int]] = (),
    ) -> None:
        """See `Group`. A member that names an earlier epoch may commit partitions of tasks that it
        already had in that epoch.
        """
        epoch = generation_or_epoch
        if epoch < 0 and not self.members:
            return
        if is_transactional and epoch == -1 and not member_id and instance_id is None:
            return
        member = self.member(member_id)
        if not is_transactional and api_version < _FIRST_COMMIT_VERSION:
            raise errors.UnsupportedVersion(
                "OffsetCommit version 9 or above must be used by members using the streams group"
                " protocol",
            )
        if epoch > member.epoch:
            raise errors.StaleMemberEpoch(
                f"Received member epoch {epoch} is newer than current member epoch {member.epoch}.",
            )
        if epoch < member.epoch:
            by_id = self._metadata().topics_by_id
            for topic_id, number in partitions:
                topic = by_id[topic_id].name if topic_id in by_id else ""
                check_commit(member, self.topology, (topic, number), epoch)

    def validate_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """See `Group`. A member must name its present epoch; other clients may always fetch."""
        if member_id is None and member_epoch < 0:
            return
        member = self.member(member_id or "")
        if member_epoch != member.epoch:
            raise errors.StaleMemberEpoch(
                f"The received member epoch {member_epoch} does not match the expected member epoch"
                f" {member.epoch}."
            )

    def validate_offset_delete(self) -> None:
        """Deletion is always valid: `is_subscribed_to` protects offsets in use."""

    def validate_delete(self) -> None:
        if self.members:
            raise errors.NonEmptyGroup()

    def is_subscribed_to(self, topic: str) -> bool:
        topology = self.topology
        return bool(self.members) and topology is not None and topology.reader_of(topic) is not None

    def offset_expiry_base(self) -> ExpiryBase | None:
        return lambda commit_timestamp_ms: commit_timestamp_ms

    def tombstones(self) -> list[CoordinatorRecord]:
        from embedlog.coordinator.group.streams import member_records

        return member_records.without_group(self.group_id, list(self.members))

    # Replay

    def put_member(self, member: StreamsMember) -> None:
        before = self.members.get(member.member_id)
        self.members[member.member_id] = member
        if before is not None:
            self.holders.remove(before)
            self._forget_instance(before)
        self.holders.add(member)
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id

    def drop_member(self, member_id: str) -> None:
        self.target.pop(member_id, None)
        self.task_offsets.pop(member_id, None)
        member = self.members.pop(member_id, None)
        if member is not None:
            self.holders.remove(member)
            self._forget_instance(member)
        if not self.members:
            self.shutdown_by = None

    def _forget_instance(self, member: StreamsMember) -> None:
        instance_id = member.instance_id
        if instance_id and self.static_members.get(instance_id) == member.member_id:
            del self.static_members[instance_id]
