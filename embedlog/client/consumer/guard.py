"""One thread uses a consumer at a time; a second one is refused at once, not kept waiting."""

from __future__ import annotations

from _thread import get_ident

from embedlog.client.errors import ConcurrentUse
from embedlog.errors import ClosedError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _thread import LockType


_INSIDE = "thread"
_WAITING = (True,)


class Guard:
    """`with guard:` around every call. The thread inside may enter again, from its callbacks.

    A membership duty may use the consumer's state between calls: then the thread inside also has
    the duty's turn, for which it waits as long as the duty's step takes.

    A KeyboardInterrupt may come between any two steps of `__enter__` and `__exit__`. So what is
    taken is noted by the very call that takes it: the thread that was interrupted finds itself
    inside, at worst, and may go on.
    """

    __slots__ = ("_depth", "_held", "_owner", "_turn", "is_closed", "told")

    def __init__(self) -> None:
        self._owner: dict[str, int] = {}
        """The thread inside, as `_INSIDE`."""
        self._depth = 0
        self._turn: LockType | None = None
        self._held: list[bool] = []
        """Not empty: the thread inside has the turn."""
        self.is_closed = False
        self.told: type[BaseException] | None = None
        """The kind of the newest error that a call ended with."""

    def share(self, turn: LockType) -> None:
        """From here on the consumer's state is shared with a duty. Requires: inside."""
        if self._turn is None:
            self._turn = turn
            self._held.extend(map(turn.acquire, _WAITING))

    def __enter__(self) -> None:
        me = get_ident()
        owner = self._owner.setdefault(_INSIDE, me)
        if owner != me:
            raise ConcurrentUse(f"thread {owner} uses this consumer: one thread at a time may")
        if not self._held and self._turn is not None:
            self._held.extend(map(self._turn.acquire, _WAITING))
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
        if self._held:
            assert self._turn is not None, self
            self._held = []
            self._turn.release()
        self._owner.clear()
