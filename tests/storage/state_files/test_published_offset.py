"""The high watermark that other processes read, on a disk that refuses it."""

from __future__ import annotations

from errno import EIO, ENOSPC

import pytest

from embedlog.storage.directory.log_manager import LogManager
from embedlog.storage.log.log import Log
from embedlog.storage.log_config import LogConfig
from embedlog.storage.state_files.published_offset import read_published
from embedlog.testing import SimFiles, SimRuntime, sim_runtime
from tests.storage.logs import DATA, PARTITION, append


@pytest.fixture(params=[ENOSPC, EIO])
def refused(request: pytest.FixtureRequest) -> tuple[LogManager, Log, SimRuntime]:
    """A log with a record whose commit the disk did not let the other processes know."""
    runtime = sim_runtime()
    owner = LogManager(runtime, DATA, LogConfig(durability="os"), is_replicated=True)
    log = owner.get_or_create(PARTITION)
    append(log, b"a")
    log.offsets.commit_to(1)
    append(log, b"b")
    disk: SimFiles = runtime.files
    disk.fail(disk.calls, request.param, forever=True)
    log.offsets.commit_to(2)
    disk.heal()
    return owner, log, runtime


def _published(log: Log) -> int | None:
    return read_published(log.files, log.directory)


def test_a_refused_offset_is_marked_and_hides_records_but_loses_nothing(
    refused: tuple[LogManager, Log, SimRuntime],
) -> None:
    owner, log, _ = refused
    assert log.offsets.high_watermark == 2
    assert _published(log) == 1
    assert log.failure is None
    (told,) = owner.health()
    assert (told.kind, told.subject) == ("work failing", f"{PARTITION}: published offset")


def test_a_refused_offset_is_stored_with_the_next_commit(
    refused: tuple[LogManager, Log, SimRuntime],
) -> None:
    owner, log, _ = refused
    append(log, b"c")
    log.offsets.commit_to(3)
    assert _published(log) == 3
    assert not owner.health()


def test_a_refused_offset_is_stored_again_though_nothing_is_written(
    refused: tuple[LogManager, Log, SimRuntime],
) -> None:
    owner, log, runtime = refused
    owner.tasks.stir()
    runtime.clock.advance(10_000)
    owner.tasks.run_once(runtime.clock.monotonic_ms())
    assert _published(log) == 2
    assert not owner.health()


def test_a_refused_offset_is_tried_until_the_disk_takes_it(
    refused: tuple[LogManager, Log, SimRuntime],
) -> None:
    owner, log, runtime = refused
    disk: SimFiles = runtime.files
    disk.fail(disk.calls, ENOSPC, forever=True)
    owner.tasks.stir()
    for _ in range(2):
        runtime.clock.advance(10_000)
        owner.tasks.run_once(runtime.clock.monotonic_ms())
    assert log.refusals()
    disk.heal()
    runtime.clock.advance(10_000)
    owner.tasks.run_once(runtime.clock.monotonic_ms())
    assert _published(log) == 2
