"""Time limits of the members of groups whose partitions or tasks the coordinator assigns.

timer          starts with                           when it ends
session        every heartbeat                       the member is removed
rebalance      partitions or tasks to give up        the member is removed if it has the same epoch
"""

from __future__ import annotations

from embedlog.common import Generic
from embedlog.coordinator.result import Result
from embedlog.logger import Logger

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Mapping
    from typing import Any, ClassVar, Protocol, TypeVar

    from embedlog.coordinator.group.group import Group
    from embedlog.coordinator.group.modern_group import ModernGroup
    from embedlog.coordinator.shard_context import ShardContext

    class Member(Protocol):
        """As much of a member as its timers need."""

        @property
        def member_id(self) -> str: ...

        @property
        def state(self) -> int: ...

        @property
        def epoch(self) -> int: ...

        @property
        def rebalance_timeout_ms(self) -> int: ...

    M = TypeVar("M", bound=Member)
    G = TypeVar("G", bound="ModernGroup[Any, Any]")
else:
    M = G = None

_log = Logger("group")


class MemberTimers(Generic[G, M]):
    """The timers of one shard's members; `fence` removes a member. Requires: the shard's lock.

    A subclass names its class of groups, and its timers.
    """

    GROUP: ClassVar[type[Any]]
    SESSION: ClassVar[str]
    REBALANCE: ClassVar[str]
    SETTING: ClassVar[str]
    """The group setting with the session time-out."""
    GIVING_UP: ClassVar[int]
    """The state of a member that has partitions or tasks to give up."""
    EXPIRED: ClassVar[Mapping[str, str]]
    """Timer -> why its end removes a member."""

    def __init__(
        self,
        context: ShardContext,
        groups: Mapping[str, Group],
        fence: Callable[[G, M], Result[Any]],
    ) -> None:
        self.context = context
        self._groups = groups
        self._fence = fence

    def session_timeout_ms(self, group_id: str) -> int:
        """Return the group's session time-out."""
        timeout_ms = self.context.group_config(group_id, self.SETTING)
        assert isinstance(timeout_ms, int), timeout_ms
        return timeout_ms

    def session_ms(self, group: G, member: M) -> int:  # noqa: ARG002  the group's, by default
        """Return the session time-out of a member."""
        return self.session_timeout_ms(group.group_id)

    def gives_up(self, member: M) -> bool:
        """Return whether a loaded member has partitions or tasks to give up."""
        return member.state == self.GIVING_UP

    def start_session(self, group_id: str, member_id: str, timeout_ms: int) -> None:
        self.start(self.SESSION, group_id, member_id, timeout_ms)

    def start_rebalance(self, group_id: str, member: M) -> None:
        """Start the time limit for giving up, the member's rebalance time-out."""
        timeout_ms = member.rebalance_timeout_ms
        self.start(self.REBALANCE, group_id, member.member_id, timeout_ms, member.epoch)

    def cancel(self, timer: str, group_id: str, member_id: str) -> None:
        self.context.timer.cancel((timer, group_id, member_id))

    def cancel_all(self, group_id: str, member_id: str) -> None:
        for timer in self.EXPIRED:
            self.cancel(timer, group_id, member_id)

    def loaded(self) -> None:
        """Start a full session of each loaded member, and its rebalance timer if it has to give
        something up.
        """
        for group, member in self._members():
            session_ms = self.session_ms(group, member)
            self.start_session(group.group_id, member.member_id, session_ms)
            if self.gives_up(member):
                self.start_rebalance(group.group_id, member)

    def keep_alive(self, is_alive: Callable[[str, str, int], bool]) -> list[int]:
        """Restart the timers of the chosen members; return their session time-outs.

        `is_alive` gets the group, the member and the session time-out.
        """
        kept: dict[tuple[str, str] | None, int] = {}
        for group, member in self._members():
            timeout_ms = self.session_ms(group, member)
            if is_alive(group.group_id, member.member_id, timeout_ms):
                kept[group.group_id, member.member_id] = timeout_ms
        self.context.timer.restart(lambda key: self._member_of(key) in kept)
        return list(kept.values())

    def expire_sessions(self, is_chosen: Callable[[str, str], bool]) -> int:
        """End the sessions of the chosen members now; return the number of sessions."""

        def is_session(key: Hashable) -> bool:
            member = self._member_of(key)
            return member is not None and key == (self.SESSION, *member) and is_chosen(*member)

        return self.context.timer.expire(is_session)

    def start(
        self, timer: str, group_id: str, member_id: str, timeout_ms: int, epoch: int | None = None
    ) -> None:
        """Start a timer. With `epoch` the timer removes only a member that still has that epoch."""
        self.context.timer.schedule(
            (timer, group_id, member_id),
            timeout_ms,
            lambda: self._expired(timer, group_id, member_id, epoch),
        )

    def _expired(self, timer: str, group_id: str, member_id: str, epoch: int | None) -> Result[Any]:
        group: Any = self._groups.get(group_id)
        # The group may have become a classic one, or the member may have gone.
        member = group.members.get(member_id) if isinstance(group, self.GROUP) else None
        if member is None or (epoch is not None and member.epoch != epoch):
            return Result()
        _log.warning("group %s fences member %s: %s", group_id, member_id, self.EXPIRED[timer])
        return self._fence(group, member)

    def _members(self) -> Iterator[tuple[G, M]]:
        for group in self._groups.values():
            if isinstance(group, self.GROUP):
                for member in group.members.values():
                    yield group, member

    def _member_of(self, key: Hashable) -> tuple[str, str] | None:
        """Return the group and the member of a timer's key; None for a key of another kind."""
        if isinstance(key, tuple) and len(key) == 3 and key[0] in self.EXPIRED:
            return key[1], key[2]
        return None
