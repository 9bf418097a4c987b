"""Answers to the parked requests of classic members."""

from __future__ import annotations

from embedlog.coordinator.group.classic.classic_member import (
    ClassicMember,
    ParkedJoin,
    join_refused,
)
from wire.schemas.sync_group import SyncGroupResponse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeVar

    from embedlog.coordinator.group.classic.classic_group import ClassicGroup
    from embedlog.coordinator.shard_context import ShardContext
    from embedlog.runtime.pending import Pending

    R = TypeVar("R")


class ParkedRequests:
    """The parked requests of one shard. Requires for every method: the shard's lock."""

    def __init__(self, context: ShardContext) -> None:
        self._context = context

    def answer(self, parked: Pending[R], response: R) -> None:
        """Answer a parked request once the lock is released."""

        def complete() -> None:
            parked.complete(response)

        self._context.defer(complete)

    def fence(
        self, group: ClassicGroup, member: ClassicMember, code: int, *, member_id: str
    ) -> None:
        parked = group.members.park_join(member, None)
        if parked is not None:
            self.refuse_join(parked, code, member_id)
        self._answer_sync(member, SyncGroupResponse(error_code=code))

    def refuse_join(self, parked: ParkedJoin, code: int, member_id: str) -> None:
        self.answer(parked, join_refused(parked.version, code, member_id))

    def assign(self, group: ClassicGroup, assignments: dict[str, bytes]) -> None:
        """Store the leader's assignment for all members; answer the waiting ones."""
        for member in group.members.by_id.values():
            member.assignment = assignments.get(member.member_id, b"")
            self._answer_sync(member, self.assigned(group, member))

    def assigned(self, group: ClassicGroup, member: ClassicMember) -> SyncGroupResponse:
        """Return the SyncGroup response of a stable group's member."""
        return SyncGroupResponse(
            protocol_type=group.protocol_type,
            protocol_name=group.protocol_name,
            assignment=member.assignment,
        )

    def withdraw_assignments(self, group: ClassicGroup, code: int) -> None:
        """Drop this generation's assignment; answer the waiting members with an error."""
        for member in group.members.by_id.values():
            member.assignment = b""
            self._answer_sync(member, SyncGroupResponse(error_code=code))

    def _answer_sync(self, member: ClassicMember, response: SyncGroupResponse) -> None:
        parked, member.parked_sync = member.parked_sync, None
        if parked is not None:
            self.answer(parked, response)
            # The session was suspended while the request was parked.
            member.keep_alive()
