"""The offset below which a log's offsets may have gaps: its `gaps_below`.

Compaction leaves gaps between batches. A lost batch or a damaged base offset leaves one as well. To
tell them apart, each log has an offset below which compaction may have run; a gap above it is
damage. One sealed file has these offsets of all logs of a data directory. It is synced before a
compacted segment is put in place, and before a follower appends a batch after a gap in its leader's
log. Opening a log lowers its `gaps_below` to the log's end, because appends leave no gaps.

    the log's entry in the file    gaps may be
    an offset                      below it, and below the offset in the cleaner's checkpoint
    none                           below the offset in the cleaner's checkpoint, if there is one
    UNKNOWN                        everywhere if the log was compacted or its topic is compacted,
                                   else nowhere
    any, if Kafka has used the     as for UNKNOWN if the log or its topic is compacted: no
    log since                      checkpoint shows a compaction by Kafka that was interrupted

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
    """Replace the file and sync it at every durability.

    A compacted segment may survive a loss of power, so the file must as well.
    """
    path = f"{data}/{paths.GAPS}{paths.SEALED}"
    write_sealed(files, path, encode_offsets(offsets), sync=True)


def settle_gaps(
    files: Files, directory: str, known: int, *, cleaned_offset: int, is_compacted: bool
) -> int:
    """Return the offset below which the log in `directory` may have gaps; 0 if it has none.

    `known` is the log's entry in the file. `is_compacted` is True if the log was compacted or its
    topic is.
    """
    if known != UNKNOWN and not (is_compacted and _was_used_by_kafka(files, directory)):
        return max(known, cleaned_offset)
    return EVERYWHERE if is_compacted else 0


def read_gaps_below(files: Files, data: str, topic_partition: TopicPartition) -> int:
    """Return the offset below which a log that is not open may have gaps.

    The topic's settings are unknown, so only the cleaner's checkpoint tells if it is compacted.
    """
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
    """Whether Kafka has used the log since embedlog did.

    That is so if the epochs in Kafka's text file are later than in the sealed one, or the sealed
    one is unreadable.
    """
    try:
        text = read_epochs_text(files, directory)
    except CorruptRecord:
        return False
    told = UNDEFINED_EPOCH if text is None else text.latest_epoch
    if told == UNDEFINED_EPOCH:
        return False  # a loss of power leaves an empty file as well, so it proves nothing
    try:
        epochs = read_epochs(files, directory)
    except CorruptRecord:
        return True
    return told > (UNDEFINED_EPOCH if epochs is None else epochs.latest_epoch)
