"""`PollingDriver`: the caller makes the pass; one of the waiting threads polls the sockets.

Only one thread may use the sockets, so the polling thread holds the turn. A thread that wants to
send wakes the polling thread, and gets the turn next. The other waiting threads sleep until
something arrives, or until it is their turn to poll.
"""

from __future__ import annotations

from _thread import get_ident

from embedlog.client.drivers.caller_driver import CallerDriver
from embedlog.client.drivers.turn_lock import TurnLock
from embedlog.runtime.outer_call import ANYWHERE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from embedlog.client.drivers.driver import Action, Step
    from embedlog.runtime.pending import Pending
    from embedlog.transport import Transport


class PollingDriver(CallerDriver):
    """Drives a producer over the network in the threads of its callers."""

    def __init__(self, transport: Transport, step: Step, recover: Action | None = None) -> None:
        super().__init__(transport, step, recover)
        self._turns = TurnLock()
        self._poller: dict[str, int] = {}
        """The id of the waiting thread that polls; `setdefault` lets one thread win."""

    def run_if_free(self) -> None:
        if not self._runner and not self._turns.is_taken:
            self._pass()

    def _pass(self) -> None:
        self._turns.acquire(self._transport.wake)
        try:
            self._runner = get_ident()
            try:
                if self._is_cut_short and self._recover is not None:
                    self._recover()
                self._is_cut_short = True
                # Take answers, because they free buffer memory: perhaps no other thread takes them.
                self._transport.poll()
                self._delay_ms = self._step()
                self._is_cut_short = False
            except Exception as error:
                # `step` has dealt with the error of a user's callback, or with a defect, but with
                # no RecursionError: the code that should have done that has met another.
                self._is_cut_short = type(error) in ANYWHERE
                raise
            finally:
                self._runner = 0
        finally:
            self._turns.release()

    def _in_turn(self, action: Callable[[], None]) -> None:
        self._turns.run(action, self._transport.wake)

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
                if type(error) in ANYWHERE or not isinstance(error, Exception):
                    self._is_cut_short = True
                raise
            finally:
                self._turns.release()
        finally:
            self._poller.clear()
