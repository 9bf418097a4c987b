"""`PassThread`: the thread that makes the passes of a client."""

from __future__ import annotations

from embedlog.runtime.locks import Rank, process_wide, ranked_lock
from embedlog.runtime.pending import Pending

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from embedlog.runtime.threads import Thread
    from embedlog.transport import Transport


class PassThread:
    """The thread starts with the first pass, and ends after `stop`. Thread-safe."""

    def __init__(self, transport: Transport, name: str) -> None:
        self._transport = transport
        self._scheduler = transport.runtime.scheduler
        self._name = name
        self._thread: Thread | None = None
        self._looping = ranked_lock(Rank.LOOP)
        """Held by the thread that runs the loop."""
        self._ended: Pending[object] = Pending()
        """Done when no thread loops any more."""
        self._is_unnoted = False
        """True if the thread started, but a KeyboardInterrupt kept it out of `_thread`."""
        self._is_stopped = False

    def start(self, make_pass: Callable[[], int | None]) -> None:
        """Start the thread, unless it runs.

        In a loop, it calls `make_pass` and waits for the returned milliseconds or for an arrival.
        """
        # `make_pass` is not stored: it refers to the driver, and the driver refers to this object.
        if self._thread is None:
            with _starting:
                if self._thread is None and not self._is_stopped:
                    self._thread = self._begin(make_pass)

    def stop(self) -> None:
        """Let the thread end after its current pass. The caller must wake the transport."""
        self._is_stopped = True

    def join(self, timeout_ms: int) -> None:
        """Wait until the thread has ended. Requires: another thread called `stop` before."""
        if self._is_unnoted or (self._thread is None and self._looping.locked()):
            self._scheduler.wait(self._ended, timeout_ms)
        joined: Thread | None = None
        while self._thread is not joined and self._thread is not None:
            # Repeat: a thread whose callback raised has started another thread in its place.
            joined = self._thread
            joined.join(timeout_ms)

    def _begin(self, make_pass: Callable[[], int | None]) -> Thread:
        return self._scheduler.start_thread(lambda: self._loop(make_pass), self._name)

    def _loop(self, make_pass: Callable[[], int | None]) -> None:
        if not self._looping.acquire(blocking=False):
            self._is_unnoted = True
            return
        quiet: Pending[object] = Pending()
        try:
            while not self._is_stopped:
                delay_ms = make_pass()
                self._transport.wait(quiet, delay_ms)
        except BaseException:
            # A user's callback raised: end this thread with the error, and go on in a new thread.
            self._looping.release()
            self._thread = self._begin(make_pass)
            raise
        self._looping.release()
        self._ended.complete(None)


_starting = process_wide(ranked_lock(Rank.NEWS))
