"""Removing damage from a log: every good batch stays at its offset, even behind the damage.

Lost records leave a gap in the offsets, as compaction does: the log is marked as having gaps (see
`log/gaps.py`), and readers continue behind them. Nothing is deleted: before a segment is rewritten,
its file is copied to a quarantine file. The segment's indexes are removed, and made again from its
batches.

The checksum of a batch does not cover its offset and epoch, which may have rotted. So a batch with
a right checksum is good only if its offset follows the previous batch's. Directly behind
damage it is good if the next batch's offset follows its own.
"""

from __future__ import annotations

from embedlog.errors import CorruptRecord
from embedlog.runtime.files import Files, read_view, write_fully
from embedlog.storage import paths
from embedlog.storage.recovery.torn_write import is_torn
from embedlog.storage.segments.scan import is_epoch_of, is_zeros, next_good_batch, read_batch
from embedlog.storage.state_files.leader_epochs import LeaderEpochs, read_epochs
from wire.records.format import LOG_OVERHEAD

_FOR_EVER = 1 << 62


class SegmentPlan:
    """The parts of a segment that stay."""

    def __init__(self, base_offset: int, view: memoryview) -> None:
        self.base_offset = base_offset
        self.view = view
        self.kept: list[tuple[int, int]] = []
        """[begin, end) of each part that stays, in order."""
        self.bytes_lost = 0
        """Number of bytes that are in no good batch, not counting zeros at the file's end."""

    def keep(self, position: int, size: int) -> None:
        if self.kept and self.kept[-1][1] == position:
            self.kept[-1] = self.kept[-1][0], position + size
        else:
            self.kept.append((position, position + size))


class SalvagePlan:
    """The plan of a salvage of one log; `apply` carries it out.

    `lost` are the offset ranges [first, last] of records that are in no good batch.
    """

    def __init__(
        self, files: Files, directory: str, *, gaps_below: int, recovery_point: int, clean: bool
    ) -> None:
        """Read the log in `directory`. Requires: no process has it open.

        Below `gaps_below` offsets need not be contiguous. If the log was not closed cleanly, a torn
        write at its end, behind `recovery_point`, stays: recovery cuts it off.
        """
        self._files = files
        self._directory = directory
        self._gaps_below = gaps_below
        self._is_clean = clean
        self._recovery_point = recovery_point
        self._epochs = self._load_epochs()
        self._last_epoch = -1
        self._after_damage = False
        self.segments: list[SegmentPlan] = []
        self.lost: list[tuple[int, int]] = []
        self.batch_count = 0
        self.end_offset = -1
        self._look()

    @property
    def is_needed(self) -> bool:
        return bool(self.lost) or any(each.bytes_lost for each in self.segments)

    def _load_epochs(self) -> LeaderEpochs | None:
        try:
            return read_epochs(self._files, self._directory)
        except CorruptRecord:
            return None

    def _look(self) -> None:
        bases = paths.segment_bases(self._files.list(self._directory))
        for slot, base in enumerate(bases):
            is_last = slot + 1 == len(bases)
            if self.end_offset < 0:
                self.end_offset = base
            elif self.end_offset < base and base > self._gaps_below:
                self._after_damage = True
            self._look_at(base, _FOR_EVER if is_last else bases[slot + 1], is_last)
        if bases and self.end_offset < self._recovery_point:
            self.lost.append((self.end_offset, self._recovery_point - 1))

    def _look_at(self, base: int, limit: int, is_last: bool) -> None:
        """Choose the good batches of a segment, all below offset `limit`."""
        view = read_view(self._files, paths.segment_file(self._directory, base))
        plan = SegmentPlan(base, view)
        position, size = 0, len(view)
        while position < size:
            found = read_batch(view, position, size)
            if isinstance(found, str):
                if is_zeros(view[position:]):
                    break
                if is_last and self._is_unfinished(view, position):
                    plan.keep(position, size - position)
                    break
                following = self._next(view, position)
                plan.bytes_lost += (size if following is None else following) - position
                self._after_damage = True
                if following is None:
                    break
                position = following
                continue
            if self._fits(view, position, found, max(base, self.end_offset), limit):
                self._take(plan, position, found)
            else:
                plan.bytes_lost += found[0]
                self._after_damage = True
            position += found[0]
        self.segments.append(plan)

    def _next(self, view: memoryview, position: int) -> int | None:
        """Return where the next good batch after the bad one at `position` begins, or None.

        If a good batch begins where the bad one ends by its length field, return that. A search
        could find bytes like a batch in a value of the bad batch.
        """
        length = int.from_bytes(view[position + 8 : position + LOG_OVERHEAD], "big", signed=True)
        end = position + LOG_OVERHEAD + length
        if position < end < len(view) and not isinstance(read_batch(view, end, len(view)), str):
            return end
        return next_good_batch(view, position + 1, self.end_offset)

    def _take(self, plan: SegmentPlan, position: int, found: tuple[int, ...]) -> None:
        size, first, last, _, epoch = found
        if first > self.end_offset and self._after_damage:
            self.lost.append((self.end_offset, first - 1))
        plan.keep(position, size)
        self.batch_count += 1
        self.end_offset = last + 1
        self._last_epoch = epoch
        self._after_damage = False

    def _fits(
        self, view: memoryview, position: int, found: tuple[int, ...], expected: int, limit: int
    ) -> bool:
        """Whether a batch with a right checksum has offsets and an epoch that fit its place."""
        size, first, last, _, epoch = found
        if not expected <= first <= last < limit:
            return False
        if not is_epoch_of(epoch, first, self._last_epoch, self._epochs):
            return False
        if first == expected or first <= self._gaps_below:
            return True
        if not self._after_damage:
            return False
        # Behind damage there is no previous batch to compare with: compare with the next one.
        following = read_batch(view, position + size, len(view))
        return isinstance(following, str) or following[1] == last + 1

    def _is_unfinished(self, view: memoryview, position: int) -> bool:
        """Whether the bytes from `position` on are a torn write, which recovery cuts off."""
        return (
            not self._is_clean
            and self.end_offset >= self._recovery_point
            and next_good_batch(view, position + 1, self.end_offset) is None
            and is_torn(view, position)
        )

    def apply(self) -> list[str]:
        """Rewrite damaged segments; return the quarantine files of their former content.

        After a crash in between each segment is whole, either old or new, and the copies remain.

        Raises:
            OSError: the disk refuses; the other segments are unchanged.
        """
        made = []
        for plan in self.segments:
            if plan.bytes_lost:
                made.append(self._quarantine(plan))
                self._replace(plan)
        return made

    def _quarantine(self, plan: SegmentPlan) -> str:
        position = 0
        while True:
            path = paths.quarantine_file(self._directory, plan.base_offset, position)
            if self._files.stat(path) is None:
                break
            position += 1  # an earlier salvage made a file of this name
        self._write(path, [plan.view])
        return path

    def _replace(self, plan: SegmentPlan) -> None:
        for suffix in paths.SIDECARS:
            path = paths.segment_file(self._directory, plan.base_offset, suffix)
            if self._files.stat(path) is not None:
                self._files.remove(path)
        path = paths.segment_file(self._directory, plan.base_offset)
        self._write(path, [plan.view[start:end] for start, end in plan.kept])

    def _write(self, path: str, pieces: list[memoryview]) -> None:
        temporary = path + paths.TEMPORARY
        file = self._files.open(temporary, create=True)
        file.truncate(0)
        write_fully(file.write, pieces, 0)
        file.sync()
        file.close()
        self._files.rename(temporary, path)
        self._files.sync_directory(self._directory)
