"""How a client that one thread uses waits for whichever of its answers comes first."""

from __future__ import annotations

from embedlog.pending import Pending

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from embedlog.client.metadata import Metadata
    from embedlog.transport import Transport


class Waiter:
    """One signal for all answers. `arrived` may be called by any thread, the rest by the owner.

    A pass of the owner's state machines goes between `advance` and `wait`: what arrives after the
    pass began ends the wait at once, so no answer is slept over.
    """

    __slots__ = ("_clock", "_metadata", "_signal", "_transport", "_watched")

    def __init__(self, transport: Transport, metadata: Metadata) -> None:
        self._transport = transport
        self._metadata = metadata
        self._clock = transport.runtime.clock
        self._signal: Pending[None] = Pending()
        self._watched: Pending[Any] | None = None

    def arrived(self, _pending: Pending[Any] | None = None) -> None:
        """There is something for the next pass."""
        self._signal.complete(None)

    def advance(self, now_ms: int, *steps: Callable[[int], int | None]) -> int | None:
        """A pass: metadata, then `steps`. Milliseconds until time makes the next one useful."""
        if self._signal.done():
            self._signal = Pending()
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
