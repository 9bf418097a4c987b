"""`TurnLock`: a fair lock for things that one thread at a time may use, such as sockets."""

from __future__ import annotations

from _thread import get_ident

from embedlog.common import deque
from embedlog.runtime.locks import closed_gate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


class TurnLock:
    """A lock that threads get in the order of their calls.

    With a plain lock, a thread that polls in a loop gets the lock back again and again, and the
    thread that wants to send starves.

    The first thread in the line has the turn. If Ctrl-C comes after a thread got the turn and
    before the code that gives the turn back, the thread gives the turn back at its next call of
    `acquire`.
    """

    __slots__ = ("_line",)

    def __init__(self) -> None:
        self._line: deque[_Ticket] = deque()

    def acquire(self, hurry: Callable[[], None] | None = None) -> None:
        """Wait for the turn. Requires: this thread does not have it.

        `hurry` makes the thread that has the turn give it back soon. It is called when this thread
        is in the line. An earlier call could miss a thread that gets the turn meanwhile.
        """
        line = self._line
        mine = _Ticket()
        if line:
            self._drop_lost(mine.thread)
        line.append(mine)
        if line[0] is mine:
            return
        try:
            if hurry is not None:
                hurry()
            mine.gate.acquire()
        except BaseException:
            self._drop_lost(mine.thread)
            raise

    def run(self, action: Callable[[], None], hurry: Callable[[], None]) -> None:
        self.acquire(hurry)
        try:
            action()
        finally:
            self.release()

    def release(self) -> None:
        self._leave(self._line[0])

    @property
    def is_taken(self) -> bool:
        return bool(self._line)

    @property
    def waiting_count(self) -> int:
        return max(len(self._line) - 1, 0)

    def _drop_lost(self, thread: int) -> None:
        for ticket in list(self._line):
            if ticket.thread == thread:
                self._leave(ticket)

    def _leave(self, ticket: _Ticket) -> None:
        self._line.remove(ticket)
        try:
            self._line[0].open()
        except IndexError:
            return  # nobody waits


class _Ticket:
    """A thread's place in the line. `open` lets the thread go on; repeated calls are harmless."""

    __slots__ = ("gate", "thread")

    def __init__(self) -> None:
        self.thread = get_ident()
        self.gate = closed_gate()

    def open(self) -> None:
        try:
            self.gate.release()
        except RuntimeError:
            return  # it has the turn already
