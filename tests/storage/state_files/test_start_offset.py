"""Damage does not change where a log begins: no record is hidden, no deleted one comes back."""

from __future__ import annotations

import pytest

from embedlog.common import TopicPartition
from embedlog.storage.directory.log_manager import LogManager
from embedlog.storage.log.log import Log
from embedlog.storage.log_config import LogConfig
from embedlog.storage.paths import LEADER_EPOCHS, LOG_START_OFFSETS, SEALED
from embedlog.storage.state_files.checkpoint_files import decode_offsets
from embedlog.testing import SimFiles
from tests.storage.logs import DATA, PARTITION, append, manager, values

TEXT = f"{DATA}/{LOG_START_OFFSETS}"
DIRECTORY = f"{DATA}/{PARTITION}"


@pytest.fixture(params=["os", "fsync"])
def disk(request: pytest.FixtureRequest) -> SimFiles:
    """A cleanly closed log of 100 records; the first 10 were deleted."""
    owner = manager(config=LogConfig(durability=request.param))
    log = owner.get_or_create(PARTITION)
    for number in range(100):
        append(log, b"%d" % number)
    log.durability.flush()
    log.offsets.update_high_watermark(100)
    log.offsets.increment_log_start_offset(10)
    owner.close()
    return log.files.survivor()


def _open(disk: SimFiles) -> tuple[LogManager, Log]:
    owner = manager(disk, config=LogConfig(durability="fsync"))
    log = owner.get(PARTITION)
    assert log is not None
    return owner, log


def _replace(disk: SimFiles, path: str, content: bytes) -> None:
    file = disk.open(path, create=True)
    file.truncate(0)
    file.write([content], 0)


@pytest.mark.slow
@pytest.mark.parametrize("path", [TEXT, TEXT + SEALED])
def test_every_flipped_bit_of_the_checkpoint_does_no_harm(disk: SimFiles, path: str) -> None:
    content = disk.read(path)
    for bit in range(len(content) * 8):
        damaged = disk.survivor()
        changed = bytearray(content)
        changed[bit // 8] ^= 1 << bit % 8
        _replace(damaged, path, bytes(changed))
        owner, log = _open(damaged)
        assert (log.offsets.log_start_offset, log.log_end_offset) == (10, 100), bit
        assert values(log) == [b"%d" % number for number in range(10, 100)]
        owner.close()
        assert decode_offsets(damaged.read(TEXT), TEXT) == {PARTITION: 10}
        assert damaged.read(TEXT + SEALED) == disk.read(TEXT + SEALED)


@pytest.mark.parametrize("told", [None, b"", b"0\n1\nevents 0 300\n", b"0\n1\nevents 0 30\n"])
def test_without_the_sealed_form_the_epochs_tell_what_was_deleted(
    disk: SimFiles, told: bytes | None
) -> None:
    disk.remove(TEXT + SEALED)
    if told is None:
        disk.remove(TEXT)
    elif told:
        _replace(disk, TEXT, told)
    owner, log = _open(disk)
    assert (log.offsets.log_start_offset, log.log_end_offset) == (10, 100)
    assert owner.health() == []


def test_a_start_offset_that_nothing_vouches_for_takes_no_records_away(disk: SimFiles) -> None:
    disk.remove(TEXT + SEALED)
    for name in (LEADER_EPOCHS, LEADER_EPOCHS + SEALED):
        if disk.stat(f"{DIRECTORY}/{name}") is not None:
            disk.remove(f"{DIRECTORY}/{name}")
    _replace(disk, TEXT, b"0\n1\nevents 0 300\n")
    owner, log = _open(disk)
    assert (log.offsets.log_start_offset, log.log_end_offset) == (0, 100)
    (news,) = owner.health()
    assert news.kind == "damaged"
    assert "says 300" in news.reason


def test_a_log_that_is_loaded_later_still_has_its_witnesses(disk: SimFiles) -> None:
    """An unknown start offset of an unused log stays unknown, and is not taken for 0."""
    for damaged in (TEXT, TEXT + SEALED):
        _replace(disk, damaged, b"damaged")
    owner = manager(disk, config=LogConfig(durability="fsync"))
    append(owner.get_or_create(TopicPartition("other", 0)), b"a")
    owner.checkpoints.write_positions()
    owner.close()
    _, log = _open(disk)
    assert log.offsets.log_start_offset == 10


def test_what_kafka_deleted_stays_deleted(disk: SimFiles) -> None:
    """Kafka writes the text forms only: of the checkpoint, and of the epochs of the log."""
    _replace(disk, TEXT, b"0\n1\nevents 0 55\n")
    _, log = _open(disk.survivor())
    assert log.offsets.log_start_offset == 10
    _replace(disk, f"{DIRECTORY}/{LEADER_EPOCHS}", b"0\n1\n0 55\n")
    owner, log = _open(disk)
    assert values(log) == [b"%d" % number for number in range(55, 100)]
    owner.close()
    assert b" 55\n" in disk.read(TEXT + SEALED)


def test_a_log_that_ends_below_its_start_offset_is_told(disk: SimFiles) -> None:
    """A loss of power took all remaining records, and more."""
    path = f"{DIRECTORY}/{0:020d}.log"
    disk.open(path).truncate(0)
    disk.boot_id += "+"
    for name in disk.list(DATA):
        if name.startswith("recovery-point") or "clean" in name:
            disk.remove(f"{DATA}/{name}")
    owner, log = _open(disk)
    assert (log.offsets.log_start_offset, log.log_end_offset) == (10, 10)
    assert [news.kind for news in owner.health()] == ["cut"]
