"""`Driver`: the base class of the three drivers of a producer."""

from __future__ import annotations

from _thread import get_ident
from _weakref import ref

from embedlog.client.drivers.news import News
from embedlog.errors import EmbedlogError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from embedlog.transport import Transport

    Step = Callable[[], int | None]
    Action = Callable[[], None]

PARK_MS = 1 << 30
"""The longest time that a waiting thread sleeps before it looks again."""


class Driver:
    """Makes passes, one at a time: each is a call of `step`. Any thread may call the methods.

    `step` returns the milliseconds until time makes the next pass useful, or None.
    """

    def __init__(self, transport: Transport, step: Step) -> None:
        self._transport = transport
        self._step = step
        self._clock = transport.runtime.clock
        self._scheduler = transport.runtime.scheduler
        self._runner = 0
        """The thread that is in a pass; 0 for none."""
        self._news = News()
        self.arrived = self._news.arrived
        """Wakes waiting threads. Call it when they, or the next pass, have something to do."""
        key = id(self)
        _drivers[key] = ref(self, lambda _: _drivers.pop(key, None))

    def begin(self) -> None:
        """Start the thread that makes the passes, if there is one. Raises NoThread."""

    def run(self) -> None:
        """Make a pass now, or wake the thread that makes the passes.

        Called from a user's callback, it does nothing: the pass that runs the callback goes on.
        Called from a callback of another client while a third thread is in a pass here, it does
        nothing either: two threads whose callbacks use each other's client would deadlock. That
        third thread does the work, or `UnattendedPasses` does.
        """
        raise AssertionError(self)

    def wait(
        self,
        is_done: Callable[[], bool],
        timeout_ms: int | None,
        *,
        is_news: Callable[[], bool] | None = None,
        patience_ms: int = PARK_MS,
    ) -> bool:
        """Wait until `is_done()`, at most `timeout_ms` (None: for ever); return `is_done()`.

        `is_done` is called after each pass. If it leaves work for another pass, it calls `run`.
        A thread that makes the passes calls `is_news()` after each of them, and wakes the caller
        only if that is true: waking it costs more than a pass. The caller also looks by itself
        every `patience_ms`.

        Raises:
            EmbedlogError: called from a delivery callback, which would wait for itself.
        """
        raise AssertionError(self)

    def run_if_free(self) -> None:
        """Make a pass, unless another thread makes one now, or polls and will make the next."""
        raise AssertionError(self)

    def exclusively(self, action: Callable[[], None]) -> None:
        """Run `action` while no pass runs; called inside a pass of this thread, run it at once."""
        if self._runner == get_ident():
            action()
        else:
            self._in_turn(action)

    @property
    def is_running_here(self) -> bool:
        """True inside a pass of this thread, that is in a user's callback."""
        return self._runner == get_ident()

    def close(self, timeout_ms: int) -> None:
        """Stop the thread that makes the passes, if there is one, and wait for its end.

        Called from that thread, `close` does not wait: the thread ends after its pass.
        """
        self._transport.wake()

    def abandon(self) -> None:
        """End the thread that makes the passes, if there is one. Takes no lock and never waits."""

    def _in_turn(self, action: Callable[[], None]) -> None:
        raise AssertionError(self)

    def _may_run(self) -> bool:
        """Return whether `run` may make a pass in this thread, while any thread is in a pass."""
        me = get_ident()
        return self._runner != me and not any(
            driver is not None and driver._runner == me
            for driver in [reference() for reference in list(_drivers.values())]
        )

    def _is_done_inside(self, is_done: Callable[[], bool]) -> bool:
        """For a `wait` inside a pass of this thread: return True if `is_done()`, else raise."""
        if is_done():
            return True
        raise EmbedlogError("waiting inside a delivery callback would wait for itself")

    def _deadline_ms(self, timeout_ms: int | None) -> int:
        return (PARK_MS if timeout_ms is None else timeout_ms) + self._clock.monotonic_ms()


_drivers: dict[int, ref[Driver]] = {}
