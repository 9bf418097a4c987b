"""Small state files of a data directory, in Kafka's formats.

An offset checkpoint is text: the version 0, the number of entries, then one line per entry,
`topic partition offset`. meta.properties is Java properties text. The clean shutdown marker is
JSON, of which Kafka reads two fields and ignores the others.
"""

from __future__ import annotations

from embedlog.common import TopicPartition
from embedlog.errors import CorruptRecord
from embedlog.runtime.files import write_whole
from embedlog.storage.paths import (
    CLEANER_OFFSETS,
    HIGH_WATERMARKS,
    LOG_START_OFFSETS,
    RECOVERY_POINTS,
    SEALED_RECOVERY_POINTS,
)
from embedlog.storage.sealed_file import read_sealed, write_sealed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from embedlog.runtime.files import Files
    from embedlog.storage.log import Log
    from embedlog.storage.opening import Opening

_VERSION = "0"


def read_offsets(files: Files, path: str) -> dict[TopicPartition, int]:
    """The entries of an offset checkpoint; none when the file is missing or empty.

    Raises:
        CorruptRecord: another version, a malformed line, or a wrong count.
    """
    try:
        content = files.read(path)
    except FileNotFoundError:
        return {}
    if not content:
        return {}
    return decode_offsets(content, path)


def decode_offsets(content: bytes, path: str) -> dict[TopicPartition, int]:
    """Read the content of an offset checkpoint.

    Raises:
        CorruptRecord: another version, a malformed line, or a wrong count.
    """
    try:
        lines = content.decode("utf-8").split("\n")
        if lines[0].strip() != _VERSION:
            raise CorruptRecord(path, 0, f"version {lines[0]!r}, expected {_VERSION}")
        offsets = {}
        for line in lines[2:]:
            if line:
                topic, partition, offset = line.split()
                offsets[TopicPartition(topic, int(partition))] = int(offset)
        if len(offsets) != int(lines[1]):
            raise CorruptRecord(path, 0, f"{len(offsets)} entries, expected {lines[1]}")
    except (ValueError, IndexError) as error:
        raise CorruptRecord(path, 0, f"malformed: {error}") from None
    return offsets


def encode_offsets(offsets: Mapping[TopicPartition, int]) -> bytes:
    """The content of an offset checkpoint."""
    lines = [_VERSION, str(len(offsets))]
    lines += [f"{topic} {partition} {offset}" for (topic, partition), offset in offsets.items()]
    return ("\n".join(lines) + "\n").encode()


def read_properties(files: Files, path: str) -> dict[str, str]:
    """The entries of a properties file; none when it is missing."""
    try:
        content = files.read(path)
    except FileNotFoundError:
        return {}
    properties = {}
    for line in content.decode("utf-8", "replace").splitlines():
        name, separator, value = line.strip().partition("=")
        if separator and not name.startswith(("#", "!")):
            properties[name.strip()] = value.strip()
    return properties


def write_properties(files: Files, path: str, properties: Mapping[str, str], *, sync: bool) -> None:
    """Replace a properties file."""
    lines = ["#", *(f"{name}={value}" for name, value in properties.items())]
    write_whole(files, path, ("\n".join(lines) + "\n").encode(), sync=sync)


class Checkpoints:
    """The offset checkpoints of one data directory, kept also for logs that are not loaded.

    A damaged file counts as empty: recovery then reads more, and finds the same.
    """

    __slots__ = (
        "_cleaned",
        "_directory",
        "_files",
        "_forgotten",
        "_high_watermarks",
        "_recovery_points",
        "_start_offsets",
        "_sync",
        "_written",
    )

    def __init__(self, files: Files, directory: str, *, sync: bool) -> None:
        self._files = files
        self._directory = directory
        self._sync = sync
        self._recovery_points = self._read_recovery_points()
        self._start_offsets = self._read(LOG_START_OFFSETS)
        self._high_watermarks = self._read(HIGH_WATERMARKS)
        self._cleaned = self._read(CLEANER_OFFSETS)
        self._forgotten: set[TopicPartition] = set()
        """Whose entries are dropped, but may still be in the files."""
        self._written = {
            LOG_START_OFFSETS: dict(self._start_offsets),
            HIGH_WATERMARKS: dict(self._high_watermarks),
            CLEANER_OFFSETS: dict(self._cleaned),
        }

    def fill(self, opening: Opening) -> None:
        """Tell a log that is about to be opened what is known of it."""
        topic_partition = opening.topic_partition
        opening.recovery_point = self._recovery_points.get(topic_partition, 0)
        opening.log_start_offset = self._start_offsets.get(topic_partition, 0)
        opening.high_watermark = self._high_watermarks.get(topic_partition, 0)
        opening.cleaned_offset = self._cleaned.get(topic_partition, -1)

    def forget(self, topic_partition: TopicPartition) -> bool:
        """Drop the entries of a log that is gone: a new one of its name begins at 0.

        Returns whether the files may have some until the positions are written: whoever makes the
        new log must do that first, or a crash makes the old one's entries those of the new.
        """
        for offsets in (
            self._recovery_points,
            self._start_offsets,
            self._high_watermarks,
            self._cleaned,
        ):
            if offsets.pop(topic_partition, None) is not None:
                self._forgotten.add(topic_partition)
        return topic_partition in self._forgotten

    def write_positions(self, logs: Mapping[TopicPartition, Log]) -> bool:
        """Store synced, cleaned and start offsets (those that no segment's name tells).

        Returns whether there was anything new, as `write_high_watermarks` does.
        """
        for topic_partition, log in logs.items():
            if log.failure is not None:
                continue  # what was promised before is what recovery must look for
            self._recovery_points[topic_partition] = log.synced_offset
            if log.cleaned_offset >= 0:
                self._cleaned[topic_partition] = log.cleaned_offset
            if log.log_start_offset > log.segments[0].base_offset:
                self._start_offsets[topic_partition] = log.log_start_offset
            else:
                self._start_offsets.pop(topic_partition, None)
        is_new = self._write(RECOVERY_POINTS, self._recovery_points)
        is_new = self._write(CLEANER_OFFSETS, self._cleaned) or is_new
        is_new = self._write(LOG_START_OFFSETS, self._start_offsets) or is_new
        self._forgotten.clear()
        return is_new

    def write_high_watermarks(self, logs: Mapping[TopicPartition, Log]) -> bool:
        """Store high watermarks."""
        for topic_partition, log in logs.items():
            self._high_watermarks[topic_partition] = log.high_watermark
        return self._write(HIGH_WATERMARKS, self._high_watermarks)

    def _read_recovery_points(self) -> dict[TopicPartition, int]:
        """The sealed ones; none if they are damaged, Kafka's if there never were any."""
        try:
            content = read_sealed(self._files, f"{self._directory}/{SEALED_RECOVERY_POINTS}")
            if content is None:
                return self._read(RECOVERY_POINTS)
            return decode_offsets(content, SEALED_RECOVERY_POINTS)
        except CorruptRecord:
            return {}

    def _read(self, name: str) -> dict[TopicPartition, int]:
        try:
            return read_offsets(self._files, f"{self._directory}/{name}")
        except CorruptRecord:
            return {}

    def _write(self, name: str, offsets: dict[TopicPartition, int]) -> bool:
        """Replace the file; False when it says that already, and is left alone."""
        if self._written.get(name) == offsets:
            return False
        path = f"{self._directory}/{name}"
        content = encode_offsets(offsets)
        # A truncation and a deletion of records rely on what they have lowered or raised here.
        if name == RECOVERY_POINTS:
            sealed = f"{self._directory}/{SEALED_RECOVERY_POINTS}"
            write_sealed(self._files, sealed, content, sync=self._sync)
        # Gaps in the offsets are taken for rot when no cleaned offset tells of compaction.
        sync = self._sync and name in (LOG_START_OFFSETS, CLEANER_OFFSETS)
        write_whole(self._files, path, content, sync=sync)
        self._written[name] = dict(offsets)
        return True
