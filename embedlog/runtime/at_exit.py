"""Close forgotten producers and clusters before the interpreter ends.

Producers are closed first: their records still need an open cluster. A forked child runs nothing
that its parent registered.
"""

from __future__ import annotations

import atexit
import sys
from os import getpid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

PRODUCERS = 0
CLUSTERS = 1

_registered: dict[int, tuple[int, int, Callable[[], None]]] = {}
"""Registrations by number: (order, pid, function)."""
_numbers = iter(range(1 << 62))


def register(function: Callable[[], None], order: int) -> Callable[[], None]:
    """Call `function` when the interpreter ends. Return a function that cancels this.

    A lower `order` (PRODUCERS, CLUSTERS) runs first, and within one order the newest registration.
    An exception is shown on standard error and does not stop the other functions. The registration
    keeps `function` alive, so `function` should hold only a weak reference to its object.
    Cancelling twice is harmless. Both functions may be called from any thread.
    """
    number = next(_numbers)
    _registered[number] = (order, getpid(), function)

    def unregister() -> None:
        _registered.pop(number, None)

    return unregister


def _run() -> None:
    while _registered:
        number = min(_registered, key=lambda each: (_registered[each][0], -each))
        _, process, function = _registered.pop(number)
        if process != getpid():
            continue
        try:
            function()
        except BaseException:
            sys.excepthook(*sys.exc_info())


atexit.register(_run)
