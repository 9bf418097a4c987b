"""`LogManager`, as its background work and its health see it: types alone."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    from embedlog.common import TopicPartition
    from embedlog.storage.leftovers import Leftovers
    from embedlog.storage.log import Log
    from embedlog.storage.log_checkpoints import LogCheckpoints
    from embedlog.storage.log_opener import LogOpener
    from embedlog.storage.owned_directory import OwnedDirectory
    from embedlog.storage.pins import Pins

    class LogOwner(Protocol):
        """All logs of one data directory."""

        directory: OwnedDirectory
        opener: LogOpener
        checkpoints: LogCheckpoints
        leftovers: Leftovers
        pins: Pins
        has_compacted: bool

        def logs(self) -> list[Log]:
            """Those that are open."""

        def partitions(self) -> list[TopicPartition]:
            """All, open or not."""
