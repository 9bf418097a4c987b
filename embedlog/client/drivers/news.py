"""`News`: the threads that wait for outcomes, memory or metadata, and when to wake each."""

from __future__ import annotations

from embedlog.runtime.locks import Rank, ranked_lock
from embedlog.runtime.pending import Pending

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


class WaitingThread:
    """A thread that waits for outcomes, memory or metadata."""

    __slots__ = ("is_news", "pending")

    def __init__(self, is_news: Callable[[], bool] | None) -> None:
        self.is_news = is_news
        """Returns whether to wake the thread; another thread calls it. None: always."""
        self.pending: Pending[object] = Pending()


class News:
    """The waiting threads of one driver. Thread-safe."""

    def __init__(self) -> None:
        self._listeners: list[WaitingThread] = []
        self._lock = ranked_lock(Rank.NEWS)

    def listen(self, is_news: Callable[[], bool] | None) -> WaitingThread:
        """Begin to listen: the first `arrived` at which `is_news()` is true wakes the caller."""
        listener = WaitingThread(is_news)
        with self._lock:
            self._listeners.append(listener)
        return listener

    def stop_listening(self, listener: WaitingThread) -> None:
        with self._lock:
            if listener in self._listeners:
                self._listeners.remove(listener)

    def arrived(self) -> None:
        """Wake the threads whose `is_news()` is true."""
        if self._listeners:
            with self._lock:
                waiting = [
                    each for each in self._listeners if each.is_news is None or each.is_news()
                ]
                if waiting:
                    self._listeners = [each for each in self._listeners if each not in waiting]
            for listener in waiting:
                listener.pending.complete(None)
