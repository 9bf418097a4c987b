"""`KafkaClock`: the time of a cluster for tests.

    clock="real"      the machine's time. Only `now`, `timers`, `follow` and the `expire` calls work
    clock="manual"    the machine's time, and jumps by the test
    clock="auto"      as "manual", and time leaps by itself while somebody waits: see `leaps`

Time never stands still. The clock runs as the machine's and is ahead of it by all jumps.

What the clock moves:

    brokers            retention, compaction, sessions, transactions, waiting requests, throttling,
                       the timestamps that brokers write
    clients from       their time-outs, retries and heartbeats, the timestamps of their records:
    this cluster       `kafka.producer()`, `consumer()`, `admin()`
    nothing else       foreign clients such as confluent-kafka, and clients in other processes, have
                       clocks of their own. Limits of connections are in real time, too

Timestamps of foreign clients. Their records carry real time, which is in the past for a cluster
whose clock has jumped: after `jump(hours=3)` a new record is 3 hours old. Retention by time counts
these hours, and `offsets_for_times` finds the record by its own timestamp. Set the topic's
message.timestamp.type=LogAppendTime to have records with the cluster's time. Records from the
future are refused if they are ahead by more than message.timestamp.after.max.ms, an hour, of both
the cluster's wall time and the machine's (with all jumps): real time is accepted after `follow` of
a time in the past.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, TypeVar

from embedlog.errors import ConfigError, TimedOut
from embedlog.runtime.pending import Pending
from embedlog.testing.time.real_waits import wait_in_real_time
from embedlog.testing.time.steady_clock import SteadyClock
from embedlog.topic_names import OFFSETS_TOPIC, TRANSACTIONS_TOPIC

if TYPE_CHECKING:
    from embedlog.broker.broker import Broker
    from embedlog.testing.cluster_owner import ClusterOwner
    from embedlog.testing.time.heartbeats import Heartbeats
    from embedlog.testing.time.leaps import Leaps
    from embedlog.testing.time.mover import Mover
    from embedlog.testing.time.timers import DueTimer
    from embedlog.testing.time.traffic import Traffic

T = TypeVar("T")

_STRIDES_OF_ONE = 2_000
_STRIDES_OF_SEVERAL = 100
"""Strides of a long jump. Brokers of several have much to do for each other: 2 ms a stride."""
_EXACT_OF_ONE_MS, _EXACT_OF_SEVERAL_MS = 3_600_000, 60_000
"""The longest jumps that stop at every due time."""
_WATCHED_STRIDE_MS = 500
_DAY_S = 86_400.0
_ANSWER_MAX_MS = 10_000


class KafkaClock:
    """The time of a cluster for tests: `Kafka.clock`. Every method may be called from any thread.

    >>> from embedlog.testing import Kafka
    >>> with Kafka(clock="manual", topics={"t": 1}) as kafka:
    ...     before = kafka.clock.now()
    ...     kafka.clock.jump(hours=3)
    ...     (kafka.clock.now() - before).seconds // 3600
    3
    """

    def __init__(self, kafka: ClusterOwner) -> None:
        self._kafka = kafka
        self.mode = kafka.shape.clock
        """The clock of the cluster's shape: "real", "manual" or "auto"."""
        self._mover: Mover | None = None
        self._traffic: Traffic | None = None
        self._leaps: Leaps | None = None
        self._heartbeats: Heartbeats | None = None

    def begin(self) -> None:
        """Watch the cluster's requests, and let time leap with clock="auto". `Kafka` calls it."""
        if self.mode == "real":
            return
        from embedlog.testing.interception import CLOCK
        from embedlog.testing.time.heartbeats import Heartbeats
        from embedlog.testing.time.moved_clock import MovedClock
        from embedlog.testing.time.moved_scheduler import MovedScheduler
        from embedlog.testing.time.mover import Mover
        from embedlog.testing.time.traffic import Traffic

        runtime = self._kafka.cluster.runtime
        clock, scheduler = runtime.clock, runtime.scheduler
        assert isinstance(clock, MovedClock), clock
        assert isinstance(scheduler, MovedScheduler), scheduler
        self._mover = mover = Mover(scheduler, clock)
        self._traffic = Traffic(clock)
        self._heartbeats = Heartbeats(lambda: self._kafka.cluster, self._traffic)
        self._kafka.stages.put(CLOCK, self._traffic.stage)
        if self.mode == "auto":
            from embedlog.testing.time.leaps import Leaps

            scheduler.add(self._heartbeats)
            is_several = len(self._kafka.cluster.brokers) > 1
            self._leaps = Leaps(scheduler, mover, clock.waits, self._traffic, is_several=is_several)

    def end(self) -> None:
        """Stop the leaps: the cluster is about to be closed or replaced. Idempotent."""
        if self._leaps is not None:
            self._leaps.close()
            self._leaps = None
        if self._heartbeats is not None:
            self._kafka.cluster.runtime.scheduler.remove(self._heartbeats)

    # The time

    def now(self) -> datetime:
        """Return the cluster's wall time, in UTC."""
        return datetime.fromtimestamp(self.now_ms / 1000, UTC)

    @property
    def now_ms(self) -> int:
        """The cluster's wall time as in timestamps of records: milliseconds since 1970, UTC."""
        return self._kafka.cluster.runtime.clock.wall_ms()

    def follow(self, follows: bool = True) -> None:
        """Take the wall time from the module `time`, which freezegun and time-machine replace.

        Timers do not follow: use `jump` for them. `follow(False)` ends it. Without this call a
        frozen `time` has no effect on the cluster.
        """
        clock = self._kafka.cluster.runtime.clock
        assert isinstance(clock, SteadyClock), clock
        clock.follows = follows

    def timers(self) -> list[DueTimer]:
        """Return everything that time will bring, the next first: ends of sessions, retention..."""
        from embedlog.testing.time.timers import timers_of

        return timers_of(self._kafka.cluster)

    # Moving

    def jump(
        self,
        *,
        days: float = 0,
        hours: float = 0,
        minutes: float = 0,
        seconds: float = 0,
        milliseconds: float = 0,
        keep_members: bool = False,
    ) -> None:
        """Move the clock ahead. Everything that is due on the way is done, in order, before it
        returns: sessions end, transactions are aborted, old segments go, waiting requests are
        answered.

        Members of groups in other processes send their heartbeats by their own clocks. So a jump
        over their session time-out removes them from their groups, and they join again. A group
        without members and offsets is deleted after 10 minutes at most; for members of the new
        protocol that is fatal, as with Apache Kafka.
        `keep_members` keeps the members that are alive, as if they had sent their heartbeats: whose
        connections are open, and whose last request is no older in real time than their session
        time-out. Members of this process send their heartbeats on the way.

        A jump of more than an hour takes 2000 strides; with several brokers a jump of more than a
        minute takes 100. Within a stride the order remains, but brokers see and write the time of
        its end.

        >>> from embedlog.testing import Kafka
        >>> with Kafka(clock="manual") as kafka:
        ...     kafka.clock.jump(minutes=5, seconds=30)

        Raises:
            ConfigError: the cluster has the machine's clock, or the duration is not positive.
        """
        duration = timedelta(
            days=days, hours=hours, minutes=minutes, seconds=seconds, milliseconds=milliseconds
        )
        duration_ms = round(duration / timedelta(milliseconds=1))
        mover = self._movable()
        if duration_ms <= 0:
            raise ConfigError(f"a jump of {duration}: expected at least a millisecond ahead")
        count, exact_ms = _STRIDES_OF_ONE, _EXACT_OF_ONE_MS
        if len(self._kafka.cluster.brokers) > 1:
            count, exact_ms = _STRIDES_OF_SEVERAL, _EXACT_OF_SEVERAL_MS
        stride_ms = duration_ms // count if duration_ms > exact_ms else 0
        with self.hold(), self._kept() if keep_members else nullcontext():
            mover.move(duration_ms, stride_ms=stride_ms)

    def run_until(self, condition: Callable[[], object], *, limit: float = _DAY_S) -> None:
        """Move the clock from one due time to the next until `condition()` is true.

        `limit` is the longest way, in seconds of the cluster's clock.

        >>> from embedlog.testing import Kafka
        >>> with Kafka(clock="manual") as kafka:
        ...     end = kafka.clock.now_ms + 60_000
        ...     kafka.clock.run_until(lambda: kafka.clock.now_ms >= end, limit=120)

        Raises:
            TimedOut: the condition was not true within the limit.
            ConfigError: the cluster has the machine's clock.
        """
        mover = self._movable()
        if limit <= 0:
            raise ConfigError(f"limit={limit}: expected seconds")
        is_several = len(self._kafka.cluster.brokers) > 1
        with self.hold():
            is_true = mover.move(
                round(limit * 1000),
                lambda: bool(condition()),
                stride_ms=_WATCHED_STRIDE_MS if is_several else 0,
            )
        if not is_true:
            raise TimedOut(f"the condition was not true within {limit} s of the cluster's clock")

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Let time not leap within the block. Without clock="auto" the block changes nothing.

        >>> from embedlog.testing import Kafka
        >>> with Kafka(clock="auto") as kafka, kafka.clock.hold():
        ...     pass  # requests wait in real time here
        """
        leaps = self._leaps
        with leaps.hold() if leaps is not None else nullcontext():
            yield

    @property
    def leap_count(self) -> int:
        """The number of times that time has leapt by itself."""
        return 0 if self._leaps is None else self._leaps.count

    @contextmanager
    def _kept(self) -> Iterator[None]:
        """Keep the sessions of live members within the block."""
        assert self._heartbeats is not None
        scheduler = self._kafka.cluster.runtime.scheduler
        scheduler.add(self._heartbeats)
        try:
            yield
        finally:
            if self._leaps is None:
                scheduler.remove(self._heartbeats)

    def _movable(self) -> Mover:
        if self._mover is not None:
            return self._mover
        raise ConfigError(
            "this cluster has the machine's clock, which a test cannot move: ask for another clock "
            'with @pytest.mark.kafka(clock="manual"), or Kafka(clock="manual")'
        )

    # Ends of time limits, with any clock

    def expire_sessions(self, group: str | None = None, member: str | None = None) -> int:
        """End the sessions of members now, as if they had been silent; return their number.

        `group` and `member` (a member id) choose some; by default all groups' members are removed.
        """

        def is_chosen(group_id: str, member_id: str) -> bool:
            return group in (None, group_id) and member in (None, member_id)

        ended = [
            each
            for core in self._cores(OFFSETS_TOPIC)
            for each in core.group_coordinator.expire_sessions(is_chosen)
        ]
        return sum(self._results(ended))

    def expire_transactions(self, transactional_id: str | None = None) -> list[str]:
        """End the time limits of open transactions now: they are aborted, their producers fenced.

        Return their transactional ids. By default all open transactions end.
        """
        ended = [
            each
            for core in self._cores(TRANSACTIONS_TOPIC)
            for each in core.transaction_coordinator.abort_open(
                lambda each: transactional_id in (None, each)
            )
        ]
        return sorted(each for found in self._results(ended) for each in found)

    def _cores(self, topic: str) -> list[Broker]:
        """Return the running brokers, if the coordinators' topic exists."""
        running = [node.core for node in self._kafka.cluster.brokers if node.is_running]
        return [core for core in running if topic in core.image.topics_by_name]

    def _results(self, answers: Sequence[Pending[T]]) -> list[T]:
        """Wait for the answers; leave out shards that another broker leads by now."""
        runtime = self._kafka.cluster.runtime
        for each in answers:
            if not wait_in_real_time(runtime, each, _ANSWER_MAX_MS):
                raise TimedOut(f"a coordinator did not answer within {_ANSWER_MAX_MS} ms")
        runtime.scheduler.run_due(runtime.clock.monotonic_ms())
        return [each.result() for each in answers if each.error() is None]

    def __repr__(self) -> str:
        return f"<KafkaClock {self.mode}, {self.now().isoformat(timespec='milliseconds')}>"
