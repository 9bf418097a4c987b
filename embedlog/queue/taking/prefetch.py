"""`Prefetch`: how many jobs to fetch at once.

A fetched job is locked, so no other process can work on it. A process therefore fetches as many
jobs as its workers take within a tenth of a second: one of slow jobs, hundreds of fast ones.
"""

from __future__ import annotations

HORIZON_NS = 100_000_000


class Prefetch:
    """Counts the jobs that were taken since the last fetch. Used under the lock of its taker."""

    def __init__(self, count_max: int) -> None:
        self._count_max = count_max
        self._count = 1
        self._taken = 0
        self._since_ns = 0

    @property
    def is_fast(self) -> bool:
        """True if the last fetch was for several jobs."""
        return self._count > 1

    def took(self) -> None:
        """Note that a worker took a job."""
        self._taken += 1

    def count(self, now_ns: int) -> int:
        """Return how many jobs the next fetch asks for."""
        fits = self._taken * HORIZON_NS // max(now_ns - self._since_ns, 1)
        return max(1, min(fits, 2 * self._count, self._count_max))

    def arrived(self, asked: int, now_ns: int) -> None:
        """Note that the answer to a fetch for `asked` jobs has come."""
        self._count = asked
        self._taken = 0
        self._since_ns = now_ns
