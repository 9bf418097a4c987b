"""Locks that check their order, for tests: see `embedlog.runtime.locks`.

A violation raises where it happens, and is written down as well, since a handler may swallow what
it raises: in `violations`, on standard error, and in a file of the directory that
`EMBEDLOG_CHECK_LOCKS` names, by which a test finds those of the processes it started.
"""

from __future__ import annotations

import os
import sys
from _thread import RLock, _local, get_ident

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType, FrameType

    Trace = list[tuple[CodeType, int]]

_FRAMES_MAX = 16

violations: list[str] = []
"""Of this process, in the order of their happening."""


class LockOrderViolation(BaseException):
    """A lock was asked for that may not be taken under one that this thread holds.

    No `Exception`: it is a defect of this package, and nobody shall take it for an error of a call.
    """


class _Thread(_local):
    """What one thread holds, outermost first.

    A lock leaves when it is found released: releasing stays the interpreter's own one step, so
    that an interrupt cannot come between it and a note of it.
    """

    def __init__(self) -> None:
        self.locks: list[CheckedLock] = []


_thread = _Thread()


def held_here() -> list[CheckedLock]:
    """The locks that this thread holds, outermost first."""
    held = _thread.locks
    if held:
        held[:] = [lock for lock in held if lock._is_owned()]
    return held


class CheckedLock(RLock):  # type: ignore[misc]  # it can be inherited from
    """A lock that knows its rank and where it was taken."""

    __slots__ = ("is_reentrant", "rank", "trace")

    if TYPE_CHECKING:

        def _is_owned(self) -> bool: ...

    def __new__(cls, *_: object, **__: object) -> CheckedLock:
        return super().__new__(cls)

    def __init__(self, rank: int, is_reentrant: bool) -> None:
        self.rank = rank
        self.is_reentrant = is_reentrant
        self.trace: Trace = []

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """As that of `RLock`; first the order is checked, if this might wait."""
        owned = self._is_owned()
        if owned:
            if self.is_reentrant:
                return super().acquire(blocking, timeout)
            if not blocking:
                return False
        held = held_here()
        if blocking:
            self._check(held)
        try:
            got = super().acquire(blocking, timeout)
            if got:
                self.trace = _trace(sys._getframe(1))
                held.append(self)
            return got
        except BaseException:
            # Ctrl-C comes here too, after the lock was taken and before anybody knows of it.
            if self._is_owned():
                self.release()
            raise

    __enter__ = acquire

    def locked(self) -> bool:
        """Does any thread hold it?"""
        if self._is_owned():
            return True
        if not super().acquire(False):
            return True
        self.release()
        return False

    def _check(self, held: list[CheckedLock]) -> None:
        from embedlog.runtime.locks import RING_FREE, SEVERAL_UNDER

        above = SEVERAL_UNDER.get(self.rank)
        may_repeat = self.rank in RING_FREE or any(lock.rank == above for lock in held)
        for lock in held:
            if lock.rank > self.rank or (lock.rank == self.rank and not may_repeat):
                _report(self, lock)

    def __repr__(self) -> str:
        return f"<lock {_name(self.rank)} at {id(self):#x}>"


def _report(asked: CheckedLock, held: CheckedLock) -> None:
    text = (
        f"{asked} asked for under {held} by thread {get_ident()}\n"
        f"held since:\n{_shown(held.trace)}\nasked for:\n{_shown(_trace(sys._getframe(3)))}"
    )
    violations.append(text)
    print(f"LockOrderViolation: {text}", file=sys.stderr)
    directory = os.environ.get("EMBEDLOG_CHECK_LOCKS", "")
    if os.path.isdir(directory):
        with open(os.path.join(directory, str(os.getpid())), "a", encoding="utf-8") as file:
            file.write(f"{text}\n\n")
    raise LockOrderViolation(text)


def _name(rank: int) -> str:
    from embedlog.runtime.locks import Rank

    return next((name for name, value in vars(Rank).items() if value == rank), str(rank))


def _trace(frame: FrameType | None) -> Trace:
    """The innermost frames; their lines are looked up when they are shown."""
    found: Trace = []
    while frame is not None and len(found) < _FRAMES_MAX:
        found.append((frame.f_code, frame.f_lineno))
        frame = frame.f_back
    return found


def _shown(trace: Trace) -> str:
    return "\n".join(f"  {code.co_filename}:{line} {code.co_qualname}" for code, line in trace)
