"""Fetch sessions (KIP-227): the broker remembers a client's partitions, and sends only changes.

    session id  epoch   the fetch request
    0           -1      full, without a session
    0           0       full, and begins a session if the cache has room
    s           0       full, ends the session s and begins a new one
    s           -1      full, ends the session s
    s           n > 0   incremental: names only partitions that change, join or leave the session

The epoch counts the requests of a session; after 2147483647 it is 1 again. An incremental answer
leaves out a partition that has no records, no error and no new offsets.
"""

from __future__ import annotations

from embedlog import errors
from embedlog.replication.fetch_context import NO_SESSION, FullFetch, IncrementalFetch
from embedlog.replication.fetch_params import FIRST_WITH_IDS
from embedlog.replication.fetch_session import FetchPartition, FetchSession
from embedlog.runtime.locks import Rank, ranked_lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from embedlog.replication.fetch_session import Key
    from embedlog.runtime.clock import Clock
    from embedlog.runtime.randomness import Random
    from wire.schemas.fetch import FetchRequest

INITIAL_EPOCH = 0
FINAL_EPOCH = -1
EPOCH_MAX = 2**31 - 1

SLOT_COUNT = 1000
SESSION_SIZE_MAX = 10_000
"""Default limit of partitions in one session. Kafka has no such limit."""
TOTAL_SIZE_MAX = 100_000
"""Default limit of partitions in all sessions together; each partition takes half a kilobyte."""
EVICTION_MS = 120_000
"""Age, or time without use, after which a session may be evicted for a new session."""


class FetchSessions:
    """The cache of sessions. Every method may be called from any thread."""

    def __init__(
        self,
        clock: Clock,
        random: Random,
        *,
        slot_count: int = SLOT_COUNT,
        session_size_max: int = SESSION_SIZE_MAX,
        total_size_max: int = TOTAL_SIZE_MAX,
    ) -> None:
        """`slot_count` limits the sessions. The size limits count partitions."""
        self._clock = clock
        self._random = random
        self._slot_count = slot_count
        self._session_size_max = session_size_max
        self._total_size_max = total_size_max
        self._lock = ranked_lock(Rank.FETCH_SESSIONS)
        self._sessions: dict[int, FetchSession] = {}
        self._size = 0

    def __len__(self) -> int:
        return len(self._sessions)

    def begin(
        self, request: FetchRequest, version: int, topic_name: Callable[[bytes], str]
    ) -> FullFetch | IncrementalFetch:
        """Return the fetch context of a request: its partitions, and the form of its answer.

        `topic_name` returns the name for a topic id, or "" if the id is unknown.

        Raises:
            FetchSessionIdNotFound: the session was evicted, never existed, or has grown too large.
            InvalidFetchSessionEpoch: a request of the session was lost or repeated.
            FetchSessionTopicIdError: the session began with topic names and continues with ids,
                or the other way round.
        """
        uses_topic_ids = version >= FIRST_WITH_IDS
        epoch = request.session_epoch
        if epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            if request.session_id != NO_SESSION:
                self._end(request.session_id)
            asked = _partitions(request, uses_topic_ids, topic_name)
            if epoch == FINAL_EPOCH:
                return FullFetch(list(asked.values()))
            is_follower = max(request.replica_id, request.replica_state.replica_id) >= 0

            def begin_session() -> int:
                return self.create(asked, uses_topic_ids=uses_topic_ids, is_privileged=is_follower)

            return FullFetch(list(asked.values()), begin_session)
        session = self._use(request.session_id)
        with session.lock:
            if session.epoch != epoch:
                raise errors.InvalidFetchSessionEpoch()
            if session.uses_topic_ids != uses_topic_ids:
                raise errors.FetchSessionTopicIdError()
            named: list[FetchPartition] = []
            if request.topics or request.forgotten_topics_data:
                before = len(session.partitions)
                named = _update(session, request, topic_name)
                self._count(len(session.partitions) - before)
                if (
                    len(session.partitions) > self._session_size_max
                    or self._size > self._total_size_max
                ):
                    # The client then sends a full request, which gets a session only if it fits.
                    self._end(session.id)
                    raise errors.FetchSessionIdNotFound()
            if not session.partitions:
                self._end(session.id)
                return FullFetch(())
            session.epoch = epoch = epoch + 1 if epoch < EPOCH_MAX else 1
            if uses_topic_ids:
                _resolve(list(session.active), topic_name)
        return IncrementalFetch(session, epoch, named)

    def create(
        self,
        partitions: dict[Key, FetchPartition],
        *,
        uses_topic_ids: bool,
        is_privileged: bool,
    ) -> int:
        """Begin a session and return its id, or 0 if the cache has no room for it.

        If the cache is full, first evict a session, see `_evictable`.
        """
        now_ms = self._clock.monotonic_ms()
        if len(partitions) > self._session_size_max:
            return NO_SESSION
        with self._lock:
            sessions = self._sessions
            is_full = self._size + len(partitions) > self._total_size_max
            if is_full or len(sessions) >= self._slot_count:
                evicted = self._evictable(len(partitions), is_privileged, now_ms)
                if evicted is None:
                    return NO_SESSION
                self._size -= len(evicted.partitions)
                sessions.pop(evicted.id).end()
                if self._size + len(partitions) > self._total_size_max:
                    return NO_SESSION
            id = 0
            while id == 0 or id in sessions:
                id = self._random.below(EPOCH_MAX) + 1
            self._size += len(partitions)
            sessions[id] = FetchSession(
                id,
                partitions,
                uses_topic_ids=uses_topic_ids,
                is_privileged=is_privileged,
                now_ms=now_ms,
            )
        return id

    def _use(self, id: int) -> FetchSession:
        """Return the session, and record that it is used now.

        Raises:
            FetchSessionIdNotFound: there is no such session.
        """
        session = self._sessions.get(id)
        if session is None:
            raise errors.FetchSessionIdNotFound()
        session.last_used_ms = self._clock.monotonic_ms()
        return session

    def find(self, id: int) -> FetchSession | None:
        return self._sessions.get(id)

    def size_of(self, id: int) -> int:
        """Return the number of partitions in a session; 0 if the session does not exist."""
        session = self._sessions.get(id)
        return 0 if session is None else len(session.partitions)

    def _count(self, difference: int) -> None:
        with self._lock:
            self._size += difference

    def _end(self, id: int) -> None:
        with self._lock:
            session = self._sessions.pop(id, None)
            if session is not None:
                self._size -= len(session.partitions)
        if session is not None:
            session.end()

    def _evictable(self, size: int, is_privileged: bool, now_ms: int) -> FetchSession | None:
        """Return the session that a new session of `size` partitions may evict, or None.

        First choice: the least recently used session, if unused for over two minutes. Second
        choice: among sessions older than two minutes (for a follower, also younger ones of
        consumers), the lowest `_value`, if the new session's is higher. Requires: the cache lock.
        """
        oldest = min(self._sessions.values(), key=lambda each: each.last_used_ms, default=None)
        if oldest is None:
            return None
        if now_ms - oldest.last_used_ms > EVICTION_MS:
            return oldest
        candidates = [
            session
            for session in self._sessions.values()
            if now_ms - session.created_ms > EVICTION_MS
            or (is_privileged and not session.is_privileged)
        ]
        least = min(candidates, key=_value, default=None)
        if least is None or (is_privileged, size, 0) < _value(least):
            return None
        return least


def _value(session: FetchSession) -> tuple[bool, int, int]:
    """Return the order of eviction: consumers before followers, then smaller sessions first."""
    return session.is_privileged, len(session.partitions), session.id


def _partitions(
    request: FetchRequest, uses_topic_ids: bool, topic_name: Callable[[bytes], str]
) -> dict[Key, FetchPartition]:
    """Return the request's partitions in order. Of a repeated partition, the last entry counts."""
    found: dict[Key, FetchPartition] = {}
    for topic in request.topics:
        topic_id = topic.topic_id
        name = topic_name(topic_id) if uses_topic_ids else topic.topic
        topic_key: str | bytes = topic_id if uses_topic_ids else name
        for asked in topic.partitions:
            found[topic_key, asked.partition] = FetchPartition(name, topic_id, asked)
    return found


def _update(
    session: FetchSession, request: FetchRequest, topic_name: Callable[[bytes], str]
) -> list[FetchPartition]:
    """Apply an incremental request to its session; return the partitions that the request names.

    Requires: the session lock.
    """
    partitions = session.partitions
    named = []
    for key, asked in _partitions(request, session.uses_topic_ids, topic_name).items():
        known = partitions.get(key)
        if known is None:
            partitions[key] = known = asked
            session.add(asked)
        else:
            known.take_over(asked)
            session.active[known] = None
        named.append(known)
    for topic in request.forgotten_topics_data:
        topic_key: str | bytes = topic.topic_id if session.uses_topic_ids else topic.topic
        for index in topic.partitions:
            session.forget((topic_key, index))
    return named


def _resolve(wanted: Iterable[FetchPartition], topic_name: Callable[[bytes], str]) -> None:
    """Look up the names of topics that were unknown when they entered the session."""
    for partition in wanted:
        if not partition.topic:
            name = topic_name(partition.topic_id)
            if name:
                partition.resolve(name)
