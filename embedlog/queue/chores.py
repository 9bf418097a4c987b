"""`Chores`: what a queue does now and then inside `get`, without a thread.

It removes the records of done jobs, and notices delayed jobs that another process has put.
"""

from __future__ import annotations

from embedlog.common import TopicPartition
from embedlog.errors import KafkaError
from embedlog.logger import Logger
from embedlog.queue.stats import edges, undone

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from embedlog.client.admin.admin import Admin
    from embedlog.queue.names import QueueNames
    from embedlog.runtime import Runtime

LOOK_MS = 5_000
"""Time between two looks at the delayed topic, until a mover runs."""
SWEEP_MS = 60_000
"""Time between two removals of done jobs."""

_log = Logger("queue")


class Chores:
    """The chores of one queue. One thread at a time does them; the others go on."""

    def __init__(
        self, admin: Admin, names: QueueNames, runtime: Runtime, start_mover: Callable[[], None]
    ) -> None:
        self._admin = admin
        self._names = names
        self._clock = runtime.clock
        self._start_mover = start_mover
        self.has_mover = False
        self._look_ms = 0
        self._sweep_ms = self._clock.monotonic_ms() + SWEEP_MS
        self.next_ms = 0
        """The monotonic time at which the next chore is due."""

    def do(self) -> None:
        """Do the chores that are due. A failure is logged, because the next time may succeed."""
        now_ms = self._clock.monotonic_ms()
        looks, sweeps = not self.has_mover and now_ms >= self._look_ms, now_ms >= self._sweep_ms
        if looks:
            self._look_ms = now_ms + LOOK_MS
        if sweeps:
            self._sweep_ms = now_ms + SWEEP_MS
        self.next_ms = self._sweep_ms if self.has_mover else min(self._look_ms, self._sweep_ms)
        try:
            if looks and self._has_delayed():
                self._start_mover()
            if sweeps:
                self.sweep()
        except KafkaError as error:
            _log.warning("a chore of queue %r waits: %s", self._names.name, error)

    def _has_delayed(self) -> bool:
        first, end = edges(self._admin, [TopicPartition(self._names.delayed, 0)])
        return first != end

    def sweep(self) -> None:
        """Remove the records of done jobs: those before the first job that is not done."""
        _, starts = undone(self._admin, self._names)
        self._admin.delete_records({key: start for key, start in starts.items() if start > 0})
