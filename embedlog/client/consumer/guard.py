"""`Guard`: lets one thread at a time use a consumer. A second thread gets an error at once."""

from __future__ import annotations

from _thread import get_ident

from embedlog.client.errors import ConcurrentUse
from embedlog.errors import ClosedError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _thread import LockType

    from embedlog.runtime.scheduler import Scheduler


_INSIDE = "thread"
_WAITING = (True,)


class Guard:
    """Every call of the consumer runs in `with guard:`. Callbacks inside the call may enter again.

    A membership duty may use the consumer's state between calls. If there is a duty, a call also
    holds the duty's lock, `turn`; to get it, the call waits for at most one step of the duty.

    In process a call first does the work that was due before it, such as a heartbeat of the duty:
    inside the guard the duty can do nothing.

    A KeyboardInterrupt may come between any two steps of `__enter__` and `__exit__`. Therefore a
    single built-in call both takes a lock and records that it is held. At worst the guard regards
    the interrupted thread as still inside, and lets it enter again.
    """

    __slots__ = ("_depth", "_held", "_owner", "_scheduler", "_turn", "is_closed", "last_error_type")

    def __init__(self, scheduler: Scheduler | None = None) -> None:
        """`scheduler` is the cluster's, in process."""
        self._scheduler = scheduler
        self._owner: dict[str, int] = {}
        """The id of the thread inside the guard, under the key `_INSIDE`; else empty."""
        self._depth = 0
        self._turn: LockType | None = None
        self._held: list[bool] = []
        """Not empty while the thread inside holds `_turn`."""
        self.is_closed = False
        self.last_error_type: type[BaseException] | None = None
        """The type of the last error that a call raised."""

    def share(self, turn: LockType) -> None:
        """Make every call also hold `turn`, the lock of a duty that uses the consumer's state.

        Requires: inside the guard.
        """
        if self._turn is None:
            self._turn = turn
            self._held.extend(map(turn.acquire, _WAITING))

    def __enter__(self) -> None:
        scheduler = self._scheduler
        if (
            scheduler is not None
            and not self._owner
            and scheduler.now_ns() >= scheduler.next_call_ns
        ):
            scheduler.drive()
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
                self.last_error_type = kind
            self._leave()

    def _leave(self) -> None:
        if self._held:
            assert self._turn is not None, self
            self._held = []
            self._turn.release()
        self._owner.clear()
