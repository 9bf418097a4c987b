"""Locks that check their order, for tests: see `embedlog.runtime.locks`.

A violation raises where it happens. A handler may swallow the exception, so the violation is also
written to `violations`, to standard error, and to a file in the directory that
`EMBEDLOG_CHECK_LOCKS` names. Through the file a test sees the violations of its child processes.
"""

from __future__ import annotations

import os
import sys
from _thread import RLock, _local, get_ident

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Mapping, Sequence
    from types import CodeType, FrameType

    Trace = Sequence[tuple[CodeType, int]]

_FRAMES_MAX = 16
"""Most frames in the report of a violation."""

violations: list[str] = []
"""The violations of this process, oldest first."""


class LockOrderViolation(BaseException):
    """The thread tried to take a lock that the order forbids under a lock that the thread holds.

    This is no `Exception`: it is a defect of this package, and no caller shall handle it.
    """


class LockOrder:
    """The table of ranks by name, with the exceptions from the order."""

    __slots__ = ("_names", "_ring_free", "_several_under")

    def __init__(
        self,
        ranks: Mapping[str, object],
        ring_free: Container[int],
        several_under: Mapping[int, int],
    ) -> None:
        self._names = {rank: name for name, rank in ranks.items() if isinstance(rank, int)}
        self._ring_free = ring_free
        self._several_under = several_under

    def lock(self, rank: int, is_reentrant: bool) -> CheckedLock:
        """Return a lock of `rank`. It raises LockOrderViolation when a thread takes it out of
        order.
        """
        return CheckedLock(self, rank, is_reentrant)

    def first_above(self, rank: int, held: list[CheckedLock]) -> CheckedLock | None:
        """Return the first held lock that forbids waiting for a lock of `rank`, or None."""
        above = self._several_under.get(rank)
        may_repeat = rank in self._ring_free or any(lock.rank == above for lock in held)
        for lock in held:
            if lock.rank > rank or (lock.rank == rank and not may_repeat):
                return lock
        return None

    def name(self, rank: int) -> str:
        return self._names.get(rank, str(rank))


class _Thread(_local):
    """The locks that one thread holds, outermost first.

    A release does not change the list: later checks take released locks out. So a release is one
    step of the interpreter, which no interrupt can cut in two.
    """

    def __init__(self) -> None:
        self.locks: list[CheckedLock] = []


_thread = _Thread()


def held_here() -> list[CheckedLock]:
    """Return the locks that this thread holds, outermost first."""
    held = _thread.locks
    if held:
        held[:] = [lock for lock in held if lock._is_owned()]
    return held


class CheckedLock(RLock):  # type: ignore[misc]  # RLock can be a base class
    """A lock that knows its rank and the lines of code that took it."""

    __slots__ = ("is_reentrant", "order", "rank", "trace")

    if TYPE_CHECKING:

        def _is_owned(self) -> bool: ...

    def __new__(cls, *_: object, **__: object) -> CheckedLock:
        return super().__new__(cls)

    def __init__(self, order: LockOrder, rank: int, is_reentrant: bool) -> None:
        self.order = order
        self.rank = rank
        self.is_reentrant = is_reentrant
        self.trace: Trace = ()
        """The frame that took the lock, and its caller. Outer frames are mostly still on the stack
        when a violation is reported; keeping eight frames took a tenth of the time of all tests."""

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """See `RLock.acquire`. A call that might wait checks the order first."""
        owned = self._is_owned()
        if owned:
            if self.is_reentrant:
                return super().acquire(blocking, timeout)
            if not blocking:
                return False
        held = _thread.locks
        while held and not held[-1]._is_owned():
            del held[-1:]  # `pop` would raise if a signal handler took the lock out meanwhile
        if blocking:
            rank = self.rank
            for lock in held:
                if lock.rank >= rank:  # which is rare
                    above = self.order.first_above(rank, held_here())
                    if above is not None:
                        _report(self, above)
                    break
        try:
            got = super().acquire(blocking, timeout)
            if got:
                frame = sys._getframe(1)
                caller = frame.f_back or frame
                self.trace = (frame.f_code, frame.f_lasti), (caller.f_code, caller.f_lasti)
                held.append(self)
            return got
        except BaseException:
            # Release it: a Ctrl-C may have come after the lock was taken, before the caller knew.
            if self._is_owned():
                self.release()
            raise

    __enter__ = acquire

    def locked(self) -> bool:
        """Return whether any thread holds the lock."""
        if self._is_owned():
            return True
        if not super().acquire(False):
            return True
        self.release()
        return False

    def __repr__(self) -> str:
        return f"<lock {self.order.name(self.rank)} at {id(self):#x}>"


def _report(asked: CheckedLock, held: CheckedLock) -> None:
    text = (
        f"thread {get_ident()} takes {asked} under {held}\n"
        f"held since:\n{_shown(held.trace)}\ntaken at:\n{_shown(_trace(sys._getframe(2)))}"
    )
    violations.append(text)
    print(f"LockOrderViolation: {text}", file=sys.stderr)
    directory = os.environ.get("EMBEDLOG_CHECK_LOCKS", "")
    if os.path.isdir(directory):
        with open(os.path.join(directory, str(os.getpid())), "a", encoding="utf-8") as file:
            file.write(f"{text}\n\n")
    raise LockOrderViolation(text)


def _trace(frame: FrameType | None) -> Trace:
    """Return the innermost frames, each with its instruction."""
    found: list[tuple[CodeType, int]] = []
    while frame is not None and len(found) < _FRAMES_MAX:
        found.append((frame.f_code, frame.f_lasti))
        frame = frame.f_back
    return found


def _shown(trace: Trace) -> str:
    return "\n".join(
        f"  {code.co_filename}:{_line(code, instruction)} {code.co_qualname}"
        for code, instruction in trace
    )


def _line(code: CodeType, instruction: int) -> int | None:
    lines = (line for start, end, line in code.co_lines() if start <= instruction < end)
    return next(lines, None)
