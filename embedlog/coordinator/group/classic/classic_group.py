"""`ClassicGroup`: the state of one group, and the table of its states.

    Empty  -- first join -->  PreparingRebalance  -- all joined -->  CompletingRebalance
      ^                        |      ^      ^                           |        |
      +---- all members left --+      |      +-- join, leave, time-out --+        | leader's sync
                                      |                                           v
                                      +------------ join, leave, time-out ---- Stable

Questions that come with every request (has everyone joined, has anyone not synced, which protocols
do all know) are answered from counts, so that a member costs the same in a group of any size.
"""

from __future__ import annotations

from embedlog import errors
from embedlog.coordinator.group.group import Group
from embedlog.errors import error_for
from wire.error_codes import ErrorCode
from wire.schemas.describe_groups import DescribedGroup
from wire.schemas.join_group import JoinGroupResponse, JoinGroupResponseMember

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from embedlog.coordinator.group.classic.classic_member import (
        ClassicMember,
        ParkedJoin,
        Protocols,
    )
    from embedlog.coordinator.group.classic.delayed_heartbeat import DelayedHeartbeat
    from embedlog.coordinator.group.classic.delayed_join import DelayedJoin
    from embedlog.coordinator.group.classic.delayed_sync import DelayedSync
    from embedlog.coordinator.group.group import CommittedOffset, ExpiryBase
    from embedlog.coordinator.result import CoordinatorRecord

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

    __slots__ = (
        "_protocol_type",
        "_subscribed_topics",
        "_subscriptions",
        "_support_counts",
        "awaiting_join_count",
        "delayed_join",
        "delayed_sync",
        "generation_id",
        "leader_id",
        "member_was_added",
        "members",
        "pending_members",
        "pending_sync",
        "previous_state",
        "protocol_name",
        "state",
        "state_timestamp_ms",
        "static_members",
    )

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
        """Wall time of the last transition; -1: unknown, as value versions 0 and 1 had none."""
        self.generation_id = generation_id
        self._protocol_type = protocol_type
        self.protocol_name = protocol_name
        """The protocol that the present generation has chosen."""
        self.leader_id = leader_id
        self.members: dict[str, ClassicMember] = {}
        self.static_members: dict[str, str] = {}
        """Instance id -> member id."""
        self.pending_members: dict[str, DelayedHeartbeat] = {}
        """Ids given out to members that have not joined with them (KIP-394)."""
        self.pending_sync: set[str] = set()
        """Members of this generation that have not sent SyncGroup."""
        self.awaiting_join_count = 0
        self.member_was_added = False
        """Did anyone join during the present step of the initial delay?"""
        self.delayed_join: DelayedJoin | None = None
        self.delayed_sync: DelayedSync | None = None
        self._support_counts: dict[str, int] = {}
        self._subscriptions: list[bytes] | None = None
        self._subscribed_topics: frozenset[str] | None = None

    # States

    def transition_to(self, state: str, wall_ms: int) -> None:
        """Enter `state`; nothing else assigns it."""
        assert self.state in VALID_PREVIOUS[state], (self.group_id, self.state, state)
        self.previous_state = self.state
        self.state = state
        self.state_timestamp_ms = wall_ms

    def next_generation(self, wall_ms: int) -> None:
        """Close the join phase: choose a protocol for the members there are, if there are any."""
        self.generation_id += 1
        self.pending_sync.clear()
        if self.members:
            self.protocol_name = self.select_protocol()
            self.transition_to(GroupState.COMPLETING_REBALANCE, wall_ms)
        else:
            self.protocol_name = None
            self.transition_to(GroupState.EMPTY, wall_ms)
        self.note_subscriptions()

    @property
    def can_rebalance(self) -> bool:
        """May a rebalance begin?"""
        return self.state in VALID_PREVIOUS[GroupState.PREPARING_REBALANCE]

    # Members

    @property
    def has_all_joined(self) -> bool:
        """Has every member a parked join, and every id that was given out come back?"""
        return self.awaiting_join_count == len(self.members) and not self.pending_members

    @property
    def rebalance_timeout_ms(self) -> int:
        """The longest that any member wants. O(members)."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    def add(self, member: ClassicMember, protocol_type: str) -> None:
        """The first member gives the group its type, and leads it while nobody does."""
        assert member.member_id not in self.members, member
        if not self.members:
            self._protocol_type = protocol_type
        if self.leader_id is None:
            self.leader_id = member.member_id
        if member.instance_id is not None:
            assert member.instance_id not in self.static_members, member
            self.static_members[member.instance_id] = member.member_id
        self.members[member.member_id] = member
        self._count(member.protocols, 1)
        self.awaiting_join_count += member.parked_join is not None

    def remove(self, member: ClassicMember) -> None:
        """The next one in the order of joining leads when the leader goes."""
        del self.members[member.member_id]
        self.pending_sync.discard(member.member_id)
        if member.instance_id is not None:
            del self.static_members[member.instance_id]
        self._count(member.protocols, -1)
        self.awaiting_join_count -= member.parked_join is not None
        if self.leader_id == member.member_id:
            self.leader_id = next(iter(self.members), None)

    def update(
        self,
        member: ClassicMember,
        protocols: Protocols,
        *,
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
    ) -> None:
        """Take over what a member says in a later JoinGroup."""
        self._count(member.protocols, -1)
        member.protocols = protocols
        self._count(protocols, 1)
        member.rebalance_timeout_ms = rebalance_timeout_ms
        member.session_timeout_ms = session_timeout_ms

    def park_join(self, member: ClassicMember, parked: ParkedJoin | None) -> ParkedJoin | None:
        """Let the member wait with `parked`, or no more; return what it waited with until now."""
        former = member.parked_join
        member.parked_join = parked
        self.awaiting_join_count += (parked is not None) - (former is not None)
        return former

    def replace_id(self, member: ClassicMember, member_id: str) -> None:
        """A static member has come back: it goes on under a new id, leading if it led."""
        assert member.instance_id is not None, member
        former_id = member.member_id
        del self.members[former_id]
        member.member_id = member_id
        member.is_new = False
        self.members[member_id] = member
        self.static_members[member.instance_id] = member_id
        if self.leader_id == former_id:
            self.leader_id = member_id
        if former_id in self.pending_sync:
            self.pending_sync.remove(former_id)
            self.pending_sync.add(member_id)

    def elect_joined_leader(self) -> bool:
        """Let the leader be one who waits for the generation; False when nobody does."""
        leader = None if self.leader_id is None else self.members.get(self.leader_id)
        if leader is not None and leader.parked_join is not None:
            return True
        for member in self.members.values():
            if member.parked_join is not None:
                self.leader_id = member.member_id
                return True
        return False

    def refusal(self, member_id: str, instance_id: str | None) -> int:
        """The error code for who claims to be that member; 0 when it is."""
        if instance_id is not None:
            known_id = self.static_members.get(instance_id)
            if known_id is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            if known_id != member_id:
                return ErrorCode.FENCED_INSTANCE_ID
        return 0 if member_id in self.members else ErrorCode.UNKNOWN_MEMBER_ID

    # Protocols

    @property
    def protocol_type(self) -> str:
        """What the members use the group for; "" for a group that only stores offsets."""
        return self._protocol_type

    def supports(self, protocol_type: str, protocols: Protocols) -> bool:
        """Can a member join that knows those? One protocol must be known to all; O(protocols)."""
        if self.state == GroupState.EMPTY:
            return bool(protocol_type and protocols)
        if protocol_type != self._protocol_type:
            return False
        member_count = len(self.members)
        counts = self._support_counts
        return any(counts.get(name, 0) == member_count for name, _ in protocols)

    def select_protocol(self) -> str:
        """Each member votes for the first of its protocols that all know; most votes win.

        Of several with as many votes the one that was voted for first wins.
        """
        member_count = len(self.members)
        candidates = {name for name, count in self._support_counts.items() if count == member_count}
        assert candidates, (self.group_id, self._support_counts)
        votes: dict[str, int] = {}
        for member in self.members.values():
            name = member.vote(candidates)
            votes[name] = votes.get(name, 0) + 1
        return max(votes, key=votes.__getitem__)

    def _count(self, protocols: Protocols, step: int) -> None:
        counts = self._support_counts
        # A protocol that a member names twice counts once.
        for name in dict.fromkeys([name for name, _ in protocols]):
            count = counts.get(name, 0) + step
            if count:
                counts[name] = count
            else:
                del counts[name]

    # What members are told

    def members_for_leader(self) -> list[JoinGroupResponseMember]:
        """Who the leader has to assign to, each with its metadata for the chosen protocol."""
        name = self.protocol_name
        assert name is not None, self.group_id
        return [
            JoinGroupResponseMember(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                metadata=member.metadata(name),
            )
            for member in self.members.values()
        ]

    def joined(
        self,
        member_id: str,
        *,
        members: list[JoinGroupResponseMember] | None = None,
        leader_id: str | None = None,
        skip_assignment: bool = False,
    ) -> JoinGroupResponse:
        """The present generation, as that member is told; only the leader gets `members`."""
        return JoinGroupResponse(
            generation_id=self.generation_id,
            protocol_type=self._protocol_type,
            protocol_name=self.protocol_name,
            leader=leader_id or self.leader_id or "",
            skip_assignment=skip_assignment,
            member_id=member_id,
            members=[] if members is None else members,
        )

    def described(self) -> DescribedGroup:
        """For DescribeGroups."""
        name = self.protocol_name if self.state == GroupState.STABLE else None
        return DescribedGroup(
            group_id=self.group_id,
            group_state=self.state,
            protocol_type=self._protocol_type,
            protocol_data=name or "",
            members=[member.described(name) for member in self.members.values()],
        )

    # What the coordinator asks of any group

    def state_name(self) -> str:
        """The state."""
        return self.state

    def is_empty(self) -> bool:
        """Has it no members? One that is about to lose its last member has some, as in Kafka."""
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
        """May that member commit now? Without members, anyone may that claims no generation."""
        del api_version, partitions  # the rules are the same for all
        if self.state == GroupState.DEAD:
            raise errors.CoordinatorNotAvailable()
        if generation_or_epoch < 0 and self.state == GroupState.EMPTY:
            return
        if generation_or_epoch >= 0 or member_id or instance_id is not None:
            code = self.refusal(member_id, instance_id)
            if code:
                raise error_for(code)
            if generation_or_epoch != self.generation_id:
                raise errors.IllegalGeneration()
        elif not is_transactional:
            raise errors.UnknownMemberId()
        if not is_transactional and self.state == GroupState.COMPLETING_REBALANCE:
            raise errors.RebalanceInProgress()

    def offset_commit_accepted(self, member_id: str) -> None:
        """A commit keeps the session alive."""
        member = self.members.get(member_id)
        if member is not None and self.state in (GroupState.STABLE, GroupState.PREPARING_REBALANCE):
            member.keep_alive()

    def validate_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Anyone may ask while the group lives."""
        if self.state == GroupState.DEAD:
            raise errors.GroupIdNotFound()

    def validate_offset_delete(self) -> None:
        """Consumers say what they read; what other members use offsets for nobody knows."""
        if self.state == GroupState.DEAD:
            raise errors.GroupIdNotFound()
        if self.state != GroupState.EMPTY and self._protocol_type != CONSUMER_PROTOCOL_TYPE:
            raise errors.NonEmptyGroup()

    def validate_delete(self) -> None:
        """Only an empty group may be deleted."""
        if self.state == GroupState.DEAD:
            raise errors.GroupIdNotFound()
        if self.state != GroupState.EMPTY:
            raise errors.NonEmptyGroup()

    def note_subscriptions(self) -> None:
        """Remember what this generation's consumers asked for, to be read when it matters."""
        self._subscribed_topics = None
        self._subscriptions = None
        if not self.members:
            self._subscriptions = []
        elif self._protocol_type == CONSUMER_PROTOCOL_TYPE and self.protocol_name is not None:
            name = self.protocol_name
            self._subscriptions = [member.metadata(name) for member in self.members.values()]

    def subscribed_topics(self) -> frozenset[str] | None:
        """What the members of the present generation read; None when nobody knows."""
        if self._subscribed_topics is None and self._subscriptions is not None:
            from embedlog.coordinator.group.classic.subscription import subscribed_topics

            self._subscribed_topics = subscribed_topics(self._subscriptions)
            if self._subscribed_topics is None:
                self._subscriptions = None
        return self._subscribed_topics

    def is_subscribed_to(self, topic: str) -> bool:
        """Consumers whose subscriptions nobody can read may be subscribed to anything."""
        topics = self.subscribed_topics()
        if topics is None:
            return self._protocol_type == CONSUMER_PROTOCOL_TYPE
        return topic in topics

    def offset_expiry_base(self) -> ExpiryBase | None:
        """Offsets age from their commit; those of an empty group from when it became empty."""
        if not self._protocol_type:
            return _commit_timestamp_ms
        if self.state == GroupState.EMPTY:
            emptied_ms = self.state_timestamp_ms
            return _commit_timestamp_ms if emptied_ms < 0 else lambda offset: emptied_ms
        if (
            self.state == GroupState.STABLE
            and self._protocol_type == CONSUMER_PROTOCOL_TYPE
            and self.subscribed_topics() is not None
        ):
            return _commit_timestamp_ms
        return None

    def tombstones(self) -> list[CoordinatorRecord]:
        """The one record that deletes the stored group."""
        from embedlog.coordinator.group.classic.records import tombstone

        return [tombstone(self.group_id)]


def _commit_timestamp_ms(offset: CommittedOffset) -> int:
    return offset.commit_timestamp_ms
