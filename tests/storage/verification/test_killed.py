"""After a kill, an opening and a close a directory is sound, and Kafka's texts in it are true."""

from __future__ import annotations

import pytest

from embedlog.common import TopicPartition
from embedlog.storage import paths
from embedlog.storage.directory.log_manager import LogManager
from embedlog.storage.log.log import Log
from embedlog.storage.log_config import LogConfig
from embedlog.storage.replica.truncation import truncate_to
from embedlog.storage.state_files.checkpoint_files import NAMES, read_text
from embedlog.storage.state_files.leader_epochs import read_epochs, read_epochs_text
from embedlog.storage.verification.directory import DirectoryCheck
from embedlog.testing import SimFiles, sim_runtime
from tests.storage.logs import DATA, PARTITION, append, manager
from tests.storage.relocation.relocation import Moving

OTHER = TopicPartition("other", 0)


def _check(disk: SimFiles) -> None:
    """Raise unless the closed directory is sound and its texts agree with the sealed files."""
    assert list(DirectoryCheck(disk, DATA, lambda size: None).findings()) == []
    directory = paths.log_directory(DATA, PARTITION)
    text, sealed = read_epochs_text(disk, directory), read_epochs(disk, directory)
    assert text is None or sealed is None or text.entries == sealed.entries


def _reopened(disk: SimFiles, *, is_replicated: bool = False) -> tuple[LogManager, Log]:
    owner = LogManager(sim_runtime(files=disk), DATA, LogConfig(), is_replicated=is_replicated)
    log = owner.get(PARTITION)
    assert log is not None
    return owner, log


def _closed_with_texts(size: int) -> SimFiles:
    """Return a directory whose log has all files of a close; then its last segment is cut."""
    disk = SimFiles()
    owner = manager(disk)
    log = owner.get_or_create(PARTITION)
    append(log, b"x" * 70_000, epoch=1)
    append(log, b"y", epoch=2)
    owner.close()
    owner, log = _reopened(disk)
    if size < 70_000:
        truncate_to(log, 0)
        append(log, b"x" * size, epoch=2)
    return log.files.survivor()  # type: ignore[attr-defined,no-any-return]


@pytest.mark.parametrize("size", [10, 100_000])
@pytest.mark.parametrize("begins", [False, True])
def test_the_text_of_the_epochs_is_brought_up_to_date(size: int, begins: bool) -> None:
    owner, log = _reopened(_closed_with_texts(size), is_replicated=True)
    log.epochs.assign(5)
    if not begins:
        append(log, b"z", epoch=5)
    killed = log.files.survivor()  # type: ignore[attr-defined]
    owner, log = _reopened(killed, is_replicated=True)
    expected = log.epochs.cache.entries
    assert expected[-1][0] >= 5
    owner.close()
    _check(log.files)  # type: ignore[arg-type]
    text = read_epochs_text(log.files, log.directory)
    assert text is not None
    assert text.entries == expected
    again = _reopened(log.files)[1]  # type: ignore[arg-type]
    assert again.epochs.cache.entries == expected


def test_the_text_of_the_epochs_is_true_for_a_log_that_became_short() -> None:
    disk = SimFiles()
    owner = manager(disk)
    log = owner.get_or_create(PARTITION)
    append(log, b"x", epoch=1)
    owner.close()
    path = f"{log.directory}/{paths.LEADER_EPOCHS}"
    disk.open(path, create=True).write([b"0\n1\n0 0\n"], 0)  # as Kafka left it
    owner, log = _reopened(disk)
    append(log, b"y", epoch=1)
    owner.close()
    assert disk.read(path) == b"0\n1\n1 0\n"
    _check(disk)


def test_the_sealed_epochs_of_a_log_that_starts_over_are_true() -> None:
    disk = SimFiles()
    owner = manager(disk)
    log = owner.get_or_create(PARTITION)
    append(log, b"lost", epoch=1)
    log.offsets.commit(False)
    log.offsets.increment_log_start_offset(1)
    lost = disk.survivor()
    lost.boot_id = "boot-2"
    lost.open(log.segments[-1].path).truncate(0)
    owner, log = _reopened(lost)
    assert (log.offsets.log_start_offset, log.epochs.cache.entries) == (1, [])
    owner.close()
    _check(lost)
    sealed = read_epochs(lost, log.directory)
    assert sealed is not None
    assert sealed.entries == []


def test_a_log_that_moves_has_the_text_of_its_epochs_at_its_close() -> None:
    moving = Moving(segment_bytes=1 << 20)
    append(moving.log, b"x" * 70_000, epoch=3)
    moving.commit()
    moving.close()
    again = Moving(moving.disk, metadata=moving.metadata, segment_bytes=1 << 20)
    again.move()
    expected = again.log.epochs.cache.entries
    again.close()
    text = read_epochs_text(again.disk, again.log.directory)
    assert text is not None
    assert text.entries == expected
    findings = DirectoryCheck(again.disk, again.place, lambda size: None).findings()
    assert list(findings) == []


@pytest.mark.parametrize("durability", ["os", "fsync"])
def test_the_checkpoints_forget_a_log_that_a_killed_process_had_deleted(durability: str) -> None:
    config = LogConfig(durability=durability)
    disk = SimFiles()
    owner = manager(disk, config=config)
    for partition in (PARTITION, OTHER):
        log = owner.get_or_create(partition)
        append(log, b"a")
        log.durability.flush()
        log.offsets.commit(True)
        log.offsets.increment_log_start_offset(1)
    owner.checkpoints.write_high_watermarks()
    disk.fail(disk.calls + _calls_of_a_deletion(disk, config), 28, forever=True)
    owner.delete(OTHER)
    again = manager(disk.survivor(), config=config)
    again.get(PARTITION)
    again.close()
    closed = again.directory.files
    _check(closed)  # type: ignore[arg-type]
    for name in NAMES:
        assert OTHER not in (read_text(closed, DATA, name) or {})
    new = manager(closed, config=config).get_or_create(OTHER)  # type: ignore[arg-type]
    assert (new.offsets.log_start_offset, new.log_end_offset) == (0, 0)


def _calls_of_a_deletion(disk: SimFiles, config: LogConfig) -> int:
    """Return how many calls remove the log OTHER, before its checkpoints are written."""
    copy = disk.survivor()
    owner = manager(copy, config=config)
    owner.get(OTHER)
    start = copy.calls
    owner.delete(OTHER)
    removal = copy.trace[start:]
    return max(slot for slot, (_, path) in enumerate(removal) if "-delete" in path) + 1
