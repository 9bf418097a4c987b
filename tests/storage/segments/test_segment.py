"""A segment and its file, through refused calls and concurrent appends."""

from __future__ import annotations

from contextlib import suppress
from errno import ENOSPC

import pytest

from embedlog.errors import KafkaStorageError
from embedlog.storage import paths
from embedlog.storage.replica.truncation import truncate_fully_and_start_at
from embedlog.storage.segments.indexes.time import TimeIndex
from embedlog.storage.segments.segment_file import SegmentFile
from embedlog.testing import SimFiles
from tests.storage.logs import NOW, append, check, new_log, values


def test_a_cut_file_has_no_room_to_spare() -> None:
    log = new_log()
    append(log, b"a")
    file = log.segments[0].file
    assert file.capacity > log.size
    file.cut_to(log.size)
    assert file.capacity == log.size
    append(log, b"b")
    assert values(log) == [b"a", b"b"]


def test_records_that_are_appended_during_a_sync_are_not_synced(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log = new_log(durability="fsync")
    append(log, b"a")
    segment, size, sync = log.segments[0], log.size, SegmentFile.sync

    def append_meanwhile(file: SegmentFile) -> None:
        sync(file)
        append(log, b"b")

    with monkeypatch.context() as patched:
        patched.setattr(SegmentFile, "sync", append_meanwhile)
        log.durability.sync(1)
    assert segment.synced_size == size
    assert log.durability.synced_offset == 1


def test_the_time_index_of_a_full_segment_ends_with_its_largest_timestamp() -> None:
    disk = SimFiles()
    log = new_log(disk=disk, segment_bytes=400)
    for number in range(4):
        append(log, b"x" * 150, timestamps=NOW + number)
    first = log.segments[0]
    path = paths.segment_file(log.directory, 0, paths.TIME_INDEX)
    index = TimeIndex.decode(disk.read(path), base_offset=0, path=path)
    assert index.last == (first.largest()[0], first.next_offset - 1)


def test_a_log_whose_new_file_could_not_be_made_makes_it_at_the_next_append() -> None:
    counted = SimFiles()
    log = new_log(disk=counted)
    append(log, b"a")
    begin = counted.calls
    truncate_fully_and_start_at(log, 5)
    count = counted.calls - begin
    starts = set()
    for call in range(count):
        disk = SimFiles()
        log = new_log(disk=disk)
        append(log, b"a")
        disk.fail(disk.calls + call, ENOSPC)
        with suppress(KafkaStorageError):
            truncate_fully_and_start_at(log, 5)
        disk.heal()
        append(log, b"b")
        assert values(log)[-1] == b"b"
        starts.add(log.segments[0].base_offset)
        check(log)
    assert starts == {0, 5}
