"""A log's answers to appends, reads and look-ups."""

from __future__ import annotations

import errno

import pytest

from embedlog import errors
from embedlog.runtime import real_runtime
from embedlog.runtime.memory_files import MemoryFiles
from embedlog.storage.directory.log_manager import LogManager
from embedlog.storage.log.shutdown import close_log
from embedlog.storage.log.transactions import LogTransactions
from embedlog.storage.log_config import LogConfig
from embedlog.storage.replica.append import append_as_follower
from embedlog.storage.replica.truncation import truncate_fully_and_start_at
from tests.storage.logs import (
    DATA,
    NOW,
    PARTITION,
    append,
    append_marker,
    batch,
    batches,
    check,
    manager,
    new_log,
    values,
)
from wire.records.batch import RecordBatch

ALL = 1 << 30


def test_records_get_consecutive_offsets_and_come_back() -> None:
    log = new_log()
    info = log.append_as_leader(batch(b"a", b"b"), leader_epoch=3, now_ms=NOW)
    assert (info.first_offset, info.last_offset, info.duplicate) == (0, 1, False)
    assert (info.log_append_time_ms, info.log_start_offset, info.max_timestamp) == (-1, 0, NOW)
    assert append(log, b"c", epoch=3) == 2
    assert log.log_end_offset == 3
    assert values(log) == [b"a", b"b", b"c"]
    assert [one.partition_leader_epoch for one in batches(log)] == [3, 3]
    assert log.size == sum(one.size for one in batches(log))
    check(log)


def test_the_callers_bytes_are_not_touched() -> None:
    log = new_log()
    records = bytearray(batch(b"value"))
    before = bytes(records)
    append(log, b"first")
    log.append_as_leader(records, leader_epoch=9, now_ms=NOW)
    log.append_as_leader(memoryview(before), leader_epoch=9, now_ms=NOW)
    assert bytes(records) == before


def test_log_append_time_stamps_records_and_answers() -> None:
    log = new_log(message_timestamp_type="LogAppendTime")
    info = log.append_as_leader(batch(b"a", timestamps=5), leader_epoch=0, now_ms=NOW)
    assert (info.log_append_time_ms, info.max_timestamp) == (NOW, NOW)
    assert [record.timestamp for one in batches(log) for record in one.records()] == [NOW]
    check(log)


def test_a_repeated_batch_is_answered_with_its_log_append_time() -> None:
    log = new_log(message_timestamp_type="LogAppendTime")
    records = batch(b"a", timestamps=5, producer=(7, 0, 0))
    first = log.append_as_leader(records, leader_epoch=0, now_ms=NOW)
    again = log.append_as_leader(records, leader_epoch=0, now_ms=NOW + 10)
    assert again.duplicate
    assert again.log_append_time_ms == first.log_append_time_ms == NOW


def test_a_jitter_above_the_age_of_a_segment_rolls_no_segment_at_once() -> None:
    log = new_log(segment_ms=10_000, segment_jitter_ms=10**12)
    for _ in range(3):
        append(log, b"a")
    assert len(log.segments) == 1


def test_a_refused_batch_leaves_no_trace() -> None:
    log = new_log(max_message_bytes=200)
    append(log, b"a")
    size = log.size
    with pytest.raises(errors.MessageTooLarge):
        append(log, b"x" * 300)
    broken = bytearray(batch(b"b"))
    broken[-1] ^= 1
    with pytest.raises(errors.CorruptMessage):
        log.append_as_leader(bytes(broken), leader_epoch=0, now_ms=NOW)
    assert (log.log_end_offset, log.size) == (1, size)
    check(log)


# Reading


def test_a_read_begins_with_the_batch_that_holds_the_offset() -> None:
    log = new_log()
    append(log, b"a", b"b", b"c")
    append(log, b"d")
    read = log.reader.read(1, max_bytes=ALL, end_offset=4)
    assert RecordBatch(read.records).base_offset == 0
    assert (read.next_offset, read.position, read.segment_base_offset) == (4, 0, 0)
    assert len(log.reader.read(3, max_bytes=ALL, end_offset=4).records) == batches(log)[1].size


def test_a_read_at_the_end_is_empty_and_beyond_it_out_of_range() -> None:
    log = new_log()
    append(log, b"a")
    read = log.reader.read(1, max_bytes=ALL, end_offset=1)
    assert (len(read.records), read.next_offset) == (0, 1)
    for offset in (-1, 2):
        with pytest.raises(errors.OffsetOutOfRange):
            log.reader.read(offset, max_bytes=ALL, end_offset=1)


def test_a_read_holds_whole_batches_within_the_limit_and_at_least_one() -> None:
    log = new_log()
    for number in range(10):
        append(log, b"%d" % number * 50)
    size = batches(log)[0].size
    for limit, count in ((0, 1), (1, 1), (size, 1), (2 * size - 1, 1), (2 * size, 2), (ALL, 7)):
        read = log.reader.read(3, max_bytes=limit, end_offset=10)
        assert len(read.records) == count * size, limit
        assert read.next_offset == 3 + count
    assert len(log.reader.read(3, max_bytes=size - 1, end_offset=10, min_one=False).records) == 0
    assert len(log.reader.read(3, max_bytes=size, end_offset=10, min_one=False).records) == size


def test_a_read_ends_before_the_batch_that_passes_the_end_offset() -> None:
    log = new_log()
    append(log, b"a", b"b")
    append(log, b"c", b"d")
    for end_offset, next_offset in ((4, 4), (3, 3), (2, 2)):
        read = log.reader.read(0, max_bytes=ALL, end_offset=end_offset)
        assert len(read.records) == batches(log)[0].size * (2 if end_offset == 4 else 1)
        assert read.next_offset == next_offset
    read = log.reader.read(1, max_bytes=ALL, end_offset=1)
    assert (len(read.records), read.next_offset) == (0, 1)


def test_every_offset_is_readable_over_many_small_segments() -> None:
    log = new_log(segment_bytes=600, index_interval_bytes=100)
    for number in range(60):
        append(log, *(b"%d" % number,) * (1 + number % 3))
    assert len(log.segments) > 8
    check(log)
    every = values(log)
    for offset in range(log.log_end_offset):
        assert values(log, offset) == every[offset:]
        read = log.reader.read(offset, max_bytes=1, end_offset=log.log_end_offset)
        held = RecordBatch(read.records)
        assert held.base_offset <= offset <= held.last_offset
    for end_offset in range(0, log.log_end_offset, 7):
        read = log.reader.read(0, max_bytes=ALL, end_offset=end_offset)
        assert read.next_offset <= max(end_offset, 0)


def test_a_view_outlives_its_log() -> None:
    log = new_log(segment_bytes=300)
    append(log, b"kept" * 30)
    view = log.reader.read(0, max_bytes=ALL, end_offset=1).records
    content = bytes(view)
    assert view.readonly
    for _ in range(20):
        append(log, b"x" * 100)
    log.offsets.update_high_watermark(log.log_end_offset)
    truncate_fully_and_start_at(log, 50)
    assert bytes(view) == content


# Rolling


def test_a_full_segment_is_followed_by_one_named_by_its_first_offset() -> None:
    log = new_log(segment_bytes=400)
    for number in range(6):
        append(log, b"%d" % number * 100)
    assert [segment.base_offset for segment in log.segments] == [0, 2, 4]
    names = log.files.list(log.directory)
    assert "00000000000000000002.log" in names
    assert "00000000000000000000.index" in names
    assert "00000000000000000002.snapshot" in names
    check(log)


def test_age_rolls_by_record_time_and_by_the_clock_when_there_is_none() -> None:
    log = new_log(segment_ms=1000)
    append(log, b"a", timestamps=NOW)
    append(log, b"b", timestamps=NOW + 1000)
    assert len(log.segments) == 1
    append(log, b"c", timestamps=NOW + 1001)
    assert len(log.segments) == 2
    log.roll(NOW)
    append(log, b"d", timestamps=-1, now_ms=NOW)
    append(log, b"e", timestamps=-1, now_ms=NOW + 1000)
    assert len(log.segments) == 3
    append(log, b"f", timestamps=-1, now_ms=NOW + 1001)
    assert len(log.segments) == 4


def test_a_full_index_rolls() -> None:
    log = new_log(index_interval_bytes=0, segment_index_bytes=96)
    for number in range(30):
        append(log, b"%d" % number)
    assert len(log.segments) > 2
    for segment in log.segments[:-1]:
        for suffix in (".index", ".timeindex"):
            stat = log.files.stat(segment.file.sidecar(suffix))
            assert stat is not None
            assert stat.size <= 96
    check(log)


def test_an_empty_segment_is_not_rolled() -> None:
    log = new_log()
    log.roll(NOW)
    assert len(log.segments) == 1


# Producers


def test_a_repeated_batch_is_a_duplicate_and_a_gap_is_refused() -> None:
    log = new_log()
    first = batch(b"a", b"b", producer=(7, 0, 0))
    assert not log.append_as_leader(first, leader_epoch=0, now_ms=NOW).duplicate
    again = log.append_as_leader(first, leader_epoch=0, now_ms=NOW)
    assert (again.duplicate, again.first_offset, again.last_offset) == (True, 0, 1)
    with pytest.raises(errors.OutOfOrderSequenceNumber):
        append(log, b"x", producer=(7, 0, 5))
    append(log, b"c", producer=(7, 0, 2))
    with pytest.raises(errors.InvalidProducerEpoch):
        append(log, b"x", producer=(7, -1, 3))
    assert values(log) == [b"a", b"b", b"c"]
    assert [entry.producer_id for entry in list(log.transactions.producers)] == [7]


def test_the_last_stable_offset_waits_for_open_transactions() -> None:
    log = new_log()
    append(log, b"plain")
    append(log, b"open", producer=(1, 0, 0), transactional=True)
    append(log, b"other", producer=(2, 0, 0), transactional=True)
    log.offsets.update_high_watermark(log.log_end_offset)
    assert log.offsets.last_stable_offset == 1
    append_marker(log, 1, committed=False)
    assert log.offsets.last_stable_offset == 1  # the marker is not yet below the high watermark
    log.offsets.update_high_watermark(log.log_end_offset)
    assert log.offsets.last_stable_offset == 2
    append_marker(log, 2, committed=True)
    log.offsets.update_high_watermark(log.log_end_offset)
    assert log.offsets.last_stable_offset == log.log_end_offset == 5
    aborted = log.transactions.aborted(0, 5)
    assert [(one.producer_id, one.first_offset, one.last_offset) for one in aborted] == [(1, 1, 3)]
    assert log.transactions.aborted(4, 5) == []


def test_an_interrupt_behind_the_publication_is_made_good_by_the_next_append(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log = new_log()

    class Interrupted(Exception):
        pass

    def interrupt(*_: object) -> None:
        raise Interrupted

    append(log, b"a", producer=(7, 0, 0))
    segment = log.segments[-1]
    records = batch(b"b", producer=(7, 0, 1))
    with monkeypatch.context() as patched, pytest.raises(Interrupted):
        patched.setattr(LogTransactions, "apply", interrupt)
        log.append_as_leader(records, leader_epoch=0, now_ms=NOW)
    assert segment.next_offset == 2
    assert log.append_as_leader(records, leader_epoch=0, now_ms=NOW).duplicate
    append(log, b"c", producer=(7, 0, 2))
    assert values(log) == [b"a", b"b", b"c"]
    check(log)


# Look-ups by time


def _timed_log(**settings: object) -> tuple[object, list[int]]:
    log = new_log(**settings)
    times = [5, 3, 9, 9, 4, 20, 15, 30, 1, 31]
    for time in times:
        append(log, b"v", timestamps=NOW + time)
    return log, times


@pytest.mark.parametrize("settings", [{}, {"segment_bytes": 150, "index_interval_bytes": 0}])
def test_the_first_record_not_older_than_a_time_is_found(settings: dict[str, object]) -> None:
    log, times = _timed_log(**settings)
    for target in range(35):
        expected = next(
            ((NOW + t, offset, 0) for offset, t in enumerate(times) if t >= target), None
        )
        assert log.reader.fetch_offset(NOW + target) == expected
    assert log.reader.fetch_offset(-3) == (NOW + 31, 9, 0)
    assert log.reader.fetch_offset(-1) == (-1, 10, 0)
    assert log.reader.fetch_offset(-1, end_offset=4) == (-1, 4, 0)
    assert log.reader.fetch_offset(-2) == log.reader.fetch_offset(-4) == (-1, 0, 0)
    assert log.reader.fetch_offset(-5) == (-1, -1, -1)


def test_time_lookups_skip_what_lies_below_the_log_start() -> None:
    log, _ = _timed_log()
    log.offsets.update_high_watermark(10)
    log.offsets.increment_log_start_offset(6)
    assert log.reader.fetch_offset(NOW) == (NOW + 15, 6, 0)
    assert log.reader.fetch_offset(-2) == (-1, 6, 0)


def test_the_largest_timestamp_of_odd_logs_is_kafkas() -> None:
    log = new_log()
    assert log.reader.fetch_offset(-3) is None
    append(log, b"no time", timestamps=-1)
    assert log.reader.fetch_offset(-3) == (-1, 0, 0)
    append(log, b"a", b"b", b"c", timestamps=[NOW, NOW + 9, NOW + 1])
    assert log.reader.fetch_offset(-3) == (NOW + 9, 2, 0)
    log.offsets.update_high_watermark(4)
    log.offsets.increment_log_start_offset(4)
    assert log.reader.fetch_offset(-3) == (NOW + 9, 2, 0)


# Offsets


def test_the_high_watermark_stays_within_the_log() -> None:
    log = new_log()
    append(log, b"a", b"b")
    assert log.offsets.update_high_watermark(1)
    assert not log.offsets.update_high_watermark(1)
    assert log.offsets.update_high_watermark(99)
    assert log.offsets.high_watermark == 2


def test_the_log_start_moves_up_to_the_high_watermark_and_hides_records() -> None:
    log = new_log()
    append(log, b"a")
    append(log, b"b", epoch=2)
    log.offsets.update_high_watermark(1)
    with pytest.raises(errors.OffsetOutOfRange):
        log.offsets.increment_log_start_offset(2)
    assert log.offsets.increment_log_start_offset(1)
    assert not log.offsets.increment_log_start_offset(0)
    assert (log.offsets.log_start_offset, log.reader.fetch_offset(-2)) == (1, (-1, 1, 2))
    with pytest.raises(errors.OffsetOutOfRange):
        log.reader.read(0, max_bytes=ALL, end_offset=2)


def test_epochs_are_noted_where_they_begin() -> None:
    log = new_log()
    append(log, b"a", epoch=1)
    append(log, b"b", epoch=4)
    log.epochs.assign(6)
    assert log.epochs.cache.entries == [(1, 0), (4, 1), (6, 2)]
    assert log.epochs.end_offset_for(1) == (1, 1)
    assert log.epochs.end_offset_for(6) == (6, 2)
    close_log(log)
    text = log.files.read(f"{log.directory}/leader-epoch-checkpoint")
    assert text == b"0\n3\n1 0\n4 1\n6 2\n"


# Followers


def _copied(source: object, *, epochs: bool = True) -> bytes:
    return b"".join(bytes(one.buffer) for one in batches(source))


def test_a_follower_keeps_offsets_epochs_and_producers() -> None:
    leader, follower = new_log(), new_log(segment_bytes=400)
    append(leader, b"a", b"b", epoch=1, producer=(7, 0, 0))
    append(leader, b"c", epoch=3)
    append(leader, b"t", epoch=3, producer=(8, 0, 0), transactional=True)
    append_marker(leader, 8, committed=False)
    copied = _copied(leader)
    info = append_as_follower(follower, copied + copied[:70])
    assert (info.first_offset, info.last_offset) == (0, 4)
    assert _copied(follower) == copied
    assert follower.epochs.cache.entries == leader.epochs.cache.entries
    assert len(follower.transactions.aborted(0, 5)) == 1
    assert {entry.producer_id for entry in follower.transactions.producers} == {7, 8}
    follower.offsets.update_high_watermark(5)
    assert follower.offsets.last_stable_offset == 5
    check(follower)


def test_a_follower_refuses_what_does_not_continue_its_log_and_later_epochs() -> None:
    leader, follower = new_log(), new_log()
    append(leader, b"a", epoch=1)
    append(leader, b"b", epoch=2)
    copied = _copied(leader)
    assert append_as_follower(follower, copied, leader_epoch=1).last_offset == 0
    with pytest.raises(errors.UnknownServerError, match="expected 1"):
        append_as_follower(follower, copied)
    broken = bytearray(copied)
    broken[-1] ^= 1
    with pytest.raises(errors.CorruptMessage):
        append_as_follower(new_log(), bytes(broken))
    assert values(follower) == [b"a"]


# Failures


@pytest.mark.parametrize("durability", ["os", "fsync"])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EMFILE])
def test_what_runs_short_refuses_the_append_and_harms_nothing(durability: str, code: int) -> None:
    for failing in range(1, 7):
        log = new_log(durability=durability)
        append(log, b"a")
        disk = log.files
        for number in range(failing):
            disk.fail(disk.calls + number, code)
        expected = [b"a"]
        try:
            append(log, b"b" * 70_000)
            expected.append(b"b" * 70_000)  # no room to spare, but enough
            assert failing == 1
            assert durability == "os" or code == errno.ENOSPC
        except errors.KafkaStorageError as error:
            assert "simulated" in str(error)
        disk.heal()
        assert log.failure is None
        assert values(log) == expected
        # The remains of the failed write are never taken for a part of the log.
        append(log, b"c")
        check(log)
        assert values(log) == [*expected, b"c"]
        recovered = new_log(durability=durability, disk=disk.survivor())
        assert recovered.failure is None
        assert values(recovered) == [*expected, b"c"]


def test_after_enospc_the_log_goes_on() -> None:
    log = new_log()
    append(log, b"a")
    disk = log.files
    disk.fail(disk.calls, errno.ENOSPC)
    with pytest.raises(errors.KafkaStorageError):
        append(log, b"lost")
    assert log.failure is None
    assert append(log, b"b") == 1
    assert values(log) == [b"a", b"b"]
    check(log)


def test_a_write_that_came_half_way_is_not_seen_after_a_crash() -> None:
    log = new_log()
    append(log, b"a")
    disk = log.files
    disk.write_short(disk.calls, 100)
    disk.fail(disk.calls + 1, errno.ENOSPC)
    with pytest.raises(errors.KafkaStorageError):
        append(log, b"lost" * 50)
    recovered = new_log(disk=disk.survivor())
    assert values(recovered) == [b"a"]


def test_a_short_write_is_completed() -> None:
    log = new_log()
    disk = log.files
    append(log, b"a")
    for call, size in ((0, 10), (1, 60), (2, 1)):
        disk.write_short(disk.calls + call, size)
    append(log, b"b" * 100)
    assert values(log) == [b"a", b"b" * 100]
    check(log)


@pytest.mark.parametrize("durability", ["os", "fsync"])
def test_an_io_error_poisons_writes_for_good_and_reads_go_on(durability: str) -> None:
    log = new_log(durability=durability)
    append(log, b"a")
    disk = log.files
    disk.fail(disk.calls, errno.EIO)
    with pytest.raises(errors.KafkaStorageError):
        append(log, b"lost")
    for _ in range(2):
        with pytest.raises(errors.KafkaStorageError, match="refuses writes"):
            append(log, b"lost too")
    assert values(log) == [b"a"]


def test_a_failed_sync_is_never_tried_again() -> None:
    log = new_log(durability="fsync")
    append(log, b"a")
    disk = log.files
    disk.fail(disk.calls, errno.EIO)
    with pytest.raises(errors.KafkaStorageError):
        log.durability.sync(1)
    with pytest.raises(errors.KafkaStorageError):
        log.durability.sync(1)
    with pytest.raises(errors.KafkaStorageError):
        append(log, b"b")
    assert log.durability.synced_offset == 0


# Syncing


def test_sync_covers_everything_written_and_costs_nothing_when_done() -> None:
    log = new_log(durability="fsync")
    append(log, b"a")
    append(log, b"b")
    log.durability.sync(1)
    assert log.durability.synced_offset == 2
    calls = log.files.calls
    log.durability.sync(2)
    assert log.files.calls == calls


def test_no_more_than_a_window_is_ever_unsynced() -> None:
    log = new_log(durability="fsync", max_message_bytes=4 << 20)
    for _ in range(12):
        append(log, b"x" * 900_000)
        unsynced = log.segments[-1].size - log.segments[-1].synced_size
        assert unsynced <= 4 << 20
    assert log.durability.synced_offset > 0


def test_rolling_syncs_the_finished_segment_first() -> None:
    log = new_log(durability="fsync", segment_bytes=300)
    append(log, b"x" * 150)
    append(log, b"x" * 150)
    assert len(log.segments) == 2
    assert log.durability.synced_offset == 1


def test_a_log_in_memory_is_the_same_log_without_files_beside_it() -> None:
    manager = LogManager(
        real_runtime(MemoryFiles()), DATA, LogConfig(durability="memory", segment_bytes=300)
    )
    log = manager.get_or_create(PARTITION)
    for number in range(20):
        append(log, b"%d" % number * 40)
    assert len(log.segments) > 5
    assert values(log) == [b"%d" % number * 40 for number in range(20)]
    assert all(name.endswith(".log") for name in log.files.list(log.directory))
    check(log)
    manager.close()


def test_a_late_epoch_of_an_unclean_open_is_kept() -> None:
    log = new_log()
    append(log, b"a", epoch=2)
    again = manager(log.files.survivor()).get(PARTITION)
    assert again is not None
    assert again.epochs.latest == 3
    append(again, b"b", epoch=2)
    assert [one.partition_leader_epoch for one in batches(again)] == [2, 3]
    check(again)


def test_errors_of_the_producer_state_carry_the_log_start_offset() -> None:
    log = new_log()
    append(log, b"a", b"b", producer=(7, 0, 0))
    log.offsets.update_high_watermark(2)
    log.offsets.increment_log_start_offset(1)
    with pytest.raises(errors.OutOfOrderSequenceNumber) as caught:
        append(log, b"x", producer=(7, 0, 9))
    assert caught.value.log_start_offset == 1


def test_a_topic_that_becomes_durable_keeps_its_sync_window() -> None:
    log = new_log(max_message_bytes=4 << 20)
    for _ in range(3):
        append(log, b"x" * 2_000_000)
    log.configure(log.config.replace(durability="fsync"))
    append(log, b"y" * 2_000_000)
    assert log.durability.synced_offset == 3
