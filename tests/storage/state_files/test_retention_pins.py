"""Pins of readers in other processes: only retention by size and age waits for them."""

from __future__ import annotations

from errno import EIO

import pytest

from embedlog.errors import ConfigError
from embedlog.storage.directory.log_manager import LogManager
from embedlog.storage.log.log import Log
from embedlog.storage.log_config import LogConfig
from embedlog.storage.state_files import staged_layout
from embedlog.storage.state_files.retention_pins import RetentionPin, read_pins
from embedlog.testing import SimRuntime, sim_runtime
from tests.storage.logs import DATA, NOW, PARTITION, append

OLD = NOW - 10**10
INTERVAL_MS = 300_000


def _owner(**settings: object) -> tuple[SimRuntime, LogManager, Log]:
    """A log of five segments with one record each, all of them too old."""
    runtime = sim_runtime()
    config = LogConfig(segment_bytes=200, retention_ms=1000, file_delete_delay_ms=0, **settings)
    manager = LogManager(runtime, DATA, config, retention_interval_ms=INTERVAL_MS)
    log = manager.get_or_create(PARTITION, config=config)
    for _ in range(5):
        append(log, b"x" * 120, timestamps=OLD, keys=[b"k"])
    assert len(log.segments) == 5
    log.offsets.update_high_watermark(5)
    return runtime, manager, log


def _retain(runtime: SimRuntime, manager: LogManager) -> None:
    runtime.clock.advance(INTERVAL_MS + 1)
    manager.tasks.run_once(runtime.clock.monotonic_ms())


def test_retention_keeps_what_is_pinned_until_it_is_released() -> None:
    runtime, manager, log = _owner()
    pin = RetentionPin(runtime, DATA, {PARTITION: 2}, 10 * INTERVAL_MS)
    _retain(runtime, manager)
    assert log.offsets.log_start_offset == 2
    pin.release()
    pin.release()
    _retain(runtime, manager)
    assert log.offsets.log_start_offset == 5
    assert runtime.files.list(staged_layout.part(DATA, staged_layout.PINS)) == []


def test_the_lowest_of_several_pins_counts_and_other_partitions_do_not() -> None:
    runtime, manager, log = _owner()
    with (
        RetentionPin(runtime, DATA, {PARTITION: 3, ("events", 9): 0}, 10 * INTERVAL_MS),
        RetentionPin(runtime, DATA, {PARTITION: 1}, 10 * INTERVAL_MS),
        RetentionPin(runtime, DATA, {("other", 0): 0}, 10 * INTERVAL_MS),
    ):
        _retain(runtime, manager)
        assert log.offsets.log_start_offset == 1
    _retain(runtime, manager)
    assert log.offsets.log_start_offset == 5


def test_a_pin_ends_by_itself_unless_it_is_renewed() -> None:
    runtime, manager, log = _owner()
    pin = RetentionPin(runtime, DATA, {PARTITION: 1}, INTERVAL_MS + 60_000)
    for _ in range(3):
        _retain(runtime, manager)
        assert log.offsets.log_start_offset == 1
        pin.renew()
    _retain(runtime, manager)
    assert log.offsets.log_start_offset == 1
    _retain(runtime, manager)
    assert log.offsets.log_start_offset == 5


def test_the_close_of_an_owner_keeps_what_is_pinned() -> None:
    runtime, manager, log = _owner()
    runtime.clock.advance(10_000)
    with RetentionPin(runtime, DATA, {PARTITION: 4}, INTERVAL_MS):
        manager.tasks.finish_before_close()
    assert log.offsets.log_start_offset == 4


def test_records_that_somebody_deletes_go_though_they_are_pinned() -> None:
    runtime, manager, log = _owner()
    with RetentionPin(runtime, DATA, {PARTITION: 0}, 10 * INTERVAL_MS):
        log.offsets.increment_log_start_offset(3)
        _retain(runtime, manager)
        assert log.segments[0].base_offset == 3


def test_damaged_and_endless_pins_pin_nothing_and_are_removed() -> None:
    runtime, manager, log = _owner()
    pins = staged_layout.part(DATA, staged_layout.PINS)
    with RetentionPin(runtime, DATA, {PARTITION: 0}, 86_400_000):
        name = runtime.files.list(pins)[0]
        content = runtime.files.read(f"{pins}/{name}")
        runtime.files.open(f"{pins}/damaged", create=True).write([content[:-3] + b"???"], 0)
        wall_ms = runtime.clock.wall_ms()
        assert read_pins(runtime.files, DATA, wall_ms) == {PARTITION: 0}
        assert runtime.files.list(pins) == [name]
        assert read_pins(runtime.files, DATA, wall_ms - 1) == {}
        assert runtime.files.list(pins) == []


@pytest.mark.parametrize("timeout_ms", [0, -1, 86_400_001])
def test_a_pin_has_a_time_out_of_at_most_a_day(timeout_ms: int) -> None:
    with pytest.raises(ConfigError, match=str(timeout_ms)):
        RetentionPin(sim_runtime(), DATA, {PARTITION: 0}, timeout_ms)


def test_pins_that_the_disk_refuses_to_tell_hold_as_they_were(
    caplog: pytest.LogCaptureFixture,
) -> None:
    runtime, manager, log = _owner()
    with RetentionPin(runtime, DATA, {PARTITION: 2}, 10 * INTERVAL_MS):
        assert manager.pins.read(runtime.clock.wall_ms()) == {PARTITION: 2}
        refused = staged_layout.part(DATA, staged_layout.PINS)
        files = runtime.files
        listed = files.list

        def refuse(path: str) -> list[str]:
            if path == refused:
                raise OSError(EIO, "Input/output error", path)
            return listed(path)

        files.list = refuse
        _retain(runtime, manager)
        assert log.offsets.log_start_offset == 2
        for _ in range(3):
            assert manager.pins.read(runtime.clock.wall_ms()) == {PARTITION: 2}
        assert caplog.text.count("the pins of readers cannot be read") == 1
        files.list = listed
        manager.pins.read(runtime.clock.wall_ms())
        files.list = refuse
        manager.pins.read(runtime.clock.wall_ms())
        assert caplog.text.count("the pins of readers cannot be read") == 2
