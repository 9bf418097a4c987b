"""`MetadataFeed`: delivers metadata changes to one broker of several, in order.

The controller publishes under its lock. The feed keeps changes while the broker cannot be reached
or a test holds them back; meanwhile the broker acts on its older image.
"""

from __future__ import annotations

from collections.abc import Callable

from embedlog.common import deque
from embedlog.controller.metadata import MetadataDelta
from embedlog.runtime.locks import Rank, ranked_rlock


class MetadataFeed:
    """Changes on their way to one broker. Every method may be called from any thread."""

    __slots__ = ("_is_delivering", "_is_reached", "_kept", "_lock", "_tell", "is_held")

    def __init__(
        self, tell: Callable[[MetadataDelta], None], is_reached: Callable[[], bool]
    ) -> None:
        """`tell` is `Broker.changed`; `is_reached` returns whether changes reach the broker now."""
        self._tell = tell
        self._is_reached = is_reached
        self._kept: deque[MetadataDelta] = deque()
        self._lock = ranked_rlock(Rank.METADATA_FEED)
        self._is_delivering = False
        """True while the broker applies a change, which may publish another."""
        self.is_held = False
        """True while a test holds changes back."""

    def publish(self, delta: MetadataDelta) -> None:
        """Add a change, and deliver if possible. Requires: the caller holds the controller lock."""
        with self._lock:
            self._kept.append(delta)
            self._deliver()

    def deliver(self) -> None:
        """Deliver the kept changes, if possible. Requires: no lock of a later rank is held."""
        with self._lock:
            self._deliver()

    def _deliver(self) -> None:
        if self._is_delivering:
            return  # the loop around the change goes on
        self._is_delivering = True
        try:
            while self._kept and not self.is_held and self._is_reached():
                # The change stays in the line until the broker has it: Ctrl-C may come before.
                self._tell(self._kept[0])
                del self._kept[0]
        finally:
            self._is_delivering = False

    def forget(self) -> None:
        """Drop the kept changes: the broker is gone, and gets all metadata at its next start."""
        with self._lock:
            self._kept.clear()
