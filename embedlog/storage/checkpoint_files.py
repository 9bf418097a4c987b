"""Reading the offset checkpoints of a directory that somebody else may own."""

from __future__ import annotations

from embedlog.errors import CorruptRecord
from embedlog.storage import paths
from embedlog.storage.checkpoints import decode_offsets
from embedlog.storage.sealed_file import read_sealed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.common import TopicPartition
    from embedlog.runtime.files import Files

NAMES = (
    paths.RECOVERY_POINTS,
    paths.LOG_START_OFFSETS,
    paths.HIGH_WATERMARKS,
    paths.CLEANER_OFFSETS,
)
WITH_TWIN = tuple(name for name in NAMES if name != paths.HIGH_WATERMARKS)
"""Those that have a sealed form beside Kafka's."""


def read_text(files: Files, data: str, name: str) -> dict[TopicPartition, int] | None:
    """Kafka's form of a checkpoint; None when there is none.

    Raises:
        CorruptRecord: it is malformed.
    """
    path = f"{data}/{name}"
    try:
        return decode_offsets(files.read(path), path)
    except FileNotFoundError:
        return None


def read_twin(files: Files, data: str, name: str) -> dict[TopicPartition, int] | None:
    """The sealed form of a checkpoint; None when there is none.

    Raises:
        CorruptRecord: it is not what was written.
    """
    path = f"{data}/{name}{paths.SEALED}"
    content = read_sealed(files, path)
    return None if content is None else decode_offsets(content, path)


def read_offsets(files: Files, data: str, name: str) -> dict[TopicPartition, int]:
    """The sealed form, else Kafka's, else nothing: what is damaged counts as missing."""
    for read in (read_twin, read_text):
        try:
            found = read(files, data, name)
        except CorruptRecord:
            continue
        if found is not None:
            return found
    return {}
