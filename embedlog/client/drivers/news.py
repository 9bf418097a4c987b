"""`News`: the threads that wait for something to arrive, and what is worth waking them for."""

from __future__ import annotations

from embedlog.runtime.locks import Rank, ranked_lock
from embedlog.runtime.pending import Pending

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


class Listener:
    """One thread that waits."""

    __slots__ = ("is_news", "pending")

    def __init__(self, is_news: Callable[[], bool] | None) -> None:
        self.is_news = is_news
        """Is it worth waking? Called by another thread; None for always."""
        self.pending: Pending[object] = Pending()
        """Done when there is news."""


class News:
    """Callable from any thread."""

    __slots__ = ("_listeners", "_lock")

    def __init__(self) -> None:
        self._listeners: list[Listener] = []
        self._lock = ranked_lock(Rank.NEWS)

    def listen(self, is_news: Callable[[], bool] | None) -> Listener:
        """From here on news wakes the caller, once, if `is_news()` says so then."""
        listener = Listener(is_news)
        with self._lock:
            self._listeners.append(listener)
        return listener

    def stop_listening(self, listener: Listener) -> None:
        """It waits no more."""
        with self._lock:
            if listener in self._listeners:
                self._listeners.remove(listener)

    def arrived(self) -> None:
        """Wake the threads that it is news for."""
        if self._listeners:
            with self._lock:
                waiting = [
                    each for each in self._listeners if each.is_news is None or each.is_news()
                ]
                if waiting:
                    self._listeners = [each for each in self._listeners if each not in waiting]
            for listener in waiting:
                listener.pending.complete(None)
