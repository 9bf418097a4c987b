"""Offsets may have gaps in the compacted part; behind it a gap is damage."""

from __future__ import annotations

from errno import ENOSPC

import pytest

from embedlog.errors import CorruptRecord, KafkaStorageError
from embedlog.storage.log.gaps import EVERYWHERE, read_gaps_below
from embedlog.storage.log.shutdown import close_log
from embedlog.storage.paths import CLEANER_OFFSETS, GAPS, LEADER_EPOCHS, RECOVERY_POINTS, SEALED
from embedlog.storage.replica.append import append_as_follower
from embedlog.storage.replica.truncation import truncate_fully_and_start_at
from embedlog.storage.segments.scan import read_batch
from embedlog.storage.state_files.checkpoint_files import read_twin
from embedlog.testing import SimFiles
from tests.storage.cleaner.compaction import Compacted, rows
from tests.storage.logs import DATA, PARTITION, append, batch, manager, new_log

CLEANED, COUNT = 30, 40
DIRECTORY = f"{DATA}/{PARTITION}"
FILE = f"{DATA}/{GAPS}{SEALED}"

killed_or_closed = pytest.mark.parametrize("cleanly", [False, True])


def _compacted(**settings: object) -> Compacted:
    """30 records of 4 keys, compacted, and 10 records behind them, in several segments."""
    topic = Compacted(**settings)
    for number in range(CLEANED):
        topic.put((f"k{number % 4}", f"v{number}"))
    topic.clean()
    for number in range(CLEANED, COUNT):
        topic.put((f"k{number % 4}", f"v{number}"))
    return topic


def _batches(disk: SimFiles) -> list[tuple[str, int, int]]:
    """(path, position, base offset) of every batch."""
    found = []
    for path in sorted(disk.tree.contents()):
        if path.startswith(DIRECTORY) and path.endswith(".log"):
            view, position = memoryview(disk.read(path)), 0
            while not isinstance(batch := read_batch(view, position, len(view)), str):
                found.append((path, position, batch[1]))
                position += batch[0]
    return found


def _write(disk: SimFiles, path: str, content: bytes) -> None:
    file = disk.open(path, create=True)
    file.truncate(0)
    file.write([content], 0)


@pytest.mark.slow
@killed_or_closed
def test_every_flipped_bit_of_a_base_offset_behind_the_cleaned_part_is_told(cleanly: bool) -> None:
    topic = _compacted()
    if cleanly:
        topic.manager.close()
    disk = topic.runtime.files.survivor()
    behind = [each for each in _batches(disk) if each[2] >= CLEANED]
    assert len(behind) == COUNT - CLEANED
    for path, position, _ in behind:
        for bit in range(64):
            flipped = disk.survivor()
            at = position + bit // 8
            byte = flipped.read(path)[at] ^ 1 << bit % 8
            flipped.open(path).write([bytes([byte])], at)
            again = Compacted(flipped)
            if again.log.failure is None:
                with pytest.raises(CorruptRecord):
                    rows(again.log)
            else:
                assert isinstance(again.log.failure, CorruptRecord)


@pytest.mark.parametrize("compacted_before", [False, True])
def test_a_loss_of_power_that_takes_the_end_of_a_segment_leaves_no_hole(
    compacted_before: bool,
) -> None:
    topic = Compacted()
    if compacted_before:
        topic = _compacted()
    else:
        for number in range(COUNT):
            topic.put((f"k{number}", f"v{number}"))
    shown = rows(topic.log)
    disk = topic.runtime.files.survivor()
    disk.boot_id += "+"
    segment = topic.log.segments[-2]
    batches = [each for each in _batches(disk) if each[0] == segment.path]
    assert len(batches) > 1
    disk.open(segment.path).truncate(batches[-1][1])
    again = Compacted(disk)
    assert again.log.failure is None
    assert again.log.log_end_offset == batches[-1][2]
    assert rows(again.log) == [row for row in shown if row[0] < batches[-1][2]]


@killed_or_closed
def test_what_compaction_leaves_is_no_damage(cleanly: bool) -> None:
    topic = _compacted()
    again = topic.reopened(cleanly=cleanly)
    assert again.log.failure is None
    assert rows(again.log) == rows(topic.log)
    assert CLEANED <= again.log.offsets.gaps_below <= COUNT


@killed_or_closed
@pytest.mark.parametrize("damage", ["missing", "flipped"])
def test_the_same_is_shown_when_the_file_is_lost(damage: str, cleanly: bool) -> None:
    topic = _compacted()
    if cleanly:
        topic.manager.close()
    disk = topic.runtime.files.survivor()
    content = disk.read(FILE)
    if damage == "missing":
        disk.remove(FILE)
    else:
        _write(disk, FILE, content[:-3] + bytes([content[-3] ^ 1]) + content[-2:])
    again = Compacted(disk)
    again.commit()
    assert rows(again.log) == rows(topic.log)
    assert again.log.offsets.gaps_below == COUNT
    again.manager.close()
    assert read_twin(disk, DATA, GAPS) == {PARTITION: COUNT}


@killed_or_closed
def test_a_compaction_by_kafka_is_no_damage(cleanly: bool) -> None:
    """Kafka keeps no file of gaps: its cleaner's checkpoint shows a compaction, or else its epochs
    show that it had the log. The second if Kafka died between the swap and its checkpoint.
    """
    topic = _compacted()
    topic.log.roll()
    topic.manager.close()
    for name, told in (
        (CLEANER_OFFSETS, f"0\n1\n{PARTITION[0]} 0 {COUNT}\n"),
        (f"{PARTITION}/{LEADER_EPOCHS}", f"0\n2\n0 0\n1 {COUNT}\n"),
    ):
        kafkas = topic.runtime.files.survivor()
        path, position, offset = _batches(kafkas)[-2]
        content = kafkas.read(path)
        assert read_batch(memoryview(content), position, len(content))[1] == offset
        end = position + read_batch(memoryview(content), position, len(content))[0]
        _write(kafkas, path, content[:position] + content[end:])
        for suffix in (".index", ".timeindex"):
            kafkas.remove(path.removesuffix(".log") + suffix)
        if not cleanly:
            kafkas.remove(f"{DATA}/.kafka_cleanshutdown")
        bad = Compacted(kafkas.survivor())
        bad.commit()
        _write(kafkas, f"{DATA}/{name}", told.encode())
        again = Compacted(kafkas)
        again.commit()
        assert again.log.failure is None
        expected = [row for row in rows(topic.log) if row[0] != offset]
        assert rows(again.log) == expected
        if bad.log.failure is None:  # without Kafka's checkpoint or epochs it would be one
            with pytest.raises(CorruptRecord):
                rows(bad.log)


@killed_or_closed
@pytest.mark.parametrize("policy", ["compact", "delete"])
def test_a_follower_keeps_what_its_leader_has_compacted(policy: str, cleanly: bool) -> None:
    leader = _compacted()
    follower = new_log(cleanup_policy=policy, segment_bytes=400)
    for segment in leader.log.segments:
        content = bytes(segment.file.view(0, segment.size))
        if content:
            append_as_follower(follower, content, leader_epoch=0)
    assert read_gaps_below(follower.files, DATA, PARTITION) == EVERYWHERE
    assert rows(follower) == rows(leader.log)
    if cleanly:
        close_log(follower)
    disk = follower.files.survivor()
    again = manager(disk, config=follower.config).get(PARTITION)
    assert again is not None
    assert again.failure is None
    assert rows(again) == rows(leader.log)
    assert again.offsets.gaps_below == COUNT
    append(again, b"contiguous", keys=[b"k"])
    assert again.failure is None


def test_a_follower_takes_no_gap_that_it_cannot_keep() -> None:
    leader = _compacted()
    follower = new_log(cleanup_policy="compact")
    disk = follower.files
    assert isinstance(disk, SimFiles)
    segment = next(each for each in leader.log.segments if each.size)
    content = bytes(segment.file.view(0, segment.size))
    follower.epochs.assign(0, 0)
    disk.fail(disk.calls, ENOSPC)
    with pytest.raises(KafkaStorageError):
        append_as_follower(follower, content, leader_epoch=0)
    assert follower.log_end_offset == 0
    append_as_follower(follower, content, leader_epoch=0)
    assert follower.log_end_offset == CLEANED
    assert rows(follower)[0][0] > 0


def test_an_empty_compacted_log_has_no_gaps_from_its_first_moment() -> None:
    topic = Compacted()
    disk = topic.runtime.files
    assert read_twin(disk, DATA, GAPS) == {}
    assert topic.log.offsets.gaps_below == 0


@pytest.mark.slow
@killed_or_closed
def test_an_offset_that_rots_between_gaps_is_told_unless_it_stays_between_its_neighbours(
    cleanly: bool,
) -> None:
    topic = Compacted(segment_bytes=1 << 20)
    for number in range(CLEANED):
        topic.put((f"k{number}" if number % 3 == 0 else "k", f"v{number}"))
    topic.clean()
    topic.put(("end", "end"))
    shown = rows(topic.log)
    offsets = [-1, *(offset for offset, _, _ in shown)]
    if cleanly:
        topic.manager.close()
    disk = topic.runtime.files.survivor()
    cleaned = [each for each in _batches(disk) if each[2] < CLEANED]
    assert len(cleaned) > 8
    count = 0
    for slot, (path, position, offset) in enumerate(cleaned, 1):
        assert offsets[slot] == offset
        for bit in range(64):
            value = offset ^ 1 << bit
            value -= (value >> 63) << 64
            flipped = disk.survivor()
            flipped.open(path).write([value.to_bytes(8, "big", signed=True)], position)
            again = Compacted(flipped)
            if offsets[slot - 1] < value < min(offsets[slot + 1], CLEANED):
                count += 1
                continue
            if again.log.failure is None:
                with pytest.raises(CorruptRecord):
                    rows(again.log)
    assert 0 < count < 2 * len(cleaned)


def test_a_gap_within_an_answer_of_the_leader_is_noted_before_it_is_written() -> None:
    log = new_log()
    append_as_follower(
        log, batch(b"a", leader_epoch=0) + batch(b"b", base_offset=5, leader_epoch=0)
    )
    assert log.offsets.gaps_below == EVERYWHERE
    assert read_twin(log.files, DATA, GAPS) == {PARTITION: EVERYWHERE}


@pytest.mark.parametrize("start", [1, 2])
def test_an_empty_log_takes_the_batch_that_holds_its_start(start: int) -> None:
    log = new_log()
    truncate_fully_and_start_at(log, start)
    append_as_follower(log, batch(b"a", b"b", b"c", leader_epoch=0))
    assert log.log_end_offset == 3


def test_new_gaps_hide_no_new_recovery_point() -> None:
    log = new_log()
    append(log, b"a")
    log.durability.flush()
    log.offsets.allow_gaps_below(1)
    assert read_twin(log.files, DATA, GAPS) == {PARTITION: 1}
    assert read_twin(log.files, DATA, RECOVERY_POINTS) == {PARTITION: 1}
