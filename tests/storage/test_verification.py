"""Verification finds every flipped bit of what counts, and nothing in what is sound."""

from __future__ import annotations

import pytest

from embedlog.errors import CorruptRecord
from embedlog.storage.log_config import LogConfig
from embedlog.storage.verification import Verification
from embedlog.testing import SimFiles
from tests.storage.compaction import Compacted
from tests.storage.logs import DATA, PARTITION, append, append_marker, manager

DIRECTORY = f"{DATA}/{PARTITION}"


@pytest.fixture(scope="module")
def disk() -> SimFiles:
    """A directory that was closed cleanly: segments, epochs, a transaction, deleted records."""
    disk = SimFiles()
    config = LogConfig(segment_bytes=400, index_interval_bytes=100, durability="fsync")
    owner = manager(disk, config=config)
    log = owner.get_or_create(PARTITION, topic_id=bytes(range(16)))
    for number in range(9):
        append(log, b"value %d" % number * 5, epoch=number // 4)
    append(log, b"aborted", producer=(9, 0, 0), transactional=True, epoch=2)
    append_marker(log, 9, committed=False)
    log.flush()
    log.commit(True)
    log.increment_log_start_offset(2)
    owner.close()
    return disk


def _findings(disk: SimFiles) -> list[CorruptRecord]:
    return list(Verification(disk, DATA, lambda size: None).findings())


def test_a_sound_directory_has_no_finding(disk: SimFiles) -> None:
    assert _findings(disk) == []


@pytest.mark.parametrize("suffix", [".log", ".index", ".snapshot", ".sealed", "published-offset"])
def test_every_flipped_bit_is_found(disk: SimFiles, suffix: str) -> None:
    found = [f"{folder}/{name}" for folder in (DATA, DIRECTORY) for name in disk.list(folder)
             if name.endswith(suffix)]  # fmt: skip
    assert found
    for path in found:
        content = disk.read(path)
        file = disk.open(path)
        for position, byte in enumerate(content):
            for bit in range(8):
                file.write([bytes([byte ^ 1 << bit])], position)
                assert _findings(disk), (path, position, bit)
            file.write([bytes([byte])], position)


def test_what_is_missing_between_segments_is_found(disk: SimFiles) -> None:
    copy = disk.survivor()
    logs = [name for name in copy.list(DIRECTORY) if name.endswith(".log")]
    copy.remove(f"{DIRECTORY}/{logs[1]}")
    (finding,) = _findings(copy)
    assert finding.path == f"{DIRECTORY}/{logs[2]}"
    assert "the segment before ends at" in finding.reason


def test_the_gaps_of_compaction_are_sound() -> None:
    topic = Compacted(SimFiles())
    for number in range(40):
        topic.put((f"k{number % 3}", f"{number}" * 20))
    topic.clean()
    topic.manager.close()
    assert _findings(topic.log.files) == []


def test_a_checkpoint_beyond_the_end_is_found(disk: SimFiles) -> None:
    copy = disk.survivor()
    logs = [name for name in copy.list(DIRECTORY) if name.endswith(".log")]
    copy.remove(f"{DIRECTORY}/{logs[-1]}")
    findings = _findings(copy)
    assert [each.path for each in findings] == [f"{DATA}/recovery-point-offset-checkpoint"]
    assert "which ends at" in findings[0].reason
