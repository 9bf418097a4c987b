"""Outer calls: a thread is inside one public call at a time.

A signal handler runs between any two instructions of its thread, and so do finalizers, weak
references' callbacks, log handlers and trace functions. A public call that began there would find
the state of the call around it half changed, and walk through the locks that its thread holds. So
a thread marks each public call, the *outer call*, in `INSIDE`, and another public call of the same
thread is refused with `NestedCall` before it touches anything. A `close` is put off to the end of
the outer call instead.

Users' callbacks are called with `as_user`, which takes the mark away for the time of the callback:
callbacks may make calls. The threads of this package are marked for their whole life.

A mark is set and removed by single instructions next to a `try`, between which no KeyboardInterrupt
can come. Hot calls contain the lines of `outer`:

    me = get_ident()
    if me in INSIDE:
        raise nested("Producer.append")
    INSIDE[me] = "Producer.append"
    try:
        ...
    finally:
        del INSIDE[me]
        if PUT_OFF:
            end_calls()
"""

from __future__ import annotations

import os
from _thread import get_ident, start_new_thread

from embedlog.errors import ClosedError, EmbedlogError, NestedCall

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Concatenate, ParamSpec, TypeVar

    P = ParamSpec("P")
    S = TypeVar("S")
    T = TypeVar("T")
    Close = Callable[[], object]

ANYWHERE = (RecursionError, MemoryError)
"""Exceptions that may come at any call, as KeyboardInterrupt does. Their handlers first note them
without a call, which might raise again."""

INSIDE: dict[int, str] = {}
"""Thread -> the outer call that it is inside; no entry while it runs a user's callback."""
LENT: dict[int, str] = {}
"""Thread -> the outer call around the user's callback that the thread runs."""
PUT_OFF: dict[int, list[Close]] = {}
"""Thread -> closes that wait for the end of its outer call."""
_OWN_THREADS: dict[int, str] = {}
"""Thread of this package -> its mark, which ends with the thread."""
_ending: dict[int, bool] = {}
"""Threads that run the closes of their list."""


def nested(call: str) -> NestedCall:
    """Return the error that refuses `call` of this thread, which is inside another call."""
    outer = INSIDE.get(get_ident(), "another call")
    return NestedCall(
        f"{call} was called inside {outer} of the same thread, by a signal handler, a finalizer, "
        f"a log handler or a trace function: nothing was done. Set a flag that the program looks "
        f"at, call Consumer.wakeup, or let another thread make the call"
    )


def outer(method: Callable[Concatenate[S, P], T]) -> Callable[Concatenate[S, P], T]:
    """Decorate a public method: it is an outer call, and refused inside another.

    If the object has a method `_is_gone`, and it returns True after a failed call, the call raises
    ClosedError: another thread has closed the object, or its cluster, meanwhile.

    Raises:
        NestedCall: the thread is inside an outer call.
    """
    name = method.__qualname__

    def call(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
        me = get_ident()
        if me in INSIDE:
            raise nested(name)
        INSIDE[me] = name
        try:
            return method(self, *args, **kwargs)
        except EmbedlogError as error:
            if is_gone(self, error):
                raise closed_during(name) from error
            raise
        finally:
            del INSIDE[me]
            if PUT_OFF:
                end_calls()

    return _named(call, method)  # type: ignore[no-any-return]


def is_gone(owner: object, error: EmbedlogError) -> bool:
    """Return whether a call of `owner` failed with `error` because of a close."""
    asks = getattr(owner, "_is_gone", None)
    return asks is not None and type(error) is not ClosedError and asks()


def closed_during(call: str) -> ClosedError:
    """Return the error of a call whose object another thread has closed meanwhile."""
    return ClosedError(f"{call}: it was closed during the call, or its cluster was")


def outer_close(*, in_callbacks: bool) -> Callable[[Callable[Concatenate[S, P], None]], Any]:
    """Decorate a `close`: inside another call of its thread it is put off to the end of that call.

    `in_callbacks`: a close in a user's callback happens at once. If the object has a method
    `_ends_soon`, a close that is put off calls it, so that the outer call does not wait for long.
    """

    def decorate(
        method: Callable[Concatenate[S, P], None],
    ) -> Callable[Concatenate[S, P], None]:
        name = method.__qualname__

        def call(self: S, /, *args: P.args, **kwargs: P.kwargs) -> None:
            me = get_ident()
            if me in INSIDE or (me in LENT and not in_callbacks):
                _put_off(me, lambda: call(self, *args, **kwargs))
                ends_soon = getattr(self, "_ends_soon", None)
                if ends_soon is not None:
                    ends_soon()
                return
            INSIDE[me] = name
            try:
                method(self, *args, **kwargs)
            finally:
                del INSIDE[me]
                if PUT_OFF:
                    end_calls()

        return _named(call, method)  # type: ignore[no-any-return]

    return decorate


def as_user(function: Callable[..., T], *arguments: Any) -> T:
    """Call a user's function, which may make calls of its own."""
    me = get_ident()
    mark, before = INSIDE.get(me), LENT.get(me)
    if mark is None:
        return function(*arguments)
    LENT[me] = mark
    del INSIDE[me]
    try:
        return function(*arguments)
    finally:
        INSIDE[me] = mark
        if before is None:
            del LENT[me]
        else:
            LENT[me] = before


def as_caller(function: Callable[[], T]) -> T:
    """Make calls in a thread of this package for a caller, as the event loop is: outer calls."""
    me = get_ident()
    mark = INSIDE.get(me)
    if mark is None:
        return function()
    del INSIDE[me]
    try:
        return function()
    finally:
        INSIDE[me] = mark


def in_own_thread(target: Callable[[], None], name: str) -> None:
    """Run `target`, all that a thread of this package does; finalizers may make no calls in it."""
    me = get_ident()
    mark = f"the thread {name}"
    _OWN_THREADS[me] = mark
    INSIDE[me] = mark
    try:
        target()
    finally:
        del INSIDE[me]
        del _OWN_THREADS[me]


def end_calls() -> None:
    """Make the closes that were put off in this thread, unless it is still inside an outer call.

    A close that fails is logged: the outer call has its own outcome. If a KeyboardInterrupt ends a
    close, the end of the next outer call makes it again.
    """
    me = get_ident()
    if me in INSIDE or me in LENT or me in _ending:
        return
    waiting = PUT_OFF.get(me, [])
    _ending[me] = True
    try:
        while waiting:
            _attempt(waiting[0])
            del waiting[0]
        if me in PUT_OFF:
            del PUT_OFF[me]
    finally:
        del _ending[me]


def _put_off(me: int, close: Close) -> None:
    mark = INSIDE.get(me) or LENT.get(me)
    if mark is _OWN_THREADS.get(me):
        # The mark ends with the thread, and the close may wait for that end.
        start_new_thread(_attempt, (close,))
    else:
        PUT_OFF.setdefault(me, []).append(close)


def _attempt(close: Close) -> None:
    try:
        close()
    except Exception as error:
        from logging import getLogger

        text = "a close that was put off failed: %s"
        getLogger("embedlog.runtime").error(text, error, exc_info=error)


def _named(call: Any, method: Any) -> Any:
    # Does the same as functools.wraps, whose import takes longer than this whole module.
    call.__name__, call.__qualname__ = method.__name__, method.__qualname__
    call.__doc__, call.__module__ = method.__doc__, method.__module__
    call.__annotations__, call.__wrapped__ = method.__annotations__, method
    return call


def _keep_own() -> None:
    """In a forked child: forget the other threads, whose ids new threads may get."""
    me = get_ident()
    for table in (INSIDE, LENT, PUT_OFF, _OWN_THREADS, _ending):
        for thread in [each for each in table if each != me]:
            del table[thread]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_keep_own)
