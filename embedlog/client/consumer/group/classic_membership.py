"""`ClassicMembership`: rebalances, heartbeats, leaving and refused commits in a classic group.

The user's thread calls `advance` inside poll; the membership duty calls `keep_alive` between the
user's calls. Requests use the coordinator's own connection.
"""

from __future__ import annotations

from embedlog import errors
from embedlog.client.consumer.group.classic_identity import NO_GENERATION, ClassicIdentity
from embedlog.client.consumer.group.classic_round import (
    EXPELLED,
    REASON_SIZE_MAX,
    ClassicRound,
    MemberState,
)
from embedlog.client.consumer.group.coordinator_lookup import LOST_COORDINATOR
from embedlog.client.consumer.group.group_offsets import CloseOptions
from embedlog.client.consumer.group.heartbeats import Heartbeats
from embedlog.client.errors import CommitFailed
from embedlog.errors import error_for
from embedlog.logger import Logger
from wire.api_keys import ApiKey
from wire.error_codes import ErrorCode
from wire.schemas.leave_group import LeaveGroupRequest, MemberIdentity

_log = Logger("client")

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.client.consumer.group.classic_rebalance import ClassicRebalance
    from embedlog.client.consumer.group.coordinator_lookup import CoordinatorLookup
    from embedlog.client.consumer.group.group_offsets import ConsumerGroupMetadata
    from embedlog.client.consumer.parts import ConsumerParts
    from embedlog.errors import KafkaError
    from embedlog.runtime.pending import Pending
    from wire.schemas.leave_group import LeaveGroupResponse

_MEMBERS_SINCE = 3


class ClassicMembership:
    """A `GroupMember` of a classic group. Used by the thread that holds the consumer."""

    def __init__(
        self,
        parts: ConsumerParts,
        lookup: CoordinatorLookup,
        group_id: str,
        rebalance: ClassicRebalance,
    ) -> None:
        self._parts = parts
        self._lookup = lookup
        self._rebalance = rebalance
        self._me = ClassicIdentity(group_id, parts.settings["group.instance.id"])
        self.heartbeats = Heartbeats(parts, lookup, self._me, self._heartbeat_refused)
        self._round = ClassicRound(parts, lookup, self._me, rebalance, self.heartbeats)
        self.error: KafkaError | None = None
        """The error that the next poll raises, because the coordinator refused this member."""

    @property
    def is_joined(self) -> bool:
        return self._round.state != MemberState.UNJOINED

    @property
    def is_waiting(self) -> bool:
        return self.heartbeats.is_waiting

    @property
    def heartbeat_sent_ms(self) -> int | None:
        return self.heartbeats.sent_ms

    def request_rejoin(self, reason: str) -> None:
        self._round.want(reason)

    def subscription_changed(self) -> None:
        """Do nothing: each pass compares the subscription with the one in the last JoinGroup."""

    # In the user's thread

    def polled(self, now_ms: int) -> None:
        self.heartbeats.polled(now_ms)

    def advance(self, now_ms: int) -> int | None:
        if self.error is not None:
            error, self.error = self.error, None
            raise error
        reason = self._rebalance.rejoin_reason()
        if reason:
            self.request_rejoin(reason)
        if not self._round.is_wanted and not self._round.is_under_way:
            return None
        node_id = self._lookup.node_id
        if node_id is None:
            self._lookup.need()
            return None
        return self._round.advance(node_id, now_ms)

    # At any time

    def keep_alive(self, now_ms: int) -> int | None:
        if self._round.state == MemberState.UNJOINED:
            return None
        if self._round.state == MemberState.JOINING:
            return self.heartbeats.poll_left_ms(now_ms)
        if self.heartbeats.is_poll_overdue(now_ms):
            _log.warning(
                "member %s leaves group %s: poll was not called for max.poll.interval.ms",
                self._me.member_id,
                self._me.group_id,
            )
            self.leave("consumer poll timeout has expired.")
            return None
        delay = self.heartbeats.advance(now_ms)
        return min(delay, self.heartbeats.poll_left_ms(now_ms))

    def _heartbeat_refused(self, error: KafkaError, generation_id: int) -> None:
        """Handle the error of a heartbeat that was sent in `generation_id`."""
        code = error.code
        if generation_id != self._me.generation_id:
            return
        if code == ErrorCode.REBALANCE_IN_PROGRESS:
            if self._round.state == MemberState.STABLE:
                self.request_rejoin("group is already rebalancing")
        elif code in EXPELLED:
            self.expelled(keep_id=code == ErrorCode.ILLEGAL_GENERATION)
        elif not error.retriable and code not in LOST_COORDINATOR:
            self.expelled(keep_id=False)
            self.error = error

    def expelled(self, *, keep_id: bool) -> None:
        """Forget the membership, because the group removed this member.

        The next poll gives up all partitions as lost and joins again.
        """
        _log.warning("member %s was removed from group %s", self._me.member_id, self._me.group_id)
        self._round.abandon()
        self._me.forget(keep_id=keep_id)
        self.request_rejoin("the member was removed from the group")

    def leave(
        self, reason: str, *, even_static: bool = False
    ) -> Pending[LeaveGroupResponse] | None:
        """Leave the group and return the coordinator's pending answer.

        A static member sends no request unless `even_static` is set. Without a request there is no
        answer, and the result is None.
        """
        pending: Pending[LeaveGroupResponse] | None = None
        is_told = self._me.group_instance_id is None or even_static
        node_id = self._lookup.node_id
        was_in = self.is_joined or self._me.generation_id != NO_GENERATION
        if is_told and self._me.member_id and node_id is not None and was_in:
            if self._lookup.newest(ApiKey.LEAVE_GROUP) < _MEMBERS_SINCE:
                request = LeaveGroupRequest(
                    group_id=self._me.group_id, member_id=self._me.member_id
                )
            else:
                identity = MemberIdentity(
                    member_id=self._me.member_id,
                    group_instance_id=self._me.group_instance_id,
                    reason=reason[:REASON_SIZE_MAX],
                )
                request = LeaveGroupRequest(group_id=self._me.group_id, members=[identity])
            pending = self._parts.send(node_id, request)
        self._round.abandon()
        self._me.forget(keep_id=False)
        self.request_rejoin(reason)
        return pending

    def depart(self, reason: str, operation: int) -> Pending[LeaveGroupResponse] | None:
        self.error = None  # it was about this membership
        self._rebalance.give_up_all(is_member=self._me.generation_id != NO_GENERATION)
        if operation != CloseOptions.REMAIN_IN_GROUP:
            return self.leave(reason, even_static=operation == CloseOptions.LEAVE_GROUP)
        self._round.abandon()
        self._me.forget(keep_id=False)
        self._round.is_wanted = True
        return None

    # For commits

    def metadata(self) -> ConsumerGroupMetadata:
        return self._me.metadata()

    def identity(self) -> ConsumerGroupMetadata:
        if self._round.state == MemberState.STABLE:
            return self.metadata()
        if self._round.is_under_way:
            raise errors.RebalanceInProgress(
                "offsets cannot be committed while the group rebalances: poll until it is over",
            )
        raise CommitFailed("the consumer is not a member of the group: the next poll joins")

    def commit_refused(self, error: KafkaError, sent_by: ConsumerGroupMetadata) -> Exception:
        is_current = self._me.has_sent(sent_by)
        if error.code == ErrorCode.REBALANCE_IN_PROGRESS:
            if is_current:
                self.request_rejoin("offset commit failed since group is already rebalancing")
            return error_for(error.code, "the group rebalances: poll, then commit again")
        if error.code == ErrorCode.FENCED_INSTANCE_ID and is_current:
            return error
        if not is_current and self._round.is_under_way:
            return errors.RebalanceInProgress("the group rebalances: poll")
        if is_current and error.code in EXPELLED:
            self.expelled(keep_id=error.code == ErrorCode.ILLEGAL_GENERATION)
        return CommitFailed(
            "the group has gone on without this member and reassigned its partitions: poll more "
            "often, or set a longer max.poll.interval.ms or a smaller max.poll.records"
        )
