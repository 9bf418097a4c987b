"""A retry of any of a producer's last five batches is recognised, whatever happened to the log."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from embedlog.errors import OutOfOrderSequenceNumber
from embedlog.storage import paths
from embedlog.storage.directory.log_manager import LogManager
from embedlog.storage.log.log import Log
from embedlog.storage.log_config import LogConfig
from embedlog.storage.producers import snapshot
from embedlog.storage.replica.append import append_as_follower
from embedlog.storage.replica.truncation import truncate_to
from embedlog.testing import SimFiles
from tests.storage.logs import NOW, PARTITION, append, batch, batches, check, manager, values
from tests.storage.relocation.relocation import Moving

_FILLER = b"." * 1000
_COUNT = 9
_PRODUCER = 7
_KEPT = range(_COUNT - 5, _COUNT)


def _fill(log: Log) -> dict[int, int]:
    """Append more than a close leaves to be read again; return first sequence -> its offset."""
    for _ in range(80):
        append(log, _FILLER)
    offsets = {}
    for number in range(_COUNT):
        offsets[2 * number] = append(
            log, b"a%d" % number, b"b%d" % number, producer=(_PRODUCER, 3, 2 * number)
        )
        append(log, b"other", producer=(8, 0, number))
    return offsets


def _check_retries(log: Log, offsets: dict[int, int]) -> None:
    """Raise unless all five batches are duplicates, the one before is not, and the next fits."""
    check(log)
    end, written = log.log_end_offset, values(log)
    for number in _KEPT:
        records = batch(b"a%d" % number, b"b%d" % number, producer=(_PRODUCER, 3, 2 * number))
        told = log.append_as_leader(records, leader_epoch=log.epochs.latest, now_ms=NOW)
        first = offsets[2 * number]
        assert (told.duplicate, told.first_offset, told.last_offset) == (True, first, first + 1)
    with pytest.raises(OutOfOrderSequenceNumber):
        append(log, b"a", b"b", producer=(_PRODUCER, 3, 2 * (_KEPT[0] - 1)))
    assert (log.log_end_offset, values(log)) == (end, written)
    assert append(log, b"next", producer=(_PRODUCER, 3, 2 * _COUNT)) == end


def _opened(disk: SimFiles) -> Log:
    log = manager(disk).get(PARTITION)
    assert log is not None
    return log


def _close(owner: LogManager, _log: Log) -> None:
    owner.close()


def _kill(owner: LogManager, _log: Log) -> None:
    owner.abandon()


def _roll_and_kill(owner: LogManager, log: Log) -> None:
    log.roll()
    owner.abandon()


def _roll_and_close(owner: LogManager, log: Log) -> None:
    log.roll()
    owner.close()


def _close_and_damage(owner: LogManager, log: Log) -> None:
    owner.close()
    path = paths.segment_file(log.directory, log.log_end_offset, paths.SNAPSHOT)
    log.files.open(path).write([b"?"], 20)


def _close_twice(owner: LogManager, _log: Log) -> None:
    owner.close()
    again = manager(owner.directory.files)
    again.get(PARTITION)
    again.close()


@pytest.mark.parametrize(
    "end", [_close, _close_twice, _kill, _roll_and_kill, _roll_and_close, _close_and_damage]
)
def test_after_a_restart(end: Callable[[LogManager, Log], None]) -> None:
    disk = SimFiles()
    owner = manager(disk)
    log = owner.get_or_create(PARTITION)
    offsets = _fill(log)
    end(owner, log)
    _check_retries(_opened(disk), offsets)


def test_after_a_close_with_an_open_transaction() -> None:
    disk = SimFiles()
    owner = manager(disk)
    log = owner.get_or_create(PARTITION)
    for number in range(6):
        append(log, b"%d" % number, producer=(7, 0, number), transactional=True)
    owner.close()
    again = _opened(disk)
    entry = again.transactions.producers.get(7)
    assert entry is not None
    assert [each.last_offset for each in entry.batches] == [1, 2, 3, 4, 5]
    assert (entry.current_txn_first_offset, again.transactions.first_unstable_offset) == (0, 0)


@pytest.mark.parametrize("closes", [False, True])
def test_after_a_truncation_of_later_batches(closes: bool) -> None:
    disk = SimFiles()
    owner = manager(disk)
    log = owner.get_or_create(PARTITION)
    offsets = _fill(log)
    log.roll()
    end = log.log_end_offset
    for number in range(_COUNT, _COUNT + 3):
        append(log, b"a", b"b", producer=(_PRODUCER, 3, 2 * number))
    log.roll()
    truncate_to(log, end)
    if closes:
        owner.close()
        log = _opened(disk)
    _check_retries(log, offsets)


@pytest.mark.parametrize("closes", [False, True])
def test_by_a_follower_that_becomes_the_leader(closes: bool) -> None:
    leader = manager(SimFiles()).get_or_create(PARTITION)
    offsets = _fill(leader)
    disk = SimFiles()
    owner = manager(disk)
    follower = owner.get_or_create(PARTITION)
    for one in batches(leader):
        append_as_follower(follower, one.buffer, leader_epoch=0, now_ms=NOW)
    if closes:
        owner.close()
        follower = _opened(disk)
    _check_retries(follower, offsets)


@pytest.mark.parametrize("closes", [False, True])
def test_after_a_move_to_another_directory(closes: bool) -> None:
    moving = Moving(segment_bytes=20_000, index_interval_bytes=4096)
    offsets = _fill(moving.log)
    moving.commit()
    moving.move()
    if closes:
        moving.close()
        moving = Moving(moving.disk, metadata=moving.metadata, segment_bytes=20_000)
    _check_retries(moving.log, offsets)


def test_after_the_deletion_of_all_records() -> None:
    disk = SimFiles()
    owner = manager(disk)
    log = owner.get_or_create(PARTITION)
    offsets = _fill(log)
    log.roll()
    log.offsets.update_high_watermark(log.log_end_offset)
    log.offsets.increment_log_start_offset(log.log_end_offset)
    owner.close()
    again = _opened(disk)
    assert again.offsets.log_start_offset == again.log_end_offset
    _check_retries(again, offsets)


def test_a_producer_without_earlier_batches_is_written_as_kafka_writes_it() -> None:
    log = manager(SimFiles(), config=LogConfig()).get_or_create(PARTITION)
    append(log, b"a", producer=(7, 0, 0))
    append(log, b"b", producer=(7, 0, 1))
    rows = snapshot.encode(log.transactions.producers)[10:]
    earlier, last = rows[:46], rows[46:]
    assert len(last) == 46
    assert earlier[:10] == last[:10], "the producer id and the epoch"
    assert last[10:].hex() == (
        "00000001000000000000000100000000" + NOW.to_bytes(8, "big").hex() + "ffffffff" + "f" * 16
    )
