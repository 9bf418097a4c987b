"""buffer.memory: how many bytes may wait in a producer before `send` waits too.

Batches are Python objects, so there are no buffers to hand out again: what Kafka's BufferPool does
with memory, this does with a count. A batch reserves batch.size (more for one large record) when
it begins, and gives it back when its outcome is known.
"""

from __future__ import annotations


class BufferPool:
    """The reserve of one producer. Requires: the accumulator's lock. Never waits."""

    __slots__ = ("available", "total")

    def __init__(self, total: int) -> None:
        self.total = total
        self.available = total
        """Bytes that are not reserved."""

    def reserve(self, size: int) -> bool:
        """Take `size` bytes; False, and nothing is taken, when there are not so many.

        An empty pool grants any size: one batch larger than all of it must not wait for ever.
        """
        if size > self.available and self.available < self.total:
            return False
        self.available -= size
        return True

    def release(self, size: int) -> None:
        """Give `size` reserved bytes back."""
        self.available += size
        assert self.available <= self.total, (self.available, self.total)
