"""The marker of a clean stop, and what a kill or a loss of power does to it."""

from __future__ import annotations

from errno import EIO

import pytest

from embedlog.common import TopicPartition
from embedlog.storage.directory.log_manager import LogManager
from embedlog.storage.directory.pins import Pins
from embedlog.storage.log_config import LogConfig
from embedlog.storage.paths import CLEAN_SHUTDOWN, LOCK
from embedlog.storage.state_files.retention_pins import RetentionPin
from embedlog.testing import SimFiles, sim_runtime
from tests.storage.logs import DATA, PARTITION, append, manager

MARKER = f"{DATA}/{CLEAN_SHUTDOWN}"
OTHER = TopicPartition("others", 0)


def _closed(durability: str, disk: SimFiles | None = None, *, loads: bool = True) -> SimFiles:
    """Return the disk after a clean stop, and after an unclean one before it if `disk` is given."""
    runtime = sim_runtime(files=disk)
    owner = LogManager(runtime, DATA, LogConfig(durability=durability))
    if loads:
        append(owner.get_or_create(PARTITION), b"a")
    owner.close()
    found: SimFiles = runtime.files
    return found


def test_the_marker_is_gone_for_good_before_the_first_write() -> None:
    disk = _closed("fsync")
    disk.trace.clear()
    manager(disk, config=LogConfig(durability="fsync"))
    at = disk.trace.index(("remove", MARKER))
    assert ("sync_directory", DATA) in disk.trace[at:]


@pytest.mark.parametrize(("durability", "is_synced"), [("fsync", True), ("os", False)])
def test_only_a_synced_stop_is_clean_after_a_loss_of_power(
    durability: str, is_synced: bool
) -> None:
    disk = _closed(durability)
    disk.boot_id += "+"
    assert manager(disk, config=LogConfig(durability=durability)).directory.clean == is_synced


def test_logs_that_nobody_has_loaded_are_not_marked_as_synced() -> None:
    disk = _closed("os")
    _closed("fsync", disk, loads=False)
    disk.boot_id += "+"
    assert not manager(disk, config=LogConfig(durability="fsync")).directory.clean


def test_a_kill_during_the_recovery_from_a_loss_of_power_hides_no_lost_page() -> None:
    disk = _closed("os")
    disk.remove(MARKER)
    disk.boot_id += "+"
    for _ in range(2):
        owner = manager(disk)
        assert not owner.directory.same_boot
        assert disk.boot_id.encode() in disk.read(f"{DATA}/{LOCK}")
        disk = disk.survivor()


def test_a_kill_before_the_owner_is_named_leaves_the_mark_of_a_loss_of_power() -> None:
    disk = _closed("os")
    disk.remove(MARKER)
    disk.boot_id += "+"
    disk.trace.clear()
    manager(disk)
    opened = [path for call, path in disk.trace if call == "open"]
    marks = [path for path in opened if "recover" in path.lower()]
    assert marks, opened


def test_pins_that_cannot_be_read_hold_as_they_were() -> None:
    runtime = sim_runtime()
    owner = manager(runtime=runtime, config=LogConfig(retention_archived=True))
    log = owner.get_or_create(PARTITION)
    pins = Pins(owner.directory, {PARTITION: log})
    RetentionPin(runtime, DATA, {("others", 0): 5}, 60_000)
    wall_ms = runtime.clock.machine_wall_ms()
    assert pins.read(wall_ms) == {PARTITION: 0, OTHER: 5}
    disk: SimFiles = runtime.files
    disk.fail(disk.calls, EIO)
    assert pins.read(wall_ms) == {PARTITION: 0, OTHER: 5}


def test_of_a_pin_and_an_archive_the_lower_offset_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = sim_runtime()
    owner = manager(runtime=runtime, config=LogConfig(retention_archived=True))
    log = owner.get_or_create(PARTITION)
    pins = Pins(owner.directory, {PARTITION: log})
    wall_ms = runtime.clock.machine_wall_ms()
    for archived, pinned, held in ((5, 2, 2), (2, 5, 2)):
        monkeypatch.setattr(
            "embedlog.storage.directory.pins.read_archived",
            lambda *_, offset=archived: {PARTITION: offset},
        )
        with RetentionPin(runtime, DATA, {("events", 0): pinned}, 60_000):
            assert pins.read(wall_ms) == {PARTITION: held}
