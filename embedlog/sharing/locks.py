"""Acquisition locks: a member has its records for a while, then they come back by themselves."""

from __future__ import annotations

from embedlog.purgatory.timing_wheel import TimerTask

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from embedlog.sharing.in_flight import InFlightBatch


class AcquisitionLock(TimerTask):
    """One lock for the records of a batch that a member acquired or renewed at one time.

    Parts of the records may leave it. It is cancelled when the last part has left.
    """

    __slots__ = ("_expired", "_holder_count", "batch", "is_expired")

    def __init__(
        self,
        duration_ms: int,
        batch: InFlightBatch,
        expired: Callable[[AcquisitionLock], None],
    ) -> None:
        """`expired` is called with the lock when its time is over, by the timer's thread."""
        TimerTask.__init__(self, duration_ms)
        self.batch = batch
        self.is_expired = False
        self._expired = expired
        self._holder_count = 0

    def hold(self) -> None:
        """Count one more run. Requires: the share partition's lock, as for `leave`."""
        self._holder_count += 1

    def leave(self) -> None:
        """Count one run less; without runs the timer forgets the lock."""
        self._holder_count -= 1
        if self._holder_count == 0:
            self.cancel()

    def run(self) -> None:
        self._expired(self)
