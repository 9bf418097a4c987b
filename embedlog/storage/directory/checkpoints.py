"""The offset checkpoints of a data directory, in Kafka's format.

A checkpoint is text: the version 0, the number of entries, then one line per entry, `topic
partition offset`. The text has no checksum: a flipped digit is another valid offset, a flipped
letter another topic. So offsets that the broker relies on have a sealed twin (`sealed_file`), which
is written before the text. The two differ if Kafka has used the directory, because it changes only
the text, or if one has rotted. Then these count:

    recovery points     the sealed ones: they can only be lower than Kafka's, and recovery from a
                        lower one only reads more
    start offsets       the sealed ones; a higher one of the text if the log's own epochs agree
                        (`start_offset`)
    cleaned offsets     the sealed ones; the text's for a log without a sealed one
    gaps                have no text, see `gaps`
    high watermarks     have no twin: this broker's leader log is committed up to its end, or up
                        to its synced offset, whatever the file says
"""

from __future__ import annotations

from embedlog.common import TopicPartition
from embedlog.errors import CorruptRecord
from embedlog.runtime.files import Files, write_whole
from embedlog.storage.events import events
from embedlog.storage.log import gaps
from embedlog.storage.paths import (
    CLEANER_OFFSETS,
    GAPS,
    HIGH_WATERMARKS,
    LOG_START_OFFSETS,
    RECOVERY_POINTS,
    SEALED,
)
from embedlog.storage.recovery import start_offset
from embedlog.storage.state_files.checkpoint_files import decode_offsets, encode_offsets
from embedlog.storage.state_files.sealed_file import read_sealed, write_sealed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from embedlog.storage.log.log import Log
    from embedlog.storage.log.opening import Opening


_SEALED = (RECOVERY_POINTS, LOG_START_OFFSETS, CLEANER_OFFSETS)
"""The checkpoints with a sealed twin. Truncations and deletions rely on their entries, and without
a cleaned offset, recovery would take gaps for rot."""


class Checkpoints:
    """The offset checkpoints of one data directory, even for logs that are not loaded.

    A damaged file counts as missing: recovery then reads more, and finds the same log.
    """

    def __init__(
        self, files: Files, directory: str, found: Iterable[TopicPartition], *, sync: bool
    ) -> None:
        """`found` are the logs in the directory, whose start may be unknown."""
        self._files = files
        self._directory = directory
        self._sync = sync
        self._written: dict[str, dict[TopicPartition, int] | None] = {}
        """Name of a checkpoint -> content of both its forms; no entry if the two differ, None after
        a failed store, which may have replaced one of the two."""
        sealed, text = self._read_both(RECOVERY_POINTS)
        self._recovery_points = sealed.offsets if sealed.exists else text.offsets
        sealed, text = self._read_both(LOG_START_OFFSETS)
        # Without a good file each start offset is stored as unknown until its log is loaded.
        self._start_offsets = (
            sealed.offsets if sealed.is_good else dict.fromkeys(found, start_offset.UNKNOWN)
        )
        self._told_start_offsets = text.offsets if text.is_good else None
        sealed, text = self._read_both(CLEANER_OFFSETS)
        self._cleaned = {**text.offsets, **sealed.offsets}
        self._told_cleaned = text.offsets
        read = self._read(GAPS + SEALED)
        self._gaps = read.offsets if read.is_good else dict.fromkeys(found, gaps.UNKNOWN)
        if read.is_good:
            self._written[GAPS] = dict(read.offsets)
        self._high_watermarks = self._read(HIGH_WATERMARKS).offsets
        self._written[HIGH_WATERMARKS] = dict(self._high_watermarks)
        self._forgotten: set[TopicPartition] = set()
        """Logs whose entries are dropped, but may still be in the files."""
        self._forget_deleted(set(found))

    def fill(self, opening: Opening) -> None:
        """Set the facts of `opening` that the checkpoints have, before its log is opened."""
        topic_partition = opening.topic_partition
        opening.recovery_point = self._recovery_points.get(topic_partition, 0)
        opening.log_start_offset = self._start_offsets.get(topic_partition, 0)
        opening.told_start_offset = self._told_start_offset(topic_partition)
        opening.high_watermark = self._high_watermarks.get(topic_partition, 0)
        opening.cleaned_offset = cleaned = self._cleaned.get(topic_partition, -1)
        opening.gaps_below = gaps.settle_gaps(
            self._files,
            opening.directory,
            self._gaps.get(topic_partition, 0),
            cleaned_offset=max(cleaned, self._told_cleaned.get(topic_partition, -1)),
            is_compacted=cleaned >= 0 or opening.config.compact,
        )

    def forget(self, topic_partition: TopicPartition) -> bool:
        """Drop the entries of a deleted log, so that a new log of its name begins at 0.

        Return whether the files may still have entries of the log. If so, call `write_positions`
        before the new log is made: otherwise, after a crash, the new log gets the old entries.
        """
        for offsets in self._all():
            if offsets.pop(topic_partition, None) is not None:
                self._forgotten.add(topic_partition)
        if self._told_start_offsets is not None:
            self._told_start_offsets.pop(topic_partition, None)
        return topic_partition in self._forgotten

    def _forget_deleted(self, present: set[TopicPartition]) -> None:
        """Drop the entries of logs that a killed process had deleted or moved away."""
        for offsets in self._all():
            for topic_partition in offsets.keys() - present:
                self.forget(topic_partition)

    def _all(self) -> tuple[dict[TopicPartition, int], ...]:
        return (
            self._recovery_points,
            self._start_offsets,
            self._high_watermarks,
            self._cleaned,
            self._told_cleaned,
            self._gaps,
        )

    def note_salvage(self, topic_partition: TopicPartition, end_offset: int) -> None:
        """Store that a log, after a salvage, may have gaps and ends at `end_offset`.

        Requires: the log is not loaded, and its segments are not changed yet.
        """
        self._cleaned[topic_partition] = max(0, self._cleaned.get(topic_partition, -1))
        self._gaps[topic_partition] = gaps.EVERYWHERE
        known = self._recovery_points.get(topic_partition, 0)
        self._recovery_points[topic_partition] = min(known, end_offset)
        self.write_gaps()
        self._write(CLEANER_OFFSETS, self._cleaned)
        self._write(RECOVERY_POINTS, self._recovery_points)

    def recovery_point(self, topic_partition: TopicPartition) -> int:
        """Return a log's recovery point, 0 if unknown."""
        return self._recovery_points.get(topic_partition, 0)

    def write_gaps(self) -> bool:
        """Store where logs have gaps; return False if the file has this content already.

        A log without an entry in the file has no gaps, so the file must exist before the first
        compacted log does.
        """
        if self._written.get(GAPS) == self._gaps:
            return False
        self._written[GAPS] = None
        gaps.write_gaps(self._files, self._directory, self._gaps)
        self._written[GAPS] = dict(self._gaps)
        return True

    def write_positions(self, logs: Mapping[TopicPartition, Log]) -> bool:
        """Store the logs' synced, cleaned and start offsets, and where they have gaps.

        A start offset is left out if it is the first segment's base offset. Return whether anything
        was new, as `write_high_watermarks` does.
        """
        for topic_partition, log in logs.items():
            if log.failure is not None:
                continue  # keep the former entries, so that recovery checks all that was synced
            self._recovery_points[topic_partition] = log.durability.synced_offset
            if log.offsets.cleaned_offset >= 0:
                self._cleaned[topic_partition] = log.offsets.cleaned_offset
            if log.offsets.gaps_below > 0:
                self._gaps[topic_partition] = log.offsets.gaps_below
            else:
                self._gaps.pop(topic_partition, None)
            first, start = log.segments[0], log.offsets.log_start_offset
            if start > first.base_offset or log.chain.doomed or first.file.is_missing:
                self._start_offsets[topic_partition] = start
            else:
                self._start_offsets.pop(topic_partition, None)
        is_new = bool(self._gaps or GAPS in self._written) and self.write_gaps()
        is_new = self._write(RECOVERY_POINTS, self._recovery_points) or is_new
        is_new = self._write(CLEANER_OFFSETS, self._cleaned) or is_new
        is_new = self._write(LOG_START_OFFSETS, self._start_offsets) or is_new
        self._forgotten.clear()
        return is_new

    def write_high_watermarks(self, logs: Mapping[TopicPartition, Log]) -> bool:
        for topic_partition, log in logs.items():
            self._high_watermarks[topic_partition] = log.offsets.high_watermark
        return self._write(HIGH_WATERMARKS, self._high_watermarks)

    def _told_start_offset(self, topic_partition: TopicPartition) -> int:
        """Return the start offset in Kafka's text; -1 if the text is missing or damaged.

        Kafka reads a -1 in the text as the first segment's base offset.
        """
        told = self._told_start_offsets
        return start_offset.UNKNOWN if told is None else told.get(topic_partition, 0)

    def _read_both(self, name: str) -> tuple[_Read, _Read]:
        sealed, text = self._read(name + SEALED), self._read(name)
        if (sealed.exists, sealed.is_good) == (text.exists, text.is_good) and (
            sealed.offsets == text.offsets
        ):
            self._written[name] = dict(text.offsets)
        return sealed, text

    def _read(self, name: str) -> _Read:
        path = f"{self._directory}/{name}"
        read = _Read()
        try:
            if name.endswith(SEALED):
                content = read_sealed(self._files, path)
            else:
                content = self._files.read(path)
            if content is not None:
                read.exists = True
                read.offsets = decode_offsets(content, path)
                read.is_good = True
        except FileNotFoundError:
            pass
        except CorruptRecord as error:
            read.exists = True
            events.warning("a checkpoint is damaged; its offsets are found without it: %s", error)
        return read

    def _write(self, name: str, offsets: dict[TopicPartition, int]) -> bool:
        """Replace the file; return False if it has this content already."""
        if self._written.get(name) == offsets:
            return False
        self._written[name] = None
        path = f"{self._directory}/{name}"
        if name in _SEALED:
            content = encode_offsets(offsets)
            write_sealed(self._files, path + SEALED, content, sync=self._sync)
        text = {
            key: self._told_start_offset(key) if offset == start_offset.UNKNOWN else offset
            for key, offset in offsets.items()
        }
        write_whole(self._files, path, encode_offsets(text), sync=False)
        self._written[name] = dict(offsets)
        return True


class _Read:
    """The content of one form of a checkpoint: empty if it is missing or damaged."""

    def __init__(self) -> None:
        self.exists = False
        self.is_good = False
        self.offsets: dict[TopicPartition, int] = {}
