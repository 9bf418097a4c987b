"""A reader that walks the last segment by batch headers sees the same as one with full checks."""

from __future__ import annotations

import pickle
from collections.abc import Callable

import pytest

from embedlog.errors import CorruptRecord
from embedlog.reader.reader import LogDirectoryReader, PartitionReader
from embedlog.storage.log.log import Log
from embedlog.storage.log_config import LogConfig
from embedlog.testing import SimFiles, sim_runtime
from tests.storage.logs import DATA, PARTITION, append, append_marker, manager

COMMITTED = {"isolation_level": "read_committed"}


def _reader(disk: SimFiles) -> LogDirectoryReader:
    return LogDirectoryReader(DATA, runtime=sim_runtime(files=disk))


def _part(disk: SimFiles, *, is_checked: bool = False) -> PartitionReader:
    (part,) = _reader(disk).snapshot([("events", 0)], is_checked=is_checked)
    return part


def _visible(part: PartitionReader) -> tuple[object, ...]:
    values = [
        [bytes(record.value or b"") for record in part.records(**how)] for how in ({}, COMMITTED)
    ]
    bounds = part.log_start_offset, part.high_watermark, part.last_stable_offset
    return (*bounds, str(part.damage), *values)


def _empty(_log: Log) -> None:
    pass


def _plain(log: Log) -> None:
    for number in range(30):
        append(log, b"%d" % number * 10, b"second")


def _transactions(log: Log) -> None:
    append(log, b"aborted", producer=(1, 0, 0), transactional=True)
    append(log, b"committed", producer=(2, 0, 0), transactional=True)
    append_marker(log, 1, committed=False)
    append(log, b"open", producer=(1, 0, 1), transactional=True)
    append_marker(log, 2, committed=True)
    append(log, b"behind")
    append(log, b"open, too", producer=(2, 0, 1), transactional=True)
    append(log, b"behind")


def _unsynced(log: Log) -> None:
    _plain(log)
    log.durability.flush()
    log.offsets.commit(log.config.durability == "fsync")
    append(log, b"unsynced")


@pytest.mark.parametrize("durability", ["os", "fsync"])
@pytest.mark.parametrize("fill", [_empty, _plain, _transactions, _unsynced])
def test_headers_give_the_same_result_as_whole_batches(
    durability: str, fill: Callable[[Log], None]
) -> None:
    disk = SimFiles()
    log = manager(disk, config=LogConfig(durability=durability)).get_or_create(PARTITION)
    before = _part(disk)
    fill(log)
    if fill is not _unsynced:
        log.durability.flush()
    log.offsets.commit(False)
    checked = _visible(_part(disk, is_checked=True))
    assert _visible(_part(disk)) == checked
    before.refresh()
    assert _visible(before) == checked


@pytest.mark.parametrize("rest", [0, 5, 40, 61, 200])
@pytest.mark.parametrize("is_cut", [True, False])
def test_a_batch_being_written_is_not_visible(rest: int, is_cut: bool) -> None:
    disk = SimFiles()
    log = manager(disk).get_or_create(PARTITION)
    _plain(log)
    size = log.size
    append(log, b"torn" * 100)
    torn = disk.survivor()
    file = torn.open(log.segments[0].path)
    if is_cut:
        file.truncate(size + rest)
    else:
        file.write([bytes(log.size - size - rest)], size + rest)
    part = _part(torn)
    assert part.high_watermark == 60
    assert _visible(part) == _visible(_part(torn, is_checked=True))


def _read_of(disk: SimFiles, path: str, look: Callable[[], object]) -> int:
    """Return how many views of a file `look` takes."""
    before = len(disk.trace)
    look()
    return sum(call == "view" and name == path for call, name in disk.trace[before:])


def test_after_a_machine_restart_whole_batches_are_checked() -> None:
    disk = SimFiles()
    log = manager(disk).get_or_create(PARTITION)
    _plain(log)
    log.durability.flush()
    path = log.segments[0].path
    assert _read_of(disk, path, lambda: _part(disk)) > 30, "a view a head"
    restarted = disk.survivor()
    restarted.boot_id += "+"
    assert _read_of(restarted, path, lambda: _part(restarted)) < 10
    file = restarted.open(path)
    file.write([b"\xff"], 80)
    assert _part(restarted).damage is not None


def test_damage_is_reported_to_the_reader_of_the_batch() -> None:
    disk = SimFiles()
    log = manager(disk).get_or_create(PARTITION)
    append(log, b"a")
    size = log.size
    for value in (b"b", b"c"):
        append(log, value)
    log.offsets.commit(False)
    path = log.segments[0].path
    disk.open(path).write([b"\xff"], size + 65)
    part = _part(disk)
    assert (part.high_watermark, part.damage) == (3, None)
    going = part.records()
    assert next(going).value == b"a"
    with pytest.raises(CorruptRecord) as found:
        next(going)
    assert (found.value.path, found.value.position) == (path, size)


def test_a_cut_of_the_last_segment_is_entered_at_its_own_position() -> None:
    disk = SimFiles()
    log = manager(disk).get_or_create(PARTITION)
    for number in range(40):
        append(log, b"%d" % number * 20_000, b"second")
    log.offsets.commit(False)
    part = _part(disk)
    cuts = part.cuts(0, 80, 200_000)
    assert len(cuts) >= 3
    assert all(cut % 2 == 0 for cut in cuts)
    bounds = [0, *cuts, 80]
    for start, end in zip(bounds, bounds[1:], strict=False):
        planned = pickle.loads(pickle.dumps(part.range(start, end)))
        batches = list(planned.batches(runtime=sim_runtime(files=disk)))
        assert [batches[0].base_offset, batches[-1].last_offset] == [start, end - 1]
        assert planned.mark.base_offset == start, "nothing before it is read"


def test_an_outdated_mark_is_ignored() -> None:
    disk = SimFiles()
    log = manager(disk).get_or_create(PARTITION)
    for number in range(40):
        append(log, b"%d" % number * 20_000)
    log.offsets.commit(False)
    planned = _part(disk).range(30, 35)
    for wrong in (planned.mark.position + 7, 0, 1 << 40):
        moved = planned._replace(mark=planned.mark._replace(position=wrong))
        found = [batch.base_offset for batch in moved.batches(runtime=sim_runtime(files=disk))]
        assert found == list(range(30, 35))
