"""`SlowDisk`: what one broker writes while its disk is slow takes some time. A duty.

Requests that write wait before they are handled, and what a follower has fetched before it is
appended: one after the other, in the order in which they came. Heartbeats do not wait, so that the
broker is slow, and not gone.
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
"""The APIs that append to a log of the broker that is asked."""


class SlowDisk:
    """Of one broker, over its restarts. Every method may be called from any thread."""

    __slots__ = ("_clock", "_kept", "_scheduler", "delay_ms")

    def __init__(self, runtime: Runtime) -> None:
        self._scheduler = runtime.scheduler
        self._clock = runtime.clock
        self._kept: deque[tuple[int, Callable[[], object]]] = deque()
        """What waits, and until when."""
        self.delay_ms = 0
        """What a write takes; 0 while the disk is not slow."""

    @property
    def is_slow(self) -> bool:
        """Does a write have to wait? Also behind those that came while it was slow."""
        return self.delay_ms > 0 or bool(self._kept)

    def write(self, action: Callable[[], object]) -> None:
        """Do something once the disk has done it, and what came before."""
        if not self._kept:
            self._scheduler.add(self)
        self._kept.append((self._clock.monotonic_ms() + self.delay_ms, action))
        self._scheduler.notify(self)

    def written(self, fetched: Pending[R]) -> Pending[R]:
        """What was fetched, once it could have been written; at once where there is nothing."""
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
        """The broker is gone, and with it what it had to write."""
        self._kept.clear()

    def run_once(self, now_ms: int) -> int | None:
        """Do what has waited long enough; return milliseconds until the next."""
        while self._kept and self._kept[0][0] <= now_ms:
            _, action = self._kept.popleft()
            action()
        if self._kept:
            return max(0, self._kept[0][0] - now_ms)
        return None


def _has_records(response: Any) -> bool:
    return any(each.records for topic in response.responses for each in topic.partitions)
