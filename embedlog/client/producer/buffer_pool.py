"""buffer.memory: how many bytes may wait in a producer before `send` waits too.

Batches are Python objects, so there are no buffers to hand out again: what Kafka's BufferPool does
with memory, this does with a count. A batch reserves batch.size (more for one large record) when
it begins, and gives it back when its outcome is known.

Whoever finds too little queues up. While somebody is in the queue only its head is served, so what
is given back gathers until it is enough for the thread that has waited longest, however much that
asks for and however many others come along.
"""

from __future__ import annotations

from _thread import get_ident

from embedlog.common import deque


class BufferPool:
    """The reserve of one producer. Requires: the accumulator's lock. Never waits."""

    __slots__ = ("available", "total", "waiting")

    def __init__(self, total: int) -> None:
        self.total = total
        self.available = total
        """Bytes that are not reserved."""
        self.waiting: deque[int] = deque()
        """The threads that found too little, the longest waiting first."""

    def reserve(self, size: int) -> bool:
        """Take `size` bytes; False, and nothing is taken, when there are not so many.

        Also False while another thread has waited longer than this one.
        """
        if size > self.available or (self.waiting and self.waiting[0] != get_ident()):
            assert size <= self.total, (size, self.total)
            return False
        self.available -= size
        return True

    def release(self, size: int) -> None:
        """Give `size` reserved bytes back."""
        self.available += size
        assert self.available <= self.total, (self.available, self.total)

    def queue_up(self) -> None:
        """This thread waits from now on, behind those that do already."""
        self.waiting.append(get_ident())

    def leave(self) -> None:
        """This thread waits no more: it has what it wanted, or gives up."""
        self.waiting.remove(get_ident())
