"""Descriptors or space that run short at any call harm nothing for good; a failed sync does."""

from __future__ import annotations

import errno
import threading
from collections.abc import Callable
from contextlib import suppress

import pytest

from embedlog import errors
from embedlog.common import TopicPartition
from embedlog.errors import EmbedlogError
from embedlog.runtime.files import File
from embedlog.storage.directory.log_manager import LogManager
from embedlog.storage.log.log import Log
from embedlog.storage.log.retention import free_below
from embedlog.storage.log_config import LogConfig
from embedlog.testing import SimFiles, SimRuntime, sim_runtime
from tests.storage.logs import DATA, PARTITION, append, check, new_log, uncleanable, values

SHORT = (errno.EMFILE, errno.ENOSPC)
SETTINGS = {
    "segment_bytes": 1000,
    "retention_bytes": 3000,
    "file_delete_delay_ms": 0,
    "min_cleanable_dirty_ratio": 0.01,
}
FINAL = ("sync", "sync_directory")
"""Calls whose failure means lost pages, whatever the error."""


class Workload:
    """Appends, syncs, deletion of records, retention and compaction; one call fails."""

    def __init__(self, durability: str, policy: str) -> None:
        self.runtime: SimRuntime = sim_runtime()
        assert isinstance(self.runtime.files, SimFiles)
        self.disk: SimFiles = self.runtime.files
        self.config = LogConfig(durability=durability, cleanup_policy=policy, **SETTINGS)
        self.manager = LogManager(self.runtime, DATA, self.config)
        self.log = self.manager.get_or_create(PARTITION, self.config, topic_id=b"\1" * 16)
        self.number = 0
        self.append()
        self.first = self.disk.calls

    def append(self) -> None:
        now_ms = self.runtime.clock.wall_ms()
        key = b"%d" % (self.number % 3)
        self.number += 1
        append(self.log, b"x" * 150, keys=[key], epoch=0, now_ms=now_ms, timestamps=now_ms)
        if self.config.durability == "fsync":
            self.log.durability.sync(self.log.log_end_offset)
        self.log.offsets.commit(self.config.durability == "fsync")

    def run(self) -> None:
        """Do all of it. A refusal is a typed error."""
        for number in range(24):
            self.attempt(self.append)
            if number == 12:
                self.attempt(lambda: self.log.offsets.increment_log_start_offset(3))
            if number in (10, 20):
                self.work()
        self.disk.heal()
        self.attempt(self.append)
        self.work()

    def attempt(self, work: Callable[[], object]) -> None:
        with suppress(EmbedlogError):
            work()

    def work(self) -> None:
        self.runtime.clock.advance(301_000)
        self.manager.tasks.stir()
        for pause_ms in (20, 16_000, 20):
            for _ in range(20):
                self.manager.tasks.run_once(self.runtime.clock.monotonic_ms())
                self.runtime.clock.advance(20)
            self.runtime.clock.advance(pause_ms)


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["delete", "compact"])
@pytest.mark.parametrize("durability", ["os", "fsync"])
@pytest.mark.parametrize("code", SHORT)
def test_one_call_that_runs_short_is_forgotten(code: int, durability: str, policy: str) -> None:
    whole = Workload(durability, policy)
    whole.run()
    count = whole.disk.calls - whole.first
    for number in range(0, count, 3):
        workload = Workload(durability, policy)
        workload.disk.fail(workload.first + number, code)
        workload.run()
        name = workload.disk.trace[workload.first + number]
        if code == errno.ENOSPC and name[0] in FINAL and workload.log.failure is not None:
            continue  # the pages to be synced may be gone
        assert workload.log.failure is None, name
        assert not uncleanable(workload.manager), name
        assert workload.manager.health() == [], name
        if policy == "delete":
            check(workload.log)


@pytest.mark.parametrize("code", SHORT)
def test_retention_frees_space_on_a_disk_that_stays_full(code: int) -> None:
    workload = Workload("fsync", "delete")
    for _ in range(40):
        workload.append()
    before = workload.log.size
    files = workload.disk

    def refuse(*_: object, **__: object) -> None:
        raise OSError(code, "full")

    files.open = refuse  # type: ignore[method-assign]
    workload.work()
    del files.open
    assert workload.log.failure is None
    assert workload.log.size <= 4000 < before
    names = [name for name in files.list(f"{DATA}/{PARTITION}") if name.endswith(".log")]
    assert len(names) == len(workload.log.segments)
    workload.append()
    check(workload.log)


def test_deleted_records_make_the_room_to_say_so() -> None:
    workload = Workload("fsync", "delete")
    for _ in range(10):
        workload.append()
    workload.disk.fail(workload.disk.calls, errno.ENOSPC)
    with pytest.raises(errors.KafkaStorageError, match="28"):
        workload.log.offsets.increment_log_start_offset(9)
    assert workload.log.offsets.log_start_offset == 0  # it was refused: nothing has changed
    assert free_below(workload.log, 9)
    assert workload.log.offsets.log_start_offset > 0
    assert workload.log.offsets.increment_log_start_offset(9)
    check(workload.log)


def test_a_log_is_deleted_on_a_full_disk() -> None:
    workload = Workload("fsync", "delete")
    workload.disk.open = _full  # type: ignore[method-assign]
    workload.manager.delete(PARTITION)
    del workload.disk.open
    assert not [name for name in workload.disk.list(DATA) if name.startswith(PARTITION.topic)]
    assert workload.manager.get_or_create(PARTITION).log_end_offset == 0


def _full(*_: object, **__: object) -> File:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_log_that_cannot_be_renamed_is_deleted_when_its_name_is_used_again() -> None:
    workload = Workload("fsync", "delete")
    workload.disk.fail(workload.disk.calls, errno.EMFILE)
    with pytest.raises(errors.KafkaStorageError, match="cannot delete"):
        workload.manager.delete(PARTITION)
    assert workload.manager.partitions() == [PARTITION]
    workload.manager.delete(PARTITION)
    assert workload.manager.partitions() == []


@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC, errno.EDQUOT])
def test_a_failed_sync_is_final_whatever_it_says(code: int) -> None:
    log = new_log(durability="fsync")
    append(log, b"a")
    log.durability.flush()
    append(log, b"b")
    disk = log.files
    disk.fail(disk.calls, code)
    assert disk.trace is not None
    with pytest.raises(errors.KafkaStorageError):
        log.durability.flush()
    assert disk.trace[-1][0] == "sync"
    for _ in range(2):
        with pytest.raises(errors.KafkaStorageError, match="earlier failure"):
            log.durability.flush()
    assert log.durability.synced_offset == 1


def test_a_roll_beside_a_failed_group_commit_does_not_pass_for_a_sync() -> None:
    # The kernel reports the lost pages to one of two calls, and success to the other.
    log = new_log(durability="fsync", segment_bytes=500)
    append(log, b"a" * 100)
    log.durability.flush()
    append(log, b"b" * 100)
    log.segments[-1].file.get()
    told = threading.Event()
    node = log.segments[-1].file.opened
    assert node is not None
    real_sync, calls = type(node).sync, []

    def sync(file: File) -> None:
        calls.append(threading.current_thread().name)
        if len(calls) == 1:
            told.set()
            roller.join(0.2)  # it waits for the lock, or would pass here
            raise OSError(errno.EIO, "lost")
        real_sync(file)

    refused: list[errors.KafkaStorageError] = []

    def roll() -> None:
        told.wait(20)
        try:
            with log.lock:
                log.roll()
        except errors.KafkaStorageError as error:
            refused.append(error)

    roller = threading.Thread(target=roll)
    type(node).sync = sync  # type: ignore[method-assign]
    try:
        roller.start()
        with pytest.raises(errors.KafkaStorageError):
            log.durability.flush()
        roller.join(20)
    finally:
        type(node).sync = real_sync  # type: ignore[method-assign]
    assert len(refused) == 1
    assert len(calls) == 1
    assert log.durability.synced_offset == 1


def test_a_descriptor_that_is_needed_is_taken_from_another_segment() -> None:
    runtime = sim_runtime()
    config = LogConfig(durability="os")
    manager = LogManager(runtime, DATA, config)
    logs: list[Log] = [manager.get_or_create(TopicPartition("t", n), config) for n in range(6)]
    for log in logs:
        append(log, b"x")
    logs[5].segments[-1].file.release()
    disk = runtime.files
    assert isinstance(disk, SimFiles)
    disk.fail(disk.calls, errno.EMFILE)
    append(logs[5], b"y")
    assert values(logs[5]) == [b"x", b"y"]


def test_no_more_than_a_quarter_of_the_descriptors_are_taken() -> None:
    runtime = sim_runtime()
    runtime.files.descriptor_count_max = 64
    manager = LogManager(runtime, DATA, LogConfig())
    for number in range(40):
        append(manager.get_or_create(TopicPartition("t", number)), b"x")
    assert len(manager.opener.open_files) <= 16
