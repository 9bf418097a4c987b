"""The recovery table, row by row; damage to anything is found or harmless."""

from __future__ import annotations

import pytest

from embedlog import errors
from embedlog.errors import CorruptRecord
from embedlog.runtime.files import remove_tree
from embedlog.runtime.randomness import seeded
from embedlog.storage import paths
from embedlog.storage.directory.log_manager import LogManager
from embedlog.storage.directory.tasks import CHECKPOINT_INTERVAL_MS
from embedlog.storage.log.durability import SYNC_WINDOW_SIZE
from embedlog.storage.log.gaps import write_gaps
from embedlog.storage.log.log import Log
from embedlog.storage.log.shutdown import close_log
from embedlog.storage.log_config import LogConfig
from embedlog.storage.replica.truncation import truncate_fully_and_start_at
from embedlog.storage.segments.scan import has_good_batch_after
from embedlog.testing import SimFiles, sim_runtime
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

DIRECTORY = f"{DATA}/{PARTITION}"
FIRST = f"{DIRECTORY}/{0:020d}.log"


def _killed(log: Log) -> SimFiles:
    """Return the disk after the process of `log` was killed."""
    return log.files.survivor()


def _powered_off(log: Log) -> SimFiles:
    """Return the same bytes after a loss of power: others might be missing."""
    disk = log.files.survivor()
    disk.boot_id += "+"
    return disk


def _flip(disk: SimFiles, path: str, position: int, mask: int = 1) -> None:
    file = disk.open(path)
    file.write([bytes([file.view(position, 1)[0] ^ mask])], position)


def _open(disk: SimFiles, **settings: object) -> Log:
    log = manager(disk, config=LogConfig(**settings)).get(PARTITION)
    assert log is not None
    return log


def _quarantined(disk: SimFiles) -> dict[str, bytes]:
    return {
        name: disk.read(f"{DIRECTORY}/{name}")
        for name in disk.list(DIRECTORY)
        if name.endswith(".quarantine")
    }


def test_zeros_behind_the_last_batch_are_cut_silently() -> None:
    log = new_log()
    append(log, b"a")
    disk = _killed(log)
    assert disk.open(FIRST).size() > log.size
    again = _open(disk)
    assert values(again) == [b"a"]
    assert disk.open(FIRST).size() == log.size
    assert _quarantined(disk) == {}


def test_a_torn_tail_is_cut_and_put_aside() -> None:
    log = new_log()
    append(log, b"a")
    size = log.size
    append(log, b"torn" * 10)
    disk = _powered_off(log)
    _flip(disk, FIRST, log.size - 1)
    again = _open(disk)
    assert values(again) == [b"a"]
    assert again.failure is None
    ((name, content),) = _quarantined(disk).items()
    assert name == f"{0:020d}.{size:010d}.quarantine"
    assert content[: log.size - size].count(b"torn") >= 9
    append(again, b"b")
    check(again)


def test_good_batches_within_the_window_behind_a_bad_one_are_put_aside_too() -> None:
    log = new_log()
    for value in (b"a", b"b", b"c"):
        append(log, value)
    first = batches(log)[0].size
    disk = _powered_off(log)
    _flip(disk, FIRST, first + 65)
    owner = manager(disk)
    again = owner.get(PARTITION)
    assert again is not None
    assert values(again) == [b"a"]
    assert len(_quarantined(disk)) == 1
    (news,) = owner.opener.found[PARTITION]
    assert news.kind == "cut"
    assert news.subject == "events-0"
    assert "cut at offset 1: " in news.reason


@pytest.mark.parametrize("durability", ["os", "fsync"])
@pytest.mark.parametrize("flipped", [0, 1, 2])
def test_no_bad_batch_that_is_complete_is_cut_when_only_the_process_died(
    durability: str, flipped: int
) -> None:
    log = new_log(durability=durability)
    starts = []
    for value in (b"a" * 100, b"b" * 100, b"c" * 100):
        starts.append(log.size)
        append(log, value)
    disk = _killed(log)
    before = disk.read(FIRST)[: log.size]
    _flip(disk, FIRST, starts[flipped] + 80)
    again = _open(disk, durability=durability)
    assert isinstance(again.failure, CorruptRecord)
    assert again.failure.position == starts[flipped]
    assert len(values(again)) == flipped
    _flip(disk, FIRST, starts[flipped] + 80)
    assert disk.read(FIRST)[: log.size] == before
    assert _quarantined(disk) == {}


@pytest.mark.slow
@pytest.mark.parametrize("durability", ["os", "fsync"])
def test_a_write_that_a_kill_has_cut_short_is_cut_off_and_told(durability: str) -> None:
    """Yield the remains of the last batch: any beginning of it, then zeros or the file's end."""
    log = new_log(durability=durability)
    append(log, b"first")
    size = log.size
    append(log, b"x" * 500)
    base = _killed(log)
    whole = base.read(FIRST)
    for kept in [*range(1, 90), *range(90, log.size - size - 16, 50)]:
        for end in (size + kept, len(whole)):
            disk = base.survivor()
            file = disk.open(FIRST)
            file.write([bytes(len(whole) - size - kept)], size + kept)
            file.truncate(end)
            owner = manager(disk, config=LogConfig(durability=durability))
            again = owner.get_or_create(PARTITION)
            assert again.failure is None, (kept, end)
            assert values(again) == [b"first"]
            if any(whole[size : size + kept]):
                assert [news.kind for news in owner.opener.found[PARTITION]] == ["cut"]
            append(again, b"goes on")
            check(again)


def test_a_write_that_ends_with_a_page_few_bytes_before_its_end_is_torn() -> None:
    log = new_log(durability="fsync")
    append(log, b"x" * (4096 - 3 * 69))
    size = log.size
    filling = 4096 - size - 69 + 8
    append(log, b"y" * filling)
    assert 4096 < log.size < 4096 + 16
    disk = _killed(log)
    disk.open(FIRST).write([bytes(log.size - 4096)], 4096)
    again = _open(disk, durability="fsync")
    assert again.failure is None
    assert (again.size, again.log_end_offset) == (size, 1)


def test_a_full_segment_ends_with_no_torn_write_if_another_one_follows() -> None:
    log = new_log(segment_bytes=400)
    for _ in range(3):
        append(log, b"x" * 250)
    first = log.segments[0]
    disk = _killed(log)
    disk.open(FIRST).write([bytes(first.size - 100)], 100)
    again = _open(disk)
    assert isinstance(again.failure, CorruptRecord)
    assert _quarantined(disk) == {}


def test_a_stray_byte_in_reserved_room_is_no_batch() -> None:
    log = new_log(durability="fsync")
    append(log, b"first")
    base = _killed(log)
    for position in (0, 11, 16, 40, 4000):
        disk = base.survivor()
        _flip(disk, FIRST, log.size + position, 0x40)
        owner = manager(disk, config=LogConfig(durability="fsync"))
        again = owner.get_or_create(PARTITION)
        assert again.failure is None, position
        assert values(again) == [b"first"]
        assert [news.kind for news in owner.opener.found[PARTITION]] == ["cut"]


def test_nothing_is_cut_off_a_log_that_was_closed() -> None:
    """Not even if no recovery point proves that it was synced."""
    owner = manager()
    log = owner.get_or_create(PARTITION)
    for value in (b"a", b"b", b"c"):
        append(log, value)
    last = batches(log)[2]
    owner.close()
    disk = log.files.survivor()
    _flip(disk, FIRST, log.size - last.size + 14)
    for _ in range(2):
        again = _open(disk)
        assert isinstance(again.failure, CorruptRecord)
        assert values(again) == [b"a", b"b"]
        assert _quarantined(disk) == {}
        disk = disk.survivor()


def test_a_loss_of_power_is_remembered_until_it_was_recovered_from() -> None:
    """The next process may be killed before it has opened every log."""
    log = new_log()
    for value in (b"a", b"b", b"c"):
        append(log, value)
    size = batches(log)[0].size
    disk = _powered_off(log)
    _flip(disk, FIRST, size + 65)
    assert not manager(disk).directory.clean
    disk = disk.survivor()
    owner = manager(disk)
    again = owner.get(PARTITION)
    assert again is not None
    assert again.failure is None
    assert values(again) == [b"a"]
    append(again, b"d")
    append(again, b"e")
    owner.directory.end_recovery()
    disk = disk.survivor()
    _flip(disk, FIRST, size + 65)
    assert isinstance(_open(disk).failure, CorruptRecord)


def test_a_value_made_to_look_like_batches_costs_a_few_checksums() -> None:
    """If the search gives up, it reports a batch: then nothing is cut."""
    head = bytes(8) + (1 << 19).to_bytes(4, "big") + bytes(4) + b"\2"
    crafted = memoryview(head * (1 << 16))
    assert has_good_batch_after(crafted, 0, 0, beyond=0)
    assert not has_good_batch_after(crafted[:2000], 0, 0, beyond=0)


def _log_with_a_window_behind(durability: str = "os", **settings: object) -> Log:
    log = new_log(durability=durability, max_message_bytes=2 << 20, **settings)
    append(log, b"first")
    append(log, b"second")
    while log.size < SYNC_WINDOW_SIZE + (2 << 20):
        append(log, b"x" * (1 << 20))
    return log


@pytest.mark.parametrize("settings", [{}, {"segment_bytes": 3 << 20}])
def test_good_batches_beyond_the_window_prove_rot_and_nothing_is_cut(
    settings: dict[str, object],
) -> None:
    log = _log_with_a_window_behind(**settings)
    disk = _killed(log)
    size = batches(log)[0].size
    before = disk.read(FIRST)
    _flip(disk, FIRST, size + 70)
    for _ in range(2):
        again = _open(disk, **settings)
        assert isinstance(again.failure, CorruptRecord)
        assert again.failure.position == size
        assert values(again) == [b"first"]
        with pytest.raises(errors.KafkaStorageError):
            append(again, b"never")
        disk = disk.survivor()
    _flip(disk, FIRST, size + 70)
    assert disk.read(FIRST) == before
    assert values(_open(disk, **settings)) == values(log)


def test_the_window_counts_the_segments_between_the_damage_and_a_good_batch() -> None:
    log = _log_with_a_window_behind(segment_bytes=3 << 20)
    assert len(log.segments) == 3
    disk = _powered_off(log)
    _flip(disk, FIRST, batches(log)[0].size + 70)
    assert isinstance(_open(disk, segment_bytes=3 << 20).failure, CorruptRecord)


def test_damage_below_the_recovery_point_is_rot_however_near_the_end() -> None:
    log = new_log(durability="fsync")
    append(log, b"a")
    append(log, b"b")
    log.durability.sync(2)
    log.offsets.checkpoint()
    disk = _killed(log)
    _flip(disk, FIRST, log.size - 1)
    again = _open(disk, durability="fsync")
    assert isinstance(again.failure, CorruptRecord)
    assert values(again) == [b"a"]


def test_synced_data_that_is_missing_is_rot() -> None:
    log = new_log(durability="fsync")
    append(log, b"a")
    append(log, b"b")
    log.durability.sync(2)
    log.offsets.checkpoint()
    disk = _killed(log)
    disk.open(FIRST).truncate(batches(log)[0].size)
    again = _open(disk, durability="fsync")
    assert isinstance(again.failure, CorruptRecord)
    assert values(again) == [b"a"]


def test_rot_is_still_rot_after_another_kill() -> None:
    log = new_log(durability="fsync")
    append(log, b"a")
    append(log, b"b")
    log.durability.sync(2)
    log.offsets.checkpoint()
    disk = _powered_off(log)
    _flip(disk, FIRST, log.size - 1)
    for _ in range(2):
        owner = manager(disk, config=LogConfig(durability="fsync"))
        again = owner.get(PARTITION)
        assert again is not None
        assert isinstance(again.failure, CorruptRecord)
        owner.checkpoints.write_positions()
        disk = disk.survivor()
        disk.boot_id += "+"
    assert _quarantined(disk) == {}


def test_rot_is_still_rot_after_a_close() -> None:
    log = new_log(durability="fsync")
    append(log, b"a")
    append(log, b"b")
    log.durability.sync(2)
    log.offsets.checkpoint()
    disk = _killed(log)
    _flip(disk, FIRST, log.size - 1)
    owner = manager(disk, config=LogConfig(durability="fsync"))
    assert owner.get(PARTITION) is not None
    owner.close()
    again = _open(disk, durability="fsync")
    assert isinstance(again.failure, CorruptRecord)


def test_salvage_takes_the_rot_out_and_keeps_what_was_there_aside() -> None:
    log = _log_with_a_window_behind()
    disk = _killed(log)
    _flip(disk, FIRST, batches(log)[0].size + 70)
    owner = manager(disk)
    rotten = owner.get(PARTITION)
    assert rotten is not None
    assert rotten.failure is not None
    salvaged = owner.salvage(PARTITION)
    assert values(salvaged) == [b"first", *values(log)[2:]]
    assert sum(map(len, _quarantined(disk).values())) > SYNC_WINDOW_SIZE
    assert append(salvaged, b"goes on") == log.log_end_offset


def test_an_unclean_open_begins_a_leader_epoch_and_a_clean_one_does_not() -> None:
    log = new_log()
    append(log, b"a", epoch=4)
    disk = _killed(log)
    owner = manager(disk)
    again = owner.get(PARTITION)
    assert again is not None
    assert again.epochs.cache.entries == [(4, 0), (5, 1)]
    owner.close()
    clean = _open(disk)
    assert clean.epochs.cache.entries == [(4, 0), (5, 1)]


def test_what_was_recovered_is_synced_before_it_is_shown() -> None:
    log = new_log(durability="fsync")
    append(log, b"written, not synced")
    disk = _killed(log)
    again = _open(disk, durability="fsync")
    assert values(again) == [b"written, not synced"]
    assert again.durability.synced_offset == 1


def _three_batches() -> tuple[LogManager, Log]:
    owner = manager(config=LogConfig(index_interval_bytes=0))
    log = owner.get_or_create(PARTITION)
    append(log, b"first", epoch=1)
    append(log, b"second", epoch=2)
    append(log, b"third", epoch=2)
    return owner, log


@pytest.mark.slow
@pytest.mark.parametrize("loses_power", [False, True])
def test_every_flipped_bit_of_an_unclosed_log_is_found(loses_power: bool) -> None:
    _, log = _three_batches()
    sent = [bytes(one.buffer) for one in batches(log)]
    base = _powered_off(log) if loses_power else _killed(log)
    for position in range(log.size):
        for bit in range(8):
            disk = base.survivor()
            _flip(disk, FIRST, position, 1 << bit)
            # At `os` the epochs on disk may be older than the log after a loss of power.
            owner = manager(disk, config=LogConfig(durability="fsync" if loses_power else "os"))
            again = owner.get_or_create(PARTITION)
            found = [bytes(one.buffer) for one in batches(again)]
            assert found == sent[: len(found)], (position, bit)
            assert len(found) < 3, (position, bit)
            if loses_power:
                assert len(_quarantined(disk)) == len(owner.opener.found[PARTITION]) == 1
            else:
                assert isinstance(again.failure, CorruptRecord), (position, bit)
                assert not _quarantined(disk)


@pytest.mark.slow
def test_every_flipped_bit_of_a_closed_log_is_found_by_its_readers() -> None:
    """A clean open reads no records; each batch is checked when it is first read."""
    owner, log = _three_batches()
    sent = [bytes(one.buffer) for one in batches(log)]
    owner.close()
    base = log.files.survivor()
    assert manager(base.survivor()).directory.clean
    for position in range(log.size):
        for bit in range(8):
            disk = base.survivor()
            _flip(disk, FIRST, position, 1 << bit)
            again = _open(disk)
            found: list[bytes] = []
            with pytest.raises(CorruptRecord) as caught:
                for offset in range(3):
                    read = again.reader.read(offset, max_bytes=1, end_offset=again.log_end_offset)
                    found.append(bytes(read.records))
                    assert read.next_offset == offset + 1
            assert found == sent[: len(found)]
            assert caught.value.path == FIRST
            assert caught.value.position >= sum(map(len, found)), (position, bit)


SIDECARS = [".index", ".timeindex", ".txnindex", ".snapshot", "-checkpoint", ".sealed"]


def _log_with_everything() -> tuple[SimFiles, dict[str, object]]:
    settings: dict[str, object] = {"segment_bytes": 700, "index_interval_bytes": 100}
    owner = manager(config=LogConfig(**settings))
    log = owner.get_or_create(PARTITION, topic_id=bytes(15) + b"\4")
    for number in range(8):
        append(log, b"%d" % number * 20, timestamps=NOW + (7 * number) % 5, epoch=number // 3)
        append(log, b"t", producer=(number, 0, 0), transactional=True, epoch=number // 3)
        append_marker(log, number, committed=number % 2 == 0)
    append(log, b"open", producer=(99, 0, 0), transactional=True)
    log.offsets.update_high_watermark(log.log_end_offset)
    owner.close()
    return log.files.survivor(), settings


def _state(disk: SimFiles, settings: dict[str, object]) -> object:
    log = _open(disk, **settings)
    log.offsets.update_high_watermark(log.log_end_offset)
    check(log)
    end = log.log_end_offset
    return (
        values(log),
        [(one.producer_id, one.first_offset) for one in log.transactions.aborted(0, end)],
        [log.reader.fetch_offset(NOW + time) for time in range(6)],
        log.reader.fetch_offset(-3),
        log.offsets.last_stable_offset,
        sorted(
            (one.producer_id, one.producer_epoch, one.last_sequence, one.current_txn_first_offset)
            for one in list(log.transactions.producers)
        ),
        log.epochs.cache.entries,
        log.offsets.log_start_offset,
    )


@pytest.mark.slow
@pytest.mark.parametrize("damage", ["delete", "empty", "halve", "flip"])
def test_any_sidecar_may_be_deleted_or_damaged(damage: str) -> None:
    base, settings = _log_with_everything()
    expected = _state(base.survivor(), settings)
    sidecars = [name for name in base.list(DIRECTORY) if name.endswith(tuple(SIDECARS))]
    assert len(sidecars) > 12
    for name in sidecars:
        path = f"{DIRECTORY}/{name}"
        size = len(base.read(path))
        if damage == "flip":
            for position in range(0, size, 3):
                disk = base.survivor()
                _flip(disk, path, position, 1 << (position % 7))
                assert _state(disk, settings) == expected, (name, position)
            continue
        disk = base.survivor()
        if damage == "delete":
            disk.remove(path)
        else:
            disk.open(path).truncate(0 if damage == "empty" else size // 2)
        assert _state(disk, settings) == expected, name


def test_all_sidecars_may_be_deleted_at_once() -> None:
    base, settings = _log_with_everything()
    expected = _state(base.survivor(), settings)
    for name in base.list(DIRECTORY):
        if name.endswith(tuple(SIDECARS)):
            base.remove(f"{DIRECTORY}/{name}")
    for name in base.list(DATA):
        if "checkpoint" in name:
            base.remove(f"{DATA}/{name}")
    assert _state(base, settings) == expected


@pytest.mark.slow
def test_a_damaged_recovery_point_makes_recovery_read_more_not_less() -> None:
    log = new_log()
    append(log, b"a")
    append(log, b"b")
    log.durability.flush()
    log.offsets.checkpoint()
    append(log, b"torn")
    disk = _killed(log)
    _flip(disk, FIRST, log.size - 1)
    for name in disk.list(DATA):
        if not name.startswith("recovery-point"):
            continue
        path = f"{DATA}/{name}"
        for position in range(len(disk.read(path))):
            for bit in range(7):
                damaged = disk.survivor()
                _flip(damaged, path, position, 1 << bit)
                again = _open(damaged)
                assert values(again) == [b"a", b"b"], (name, position, bit)


def test_leftovers_of_interrupted_work_are_swept_up() -> None:
    log = new_log(segment_bytes=300)
    for number in range(6):
        append(log, b"%d" % number * 100)
    disk = _killed(log)
    useless = (
        "00000000000000000000.log.deleted",
        "00000000000000000001.log.cleaned",
        "leader-epoch-checkpoint.sealed.tmp",
        "00000000000000000003.snapshot.tmp",
        "00000000000000000099.index",
    )
    foreign = ("x.tmp", "notes.index", "photo.deleted")
    for name in (*useless, *foreign):
        disk.open(f"{DIRECTORY}/{name}", create=True).write([b"junk"], 0)
    again = _open(disk, segment_bytes=300)
    assert values(again) == values(log)
    names = disk.list(DIRECTORY)
    assert not {*useless} & {*names}
    assert {*foreign} < {*names}


def test_the_output_of_a_compaction_takes_the_place_of_what_it_was_made_from() -> None:
    log = new_log(segment_bytes=300, cleanup_policy="compact")
    for number in range(6):
        append(log, b"%d" % number * 100, keys=[b"k"])
    close_log(log)
    disk = log.files.survivor()
    # Compaction kept the last record of the first three segments, under the first one's name.
    kept = disk.read(f"{DIRECTORY}/{2:020d}.log")
    swap = disk.open(f"{DIRECTORY}/{0:020d}.log.swap", create=True)
    swap.write([kept], 0)
    write_gaps(disk, DATA, {PARTITION: 3})
    again = _open(disk, segment_bytes=300, cleanup_policy="compact")
    assert [segment.base_offset for segment in again.segments] == [0, 3, 4, 5]
    assert [record.offset for one in batches(again) for record in one.records()] == [2, 3, 4, 5]
    assert again.reader.read(0, max_bytes=1, end_offset=6).next_offset == 3


def test_records_below_the_start_offset_are_not_shown_after_a_restart() -> None:
    owner = manager()
    log = owner.get_or_create(PARTITION)
    for value in (b"a", b"b", b"c"):
        append(log, value)
    log.offsets.update_high_watermark(3)
    log.offsets.increment_log_start_offset(2)
    again = _open(_killed(log))
    assert again.offsets.log_start_offset == 2
    assert values(again) == [b"c"]


def test_a_log_that_ends_below_its_start_offset_restarts_there() -> None:
    owner = manager()
    log = owner.get_or_create(PARTITION)
    append(log, b"a")
    truncate_fully_and_start_at(log, 70)
    disk = _killed(log)
    disk.remove(f"{DIRECTORY}/{70:020d}.log")
    disk.open(FIRST, create=True).write([bytes(batches(new_log_with_a())[0].buffer)], 0)
    again = _open(disk)
    assert (again.offsets.log_start_offset, again.log_end_offset) == (70, 70)
    assert len(_quarantined(disk)) == 1
    assert append(again, b"b") == 70


def new_log_with_a() -> Log:
    log = new_log()
    append(log, b"a")
    return log


def test_a_directory_without_segments_is_an_empty_log() -> None:
    log = new_log()
    disk = _killed(log)
    remove_tree(disk, DIRECTORY)
    disk.make_directory(DIRECTORY)
    again = _open(disk)
    assert (again.offsets.log_start_offset, again.log_end_offset) == (0, 0)
    append(again, b"a")
    check(again)


def test_a_reader_is_told_of_the_rot_and_neither_waits_nor_starts_over() -> None:
    log = new_log(durability="fsync")
    append(log, b"a")
    append(log, b"b")
    log.durability.sync(2)
    log.offsets.checkpoint()
    disk = _killed(log)
    _flip(disk, FIRST, log.size - 1)
    again = _open(disk, durability="fsync")
    for offset in (1, 2):
        with pytest.raises(CorruptRecord):
            again.reader.read(offset, max_bytes=100, end_offset=again.log_end_offset)


def test_snapshots_of_lost_records_are_not_believed_once_others_are_there() -> None:
    log = new_log()
    append(log, b"sent", producer=(7, 0, 0))
    log.roll()
    append(log, b"more", producer=(7, 0, 1))
    disk = _powered_off(log)
    disk.remove(f"{DIRECTORY}/{1:020d}.log")
    disk.open(FIRST).truncate(0)
    again = _open(disk)
    assert again.log_end_offset == 0
    assert list(again.transactions.producers) == []
    append(again, b"of nobody")
    append(again, b"of nobody")
    assert list(_open(disk.survivor()).transactions.producers) == []


def test_a_log_whose_producers_are_not_known_takes_no_more() -> None:
    """A batch to be replayed is damaged: nobody knows which sequences were sent."""
    owner = manager()
    log = owner.get_or_create(PARTITION)
    for number in range(3):
        append(log, b"%d" % number * 100, producer=(7, 0, number))
    owner.close()
    disk = log.files.survivor()
    for name in disk.list(DIRECTORY):
        if name.endswith(".snapshot"):
            disk.remove(f"{DIRECTORY}/{name}")
    _flip(disk, FIRST, 90)
    again = _open(disk)
    assert isinstance(again.failure, CorruptRecord)
    assert again.failure.position == 0
    with pytest.raises(errors.KafkaStorageError):
        append(again, b"never", producer=(7, 0, 3))


def test_at_os_segments_that_are_full_get_a_recovery_point() -> None:
    """Two checkpoints later they outlive a loss of power."""
    runtime = sim_runtime()
    owner = manager(config=LogConfig(durability="os", segment_bytes=300), runtime=runtime)
    runtime.scheduler.add(owner.tasks)
    log = owner.get_or_create(PARTITION)
    for number in range(7):
        append(log, b"%d" % number * 100)
        owner.tasks.stir()
    last = log.segments[-1].base_offset
    assert last >= 5
    runtime.scheduler.run_for(2 * CHECKPOINT_INTERVAL_MS + 1000)
    assert log.durability.synced_offset == last
    for name in ("", DATA):
        runtime.files.sync_directory(name)  # the level leaves that to the system
    for image in runtime.files.crash_images(seeded(1), 20):
        again = _open(image, segment_bytes=300)
        assert again.failure is None
        assert values(again)[:last] == [b"%d" % number * 100 for number in range(last)]


# Kinds of damage, and the order of putting it aside


def test_a_closed_log_that_ends_within_a_batch_is_rotten() -> None:
    disk = SimFiles()
    owner = manager(disk)
    log = owner.get_or_create(PARTITION)
    append(log, b"a")
    append(log, b"b" * 100)
    owner.close()
    disk.open(FIRST).truncate(log.size - 5)
    again = _open(disk)
    assert isinstance(again.failure, CorruptRecord)
    assert _quarantined(disk) == {}


def test_a_closed_log_that_has_lost_a_synced_batch_is_rotten() -> None:
    disk = SimFiles()
    owner = manager(disk, config=LogConfig(durability="fsync"))
    log = owner.get_or_create(PARTITION)
    append(log, b"a")
    append(log, b"b")
    size = batches(log)[0].size
    owner.close()
    disk.open(FIRST).truncate(size)
    assert isinstance(_open(disk, durability="fsync").failure, CorruptRecord)


def test_a_missing_segment_is_damage_after_a_kill() -> None:
    log = new_log(segment_bytes=400)
    for _ in range(3):
        append(log, b"x" * 250)
    middle = log.segments[1].path
    disk = _killed(log)
    disk.remove(middle)
    again = _open(disk)
    assert isinstance(again.failure, CorruptRecord)
    assert again.log_end_offset == 1


def test_a_batch_whose_length_has_rotted_is_not_torn() -> None:
    log = new_log()
    append(log, b"a")
    size = log.size
    append(log, b"b" * 100)
    disk = _killed(log)
    _flip(disk, FIRST, size + 8, 0x10)
    assert isinstance(_open(disk).failure, CorruptRecord)


def test_the_last_segments_are_put_aside_first_and_synced() -> None:
    """After a crash in between, the next recovery finds the same first bad byte."""
    log = new_log(segment_bytes=400)
    for _ in range(4):
        append(log, b"x" * 250)
    bases = [segment.base_offset for segment in log.segments]
    disk = _powered_off(log)
    _flip(disk, FIRST, 100)
    begin = len(disk.trace)
    assert values(_open(disk)) == []
    calls = disk.trace[begin:]
    put_aside = [path for call, path in calls if call == "rename" and path.endswith(".log")]
    assert put_aside == [f"{DIRECTORY}/{base:020d}.log" for base in reversed(bases[1:])]
    assert calls.index(("rename", put_aside[-1])) < calls.index(("truncate", FIRST))
    assert any(call == "sync" and ".quarantine" in path for call, path in calls)


def test_epochs_that_are_older_than_the_records_are_no_rot_after_a_loss_of_power() -> None:
    log = new_log()
    append(log, b"a", epoch=1)
    path = f"{DIRECTORY}/{paths.SEALED_LEADER_EPOCHS}"
    older = log.files.read(path)
    append(log, b"b", epoch=2)
    disk = _powered_off(log)
    file = disk.open(path)
    file.truncate(0)
    file.write([older], 0)
    again = _open(disk)
    assert again.failure is None
    assert values(again) == [b"a", b"b"]
    assert again.epochs.cache.entries[:2] == [(1, 0), (2, 1)]


def test_later_epochs_in_the_text_of_kafka_are_believed() -> None:
    disk = SimFiles()
    owner = manager(disk)
    log = owner.get_or_create(PARTITION)
    append(log, b"a", epoch=1)
    size = log.size
    owner.close()
    disk.open(FIRST).write([batch(b"b", base_offset=1, leader_epoch=5)], size)
    text = disk.open(f"{DIRECTORY}/{paths.LEADER_EPOCHS}", create=True)
    text.write([b"0\n2\n1 0\n5 1\n"], 0)
    again = _open(disk)
    assert again.failure is None
    assert values(again) == [b"a", b"b"]
    assert again.epochs.cache.entries == [(1, 0), (5, 1)]
