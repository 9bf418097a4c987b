"""The tests of moves find planted bugs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from embedlog.errors import EmbedlogError
from embedlog.storage.directory import log_manager
from embedlog.storage.directory.log_manager import LogManager
from embedlog.storage.log.log import Log
from embedlog.storage.relocation import leftovers
from embedlog.storage.relocation.future_log import FutureLog
from embedlog.storage.segments.segment_file import SegmentFile
from tests.simulation.planted import Bug, instead
from tests.storage.relocation.test_crash import (
    test_a_killed_owner_leaves_the_log_in_one_of_the_two as killed,
)
from tests.storage.relocation.test_crash import (
    test_a_loss_of_power_leaves_the_log_in_one_of_the_two as without_power,
)
from tests.storage.relocation.test_crash import (
    test_what_cannot_be_removed_is_known_for_the_older_one as removed,
)
from tests.storage.relocation.test_crash import (
    test_what_is_deleted_after_a_move_stays_deleted as deleted,
)
from tests.storage.relocation.test_relocation import (
    test_what_happens_meanwhile_has_happened_there as meanwhile,
)
from tests.storage.relocation.test_relocation import (
    test_who_reads_a_former_segment_reads_on as read_on,
)

STEP = 9


def what_was_cut_stays_in_the_copy(_right: Any, _future: Any, _segments: Any) -> None:
    return


def the_copy_is_not_synced(_right: Any, _future: Any, _segment: Any, _copied: Any) -> None:
    return


def nothing_tells_of_two(_right: Any, *_which: Any) -> list[Any]:
    return []


def the_older_one_is_taken(right: Any, topic_partition: Any, managers: Any, known: Any) -> Any:
    newest = right(topic_partition, managers, known)
    return next(each for each in managers if each is not newest)


def nobody_notes_the_newer_one(_right: Any, _log: Any) -> None:
    return


def what_was_left_is_not_given_away(_right: Any, _manager: Any, _topic_partition: Any) -> bool:
    return True


def the_checkpoints_are_kept_here(
    right: Any, log: Any, directory: str, files: Any, _to: Any
) -> None:
    right(log, directory, files, log.offsets._checkpoint)


def readers_keep_to_the_former_name(right: Any, file: Any, *where: Any) -> Any:
    moved = right(file, *where)
    file.successor = None
    return moved


BUGS = (
    (
        instead(FutureLog, "_drop_changed", what_was_cut_stays_in_the_copy),
        lambda: [meanwhile("truncate", after) for after in range(15)],
    ),
    (
        instead(FutureLog, "_sync", the_copy_is_not_synced),
        lambda: without_power("fsync", STEP),
    ),
    (
        instead(leftovers, "_marked", nothing_tells_of_two),
        removed,
    ),
    (
        instead(leftovers, "_newest", the_older_one_is_taken),
        removed,
    ),
    (
        instead(log_manager, "mark_newer", nobody_notes_the_newer_one),
        removed,
    ),
    (
        instead(LogManager, "leave_behind", what_was_left_is_not_given_away),
        lambda: killed("os", STEP),
    ),
    (
        instead(Log, "move_to", the_checkpoints_are_kept_here),
        deleted,
    ),
    (
        instead(SegmentFile, "moved", readers_keep_to_the_former_name),
        read_on,
    ),
)


@pytest.mark.slow
@pytest.mark.parametrize(("bug", "find"), BUGS, ids=lambda each: getattr(each, "name", ""))
def test_a_planted_bug_is_found(bug: Bug, find: Callable[[], object]) -> None:
    find_nothing = pytest.raises((AssertionError, EmbedlogError, OSError, ValueError))
    with bug.plant(), find_nothing:
        find()
