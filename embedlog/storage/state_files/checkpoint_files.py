"""Offset checkpoints: their format, and reading the files of a directory that another process has.

`directory.checkpoints` describes the two forms of a checkpoint, text and sealed.
"""

from __future__ import annotations

from embedlog.common import TopicPartition
from embedlog.errors import CorruptRecord
from embedlog.storage import paths
from embedlog.storage.state_files.sealed_file import read_sealed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from embedlog.runtime.files import Files

NAMES = (
    paths.RECOVERY_POINTS,
    paths.LOG_START_OFFSETS,
    paths.HIGH_WATERMARKS,
    paths.CLEANER_OFFSETS,
)
WITH_TWIN = tuple(name for name in NAMES if name != paths.HIGH_WATERMARKS)
"""The checkpoints that have a sealed form beside Kafka's text."""
_VERSION = "0"


def decode_offsets(content: bytes, path: str) -> dict[TopicPartition, int]:
    """Read the content of an offset checkpoint; an empty one has no entries.

    Raises:
        CorruptRecord: another version, a malformed line, or a wrong count.
    """
    if not content:
        return {}
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
    """Return the content of an offset checkpoint."""
    lines = [_VERSION, str(len(offsets))]
    lines += [f"{topic} {partition} {offset}" for (topic, partition), offset in offsets.items()]
    return ("\n".join(lines) + "\n").encode()


def read_text(files: Files, data: str, name: str) -> dict[TopicPartition, int] | None:
    """Read the text form of a checkpoint; None if it is missing, CorruptRecord if malformed."""
    path = f"{data}/{name}"
    try:
        return decode_offsets(files.read(path), path)
    except FileNotFoundError:
        return None


def read_twin(files: Files, data: str, name: str) -> dict[TopicPartition, int] | None:
    """Read the sealed form of a checkpoint; None if it is missing, CorruptRecord if damaged."""
    path = f"{data}/{name}{paths.SEALED}"
    content = read_sealed(files, path)
    return None if content is None else decode_offsets(content, path)


def read_offsets(files: Files, data: str, name: str) -> dict[TopicPartition, int]:
    """Read the sealed form; if it is missing or damaged, the text form; if that is too, {}."""
    for read in (read_twin, read_text):
        try:
            found = read(files, data, name)
        except CorruptRecord:
            continue
        if found is not None:
            return found
    return {}
