"""buffer.memory: how many bytes may wait in a producer before `send` waits too.

Batches are Python objects, so there are no buffers to hand out again: what Kafka's BufferPool does
with memory, this does with a count. A batch reserves batch.size (more for one large record) when
it begins, and gives it back when its outcome is known.
"""

from __future__ import annotations

from _thread import allocate_lock


class BufferPool:
    """The reserve of one producer. Thread-safe; never waits."""

    __slots__ = ("_available", "_lock", "total")

    def __init__(self, total: int) -> None:
        self.total = total
        self._available = total
        self._lock = allocate_lock()

    @property
    def available(self) -> int:
        """Bytes that are not reserved."""
        return self._available

    def reserve(self, size: int) -> bool:
        """Take `size` bytes; False, and nothing is taken, when there are not so many.

        An empty pool grants any size: one batch larger than all of it must not wait for ever.
        """
        with self._lock:
            if size > self._available and self._available < self.total:
                return False
            self._available -= size
            return True

    def release(self, size: int) -> None:
        """Give `size` reserved bytes back."""
        with self._lock:
            self._available += size
            assert self._available <= self.total, (self._available, self.total)
