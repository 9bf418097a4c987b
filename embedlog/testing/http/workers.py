"""`Workers`: the threads that answer requests. They start on demand and end with the server."""

from __future__ import annotations

from collections import deque
from typing import Protocol

from embedlog.runtime import real_runtime
from embedlog.runtime.locks import Rank, ranked_lock
from embedlog.runtime.outer_call import as_caller
from embedlog.runtime.threads import Parked, Thread

_IDLE_MS = 5_000
"""A thread without work ends after this time."""
_JOIN_MS = 10_000


class Task(Protocol):
    """Work of waitress: one request, or several that a client sent at once."""

    def service(self) -> None:
        """Answer."""

    def cancel(self) -> None:
        """Close the connection."""


class Workers:
    """A dispatcher of waitress. Every method may be called from any thread.

    waitress's own dispatcher starts all its threads at once, and a fixed number of them: requests
    that wait for an event would keep the others from being answered.
    """

    def __init__(self, threads_max: int, name: str) -> None:
        self._lock = ranked_lock(Rank.HTTP_WORKERS)
        self._scheduler = real_runtime().scheduler
        self._threads_max = threads_max
        self._name = name
        self._tasks: deque[Task] = deque()
        self._idle: list[Parked] = []
        self._threads: set[Thread] = set()
        self._count = 0
        self._is_closed = False

    def add_task(self, task: Task) -> None:
        """Let a thread work on the task."""
        with self._lock:
            is_refused = self._is_closed
            idle = self._idle.pop() if self._idle else None
            if not is_refused:
                self._tasks.append(task)
                if idle is None and self._count < self._threads_max:
                    # The thread starts under the lock, so that `shutdown` waits for it as well.
                    thread = self._scheduler.start_thread(self._work, f"{self._name}-worker")
                    self._count += 1
                    self._threads = {each for each in self._threads if not each.join(0)}
                    self._threads.add(thread)
        if is_refused:
            task.cancel()
        if idle is not None:
            idle.wake()

    def _work(self) -> None:
        parked = Parked()
        try:
            while not self._is_closed:
                task = self._next(parked)
                if task is not None:
                    as_caller(task.service)
                    continue
                if not self._is_closed:
                    parked.sleep(_IDLE_MS)
                with self._lock:
                    if parked in self._idle:
                        self._idle.remove(parked)
                        return
        finally:
            with self._lock:
                self._count -= 1

    def _next(self, parked: Parked) -> Task | None:
        with self._lock:
            if self._tasks:
                return self._tasks.popleft()
            if not self._is_closed:
                self._idle.append(parked)
            return None

    def shutdown(self) -> bool:
        """Cancel the waiting tasks and wait for the threads to end. Return whether all ended."""
        with self._lock:
            self._is_closed = True
            idle, self._idle = self._idle, []
            tasks, self._tasks = self._tasks, deque()
            threads = list(self._threads)
        for parked in idle:
            parked.wake()
        for task in tasks:
            task.cancel()
        ended = [thread.join(_JOIN_MS) for thread in threads]
        return all(ended)
