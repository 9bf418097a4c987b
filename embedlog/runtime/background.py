"""`BackgroundThread`: a thread that runs the duties of a scheduler."""

from __future__ import annotations

from embedlog.runtime import Runtime
from embedlog.runtime.threads import Parked

_LONGEST_SLEEP_MS = 1 << 30
_JOIN_TIMEOUT_MS = 10_000


class BackgroundThread:
    """Runs duties when they are due, from its construction until `close`.

    The thread keeps the runtime alive, but no object that uses the runtime.
    """

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._is_closed = False
        self._parked = Parked()
        self._resign = runtime.scheduler.on_notify(self._parked.wake)
        try:
            self._thread = runtime.scheduler.start_thread(self._run, "embedlog-background")
        except BaseException:
            self._resign()
            raise

    def close(self) -> None:
        """End the thread after its current duty. A second call does nothing."""
        self._is_closed = True
        self._resign()
        self._parked.wake()
        self._thread.join(_JOIN_TIMEOUT_MS)

    def _run(self) -> None:
        scheduler, clock = self._runtime.scheduler, self._runtime.clock
        while not self._is_closed:
            delay = scheduler.run_due(clock.monotonic_ms())
            self._parked.sleep(_LONGEST_SLEEP_MS if delay is None else delay)
