"""Bugs planted on purpose in share groups. The stories must find every one of them."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

from embedlog.coordinator.share import operations, stored_state
from embedlog.coordinator.share.state_client import ShareStateClient
from embedlog.runtime.pending import completed
from embedlog.sharing import key_order, letter_records, log_read, state_writer
from embedlog.sharing.acknowledgement import Application
from embedlog.sharing.dead_letters import DeadLetters
from embedlog.sharing.delivery import ACQUIRED, ARCHIVED, AVAILABLE, TERMINAL, Cause, Rules
from embedlog.sharing.in_flight import InFlightBatch, Run
from embedlog.sharing.key_order import KeyOrder
from embedlog.sharing.share_partition import SharePartition
from embedlog.sharing.window import DeliveryWindow
from tests.simulation.planted import Bug, instead

# Locks


def a_lock_is_not_released_at_expiry(_right: Any, _partition: Any, lock: Any) -> None:
    lock.is_expired = True


def a_renewed_lock_expires_at_its_old_time(_right: Any, _run: Any, lock: Any) -> None:
    lock.cancel()


def a_lock_is_half_as_long(right: Any, partition: Any, batch: Any, duration_ms: int) -> Any:
    return right(partition, batch, duration_ms // 2)


# Counts


def a_delivery_is_not_counted(right: Any, run: Any, owner: str, lock: Any) -> None:
    is_again = run.count > 0
    right(run, owner, lock)
    run.count -= is_again


def a_release_takes_its_delivery_back(right: Any, run: Any) -> None:
    right(run)
    if run.state == AVAILABLE:
        run.count = max(0, run.count - 1)


def the_limit_is_one_too_high(right: Any, rules: Any, cause: int, count: int) -> int:
    found: int = right(rules, cause, count - 1)
    return found


# Acknowledgements


def acceptance_is_lost_at_a_split(right: Any, rows: Any) -> Any:
    joined = right(rows)
    return joined[:1] if len({row.delivery_state for row in joined}) > 1 else joined


def a_part_loses_its_owner(right: Any, batch: Any, first: int, last: int, *borders: Any) -> Any:
    wanted = right(batch, first, last, *borders)
    for run in batch.runs:
        if run not in wanted and run.state == ACQUIRED and run.transition is None:
            run.move(Cause.RELEASE)
    return wanted


def anybody_may_acknowledge(right: Any, made: Any, batch: Any, first: int, last: int) -> None:
    owner = next((run.owner for run in batch.within(first, last) if run.is_held), "")
    own, made._member_id = made._member_id, owner or made._member_id
    try:
        right(made, batch, first, last)
    finally:
        made._member_id = own


def the_state_write_is_answered_before_it_is_stored(
    right: Any, client: Any, *which: Any, **what: Any
) -> Any:
    if client._random.below(2):
        right(client, *which, **what)
    return completed(None)


def a_bad_batch_undoes_nothing(_right: Any, made: Any, batches: Any, make_lock: Any) -> None:
    from embedlog import errors

    for each in batches:
        try:
            made._apply(each)
        except errors.KafkaError:
            return


def rejected_counts_as_released(right: Any, rules: Any, cause: int, count: int) -> int:
    found: int = right(rules, Cause.RELEASE if cause == Cause.REJECT else cause, count)
    return found


# Leaders and coordinators


def a_fenced_leader_still_answers(_right: Any, _present: Any, _leader_epoch: int) -> None:
    return


def a_session_close_releases_nothing(_right: Any, _partition: Any, _member: str) -> Any:
    return completed(None)


def the_stored_counts_are_forgotten(right: Any, window: Any, start: int, stored: Any = ()) -> None:
    right(window, start, stored)
    for run in window.runs():
        if run.state == AVAILABLE:
            run.count = 0


def a_snapshot_has_only_the_last_batches(right: Any, present: Any, key: Any, **what: Any) -> Any:
    batches, present.batches = present.batches, []
    try:
        return right(present, key, **what)
    finally:
        present.batches = batches


# The window


def the_start_moves_beyond_a_held_record(right: Any, window: Any) -> bool:
    moved: bool = right(window)
    first = window.batches[0] if window.batches else None
    if first is not None and len(first.runs) > 1 and first.runs[1].is_over:
        first.runs[0].forget()
        del first.runs[0]
        window.start_offset = first.runs[0].first
        return True
    return moved


def an_archived_record_is_available_again(
    right: Any, window: Any, start: int, stored: Any = ()
) -> None:
    right(
        window,
        start,
        [
            each.replace(delivery_state=AVAILABLE) if each.delivery_state == ARCHIVED else each
            for each in stored
        ],
    )


def aborted_data_is_delivered(right: Any, *arguments: Any, **how: Any) -> Any:
    read = right(*arguments, **how)
    if read is not None:
        read.aborted = []
    return read


def readers_of_committed_data_read_to_the_end(right: Any, *arguments: Any, **how: Any) -> Any:
    from embedlog.replication.partition import Isolation

    partition, offset, max_bytes, _ = arguments
    return right(partition, offset, max_bytes, Isolation.HIGH_WATERMARK, **how)


# Dead letters


def a_dead_letter_is_dropped(
    right: Any, letters: Any, group: str, partition: Any, rows: Any
) -> Any:
    return right(letters, group, partition, rows[1:]) if len(rows) > 1 else completed(None)


def only_the_first_offset_of_a_range_gets_a_letter(right: Any, records: Any, rows: Any) -> Any:
    return right(records, [row.replace(last_offset=row.first_offset) for row in rows])


def archiving_is_not_taken_up_again(right: Any, window: Any, start: int, stored: Any = ()) -> None:
    right(
        window,
        start,
        [
            each.replace(delivery_state=ARCHIVED) if each.delivery_state == 3 else each
            for each in stored
        ],
    )


def every_letter_names_the_limit(right: Any, records: Any, offset: int, _count: int) -> Any:
    return right(records, offset, 100)


# The order of keys


def a_held_record_does_not_block_its_key(right: Any, order: Any, count_max: int) -> Any:
    held = {
        offset
        for run in order._window.runs()
        if run.state == ACQUIRED
        for offset in range(run.first, run.last + 1)
    }
    keys = order._keys
    order._keys = {offset: key for offset, key in keys.items() if offset not in held}
    try:
        return right(order, count_max)
    finally:
        order._keys = keys


def the_keys_of_a_loaded_window_are_not_read(
    right: Any, order: Any, window: Any, partition: Any
) -> None:
    right(order, window, partition)
    if window.batches:
        window.fill_gaps(window.start_offset, window.end_offset)
        order._end = window.end_offset + 1


def keys_are_noted_one_offset_too_far(right: Any, batch: Any) -> Any:
    return [(offset + 1, key) for offset, key in right(batch)]


BUGS = (
    instead(SharePartition, "_lock_expired", a_lock_is_not_released_at_expiry),
    instead(Run, "renew", a_renewed_lock_expires_at_its_old_time),
    instead(SharePartition, "_start_lock", a_lock_is_half_as_long),
    instead(Run, "acquire", a_delivery_is_not_counted),
    instead(Run, "finish", a_release_takes_its_delivery_back),
    instead(Rules, "refine", the_limit_is_one_too_high),
    instead(state_writer, "_joined", acceptance_is_lost_at_a_split),
    instead(InFlightBatch, "isolate", a_part_loses_its_owner),
    instead(Application, "_check", anybody_may_acknowledge),
    instead(ShareStateClient, "write", the_state_write_is_answered_before_it_is_stored),
    instead(Application, "apply", a_bad_batch_undoes_nothing),
    instead(Rules, "refine", rejected_counts_as_released),
    instead(operations, "_check_leader", a_fenced_leader_still_answers),
    instead(SharePartition, "release", a_session_close_releases_nothing),
    instead(DeliveryWindow, "__init__", the_stored_counts_are_forgotten),
    instead(stored_state.StoredState, "changed_by_snapshot", a_snapshot_has_only_the_last_batches),
    instead(DeliveryWindow, "advance", the_start_moves_beyond_a_held_record),
    instead(DeliveryWindow, "__init__", an_archived_record_is_available_again),
    instead(log_read, "read", aborted_data_is_delivered),
    instead(log_read, "_records", readers_of_committed_data_read_to_the_end),
    instead(DeadLetters, "bury", a_dead_letter_is_dropped),
    instead(
        letter_records.LetterRecords,
        "_all_offsets",
        only_the_first_offset_of_a_range_gets_a_letter,
    ),
    instead(DeliveryWindow, "__init__", archiving_is_not_taken_up_again),
    instead(letter_records.LetterRecords, "_headers", every_letter_names_the_limit),
    instead(KeyOrder, "_free", a_held_record_does_not_block_its_key),
    instead(KeyOrder, "__init__", the_keys_of_a_loaded_window_are_not_read),
    instead(key_order, "_keys_of", keys_are_noted_one_offset_too_far),
    Bug(
        "records on their way to a dead letter count as over",
        lambda: patch.object(Run, "is_over", property(lambda run: run.state in (3, *TERMINAL))),
    ),
)
