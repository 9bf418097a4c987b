"""The move of one log: copying it, and switching the log to the copy."""

from __future__ import annotations

from embedlog.errors import KafkaStorageError
from embedlog.storage import paths
from embedlog.storage.relocation.future_log import FutureLog
from embedlog.storage.relocation.leftovers import remove_marks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Protocol

    from embedlog.common import TopicPartition
    from embedlog.storage.directory.log_manager import LogManager
    from embedlog.storage.log.log import Log

    class Directories(Protocol):
        """The data directories of a broker, as far as moves use them."""

        @property
        def managers(self) -> Sequence[LogManager]:
            """The managers of the working directories."""

        def holder(self, topic_partition: TopicPartition) -> LogManager | None:
            """Return the manager of a partition's log."""

        def hand_over(
            self, log: Log, former: LogManager, manager: LogManager, bring: Callable[[], None]
        ) -> bool:
            """Give a log to another manager: see `LogManager.hand_over`."""

        def report(self) -> None:
            """Tell the controller which directory holds which log."""


LAST_SIZE = 4 << 20
"""At most this many bytes are copied under the log's locks, which takes some milliseconds."""


class _CompactionIsAtIt(Exception):
    """Compaction is about to replace segments: complete the move after that."""


class Relocation:
    """The move of one log. For one thread at a time."""

    def __init__(
        self,
        directories: Directories,
        log: Log,
        *,
        source: LogManager,
        target: LogManager,
        uuid: bytes,
    ) -> None:
        self._directories = directories
        self.log = log
        self.source = source
        self.target = target
        self._path = paths.log_directory(target.directory.path, log.topic_partition)
        self.future = FutureLog(log, target.opener.open_files, target.directory.path, uuid)

    def step(self, size_max: int, *, last_size: int = LAST_SIZE) -> tuple[int, bool]:
        """Copy at most `size_max` bytes; complete the move if no more than `last_size` are left.

        Return how many bytes were copied, and whether the log has moved.

        Raises:
            OSError, KafkaStorageError, CorruptRecord: one of the disks refuses. The log is
                unchanged, or poisoned: then the next open of the directories decides.
            ClosedError: the log was deleted, or one of the two data directories is closed.
        """
        future = self.future
        if self.log.directory == self._path:
            # An interrupt ended an earlier call after the commit: only clean up.
            future.close()
            self._forget_former(is_gone=self.source.leave_behind(self.log.topic_partition))
            return 0, True
        self.log.health.check()
        size = future.catch_up(size_max)
        if future.lag_size > last_size or self.log.chain.is_swapping:
            return size, False
        future.sync()
        size += future.lag_size
        try:
            is_gone = self._directories.hand_over(self.log, self.source, self.target, self._bring)
        except _CompactionIsAtIt:
            return size, False
        future.close()
        self._forget_former(is_gone=is_gone)
        return size, True

    def _bring(self) -> None:
        """Give the copy the log's name, and switch the log to it.

        Requires: the partition lock, the sync lock, and that the target's checkpoints include the
        log.
        """
        log, target, files = self.log, self.target, self.target.directory.files
        if log.chain.is_swapping:
            raise _CompactionIsAtIt
        path = self._path
        if files.stat(path) is not None:
            raise KafkaStorageError(f"{path} is there already")
        self.future.finish()
        target.checkpoints.write_positions()
        target.checkpoints.write_high_watermarks()
        is_settled = False
        try:
            try:
                files.rename(self.future.directory, path)
            except OSError:
                is_settled = files.stat(path) is None
                raise
            files.sync_directory(target.directory.path)
            log.move_to(path, target.opener.open_files, target.checkpoints.write_positions)
        finally:
            if not is_settled and log.directory != path:
                # Refuse writes: the next open may choose the copy, which would lack them.
                reason = f"the move from {log.directory} to {path} was interrupted"
                log.health.poison(KafkaStorageError(reason))

    def _forget_former(self, *, is_gone: bool) -> None:
        """Remove the marks of the move if the former directory is gone."""
        if not is_gone:
            return
        remove_marks(self.target.directory.files, self.log.directory)
        self.source.leftovers.remove()
