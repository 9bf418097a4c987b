"""Salvage keeps every good batch at its offset, and a copy of the former files."""

from __future__ import annotations

import random
from typing import Any

import pytest

from embedlog.errors import CorruptRecord
from embedlog.runtime.memory_files import MemoryFiles
from embedlog.storage import paths
from embedlog.storage.directory.log_manager import LogManager
from embedlog.storage.log.log import Log
from embedlog.storage.log_config import LogConfig
from embedlog.storage.recovery.salvage import SalvagePlan
from embedlog.storage.verification.directory import DirectoryCheck
from embedlog.testing import SimFiles, SimulatedCrash
from tests.storage.logs import DATA, PARTITION, append, batches, manager, new_log

DIRECTORY = f"{DATA}/{PARTITION}"
COUNT = 30


def _written(**settings: object) -> tuple[SimFiles, list[tuple[int, int, str]]]:
    """A log of 30 records in several segments, its owner killed; where each batch lies."""
    disk = SimFiles()
    owner = manager(disk, config=LogConfig(segment_bytes=1_000, **settings))
    log = owner.get_or_create(PARTITION)
    for number in range(COUNT):
        append(log, b"value %d " % number * 5, epoch=number // 10)
    log.durability.flush()
    owner.checkpoints.write_positions()
    places = []
    for segment in log.segments:
        position = 0
        for batch in batches(log, segment.base_offset):
            if batch.base_offset >= segment.next_offset:
                break
            places.append((position, batch.size, segment.path))
            position += batch.size
    return disk.survivor(), places


def _flip(disk: MemoryFiles, path: str, position: int, mask: int = 1) -> None:
    file = disk.open(path)
    file.write([bytes([file.view(position, 1)[0] ^ mask])], position)


def _offsets(log: Log) -> list[int]:
    return [record.offset for one in batches(log) for record in one.records()]


def _salvaged(disk: SimFiles) -> tuple[LogManager, Log]:
    owner = manager(disk, config=LogConfig(segment_bytes=1_000))
    return owner, owner.salvage(PARTITION)


def _findings(disk: SimFiles) -> list[CorruptRecord]:
    return list(DirectoryCheck(disk, DATA, lambda size: None).findings())


@pytest.mark.parametrize("lost", [{0}, {3}, {12, 13}, {5, 20}, {COUNT - 1}])
def test_every_good_batch_stays_at_its_offset(lost: set[int]) -> None:
    disk, places = _written()
    for number in lost:
        position, size, path = places[number]
        _flip(disk, path, position + size - 5)
    before = {path: disk.read(path) for _, _, path in places}
    owner, log = _salvaged(disk)
    kept = [number for number in range(COUNT) if number not in lost]
    assert log.failure is None
    assert _offsets(log) == kept
    assert [record.value for one in batches(log) for record in one.records()] == [
        b"value %d " % number * 5 for number in kept
    ]
    end = log.log_end_offset
    assert end == max(kept) + 1
    assert append(log, b"goes on", epoch=9) == end
    owner.close()
    aside = [disk.read(f"{DIRECTORY}/{name}") for name in disk.list(DIRECTORY)
             if name.endswith(".quarantine")]  # fmt: skip
    for number in lost:
        assert before[places[number][2]] in aside
    again = manager(disk).get(PARTITION)
    assert again is not None
    assert again.failure is None
    assert _offsets(again) == [*kept, end]


def test_a_log_of_which_nothing_is_left_goes_on() -> None:
    disk, places = _written()
    for position, size, path in places:
        _flip(disk, path, position + size - 5)
    _, log = _salvaged(disk)
    assert log.failure is None
    first = append(log, b"goes on", epoch=9)
    assert log.log_end_offset == first + 1
    assert [record.value for one in batches(log, first) for record in one.records()] == [b"goes on"]


@pytest.mark.parametrize("position", [7, 15])
def test_a_batch_whose_offset_or_epoch_has_rotted_is_the_only_one_lost(position: int) -> None:
    for number in range(COUNT):
        disk, places = _written()
        begin, _, path = places[number]
        _flip(disk, path, begin + position, 64)
        _, log = _salvaged(disk)
        assert _offsets(log) == [each for each in range(COUNT) if each != number]


@pytest.mark.slow
def test_random_damage_loses_only_what_it_hit() -> None:
    chance = random.Random(7)
    for _ in range(150):
        disk, places = _written()
        lost = set()
        for _ in range(chance.randrange(1, 4)):
            number = chance.randrange(COUNT)
            begin, size, path = places[number]
            _flip(disk, path, begin + chance.randrange(size), 1 << chance.randrange(8))
            lost.add(number)
        _, log = _salvaged(disk)
        found = set(_offsets(log))
        # Two flips of the same bit cancel out; the offset of a batch beside a lost one is
        # uncertain.
        assert found <= set(range(COUNT))
        assert len(found) >= COUNT - 2 * len(lost)
        assert all(
            bytes(record.value or b"") == b"value %d " % record.offset * 5
            for one in batches(log)
            for record in one.records()
        )


def test_a_sound_log_is_left_alone() -> None:
    disk, _ = _written()
    before = {name: disk.read(f"{DIRECTORY}/{name}") for name in disk.list(DIRECTORY)}
    plan = SalvagePlan(disk, DIRECTORY, gaps_below=0, recovery_point=COUNT, clean=False)
    assert not plan.is_needed
    assert (plan.lost, plan.end_offset, plan.batch_count) == ([], COUNT, COUNT)
    assert plan.apply() == []
    assert {name: disk.read(f"{DIRECTORY}/{name}") for name in disk.list(DIRECTORY)} == before


def test_a_second_salvage_keeps_the_first_ones_copies() -> None:
    disk, places = _written()
    for number in (1, 4):
        begin, size, path = places[number]
        _flip(disk, path, begin + size - 5)
        owner, log = _salvaged(disk)
        owner.close()
        places = [(p - s, s, f) if f == path and p > begin else (p, s, f)
                  for (p, s, f) in places for s in (s,)]  # fmt: skip
    names = [name for name in disk.list(DIRECTORY) if name.endswith(".quarantine")]
    assert len(names) == 2


@pytest.mark.slow
def test_a_crash_at_any_call_leaves_the_damage_or_the_salvaged_log() -> None:
    kept = [number for number in range(COUNT) if number not in (3, 17)]
    for call in range(10_000):
        disk, places = _written()
        for number in (3, 17):
            begin, size, path = places[number]
            _flip(disk, path, begin + size - 5)
        disk.crash(disk.calls + call)
        try:
            _salvaged(disk)
        except SimulatedCrash:
            disk = disk.survivor()
        else:
            break
        _, log = _salvaged(disk)
        assert log.failure is None
        assert _offsets(log) == kept, call
    assert call > 30


def test_what_was_salvaged_is_sound() -> None:
    disk, places = _written()
    begin, size, path = places[5]
    _flip(disk, path, begin + size - 5)
    assert _findings(disk)
    owner, _ = _salvaged(disk)
    owner.close()
    assert _findings(disk) == []


def _plan(log: Log, **how: Any) -> SalvagePlan:
    how = {"gaps_below": 0, "recovery_point": 0, "clean": True, **how}
    return SalvagePlan(log.files, log.directory, **how)


def test_synced_records_that_look_torn_are_lost() -> None:
    log = new_log()
    append(log, b"a")
    size = log.size
    append(log, b"b" * 100)
    log.segments[0].file.get().write([bytes(log.size - size - 60)], size + 60)
    assert not _plan(log, clean=False, recovery_point=1).is_needed
    plan = _plan(log, clean=False, recovery_point=2)
    assert plan.lost == [(1, 1)]
    assert plan.segments[0].bytes_lost > 0


def test_a_batch_whose_offset_has_rotted_behind_damage_is_lost_too() -> None:
    log = new_log()
    for value in (b"a", b"b", b"c"):
        append(log, value)
    first = batches(log)[0].size
    file = log.segments[0].file.get()
    file.write([b"\xff"], first - 1)
    file.write([(7).to_bytes(8, "big")], first)
    plan = _plan(log)
    assert plan.lost == [(0, 1)]
    assert plan.batch_count == 1


def test_no_index_of_the_damaged_segment_is_left() -> None:
    log = new_log()
    append(log, b"a")
    append(log, b"b")
    log.roll()
    index = paths.segment_file(log.directory, 0, paths.OFFSET_INDEX)
    assert log.files.stat(index) is not None
    log.segments[0].file.get().write([b"\xff"], 80)
    _plan(log).apply()
    assert log.files.stat(index) is None


def test_the_gaps_of_a_salvage_are_noted_before_a_segment_is_rewritten() -> None:
    disk, places = _written()
    position, size, path = places[3]
    _flip(disk, path, position + size - 5)
    disk.trace.clear()
    _salvaged(disk)
    renames = [old for call, old in disk.trace if call == "rename"]
    assert renames.index(f"{DATA}/{paths.GAPS}{paths.SEALED}.tmp") < renames.index(f"{path}.tmp")
