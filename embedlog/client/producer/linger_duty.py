"""Sending batches whose time has come, without a thread of one's own."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.client.driver import Driver
    from embedlog.client.producer.record_accumulator import RecordAccumulator
    from embedlog.runtime import Scheduler


class LingerDuty:
    """Sends open batches that have waited long enough, for whoever drives the scheduler."""

    __slots__ = ("_accumulator", "_driver", "_scheduler", "is_armed")

    def __init__(
        self, driver: Driver, accumulator: RecordAccumulator, scheduler: Scheduler
    ) -> None:
        self._driver = driver
        self._accumulator = accumulator
        self._scheduler = scheduler
        self.is_armed = False
        """Does the scheduler know that a batch waits?"""
        scheduler.add(self)

    def arm(self) -> None:
        """An open batch waits: whoever drives the scheduler shall send it when it is time."""
        self.is_armed = True
        self._scheduler.notify(self)

    def run_once(self, now_ms: int) -> int | None:
        """A pass; milliseconds until the next is useful."""
        self.is_armed = True
        delay = self._driver.run_if_free()
        # After the pass: a record appended meanwhile sees True and counts on the delay, or False.
        self.is_armed = bool(self._accumulator.active)
        return delay

    def close(self) -> None:
        """Leave the scheduler."""
        self._scheduler.remove(self)
