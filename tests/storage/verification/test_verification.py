"""Verification finds every flipped bit that counts, and none in sound files."""

from __future__ import annotations

import pytest

from embedlog.errors import CorruptRecord
from embedlog.storage.log_config import LogConfig
from embedlog.storage.verification.directory import DirectoryCheck
from embedlog.testing import SimFiles
from tests.storage.cleaner.compaction import Compacted
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
    log.durability.flush()
    log.offsets.commit(True)
    log.offsets.increment_log_start_offset(2)
    owner.close()
    return disk


def _findings(disk: SimFiles) -> list[CorruptRecord]:
    return list(DirectoryCheck(disk, DATA, lambda size: None).findings())


def test_a_sound_directory_has_no_finding(disk: SimFiles) -> None:
    assert _findings(disk) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "suffix",
    [
        ".log",
        ".index",
        ".snapshot",
        ".sealed",
        "published-offset",
        ".timeindex",
        ".txnindex",
        "partition.metadata",
        ".kafka_cleanshutdown",
        "leader-epoch-checkpoint",
        "log-start-offset-checkpoint",
        "recovery-point-offset-checkpoint",
    ],
)
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
    assert [each.path for each in findings] == [
        f"{DATA}/recovery-point-offset-checkpoint",
        f"{DATA}/replication-offset-checkpoint",
    ]
    assert "which has" in findings[0].reason


@pytest.mark.slow
def test_interleaved_transactions_are_sound_and_a_wrong_entry_of_any_is_found() -> None:
    disk = SimFiles()
    owner = manager(disk, config=LogConfig(segment_bytes=400))
    log = owner.get_or_create(PARTITION)
    sequences = dict.fromkeys((7, 8, 9), 0)
    for number in range(40):
        producer = 7 + number % 3
        fields = {"producer": (producer, 0, sequences[producer]), "transactional": True}
        append(log, b"value %d" % number * 3, **fields)
        sequences[producer] += 1
        if number % 4 == 3:
            append_marker(log, 7 + number // 4 % 3, committed=number % 8 == 7)
    log.offsets.commit(True)
    owner.close()
    assert _findings(disk) == []
    found = [f"{DIRECTORY}/{name}" for name in disk.list(DIRECTORY) if name.endswith(".txnindex")]
    assert len(found) > 2
    for path in found:
        content = disk.read(path)
        file = disk.open(path)
        for position in range(len(content)):
            file.write([bytes([content[position] ^ 1])], position)
            assert _findings(disk), (path, position)
            file.write([content[position : position + 1]], position)


def test_a_text_that_differs_from_its_twin_is_damage_only_where_it_was_closed() -> None:
    disk = SimFiles()
    owner = manager(disk)
    log = owner.get_or_create(PARTITION)
    append(log, b"a")
    log.durability.flush()
    owner.checkpoints.write_positions()
    killed = disk.survivor()
    owner.close()
    path = f"{DATA}/recovery-point-offset-checkpoint"
    older = b"0\n1\n%s 0 0\n" % PARTITION[0].encode()
    for each in (disk, killed):
        assert len(each.read(path)) == len(older)
        each.open(path).write([older], 0)
    assert [finding.path for finding in _findings(disk)] == [path]
    assert _findings(killed) == []
