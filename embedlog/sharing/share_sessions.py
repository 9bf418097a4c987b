"""Share sessions: what each member fetches from this broker, by (group, member).

    epoch of the request    fetch                      acknowledge
    0                       opens, replaces            refused
    -1                      closes                     closes
    the expected one        goes on                    goes on

Fetches and acknowledgements count in the same epochs; 1 follows 2147483647. A session ends by its
close, or when the connection that opened it closes. A connection remembers the session that it
opened last.
"""

from __future__ import annotations

from embedlog import errors
from embedlog.runtime.locks import Rank, ranked_lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable
    from typing import Final

    from embedlog.coordinator.share.state_client import Place

    Member = tuple[str, str]
    """Group id and member id."""

OPENING: Final = 0
FINAL: Final = -1
EPOCH_MAX: Final = 2**31 - 1


class SessionPlace:
    """A partition of a session."""

    __slots__ = ("answers", "is_known", "place")

    def __init__(self, place: Place, *, answers: bool) -> None:
        self.place = place
        self.answers = answers
        """Whether the next answer names the partition in any case: it is new in an older session,
        or had an error.
        """
        self.is_known = False
        """Whether the partition has ever existed."""


class ShareSession:
    """The partitions of a member. Only one request of a session is served at a time."""

    __slots__ = ("connection", "epoch", "is_over", "member", "places")

    def __init__(self, member: Member, connection: Hashable | None) -> None:
        self.member = member
        self.epoch = 1
        """The epoch of the next request."""
        self.connection = connection
        self.is_over = False
        """True once the session has ended: a fetch that still waits acquires nothing more."""
        self.places: dict[Place, SessionPlace] = {}
        """In the order in which they are served."""

    @property
    def group_id(self) -> str:
        return self.member[0]

    @property
    def member_id(self) -> str:
        return self.member[1]

    def served(self, epoch: int) -> list[SessionPlace]:
        """Return the partitions in the order for a request of `epoch`, for fairness."""
        places = list(self.places.values())
        turn = epoch % len(places) if places else 0
        return places[turn:] + places[:turn]

    def to_the_end(self, place: Place) -> None:
        """Serve the partition last from now on, because it had records."""
        found = self.places.pop(place, None)
        if found is not None:
            self.places[place] = found


class ShareSessions:
    """The sessions of one broker. Thread-safe."""

    def __init__(self, count_max: int, *, session_size_max: int, total_size_max: int) -> None:
        """The sizes limit the partitions of a session, and of all sessions together."""
        self._count_max = count_max
        self._session_size_max = session_size_max
        self._total_size_max = total_size_max
        self._total_size = 0
        self._lock = ranked_lock(Rank.SHARE_SESSIONS)
        self._sessions: dict[Member, ShareSession] = {}
        self._last_opened: dict[Hashable, ShareSession] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def open(self, member: Member, connection: Hashable | None) -> ShareSession:
        """Open a session, in the place of an existing one.

        Raises:
            ShareSessionLimitReached: there are too many sessions.
        """
        with self._lock:
            if member not in self._sessions and len(self._sessions) >= self._count_max:
                raise errors.ShareSessionLimitReached()
            self._forget(member)
            self._sessions[member] = made = ShareSession(member, connection)
            if connection is not None:
                self._last_opened[connection] = made
        return made

    def go_on(self, member: Member, epoch: int) -> ShareSession:
        """Return the session for a request after the first, and count the request.

        Raises:
            ShareSessionNotFound: the member has no session.
            InvalidShareSessionEpoch: a request was lost or repeated.
        """
        with self._lock:
            session = self._sessions.get(member)
            if session is None:
                raise errors.ShareSessionNotFound()
            if epoch == FINAL:
                self._forget(member)
                return session
            if epoch != session.epoch:
                raise errors.InvalidShareSessionEpoch()
            session.epoch = epoch + 1 if epoch < EPOCH_MAX else 1
        return session

    def update(
        self,
        session: ShareSession,
        added: Iterable[Place],
        forgotten: Iterable[Place],
        *,
        is_opening: bool,
    ) -> None:
        """Add partitions to a session, then forget some.

        Raises:
            ShareSessionNotFound: the session ended a moment ago.
            ShareSessionLimitReached: the session would have too many partitions.
        """
        with self._lock:
            if self._sessions.get(session.member) is not session:
                raise errors.ShareSessionNotFound()
            places = session.places
            for place in added:
                if place not in places:
                    if (
                        len(places) >= self._session_size_max
                        or self._total_size >= self._total_size_max
                    ):
                        raise errors.ShareSessionLimitReached()
                    places[place] = SessionPlace(place, answers=not is_opening)
                    self._total_size += 1
            for place in forgotten:
                if places.pop(place, None) is not None:
                    self._total_size -= 1

    def _forget(self, member: Member) -> None:
        session = self._sessions.pop(member, None)
        if session is not None:
            session.is_over = True
            self._total_size -= len(session.places)

    def has(self, group_id: str) -> bool:
        """Return whether a member of the group has a session."""
        with self._lock:
            return any(group == group_id for group, _ in self._sessions)

    def connection_closed(self, connection: Hashable) -> ShareSession | None:
        """End and return the session that the connection opened last, also if its member has closed
        it; None if a newer session of the member has replaced it.
        """
        with self._lock:
            session = self._last_opened.pop(connection, None)
            if session is None or self._sessions.get(session.member, session) is not session:
                return None
            self._forget(session.member)
            return session

    def clear(self) -> None:
        with self._lock:
            self._sessions.clear()
            self._last_opened.clear()
            self._total_size = 0
