"""Old segments go by start offset, size and age, oldest first, behind the high watermark only."""

from __future__ import annotations

from errno import ENOSPC

import pytest

from embedlog.errors import KafkaStorageError
from embedlog.storage.log.log import Log
from embedlog.storage.log.retention import delete_old_segments, free_below
from embedlog.storage.log_config import LogConfig
from embedlog.testing import SimFiles, sim_runtime
from tests.storage.logs import NOW, PARTITION, append, check, manager, new_log, values

OFF = {"retention_ms": -1, "retention_bytes": -1}


def _segments(count: int, **settings: object) -> Log:
    """A log of `count` segments with one record each, ten seconds apart, all committed."""
    log = new_log(**{"segment_bytes": 200, **OFF, **settings})
    for number in range(count):
        append(log, b"%d" % number * 100, keys=[b"k"], timestamps=NOW + 10_000 * number)
    assert len(log.segments) == count
    log.offsets.update_high_watermark(count)
    return log


def test_nothing_goes_without_a_limit() -> None:
    log = _segments(4)
    assert delete_old_segments(log, NOW + 10**12) == 0


def test_segments_below_the_start_offset_go_whatever_the_policy() -> None:
    log = _segments(5, cleanup_policy="compact")
    log.offsets.increment_log_start_offset(3)
    assert delete_old_segments(log, NOW) == 3
    assert log.segments[0].base_offset == log.offsets.log_start_offset == 3
    check(log)


def test_size_retention_keeps_at_least_the_limit() -> None:
    log = _segments(5)
    one = log.segments[0].size
    log.configure(log.config.replace(retention_bytes=3 * one - 1))
    assert delete_old_segments(log, NOW) == 2
    assert log.offsets.log_start_offset == 2
    assert log.size == 3 * one
    assert delete_old_segments(log, NOW) == 0
    check(log)


def test_time_retention_stops_at_the_first_young_segment() -> None:
    log = _segments(5, retention_ms=25_000)
    assert delete_old_segments(log, NOW + 45_001) == 3
    assert log.offsets.log_start_offset == 3
    check(log)


def test_a_future_timestamp_keeps_its_segment_and_those_behind_it() -> None:
    log = new_log(segment_bytes=200, retention_ms=1000, message_timestamp_after_max_ms=2**63 - 1)
    append(log, b"x" * 100, timestamps=NOW + 10**9)
    append(log, b"y" * 100, timestamps=NOW)
    log.offsets.update_high_watermark(2)
    assert delete_old_segments(log, NOW + 10**6) == 0


def test_records_without_time_age_by_their_append() -> None:
    log = new_log(segment_bytes=200, retention_ms=1000)
    for _ in range(2):
        append(log, b"x" * 100, timestamps=-1)
    log.offsets.update_high_watermark(2)
    assert delete_old_segments(log, NOW + 1000) == 0
    assert delete_old_segments(log, NOW + 1001) == 2


def test_what_is_not_committed_stays() -> None:
    log = _segments(5, retention_ms=1)
    log.offsets.high_watermark = 2
    assert delete_old_segments(log, NOW + 10**9) == 2
    assert log.offsets.log_start_offset == 2


def test_when_all_must_go_an_empty_segment_takes_over() -> None:
    log = _segments(3, retention_ms=1)
    view = log.reader.read(0, max_bytes=1000, end_offset=3).records
    content = bytes(view)
    assert delete_old_segments(log, NOW + 10**9) == 3
    assert (log.offsets.log_start_offset, log.log_end_offset, log.size) == (3, 3, 0)
    assert [name for name in log.files.list(log.directory) if name.endswith(".log")] == [
        f"{3:020d}.log"
    ]
    assert bytes(view) == content
    assert delete_old_segments(log, NOW + 10**9) == 0
    append(log, b"next", timestamps=NOW)
    assert values(log) == [b"next"]
    check(log)


def test_files_of_old_segments_are_put_away_and_removed_after_their_delay() -> None:
    runtime = sim_runtime()
    config = LogConfig(segment_bytes=200, retention_ms=1000, file_delete_delay_ms=60_000)
    owner = manager(runtime=runtime, config=config)
    log = owner.get_or_create(PARTITION, config)
    for number in range(4):
        append(log, b"%d" % number * 100)
    log.offsets.update_high_watermark(4)
    view = log.reader.read(0, max_bytes=1000, end_offset=4).records
    content = bytes(view)

    def names() -> list[str]:
        return [name for name in log.files.list(log.directory) if ".log" in name]

    runtime.clock.advance(30_000)
    owner.tasks.run_once(runtime.clock.monotonic_ms())
    doomed = [f"{number:020d}.log.deleted" for number in range(4)]
    assert names() == [*doomed, f"{4:020d}.log"]
    assert log.offsets.log_start_offset == 4
    runtime.clock.advance(59_999)
    owner.tasks.run_once(runtime.clock.monotonic_ms())
    assert len(names()) == 5
    runtime.clock.advance(1)
    owner.tasks.run_once(runtime.clock.monotonic_ms())
    assert names() == [f"{4:020d}.log"]
    assert bytes(view) == content


def test_what_was_put_away_goes_at_the_next_open() -> None:
    runtime = sim_runtime()
    config = LogConfig(segment_bytes=200, retention_ms=1000)
    owner = manager(runtime=runtime, config=config)
    log = owner.get_or_create(PARTITION, config)
    for number in range(4):
        append(log, b"%d" % number * 100)
    log.offsets.update_high_watermark(4)
    runtime.clock.advance(30_000)
    owner.tasks.run_once(runtime.clock.monotonic_ms())
    owner.close()
    again = manager(runtime.files.survivor(), config=config).get(PARTITION)
    assert again is not None
    assert (again.offsets.log_start_offset, again.log_end_offset) == (4, 4)
    assert not [name for name in again.files.list(again.directory) if "deleted" in name]


def test_nothing_goes_while_compaction_puts_a_segment_in_place() -> None:
    log = _segments(4, retention_bytes=0)
    log.chain.is_swapping = True
    assert delete_old_segments(log, NOW) == 0
    assert not free_below(log, 4)
    log.chain.is_swapping = False
    assert delete_old_segments(log, NOW) == 4


def test_no_room_is_made_of_records_that_are_not_committed() -> None:
    log = new_log(segment_bytes=200, **OFF)
    for number in range(4):
        append(log, b"%d" % number * 100)
    log.offsets.update_high_watermark(2)
    assert free_below(log, 4)
    assert log.segments[0].base_offset == 2
    check(log)


def test_a_close_keeps_records_with_old_timestamps_that_were_written_just_now() -> None:
    log = new_log(segment_bytes=200, retention_ms=1_000, retention_bytes=-1)
    for number in range(3):
        append(log, b"%d" % number * 100, timestamps=NOW - 10**9)
    log.offsets.update_high_watermark(3)
    assert delete_old_segments(log, NOW + 500, is_closing=True) == 0
    assert delete_old_segments(log, NOW + 500) == 3


def test_the_last_segment_stays_while_there_is_no_room_for_the_next() -> None:
    disk = SimFiles()
    log = new_log(disk=disk, segment_bytes=200, retention_ms=1_000, retention_bytes=-1)
    for number in range(3):
        append(log, b"%d" % number * 100)
    log.offsets.update_high_watermark(3)
    disk.fail(disk.calls, ENOSPC)
    assert delete_old_segments(log, NOW + 10**6) == 2
    assert values(log) == [b"2" * 100]
    assert append(log, b"3" * 100) == 3
    check(log)


def test_segments_whose_files_could_not_be_removed_do_not_come_back() -> None:
    disk = SimFiles()
    owner = manager(disk, config=LogConfig(segment_bytes=200, retention_bytes=0))
    log = owner.get_or_create(PARTITION)
    for number in range(4):
        append(log, b"%d" % number * 100)
    log.offsets.update_high_watermark(3)
    disk.fail(disk.calls, ENOSPC, forever=True)
    with pytest.raises(KafkaStorageError):
        delete_old_segments(log, NOW)
    disk.heal()
    start = log.offsets.log_start_offset
    assert start == 3
    owner.checkpoints.write_positions()
    again = manager(disk.survivor(), config=log.config).get(PARTITION)
    assert again is not None
    assert again.offsets.log_start_offset == start
    assert values(again) == [b"3" * 100]
