"""What is done before the interpreter ends, for those who forgot to close.

Producers come first: what they send must still find an open cluster. A process that was forked
after the registration runs nothing: what was registered is its parent's.
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
"""By number of the registration: order, process, function."""
_numbers = iter(range(1 << 62))


def register(function: Callable[[], None], order: int) -> Callable[[], None]:
    """Call `function` when the interpreter ends; return what undoes the registration.

    Those of a lower `order` (PRODUCERS, CLUSTERS) come first, and of one order the newest. An
    exception is shown on standard error and does not stop the others. `function` is kept until it
    is called or unregistered: let it hold a weak reference to what it closes. Undoing a second
    time does nothing. Both may be called from any thread.
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
