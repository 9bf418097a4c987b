"""`Traffic`: the requests that wait for answers, and the living members of groups.

It is a stage between requests and brokers while the clock can be moved.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from embedlog.runtime.pending import Pending
from embedlog.testing.interception import Call, Proceed
from embedlog.testing.time.moved_clock import MovedClock
from wire.api_keys import ApiKey

_JOINS = (ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP)
_OF_MEMBERS = {
    *_JOINS,
    ApiKey.HEARTBEAT,
    ApiKey.OFFSET_COMMIT,
    ApiKey.CONSUMER_GROUP_HEARTBEAT,
}
_SILENT_MAX_MS = 10_000
"""A member that was silent for this long in real time does not delay a rebalance any more."""

_MEMBERS_MAX = 1_000
"""With more members, those are forgotten whose connections are closed."""


class Traffic:
    """The requests of one cluster. Requests of one broker to another do not count."""

    def __init__(self, clock: MovedClock) -> None:
        self._clock = clock
        self.event_count = 0
        """Grows with each request and each answer."""
        self._working: dict[object, None] = {}
        """Requests that a broker works on."""
        self._parked: dict[Pending[Any], tuple[str, str] | None] = {}
        """Answers that clients wait for -> (group, member) that joins or syncs, or None."""
        self._remote: dict[Pending[Any], None] = {}
        """The part of them that came over connections."""
        self._members: dict[tuple[str, str], tuple[Any, int]] = {}
        """(group, member) -> connection and real time of its last request; the connection is None
        for a member in this process."""
        self.on_parked: Callable[[], object] = _nothing
        """Called when a request begins to wait."""

    def stage(self, call: Call, proceed: Proceed) -> Any:
        """Answer a call as `Stage` does."""
        context = call.context
        request: Any = call.request
        api_key, connection = context.api_key, context.connection
        if api_key == ApiKey.FETCH and _replica_of(request) >= 0:
            return proceed(call)
        self.event_count += 1
        member = _member_of(request) if api_key in _OF_MEMBERS else None
        if member is not None:
            self._hear(member, connection)
        token = object()
        self._working[token] = None
        try:
            answer = proceed(call)
        finally:
            self._working.pop(token, None)
            self.event_count += 1
        if isinstance(answer, Pending):

            def answered(done: Pending[Any]) -> None:
                self._parked.pop(done, None)
                self._remote.pop(done, None)
                self.event_count += 1
                if api_key in _OF_MEMBERS and done.error() is None:
                    self._note_new(request.group_id, done.result(), connection)

            self._parked[answer] = member if api_key in _JOINS else None
            if connection is not None:
                self._remote[answer] = None
            answer.add_callback(answered)
            self.on_parked()
        elif api_key in _OF_MEMBERS:
            self._note_new(request.group_id, answer, connection)
        return answer

    @property
    def is_at_work(self) -> bool:
        """Whether a broker works on a request at this moment."""
        return bool(self._working)

    @property
    def waiting_count(self) -> int:
        """The number of requests that wait for their answers."""
        return len(self._parked)

    @property
    def is_awaited_remotely(self) -> bool:
        """Whether a client behind a connection waits for an answer."""
        return bool(self._remote)

    @property
    def is_rebalancing(self) -> bool:
        """Whether a group waits for a member that is alive and has not joined again yet.

        Clients of other processes learn of a rebalance in real time, by their next heartbeats.
        """
        parked = {member for member in list(self._parked.values()) if member is not None}
        if not parked:
            return False
        groups = {group_id for group_id, _ in parked}
        return any(
            group_id in groups
            and (group_id, member_id) not in parked
            and self.is_alive(group_id, member_id, _SILENT_MAX_MS)
            for group_id, member_id in list(self._members)
        )

    def is_alive(self, group_id: str, member_id: str, silent_max_ms: int) -> bool:
        """Return whether a member of another process would have sent its heartbeats.

        Its connection is open, and its last request came within `silent_max_ms` of real time.
        """
        connection, heard_ms = self._members.get((group_id, member_id), (None, 0))
        if connection is None or not connection.is_open:
            return False
        return self._clock.real_ms() - heard_ms <= silent_max_ms

    def _hear(self, member: tuple[str, str], connection: Any) -> None:
        if len(self._members) > _MEMBERS_MAX:
            for each, (other, _) in list(self._members.items()):
                if other is None or not other.is_open:
                    self._members.pop(each, None)
        self._members[member] = connection, self._clock.real_ms()

    def _note_new(self, group_id: str, answer: Any, connection: Any) -> None:
        """Note a member that got its id by this answer."""
        member_id = getattr(answer, "member_id", None)
        if member_id:
            self._hear((group_id, member_id), connection)


def _member_of(request: Any) -> tuple[str, str] | None:
    return (request.group_id, request.member_id) if request.member_id else None


def _replica_of(request: Any) -> int:
    """Return the number of the broker that sent a Fetch; -1 for a client."""
    number: int = request.replica_id
    return number if number >= 0 else request.replica_state.replica_id


def _nothing() -> None:
    pass
