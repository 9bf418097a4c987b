"""`mapped`: changes an answer that is there, or that comes later."""

from __future__ import annotations

from embedlog import errors
from embedlog.runtime.pending import Pending

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def mapped(answer: Any, change: Callable[[Any], Any]) -> Any:
    """Return `change(answer)`; for a pending answer a pending of it.

    An answer that does not exist (acks=0) and a failed answer stay as they are.
    """
    if answer is None:
        return None
    if not isinstance(answer, Pending):
        return change(answer)
    outer: Pending[Any] = Pending()

    def settled(done: Pending[Any]) -> None:
        error = done.error()
        if error is not None:
            outer.fail(error)
            return
        value = done.result()
        outer.complete(None if value is None else change(value))

    answer.add_callback(settled)
    return outer


def afterwards(answer: Any, act: Callable[[Any], Any]) -> Any:
    """Return `act(answer)`, once the answer is there; `act` gets None if there is none.

    `act` may return a pending, and a failed answer stays as it is.
    """
    if not isinstance(answer, Pending):
        return act(answer)
    outer: Pending[Any] = Pending()

    def settled(done: Pending[Any]) -> None:
        error = done.error()
        if error is not None:
            outer.fail(error)
        else:
            outer.follow(act(done.result()))

    answer.add_callback(settled)
    return outer


def broken(reason: str = "a fault rule cut the connection") -> Pending[Any]:
    """Return an answer that breaks the connection, or fails with `Network` in this process."""
    pending: Pending[Any] = Pending()
    pending.fail(errors.Network(reason))
    return pending
