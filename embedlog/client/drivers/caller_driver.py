"""`CallerDriver`: the common part of the two drivers without a thread of their own."""

from __future__ import annotations

from _thread import get_ident

from embedlog.client.drivers.driver import PARK_MS, Driver

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from embedlog.client.drivers.driver import Action, Step
    from embedlog.runtime.pending import Pending
    from embedlog.transport import Transport


class CallerDriver(Driver):
    """A driver whose callers make the passes, so that Ctrl-C may interrupt a pass anywhere.

    `recover` is called before the next pass if Ctrl-C, or an exception of `ANYWHERE`, has ended a
    pass between any two of its steps, or a wait in which the caller's thread handled answers or the
    broker's duties.
    """

    def __init__(self, transport: Transport, step: Step, recover: Action | None = None) -> None:
        super().__init__(transport, step)
        self._recover = recover
        self._is_cut_short = False
        """True if Ctrl-C ended a pass or a wait after the last call of `recover`."""
        self._delay_ms: int | None = None
        """The result of the last pass: ms until time makes another pass useful, or None."""

    def run(self) -> None:
        if not self._runner or self._may_run():
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
            # This thread may have polled the sockets: wake another waiting thread to take over.
            self._news.arrived()

    def _pass(self) -> None:
        raise AssertionError(self)

    def _park(self, news: Pending[object], left_ms: int) -> None:
        """Wait for `news`, at most `left_ms`, or until time makes another pass useful."""
        raise AssertionError(self)

    def _until_next_pass(self, left_ms: int) -> int:
        delay_ms = self._delay_ms
        return left_ms if delay_ms is None else min(left_ms, max(delay_ms, 1))
