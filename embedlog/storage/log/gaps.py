"""The offset below which a log's offsets may have gaps: its `gaps_below`.

Compaction leaves gaps between batches. A lost batch, or a rotten base offset, makes one as well. So
each log has an offset up to which compaction may have run; behind it a gap is damage. One sealed
file has these offsets of all logs. It is synced before a compacted segment takes its place, and
before a follower appends a batch behind a gap of its leader's. Opening a log bounds its offset by
the log's end, because later records continue there.

    the file's entry of the log        gaps may be
    an offset                          below it, and below the cleaner's checkpoint
    nothing                            below the cleaner's checkpoint, if that has one
    UNKNOWN                            everywhere if the log was compacted, or its topic is
    any, and Kafka has used the        the same: an interrupted compaction of Kafka's is in no
    log since                          checkpoint

If the file is missing or damaged, the entry of every existing log is UNKNOWN.
"""

from __future__ import annotations

from embedlog.errors import CorruptRecord
from embedlog.storage import paths
from embedlog.storage.state_files.checkpoint_files import encode_offsets, read_text, read_twin
from embedlog.storage.state_files.leader_epochs import (
    UNDEFINED_EPOCH,
    read_epochs,
    read_epochs_text,
)
from embedlog.storage.state_files.sealed_file import write_sealed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from embedlog.common import TopicPartition
    from embedlog.runtime.files import Files

UNKNOWN = -1
EVERYWHERE = (1 << 63) - 1


def write_gaps(files: Files, data: str, offsets: Mapping[TopicPartition, int]) -> None:
    """Replace the file, synced at every level: a compacted segment may survive a loss of power."""
    path = f"{data}/{paths.GAPS}{paths.SEALED}"
    write_sealed(files, path, encode_offsets(offsets), sync=True)


def settle_gaps(
    files: Files, directory: str, known: int, *, cleaned_offset: int, is_compacted: bool
) -> int:
    """Return the offset below which the log in `directory` may have gaps, 0 for nowhere.

    `known` is the file's entry; `is_compacted` if the log or its topic is compacted.
    """
    if known != UNKNOWN and not (is_compacted and _was_used_by_kafka(files, directory)):
        return max(known, cleaned_offset)
    return EVERYWHERE if is_compacted else 0


def read_gaps_below(files: Files, data: str, topic_partition: TopicPartition) -> int:
    """As `settle_gaps`, for a log that is not open: the topic's settings are unknown."""
    known, cleaned = UNKNOWN, UNKNOWN
    try:
        offsets = read_twin(files, data, paths.GAPS)
        known = UNKNOWN if offsets is None else offsets.get(topic_partition, 0)
    except CorruptRecord:
        pass
    for read in (read_text, read_twin):
        try:
            found = read(files, data, paths.CLEANER_OFFSETS) or {}
        except CorruptRecord:
            continue
        cleaned = max(cleaned, found.get(topic_partition, UNKNOWN))
    directory = paths.log_directory(data, topic_partition)
    is_compacted = cleaned >= 0
    return settle_gaps(files, directory, known, cleaned_offset=cleaned, is_compacted=is_compacted)


def _was_used_by_kafka(files: Files, directory: str) -> bool:
    """Whether Kafka's form of the epoch cache has later epochs than ours, or ours is unreadable."""
    try:
        text = read_epochs_text(files, directory)
    except CorruptRecord:
        return False
    told = UNDEFINED_EPOCH if text is None else text.latest_epoch
    if told == UNDEFINED_EPOCH:
        return False  # a loss of power leaves an empty file as well: it does not prove a use
    try:
        epochs = read_epochs(files, directory)
    except CorruptRecord:
        return True
    sealed = UNDEFINED_EPOCH if epochs is None else epochs.latest_epoch
    return told > sealed
