"""Keeping the checkpoints of a data directory true to its logs."""

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
    """How far each log is synced, where it starts, its high watermark: told and written down.

    Thread-safe, and callable under a partition's lock. In memory nothing is written.
    """

    __slots__ = ("_checkpoints", "_is_volatile", "_lock", "_logs")

    def __init__(self, directory: OwnedDirectory, logs: Mapping[TopicPartition, Log]) -> None:
        """`logs` are those that are loaded, whoever may load or delete some meanwhile."""
        self._lock = ranked_rlock(Rank.CHECKPOINTS)
        self._logs = logs
        self._is_volatile = directory.is_volatile
        self._checkpoints = Checkpoints(
            directory.files, directory.path, directory.found, sync=directory.is_durable
        )

    def fill(self, opening: Opening) -> None:
        """Tell a log that is about to be opened what is known of it."""
        self._checkpoints.fill(opening)

    def begin(self, opening: Opening) -> None:
        """A log is about to be made: let the files know of none of that name.

        Raises:
            OSError: the disk refuses.
        """
        with self._lock:
            if self._checkpoints.forget(opening.topic_partition):
                self.write_positions()  # the deletion of its predecessor was cut short
            if opening.config.compact and not self._is_volatile:
                self._checkpoints.write_gaps()

    def forget(self, topic_partition: TopicPartition) -> None:
        """A log is gone; see `Checkpoints.forget`."""
        with self._lock:
            self._checkpoints.forget(topic_partition)

    def note_salvage(self, topic_partition: TopicPartition, end_offset: int) -> None:
        """Damage is about to be taken out of a log; see `Checkpoints.note_salvage`."""
        with self._lock:
            self._checkpoints.note_salvage(topic_partition, end_offset)

    def write_positions(self) -> bool:
        """Store the synced offset and the start offset of every log; False when nothing is new.

        Raises:
            OSError: the disk refuses.
        """
        if self._is_volatile:
            return False
        with self._lock:
            return self._checkpoints.write_positions(dict(self._logs))

    def write_high_watermarks(self) -> bool:
        """Store the high watermark of every log; False when nothing is new.

        Raises:
            OSError: the disk refuses.
        """
        if self._is_volatile:
            return False
        with self._lock:
            return self._checkpoints.write_high_watermarks(dict(self._logs))
