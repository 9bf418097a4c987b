"""`ConsumerGroup`: the state of one group of the consumer protocol (KIP-848).

group epoch     rises with every change of members, subscriptions or subscribed metadata
target epoch    the group epoch of the target assignment
member epoch    the target epoch that a member has reached; each member has its own

Empty        no members
Assigning    group epoch > target epoch
Reconciling  some member has not reached the target
Stable       all members have reached it
"""

from __future__ import annotations

from embedlog import errors
from embedlog.coordinator.group.consumer.holders import Holders
from embedlog.coordinator.group.consumer.member import ConsumerMember, Owned
from embedlog.coordinator.group.consumer.subscriptions import AssignorVotes, Subscriptions
from embedlog.coordinator.group.protocols import SupportedProtocols
from embedlog.coordinator.group.static_members import StaticMembersGroup

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from embedlog.controller.metadata import MetadataImage
    from embedlog.coordinator.group.assignors.spec import Partitions
    from embedlog.coordinator.group.group import ExpiryBase
    from embedlog.coordinator.result import CoordinatorRecord

EMPTY = "Empty"
ASSIGNING = "Assigning"
RECONCILING = "Reconciling"
STABLE = "Stable"

PROTOCOL_TYPE = "consumer"

_FIRST_COMMIT_VERSION = 9
_NO_TARGET: Partitions = {}


class ConsumerGroup(StaticMembersGroup["ConsumerMember", "Partitions"]):
    """One group. Only replay changes it, except for the last attributes of `__init__`."""

    GROUP_TYPE = "consumer"

    def __init__(self, group_id: str) -> None:
        super().__init__(group_id)
        self.subscriptions = Subscriptions()
        self.assignor_votes = AssignorVotes()
        self.classic_protocols = SupportedProtocols()
        """The protocols of members of the classic protocol."""
        self.holders = Holders()
        # These are not stored: the time of the last match, and its metadata.
        self.regexes_matched_ms: int | None = None
        self.regexes_matched_for: MetadataImage | None = None

    # State

    @property
    def protocol_type(self) -> str:
        return PROTOCOL_TYPE

    def state_name(self) -> str:
        """Return the state; see the module. O(members), so that a changed member need not update
        counters.
        """
        if not self.members:
            return EMPTY
        if self.group_epoch > self.target_epoch:
            return ASSIGNING
        if all(member.is_reconciled_to(self.target_epoch) for member in self.members.values()):
            return STABLE
        return RECONCILING

    def target_of(self, member: ConsumerMember) -> Partitions:
        """Return the member's target; a new static member has its predecessor's."""
        found = self.stored_target(member)
        return _NO_TARGET if found is None else found

    def supports_protocols(self, protocol_type: str, names: Iterable[str]) -> bool:
        """Return whether a classic member with these protocols may join.

        The protocol type must be "consumer", and all classic members must know one of the
        protocols.
        """
        if protocol_type != PROTOCOL_TYPE:
            return False
        if not self.members:
            return any(True for _ in names)
        return self.classic_protocols.has_common(names)

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
        """See `Group`. A member that names an earlier epoch may commit partitions that it already
        had in that epoch (KIP-1251).
        """
        if generation_or_epoch < 0 and not self.members:
            return
        member = self.member(member_id)
        if member.classic is None and not is_transactional and api_version < _FIRST_COMMIT_VERSION:
            raise errors.UnsupportedVersion(
                "OffsetCommit version 9 or above must be used by members using the modern group"
                " protocol",
            )
        epoch = generation_or_epoch
        is_behind = member.classic is None and 0 <= epoch < member.epoch
        if is_behind and all(_had_at(member.assigned, t, n, epoch) for t, n in partitions):
            return
        _check_epoch(member, epoch)

    def validate_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """See `Group`. A member must name its present epoch; other clients may always fetch."""
        if member_id is None and member_epoch < 0:
            return
        _check_epoch(self.member(member_id or ""), member_epoch)

    def validate_offset_delete(self) -> None:
        """Deletion is always valid: `is_subscribed_to` protects offsets in use."""

    def validate_delete(self) -> None:
        if self.members:
            raise errors.NonEmptyGroup()

    def is_subscribed_to(self, topic: str) -> bool:
        return self.subscriptions.includes(topic)

    def offset_expiry_base(self) -> ExpiryBase | None:
        return lambda commit_timestamp_ms: commit_timestamp_ms

    def tombstones(self) -> list[CoordinatorRecord]:
        from embedlog.coordinator.group.consumer import member_records

        return member_records.without_group(
            self.group_id, list(self.members), list(self.subscriptions.resolved)
        )

    # Replay

    def put_member(self, member: ConsumerMember) -> None:
        before = self.members.get(member.member_id)
        self.members[member.member_id] = member
        if before is not None:
            self.holders.remove(before)
        self.holders.add(member)
        if before is not None:
            if _is_same_subscriber(before, member):
                return
            self._forget_subscriber(before)
        self._note_subscriber(member)

    def drop_member(self, member_id: str) -> None:
        self.target.pop(member_id, None)
        member = self.members.pop(member_id, None)
        if member is not None:
            self.holders.remove(member)
            self._forget_subscriber(member)

    def _note_subscriber(self, member: ConsumerMember) -> None:
        self.subscriptions.add(member)
        self.assignor_votes.add(member)
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id
        if member.classic is not None:
            self.classic_protocols.add(member.classic.names)

    def _forget_subscriber(self, member: ConsumerMember) -> None:
        self.subscriptions.remove(member)
        self.assignor_votes.remove(member)
        instance_id = member.instance_id
        if instance_id and self.static_members.get(instance_id) == member.member_id:
            del self.static_members[instance_id]
        if member.classic is not None:
            self.classic_protocols.remove(member.classic.names)


def _is_same_subscriber(one: ConsumerMember, other: ConsumerMember) -> bool:
    """Return whether the two differ only in epochs and partitions; then no subscription changes."""
    return (
        one.topics == other.topics
        and one.regex == other.regex
        and one.instance_id == other.instance_id
        and one.server_assignor == other.server_assignor
        and one.classic == other.classic
    )


def _had_at(assigned: Owned, topic_id: bytes, partition: int, epoch: int) -> bool:
    since = assigned.get(topic_id, {}).get(partition)
    return since is not None and since <= epoch


def _check_epoch(member: ConsumerMember, epoch: int) -> None:
    if epoch == member.epoch:
        return
    if member.classic is not None:
        raise errors.IllegalGeneration(
            f"The received generation id {epoch} does not match the expected member epoch"
            f" {member.epoch}.",
        )
    raise errors.StaleMemberEpoch(
        f"The received member epoch {epoch} does not match the expected member epoch"
        f" {member.epoch}.",
    )
