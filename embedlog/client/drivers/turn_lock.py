"""The turn of a thread at what only one at a time may use, such as a client's sockets."""

from __future__ import annotations

from _thread import get_ident

from embedlog.common import deque
from embedlog.runtime.locks import closed_gate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


class TurnLock:
    """A lock that serves in the order of asking.

    With a plain lock a thread that polls in a loop gets it back again and again, and the thread
    that wants to send starves.

    The first thread in the line has the turn. A Ctrl-C may come when a thread has just got it and
    is not yet where it would give it back: then it does so when it asks again.
    """

    __slots__ = ("_line",)

    def __init__(self) -> None:
        self._line: deque[_Ticket] = deque()

    def acquire(self, hurry: Callable[[], None] | None = None) -> None:
        """Wait for the turn. Requires: this thread does not have it.

        `hurry` makes the thread that has it give it back soon. It is called once this thread is in
        the line: before, another could get the turn unnoticed, and keep it.
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

    def release(self) -> None:
        """Give the turn to the thread that has waited longest."""
        self._leave(self._line[0])

    @property
    def is_taken(self) -> bool:
        """Has some thread the turn?"""
        return bool(self._line)

    @property
    def waiting_count(self) -> int:
        """How many threads wait for the turn that another has."""
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
    """A thread's place in the line. Its gate is opened when it is first, perhaps again then."""

    __slots__ = ("gate", "thread")

    def __init__(self) -> None:
        self.thread = get_ident()
        self.gate = closed_gate()

    def open(self) -> None:
        """Let the thread have the turn."""
        try:
            self.gate.release()
        except RuntimeError:
            return  # it has it
