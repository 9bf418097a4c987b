"""The syncs of a log: their extent, their order, and the state after a refused one."""

from __future__ import annotations

from errno import EIO, EMFILE

import pytest

from embedlog.errors import KafkaStorageError
from embedlog.storage.directory.log_manager import LogManager
from embedlog.storage.log.log import Log
from embedlog.storage.log.retention import delete_old_segments
from embedlog.storage.log_config import LogConfig
from embedlog.testing import SimFiles, sim_runtime
from tests.storage.logs import DATA, NOW, PARTITION, append, check, new_log, values

LOG = ".log"


def _calls(disk: SimFiles, *wanted: str) -> list[tuple[str, str]]:
    return [(call, path) for call, path in disk.trace if call in wanted and path.endswith(LOG)]


def _new(disk: SimFiles, **settings: object) -> Log:
    log = new_log(disk=disk, **{"segment_bytes": 400, **settings})
    disk.trace.clear()
    return log


def test_a_sync_covers_all_segments_with_unsynced_records() -> None:
    disk = SimFiles()
    log = _new(disk)
    for _ in range(6):
        append(log, b"x" * 150)
    log.durability.flush()
    synced = {path for _, path in _calls(disk, "sync")}
    assert synced == {segment.path for segment in log.segments}
    assert len(synced) > 2


def test_a_sync_of_full_segments_leaves_the_last_one() -> None:
    disk = SimFiles()
    log = _new(disk)
    for _ in range(6):
        append(log, b"x" * 150)
    last = log.segments[-1]
    log.durability.sync_sealed(log.log_end_offset)
    assert log.durability.synced_offset == last.base_offset < log.log_end_offset
    assert last.path not in {path for _, path in _calls(disk, "sync")}


@pytest.mark.parametrize("durability", ["os", "fsync"])
def test_a_segment_whose_records_are_synced_is_cut_and_then_synced_again(durability: str) -> None:
    """After a loss of power, recovery begins in the next one and looks for no zeros in it."""
    disk = SimFiles()
    log = _new(disk, durability=durability)
    append(log, b"x" * 150)
    log.durability.flush()
    disk.trace.clear()
    log.roll(NOW)
    first = log.segments[0]
    assert _calls(disk, "sync", "truncate")[:2] == [("truncate", first.path), ("sync", first.path)]
    assert disk.open(first.path).size() == first.size


def test_removed_segments_stay_removed_after_a_loss_of_power() -> None:
    disk = SimFiles()
    log = _new(disk, retention_bytes=0)
    for _ in range(6):
        append(log, b"x" * 150)
    log.offsets.commit(False)
    disk.trace.clear()
    assert delete_old_segments(log, NOW) > 0
    assert ("sync_directory", log.directory) in disk.trace


def test_no_sync_succeeds_after_one_that_failed() -> None:
    disk = SimFiles()
    log = _new(disk, durability="fsync")
    append(log, b"a")
    disk.fail(disk.calls, EIO)
    for _ in range(2):
        with pytest.raises(KafkaStorageError):
            log.durability.flush()
        assert log.durability.synced_offset == 0


def test_a_sync_without_a_descriptor_can_be_repeated() -> None:
    disk = SimFiles()
    log = _new(disk, durability="fsync")
    append(log, b"a")
    disk.fail(disk.calls, EMFILE)
    with pytest.raises(KafkaStorageError):
        log.durability.flush()
    assert log.failure is None


def test_a_file_that_is_gone_is_an_error_unless_retention_removed_it() -> None:
    disk = SimFiles()
    log = _new(disk)
    append(log, b"a")
    (segment,) = log.segments
    segment.file.release()
    disk.remove(segment.path)
    with pytest.raises(KafkaStorageError):
        log.durability.flush()
    assert log.durability.synced_offset == 0


def test_readers_see_no_record_that_is_not_synced() -> None:
    log = new_log(durability="fsync")
    append(log, b"a")
    log.durability.flush()
    append(log, b"b")
    log.offsets.commit(True)
    assert log.offsets.high_watermark == 1


def test_the_recovered_records_of_a_replica_are_synced() -> None:
    config = LogConfig(durability="fsync")
    runtime = sim_runtime()
    owner = LogManager(runtime, DATA, config, is_replicated=True)
    append(owner.get_or_create(PARTITION), b"a")
    runtime = sim_runtime(files=runtime.files.survivor())
    log = LogManager(runtime, DATA, config, is_replicated=True).get(PARTITION)
    assert log is not None
    assert values(log) == [b"a"]
    assert log.durability.synced_offset == 1


def test_stray_bytes_that_cannot_be_cut_off_for_good_end_all_writes() -> None:
    disk = SimFiles()
    log = _new(disk)
    append(log, b"a")
    disk.write_short(disk.calls, 100)
    disk.fail(disk.calls + 1, EMFILE)  # the rest of the write
    disk.fail(disk.calls + 2, EIO)  # the cut
    with pytest.raises(KafkaStorageError):
        append(log, b"long" * 50)
    assert isinstance(log.failure, OSError)
    check(log)
