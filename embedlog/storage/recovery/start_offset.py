"""Deciding where a log begins, by its checkpoint and its epoch cache.

Records below the start offset were deleted, but are still in the files if their segment holds later
records. A wrong start offset hides records or brings deleted ones back. The epoch cache of the log
helps to find a wrong one: a deletion removes the epochs of its records, so the first epoch begins
at the start offset, or behind it if the first records have no epoch (magic 0 and 1).
"""

from __future__ import annotations

from embedlog.errors import CorruptRecord
from embedlog.storage import paths
from embedlog.storage.degradation import DAMAGED, Degradation
from embedlog.storage.events import events
from embedlog.storage.state_files.leader_epochs import LeaderEpochs, read_epochs_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.storage.log.opening import Opening

UNKNOWN = -1


def settle_start_offset(opening: Opening, epochs: LeaderEpochs | None, end: int | None) -> None:
    """Set `opening.log_start_offset` by the two forms of the checkpoint and by `epochs`.

        sealed form    text form                                        start offset
        good           higher, and Kafka's epochs begin there as well   of the text
        good           anything else                                    of the sealed form
        missing        not behind the first epoch nor the log's end     of the text
        missing        anything else                                    of the first epoch, or 0

    A damaged form counts as missing. `end` is the log's end, None if it has no segment.
    """
    sealed, told = opening.log_start_offset, opening.told_start_offset
    if sealed != UNKNOWN:
        if told > sealed and told == _first_offset(_epochs_of_kafka(opening)):
            opening.log_start_offset = told
        elif told not in (sealed, UNKNOWN):
            _tell(opening, f"{told}, the sealed form {sealed}, which is believed")
        return
    first = _first_offset(epochs)
    if told == UNKNOWN:
        opening.log_start_offset = max(first, 0)
    elif (end is not None and told > end) or (first != UNKNOWN and told > first):
        opening.log_start_offset = max(first, 0)
        reason = f"{told}, the first leader epoch begins at {first}, and the log ends at {end}"
        _tell(opening, reason)
        if first == UNKNOWN:
            opening.degradations.append(
                Degradation(
                    DAMAGED,
                    str(opening.topic_partition),
                    since_ms=opening.runtime.clock.wall_ms(),
                    reason=f"deleted records may be back: {paths.LOG_START_OFFSETS} says {reason}",
                )
            )
    else:
        opening.log_start_offset = told


def _tell(opening: Opening, reason: str) -> None:
    events.warning("%s: %s says %s", opening.topic_partition, paths.LOG_START_OFFSETS, reason)


def _first_offset(epochs: LeaderEpochs | None) -> int:
    return epochs.entries[0][1] if epochs is not None and epochs.entries else UNKNOWN


def _epochs_of_kafka(opening: Opening) -> LeaderEpochs | None:
    try:
        return read_epochs_text(opening.open_files.files, opening.directory)
    except CorruptRecord:
        return None
