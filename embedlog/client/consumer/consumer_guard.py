"""One thread uses a consumer at a time; a second one is refused at once, not kept waiting."""

from __future__ import annotations

from _thread import allocate_lock, get_ident

from embedlog.client.errors import ConcurrentUse
from embedlog.errors import ClosedError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _thread import LockType


class Guard:
    """`with guard:` around every call. The thread inside may enter again, from its callbacks.

    A membership duty may use the consumer's state between calls: then the thread inside also has
    the duty's turn, for which it waits as long as the duty's step takes.
    """

    __slots__ = ("_depth", "_held", "_lock", "_owner", "_turn", "is_closed", "told")

    def __init__(self) -> None:
        self._lock = allocate_lock()
        self._owner = 0
        self._depth = 0
        self._turn: LockType | None = None
        self._held: LockType | None = None
        self.is_closed = False
        self.told: type[BaseException] | None = None
        """The kind of the newest error that a call ended with."""

    def share(self, turn: LockType) -> None:
        """From here on the consumer's state is shared with a duty. Requires: inside."""
        if self._turn is None:
            turn.acquire()
            self._turn = self._held = turn

    def __enter__(self) -> None:
        me = get_ident()
        if self._owner != me:
            if not self._lock.acquire(blocking=False):
                raise ConcurrentUse(
                    f"thread {self._owner} uses this consumer: one thread at a time may"
                )
            self._owner = me
            turn = self._turn
            if turn is not None:
                turn.acquire()
                self._held = turn
        if self.is_closed:
            if not self._depth:
                self._leave()
            raise ClosedError("the consumer is closed")
        self._depth += 1

    def __exit__(self, kind: type[BaseException] | None, *_exception: object) -> None:
        self._depth -= 1
        if not self._depth:
            if kind is not None:
                self.told = kind
            self._leave()

    def _leave(self) -> None:
        held, self._held = self._held, None
        if held is not None:
            held.release()
        self._owner = 0
        self._lock.release()
