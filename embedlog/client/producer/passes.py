"""The passes of a producer's sender: made by waiting callers, by a thread, or by
`UnattendedPasses`.

If no thread loops for a producer (in process, and over TCP with linger.ms=0), its callers make the
passes. A caller that goes on to other work leaves records behind: open batches, requests without an
answer, callbacks. `UnattendedPasses` finishes this work, in a thread that exists while there is
any. The user's code runs there, so the thread is not shared with another client or a listener.
"""

from __future__ import annotations

from _weakref import ref

from embedlog.client.arguments import timeout_s
from embedlog.client.drivers.in_process_driver import InProcessDriver
from embedlog.common import deque
from embedlog.errors import TimedOut
from embedlog.runtime.threads import NoThread

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from embedlog.client.drivers.driver import Driver
    from embedlog.client.producer.accumulator import RecordAccumulator
    from embedlog.client.producer.batch import ProducerBatch
    from embedlog.client.producer.in_process_sender import InProcessSender
    from embedlog.client.producer.request_sender import RequestSender
    from embedlog.client.settings import Settings
    from embedlog.transport import Transport


class Passes:
    """The passes of one producer, and the `Delivery` of its batches. Thread-safe."""

    def __init__(
        self,
        transport: Transport,
        sender: InProcessSender | RequestSender,
        accumulator: RecordAccumulator,
        settings: Settings,
        *,
        owner: object,
        is_attended: bool,
    ) -> None:
        """`owner`, the producer, lives as long as any of its futures.

        `is_attended`: an event loop makes sure that records are sent. In process no thread is
        needed then; over the network a thread sends them, also with linger.ms=0.
        """
        self._owner = owner
        self._accumulator = accumulator
        self._clock = transport.runtime.clock
        self._in_process = transport.in_process
        linger_ms: int = settings["linger.ms"]
        self._delivery_timeout_ms: int = settings["delivery.timeout.ms"]
        self._is_threaded = not self._in_process and (linger_ms > 0 or is_attended)
        self.is_eager = not self._in_process and not self._is_threaded
        """True if every `send` makes a pass, not only a `send` that filled a batch."""
        self.driver = _driver(transport, sender, is_threaded=self._is_threaded)
        sender.upkeep.arrived = self.driver.arrived
        self.flush_ns = 0
        self._unattended: UnattendedPasses | None = None
        # In process the end of a transaction sends its records: nobody reads them before that.
        is_left_alone = self._in_process and settings["transactional.id"] is not None
        if not self._is_threaded and not is_attended and not is_left_alone:
            self._unattended = UnattendedPasses(
                self.driver, accumulator, transport, linger_ms=max(linger_ms, 1)
            )
        accumulator.delivery = ref(self)  # type: ignore[assignment]  # alive while records come
        accumulator.needs_attention = self.is_eager
        self._care = accumulator.care
        self._care.is_armed = is_left_alone or (is_attended and self._in_process)
        self._care.is_relied_on = self._is_threaded

    def run(self) -> None:
        self.driver.run()

    def wait_for(self, batch: ProducerBatch, timeout: float | None) -> None:
        """Send `batch` now if it still waits; return when it is done, or raise TimedOut."""
        batch.is_wanted = True
        self._care.is_relied_on = self._is_threaded
        if self._in_process:
            self.driver.run()
            if batch.is_done:
                return
        self._wait_for(batch, timeout)

    def _wait_for(self, batch: ProducerBatch, timeout: float | None) -> None:
        def is_done() -> bool:
            return batch.is_done

        if not self.driver.wait(is_done, milliseconds(timeout, "result"), is_news=is_done):
            raise TimedOut(
                f"{batch} has no outcome after {timeout} s; it is given up after "
                f"delivery.timeout.ms={self._delivery_timeout_ms}"
            )

    def begin(self) -> None:
        """Start the thread that all records need, before the first is queued.

        Raises:
            NoThread: it cannot be started.
        """
        if self._is_threaded:
            self.driver.begin()

    def attend(self) -> None:
        """Send a batch that was begun or closed, or make sure that it is sent in time."""
        accumulator = self._accumulator
        accumulator.needs_attention = self.is_eager
        if self.is_eager or accumulator.has_sendable or self._is_threaded:
            self.send()
        elif self._unattended is not None:
            self._unattended.arm()

    def send(self) -> None:
        """Make a pass; leave work that it cannot finish to `UnattendedPasses`."""
        self.driver.run()
        if (
            self._unattended is not None
            and not self._care.is_armed
            and self._accumulator.incomplete
        ):
            self._unattended.arm()

    def flush(self, timeout_ms: int | None) -> bool:
        """Send everything now; return whether every batch has an outcome in time."""
        began_us = self._clock.monotonic_us()
        accumulator = self._accumulator
        accumulator.close_all()
        with accumulator.lock:
            waited = deque(accumulator.incomplete)
        newest = [waited[-1] if waited else None]

        def is_settled() -> bool:
            # Drop the batches that are done, from both ends: they finish in about their order.
            while waited and waited[0].is_done:
                waited.popleft()
            while waited and waited[-1].is_done:
                waited.pop()
            newest[0] = waited[-1] if waited else None
            return not waited

        def is_news() -> bool:
            batch = newest[0]
            return batch is None or batch.is_done

        try:
            return self.driver.wait(is_settled, timeout_ms, is_news=is_news)
        finally:
            self.flush_ns += (self._clock.monotonic_us() - began_us) * 1000

    def abandon(self) -> None:
        """End the thread soon, because the producer was dropped; take no lock and do not wait."""
        self.driver.abandon()

    def close(self, give_up: Callable[[], None]) -> None:
        self.driver.exclusively(give_up)
        self.driver.close(_THREAD_STOP_MS)
        if self._unattended is not None:
            self._unattended.close()


def _driver(
    transport: Transport, sender: InProcessSender | RequestSender, *, is_threaded: bool
) -> Driver:
    if transport.concurrent:
        return InProcessDriver(transport, sender.run_once, sender.recover)
    if is_threaded:
        from embedlog.client.drivers.threaded_driver import ThreadedDriver

        return ThreadedDriver(transport, sender.run_once)
    from embedlog.client.drivers.polling_driver import PollingDriver

    return PollingDriver(transport, sender.run_once, sender.recover)


def milliseconds(seconds: float | None, call: str) -> int | None:
    """Check a time-out given in seconds, and return milliseconds; None is for ever."""
    checked = timeout_s(seconds, call)
    return None if checked is None else int(checked * 1000)


_THREAD_STOP_MS = 10_000
_PAUSE_MAX_MS = 16
"""The longest pause between two looks of `UnattendedPasses`."""
_UNWATCHED_LINGER_MS = 20
"""How long an open batch may wait while no thread of this process waits for records."""
_QUIET_MS = 1_000
"""After this time without records the thread sleeps until `arm` is called."""


class UnattendedPasses:
    """Makes a pass when the oldest batch is due and no caller has sent it.

    Between looks it pauses 1 ms, and twice as long after each look that found nothing to do. So if
    the callers make all passes, this costs 60 looks a second, not a wake-up per record.
    """

    def __init__(
        self,
        driver: Driver,
        accumulator: RecordAccumulator,
        transport: Transport,
        *,
        linger_ms: int,
    ) -> None:
        self._driver = driver
        self._accumulator = accumulator
        self._transport = transport
        self._clock = transport.runtime.clock
        self._linger_ms = linger_ms
        self._scheduler = transport.runtime.scheduler
        self._pause_ms = 1
        self._quiet_since_ms = 0
        self._care = accumulator.care
        self._thread = self._scheduler.duty_thread(self, "embedlog-producer")

    def arm(self) -> None:
        """Begin to make passes for records whose call ends before their outcome is known.

        The records are queued already, so a process that can start no thread gets no error: the
        caller sends them now.
        """
        self._quiet_since_ms = self._clock.monotonic_ms()
        self._pause_ms = 1
        self._care.is_armed = True
        try:
            self._thread.notify()
        except NoThread:
            self._care.is_armed = False
            self._accumulator.close_all()
            self._driver.run()

    def run_once(self, now_ms: int) -> int | None:
        """Make a pass if one is due; return ms until the next look, or None to wait for `arm`."""
        oldest = self._accumulator.incomplete.oldest()
        if oldest is None:
            return self._rest(now_ms)
        self._quiet_since_ms = now_ms
        linger_ms = self._linger_ms
        if not self._scheduler.is_watched:
            linger_ms = max(linger_ms, _UNWATCHED_LINGER_MS)
        left_ms = oldest.created_ms + linger_ms - now_ms
        if oldest.is_closed or left_ms <= 0:
            self._driver.run_if_free()
            if self._transport.in_process and self._accumulator.incomplete.oldest() is oldest:
                # The batch may wait for a duty of the broker, which perhaps no other thread runs.
                self._transport.poll()
            if self._accumulator.incomplete.oldest() is not oldest:
                self._care.is_relied_on = True
                self._pause_ms = 1
                return 1
        return max(left_ms, self._next_pause_ms())

    def close(self) -> None:
        self._thread.close()

    def _next_pause_ms(self) -> int:
        pause_ms = self._pause_ms
        self._pause_ms = min(2 * pause_ms, _PAUSE_MAX_MS)
        return pause_ms

    def _rest(self, now_ms: int) -> int | None:
        if now_ms - self._quiet_since_ms < _QUIET_MS:
            return self._next_pause_ms()
        self._care.is_armed = False
        # Look only now: a thread that appends meanwhile sees the cleared flag and calls `arm`, or
        # its record is found here.
        if self._accumulator.incomplete.oldest() is None:
            return None
        self._care.is_armed = True
        return 1
