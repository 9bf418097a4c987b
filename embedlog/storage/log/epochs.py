"""The leader epochs of a log's offsets, kept on disk."""

from __future__ import annotations

from embedlog import errors
from embedlog.storage import paths
from embedlog.storage.state_files.sealed_file import write_sealed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.storage.log_config import LogConfig
    from embedlog.storage.log_health import LogHealth
    from embedlog.storage.segments.chain import SegmentChain
    from embedlog.storage.state_files.leader_epochs import LeaderEpochs


class LogEpochs:
    """The leader epochs of one log. Change them under the partition lock; any thread may read.

    Each change writes the sealed file; closing the log writes Kafka's text form. A change raises
    KafkaStorageError if the disk refuses the file.
    """

    __slots__ = (
        "_chain",
        "_health",
        "_is_unsaved",
        "_keeps",
        "_syncs",
        "cache",
        "is_dirty",
        "latest",
    )

    def __init__(self, cache: LeaderEpochs, chain: SegmentChain, health: LogHealth) -> None:
        self.cache = cache
        self.latest = cache.latest_epoch
        """The leader epoch of the last records, -1 for none."""
        self.is_dirty = False
        """True if the epochs have changed since Kafka's text form was written."""
        self._is_unsaved = False
        """True if the sealed file lacks the last change; `assign` writes it again."""
        self._keeps = self._syncs = False
        self._chain = chain
        self._health = health

    def configure(self, config: LogConfig) -> None:
        self._keeps, self._syncs = config.durability != "memory", config.durability == "fsync"

    def end_offset_for(self, epoch: int) -> tuple[int, int]:
        """Return (epoch, end offset) as OffsetForLeaderEpoch answers; see `LeaderEpochs`."""
        return self.cache.end_offset_for(epoch, self._chain.end_offset)

    def assign(self, epoch: int, start_offset: int | None = None) -> None:
        """Record that the leader of `epoch` writes from `start_offset` on, by default the end."""
        if epoch < 0:
            return
        start = self._chain.end_offset if start_offset is None else start_offset
        if self.cache.assign(epoch, start) or self._is_unsaved:
            self.store()

    def lead_in(self, leader_epoch: int) -> int:
        """Record a leader's first append; return the epoch to stamp on its batches.

        That is `leader_epoch`, or a later epoch that the log began after an unclean stop.
        """
        if leader_epoch > self.latest:
            self.assign(leader_epoch)
        return self.latest

    def truncate_from_end(self, offset: int) -> None:
        if self.cache.truncate_from_end(offset):
            self.store()

    def truncate_from_start(self, offset: int) -> None:
        """Forget the epochs whose records all lie below `offset`. Only a poisoned log raises.

        If the disk is full, the file keeps these epochs for now: the next opening drops epochs
        before the log's start anyway, and a full disk must not prevent the freeing of space.
        """
        if self.cache.truncate_from_start(offset):
            try:
                self.store()
            except errors.KafkaStorageError:
                if self._health.failure is not None:
                    raise

    def truncate(self, start_offset: int, end_offset: int) -> None:
        """Keep only the epochs of [start_offset, end_offset)."""
        if self.cache.truncate_from_end(end_offset):
            self.cache.truncate_from_start(start_offset)
            self.store()
        else:
            self.truncate_from_start(start_offset)

    def clear(self) -> None:
        """Forget all epochs. The caller must then call `assign` or `store`, to write the file."""
        self.cache.clear()
        self.is_dirty, self._is_unsaved = True, self._keeps

    def store(self) -> None:
        self.is_dirty, self._is_unsaved = True, self._keeps
        if self._keeps:
            path = f"{self._chain.directory}/{paths.SEALED_LEADER_EPOCHS}"
            try:
                write_sealed(self._chain.files, path, self.cache.encode(), sync=self._syncs)
            except OSError as error:
                raise self._health.refused(error) from error
        self.latest = self.cache.latest_epoch
        self._is_unsaved = False
