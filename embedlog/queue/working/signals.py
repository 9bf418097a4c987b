"""Ends a worker at the signals that end a program."""

from __future__ import annotations

import signal
from contextlib import contextmanager

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ENDING = (signal.SIGTERM, signal.SIGINT)


@contextmanager
def ending(ask_to_stop: Callable[[], None]) -> Iterator[None]:
    """Call `ask_to_stop` at SIGTERM and SIGINT; outside the main thread, change nothing."""

    def handle(_number: int, _frame: object) -> None:
        ask_to_stop()

    former = {}
    try:
        for number in ENDING:
            former[number] = signal.signal(number, handle)
    except ValueError:  # not the main thread
        pass
    try:
        yield
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)
