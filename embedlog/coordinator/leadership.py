"""Partitions of a coordinator's topic whose leaders changed: their shards move, soon.

Metadata changes under locks that shards must not wait for. So what changed is noted, and the
scheduler has it acted on.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from embedlog.runtime.scheduler import Scheduler


class Leadership:
    """Calls `follow(index)` soon for each partition that was noted, with no lock held."""

    __slots__ = ("_follow", "_noted", "_scheduler")

    def __init__(self, scheduler: Scheduler, follow: Callable[[int], None]) -> None:
        self._scheduler = scheduler
        self._follow = follow
        self._noted: dict[int, None] = {}

    def note(self, indexes: Iterable[int]) -> None:
        """These may have other leaders now. Callable with any lock held."""
        self._noted.update(dict.fromkeys(indexes))
        self._scheduler.add(self)

    def run_once(self, _now_ms: int) -> int | None:
        """Act on what was noted."""
        while self._noted:
            # It is taken off first: what is noted meanwhile is looked at again.
            index = next(iter(self._noted), None)
            if index is None:
                break
            self._noted.pop(index, None)
            self._follow(index)
        return None

    def close(self) -> None:
        """Act on nothing any more."""
        self._scheduler.remove(self)
        self._noted.clear()
