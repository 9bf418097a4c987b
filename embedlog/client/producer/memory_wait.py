"""Waiting for room in buffer.memory: one queue for all threads of a producer, and an end to it."""

from __future__ import annotations

from embedlog.client.errors import BufferExhausted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from embedlog.client.driver import Driver
    from embedlog.client.producer.record_accumulator import RecordAccumulator
    from embedlog.client.settings import Settings
    from embedlog.runtime import Clock


_AMPLE_COUNT = 16
"""Batches for which there is room when it is worth to wake a thread: with one at a time the
sender's thread and the waiting one would take turns for each."""
_PATIENCE_MS = 5
"""After so long it takes what there is."""


class MemoryWait:
    """Where a thread of one producer waits that found no room."""

    __slots__ = (
        "_accumulator",
        "_ample",
        "_clock",
        "_driver",
        "_max_block_ms",
        "exhausted_count",
        "waited_ns",
    )

    def __init__(
        self, accumulator: RecordAccumulator, driver: Driver, settings: Settings, clock: Clock
    ) -> None:
        self._accumulator = accumulator
        self._driver = driver
        self._ample: int = min(_AMPLE_COUNT * settings["batch.size"], accumulator.pool.total // 2)
        self._max_block_ms: int = settings["max.block.ms"]
        self._clock = clock
        self.waited_ns = 0
        """All threads together."""
        self.exhausted_count = 0
        """Waits that ended without room."""

    def until(self, has_room: Callable[[], bool], began_ms: int | None = None) -> None:
        """Wait, in line, until `has_room()`; everything that waits to be sent is sent meanwhile.

        `began_ms` is when the call began, if it has waited for something else already.

        Raises:
            BufferExhausted: max.block.ms is over.
        """
        clock = self._clock
        waited_ms = 0 if began_ms is None else clock.monotonic_ms() - began_ms
        began_us = clock.monotonic_us()
        self._accumulator.wait_for_memory()
        try:
            if self._driver.wait(
                has_room,
                max(self._max_block_ms - waited_ms, 0),
                is_news=self._has_ample_room,
                patience_ms=_PATIENCE_MS,
            ):
                return
        finally:
            self._accumulator.stop_waiting()
            self._driver.arrived()  # whoever is next in the line looks what is left
            self.waited_ns += (clock.monotonic_us() - began_us) * 1000
        self.exhausted_count += 1
        pool = self._accumulator.pool
        raise BufferExhausted(
            f"buffer.memory={pool.total} has {pool.available} bytes free after max.block.ms="
            f"{self._max_block_ms}: records come faster than the brokers take them"
        )

    def _has_ample_room(self) -> bool:
        return self._accumulator.pool.available >= self._ample
