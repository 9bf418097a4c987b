"""Time limits of the members of streams groups: see `embedlog.coordinator.group.member_timers`."""

from __future__ import annotations

from embedlog.coordinator.group.member_timers import MemberTimers
from embedlog.coordinator.group.streams import member as states
from embedlog.coordinator.group.streams.member import StreamsMember
from embedlog.coordinator.group.streams.streams_group import StreamsGroup

SESSION = "streams-session"
REBALANCE = "streams-rebalance"


class StreamsMemberTimers(MemberTimers[StreamsGroup, StreamsMember]):
    """The timers of the members of one shard's streams groups."""

    GROUP = StreamsGroup
    SESSION = SESSION
    REBALANCE = REBALANCE
    SETTING = "streams.session.timeout.ms"
    GIVING_UP = states.UNREVOKED_TASKS
    EXPIRED = {
        SESSION: "its session expired",
        REBALANCE: "it did not give up its tasks in time",
    }
