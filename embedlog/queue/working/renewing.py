"""`Renewing`: renews the locks of the jobs that workers run, in a thread of its own."""

from __future__ import annotations

from embedlog.errors import EmbedlogError
from embedlog.logger import Logger
from embedlog.runtime.locks import Rank, ranked_lock
from embedlog.runtime.outer_call import as_caller
from embedlog.runtime.pending import Pending

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.queue.job import Job
    from embedlog.runtime import Runtime
    from embedlog.runtime.threads import Thread

_LOOK_MS = 500
_JOIN_MS = 10_000

_log = Logger("queue")


class Renewing:
    """Renews each job once half of its lock time is over. Any thread may use it."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._lock = ranked_lock(Rank.QUEUE)
        self._jobs: dict[Job, int] = {}
        """Running jobs, and the monotonic time of their next renewal."""
        self._thread: Thread | None = None
        self._stopped: Pending[object] = Pending()

    def start(self) -> None:
        self._stopped = Pending()
        start = self._runtime.scheduler.start_thread
        self._thread = start(lambda: as_caller(self._run), "embedlog-renewing")

    def close(self) -> None:
        """Renew no more locks."""
        self._stopped.complete(None)
        if self._thread is not None:
            self._thread.join(_JOIN_MS)
            self._thread = None

    def add(self, job: Job) -> None:
        """Renew the lock of a job until `remove`."""
        with self._lock:
            self._jobs[job] = self._next_ms(job)

    def remove(self, job: Job) -> None:
        with self._lock:
            self._jobs.pop(job, None)

    def _next_ms(self, job: Job) -> int:
        now_ms = self._runtime.clock.monotonic_ms()
        return now_ms + max(0, job.locked_until_ms - now_ms) // 2

    def _run(self) -> None:
        while not self._stopped.done():
            for job in self._due():
                try:
                    job.renew(wait=True)
                except EmbedlogError as error:
                    if not job.is_settled:
                        _log.warning("the lock of %r could not be renewed: %s", job, error)
                    self.remove(job)
                else:
                    with self._lock:
                        if job in self._jobs:
                            self._jobs[job] = self._next_ms(job)
            self._runtime.scheduler.wait(self._stopped, _LOOK_MS)

    def _due(self) -> list[Job]:
        now_ms = self._runtime.clock.monotonic_ms()
        with self._lock:
            return [job for job, next_ms in self._jobs.items() if next_ms <= now_ms]
