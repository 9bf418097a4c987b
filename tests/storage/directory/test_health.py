"""A directory lists its degradations, their begin and reason; nothing while all is well."""

from __future__ import annotations

from errno import EIO

import pytest

from embedlog import errors
from embedlog.runtime.clock_guard import DRIFT_MAX_MS
from embedlog.storage.directory.log_manager import LogManager
from embedlog.testing import SimFiles, sim_runtime
from tests.storage.cleaner.compaction import BACKOFF_MS, Compacted
from tests.storage.logs import NOW, PARTITION, append, manager, new_log


def _kinds(owner: LogManager) -> list[tuple[str, str]]:
    return [(found.kind, found.subject) for found in owner.health()]


def _flip(disk: SimFiles, path: str, position: int) -> None:
    file = disk.open(path)
    file.write([bytes([file.view(position, 1)[0] ^ 1])], position)


def test_a_directory_that_is_well_says_nothing() -> None:
    owner = manager()
    append(owner.get_or_create(PARTITION), b"a")
    assert owner.health() == []
    owner.close()
    assert owner.health() == []


def test_a_log_whose_disk_fails_is_read_only() -> None:
    disk = SimFiles()
    owner = manager(disk)
    log = owner.get_or_create(PARTITION)
    append(log, b"a")
    disk.fail(disk.calls, EIO)
    with pytest.raises(errors.KafkaStorageError):
        append(log, b"b")
    (found,) = owner.health()
    assert (found.kind, found.subject) == ("read-only", "events-0")
    assert "[Errno 5]" in found.reason
    assert found.since_ms == log.clock.wall_ms()


def test_damage_is_told() -> None:
    disk = SimFiles()
    log = new_log(disk=disk)
    append(log, b"a" * 100)
    append(log, b"b" * 100)
    log.durability.flush()
    log.offsets.checkpoint()
    disk = disk.survivor()
    _flip(disk, log.segments[0].path, 90)
    owner = manager(disk)
    assert owner.get(PARTITION) is not None
    (found,) = owner.health()
    assert (found.kind, found.subject) == ("damaged", "events-0")
    assert "crc" in found.reason
    assert found.since_ms >= NOW


def test_a_cut_is_told_and_what_was_put_aside() -> None:
    disk = SimFiles()
    log = new_log(disk=disk)
    append(log, b"a")
    append(log, b"torn" * 10)
    disk = disk.survivor()
    disk.boot_id += "+"
    _flip(disk, log.segments[0].path, log.size - 1)
    owner = manager(disk)
    assert owner.get(PARTITION) is not None
    cut, quarantined = owner.health()
    assert (cut.kind, quarantined.kind) == ("cut", "quarantined")
    assert cut.since_ms > 0
    assert ".quarantine" in quarantined.reason
    owner.close()
    assert _kinds(manager(disk)) == [("quarantined", "events-0")]


def test_paused_retention_is_told_for_as_long_as_it_lasts() -> None:
    runtime = sim_runtime()
    owner = manager(runtime=runtime)
    runtime.scheduler.add(owner.tasks)
    append(owner.get_or_create(PARTITION), b"a")
    jumped_ms = runtime.clock.wall_ms() + 10 * DRIFT_MAX_MS
    runtime.clock.set_wall(jumped_ms)
    runtime.scheduler.run_for(60_000)
    (found,) = owner.health()
    assert (found.kind, found.subject) == ("retention paused", "data")
    assert jumped_ms <= found.since_ms <= jumped_ms + 60_000


def test_a_log_that_compaction_leaves_alone_is_told() -> None:
    topic = Compacted()
    for number in range(20):
        topic.put(("k", f"{number}" * 20))
    topic.log.roll()
    _flip(topic.log.files, topic.log.segments[1].path, 80)
    topic.wait(4 * BACKOFF_MS)
    assert _kinds(topic.manager) == [("uncleanable", str(PARTITION))]
    assert "crc" in topic.manager.health()[0].reason


def test_failing_work_is_told_until_it_succeeds() -> None:
    runtime = sim_runtime()
    owner = manager(runtime=runtime)
    runtime.scheduler.add(owner.tasks)
    files = runtime.files
    log = owner.get_or_create(PARTITION)
    append(log, b"a")
    log.offsets.update_high_watermark(1)
    files.fail(files.calls, EIO)
    runtime.scheduler.run_for(6_000)
    (found,) = owner.health()
    assert (found.kind, found.subject) == ("work failing", "data: high watermarks")
    assert "[Errno 5]" in found.reason
    runtime.scheduler.run_for(6_000)
    assert owner.health() == []
