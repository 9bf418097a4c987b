"""Time limits of the members of streams groups.

timer          starts with              when it ends
session        every heartbeat          the member is removed
rebalance      tasks to give up         the member is removed if it has the same epoch
"""

from __future__ import annotations

from embedlog.coordinator.group.streams import member as states
from embedlog.coordinator.group.streams.streams_group import StreamsGroup
from embedlog.coordinator.result import Result
from embedlog.logger import Logger

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping
    from typing import Any

    from embedlog.coordinator.group.group import Group
    from embedlog.coordinator.group.streams.member import StreamsMember
    from embedlog.coordinator.shard_context import ShardContext

SESSION = "streams-session"
REBALANCE = "streams-rebalance"
_TIMERS = (SESSION, REBALANCE)
_EXPIRED = {
    SESSION: "its session expired",
    REBALANCE: "it did not give up its tasks in time",
}

_log = Logger("group")


class MemberTimers:
    """The timers of one shard's members; `fence` removes a member. Requires: the shard's lock."""

    def __init__(
        self,
        context: ShardContext,
        groups: Mapping[str, Group],
        fence: Callable[[StreamsGroup, StreamsMember], Result[Any]],
    ) -> None:
        self._context = context
        self._groups = groups
        self._fence = fence

    def start_session(self, group_id: str, member_id: str) -> None:
        self._start(SESSION, group_id, member_id, self._session_timeout_ms(group_id))

    def start_rebalance(self, group_id: str, member: StreamsMember) -> None:
        """Start the time limit for giving up tasks, the member's rebalance time-out."""
        timeout_ms = member.rebalance_timeout_ms
        self._start(REBALANCE, group_id, member.member_id, timeout_ms, member.epoch)

    def cancel(self, timer: str, group_id: str, member_id: str) -> None:
        self._context.timer.cancel((timer, group_id, member_id))

    def cancel_all(self, group_id: str, member_id: str) -> None:
        for timer in _TIMERS:
            self.cancel(timer, group_id, member_id)

    def loaded(self) -> None:
        """Start the timers of loaded members; nobody has to catch up with lost time."""
        for group, member in self._members():
            self.start_session(group.group_id, member.member_id)
            if member.state == states.UNREVOKED_TASKS:
                self.start_rebalance(group.group_id, member)

    def keep_alive(self, is_alive: Callable[[str, str, int], bool]) -> list[int]:
        """Restart the timers of the chosen members; return their session time-outs.

        `is_alive` gets the group, the member and the session time-out.
        """
        kept: dict[tuple[str, str], int] = {}
        for group, member in self._members():
            timeout_ms = self._session_timeout_ms(group.group_id)
            if is_alive(group.group_id, member.member_id, timeout_ms):
                kept[group.group_id, member.member_id] = timeout_ms
        self._context.timer.restart(lambda key: _member_of(key) in kept)
        return list(kept.values())

    def expire_sessions(self, is_chosen: Callable[[str, str], bool]) -> int:
        """End the sessions of the chosen members now; return the number of sessions."""

        def is_session(key: Hashable) -> bool:
            member = _member_of(key)
            return member is not None and key == (SESSION, *member) and is_chosen(*member)

        return self._context.timer.expire(is_session)

    def _members(self) -> list[tuple[StreamsGroup, StreamsMember]]:
        return [
            (group, member)
            for group in self._groups.values()
            if isinstance(group, StreamsGroup)
            for member in group.members.values()
        ]

    def _session_timeout_ms(self, group_id: str) -> int:
        timeout_ms = self._context.group_config(group_id, "streams.session.timeout.ms")
        assert isinstance(timeout_ms, int), timeout_ms
        return timeout_ms

    def _start(
        self, timer: str, group_id: str, member_id: str, timeout_ms: int, epoch: int | None = None
    ) -> None:
        """Start a timer. With `epoch` the timer removes only a member that still has that epoch."""
        self._context.timer.schedule(
            (timer, group_id, member_id),
            timeout_ms,
            lambda: self._expired(timer, group_id, member_id, epoch),
        )

    def _expired(self, timer: str, group_id: str, member_id: str, epoch: int | None) -> Result[Any]:
        group = self._groups.get(group_id)
        # The group may have become a classic one, or the member may have gone.
        member = group.members.get(member_id) if isinstance(group, StreamsGroup) else None
        if member is None or (epoch is not None and member.epoch != epoch):
            return Result()
        assert isinstance(group, StreamsGroup), group
        _log.warning("group %s fences member %s: %s", group_id, member_id, _EXPIRED[timer])
        return self._fence(group, member)


def _member_of(key: Hashable) -> tuple[str, str] | None:
    """Return the group and the member of a timer's key; None for a key of another kind."""
    if isinstance(key, tuple) and len(key) == 3 and key[0] in _TIMERS:
        return key[1], key[2]
    return None
