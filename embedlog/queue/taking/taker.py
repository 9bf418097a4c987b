"""`Taker`: fetches jobs for the workers of one process, and acknowledges them.

worker  --take-->    at hand? -> the next job
                     else one of the waiting threads drives the share consumer; the others park
worker  --settle-->  an order -> sent with the next fetch, at once, or by a duty a moment later
"""

from __future__ import annotations

from _weakref import ref
from functools import partial

from embedlog.client.share.acknowledge_type import AcknowledgeType
from embedlog.client.share.held import HeldRecords
from embedlog.common import deque
from embedlog.errors import ClosedError, RequestTimedOut
from embedlog.queue.taking.holdings import Holdings
from embedlog.queue.taking.prefetch import Prefetch
from embedlog.queue.taking.wheel import Wheel
from embedlog.runtime.outer_call import outer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from embedlog.client.connect import Target
    from embedlog.client.share.record import ShareRecord
    from embedlog.common import TopicPartition
    from embedlog.errors import KafkaError
    from embedlog.queue.taking.taken import Taken

SETTLE_DELAY_MS = 10
"""An acknowledgement is sent after this time at the latest, as long as a thread drives duties."""
IDLE_MS = 1000
"""A fetched job that no worker takes within this time goes back."""
_INTERVAL_MS_MAX = 2**31 - 1
_CLOSE_MS = 30_000


class Taker:
    """The jobs of one topic that this process has. Any thread may call its methods."""

    def __init__(self, target: Target, group_id: str, topic: str, *, prefetch_max: int) -> None:
        settings: dict[str, Any] = {
            "group.id": group_id,
            "client.id": f"queue-{group_id}",
            # The worker may take its time: its lock is renewed, not its poll.
            "max.poll.interval.ms": _INTERVAL_MS_MAX,
            "share.acquire.mode": "record_limit",
        }
        self._consumer = HeldRecords(target, [topic], settings, self)
        self._scheduler = self._consumer.runtime.scheduler
        self.clock = self._consumer.runtime.clock
        self._wheel = Wheel(self.clock)
        self.holdings = Holdings(self.clock)
        self._ready: deque[Taken] = deque()
        """Fetched jobs that no worker has taken. Under the wheel's lock."""
        self._prefetch = Prefetch(prefetch_max)
        self._asked = 0
        """Number of jobs that the last fetch has asked for."""
        self._hungry = 0
        """Number of threads that wait for a job. Under the wheel's lock."""
        self._touched_ms = 0
        """When a worker last took a job, or jobs arrived."""
        self._ordered_ms = 0
        """When the oldest order was given."""
        self._keeper: _Keeper | None = None
        self.is_closed = False

    @property
    def is_ready(self) -> bool:
        """True once the group has given partitions to this process."""
        return self._consumer.has_fetched

    # Taking

    @outer
    def take(self, timeout_ms: int) -> Taken | None:
        """Return the next job; None if there is none within `timeout_ms`.

        Raises:
            RecordUnreadable: a batch is damaged; its records were rejected.
            KafkaError: a broker or the group's coordinator refused, and a retry cannot help.
            ClosedError: the queue or its cluster was closed.
        """
        with self._wheel.lock:
            found = self._next()
            if found is not None:
                return found
            self._hungry += 1
        try:
            return self._wheel.until(self._next, self._drive_for_a_job, timeout_ms)
        finally:
            with self._wheel.lock:
                self._hungry -= 1

    def _next(self) -> Taken | None:
        """Return a fetched job that is still locked. Requires: the wheel's lock."""
        now_ms = self.clock.monotonic_ms()
        while self._ready:
            taken = self._ready.popleft()
            self._touched_ms = now_ms
            if taken.locked_until_ms > now_ms:
                self._prefetch.took()
                return taken
            self.holdings.drop(taken)
        return None

    # Settling

    def settle(self, taken: Taken, kind: int) -> None:
        """Acknowledge a job soon; the outcome comes later."""
        is_first = not self.holdings.orders
        if is_first:
            self._ordered_ms = self.clock.monotonic_ms()
        self.holdings.order(taken, kind)
        if self._wheel.is_driven:
            self._consumer.stir()
        elif not self._ready and not self._prefetch.is_fast:
            self._send()
        elif is_first:
            self._call_keeper()

    @outer
    def _send(self) -> None:
        """Send the orders, without waiting for their outcomes."""
        self._wheel.until(lambda: None, self._drive, 0)

    @outer
    def wait_for(self, settled: Taken, timeout_ms: int) -> None:
        """Wait until an acknowledgement has its outcome, and raise its error.

        Raises:
            InvalidRecordState: the lock had ended, so another worker gets the job.
            RequestTimedOut: there is no outcome after `timeout_ms`.
            ClosedError: the queue or its cluster was closed.
        """
        if not self._until(lambda: settled.has_outcome, timeout_ms):
            text = f"the leader did not answer the acknowledgement within {timeout_ms} ms"
            raise RequestTimedOut(text)
        if settled.error is not None:
            raise settled.error

    @outer
    def wait_for_renewal(self, taken: Taken, timeout_ms: int) -> None:
        """Wait until the renewals of a job have outcomes. A failed renewal ends the lock."""
        self._until(lambda: not taken.renewals, timeout_ms)

    @outer
    def flush(self, timeout_ms: int) -> bool:
        """Wait until every acknowledgement has an outcome; return False if time was over."""
        return self._until(lambda: not self.holdings.has_open, timeout_ms)

    def _until(self, is_over: Callable[[], bool], timeout_ms: int) -> bool:
        return bool(self._wheel.until(lambda: is_over() or None, self._drive, timeout_ms))

    # At the wheel

    def _drive(
        self, is_met: Callable[[], bool], until_ms: int, *, settles_later: bool = False
    ) -> None:
        def step() -> int | None:
            nonlocal settles_later
            if self.is_closed:
                raise ClosedError("the queue was closed")
            if not settles_later:
                self.holdings.hand_over(self._consumer.acknowledge)
            settles_later = False
            with self._wheel.lock:
                return None if is_met() else self._wanted()

        try:
            self._consumer.drive(step, self._arrived, until_ms)
        finally:
            if self.holdings.orders:  # given during the last pass, or left for later
                self._call_keeper()

    def _drive_for_a_job(self, is_met: Callable[[], bool], until_ms: int) -> None:
        """Fetch, and first send the acknowledgements that have waited for their time.

        Younger acknowledgements go together a moment later, unless there is no job to fetch.
        """
        now_ms = self.clock.monotonic_ms()
        is_young = now_ms - self._ordered_ms < SETTLE_DELAY_MS and self._prefetch.is_fast
        self._drive(is_met, until_ms, settles_later=is_young)

    def _wanted(self) -> int:
        """Return how many jobs to fetch now. Requires: the wheel's lock."""
        if self._ready or not self._hungry:
            return 0
        self._asked = max(self._prefetch.count(self._scheduler.now_ns()), self._hungry)
        return self._asked

    def _arrived(self, records: list[ShareRecord]) -> None:
        holdings = self.holdings
        holdings.lock_ms = self._consumer.lock_ms or holdings.lock_ms
        with self._wheel.lock:
            self._ready.extend(holdings.add(records))
            self._touched_ms = self.clock.monotonic_ms()
            self._prefetch.arrived(self._asked, self._scheduler.now_ns())
            self._wheel.wake(len(records))
        if len(records) > 1:
            self._call_keeper()

    def settled(self, offsets: dict[TopicPartition, set[int]], error: KafkaError | None) -> None:
        """Note the outcome of acknowledgements."""
        self.holdings.outcome(offsets, error)
        self._wheel.wake_all()

    def lost(self, records: list[ShareRecord]) -> None:
        """Note that the locks of records have ended."""
        self.holdings.lose(records)

    def has(self, record: ShareRecord) -> bool:
        """Return whether this process has this delivery of a record."""
        return self.holdings.has(record)

    # The duty between the workers' calls

    def _call_keeper(self) -> None:
        if self.is_closed:
            return
        if self._keeper is None:
            self._keeper = _Keeper(self)
            self._scheduler.add(self._keeper)
        self._scheduler.notify(self._keeper, SETTLE_DELAY_MS)

    def keep(self, now_ms: int) -> int | None:
        """Send acknowledgements, and give jobs back that no worker takes.

        Returns milliseconds to the next call; None if nothing is left to do.
        """
        if self.is_closed:
            return None
        is_done = self._wheel.try_now(lambda: self._keep(now_ms))
        if not is_done or self.holdings.orders:
            return SETTLE_DELAY_MS
        return IDLE_MS if self._ready else None

    def _keep(self, now_ms: int) -> bool:
        if self._ready and now_ms - self._touched_ms >= IDLE_MS:
            with self._wheel.lock:
                idle, self._ready = self._ready, deque()
            for taken in idle:
                self.holdings.order(taken, AcknowledgeType.RELEASE)
        hand_over = partial(self.holdings.hand_over, self._consumer.acknowledge)
        return not self.holdings.orders or self._consumer.keep(hand_over)

    def close(self, timeout_s: float | None) -> None:
        """Send the acknowledgements, release all other jobs, and leave the group."""
        if self.is_closed:
            return
        try:
            self.flush(_CLOSE_MS if timeout_s is None else int(timeout_s * 1000))
        finally:
            self.is_closed = True
            self._consumer.stir()
            if self._keeper is not None:
                self._scheduler.remove(self._keeper)
            self._wheel.wait_until_free(_CLOSE_MS)
            self._consumer.close(timeout_s)


class _Keeper:
    """The duty of a taker. It does not keep the taker alive."""

    def __init__(self, taker: Taker) -> None:
        self._taker = ref(taker)

    def run_once(self, now_ms: int) -> int | None:
        """Do the taker's work between the workers' calls."""
        taker = self._taker()
        return None if taker is None else taker.keep(now_ms)
