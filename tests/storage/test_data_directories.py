"""`storage.data_directories`: logs of several directories, where one may go offline."""

from __future__ import annotations

from errno import EIO

import pytest

from embedlog import errors
from embedlog.common import TopicPartition
from embedlog.errors import ConfigError
from embedlog.runtime import Runtime
from embedlog.storage.data_directories import DataDirectories, refuse_duplicates, remove_strays
from embedlog.storage.directory.log_manager import LogManager
from embedlog.storage.log_config import LogConfig
from embedlog.storage.watched_files import WatchedFiles
from embedlog.testing import SimFiles, SimRuntime, sim_runtime
from tests.storage.logs import append, values

A, B, C, D = (TopicPartition("t", index) for index in range(4))


class Place:
    """Three directories of one disk; the last two are watched."""

    def __init__(self) -> None:
        self.runtime: SimRuntime = sim_runtime()
        self.failed: list[tuple[str, OSError]] = []
        self.directories = DataDirectories([self._open(f"d{number}") for number in range(3)])
        for number, manager in enumerate(self.directories.managers):
            manager.directory.id = bytes([number]) * 16

    def _open(self, path: str) -> LogManager:
        runtime, files = self.runtime, self.runtime.files
        watched = WatchedFiles(files, path, lambda path, error: self.failed.append((path, error)))
        own = Runtime(
            clock=runtime.clock,
            files=files if path == "d0" else watched,
            scheduler=runtime.scheduler,
            random=runtime.random,
        )
        return LogManager(own, path, LogConfig(durability="os"))

    def where(self, topic_partition: TopicPartition) -> str:
        holder = self.directories.holder(topic_partition)
        return "" if holder is None else holder.directory.path


@pytest.fixture
def place() -> Place:
    return Place()


def test_logs_are_spread_and_found(place: Place) -> None:
    for which in (A, B, C, D):
        append(place.directories.get_or_create(which), which.partition.to_bytes(1, "big"))
    assert [place.where(which) for which in (A, B, C, D)] == ["d0", "d1", "d2", "d0"]
    assert place.directories.partitions() == [A, B, C, D]
    for which in (A, B, C, D):
        assert values(place.directories.get_or_create(which)) == [bytes([which.partition])]


def test_a_log_is_made_where_it_is_known_to_lie(place: Place) -> None:
    place.directories.get_or_create(A, directory_id=bytes([2]) * 16)
    assert place.where(A) == "d2"


def test_a_directory_that_is_not_there_is_no_reason_to_make_a_log_in_another(place: Place) -> None:
    with pytest.raises(errors.KafkaStorageError, match="offline"):
        place.directories.get_or_create(A, directory_id=bytes([9]) * 16)
    assert place.where(A) == ""


def test_cordoned_directories_get_no_new_logs(place: Place) -> None:
    place.directories.cordoned = lambda: ("d0", "d1")
    for which in (A, B):
        place.directories.get_or_create(which)
    assert [place.where(which) for which in (A, B)] == ["d2", "d2"]


def test_settings_and_deletion_reach_the_log_wherever_it_is(place: Place) -> None:
    logs = [place.directories.get_or_create(which) for which in (A, B)]
    place.directories.configure("t", LogConfig(durability="os", segment_bytes=1 << 20))
    assert {log.config.segment_bytes for log in logs} == {1 << 20}
    place.directories.delete(B)
    assert place.directories.partitions() == [A]


def test_an_error_of_the_disk_is_told_once_and_ends_all_use_of_the_directory(place: Place) -> None:
    log = place.directories.get_or_create(B, directory_id=bytes([1]) * 16)
    append(log, b"kept")
    files = place.runtime.files
    files.fail(files.calls, EIO)
    with pytest.raises(errors.KafkaStorageError):
        append(log, b"refused")
    assert [path for path, _ in place.failed] == ["d1"]
    watched = place.directories.managers[1].directory.files
    calls = files.calls
    with pytest.raises(OSError, match="offline"):
        watched.list("d1")
    assert files.calls == calls
    assert len(place.failed) == 1


def test_what_lay_in_a_directory_that_failed_is_neither_found_nor_made_anew(place: Place) -> None:
    for which in (A, B, C):
        append(place.directories.get_or_create(which), b"x")
    failed = place.directories.take_offline("d1", "its disk failed", 7)
    assert failed is not None
    assert failed.partitions() == [B]
    assert place.directories.take_offline("d1", "again", 8) is None
    assert place.directories.get(B) is None
    with pytest.raises(errors.KafkaStorageError, match="its disk failed"):
        place.directories.get_or_create(B)
    assert place.directories.partitions() == [A, C]
    append(place.directories.get_or_create(C), b"y")
    # A log that was made before and is in no working directory can only be in the other one.
    with pytest.raises(errors.KafkaStorageError):
        place.directories.get_or_create(D, is_new=False)
    place.directories.get_or_create(D)
    assert place.where(D) != ""


def test_the_first_directory_is_never_taken_offline(place: Place) -> None:
    assert place.directories.take_offline("d0", "its disk failed", 7) is None


def test_the_topic_of_a_log_that_is_offline_can_be_made_anew(place: Place) -> None:
    place.directories.get_or_create(B, directory_id=bytes([1]) * 16)
    place.directories.take_offline("d1", "its disk failed", 7)
    place.directories.delete(B)
    place.directories.get_or_create(B)
    assert place.where(B) in ("d0", "d2")


def test_all_are_closed_also_after_one_that_cannot_be(place: Place) -> None:
    for which in (A, B, C):
        append(place.directories.get_or_create(which), b"x")
    first = place.directories.managers[0]
    first.directory.files.rename("d0", "elsewhere")
    with pytest.raises((errors.KafkaError, OSError)):
        place.directories.close()
    files = place.runtime.files
    assert files.stat("d1/.kafka_cleanshutdown") is not None
    assert files.stat("d2/.kafka_cleanshutdown") is not None


def test_a_log_in_two_directories_is_refused() -> None:
    runtime = sim_runtime(files=SimFiles())
    managers = [LogManager(runtime, path, LogConfig(durability="os")) for path in ("a", "b")]
    for manager in managers:
        manager.get_or_create(A)
    with pytest.raises(ConfigError, match="Duplicate log directories found: a/t-0, b/t-0!"):
        refuse_duplicates(managers, {"t": bytes(16)})


def test_a_log_of_a_topic_that_was_deleted_meanwhile_is_no_duplicate() -> None:
    runtime = sim_runtime(files=SimFiles())
    old, new = bytes([1]) * 16, bytes([2]) * 16
    managers = [LogManager(runtime, path, LogConfig(durability="os")) for path in ("a", "b")]
    for manager, topic_ids in zip(managers, ((new, old), (old, new)), strict=True):
        for which, topic_id in zip((A, B), topic_ids, strict=True):
            manager.get_or_create(which, topic_id=topic_id)
    refuse_duplicates(managers, {"t": new})
    assert [manager.partitions() for manager in managers] == [[A, B], [A, B]]
    remove_strays(managers, {"t": new})
    assert [manager.partitions() for manager in managers] == [[A], [B]]


def test_work_of_all_directories_is_seen_as_one(place: Place) -> None:
    tasks = place.directories.tasks
    assert tasks.is_resting
    place.directories.get_or_create(B, directory_id=bytes([1]) * 16)
    place.directories.managers[0].tasks.stir()
    assert tasks.is_resting  # the third directory's log does
    tasks.stir()
    assert not tasks.is_resting
    assert sum(tasks.finish_now()) >= 0
