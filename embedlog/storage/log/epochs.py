"""The leader epochs of a log's offsets, kept on disk."""

from __future__ import annotations

from embedlog import errors
from embedlog.storage import paths
from embedlog.storage.state_files.sealed_file import write_sealed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from embedlog.storage.log_config import LogConfig
    from embedlog.storage.log_health import LogHealth
    from embedlog.storage.segments.chain import SegmentChain
    from embedlog.storage.state_files.leader_epochs import LeaderEpochs


UNSTORED = -2


class LogEpochs:
    """The leader epochs of one log. Change them under the partition lock; any thread may read.

    Each change writes the sealed file; closing the log writes Kafka's text form. If the disk
    refuses the file, the change counts in memory and the call raises KafkaStorageError. Every later
    change writes the file again, and so does `save`. Until then no record is appended, because
    after a crash its epoch would be taken for rot.
    """

    __slots__ = ("_chain", "_health", "_keeps", "_syncs", "cache", "is_dirty", "refusal", "stored")

    def __init__(self, cache: LeaderEpochs, chain: SegmentChain, health: LogHealth) -> None:
        """`compare` must follow if there are files."""
        self.cache = cache
        self.stored = UNSTORED if cache.entries else cache.latest_epoch
        """The epoch of the last records, -1 for none; UNSTORED while the sealed file lacks the last
        change. An append of another epoch must call `lead_in` or `follow` first."""
        self.is_dirty = bool(cache.entries)
        """True if the epochs differ from Kafka's text form."""
        self.refusal: tuple[int, OSError] | None = None
        """(wall time, error) if the disk has refused the sealed file, until the file is written."""
        self._keeps = self._syncs = False
        self._chain = chain
        self._health = health

    def configure(self, config: LogConfig) -> None:
        self._keeps, self._syncs = config.durability != "memory", config.durability == "fsync"

    def compare(self, sealed: Sequence[tuple[int, int]], text: Sequence[tuple[int, int]]) -> None:
        """Note which of the two files, with these entries, has to be written again."""
        entries = self.cache.entries
        self.stored = self.latest if list(sealed) == entries else UNSTORED
        self.is_dirty = list(text) != entries

    @property
    def latest(self) -> int:
        """The leader epoch of the last records, -1 for none."""
        return self.cache.latest_epoch

    @property
    def is_unsaved(self) -> bool:
        """True if the sealed file lacks the last change."""
        return self.stored == UNSTORED

    def end_offset_for(self, epoch: int) -> tuple[int, int]:
        """Return (epoch, end offset) as OffsetForLeaderEpoch answers; see `LeaderEpochs`."""
        return self.cache.end_offset_for(epoch, self._chain.end_offset)

    def assign(self, epoch: int, start_offset: int | None = None) -> None:
        """Record that the leader of `epoch` writes from `start_offset` on, by default the end."""
        if epoch >= 0:
            start = self._chain.end_offset if start_offset is None else start_offset
            self._changed(self.cache.assign(epoch, start))

    def lead_in(self, leader_epoch: int) -> int:
        """Record a leader's first append; return the epoch to stamp on its batches.

        That is `leader_epoch`, or a later epoch that the log began after an unclean stop.
        """
        return self.follow(leader_epoch, self._chain.end_offset)

    def follow(self, epoch: int, start_offset: int) -> int:
        """Record a batch of the leader of `epoch` at `start_offset`; return the latest epoch."""
        self._changed(epoch > self.latest and self.cache.assign(epoch, start_offset))
        return self.latest

    def truncate_from_end(self, offset: int) -> None:
        self._changed(self.cache.truncate_from_end(offset))

    def truncate_from_start(self, offset: int) -> None:
        """Forget the epochs whose records all lie below `offset`. Only a poisoned log raises.

        If the disk is full, the file keeps these epochs for now: the next opening drops epochs
        before the log's start anyway, and a full disk must not prevent the freeing of space.
        """
        try:
            self._changed(self.cache.truncate_from_start(offset))
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
        self.is_dirty, self.stored = True, UNSTORED

    def save(self) -> None:
        """Write the sealed file if it lacks the last change."""
        self._changed(False)

    def store(self) -> None:
        self.is_dirty, self.stored = True, UNSTORED
        if self._keeps:
            path = f"{self._chain.directory}/{paths.SEALED_LEADER_EPOCHS}"
            try:
                write_sealed(self._chain.files, path, self.cache.encode(), sync=self._syncs)
            except OSError as error:
                if self.refusal is None:
                    self.refusal = (self._health.wall_ms(), error)
                raise self._health.refused(error) from error
        self.stored, self.refusal = self.cache.latest_epoch, None

    def _changed(self, has_changed: bool) -> None:
        if has_changed or self.stored == UNSTORED:
            self.store()
