"""What nobody's call sees to: passes of the sender, and the ends of producers nobody closes.

Where no thread loops for a producer (in process, and over TCP with linger.ms=0) its callers drive
it. A caller that goes on to other things leaves records behind: open batches, requests without an
answer, callbacks. This duty sees to them, in a thread that exists while there are any. It is
the user's code that runs here, so no other client's thread and no listener's is used.
"""

from __future__ import annotations

from _weakref import ref

from embedlog.client.user_code import attempt
from embedlog.logs import Log
from embedlog.runtime.at_exit import PRODUCERS
from embedlog.user_warnings import warn_user

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    from embedlog.client.driver import Driver
    from embedlog.client.producer.accumulator import RecordAccumulator
    from embedlog.runtime import Scheduler
    from embedlog.transport import Transport

    class Closable(Protocol):
        """A producer, as far as its end goes."""

        def close(self, timeout: float | None = None) -> None:
            """Send everything, and wait for it at most `timeout` seconds."""


_PAUSE_MAX_MS = 16
"""The longest pause between two looks."""
_UNWATCHED_LINGER_MS = 20
"""What an open batch waits while nothing in this process waits for records."""
_QUIET_MS = 1_000
"""Without records for this long, the duty sleeps until it is armed again."""


class UnattendedPasses:
    """Makes a pass when the oldest batch has waited longer than a caller lets one wait.

    Between looks it pauses 1 ms, and twice as long after each that found nothing to do: callers
    that drive by themselves pay 60 looks a second, not a wake-up for every record.
    """

    __slots__ = (
        "_accumulator",
        "_clock",
        "_driver",
        "_linger_ms",
        "_pause_ms",
        "_quiet_since_ms",
        "_scheduler",
        "_thread",
        "_transport",
        "is_armed",
        "is_relied_on",
    )

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
        self.is_armed = False
        """Will there be another look without a call of `arm`?"""
        self.is_relied_on = False
        """Was a batch sent here since a caller last waited for one? Then the next is worth a call
        of `arm`, which ends a long pause."""
        self._thread = self._scheduler.duty_thread(self, "embedlog-producer")

    def arm(self) -> None:
        """Records wait, and this call ends without their outcome."""
        self._quiet_since_ms = self._clock.monotonic_ms()
        self._pause_ms = 1
        self.is_armed = True
        self._thread.notify()

    def run_once(self, now_ms: int) -> int | None:
        """A pass, if one is overdue; milliseconds until the next look, None for when armed."""
        oldest = self._accumulator.oldest()
        if oldest is None:
            return self._rest(now_ms)
        self._quiet_since_ms = now_ms
        linger_ms = self._linger_ms
        if not self._scheduler.is_watched:
            linger_ms = max(linger_ms, _UNWATCHED_LINGER_MS)
        left_ms = oldest.created_ms + linger_ms - now_ms
        if oldest.is_closed or left_ms <= 0:
            self._driver.run_if_free()
            if self._transport.in_process and self._accumulator.oldest() is oldest:
                # It waits for the broker, say for the disk: nobody else may drive that.
                self._transport.poll()
            if self._accumulator.oldest() is not oldest:
                self.is_relied_on = True
                self._pause_ms = 1
                return 1
        return max(left_ms, self._next_pause_ms())

    def close(self) -> None:
        """Make no more passes."""
        self._thread.close()

    def _next_pause_ms(self) -> int:
        pause_ms = self._pause_ms
        self._pause_ms = min(2 * pause_ms, _PAUSE_MAX_MS)
        return pause_ms

    def _rest(self, now_ms: int) -> int | None:
        if now_ms - self._quiet_since_ms < _QUIET_MS:
            return self._next_pause_ms()
        self.is_armed = False
        # After that: who appends a record meanwhile sees it and arms, or has the record seen here.
        if self._accumulator.oldest() is None:
            return None
        self.is_armed = True
        return 1


_LAST_S = 10.0
"""What a producer gets to send the rest: brokers that do not answer must not hold a program."""
_log = Log("client")


class Endings:
    """The ends of one producer that are not its own `close`."""

    def __init__(
        self, producer: Closable, accumulator: RecordAccumulator, scheduler: Scheduler
    ) -> None:
        self._producer = ref(producer)
        self._accumulator = accumulator
        reference = ref(self)

        def end() -> None:
            endings = reference()
            if endings is not None:
                endings.program_ends()

        self.forget: Callable[[], None] = scheduler.at_exit(end, PRODUCERS)
        """The producer was closed."""

    def __del__(self) -> None:
        self.forget()

    def cluster_ends(self) -> None:
        """The cluster of this process is closed: send what is left."""
        self._finish()

    def program_ends(self) -> None:
        """The interpreter ends: say what was forgotten, and send it."""
        count = self._accumulator.record_count()
        if count:
            warn_user(
                f"a producer was not closed: {count} records had no outcome when the program "
                f"ended; they get {_LAST_S:g} s",
                ResourceWarning,
            )
        self._finish()

    def _finish(self) -> None:
        producer = self._producer()
        if producer is None:
            return
        error = attempt(producer.close, _LAST_S)
        if error is not None:
            # A user's callback raised: the cluster or the interpreter still ends.
            _log.error("a producer that nobody closed: %s", error, exc_info=error)
