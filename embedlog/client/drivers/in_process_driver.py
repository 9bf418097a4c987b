"""`InProcessDriver`: the caller makes the pass, and waits in the scheduler of the brokers."""

from __future__ import annotations

from _thread import get_ident

from embedlog.client.drivers.caller_driver import CallerDriver
from embedlog.client.drivers.driver import PARK_MS
from embedlog.runtime.locks import Rank, ranked_rlock
from embedlog.runtime.outer_call import ANYWHERE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from embedlog.client.drivers.driver import Action, Step
    from embedlog.runtime.pending import Pending
    from embedlog.transport import Transport


class InProcessDriver(CallerDriver):
    """Drives a producer in process. No thread starves: a waiting thread holds no lock."""

    def __init__(self, transport: Transport, step: Step, recover: Action | None = None) -> None:
        super().__init__(transport, step, recover)
        self._own_turn = ranked_rlock(Rank.DRIVER)  # why an RLock: see `runtime.pending`

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
        # The pass itself brings most answers, so first try without a listener.
        self.run()
        if is_done():
            return True
        return super().wait(is_done, timeout_ms, is_news=is_news, patience_ms=patience_ms)

    def run_if_free(self) -> None:
        if not self._runner:
            self.run()

    def run(self) -> None:
        if self._runner and not self._may_run():
            return
        # With `with`, no Ctrl-C can come between taking the lock and the code that releases it.
        with self._own_turn:
            self._runner = get_ident()
            try:
                if self._is_cut_short and self._recover is not None:
                    self._recover()
                self._is_cut_short = True
                self._delay_ms = self._step()
                self._is_cut_short = False
            except Exception as error:
                # `step` has dealt with the error of a user's callback, or with a defect, but with
                # no RecursionError: the code that should have done that has met another.
                self._is_cut_short = type(error) in ANYWHERE
                raise
            finally:
                self._runner = 0

    def _in_turn(self, action: Callable[[], None]) -> None:
        with self._own_turn:
            action()

    def _park(self, news: Pending[object], left_ms: int) -> None:
        try:
            self._transport.wait(news, self._until_next_pass(left_ms))
        except BaseException as error:
            # Ctrl-C may have ended a duty of the broker here, before it completed an answer.
            if type(error) in ANYWHERE or not isinstance(error, Exception):
                self._is_cut_short = True
            raise
