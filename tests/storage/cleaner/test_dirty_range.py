"""The part of a log that a round reads, and whether the round is due."""

from __future__ import annotations

from embedlog.storage.cleaner.dirty_range import dirty_range
from tests.storage.logs import NOW, append, new_log

SETTINGS = {"cleanup_policy": "compact", "segment_bytes": 200, "min_cleanable_dirty_ratio": 0.5}


def _log(**settings: object):
    log = new_log(**{**SETTINGS, **settings})
    for number in range(4):
        append(log, b"%d" % number * 100, keys=[b"k%d" % number], timestamps=NOW + number)
    log.offsets.commit(False)
    return log


def test_a_cleaned_offset_outside_the_log_makes_all_of_it_dirty() -> None:
    log = _log()
    log.offsets.cleaned_offset = 9
    found = dirty_range(log, NOW)
    assert (found.first_dirty, found.end, found.is_due) == (0, 3, True)


def test_a_log_without_dirty_records_is_never_overdue() -> None:
    log = _log(max_compaction_lag_ms=1_000, segment_ms=10**9)
    log.offsets.cleaned_offset = 2
    assert dirty_range(log, NOW + 10**6).is_due
    log.offsets.cleaned_offset = 3
    append(log, b"x" * 100, keys=[b"x"], timestamps=NOW + 10)
    log.offsets.update_high_watermark(3)
    found = dirty_range(log, NOW + 10**6)
    assert found.dirty_size == 0
    assert not found.is_due
