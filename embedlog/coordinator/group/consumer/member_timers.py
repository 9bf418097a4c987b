"""Time limits of the members of consumer groups: see `embedlog.coordinator.group.member_timers`.

Two timers more concern members of the classic protocol:

timer          starts with                        when it ends
join           a classic member must join again   the member is removed: it has not joined
sync           its JoinGroup's answer             the member is removed: it has not synced
"""

from __future__ import annotations

from embedlog.coordinator.group.consumer import member as states
from embedlog.coordinator.group.consumer.consumer_group import ConsumerGroup
from embedlog.coordinator.group.consumer.member import ConsumerMember
from embedlog.coordinator.group.member_timers import MemberTimers

SESSION = "consumer-session"
REBALANCE = "consumer-rebalance"
JOIN = "consumer-join"
SYNC = "consumer-sync"


class ConsumerMemberTimers(MemberTimers[ConsumerGroup, ConsumerMember]):
    """The timers of the members of one shard's consumer groups."""

    GROUP = ConsumerGroup
    SESSION = SESSION
    REBALANCE = REBALANCE
    SETTING = "consumer.session.timeout.ms"
    GIVING_UP = states.UNREVOKED_PARTITIONS
    EXPIRED = {
        SESSION: "its session expired",
        REBALANCE: "it did not give up its partitions in time",
        JOIN: "it did not join again in time",
        SYNC: "it did not ask for its assignment in time",
    }

    def session_ms(self, group: ConsumerGroup, member: ConsumerMember) -> int:
        classic = member.classic
        if classic is not None:
            return classic.session_timeout_ms
        return super().session_ms(group, member)

    def gives_up(self, member: ConsumerMember) -> bool:
        return member.classic is None and super().gives_up(member)

    def start_join(self, group_id: str, member: ConsumerMember) -> None:
        """Start the time limit for a classic member's next join, unless it is running."""
        if not self.context.timer.is_scheduled((JOIN, group_id, member.member_id)):
            self.start(JOIN, group_id, member.member_id, member.rebalance_timeout_ms)

    def start_sync(self, group_id: str, member_id: str, timeout_ms: int) -> None:
        self.start(SYNC, group_id, member_id, timeout_ms)
