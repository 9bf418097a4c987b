"""`ClassicGroup`: the state of one group, and the table of its states.

    Empty  -- first join -->  PreparingRebalance  -- all joined -->  CompletingRebalance
      ^                        |      ^      ^                           |        |
      +---- all members left --+      |      +-- join, leave, time-out --+        | leader's sync
                                      |                                           v
                                      +------------ join, leave, time-out ---- Stable

`Members` holds the members, their leader and their protocols.
"""

from __future__ import annotations

from embedlog import errors
from embedlog.coordinator.group.classic.members import Members
from embedlog.coordinator.group.classic.subscription import Subscriptions
from embedlog.coordinator.group.group import Group
from embedlog.coordinator.result import CoordinatorRecord
from embedlog.errors import error_for
from wire.schemas.describe_groups import DescribedGroup
from wire.schemas.group_metadata import GroupMetadataKey
from wire.schemas.join_group import JoinGroupResponse, JoinGroupResponseMember

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from embedlog.coordinator.group.classic.classic_member import ClassicMember, Protocols
    from embedlog.coordinator.group.classic.group_operation import GroupOperation
    from embedlog.coordinator.group.group import ExpiryBase

CONSUMER_PROTOCOL_TYPE = "consumer"


class GroupState:
    """The states, as ListGroups and DescribeGroups spell them."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


VALID_PREVIOUS: dict[str, frozenset[str]] = {
    GroupState.EMPTY: frozenset((GroupState.PREPARING_REBALANCE,)),
    GroupState.PREPARING_REBALANCE: frozenset(
        (GroupState.STABLE, GroupState.COMPLETING_REBALANCE, GroupState.EMPTY)
    ),
    GroupState.COMPLETING_REBALANCE: frozenset((GroupState.PREPARING_REBALANCE,)),
    GroupState.STABLE: frozenset((GroupState.COMPLETING_REBALANCE,)),
    GroupState.DEAD: frozenset(
        (
            GroupState.STABLE,
            GroupState.PREPARING_REBALANCE,
            GroupState.COMPLETING_REBALANCE,
            GroupState.EMPTY,
            GroupState.DEAD,
        )
    ),
}


class ClassicGroup(Group):
    """One classic group. Requires for every method: the shard's lock."""

    GROUP_TYPE = "classic"

    def __init__(
        self,
        group_id: str,
        *,
        state: str = GroupState.EMPTY,
        generation_id: int = 0,
        protocol_type: str = "",
        protocol_name: str | None = None,
        leader_id: str | None = None,
        state_timestamp_ms: int = -1,
    ) -> None:
        super().__init__(group_id)
        self.state = state
        self.previous_state = state
        self.state_timestamp_ms = state_timestamp_ms
        """Wall time of the last transition; -1 if the group was loaded from a record of version 0
        or 1, which has no time."""
        self.generation_id = generation_id
        self._protocol_type = protocol_type
        self.protocol_name = protocol_name
        """The protocol of the present generation."""
        self.members = Members(leader_id)
        self.member_was_added = False
        """True if a member joined during the present step of the initial delay (see
        `Rebalances`)."""
        self.delayed_join: GroupOperation | None = None
        """The wait until all members have joined; None outside the join phase."""
        self.delayed_sync: GroupOperation | None = None
        """The wait until all members have sent SyncGroup; None outside the sync phase."""
        self._subscriptions = Subscriptions(None)

    # States

    def transition_to(self, state: str, wall_ms: int) -> None:
        assert self.state in VALID_PREVIOUS[state], (self.group_id, self.state, state)
        self.previous_state = self.state
        self.state = state
        self.state_timestamp_ms = wall_ms

    def next_generation(self, wall_ms: int) -> None:
        """End the join phase: choose the members' protocol, or become empty without members."""
        self.generation_id += 1
        self.members.pending_sync.clear()
        if self.members.by_id:
            self.protocol_name = self.members.select_protocol()
            self.transition_to(GroupState.COMPLETING_REBALANCE, wall_ms)
        else:
            self.protocol_name = None
            self.transition_to(GroupState.EMPTY, wall_ms)
        self.note_subscriptions()

    @property
    def can_rebalance(self) -> bool:
        return self.state in VALID_PREVIOUS[GroupState.PREPARING_REBALANCE]

    # Members

    def add(self, member: ClassicMember, protocol_type: str) -> None:
        if not self.members.by_id:
            self._protocol_type = protocol_type
        self.members.add(member)

    def supports(self, protocol_type: str, protocols: Protocols) -> bool:
        """Return whether a member with these protocols may join. O(protocols).

        An empty group admits any member. Otherwise the type must be the group's, and all members
        must know one of the protocols.
        """
        if self.state == GroupState.EMPTY:
            return bool(protocol_type and protocols)
        return protocol_type == self._protocol_type and self.members.support_one_of(protocols)

    def note_subscriptions(self) -> None:
        """Keep this generation's subscriptions, to be decoded when they are needed."""
        members, name = self.members.by_id.values(), self.protocol_name
        if not members:
            self._subscriptions = Subscriptions(())
        elif self._protocol_type == CONSUMER_PROTOCOL_TYPE and name is not None:
            self._subscriptions = Subscriptions([member.metadata(name) for member in members])
        else:
            self._subscriptions = Subscriptions(None)

    # Responses

    def joined(
        self,
        member_id: str,
        *,
        lists_members: bool = False,
        leader_id: str | None = None,
        skip_assignment: bool = False,
    ) -> JoinGroupResponse:
        """Return the JoinGroup response; only the leader gets the members.

        `leader_id` replaces the present leader.
        """
        members: list[JoinGroupResponseMember] = []
        if lists_members:
            assert self.protocol_name is not None, self.group_id
            members = self.members.for_leader(self.protocol_name)
        return JoinGroupResponse(
            generation_id=self.generation_id,
            protocol_type=self._protocol_type,
            protocol_name=self.protocol_name,
            leader=leader_id or self.members.leader_id or "",
            skip_assignment=skip_assignment,
            member_id=member_id,
            members=members,
        )

    def described(self) -> DescribedGroup:
        name = self.protocol_name if self.state == GroupState.STABLE else None
        return DescribedGroup(
            group_id=self.group_id,
            group_state=self.state,
            protocol_type=self._protocol_type,
            protocol_data=name or "",
            members=[member.described(name) for member in self.members.by_id.values()],
        )

    # As any group

    @property
    def protocol_type(self) -> str:
        return self._protocol_type

    def state_name(self) -> str:
        return self.state

    def is_empty(self) -> bool:
        """Return whether the group is in the state Empty.

        As in Kafka, a group whose last member is being removed is not in this state yet.
        """
        return self.state == GroupState.EMPTY

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
        """See `Group`. If the group has no members, any client may commit without a generation."""
        del api_version, partitions  # the rules are the same for all versions and partitions
        if self.state == GroupState.DEAD:
            raise errors.CoordinatorNotAvailable()
        if generation_or_epoch < 0 and self.state == GroupState.EMPTY:
            return
        if generation_or_epoch >= 0 or member_id or instance_id is not None:
            code = self.members.refusal(member_id, instance_id)
            if code:
                raise error_for(code)
            if generation_or_epoch != self.generation_id:
                raise errors.IllegalGeneration()
        elif not is_transactional:
            raise errors.UnknownMemberId()
        if not is_transactional and self.state == GroupState.COMPLETING_REBALANCE:
            raise errors.RebalanceInProgress()

    def offset_commit_accepted(self, member_id: str) -> None:
        member = self.members.by_id.get(member_id)
        if member is not None and self.state in (GroupState.STABLE, GroupState.PREPARING_REBALANCE):
            member.keep_alive()

    def validate_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        if self.state == GroupState.DEAD:
            raise errors.GroupIdNotFound()

    def validate_offset_delete(self) -> None:
        """See `Group`. The coordinator can read the subscriptions of consumers only.

        It does not know which offsets other kinds of members use.
        """
        if self.state == GroupState.DEAD:
            raise errors.GroupIdNotFound()
        if self.state != GroupState.EMPTY and self._protocol_type != CONSUMER_PROTOCOL_TYPE:
            raise errors.NonEmptyGroup()

    def validate_delete(self) -> None:
        if self.state == GroupState.DEAD:
            raise errors.GroupIdNotFound()
        if self.state != GroupState.EMPTY:
            raise errors.NonEmptyGroup()

    def is_subscribed_to(self, topic: str) -> bool:
        """See `Group`. Consumers with unreadable subscriptions may read any topic."""
        topics = self._subscriptions.topics()
        if topics is None:
            return self._protocol_type == CONSUMER_PROTOCOL_TYPE
        return topic in topics

    def offset_expiry_base(self) -> ExpiryBase | None:
        """See `Group`. Offsets age from their commit, or since the group became empty."""
        if not self._protocol_type:
            return _same
        if self.state == GroupState.EMPTY:
            emptied_ms = self.state_timestamp_ms
            return _same if emptied_ms < 0 else lambda _commit_timestamp_ms: emptied_ms
        if (
            self.state == GroupState.STABLE
            and self._protocol_type == CONSUMER_PROTOCOL_TYPE
            and self._subscriptions.topics() is not None
        ):
            return _same
        return None

    def tombstones(self) -> list[CoordinatorRecord]:
        return [CoordinatorRecord(GroupMetadataKey(group=self.group_id))]


def _same(commit_timestamp_ms: int) -> int:
    return commit_timestamp_ms
