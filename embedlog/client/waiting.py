"""`Waiter`: lets a client of a single thread wait for the first of several answers."""

from __future__ import annotations

from embedlog.runtime.pending import DONE, Pending

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from embedlog.client.metadata import Metadata
    from embedlog.transport import Transport


class Signal(Pending[None]):
    """A Pending without a lock, for one thread that waits again and again.

    A signal handler may call `complete`: the handler interrupts its thread, which might hold any
    lock. The price: only the newest callback is kept, and it may be called twice.
    """

    __slots__ = ()

    def add_callback(self, callback: Callable[[Pending[None]], None]) -> None:
        # Store the callback first, then test `done`; `complete` does the opposite, so at least one
        # of them calls it.
        self._callbacks = [callback]
        if self.done():
            callback(self)

    def complete(self, _value: None) -> bool:
        was_done, self._state = self._state, DONE
        callbacks = self._callbacks
        if callbacks is not None:
            callbacks[0](self)
        return not was_done


class Waiter:
    """Waits for the answers of one client, with one signal for all of them.

    Any thread, and a signal handler, may call `arrived`; only the thread that uses the client may
    call the other methods.

    The client runs its state machines between `advance` and `wait`. An arrival after `advance` ends
    the wait at once, so that no answer is missed. For the same reason, a check for events that the
    state machines do not see must follow `advance`.
    """

    def __init__(self, transport: Transport, metadata: Metadata) -> None:
        self._transport = transport
        self._metadata = metadata
        self._clock = transport.runtime.clock
        self._signal = Signal()
        self._watched: Pending[Any] | None = None

    def arrived(self, _pending: Pending[Any] | None = None) -> None:
        """Wake the thread in `wait`, because the next pass has something to do."""
        self._signal.complete(None)

    def advance(self, now_ms: int, *steps: Callable[[int], int | None]) -> int | None:
        """Advance the metadata and call `steps`; return ms until another pass is useful."""
        if self._signal.done():
            self._signal = Signal()
        metadata = self._metadata
        delay = metadata.advance(now_ms)
        if metadata.pending is not None and metadata.pending is not self._watched:
            self._watched = metadata.pending
            self._watched.add_callback(self.arrived)
        for step in steps:
            later = step(now_ms)
            if later is not None and (delay is None or later < delay):
                delay = later
        return delay

    def wait(self, delay: int | None, deadline: int, now_ms: int) -> None:
        """Wait for an arrival, or until `delay` is over; never past `deadline`."""
        left = deadline - now_ms
        if left <= 0:
            self._transport.poll()
        else:
            self._transport.wait(self._signal, left if delay is None else min(left, delay))

    def until(
        self, is_done: Callable[[], bool], timeout_ms: int, *steps: Callable[[int], int | None]
    ) -> bool:
        """Make passes until `is_done()`; return False if that took longer than `timeout_ms`."""
        now_ms = self._clock.monotonic_ms()
        deadline = now_ms + timeout_ms
        while True:
            delay = self.advance(now_ms, *steps)
            if is_done():
                return True
            if now_ms >= deadline:
                return False
            self.wait(delay, deadline, now_ms)
            now_ms = self._clock.monotonic_ms()
