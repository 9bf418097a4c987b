"""`NodeRequests`: the unanswered requests of one node, in the order of the calls.

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
"""The due time of something that is never due."""


class NodeRequest:
    """An unanswered request. `asked_version` None means the newest version both sides know."""

    __slots__ = ("api_key", "asked_version", "deadline_ms", "message", "pending", "version")

    def __init__(
        self, message: Any, version: int | None, deadline_ms: int, pending: Pending[Any]
    ) -> None:
        self.message = message
        self.asked_version = version
        self.api_key = -1
        self.version = -1
        """The version in which the request was written; -1 before that."""
        self.deadline_ms = deadline_ms
        self.pending = pending

    @property
    def name(self) -> str:
        return type(self.message).__name__


class NodeRequests:
    """The requests of one node, in three queues. A KeyboardInterrupt between any two steps loses no
    request: `_in_hand` holds the request on its way from one queue to the next.
    """

    __slots__ = ("_in_flight", "_in_flight_max", "_in_hand", "_leaving", "_waiting")

    def __init__(self, in_flight_max: int) -> None:
        self._in_flight_max = in_flight_max
        self._waiting: deque[NodeRequest] = deque()
        self._in_flight: deque[NodeRequest] = deque()
        self._leaving: deque[tuple[int, NodeRequest]] = deque()
        """(size, request), where `size` counts the bytes given to the channel up to the request's
        end. The request is done when the channel has sent that many bytes."""
        self._in_hand: NodeRequest | None = None

    @property
    def count(self) -> int:
        return len(self._waiting) + len(self._in_flight) + len(self._leaving)

    @property
    def has_room(self) -> bool:
        count = len(self._waiting) + len(self._in_flight) + len(self._leaving)
        return count < self._in_flight_max

    @property
    def waiting_deadline_ms(self) -> int | None:
        return self._waiting[0].deadline_ms if self._waiting else None

    @property
    def any_in_flight(self) -> bool:
        """True if a written request still waits for its answer."""
        return bool(self._in_flight)

    @property
    def any_leaving(self) -> bool:
        """True if the bytes of an acks=0 request perhaps have not left yet."""
        return bool(self._leaving)

    def add(self, request: NodeRequest) -> None:
        self._waiting.append(request)

    def next_to_write(self) -> NodeRequest | None:
        """Take the oldest waiting request to write it; None if none waits or may be sent."""
        if not self._waiting or len(self._in_flight) >= self._in_flight_max:
            self._in_hand = None
            return None
        self._in_hand = request = self._waiting[0]
        self._waiting.popleft()
        return request

    def written(self, request: NodeRequest) -> None:
        """Note that the request was written, and will get an answer."""
        self._in_flight.append(request)

    def written_unanswered(self, request: NodeRequest, given_size: int) -> None:
        """Note that an acks=0 request was written; it has left once `given_size` bytes are sent."""
        self._leaving.append((given_size, request))

    def next_answered(self) -> NodeRequest:
        """Take the request that the arrived answer belongs to. Requires: one is in flight."""
        self._in_hand = request = self._in_flight[0]
        self._in_flight.popleft()
        return request

    def take_left(self, sent_size: int) -> bool:
        """Complete the acks=0 requests whose bytes have left; return whether there were any."""
        leaving = self._leaving
        count = len(leaving)
        while leaving and leaving[0][0] <= sent_size:
            _, request = leaving.popleft()
            request.pending.complete(None)
        return len(leaving) < count

    def next_deadline_ms(self) -> int:
        """Return the next deadline of the written and the first waiting requests, or NEVER_MS."""
        deadlines = [each.deadline_ms for each in self._written()]
        if self._waiting:
            deadlines.append(self._waiting[0].deadline_ms)
        return min(deadlines, default=NEVER_MS)

    def overdue(self, now_ms: int) -> list[NodeRequest]:
        """Return the written requests that ran out of time; the caller closes the connection."""
        return [each for each in self._written() if each.deadline_ms <= now_ms]

    def take_overdue_waiting(self, now_ms: int) -> list[NodeRequest]:
        """Take the requests that ran out of time before they were written."""
        overdue = []
        while self._waiting and self._waiting[0].deadline_ms <= now_ms:
            overdue.append(self._waiting.popleft())
        return overdue

    def take_all(self) -> list[NodeRequest]:
        """Take all unanswered requests in order: no answer will come."""
        lost = [*[each for _, each in self._leaving], *self._in_flight, *self._waiting]
        if self._in_hand is not None and self._in_hand not in lost:
            lost.insert(0, self._in_hand)
        self._in_hand = None
        self._in_flight.clear()
        self._leaving.clear()
        self._waiting.clear()
        return [request for request in lost if not request.pending.done()]

    def _written(self) -> list[NodeRequest]:
        return [*self._in_flight, *[each for _, each in self._leaving]]
