"""Answers to the requests that members of classic groups have parked."""

from __future__ import annotations

from embedlog.coordinator.group.classic import answers
from wire.schemas.sync_group import SyncGroupResponse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeVar

    from embedlog.coordinator.group.classic.classic_group import ClassicGroup
    from embedlog.coordinator.group.classic.classic_member import ClassicMember, ParkedJoin
    from embedlog.coordinator.shard_context import ShardContext
    from embedlog.runtime.pending import Pending

    R = TypeVar("R")


class ParkedRequests:
    """Of one shard's members. Requires for every method: the shard's lock."""

    __slots__ = ("_context",)

    def __init__(self, context: ShardContext) -> None:
        self._context = context

    def answer(self, parked: Pending[R], response: R) -> None:
        """Answer a parked request, once the lock is released."""

        def complete() -> None:
            parked.complete(response)

        self._context.defer(complete)

    def fence(
        self, group: ClassicGroup, member: ClassicMember, code: int, *, member_id: str
    ) -> None:
        """Answer with an error what the member has parked."""
        parked = group.members.park_join(member, None)
        if parked is not None:
            self.refuse_join(parked, code, member_id)
        self._answer_sync(member, answers.sync_refused(code))

    def refuse_join(self, parked: ParkedJoin, code: int, member_id: str) -> None:
        """Answer a parked JoinGroup with an error."""
        self.answer(parked, answers.join_refused(parked.version, code, member_id))

    def assign(self, group: ClassicGroup, assignments: dict[str, bytes]) -> None:
        """Answer the members that wait with the leader's assignment; keep it for the others."""
        for member in group.members.by_id.values():
            member.assignment = assignments.get(member.member_id, b"")
            self._answer_sync(member, self.assigned(group, member))

    def assigned(self, group: ClassicGroup, member: ClassicMember) -> SyncGroupResponse:
        """What a member of a stable group is told."""
        return SyncGroupResponse(
            protocol_type=group.protocol_type,
            protocol_name=group.protocol_name,
            assignment=member.assignment,
        )

    def withdraw_assignments(self, group: ClassicGroup, code: int) -> None:
        """This generation has no assignment: answer the members that wait for one."""
        for member in group.members.by_id.values():
            member.assignment = b""
            self._answer_sync(member, answers.sync_refused(code))

    def _answer_sync(self, member: ClassicMember, response: SyncGroupResponse) -> None:
        parked, member.parked_sync = member.parked_sync, None
        if parked is not None:
            self.answer(parked, response)
            # Its session did not end while it waited; from here on it counts again.
            member.keep_alive()
