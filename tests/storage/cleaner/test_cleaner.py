"""The last record of every key stays; other records go in time; some are never touched."""

from __future__ import annotations

from contextlib import suppress
from errno import EIO, ENOSPC

import pytest

from embedlog import errors
from embedlog.common import TopicPartition
from embedlog.storage.cleaner import round as cleaner_round
from embedlog.storage.cleaner.dirty_range import dirty_range
from embedlog.storage.cleaner.round import CleaningRound
from embedlog.storage.cleaner.settings import DefaultSettings
from embedlog.storage.log.log import Log
from embedlog.storage.log.retention import delete_old_segments
from embedlog.storage.log_config import LogConfig
from embedlog.storage.replica.append import append_as_follower
from embedlog.storage.replica.truncation import truncate_fully_and_start_at, truncate_to
from embedlog.storage.state_files.checkpoint_files import decode_offsets
from tests.storage.cleaner.compaction import (
    BACKOFF_MS,
    Compacted,
    check_compacted,
    committed_rows,
    rows,
    stored_batches,
)
from tests.storage.logs import DATA, NOW, PARTITION, append, append_marker, uncleanable
from wire.records.batch import RecordBatch
from wire.records.legacy import encode_message

HOUR_MS = 3_600_000


def test_the_last_record_of_each_key_stays_at_its_offset() -> None:
    topic = Compacted()
    for number in range(30):
        topic.put((f"k{number % 4}", f"v{number}"))
    topic.clean()
    assert rows(topic.log) == [(n, b"k%d" % (n % 4), b"v%d" % n) for n in range(26, 30)]
    assert topic.log.offsets.cleaned_offset == 30
    check_compacted(topic.log)


def test_within_a_batch_too_and_its_offsets_and_sequences_stay() -> None:
    topic = Compacted()
    topic.put(("a", "1"), ("b", "1"), ("a", "2"), ("c", "1"), producer=(7, 0, 0), codec=4)
    topic.put(("c", "2"))
    topic.clean()
    assert rows(topic.log) == [(1, b"b", b"1"), (2, b"a", b"2"), (4, b"c", b"2")]
    first = stored_batches(topic.log)[0]
    assert (first.base_offset, first.last_offset, first.base_sequence) == (0, 3, 0)
    assert (first.last_sequence, first.record_count, first.codec) == (3, 2, 4)
    check_compacted(topic.log)


def test_the_last_segment_is_not_touched() -> None:
    topic = Compacted(segment_bytes=1 << 20)
    for number in range(5):
        topic.put(("k", f"{number}"))
    topic.wait(10 * BACKOFF_MS)
    assert len(rows(topic.log)) == 5
    topic.log.roll()
    topic.put(("k", "5"))
    topic.put(("k", "6"))
    topic.wait(BACKOFF_MS + 100)
    assert [offset for offset, _, _ in rows(topic.log)] == [4, 5, 6]


def test_nothing_above_the_high_watermark_counts() -> None:
    topic = Compacted()
    for number in range(12):
        append(topic.log, b"%d" % number * 50, keys=[b"k"])
    topic.log.offsets.update_high_watermark(5)
    segment = topic.log.chain.holding(5)
    topic.clean()
    assert topic.log.offsets.cleaned_offset == segment.base_offset
    offsets = [offset for offset, _, _ in rows(topic.log)]
    assert offsets == list(range(segment.base_offset - 1, 12))


def test_nothing_of_an_open_transaction_counts() -> None:
    topic = Compacted()
    topic.put(("k", "old" * 100))
    topic.put(("k", "new" * 100), producer=(9, 0, 0), transactional=True)
    for number in range(4):
        topic.put(("other", f"{number}" * 300))
    topic.clean()
    assert [offset for offset, _, _ in rows(topic.log)] == [0, 1, 2, 3, 4, 5]
    append_marker(topic.log, 9, committed=True)
    topic.commit()
    topic.clean()
    assert [offset for offset, _, _ in rows(topic.log)] == [1, 5]


def test_records_without_a_key_from_the_time_before_compaction_go() -> None:
    topic = Compacted(cleanup_policy="delete")
    topic.put((None, "x"), ("k", "y"))
    topic.put((None, "z"))
    topic.manager.configure(PARTITION.topic, topic.config.replace(cleanup_policy="compact"))
    topic.clean()
    assert rows(topic.log) == [(1, b"k", b"y")]


def test_a_compacted_topic_refuses_records_without_a_key() -> None:
    topic = Compacted()
    with pytest.raises(errors.InvalidRecord):
        topic.put(("k", "v"), (None, "v"))
    assert topic.log.log_end_offset == 0


# Tombstones


def test_a_tombstone_stays_for_delete_retention_after_the_first_round_that_kept_it() -> None:
    topic = Compacted()
    topic.put(("k", "v"), ("other", "v"))
    topic.put(("k", None))
    topic.clean()
    tombstone = (2, b"k", None)
    assert rows(topic.log) == [(1, b"other", b"v"), tombstone]
    marked = stored_batches(topic.log)[1]
    assert marked.has_delete_horizon
    horizon = marked.delete_horizon_ms
    assert horizon is not None
    assert topic.now_ms - 2 * BACKOFF_MS <= horizon - HOUR_MS <= topic.now_ms
    assert [record.timestamp for record in marked.records()] == [NOW]
    topic.runtime.clock.advance(horizon - topic.now_ms - 2 * BACKOFF_MS)
    topic.put(("more", "1"))
    topic.clean()
    assert tombstone in rows(topic.log)
    topic.runtime.clock.advance(2 * BACKOFF_MS)
    topic.put(("more", "2"))
    topic.clean()
    assert rows(topic.log) == [(1, b"other", b"v"), (4, b"more", b"2")]
    check_compacted(topic.log)


def test_a_value_written_after_a_tombstone_replaces_it_at_once() -> None:
    topic = Compacted()
    topic.put(("k", None))
    topic.clean()
    topic.put(("k", "back"))
    topic.clean()
    assert rows(topic.log) == [(1, b"k", b"back")]


def test_the_horizon_set_once_is_not_moved_by_later_rounds() -> None:
    topic = Compacted()
    topic.put(("k", None), ("j", "v"))
    topic.clean()
    horizon = stored_batches(topic.log)[0].delete_horizon_ms
    topic.runtime.clock.advance(HOUR_MS // 2)
    topic.put(("j", "w"))
    topic.clean()
    first = stored_batches(topic.log)[0]
    assert (first.record_count, first.delete_horizon_ms) == (1, horizon)


# Transactions


def test_aborted_records_go_at_once_and_hide_nothing() -> None:
    topic = Compacted()
    topic.put(("k", "good"))
    topic.put(("k", "bad"), ("only", "bad"), producer=(9, 0, 0), transactional=True)
    append_marker(topic.log, 9, committed=False)
    topic.commit()
    topic.clean()
    assert rows(topic.log) == committed_rows(topic.log) == [(0, b"k", b"good")]


def test_a_marker_stays_while_its_data_does_then_for_delete_retention() -> None:
    topic = Compacted()
    topic.put(("k", "v"), producer=(9, 0, 0), transactional=True)
    marker = append_marker(topic.log, 9, committed=True)
    topic.put(("x", "x"), producer=(9, 0, 1), transactional=True)
    append_marker(topic.log, 9, committed=True)
    topic.commit()

    def marker_batch() -> RecordBatch | None:
        found = [one for one in stored_batches(topic.log) if one.base_offset == marker]
        return found[0] if found else None

    topic.clean()
    kept = marker_batch()
    assert kept is not None
    assert not kept.has_delete_horizon
    topic.put(("k", "w"))
    topic.clean()  # the data goes
    topic.put(("k", "x"))
    topic.clean()  # no batch of the transaction is left: the horizon is set
    kept = marker_batch()
    assert kept is not None
    assert kept.has_delete_horizon
    assert kept.record_count == 1
    topic.runtime.clock.advance(HOUR_MS)
    topic.put(("k", "y"))
    topic.clean()
    assert marker_batch() is None
    assert committed_rows(topic.log) == [(2, b"x", b"x"), (6, b"k", b"y")]


def test_an_aborted_transaction_that_is_partly_dirty_is_hidden_from_readers() -> None:
    topic = Compacted()
    topic.put(("a", "good"))
    topic.put(("a", "bad" * 60), producer=(9, 0, 0), transactional=True)
    topic.put(("b", "bad" * 60), producer=(9, 0, 1), transactional=True)
    topic.put(("c", "good"))
    append_marker(topic.log, 9, committed=False)
    topic.commit()
    for log in (topic.log, topic.reopened(cleanly=False).log):
        assert committed_rows(log) == [(0, b"a", b"good"), (3, b"c", b"good")]
    topic.clean()
    assert committed_rows(topic.log) == [(0, b"a", b"good"), (3, b"c", b"good")]
    again = topic.reopened(cleanly=False)
    assert committed_rows(again.log) == [(0, b"a", b"good"), (3, b"c", b"good")]


# Producers


def test_a_producers_last_batch_stays_as_a_header_so_that_its_sequence_is_known() -> None:
    topic = Compacted()
    topic.put(("k", "1"), producer=(7, 3, 0))
    topic.put(("k", "2"), producer=(7, 3, 1))
    topic.put(("k", "3"))
    topic.clean()
    assert rows(topic.log) == [(2, b"k", b"3")]
    empty = stored_batches(topic.log)[0]
    assert (empty.record_count, empty.base_offset, empty.base_sequence) == (0, 1, 1)
    assert (empty.producer_id, empty.producer_epoch) == (7, 3)
    for name in topic.log.files.list(topic.log.directory):
        if name.endswith(".snapshot"):
            topic.log.files.remove(f"{topic.log.directory}/{name}")
    again = topic.reopened(cleanly=False)
    with pytest.raises(errors.OutOfOrderSequenceNumber):
        again.put(("k", "x"), producer=(7, 3, 5))
    assert again.put(("k", "4"), producer=(7, 3, 2)) == 3
    again.clean()
    assert [one.base_offset for one in stored_batches(again.log)] == [3]


def test_a_fenced_epoch_stays_fenced_by_the_marker_that_is_kept() -> None:
    topic = Compacted()
    topic.put(("k", "1"), producer=(7, 0, 0), transactional=True)
    append_marker(topic.log, 7, committed=True, epoch=1)
    topic.commit()
    for number in range(3):
        topic.put(("k", f"{number}"))
        topic.clean()
        topic.runtime.clock.advance(HOUR_MS)
    for name in topic.log.files.list(topic.log.directory):
        if name.endswith(".snapshot"):
            topic.log.files.remove(f"{topic.log.directory}/{name}")
    again = topic.reopened(cleanly=False)
    with pytest.raises(errors.InvalidProducerEpoch):
        again.put(("k", "late"), producer=(7, 0, 1))


def test_the_batch_at_the_end_of_a_round_stays_and_tells_readers_where_the_log_ends() -> None:
    topic = Compacted()
    topic.put(("k", "v"))
    topic.put(("k", "bad"), producer=(9, 0, 0), transactional=True)
    append_marker(topic.log, 9, committed=False)
    topic.commit()
    topic.clean()
    assert [one.last_offset for one in stored_batches(topic.log)] == [0, 1, 2]
    topic.log.transactions.producers.truncate()
    topic.runtime.clock.advance(HOUR_MS)
    topic.put(("k", "w"))
    topic.put(("k", None))
    topic.clean()
    topic.runtime.clock.advance(HOUR_MS)
    topic.put(("z", "z"))
    topic.clean()
    check_compacted(topic.log)
    assert rows(topic.log)[-1] == (5, b"z", b"z")


# When


def test_a_round_waits_for_the_dirty_ratio() -> None:
    topic = Compacted(min_cleanable_dirty_ratio=0.5)
    for number in range(8):
        topic.put((f"k{number}", "v" * 100))
    topic.clean()
    assert topic.log.offsets.cleaned_offset == 8
    for number in range(3):
        topic.put((f"k{number}", "w" * 100))
    topic.clean()
    assert topic.log.offsets.cleaned_offset == 8
    for number in range(8):
        topic.put((f"k{number}", "w" * 100))
    topic.clean()
    assert topic.log.offsets.cleaned_offset == 19


def test_min_compaction_lag_protects_what_is_young() -> None:
    topic = Compacted(min_compaction_lag_ms=HOUR_MS)
    for number in range(6):
        topic.put(("k", f"{number}" * 200), timestamps=topic.now_ms)
    topic.clean()
    assert len(rows(topic.log)) == 6
    topic.wait(HOUR_MS + BACKOFF_MS)
    assert [offset for offset, _, _ in rows(topic.log)] == [5]


def test_max_compaction_lag_overrides_the_ratio_and_rolls_the_last_segment() -> None:
    topic = Compacted(min_cleanable_dirty_ratio=1.0, max_compaction_lag_ms=HOUR_MS)
    topic.put(("k", "1"))
    topic.put(("k", "2"))
    topic.wait(2 * HOUR_MS)
    assert len(rows(topic.log)) == 2
    topic.put(("k", "3"), timestamps=topic.now_ms)
    assert len(topic.log.segments) == 2
    topic.wait(2 * BACKOFF_MS)
    assert rows(topic.log) == [(1, b"k", b"2"), (2, b"k", b"3")]


def test_the_dirtiest_log_comes_first() -> None:
    topic = Compacted(min_cleanable_dirty_ratio=0.1)
    other = topic.manager.get_or_create(TopicPartition("other", 0), topic.config)

    def fill(log: Log, count: int) -> None:
        for number in range(count):
            append(log, b"v" * 100, keys=[b"k%d" % number])
        log.offsets.update_high_watermark(log.log_end_offset)
        log.roll()

    fill(topic.log, 8)
    fill(other, 8)
    topic.clean()
    fill(topic.log, 2)
    fill(other, 6)
    seen: list[tuple[int, int]] = []
    topic.wait(
        2 * BACKOFF_MS,
        lambda: seen.append((topic.log.offsets.cleaned_offset, other.offsets.cleaned_offset)),
    )
    assert list(dict.fromkeys(seen)) == [(8, 8), (8, 14), (10, 14)]


def test_nobody_is_woken_while_no_log_is_compacted() -> None:
    plain = Compacted(cleanup_policy="delete", retention_ms=-1)
    plain.put(("k", "1"))
    delays = []
    now_ms = plain.runtime.clock.monotonic_ms()
    plain.manager.tasks.stir()
    for _ in range(20):
        delay = plain.manager.tasks.run_once(now_ms)
        assert delay is not None
        delays.append(delay)
        now_ms += delay
    assert plain.manager.tasks.cleaner is None
    assert delays[-1] > 60_000


def test_a_clean_log_is_left_in_peace_until_it_changes() -> None:
    topic = Compacted()
    topic.put(("k", "1"))
    topic.clean()
    topic.wait(120_000)
    delay = topic.manager.tasks.run_once(topic.runtime.clock.monotonic_ms())
    assert delay is not None
    assert delay > 100_000


def test_a_switched_off_cleaner_cleans_nothing() -> None:
    topic = Compacted(cleaner=Off())
    topic.put(("k", "1"))
    topic.put(("k", "2"))
    topic.clean()
    assert len(rows(topic.log)) == 2


class Off(DefaultSettings):
    log_cleaner_enable = False


class Slow(DefaultSettings):
    log_cleaner_io_max_bytes_per_second = 50_000.0


class Forgetful(DefaultSettings):
    log_cleaner_dedupe_buffer_size = 600


def test_the_speed_limit_spreads_a_round_over_time() -> None:
    topic = Compacted(segment_bytes=100_000, cleaner=Slow())
    for number in range(60):
        topic.put(("k", f"{number:04}" * 2500))
    topic.log.roll()
    topic.wait(BACKOFF_MS + 10_000)
    assert topic.log.offsets.cleaned_offset < 60
    topic.wait(30_000)
    assert topic.log.offsets.cleaned_offset == 60


def test_a_map_that_is_full_takes_several_rounds_to_the_same_end() -> None:
    topic = Compacted(cleaner=Forgetful())
    for number in range(60):
        topic.put((f"k{number % 20}", f"{number}"), (f"j{number % 7}", f"{number}"))
    ends: list[int] = []
    topic.clean(lambda: ends.append(topic.log.offsets.cleaned_offset))
    assert len(set(ends)) > 5
    assert topic.log.offsets.cleaned_offset == 120
    expected = {n * 2: b"k%d" % (n % 20) for n in range(40, 60)}
    expected |= {n * 2 + 1: b"j%d" % (n % 7) for n in range(53, 60)}
    assert {offset: key for offset, key, _ in rows(topic.log)} == expected
    check_compacted(topic.log)


# Segments


def test_small_segments_are_grouped_up_to_segment_bytes() -> None:
    topic = Compacted(segment_bytes=1000)
    for number in range(40):
        topic.put((f"k{number}", "v" * 100))
    before = len(topic.log.segments)
    topic.clean()
    assert len(topic.log.segments) == before + 1
    for number in range(36):
        topic.put((f"k{number}", "w"))
    topic.clean()
    topic.put(("x", "x"))
    topic.clean()
    sizes = [segment.size for segment in topic.log.segments]
    assert len(sizes) < before
    assert max(sizes) <= 1000
    check_compacted(topic.log)


def test_a_group_spans_no_more_offsets_than_an_index_can_tell() -> None:
    topic = Compacted(segment_bytes=1 << 20)
    log = topic.log
    truncate_fully_and_start_at(log, 0)
    for base in (0, 2**31 - 5, 2**31 + 10):
        one = RecordBatch(bytearray(_batch_at(base)))
        append_as_follower(log, bytes(one.buffer), leader_epoch=0)
        log.roll()
    topic.commit()
    topic.clean()
    assert [segment.base_offset for segment in log.segments[:-1]] == [0, 2**31 - 4]
    assert len(rows(log)) == 3


def _batch_at(offset: int) -> bytes:
    from wire.records.encode.builder import build_batch

    return build_batch(
        [b"v"], keys=[b"%d" % offset], timestamps=NOW, base_offset=offset, leader_epoch=0
    )


def test_an_index_is_stored_and_needs_no_rebuilding() -> None:
    topic = Compacted(segment_bytes=5000)
    for number in range(100):
        topic.put((f"k{number}", "v" * 30))
    topic.put(*[(f"k{number}", "w") for number in range(0, 100, 2)])
    topic.clean()
    stored = {
        segment.base_offset: [index.encode() for index in segment.indexes.load(segment.size)]
        for segment in topic.log.segments[:-1]
    }
    assert any(len(offsets) > 40 for offsets, _ in stored.values())
    again = topic.reopened().log
    for segment in again.segments[:-1]:
        files = again.files
        assert files.read(segment.file.sidecar(".index")) == stored[segment.base_offset][0]
        assert files.read(segment.file.sidecar(".timeindex")) == stored[segment.base_offset][1]
        segment.indexes.rebuild(segment.size, 100)
        assert segment.indexes.load(segment.size)[0].encode() == stored[segment.base_offset][0]
    assert again.reader.fetch_offset(NOW) == (NOW, 1, 0)


def test_old_message_formats_are_rewritten_in_the_present_one() -> None:
    topic = Compacted()
    log = topic.log
    segment = log.segments[0]
    messages = [
        encode_message(magic=1, offset=n, timestamp=NOW + n, key=b"k%d" % (n % 2), value=b"v%d" % n)
        for n in range(6)
    ]
    file = log.files.open(segment.path)
    file.write([b"".join(messages)], 0)
    topic.manager.checkpoints.write_positions()
    again = Compacted(log.files.survivor())
    assert again.log.log_end_offset == 6
    again.commit()
    again.clean()
    assert rows(again.log) == [(4, b"k0", b"v4"), (5, b"k1", b"v5")]
    assert {one.magic for one in stored_batches(again.log)} == {2}
    check_compacted(again.log)


# Beside other work


def test_readers_of_former_segments_go_on_reading_them() -> None:
    topic = Compacted()
    for number in range(30):
        topic.put((f"k{number % 4}", f"v{number}"))
    topic.log.roll()
    former = topic.log.segments
    view = topic.log.reader.read(0, max_bytes=1 << 20, end_offset=30).records
    content = bytes(view)
    sizes = [segment.size for segment in former]
    contents = [bytes(segment.file.view(0, segment.size)) for segment in former[:2]]
    topic.clean()
    assert bytes(view) == content
    for segment in former:
        segment.file.release()  # as when too many files are open
    for segment, size in zip(former, sizes, strict=True):
        assert len(segment.file.view(0, size)) == size
    assert [bytes(segment.file.view(0, segment.size)) for segment in former[:2]] == contents
    offsets = [offset for segment in former for offset in _offsets(segment)]
    assert offsets == list(range(30))


def _offsets(segment) -> list[int]:
    from wire.records.batch import iter_batches

    return [one.base_offset for one in iter_batches(segment.file.view(0, segment.size))]


def test_a_truncation_below_what_was_cleaned_makes_it_dirty_again() -> None:
    topic = Compacted()
    for number in range(20):
        topic.put((f"k{number % 4}", f"v{number}" * 20))
    topic.clean()
    assert topic.log.offsets.cleaned_offset == 20
    truncate_to(topic.log, 17)
    assert topic.log.offsets.cleaned_offset == 17
    stored = decode_offsets(topic.log.files.read(f"{DATA}/cleaner-offset-checkpoint"), "")
    assert stored[PARTITION] == 17
    topic.put(("k0", "x"))
    topic.put(("k0", "y"))
    topic.clean()
    assert [value for _, key, value in rows(topic.log) if key == b"k0"] == [b"y"]


@pytest.mark.parametrize("change", ["truncate", "retention", "delete"])
def test_a_log_that_changes_during_a_round_is_left_as_it_is(change: str) -> None:
    topic = Compacted(cleanup_policy="compact,delete", segment_bytes=40_000, retention_ms=-1)
    for number in range(30):
        # The last five keys are unique: a truncation takes no record that has replaced another.
        topic.put((f"k{number % 20 if number < 25 else number}", f"{number:04}" * 2500))
    topic.log.roll()
    log = topic.log

    def disturb() -> None:
        names = log.files.list(log.directory) if change != "delete" or not log.failure else []
        if not any(name.endswith(".cleaned") for name in names):
            return
        if change == "truncate":
            truncate_to(log, 25)
        elif change == "retention" and log.offsets.log_start_offset == 0:
            log.offsets.increment_log_start_offset(9)
            assert delete_old_segments(log, topic.now_ms) > 0
        elif change == "delete":
            topic.manager.delete(PARTITION)

    topic.wait(2 * BACKOFF_MS, disturb)
    if change == "delete":
        assert topic.manager.get(PARTITION) is None
        assert topic.runtime.files.list(DATA).count(str(PARTITION)) == 0
        return
    assert uncleanable(topic.manager) == {}
    assert not [name for name in log.files.list(log.directory) if name.endswith(".cleaned")]
    check_compacted(log)
    expected = range(9, 30) if change == "retention" else range(5, 25)
    assert [offset for offset, _, _ in rows(log)] == list(expected)


def test_a_change_between_the_last_look_and_the_swap_is_noticed() -> None:
    topic = Compacted()
    for number in range(10):
        topic.put((f"k{number}", "v" * 50))
    topic.put(("k0", "w"))
    topic.log.roll()
    log = topic.log

    class Meddlesome:
        """A partition lock that another thread, which truncates, got a moment earlier."""

        entered = 0

        def __enter__(self) -> None:
            self.entered += 1
            if self.entered == 2:  # first the producers are read, then comes the swap
                truncate_to(log, 5)
                log.offsets.update_high_watermark(5)

        def __exit__(self, *_: object) -> None:
            pass

    log.lock = Meddlesome()
    topic.wait(2 * BACKOFF_MS)
    assert log.lock.entered > 2
    assert [offset for offset, _, _ in rows(log)] == [0, 1, 2, 3, 4]
    check_compacted(log)


def test_useless_files_are_removed_after_their_delay() -> None:
    topic = Compacted(file_delete_delay_ms=60_000)
    for number in range(30):
        topic.put((f"k{number % 4}", f"v{number}"))
    topic.log.roll()
    topic.wait(BACKOFF_MS + 1000)
    assert len(rows(topic.log)) < 30

    def deleted() -> list[str]:
        names = topic.log.files.list(topic.log.directory)
        return [name for name in names if name.endswith(".deleted")]

    assert deleted()
    topic.wait(58_000)
    assert deleted()
    topic.wait(2_000)
    assert not deleted()


def test_compact_and_delete_together_drop_what_is_old_and_clean_the_rest() -> None:
    topic = Compacted(cleanup_policy="compact,delete", retention_ms=HOUR_MS)
    for number in range(6):
        topic.put((f"k{number}", "old" * 50), timestamps=topic.now_ms)
    topic.clean()
    topic.runtime.clock.advance(HOUR_MS + 1)
    for number in range(12):
        topic.put((f"k{number % 3}", "new" * 50), timestamps=topic.now_ms)
    topic.wait(400_000)
    assert topic.log.offsets.log_start_offset == topic.log.segments[0].base_offset == 6
    topic.clean()
    assert [offset for offset, _, _ in rows(topic.log)] == [15, 16, 17]


def test_a_log_start_offset_inside_a_cleaned_segment_is_kept() -> None:
    topic = Compacted(cleanup_policy="compact,delete", retention_ms=-1)
    for number in range(20):
        topic.put((f"k{number}", "v" * 30))
    topic.clean()
    topic.log.offsets.increment_log_start_offset(7)
    topic.put(("k9", "w"))
    topic.clean()
    assert topic.log.offsets.log_start_offset == 7
    assert [offset for offset, _, _ in rows(topic.log)][:3] == [7, 8, 10]
    again = topic.reopened(cleanly=False)
    assert again.log.offsets.log_start_offset == 7
    assert rows(again.log) == rows(topic.log)


def test_a_topic_that_is_compacted_no_more_still_has_gaps_after_a_restart() -> None:
    topic = Compacted()
    for number in range(30):
        topic.put((f"k{number % 4}", f"v{number}"))
    topic.clean()
    for cleanly in (False, True):
        again = topic.reopened(cleanly=cleanly, cleanup_policy="delete", retention_ms=-1)
        assert again.log.failure is None
        assert rows(again.log) == rows(topic.log)


def test_a_restart_goes_on_where_the_last_round_ended() -> None:
    topic = Compacted()
    for number in range(30):
        topic.put((f"k{number % 4}", f"v{number}"))
    topic.clean()
    again = topic.reopened()
    assert again.log.offsets.cleaned_offset == 30
    assert dirty_range(again.log, again.now_ms).first_dirty == 30
    again.wait(2 * BACKOFF_MS)
    assert rows(again.log) == [(n, b"k%d" % (n % 4), b"v%d" % n) for n in range(26, 30)]


def test_a_dirty_log_is_cleaned_after_a_restart_without_a_new_record() -> None:
    topic = Compacted()
    for number in range(10):
        topic.put(("k", f"{number}"))
    topic.log.roll()
    again = topic.reopened()
    again.wait(2 * BACKOFF_MS)
    assert rows(again.log) == [(9, b"k", b"9")]


def test_a_deleted_topic_leaves_no_cleaned_offset_to_its_successor() -> None:
    topic = Compacted()
    for number in range(10):
        topic.put(("k", f"{number}"))
    topic.clean()
    topic.manager.delete(PARTITION)
    assert topic.manager.get_or_create(PARTITION, topic.config).offsets.cleaned_offset == -1
    assert topic.reopened().log.offsets.cleaned_offset == -1


def test_aborted_transactions_of_a_loaded_segment_are_found_in_slices() -> None:
    topic = Compacted(segment_bytes=4 << 20)
    for number in range(400):
        topic.put((f"k{number}", "v" * 2000))
        if number % 100 == 7:
            topic.put(("k", "bad"), producer=(9, 0, number // 100), transactional=True)
            append_marker(topic.log, 9, committed=False)
    topic.commit()
    topic.log.roll()
    topic.put(("end", "end"))
    again = topic.reopened()
    log, segment = again.log, again.log.segments[0]
    cleaning = CleaningRound(
        log,
        dirty_range(log, again.now_ms),
        now_ms=again.now_ms,
        map_size_max=1 << 20,
        checkpoint=again.manager.checkpoints.write_positions,
        remove=lambda paths, delay_ms: None,
    )
    slices = 0
    while not cleaning.step():
        if segment.aborted.index is None and segment.trusted_size >= segment.size:
            slices += 1
    assert segment.aborted.index is not None
    assert len(segment.aborted.index) == 4
    assert slices >= segment.size // (64 << 10) - 1 > 10
    assert [key for _, key, _ in rows(log)] == [b"k%d" % n for n in range(400)] + [b"end"]


# Failures


def test_rot_makes_a_log_uncleanable_and_keeps_every_byte() -> None:
    topic = Compacted()
    for number in range(20):
        topic.put(("k", f"{number}" * 20))
    topic.log.roll()
    segment = topic.log.segments[1]
    file = topic.log.files.open(segment.path)
    file.write([b"\xff"], 80)
    sizes = [one.size for one in topic.log.segments]
    topic.wait(4 * BACKOFF_MS)
    assert "crc" in uncleanable(topic.manager)[PARTITION]
    assert [one.size for one in topic.log.segments] == sizes
    assert topic.log.failure is None
    names = topic.log.files.list(topic.log.directory)
    assert not [name for name in names if name.endswith((".cleaned", ".swap", ".deleted"))]


@pytest.mark.parametrize("verify_size", [1, 300, 1 << 20])
def test_what_an_earlier_process_wrote_is_checked_in_pieces(
    verify_size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cleaner_round, "VERIFY_SIZE", verify_size)
    topic = Compacted()
    for number in range(20):
        topic.put(("k", f"{number}" * 20))
    topic.log.roll()
    topic = topic.reopened()
    segment = topic.log.segments[0]
    second = segment.indexes.position_of(segment.base_offset + 1, segment.size)
    file = topic.log.files.open(segment.path)
    file.write([b"\x01"], second)  # its base offset, which no checksum covers
    topic.wait(4 * BACKOFF_MS)
    assert "offset" in uncleanable(topic.manager)[PARTITION]


def test_a_full_disk_postpones_the_round() -> None:
    first = _prepared()
    first.wait(2 * BACKOFF_MS)
    calls = first.runtime.files.trace
    (write, *_) = [n for n, (call, path) in enumerate(calls) if (call, path[-8:]) == _WRITE]
    topic = _prepared()
    files = topic.runtime.files
    files.fail(write, ENOSPC)
    topic.wait(BACKOFF_MS + 5000)
    assert files.trace[write] == calls[write]
    assert uncleanable(topic.manager) == {}
    assert len(rows(topic.log)) == 5, "the groups before it are clean"
    names = files.list(topic.log.directory)
    assert not [name for name in names if name.endswith(".cleaned")]
    topic.wait(2 * BACKOFF_MS)
    assert len(rows(topic.log)) == 4


_WRITE = ("write", ".cleaned")


@pytest.mark.slow
def test_every_failing_call_of_a_round_leaves_a_log_that_reads_the_same() -> None:
    first = _prepared()
    start = first.runtime.files.calls
    first.wait(BACKOFF_MS + 100)
    calls = range(start, first.runtime.files.calls)
    assert len(calls) > 60
    for code in (ENOSPC, EIO):
        for call in calls:
            topic = _prepared()
            topic.runtime.files.fail(call, code)
            with suppress(OSError):  # from other work than the cleaner's
                topic.wait(4 * BACKOFF_MS)
            known = {key: value for _, key, value in rows(topic.log)}
            assert known == {b"k%d" % n: b"v%d" % (26 + (n + 2) % 4) for n in range(4)}, (
                call,
                code,
            )
            if code == ENOSPC and topic.log.failure is None:
                assert uncleanable(topic.manager) == {}
            again = Compacted(topic.runtime.files.survivor())
            assert {key: value for _, key, value in rows(again.log)} == known
            check_compacted(again.log)


def _prepared() -> Compacted:
    topic = Compacted()
    for number in range(30):
        topic.put((f"k{number % 4}", f"v{number}"))
    topic.log.roll()
    return topic


def test_a_manager_that_closes_ends_the_round() -> None:
    topic = Compacted(segment_bytes=400_000)
    for number in range(30):
        topic.put((f"k{number % 4}", f"{number:04}" * 2500))
    topic.log.roll()
    seen = []

    def close() -> None:
        names = topic.log.files.list(topic.log.directory)
        if not seen and any(name.endswith(".cleaned") for name in names):
            seen.append(True)
            topic.manager.close()

    clock = topic.runtime.clock
    topic.manager.tasks.stir()
    while not seen:
        delay = topic.manager.tasks.run_once(clock.monotonic_ms())
        close()
        clock.advance(delay or 1)
    names = topic.log.files.list(topic.log.directory)
    assert not [name for name in names if name.endswith((".cleaned", ".swap"))]
    assert len(rows(Compacted(topic.runtime.files.survivor()).log)) == 30


def test_in_memory_no_files_are_left_but_the_segments() -> None:
    topic = Compacted(durability="memory")
    for number in range(30):
        topic.put((f"k{number % 4}", f"v{number}"))
    topic.clean()
    assert len(rows(topic.log)) == 4
    names = topic.log.files.list(topic.log.directory)
    assert [name for name in names if not name.endswith(".log")] == []


def test_the_defaults_are_kafkas() -> None:
    config = LogConfig()
    assert (config.min_cleanable_dirty_ratio, config.delete_retention_ms) == (0.5, 86_400_000)
