"""`Takers`: the takers of a queue, one for each priority."""

from __future__ import annotations

from embedlog.errors import ClosedError
from embedlog.queue.taking.taker import Taker
from embedlog.runtime.locks import Rank, ranked_lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.client.connect import Target
    from embedlog.queue.names import QueueNames
    from embedlog.queue.taking.taken import Taken

_FOREVER_S = 10 * 366 * 86_400
_FLUSH_S = 30.0
_JOINING_MS = 1000
_SLICE_MS = 20
"""With several priorities a waiting call looks at each topic for this time, in turn."""


class Takers:
    """Takes the next job of the highest priority. Any thread may use it."""

    def __init__(self, target: Target, names: QueueNames, *, prefetch_max: int) -> None:
        self._target = target
        self._names = names
        self._prefetch_max = prefetch_max
        self._making = ranked_lock(Rank.QUEUE_PARTS)
        self._takers: list[Taker] = []
        self._is_closed = False

    def take(self, timeout_s: float | None) -> Taken | None:
        """Return the next job; None if there is none within `timeout_s` (None: for ever)."""
        takers = self._takers or self._make()
        timeout_ms = int(1000 * (_FOREVER_S if timeout_s is None else timeout_s))
        if len(takers) == 1:
            return takers[0].take(timeout_ms)
        return self._take_by_priority(takers, timeout_ms)

    def _take_by_priority(self, takers: list[Taker], timeout_ms: int) -> Taken | None:
        clock = takers[0].clock
        until_ms = clock.monotonic_ms() + timeout_ms
        slice_ms = 0
        while True:
            for taker in takers:
                found = self._look(taker, until_ms, slice_ms)
                if found is not None:
                    return found
            if clock.monotonic_ms() >= until_ms:
                return None
            slice_ms = _SLICE_MS

    def _look(self, taker: Taker, until_ms: int, slice_ms: int) -> Taken | None:
        """Look at one topic; at first, wait until the group has given it to this process."""
        now_ms = taker.clock.monotonic_ms()
        joined_ms = min(until_ms, now_ms + _JOINING_MS)
        found = taker.take(max(0, min(slice_ms, until_ms - now_ms)))
        while found is None and not taker.is_ready and taker.clock.monotonic_ms() < joined_ms:
            found = taker.take(_SLICE_MS)
        return found

    def _make(self) -> list[Taker]:
        """Join the groups, at the first job that is taken."""
        with self._making:
            if self._is_closed:
                raise ClosedError("the queue was closed")
            if not self._takers:
                group, levels = self._names.name, self._names.levels
                self._takers = [
                    Taker(self._target, group, topic, prefetch_max=self._prefetch_max)
                    for topic in levels
                ]
        return self._takers

    def of(self, topic: str) -> Taker:
        """Return the taker of a topic."""
        return self._takers[self._names.levels.index(topic)]

    @property
    def held_count(self) -> int:
        """Number of jobs that this process has locked."""
        return sum(len(each.holdings) for each in self._takers)

    @property
    def late_count(self) -> int:
        """Number of acknowledgements that came too late."""
        return sum(each.holdings.late_count for each in self._takers)

    def flush(self, timeout_s: float | None) -> bool:
        """Wait until all acknowledgements have outcomes; return False if time was over."""
        timeout_ms = int(1000 * (_FLUSH_S if timeout_s is None else timeout_s))
        return all(each.flush(timeout_ms) for each in self._takers)

    def close(self, timeout_s: float | None) -> None:
        with self._making:
            self._is_closed = True
        for each in self._takers:
            each.close(timeout_s)
