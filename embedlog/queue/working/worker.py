"""`Worker`: calls a function with the jobs of a queue, in threads or in an event loop.

@queue.worker(concurrency=4, retries=5, backoff=exponential(1, 60))
def resize(job):
    ...

resize.run()        # until SIGTERM or Ctrl-C; running jobs end first
"""

from __future__ import annotations

from embedlog.client import arguments
from embedlog.errors import ClosedError, EmbedlogError, IllegalState
from embedlog.logger import Logger
from embedlog.queue.working.renewing import Renewing
from embedlog.runtime.outer_call import as_caller
from embedlog.runtime.pending import Pending

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from embedlog.queue.backoff import Backoff
    from embedlog.queue.job import Job
    from embedlog.queue.working.tasks import InThread
    from embedlog.runtime import Runtime
    from embedlog.runtime.threads import Thread

_GET_S = 0.25
"""A worker looks this often whether it shall stop."""
_PAUSE_MS = 1000
_LOOK_MS = 200

_log = Logger("queue")


class Worker:
    """A function, and the threads that call it with jobs.

    Calling the worker calls the function itself, as in a test. A job is acknowledged when the
    function returns; its result goes to the maker of the job if that waits for one. When the
    function raises, the job is tried again after the backoff, and rejected after the last retry.
    The lock is renewed while the function runs.
    """

    def __init__(
        self,
        name: str,
        function: Callable[[Job], Any],
        take: Callable[[float], Job | None],
        runtime: Runtime,
        *,
        concurrency: int,
        retries: int,
        backoff: Backoff | None,
    ) -> None:
        """`name` is the queue's, and `take(seconds)` its `get`."""
        self._name = name
        self._take = take
        self._runtime = runtime
        self.function = function
        self._concurrency = arguments.number(
            concurrency, "worker", "concurrency", "a number of jobs at once", lowest=1
        )
        self._retries = arguments.number(
            retries, "worker", "retries", "a number of retries", lowest=0
        )
        self._backoff = backoff
        self._renewing = Renewing(runtime)
        self._threads: list[Thread] = []
        self._is_stopping = False
        self._stopped: Pending[object] = Pending()
        self.done_count = 0
        """Jobs that were acknowledged."""
        self.failed_count = 0
        """Calls of the function that raised."""

    def __call__(self, *given: Any, **named: Any) -> Any:
        return self.function(*given, **named)

    @property
    def is_running(self) -> bool:
        """True from `start` until `stop` has ended."""
        return bool(self._threads)

    def start(self) -> Worker:
        """Begin to work, in threads; return this worker.

        Raises:
            IllegalState: it runs already.
        """
        if self._threads:
            raise IllegalState("start: the worker runs already")
        self._is_stopping = False
        self._stopped = Pending()
        self._renewing.start()
        loop = self._loop_of_tasks if _is_coroutine_function(self.function) else self._loop
        count = 1 if loop == self._loop_of_tasks else self._concurrency
        start = self._runtime.scheduler.start_thread
        for number in range(count):
            name = f"embedlog-worker-{self._name}-{number}"
            self._threads.append(start(lambda: as_caller(loop), name))
        return self

    def stop(self, timeout: float | None = None) -> bool:
        """Take no more jobs, and wait for the running ones.

        Returns False if they run still after `timeout` seconds. Their locks are not renewed any
        more then.
        """
        limit_s = arguments.timeout_s(timeout, "stop")
        self._ask_to_stop()
        clock = self._runtime.clock
        until_ms = None if limit_s is None else clock.monotonic_ms() + int(limit_s * 1000)
        ended = True
        for thread in self._threads:
            left = None if until_ms is None else max(0, until_ms - clock.monotonic_ms())
            ended = thread.join(left) and ended
        self._renewing.close()
        self._threads = []
        return ended

    def _ask_to_stop(self) -> None:
        self._is_stopping = True
        self._stopped.complete(None)

    def run(self) -> None:
        """Work until SIGTERM, SIGINT, or `stop` in another thread; end the running jobs first.

        Outside the main thread no signal is handled.
        """
        from embedlog.queue.working.signals import ending

        self.start()
        with ending(self._ask_to_stop):
            while not self._is_stopping:
                self._runtime.scheduler.wait(self._stopped, _LOOK_MS)
        self.stop()

    def __enter__(self) -> Worker:
        return self.start()

    def __exit__(self, *_exception: object) -> None:
        self.stop()

    # In the threads

    def _loop(self) -> None:
        while not self._is_stopping:
            job = self._next(_GET_S)
            if job is not None:
                self._work(job)

    def _next(self, timeout_s: float) -> Job | None:
        try:
            return self._take(timeout_s)
        except ClosedError:
            self._is_stopping = True
        except EmbedlogError as error:
            _log.warning("a worker of queue %r goes on: %s", self._name, error)
            self._runtime.scheduler.wait(self._stopped, _PAUSE_MS)
        return None

    def _work(self, job: Job) -> None:
        self._renewing.add(job)
        try:
            result = self.function(job)
        except Exception as error:
            self._failed(job, error)
        else:
            self._succeeded(job, result)
        finally:
            self._renewing.remove(job)

    def _succeeded(self, job: Job, result: Any) -> None:
        try:
            if not job.is_settled:
                job.ack(result=result)
            self.done_count += 1
        except (EmbedlogError, TypeError) as error:
            _log.warning("%r could not be acknowledged: %s", job, error)

    def _failed(self, job: Job, error: Exception) -> None:
        self.failed_count += 1
        _log.warning("%r failed: %s: %s", job, type(error).__name__, error)
        try:
            if job.is_settled:
                return
            failures = job.failures + 1
            delay = 0.0 if self._backoff is None else self._backoff(failures)
            job.fail(error, delay, retries=self._retries)
        except Exception as second:
            _log.warning("%r could not be released: %s", job, second)

    def _loop_of_tasks(self) -> None:
        from embedlog.queue.working.tasks import run_jobs

        run_jobs(
            lambda: self._next(_GET_S),
            self._work_in_loop,
            self._concurrency,
            is_over=lambda: self._is_stopping,
        )

    async def _work_in_loop(self, job: Job, in_thread: InThread) -> None:
        """Call the coroutine function; calls that may wait are made in a thread."""
        self._renewing.add(job)
        try:
            result = await self.function(job)
        except Exception as error:
            await in_thread(self._failed, job, error)
        else:
            await in_thread(self._succeeded, job, result)
        finally:
            self._renewing.remove(job)


def _is_coroutine_function(function: Callable[..., Any]) -> bool:
    from inspect import iscoroutinefunction

    call = getattr(function, "__call__", None)  # noqa: B004  an object with an async __call__
    return iscoroutinefunction(function) or iscoroutinefunction(call)
