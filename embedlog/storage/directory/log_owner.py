"""`LogManager`, as its background work and its health see it: types alone."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    from embedlog.common import TopicPartition
    from embedlog.storage.directory.leftovers import Leftovers
    from embedlog.storage.directory.log_checkpoints import LogCheckpoints
    from embedlog.storage.directory.log_opener import LogOpener
    from embedlog.storage.directory.owned_directory import OwnedDirectory
    from embedlog.storage.directory.pins import Pins
    from embedlog.storage.log.log import Log

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
