"""`SlowDisk`: delays the writes of one broker. A test calls `cluster.broker(1).disk.slow(ms)`.

After a delay the broker handles a request that writes, or a follower appends fetched records: one
after the other, in order of arrival. Heartbeats do not wait, so the controller does not fence the
broker.
"""

from __future__ import annotations

from embedlog.common import deque
from embedlog.runtime.pending import Pending
from wire.api_keys import ApiKey

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from embedlog.runtime import Runtime
    from wire.schema import R

WRITING = frozenset(
    {
        ApiKey.PRODUCE,
        ApiKey.DELETE_RECORDS,
        ApiKey.INIT_PRODUCER_ID,
        ApiKey.ADD_PARTITIONS_TO_TXN,
        ApiKey.ADD_OFFSETS_TO_TXN,
        ApiKey.END_TXN,
        ApiKey.WRITE_TXN_MARKERS,
        ApiKey.TXN_OFFSET_COMMIT,
        ApiKey.OFFSET_COMMIT,
        ApiKey.OFFSET_DELETE,
        ApiKey.DELETE_GROUPS,
        ApiKey.SYNC_GROUP,
        ApiKey.CONSUMER_GROUP_HEARTBEAT,
    }
)
"""APIs that append to a log of the receiving broker."""


class SlowDisk:
    """The slow disk of one broker, over restarts. Every method may be called from any thread."""

    __slots__ = ("_clock", "_kept", "_scheduler", "delay_ms")

    def __init__(self, runtime: Runtime) -> None:
        self._scheduler = runtime.scheduler
        self._clock = runtime.clock
        self._kept: deque[tuple[int, Callable[[], object]]] = deque()
        """Waiting actions, as (due time in monotonic ms, action)."""
        self.delay_ms = 0
        """Duration of a write; 0 while the disk is not slow."""

    @property
    def is_slow(self) -> bool:
        """True if a write has to wait, perhaps only behind earlier writes."""
        return self.delay_ms > 0 or bool(self._kept)

    def write(self, action: Callable[[], object]) -> None:
        """Run `action` after the delay, and after all earlier actions."""
        if not self._kept:
            self._scheduler.add(self)
        self._kept.append((self._clock.monotonic_ms() + self.delay_ms, action))
        self._scheduler.notify(self)

    def written(self, fetched: Pending[R]) -> Pending[R]:
        """Return a pending of the response of `fetched`; records in it wait as a write does."""
        outer: Pending[R] = Pending()

        def done(answer: Pending[R]) -> None:
            error = answer.error()
            if error is not None:
                outer.fail(error)
            elif _has_records(answer.result()):
                self.write(lambda: outer.complete(answer.result()))
            else:
                outer.complete(answer.result())

        fetched.add_callback(done)
        return outer

    def forget(self) -> None:
        """Drop the waiting actions: the broker is gone."""
        self._kept.clear()

    def run_once(self, now_ms: int) -> int | None:
        while self._kept and self._kept[0][0] <= now_ms:
            _, action = self._kept.popleft()
            action()
        return max(0, self._kept[0][0] - now_ms) if self._kept else None


def _has_records(response: Any) -> bool:
    return any(each.records for topic in response.responses for each in topic.partitions)
