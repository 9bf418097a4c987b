"""How a client that one thread uses waits for whichever of its answers comes first."""

from __future__ import annotations

from embedlog.runtime.pending import DONE, Pending

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from embedlog.client.metadata import Metadata
    from embedlog.transport import Transport


class Signal(Pending[None]):
    """A Pending that one thread waits for, one wait after the other, and that takes no lock.

    So `complete` may also be called by a signal handler, which runs in the middle of whatever its
    thread does: any lock might be that thread's own. The price is that a callback, which is the
    newest only, may be called twice.
    """

    __slots__ = ()

    def add_callback(self, callback: Callable[[Pending[None]], None]) -> None:
        # First known, then asked for; `complete` goes the other way round: one of them calls it.
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
    """One signal for all answers. `arrived` may be called by any thread, and by a signal handler;
    the rest by the owner.

    A pass of the owner's state machines goes between `advance` and `wait`: what arrives after the
    pass began ends the wait at once, so no answer is slept over. What is not for a pass to see,
    but for the owner, is looked at after `advance` therefore.
    """

    __slots__ = ("_clock", "_metadata", "_signal", "_transport", "_watched")

    def __init__(self, transport: Transport, metadata: Metadata) -> None:
        self._transport = transport
        self._metadata = metadata
        self._clock = transport.runtime.clock
        self._signal = Signal()
        self._watched: Pending[Any] | None = None

    def arrived(self, _pending: Pending[Any] | None = None) -> None:
        """There is something for the next pass."""
        self._signal.complete(None)

    def advance(self, now_ms: int, *steps: Callable[[int], int | None]) -> int | None:
        """A pass: metadata, then `steps`. Milliseconds until time makes the next one useful."""
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
        """Wait for an arrival, or for time to make something possible; never past `deadline`."""
        left = deadline - now_ms
        if left <= 0:
            self._transport.poll()
        else:
            self._transport.wait(self._signal, left if delay is None else min(left, delay))

    def until(
        self, is_done: Callable[[], bool], timeout_ms: int, *steps: Callable[[int], int | None]
    ) -> bool:
        """Pass after pass until `is_done()`; False when it was not in time."""
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
