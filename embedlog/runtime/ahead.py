"""Items that another thread makes, one ahead of who takes them.

It pays where the taker waits outside of Python, as one that writes to a socket does: the next item
is made meanwhile. Python's lock is passed on more often than by default while that goes on: whoever
makes items in plain Python would let the taker wait 5 ms after each of its many short writes.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from queue import Empty, Queue

from embedlog.runtime.threads import Thread

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from typing import Any, TypeVar

    Item = TypeVar("Item")

_SWITCH_SECONDS = 0.0001


def one_ahead(items: Generator[Item, None, None], name: str) -> Iterator[Item]:
    """Yield what `items` yields, which runs on a thread of that name, from the first item on.

    At most three items are there at a time: one that is used, one that waits, one that is being
    made. What `items` raises is raised here, in its turn. When this ends, for whatever reason,
    `items` is closed and the thread has ended.
    """
    making = _Making(items)
    switch_seconds = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH_SECONDS)
    thread = Thread(making.run, name)
    try:
        yield from making.taken()
    finally:
        making.stop()
        thread.join()
        sys.setswitchinterval(switch_seconds)


class _Making:
    """The hand-over between the two threads."""

    def __init__(self, items: Generator[Any, None, None]) -> None:
        self._items = items
        self._made: Queue[tuple[Any] | BaseException | None] = Queue(maxsize=1)
        """An item, what was raised, or None at the end."""
        self._is_stopped = False

    def run(self) -> None:
        """Make items until there are no more, or `stop`."""
        ended: BaseException | None = None
        try:
            for item in self._items:
                self._made.put((item,))
                if self._is_stopped:
                    break
            self._items.close()
        except BaseException as error:
            ended = error
        if not self._is_stopped:
            self._made.put(ended)

    def taken(self) -> Iterator[Any]:
        """The items, as they come."""
        while True:
            made = self._made.get()
            if made is None:
                return
            if isinstance(made, BaseException):
                raise made
            yield made[0]

    def stop(self) -> None:
        """Let the thread end: nobody takes what it makes."""
        self._is_stopped = True
        with suppress(Empty):
            self._made.get_nowait()
