"""`PollingDriver`: the caller makes the pass; one of the waiting threads polls the sockets.

Only one thread may use the sockets, so the polling thread holds the turn. A thread that wants to
send wakes the polling thread, and gets the turn next. The other waiting threads sleep until
something arrives, or until it is their turn to poll.
"""

from __future__ import annotations

from _thread import get_ident

from embedlog.client.drivers.driver import PARK_MS, CallerDriver
from embedlog.client.drivers.turn_lock import TurnLock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from embedlog.runtime.pending import Pending
    from embedlog.transport import Transport


class PollingDriver(CallerDriver):
    """For a client over the network that has no thread of its own."""

    def __init__(
        self,
        transport: Transport,
        step: Callable[[], int | None],
        recover: Callable[[], None] | None = None,
    ) -> None:
        super().__init__(transport, step, recover)
        self._turns = TurnLock()
        self._poller: dict[str, int] = {}
        """The waiting thread that polls; `setdefault` makes one thread win."""

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
        deadline_ms = self._deadline_ms(timeout_ms)
        try:
            while True:
                listener = self._news.listen(None)
                try:
                    self.run()
                    left_ms = deadline_ms - self._clock.monotonic_ms()
                    if is_done():
                        return True
                    if left_ms <= 0:
                        return False
                    self._park(listener.pending, min(left_ms, patience_ms))
                finally:
                    self._news.stop_listening(listener)
        finally:
            # This thread may have polled: another waiting thread takes over.
            self._news.arrived()

    def run_if_free(self) -> None:
        if not self._runner and not self._turns.is_taken:
            self._pass()

    def exclusively(self, action: Callable[[], None]) -> None:
        if self._runner == get_ident():
            action()
            return
        self._turns.acquire(self._transport.wake)
        try:
            action()
        finally:
            self._turns.release()

    def _pass(self) -> None:
        self._turns.acquire(self._transport.wake)
        try:
            self._runner = get_ident()
            try:
                if self._is_cut_short and self._recover is not None:
                    self._recover()
                self._is_cut_short = True
                self._transport.poll()  # perhaps no thread waits, and answers make room
                self._delay_ms = self._step()
                self._is_cut_short = False
            except Exception:  # from a user's callback, or a defect: `step` has dealt with it
                self._is_cut_short = False
                raise
            finally:
                self._runner = 0
        finally:
            self._turns.release()

    def _park(self, news: Pending[object], left_ms: int) -> None:
        if self._poller.setdefault("thread", get_ident()) != get_ident():
            self._scheduler.wait(news, self._until_next_pass(left_ms))
            return
        try:
            self._turns.acquire()
            try:
                # Computed only here: another thread's pass may have shortened the delay meanwhile.
                self._transport.wait(news, self._until_next_pass(left_ms))
            except BaseException as error:
                self._note(error)
                raise
            finally:
                self._turns.release()
        finally:
            self._poller.clear()
