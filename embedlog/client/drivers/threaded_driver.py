"""`ThreadedDriver`: a thread makes the passes; callers wake it, and wait for the outcomes."""

from __future__ import annotations

from _thread import get_ident

from embedlog.client.drivers.driver import PARK_MS, Driver
from embedlog.client.drivers.pass_thread import PassThread
from embedlog.client.drivers.turn_lock import TurnLock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from embedlog.client.drivers.driver import Step
    from embedlog.transport import Transport


class ThreadedDriver(Driver):
    """Drives a producer over the network in a thread, which Ctrl-C does not interrupt."""

    def __init__(
        self, transport: Transport, step: Step, *, name: str = "embedlog-producer"
    ) -> None:
        super().__init__(transport, step)
        self._turns = TurnLock()
        self._thread = PassThread(transport, name)
        self._has_ended = False
        """True after `close`: from then on callers make the passes themselves."""

    def begin(self) -> None:
        if not self._has_ended:
            self._thread.start(self._pass)

    def run(self) -> None:
        if not self._has_ended:
            self._thread.start(self._pass)
            self._transport.wake()
        elif not self._runner or self._may_run():
            self._pass()

    def wait(
        self,
        is_done: Callable[[], bool],
        timeout_ms: int | None,
        *,
        is_news: Callable[[], bool] | None = None,
        patience_ms: int = PARK_MS,
    ) -> bool:
        if self._runner == get_ident():
            return self._is_done_inside(is_done)
        # Not in the loop: each pass wakes waiting threads, so they would wake each other for ever.
        self.run()
        deadline_ms = self._deadline_ms(timeout_ms)
        while True:
            listener = self._news.listen(is_news)
            try:
                left_ms = deadline_ms - self._clock.monotonic_ms()
                if is_done():
                    return True
                if left_ms <= 0:
                    return False
                self._scheduler.wait(listener.pending, min(left_ms, patience_ms))
            finally:
                self._news.stop_listening(listener)

    def run_if_free(self) -> None:
        self.run()

    def close(self, timeout_ms: int) -> None:
        self._thread.stop()
        self._transport.wake()
        if self.is_running_here:
            return
        self._thread.join(timeout_ms)
        self._has_ended = True

    def abandon(self) -> None:
        self._thread.stop()
        self._transport.wake()

    def _pass(self) -> int | None:
        self._turns.acquire(self._transport.wake)
        try:
            self._runner = get_ident()
            delay_ms = self._step()
        finally:
            self._runner = 0
            self._turns.release()
        self._news.arrived()
        return delay_ms

    def _in_turn(self, action: Callable[[], None]) -> None:
        self._turns.run(action, self._transport.wake)
