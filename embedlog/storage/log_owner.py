"""`LogManager`, as its background work and its health see it: types alone."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    from embedlog.common import TopicPartition
    from embedlog.storage.degradation import Degradation
    from embedlog.storage.log import Log

    class LogOwner(Protocol):
        """All logs of one data directory."""

        directory: str
        found: dict[TopicPartition, list[Degradation]]
        has_compacted: bool

        def logs(self) -> list[Log]:
            """Those that are open."""

        def partitions(self) -> list[TopicPartition]:
            """All, open or not."""

        def pins(self, wall_ms: int) -> dict[TopicPartition, int]:
            """What readers of other processes hold."""

        def remove_leftovers(self) -> None:
            """Remove what deletions have left."""

        def remove_files(self, useless: list[str]) -> None:
            """Remove these."""

        def checkpoint(self) -> None:
            """Write down how far every log is synced, and where it starts."""

        def checkpoint_positions(self) -> bool:
            """Write recovery points and log starts down."""

        def checkpoint_high_watermarks(self) -> bool:
            """Write high watermarks down."""
