"""`one_ahead`: run a generator in a thread, one item ahead of its consumer.

This pays if the consumer waits outside of Python, for example in a write to a socket: the thread
makes the next item meanwhile. While the generator runs, the interpreter's switch interval is short.
With the default, a thread in plain Python would delay the consumer by 5 ms after each short write.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from queue import Empty, Queue

from embedlog.runtime.outer_call import as_caller
from embedlog.runtime.threads import Thread

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from typing import Any, TypeVar

    Item = TypeVar("Item")

_SWITCH_SECONDS = 0.0001


def one_ahead(items: Generator[Item, None, None], name: str) -> Iterator[Item]:
    """Yield the items of `items`, which runs in a thread called `name`.

    At most three items exist at a time: one in use, one waiting, one in the making. An exception of
    `items` is raised here, after the items before it. When this generator ends, for any reason,
    `items` is closed and the thread has ended.
    """
    making = _Making(items)
    switch_seconds = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH_SECONDS)
    thread = Thread(lambda: as_caller(making.run), name)
    try:
        yield from making.taken()
    finally:
        making.stop()
        thread.join()
        sys.setswitchinterval(switch_seconds)


class _Making:
    """Hands items from the thread that runs the generator to the thread that uses them."""

    def __init__(self, items: Generator[Any, None, None]) -> None:
        self._items = items
        self._made: Queue[tuple[Any] | BaseException | None] = Queue(maxsize=1)
        """The next item as a 1-tuple; at the end an exception, or None without one."""
        self._is_stopped = False

    def run(self) -> None:
        """Make items until the generator ends or `stop` is called."""
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
        """Yield the items as they arrive."""
        while True:
            made = self._made.get()
            if made is None:
                return
            if isinstance(made, BaseException):
                raise made
            yield made[0]

    def stop(self) -> None:
        """Let the thread that runs the generator end; drop a made item."""
        self._is_stopped = True
        with suppress(Empty):
            self._made.get_nowait()
