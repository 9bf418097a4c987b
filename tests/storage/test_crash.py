"""A crash at every file operation loses no acknowledged record, and invents none.

Killed processes keep every write; a loss of power keeps synced data and any mixture of the rest.
Recovery itself is crashed in the same way.
"""

from __future__ import annotations

from contextlib import suppress

import pytest

from embedlog.runtime.randomness import seeded
from embedlog.storage.directory.log_manager import LogManager
from embedlog.storage.log_config import LogConfig
from embedlog.testing import SimFiles, SimulatedCrash, sim_runtime
from tests.storage.logs import DATA, NOW, PARTITION, append, append_marker, batch, check, values

APPENDS = 14
SETTINGS = {"segment_bytes": 700, "index_interval_bytes": 100}


class Workload:
    """Appends, rolls, a transaction, a new epoch, a restart; notes the promised records."""

    def __init__(self, durability: str) -> None:
        self.config = LogConfig(durability=durability, **SETTINGS)
        self.sent: list[bytes] = []
        """Return every value in write order, the one in flight included."""
        self.acknowledged = 0
        """Return how many of them must outlive a crash of the level's kind."""
        self.closed = False

    def run(self, disk: SimFiles) -> None:
        """Do everything, until the disk kills it."""
        manager = self.open(disk)
        for number in range(APPENDS):
            self._append(manager, number)
            if number == APPENDS // 2:
                manager.close()
                manager = self.open(disk)
        manager.checkpoints.write_positions()
        manager.checkpoints.write_high_watermarks()
        manager.close()
        self.closed = True

    def open(self, disk: SimFiles) -> LogManager:
        manager = LogManager(sim_runtime(files=disk), DATA, self.config)
        manager.get_or_create(PARTITION, topic_id=bytes(15) + b"\7")
        return manager

    def _append(self, manager: LogManager, number: int) -> None:
        log = manager.get(PARTITION)
        assert log is not None
        value = b"value-%d-" % number * (1 + 3 * (number % 4))
        self.sent.append(value)
        if number % 5 == 4:
            append(log, value, producer=(9, 0, number // 5), transactional=True)
        else:
            append(log, value, epoch=1 + number // 6)
        if self.config.durability == "fsync":
            log.durability.sync(log.log_end_offset)
        self.acknowledged = len(self.sent)
        log.offsets.update_high_watermark(log.log_end_offset)
        if number == 9:
            self._mark(manager)

    def _mark(self, manager: LogManager) -> None:
        log = manager.get(PARTITION)
        assert log is not None
        append_marker(log, 9, committed=False)
        if self.config.durability == "fsync":
            log.durability.sync(log.log_end_offset)

    def check(self, disk: SimFiles, *, keeps_acknowledged: bool) -> list[bytes | None]:
        """Open the directory; return the values, which must be a prefix of the sent ones."""
        manager = LogManager(sim_runtime(files=disk), DATA, self.config)
        log = manager.get_or_create(PARTITION)
        assert log.failure is None, log.failure
        check(log)
        data = [value for value in values(log) if value is None or value.startswith(b"value")]
        assert data == self.sent[: len(data)]
        if keeps_acknowledged:
            assert len(data) >= self.acknowledged
        append(log, b"goes on", epoch=9)
        check(log)
        manager.close()
        return data


def _count_calls(durability: str) -> int:
    disk = SimFiles()
    workload = Workload(durability)
    workload.run(disk)
    assert workload.acknowledged == APPENDS
    return disk.calls


def _crashes(durability: str) -> list[tuple[int, bool, int | None]]:
    """Yield (call, after, size) of every place to die: before, in the middle of and after each
    call.
    """
    kinds: list[tuple[bool, int | None]] = [(False, None), (True, None), (True, 80)]
    print(_count_calls(durability), "calls")
    return [
        (call, after, size) for call in range(_count_calls(durability)) for after, size in kinds
    ]


def _crashed(
    durability: str, call: int, *, after: bool, size: int | None
) -> tuple[Workload, SimFiles]:
    disk = SimFiles()
    disk.crash(call, after=after, size=size)
    workload = Workload(durability)
    with suppress(SimulatedCrash):
        workload.run(disk)
        assert after, "a last call that only reads has no after"
    return workload, disk


@pytest.mark.slow
@pytest.mark.parametrize("durability", ["os", "fsync"])
def test_a_killed_process_loses_no_acknowledged_record(durability: str) -> None:
    for call, after, size in _crashes(durability):
        if size is not None and call % 3:
            continue
        workload, disk = _crashed(durability, call, after=after, size=size)
        workload.check(disk.survivor(), keeps_acknowledged=True)


@pytest.mark.slow
def test_a_loss_of_power_loses_no_synced_record() -> None:
    random = seeded(20)
    for call, after, size in _crashes("fsync"):
        if size is not None:
            continue
        workload, disk = _crashed("fsync", call, after=after, size=size)
        for image in disk.crash_images(random, 5):
            workload.check(image, keeps_acknowledged=True)


@pytest.mark.slow
def test_a_loss_of_power_at_durability_os_leaves_a_prefix() -> None:
    random = seeded(21)
    for call in range(0, _count_calls("os"), 2):
        workload, disk = _crashed("os", call, after=False, size=None)
        for image in disk.crash_images(random, 4):
            workload.check(image, keeps_acknowledged=False)


def test_a_clean_stop_is_not_believed_after_a_loss_of_power_that_took_unsynced_data() -> None:
    workload = Workload("os")
    disk = SimFiles()
    workload.run(disk)
    assert workload.closed
    lengths = set()
    for image in disk.crash_images(seeded(3), 30):
        lengths.add(len(workload.check(image, keeps_acknowledged=False)))
    assert len(lengths) > 1
    assert len(workload.check(disk.survivor(), keeps_acknowledged=True)) == APPENDS


@pytest.mark.slow
@pytest.mark.parametrize("durability", ["os", "fsync"])
def test_recovery_that_crashes_recovers_to_the_same_log(durability: str) -> None:
    random = seeded(22)
    workload = Workload(durability)
    _, disk = _crashed(durability, _count_calls(durability) * 2 // 3, after=True, size=None)
    workload.sent = [b"value-%d-" % n * (1 + 3 * (n % 4)) for n in range(APPENDS)]
    torn = disk.survivor()
    partition_log = max(name for name in torn.list(f"{DATA}/{PARTITION}") if name.endswith(".log"))
    file = torn.open(f"{DATA}/{PARTITION}/{partition_log}")
    file.write([batch(b"value of a torn append")[:90]], _content_end(torn, partition_log))
    file.sync()
    for directory in ("", DATA, f"{DATA}/{PARTITION}"):
        torn.sync_directory(directory)
    expected = workload.check(torn.survivor(), keeps_acknowledged=False)
    calls = 0
    while True:
        broken = torn.survivor()
        broken.crash(calls, after=calls % 2 == 1)
        try:
            LogManager(sim_runtime(files=broken), DATA, workload.config).get(PARTITION)
        except SimulatedCrash:
            assert workload.check(broken.survivor(), keeps_acknowledged=False) == expected
            for image in broken.crash_images(random, 3):
                assert workload.check(image, keeps_acknowledged=False) == expected
        else:
            if broken.calls <= calls:
                break
        calls += 1
    assert calls > 10


def _content_end(disk: SimFiles, name: str) -> int:
    content = disk.read(f"{DATA}/{PARTITION}/{name}")
    return len(content.rstrip(b"\0"))


@pytest.mark.slow
def test_every_failing_call_leaves_a_log_that_opens_with_what_was_acknowledged() -> None:
    """ENOSPC and EIO, once and for ever, at every call: no exception but the typed ones."""
    from errno import EIO, ENOSPC

    from embedlog.errors import EmbedlogError

    for code in (ENOSPC, EIO):
        for forever in (False, True):
            for call in range(0, _count_calls("fsync"), 3):
                disk = SimFiles()
                disk.fail(call, code, forever=forever)
                workload = Workload("fsync")
                try:
                    workload.run(disk)
                except EmbedlogError:
                    pass
                except OSError:
                    # Opening and closing the directory itself may raise the system's error.
                    pass
                survivor = disk.survivor()
                if survivor.stat(DATA) is not None:
                    workload.check(survivor, keeps_acknowledged=True)


def test_the_time_of_the_workload_is_that_of_its_records() -> None:
    workload = Workload("os")
    disk = SimFiles()
    workload.run(disk)
    log = workload.open(disk.survivor()).get(PARTITION)
    assert log is not None
    assert log.reader.fetch_offset(-3) == (NOW, 0, 1)
