"""The fetches of a follower from one leader: one request at a time, for all its partitions.

    idle            there is nothing to fetch, or every partition is delayed
    in flight       a request was sent; its answer or failure causes the next step
    backing off     the leader was not reached: nothing is sent for replica.fetch.backoff.ms

    answer for a partition              action
    records, offsets                    apply both to the log; the next request names the partition
    a diverging epoch                   truncate the log where the histories diverge
    OFFSET_OUT_OF_RANGE                 look up the leader's offsets, see `out_of_range`
    FENCED_LEADER_EPOCH                 stop until the metadata brings the next term
    the leader does not know its term   delay for a moment, each time twice as long: see `_UNAWARE`
    any other error                     delay the partition for replica.fetch.backoff.ms
    this broker's log has failed        stop until the metadata brings the next term

A request waits at the leader while it has no new records or offsets. If partitions are added
meanwhile, the next request is sent at once and overtakes the waiting one, which the leader then
answers with an error. If the leader nevertheless answers the overtaken request with data, the data
may be lost, so the session begins again.
"""

from __future__ import annotations

from _heapq import heappop, heappush

from embedlog.errors import CorruptRecord, KafkaError, error_for
from embedlog.logger import Logger
from embedlog.replication.fetcher.followed_partition import FollowedPartition, is_failed
from embedlog.replication.fetcher.out_of_range import OutOfRangeLookup
from embedlog.replication.fetcher.session import INITIAL_EPOCH, FollowerSession
from embedlog.runtime.pending import Pending
from wire.error_codes import ErrorCode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from embedlog.replication.membership import Membership
    from embedlog.replication.partition import Partition
    from embedlog.replication.throttles import Throttle
    from embedlog.runtime.clock import Clock
    from wire.schema import R, Request
    from wire.schemas.fetch import FetchRequest, FetchResponse, PartitionData

_log = Logger("replication")

_ROUNDS_MAX = 16
"""If the leader answers at once, send this many requests in a row before other fetchers go on."""

_LOG_ERRORS = (KafkaError, CorruptRecord)

_UNAWARE = (
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
)
"""The errors of a leader that does not know yet that it leads in this term: the metadata has
reached this broker first, but will reach the leader soon."""


class ReplicaFetcher:
    """Fetches the followed partitions of one leader. `Fetchers` calls it, one thread at a time.

    `is_ready` is called in any thread when an answer has arrived. `wake` is called without any lock
    when readers of a partition may find new records or offsets.
    """

    def __init__(
        self,
        leader: int,
        node_id: int,
        membership: Membership,
        clock: Clock,
        *,
        throttle: Throttle,
        is_ready: Callable[[ReplicaFetcher], None],
        wake: Callable[[Partition], None],
    ) -> None:
        self.leader = leader
        self._node_id = node_id
        self._membership = membership
        self._clock = clock
        self._throttle = throttle
        self._is_ready = is_ready
        self._wake = wake
        self._session = FollowerSession(node_id, membership)
        self._in_flight: tuple[FetchRequest, Pending[FetchResponse]] | None = None
        self._overtaken: list[Pending[FetchResponse]] = []
        self._lookups: dict[FollowedPartition, OutOfRangeLookup] = {}
        self._delayed: list[tuple[int, int, FollowedPartition]] = []
        """A heap of (end of the delay, a unique number, partition)."""
        self._delay_count = 0
        self._retry_ms = 0

    def add(self, followed: FollowedPartition) -> None:
        """Begin to fetch a partition, from the end of its log."""
        # A newly elected leader is live, so an earlier failure to reach it no longer counts.
        self._retry_ms = 0
        self._go_on(followed)

    def _go_on(self, followed: FollowedPartition) -> None:
        """Fetch a partition from now on, after the preparation of its log."""
        try:
            followed.begin()
        except KafkaError as error:
            self._failed(followed, error)
        else:
            self._session.add(followed)

    def remove(self, followed: FollowedPartition) -> None:
        followed.delayed_until_ms = -1
        self._lookups.pop(followed, None)
        self._session.remove(followed)

    def step(self) -> int | None:
        """Do the work that is due; return the monotonic time of the next step, or None.

        The caller may step at any time, even if nothing is due.
        """
        self._drop_overtaken()
        self._go_on_looking_up()
        for _ in range(_ROUNDS_MAX):
            now_ms = self._clock.monotonic_ms()
            self._end_delays(now_ms)
            in_flight = self._in_flight
            if in_flight is not None:
                request, pending = in_flight
                if pending.done():
                    self._in_flight = None
                    self._take(request, pending)
                elif request.session_epoch == INITIAL_EPOCH or not self._session.has_news:
                    return self._next_ms()
                else:
                    self._overtaken.append(pending)
                    self._in_flight = None
            if now_ms < self._retry_ms:
                return self._next_ms()
            following = self._session.next_request()
            if following is None:
                return self._next_ms()
            self._in_flight = following, self._send(following)
        return self._clock.monotonic_ms()

    # Requests

    def _send(self, request: Request[R]) -> Pending[R]:
        timeout_ms: int = self._membership.config.replica_socket_timeout_ms
        try:
            pending = self._membership.send(self.leader, request, timeout_ms=timeout_ms)
        except KafkaError as error:
            pending = Pending()
            pending.fail(error)
        if not pending.done():
            pending.add_callback(lambda _: self._is_ready(self))
        return pending

    def _take(self, request: FetchRequest, pending: Pending[FetchResponse]) -> None:
        session = self._session
        error = pending.error()
        if error is not None:
            if not isinstance(error, KafkaError):
                raise error
            session.restart()
            self._retry_ms = self._clock.monotonic_ms() + self._backoff_ms
            return
        response = pending.result()
        code = response.error_code
        if code == ErrorCode.NONE:
            session.answered(request, response.session_id)
            for topic in response.responses:
                for data in topic.partitions:
                    followed = session.partitions.get((topic.topic_id, data.partition_index))
                    if followed is not None and followed.was_asked:
                        self._take_partition(followed, data)
            return
        session.restart(is_known=code != ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if code not in (
            ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
            ErrorCode.INVALID_FETCH_SESSION_EPOCH,
            ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
        ):
            self._retry_ms = self._clock.monotonic_ms() + self._backoff_ms

    def _drop_overtaken(self) -> None:
        for pending in [each for each in self._overtaken if each.done()]:
            self._overtaken.remove(pending)
            was_refused = (
                pending.error() is None
                and pending.result().error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
            )
            if not was_refused:
                self._session.restart()

    @property
    def _backoff_ms(self) -> int:
        backoff_ms: int = self._membership.config.replica_fetch_backoff_ms
        return backoff_ms

    # Partitions

    def _take_partition(self, followed: FollowedPartition, data: PartitionData) -> None:
        code = data.error_code
        try:
            if code == ErrorCode.NONE:
                self._take_records(followed, data)
            elif code == ErrorCode.OFFSET_OUT_OF_RANGE:
                self._session.remove(followed)
                self._lookups[followed] = OutOfRangeLookup(followed, self._node_id, self._send)
                self._is_ready(self)
            elif code == ErrorCode.FENCED_LEADER_EPOCH:
                self._session.remove(followed)
            elif code in _UNAWARE:
                delay_ms = followed.next_delay_ms(self._backoff_ms)
                self._put_off(followed, error_for(code), delay_ms)
            else:
                self._put_off(followed, error_for(code), self._backoff_ms)
        except _LOG_ERRORS as error:
            self._failed(followed, error)

    def _take_records(self, followed: FollowedPartition, data: PartitionData) -> None:
        diverging = data.diverging_epoch
        if diverging.end_offset >= 0 or diverging.epoch >= 0:
            followed.truncate(diverging.epoch, diverging.end_offset)
            self._session.add(followed)
            self._wake(followed.partition)
            return
        has_moved = followed.append(
            data.records or b"",
            high_watermark=data.high_watermark,
            log_start_offset=data.log_start_offset,
            now_ms=self._clock.wall_ms(),
        )
        if has_moved or followed.has_moved_on():
            self._session.add(followed)
            self._slow_down(followed, data)
        if has_moved:
            self._wake(followed.partition)

    def _slow_down(self, followed: FollowedPartition, data: PartitionData) -> None:
        """Count the received bytes. While the throttle is exceeded, delay a lagging partition."""
        partition = followed.partition
        if not self._throttle.covers(partition.topic, partition.index):
            return
        self._throttle.record(len(data.records or b""))
        if data.high_watermark > partition.log.log_end_offset and self._throttle.is_exceeded:
            followed.is_throttled = True
            self._delay(followed, self._membership.config.replica_fetch_wait_max_ms)

    def _go_on_looking_up(self) -> None:
        for followed, lookup in list(self._lookups.items()):
            try:
                if not lookup.step():
                    continue
            except _LOG_ERRORS as error:
                del self._lookups[followed]
                self._failed(followed, error)
                continue
            del self._lookups[followed]
            self._session.add(followed)
            self._wake(followed.partition)

    def _failed(self, followed: FollowedPartition, error: Exception) -> None:
        """Handle an error of a partition's log: delay the partition, or stop fetching it for good.

        Begin a new session, so that the leader repeats the offsets that were not taken over.
        """
        self._session.restart()
        if is_failed(followed, error):
            self._session.remove(followed)
            _log.warning("%s is no longer followed: %s", followed.partition.topic_partition, error)
        else:
            self._put_off(followed, error, self._backoff_ms)

    def _put_off(self, followed: FollowedPartition, error: Exception, delay_ms: int) -> None:
        _log.debug("%s is delayed: %s", followed.partition.topic_partition, error)
        self._delay(followed, delay_ms)

    def _delay(self, followed: FollowedPartition, delay_ms: int) -> None:
        self._session.remove(followed)
        followed.delayed_until_ms = until_ms = self._clock.monotonic_ms() + delay_ms
        self._delay_count += 1
        heappush(self._delayed, (until_ms, self._delay_count, followed))

    def _end_delays(self, now_ms: int) -> None:
        while self._delayed and self._delayed[0][0] <= now_ms:
            until_ms, _, followed = heappop(self._delayed)
            if followed.delayed_until_ms != until_ms:
                continue
            if followed.is_throttled and self._throttle.is_exceeded:
                self._delay(followed, self._membership.config.replica_fetch_wait_max_ms)
            else:
                followed.is_throttled = False
                self._go_on(followed)

    def _next_ms(self) -> int | None:
        """Return the time at which a delay or a back-off ends, or None."""
        times = [until_ms for until_ms, _, _ in self._delayed[:1]]
        if self._in_flight is None and self._retry_ms > self._clock.monotonic_ms():
            times.append(self._retry_ms)
        return min(times, default=None)
