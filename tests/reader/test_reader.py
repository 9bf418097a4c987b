"""A reader of a directory whose owner appends, compacts, deletes and dies in another process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import embedlog
from embedlog import errors
from embedlog.common import TopicPartition
from embedlog.errors import CorruptRecord
from embedlog.reader.reader import LogDirectoryReader, PartitionReader
from embedlog.runtime.files import Files
from embedlog.storage import paths
from embedlog.storage.directory.log_manager import LogManager
from embedlog.storage.log_config import LogConfig
from embedlog.testing import SimFiles, sim_runtime
from tests.storage.cleaner.compaction import Compacted
from tests.storage.logs import DATA, NOW, PARTITION, append, append_marker, batch, manager


def _reader(files: Files) -> LogDirectoryReader:
    return LogDirectoryReader(DATA, runtime=sim_runtime(files=files))


def _values(part: PartitionReader, offset: int | None = None, **settings: str) -> list[bytes]:
    return [bytes(record.value or b"") for record in part.records(offset, **settings)]


def _append(log: object, *values: bytes, **fields: object) -> None:
    """Append and publish the committed offsets, as the broker does."""
    append(log, *values, **fields)
    log.offsets.commit(log.config.durability == "fsync")


def test_topics_are_listed_and_read_while_the_owner_has_them_open() -> None:
    disk = SimFiles()
    owner = manager(disk)
    log = owner.get_or_create(PARTITION)
    _append(log, b"a", b"b")
    reader = _reader(disk)
    assert reader.topics() == ["events"]
    assert reader.partitions("events") == [0]
    part = reader.partition("events", 0)
    assert _values(part) == [b"a", b"b"]
    assert _values(part, 1) == [b"b"]
    _append(log, b"c")
    assert _values(part) == [b"a", b"b"], "until it looks again"
    part.refresh()
    assert _values(part) == [b"a", b"b", b"c"]
    assert (part.log_start_offset, part.high_watermark) == (0, 3)
    owner.close()
    part.refresh()
    assert _values(part) == [b"a", b"b", b"c"]
    assert _values(_reader(disk).partition("events", 0)) == [b"a", b"b", b"c"]


def test_a_reader_writes_locks_and_removes_nothing() -> None:
    disk = SimFiles()
    log = manager(disk).get_or_create(PARTITION)
    _append(log, b"a")
    before = len(disk.trace)
    part = _reader(disk).partition("events", 0)
    assert _values(part) == [b"a"]
    assert part.offset_for_timestamp(0) == 0
    calls = {call for call, _ in disk.trace[before:]}
    assert calls <= {"open", "read", "stat", "list", "view", "size"}


def test_with_fsync_only_synced_records_are_read() -> None:
    disk = SimFiles()
    log = manager(disk, config=LogConfig(durability="fsync")).get_or_create(PARTITION)
    part = _reader(disk).partition("events", 0)
    _append(log, b"a")
    part.refresh()
    assert part.high_watermark == 0
    log.durability.flush()
    log.offsets.commit(True)
    _append(log, b"unsynced")
    part.refresh()
    assert _values(part) == [b"a"]
    assert part.wait(1, 100) is False
    survivor = disk.survivor()
    assert _values(_reader(survivor).partition("events", 0)) == [b"a"], "its owner has died"


def test_a_published_offset_that_is_damaged_is_replaced_by_the_recovery_point() -> None:
    disk = SimFiles()
    owner = manager(disk, config=LogConfig(durability="fsync"))
    log = owner.get_or_create(PARTITION)
    for value in (b"a", b"b"):
        _append(log, value)
        log.durability.flush()
        log.offsets.commit(True)
        owner.checkpoints.write_positions()
    file = disk.open(f"{log.directory}/{paths.PUBLISHED_OFFSET}")
    file.write([b"\xff"], 3)
    _append(log, b"unsynced")
    assert _values(_reader(disk).partition("events", 0)) == [b"a", b"b"]


def test_records_are_read_if_the_owner_died_before_publishing_an_offset() -> None:
    """The owner creates the file empty before its first append."""
    disk = SimFiles()
    log = manager(disk, config=LogConfig(durability="os")).get_or_create(PARTITION)
    _append(log, b"a")
    disk.open(f"{log.directory}/{paths.PUBLISHED_OFFSET}", create=True)
    assert _values(_reader(disk).partition("events", 0)) == [b"a"]


def test_a_log_is_read_to_its_end_after_its_durability_changed_from_fsync() -> None:
    disk = SimFiles()
    owner = manager(disk, config=LogConfig(durability="fsync"))
    log = owner.get_or_create(PARTITION)
    log.offsets.commit(True)
    owner.configure("events", LogConfig(durability="os"))
    _append(log, b"a")
    assert _values(_reader(disk).partition("events", 0)) == [b"a"]


def test_rolls_retention_and_deleted_records_are_followed() -> None:
    disk = SimFiles()
    owner = manager(disk, config=LogConfig(segment_bytes=300))
    log = owner.get_or_create(PARTITION)
    for number in range(20):
        _append(log, b"%d" % number * 20)
    part = _reader(disk).partition("events", 0)
    _append(log, b"later")
    part.refresh()
    assert len(log.segments) > 3
    assert [record.offset for record in part.records()] == list(range(21))
    log.offsets.increment_log_start_offset(2)
    part.refresh()
    assert part.log_start_offset == 2
    going = part.records()
    assert next(going).offset == 2
    log.offsets.increment_log_start_offset(20)
    log.config = LogConfig(segment_bytes=300, retention_ms=1)
    list(owner.tasks.finish_now())
    assert len(log.segments) < 4
    with pytest.raises(errors.OffsetOutOfRange):
        list(going)
    part.refresh()
    assert [record.offset for record in part.records()] == [20]
    with pytest.raises(errors.OffsetOutOfRange):
        next(part.records(3))


def test_compaction_is_followed() -> None:
    topic = Compacted(SimFiles())
    for number in range(30):
        topic.put((f"k{number % 3}", f"{number}" * 20))
    part = _reader(topic.log.files).partition("events", 0)
    going = part.records()
    seen = [next(going).offset, next(going).offset]
    topic.clean()
    seen += [record.offset for record in going]
    assert seen == sorted(set(seen))
    assert {27, 28, 29} <= set(seen)
    part.refresh()
    kept = [(record.offset, bytes(record.value)) for record in part.records()]
    assert kept == [(offset, value) for offset, _, value in _rows(topic)]


def _rows(topic: Compacted) -> list[tuple[int, bytes | None, bytes | None]]:
    from tests.storage.cleaner.compaction import rows

    return list(rows(topic.log))


def test_a_deleted_or_recreated_topic_is_reported() -> None:
    disk = SimFiles()
    owner = manager(disk)
    _append(owner.get_or_create(PARTITION, topic_id=bytes(16)), b"a")
    reader = _reader(disk)
    part = reader.partition("events", 0)
    owner.delete(PARTITION)
    with pytest.raises(errors.UnknownTopicOrPartition):
        part.refresh()
    with pytest.raises(errors.UnknownTopicOrPartition):
        reader.partition("events", 0)
    _append(owner.get_or_create(PARTITION, topic_id=bytes(range(16))), b"another")
    with pytest.raises(errors.UnknownTopicOrPartition):
        part.wait(0, 1000)
    assert _values(reader.partition("events", 0)) == [b"another"]


def test_a_torn_tail_is_not_shown() -> None:
    disk = SimFiles()
    log = manager(disk).get_or_create(PARTITION)
    _append(log, b"a")
    size = log.size
    _append(log, b"torn" * 100)
    for cut in (size + 5, size + 40, log.size - 1):
        torn = disk.survivor()
        torn.open(log.segments[0].path).truncate(cut)
        part = _reader(torn).partition("events", 0)
        assert _values(part) == [b"a"]
        assert part.wait(1, 50) is False


@pytest.mark.parametrize("durability", ["os", "fsync"])
@pytest.mark.parametrize("rolled", [False, True])
def test_damage_is_reported_with_file_and_position(durability: str, rolled: bool) -> None:
    disk = SimFiles()
    log = manager(disk, config=LogConfig(durability=durability)).get_or_create(PARTITION)
    _append(log, b"a")
    size = log.size
    for value in (b"b", b"c"):
        _append(log, value)
    log.durability.flush()
    log.offsets.commit(durability == "fsync")
    path = log.segments[0].path
    if rolled:
        log.roll()
    file = disk.open(path)
    file.write([b"\xff"], size + 65)
    part = _reader(disk).partition("events", 0)
    going = part.records()
    assert next(going).value == b"a"
    with pytest.raises(CorruptRecord) as found:
        next(going)
    assert (found.value.path, found.value.position) == (path, size)
    if not rolled:
        with pytest.raises(CorruptRecord):
            part.wait(1, 1000)


def test_a_withdrawn_append_is_forgotten() -> None:
    disk = SimFiles()
    log = manager(disk).get_or_create(PARTITION)
    _append(log, b"a")
    segment = log.segments[0]
    phantom = bytearray(batch(b"interrupted"))
    phantom[:8] = (1).to_bytes(8, "big")
    phantom[12:16] = bytes(4)
    disk.open(segment.path).write([bytes(phantom)], segment.size)
    part = _reader(disk).partition("events", 0)
    assert _values(part) == [b"a", b"interrupted"]
    for value in (b"b" * 200, b"c"):
        _append(log, value)
    part.refresh()
    assert _values(part) == [b"a", b"b" * 200, b"c"]
    assert part.wait(2, 100)


def test_a_segment_that_a_salvage_rewrote_is_followed() -> None:
    disk = SimFiles()
    owner = manager(disk)
    log = owner.get_or_create(PARTITION)
    for value in (b"a", b"b", b"c"):
        _append(log, value)
    part = _reader(disk).partition("events", 0)
    file = disk.open(log.segments[0].path)
    file.write([b"\xff"], len(batch(b"a")) + 65)
    log = owner.salvage(PARTITION)
    _append(log, b"d")
    part.refresh()
    assert _values(part) == [b"a", b"c", b"d"]


def test_a_gap_without_compaction_is_damage() -> None:
    disk = SimFiles()
    log = manager(disk).get_or_create(PARTITION)
    for value in (b"a", b"b", b"c"):
        _append(log, value)
    file = disk.open(log.segments[0].path)
    second = len(batch(b"a"))
    file.write([(5).to_bytes(8, "big")], second)
    with pytest.raises(CorruptRecord, match="offset"):
        _values(_reader(disk).partition("events", 0))


def test_read_committed_ends_before_open_transactions_and_leaves_out_aborted_ones() -> None:
    disk = SimFiles()
    owner = manager(disk, config=LogConfig(segment_bytes=400))
    log = owner.get_or_create(PARTITION)
    _append(log, b"plain")
    _append(log, b"aborted", producer=(1, 0, 0), transactional=True)
    _append(log, b"committed", producer=(2, 0, 0), transactional=True)
    append_marker(log, 1, committed=False)
    append_marker(log, 2, committed=True)
    _append(log, b"second", producer=(1, 0, 1), transactional=True)
    append_marker(log, 1, committed=True)
    log.roll()
    start = log.log_end_offset
    _append(log, b"open", producer=(2, 0, 1), transactional=True)
    for _ in range(5):
        _append(log, b"behind" * 20)
    part = _reader(disk).partition("events", 0)
    committed = {"isolation_level": "read_committed"}
    assert part.last_stable_offset == start == log.offsets.last_stable_offset
    assert _values(part, **committed) == [b"plain", b"committed", b"second"]
    assert len(_values(part)) == 10
    assert part.wait(start, 50, **committed) is False
    append_marker(log, 2, committed=True)
    log.offsets.commit(False)
    part.refresh()
    assert part.last_stable_offset == log.offsets.last_stable_offset == log.log_end_offset
    assert _values(part, start, **committed) == [b"open", *[b"behind" * 20] * 5]


def test_an_offset_is_found_by_its_timestamp() -> None:
    disk = SimFiles()
    log = manager(disk, config=LogConfig(segment_bytes=300)).get_or_create(PARTITION)
    for number in range(20):
        _append(log, b"x" * 50, timestamps=NOW + number * 10)
    part = _reader(disk).partition("events", 0)
    for timestamp, offset in ((0, 0), (NOW + 1, 1), (NOW + 95, 10), (NOW + 190, 19)):
        assert part.offset_for_timestamp(timestamp) == offset
    assert part.offset_for_timestamp(NOW + 191) is None


@pytest.mark.slow
def test_an_unfinished_swap_of_segments_hides_no_records() -> None:
    """After every file call of a compaction, a reader sees the log that the next owner recovers."""
    for call in range(10_000):
        topic = Compacted(SimFiles())
        for number in range(12):
            topic.put((f"k{number % 3}", f"{number}" * 20))
        files = topic.log.files
        files.crash(files.calls + call)
        try:
            topic.clean()
        except BaseException:  # noqa: BLE001 - the process has died
            pass
        else:
            break
        survivor = files.survivor()
        read = [
            (record.offset, bytes(record.value))
            for record in _reader(survivor).partition("events", 0).records()
        ]
        again = Compacted(survivor)
        assert read == [(offset, value) for offset, _, value in _rows(again)], call
    assert call > 20


WRITER = """
import sys, embedlog
cluster = embedlog.open(sys.argv[1], durability=sys.argv[2], log_segment_bytes=1 << 20)
cluster.create_topic("events", 1)
with cluster.producer() as producer:
    number = 0
    while True:
        producer.send("events", b"%04d" % number * 1000, partition=0).result()
        number += 1
        if number in (1, 500):
            print(number, flush=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize("durability", ["os", "fsync"])
def test_a_writer_in_another_process_is_followed_until_it_is_killed(
    tmp_path: Path, durability: str
) -> None:
    root = Path(__file__).resolve().parents[2]
    path = str(tmp_path / "data")
    command = [sys.executable, "-c", WRITER, path, durability]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"1\n"
        with embedlog.open_reader(path) as reader:
            part = reader.partition("events", 0)
            for expected, record in enumerate(part.follow(timeout_ms=60_000)):
                assert (record.offset, record.value) == (expected, b"%04d" % expected * 1000)
                if expected == 499:
                    break
            assert writer.stdout.readline() == b"500\n"
            writer.kill()
            writer.wait()
            part.refresh()
            seen = [int(bytes(record.value)[:4]) for record in part.records()]
    assert seen == list(range(len(seen)))
    assert len(seen) >= 500
    with embedlog.open(path, durability=durability) as cluster, cluster.consumer() as consumer:
        consumer.assign([("events", 0)])
        assert consumer.end_offsets([("events", 0)])[TopicPartition("events", 0)] >= len(seen)


def test_a_reader_needs_only_permission_to_read(tmp_path: Path) -> None:
    with embedlog.open(tmp_path / "data") as cluster, cluster.producer() as producer:
        producer.send("events", b"a", partition=0).result()
    places = [tmp_path / "data", *(tmp_path / "data").rglob("*")]
    for place in places:
        place.chmod(0o500 if place.is_dir() else 0o400)
    try:
        with embedlog.open_reader(tmp_path / "data") as reader:
            assert _values(reader.partition("events", 0)) == [b"a"]
    finally:
        for place in places:
            place.chmod(0o700)


def test_a_path_without_a_data_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(errors.ConfigError):
        embedlog.open_reader(tmp_path / "nothing")
    reader = embedlog.open_reader(tmp_path)
    assert reader.topics() == []
    reader.close()
    with pytest.raises(errors.ClosedError):
        reader.topics()


def test_a_directory_is_readable_in_every_early_state(tmp_path: Path) -> None:
    """An owner may have no lock file yet, or a log no segment: there is nothing to read."""
    disk = SimFiles()
    LogManager(sim_runtime(files=disk), DATA).close()
    disk.make_directory(f"{DATA}/events-0")
    with pytest.raises(errors.UnknownTopicOrPartition):
        _reader(disk).partition("events", 0)
