"""The duty that creates the missing topics of Metadata requests, soon after their answers.

Kafka's broker asks the controller and answers meanwhile. Clients that look a topic up to learn
whether it exists therefore find it missing, even if their library sends two requests.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from embedlog.runtime import Runtime

_DELAY_MS = 80
"""Longer than librdkafka waits between two requests of a look-up, which is 50 ms, and shorter than
the 100 ms after which clients ask again."""


class AutomaticTopics:
    """The topics that wait for their creation. Any thread may call the methods."""

    def __init__(self, runtime: Runtime, create: Callable[[list[str]], None]) -> None:
        """`create(names)` creates topics, and skips existing and forbidden ones."""
        self._clock = runtime.clock
        self._scheduler = runtime.scheduler
        self._create = create
        self._waiting: dict[str, int] = {}
        """Name -> monotonic time of its creation, which rises."""
        runtime.scheduler.add(self)

    def close(self) -> None:
        self._scheduler.remove(self)
        self._waiting.clear()

    def ask(self, names: Iterable[str]) -> None:
        due_ms = self._clock.monotonic_ms() + _DELAY_MS
        for name in names:
            self._waiting.setdefault(name, due_ms)
        self._scheduler.notify(self, _DELAY_MS)

    def run_once(self, now_ms: int) -> int | None:
        """Create the topics that have waited long enough."""
        due = [name for name, due_ms in self._waiting.copy().items() if due_ms <= now_ms]
        for name in due:
            del self._waiting[name]
        if due:
            self._create(due)
        return max(0, min(self._waiting.copy().values()) - now_ms) if self._waiting else None
