"""When a segment is full: one check for many appends is never too late."""

from __future__ import annotations

from errno import ENOSPC
from random import Random

import pytest

from embedlog import errors
from embedlog.storage.segments.indexes.offset import RELATIVE_OFFSET_MAX
from embedlog.testing import SimFiles
from tests.storage.logs import NOW, append, check, new_log

ENTRY_SIZE = 8


@pytest.mark.parametrize("interval", [0, 1, 300, 4096])
def test_an_index_is_never_fuller_than_its_limit_and_full_before_the_next_begins(
    interval: int,
) -> None:
    draw = Random(interval)
    # Room for 20 entries: the time index has a third less than the limit says.
    log = new_log(segment_index_bytes=30 * ENTRY_SIZE, index_interval_bytes=interval)
    for _ in range(400):
        append(log, bytes(draw.randrange(1, 900)))
    counts = [len(segment.indexes.load(segment.size)[0]) for segment in log.segments]
    assert len(counts) > 1 or interval == 4096
    assert all(count == 20 for count in counts[:-1])
    assert counts[-1] <= 20
    check(log)


def test_a_segment_is_as_old_as_its_first_batch_that_was_written() -> None:
    disk = SimFiles()
    log = new_log(disk=disk, segment_ms=1000)
    append(log, b"of this epoch", timestamps=NOW - 5000)
    log.roll()
    disk.fail(disk.calls, ENOSPC, forever=True)
    for _ in range(2):
        with pytest.raises(errors.KafkaStorageError):
            append(log, b"refused", timestamps=NOW - 1000)
    disk.heal()
    append(log, b"first", timestamps=NOW)
    append(log, b"in time", timestamps=NOW + 1000)
    assert [segment.base_offset for segment in log.segments] == [0, 1]
    append(log, b"late", timestamps=NOW + 1001)
    assert [segment.base_offset for segment in log.segments] == [0, 1, 3]


def test_a_segment_takes_no_offset_that_an_index_entry_cannot_tell() -> None:
    log = new_log()
    segment, farthest = log.segments[0], RELATIVE_OFFSET_MAX
    asked = {"base_offset": 0, "position": 0, "size": 100, "latest": NOW, "now_ms": NOW}
    limits = segment.limits
    assert limits.is_reached(log.config, 1, last_offset=farthest + 1, entry_count=0, **asked)
    assert not limits.is_reached(log.config, 1, last_offset=farthest, entry_count=0, **asked)
    assert limits.offset_max == farthest
