"""How one broker of several hears of changes of the metadata: in order, and when it may.

The controller publishes under its lock. A broker that cannot be reached, or that a test keeps in
the dark, hears of it later: until then it goes by what it knows.
"""

from __future__ import annotations

from embedlog.common import deque
from embedlog.runtime.locks import Rank, ranked_rlock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from embedlog.controller.metadata import MetadataDelta


class MetadataFeed:
    """The changes on their way to one broker. Callable from any thread."""

    __slots__ = ("_is_reached", "_kept", "_lock", "_tell", "is_held")

    def __init__(
        self, tell: Callable[[MetadataDelta], None], is_reached: Callable[[], bool]
    ) -> None:
        """`tell` is `Broker.changed`; `is_reached` says whether the broker hears anything now."""
        self._tell = tell
        self._is_reached = is_reached
        self._kept: deque[MetadataDelta] = deque()
        self._lock = ranked_rlock(Rank.METADATA_FEED)
        self.is_held = False
        """Does somebody keep the broker in the dark?"""

    def publish(self, delta: MetadataDelta) -> None:
        """Let the broker hear of a change, after those before it. Requires: the controller lock."""
        with self._lock:
            self._kept.append(delta)
            self._deliver()

    def deliver(self) -> None:
        """Let the broker hear of what was kept, if it can. Requires: no lock of a later rank."""
        with self._lock:
            self._deliver()

    def _deliver(self) -> None:
        while self._kept and not self.is_held and self._is_reached():
            self._tell(self._kept.popleft())

    def forget(self) -> None:
        """The broker is gone; one that starts has the whole image."""
        with self._lock:
            self._kept.clear()
