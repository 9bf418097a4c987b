"""Updating the checkpoints of a data directory from its logs."""

from __future__ import annotations

from embedlog.runtime.locks import Rank, ranked_rlock
from embedlog.storage.directory.checkpoints import Checkpoints

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from embedlog.common import TopicPartition
    from embedlog.storage.directory.owned_directory import OwnedDirectory
    from embedlog.storage.log.log import Log
    from embedlog.storage.log.opening import Opening


class LogCheckpoints:
    """The checkpoints of all logs: synced offset, start offset, high watermark.

    Thread-safe; the caller may hold a partition's lock. For a directory in memory nothing is
    written.
    """

    def __init__(self, directory: OwnedDirectory, logs: Mapping[TopicPartition, Log]) -> None:
        """`logs` are the loaded ones; the mapping may change at any time."""
        self._lock = ranked_rlock(Rank.CHECKPOINTS)
        self._logs = logs
        self._is_volatile = directory.is_volatile
        self._checkpoints = Checkpoints(
            directory.files, directory.path, directory.found, sync=directory.is_durable
        )

    def fill(self, opening: Opening) -> None:
        self._checkpoints.fill(opening)

    def begin(self, opening: Opening) -> None:
        """Remove the entries of a deleted log from the files, before a log of its name is made."""
        with self._lock:
            if self._checkpoints.forget(opening.topic_partition):
                self.write_positions()  # the deletion of a log of this name was interrupted
            if opening.config.compact and not self._is_volatile:
                self._checkpoints.write_gaps()

    def forget(self, topic_partition: TopicPartition) -> None:
        """Drop the entries of a log; see `Checkpoints.forget`."""
        with self._lock:
            self._checkpoints.forget(topic_partition)

    def note_salvage(self, topic_partition: TopicPartition, end_offset: int) -> None:
        """Store that a log is about to be salvaged; see `Checkpoints.note_salvage`."""
        with self._lock:
            self._checkpoints.note_salvage(topic_partition, end_offset)

    def write_positions(self, *, also_volatile: bool = False) -> bool:
        """Store every log's synced offset and start offset; return False if nothing is new.

        `also_volatile`: also in a directory whose files end with the process.
        """
        if self._is_volatile and not also_volatile:
            return False
        with self._lock:
            return self._checkpoints.write_positions(dict(self._logs))

    def write_high_watermarks(self) -> bool:
        """Store the high watermark of every log; return False if nothing is new."""
        if self._is_volatile:
            return False
        with self._lock:
            return self._checkpoints.write_high_watermarks(dict(self._logs))
