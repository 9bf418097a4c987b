"""`NodeRequests`: the requests of one node that have no answer, in the order they were made.

waiting  --written-->  in flight  --answer-->  done
     `-----written-->  leaving    --sent---->  done      (acks 0: there is no answer)
"""

from __future__ import annotations

from embedlog.common import deque

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from embedlog.runtime.pending import Pending

NEVER_MS = 1 << 62
"""As a moment: one that does not come."""


class NodeRequest:
    """A request without an answer. `asked_version` None: the newest both sides know."""

    __slots__ = ("api_key", "asked_version", "deadline_ms", "message", "pending", "version")

    def __init__(
        self, message: Any, version: int | None, deadline_ms: int, pending: Pending[Any]
    ) -> None:
        self.message = message
        self.asked_version = version
        self.api_key = -1
        self.version = -1
        """What it was sent with, once it was."""
        self.deadline_ms = deadline_ms
        self.pending = pending

    @property
    def name(self) -> str:
        """What it is called where people read it."""
        return type(self.message).__name__


class NodeRequests:
    """Three queues. A KeyboardInterrupt between any two steps loses no request: one on its way
    from a queue to the next is in hand.
    """

    __slots__ = ("_in_flight", "_in_flight_max", "_in_hand", "_leaving", "_waiting")

    def __init__(self, in_flight_max: int) -> None:
        self._in_flight_max = in_flight_max
        self._waiting: deque[NodeRequest] = deque()
        self._in_flight: deque[NodeRequest] = deque()
        self._leaving: deque[tuple[int, NodeRequest]] = deque()
        """Each with how many bytes the channel was given up to its end: it is done when the channel
        has sent as many."""
        self._in_hand: NodeRequest | None = None

    @property
    def count(self) -> int:
        """Requests without an answer."""
        return len(self._waiting) + len(self._in_flight) + len(self._leaving)

    @property
    def has_room(self) -> bool:
        """Would another request be written without waiting for an answer?"""
        count = len(self._waiting) + len(self._in_flight) + len(self._leaving)
        return count < self._in_flight_max

    @property
    def waiting_deadline_ms(self) -> int | None:
        """When the oldest that was not written runs out of time; None when there is none."""
        return self._waiting[0].deadline_ms if self._waiting else None

    @property
    def any_in_flight(self) -> bool:
        """Is there one whose answer has not come?"""
        return bool(self._in_flight)

    @property
    def any_leaving(self) -> bool:
        """Is there one without an answer whose bytes may not have left?"""
        return bool(self._leaving)

    def add(self, request: NodeRequest) -> None:
        """It is to be written when its turn comes."""
        self._waiting.append(request)

    def next_to_write(self) -> NodeRequest | None:
        """Take the oldest that waits, to be written; None while as many are in flight as may be."""
        if not self._waiting or len(self._in_flight) >= self._in_flight_max:
            self._in_hand = None
            return None
        self._in_hand = request = self._waiting[0]
        self._waiting.popleft()
        return request

    def written(self, request: NodeRequest) -> None:
        """It was written, and is answered in its turn."""
        self._in_flight.append(request)

    def written_unanswered(self, request: NodeRequest, given_size: int) -> None:
        """It was written, is not answered, and has left when `given_size` bytes were sent."""
        self._leaving.append((given_size, request))

    def next_answered(self) -> NodeRequest:
        """Take the one that the answer which came is for. Requires: one is in flight."""
        self._in_hand = request = self._in_flight[0]
        self._in_flight.popleft()
        return request

    def take_left(self, sent_size: int) -> bool:
        """Complete those without an answer whose bytes have left; say whether there was one."""
        leaving = self._leaving
        count = len(leaving)
        while leaving and leaving[0][0] <= sent_size:
            _, request = leaving.popleft()
            request.pending.complete(None)
        return len(leaving) < count

    def next_deadline_ms(self) -> int:
        """When the first of them runs out of time; NEVER_MS when there is none."""
        deadlines = [queue[0].deadline_ms for queue in (self._in_flight, self._waiting) if queue]
        if self._leaving:
            deadlines.append(self._leaving[0][1].deadline_ms)
        return min(deadlines, default=NEVER_MS)

    def overdue(self, now_ms: int) -> list[NodeRequest]:
        """The written ones that ran out of time; the connection is to be closed for them."""
        written = [*self._in_flight, *[each for _, each in self._leaving]]
        return [each for each in written if each.deadline_ms <= now_ms]

    def take_overdue_waiting(self, now_ms: int) -> list[NodeRequest]:
        """Take the ones that ran out of time before they were written."""
        overdue = []
        while self._waiting and self._waiting[0].deadline_ms <= now_ms:
            overdue.append(self._waiting.popleft())
        return overdue

    def take_all(self) -> list[NodeRequest]:
        """Take all that have no answer, in their order: none will come."""
        lost = [*[each for _, each in self._leaving], *self._in_flight, *self._waiting]
        if self._in_hand is not None and self._in_hand not in lost:
            lost.insert(0, self._in_hand)
        self._in_hand = None
        self._in_flight.clear()
        self._leaving.clear()
        self._waiting.clear()
        return [request for request in lost if not request.pending.done()]
