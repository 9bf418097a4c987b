"""`Members`: the members of a classic group, its leader, and the members it waits for.

Counters tell whether all members have joined or sent SyncGroup, and which protocols all members
know. So a request costs the same in a group of any size.

This file keeps no time: `rebalances` opens sessions and removes members whose session expired.
"""

from __future__ import annotations

from embedlog.coordinator.group.protocols import SupportedProtocols
from embedlog.coordinator.placement import hash_map_order
from wire.error_codes import ErrorCode
from wire.schemas.join_group import JoinGroupResponseMember

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from embedlog.coordinator.group.classic.classic_member import (
        ClassicMember,
        ParkedJoin,
        Protocols,
    )
    from embedlog.coordinator.group.classic.group_operation import DelayedHeartbeat


class Members:
    """The members of one classic group. Requires for every method: the shard's lock."""

    def __init__(self, leader_id: str | None) -> None:
        """`leader_id` is the stored leader of a loaded group, which may no longer be a member."""
        self.by_id: dict[str, ClassicMember] = {}
        """Member id -> member, in the order of joining. Only methods of this class change it."""
        self.leader_id = leader_id
        self.static_ids: dict[str, str] = {}
        """Instance id -> member id."""
        self.pending: dict[str, DelayedHeartbeat] = {}
        """Sessions of member ids that clients got, but have not joined with yet (KIP-394)."""
        self.pending_sync: set[str] = set()
        """Members of this generation that have not sent SyncGroup."""
        self.awaiting_join_count = 0
        """Number of members with a parked JoinGroup."""
        self._protocols = SupportedProtocols()

    @property
    def have_all_joined(self) -> bool:
        """Return whether every member has a parked join, and no member id is `pending`."""
        return self.awaiting_join_count == len(self.by_id) and not self.pending

    @property
    def rebalance_timeout_ms(self) -> int:
        """The largest rebalance time-out of any member. O(members)."""
        return max((member.rebalance_timeout_ms for member in self.by_id.values()), default=0)

    def refusal(self, member_id: str, instance_id: str | None) -> int:
        """Return the error code for a client that names that member; 0 if the names match."""
        if instance_id is not None:
            known_id = self.static_ids.get(instance_id)
            if known_id is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            if known_id != member_id:
                return ErrorCode.FENCED_INSTANCE_ID
        return 0 if member_id in self.by_id else ErrorCode.UNKNOWN_MEMBER_ID

    # Changes

    def add(self, member: ClassicMember) -> None:
        """Add a member. It becomes the leader if the group has none."""
        assert member.member_id not in self.by_id, member
        if self.leader_id is None:
            self.leader_id = member.member_id
        if member.instance_id is not None:
            assert member.instance_id not in self.static_ids, member
            self.static_ids[member.instance_id] = member.member_id
        self.by_id[member.member_id] = member
        self._protocols.add(_names(member.protocols))
        self.awaiting_join_count += member.parked_join is not None

    def remove(self, member: ClassicMember) -> None:
        """Remove a member. If it led, the next one in the order of joining leads."""
        del self.by_id[member.member_id]
        self.pending_sync.discard(member.member_id)
        if member.instance_id is not None:
            del self.static_ids[member.instance_id]
        self._protocols.remove(_names(member.protocols))
        self.awaiting_join_count -= member.parked_join is not None
        if self.leader_id == member.member_id:
            self.leader_id = next(iter(self.by_id), None)

    def update(
        self,
        member: ClassicMember,
        protocols: Protocols,
        *,
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
    ) -> None:
        self._protocols.remove(_names(member.protocols))
        member.protocols = protocols
        self._protocols.add(_names(protocols))
        member.rebalance_timeout_ms = rebalance_timeout_ms
        member.session_timeout_ms = session_timeout_ms

    def park_join(self, member: ClassicMember, parked: ParkedJoin | None) -> ParkedJoin | None:
        """Set the member's parked join (None: it has none); return the former one."""
        former = member.parked_join
        member.parked_join = parked
        self.awaiting_join_count += (parked is not None) - (former is not None)
        return former

    def replace_id(self, member: ClassicMember, member_id: str) -> None:
        """Give a returned static member its new id; it still leads if it led."""
        assert member.instance_id is not None, member
        former_id = member.member_id
        del self.by_id[former_id]
        member.member_id = member_id
        member.is_new = False
        self.by_id[member_id] = member
        self.static_ids[member.instance_id] = member_id
        if self.leader_id == former_id:
            self.leader_id = member_id
        if former_id in self.pending_sync:
            self.pending_sync.remove(former_id)
            self.pending_sync.add(member_id)

    def elect_joined_leader(self) -> bool:
        """Make a member with a parked join the leader; return False if there is none."""
        leader = None if self.leader_id is None else self.by_id.get(self.leader_id)
        if leader is not None and leader.parked_join is not None:
            return True
        for member in self.by_id.values():
            if member.parked_join is not None:
                self.leader_id = member.member_id
                return True
        return False

    # Protocols

    def support_one_of(self, protocols: Protocols) -> bool:
        """Return whether there is one of `protocols` that all members know. O(protocols)."""
        return self._protocols.has_common(_names(protocols))

    def select_protocol(self) -> str:
        """Return the protocol with most votes; among equals, the first one of a Java `HashMap`.

        Each member votes for the first of its protocols that all members know.
        """
        candidates = self._protocols.common()
        assert candidates, list(self.by_id)
        votes: dict[str, int] = {}
        for member in self.by_id.values():
            name = member.vote(candidates)
            votes[name] = votes.get(name, 0) + 1
        if len(votes) == 1:
            return next(iter(votes))
        return max(hash_map_order(votes), key=votes.__getitem__)

    def for_leader(self, protocol_name: str) -> list[JoinGroupResponseMember]:
        """Return the members for the leader, with their metadata for the protocol."""
        return [
            JoinGroupResponseMember(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                metadata=member.metadata(protocol_name),
            )
            for member in self.by_id.values()
        ]


def _names(protocols: Protocols) -> Iterable[str]:
    return [name for name, _ in protocols]
