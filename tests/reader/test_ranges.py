"""Parts of a partition that one process plans and another reads."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest

import embedlog
from embedlog import errors
from embedlog.errors import CorruptRecord
from embedlog.reader.partition_range import PartitionRange
from embedlog.reader.reader import LogDirectoryReader
from embedlog.storage.log_config import LogConfig
from embedlog.testing import SimFiles, sim_runtime
from tests.storage.cleaner.compaction import Compacted
from tests.storage.logs import DATA, PARTITION, append, append_marker, manager
from wire.records.batch import iter_batches


def _log(disk: SimFiles, count: int, **config: int) -> Any:
    log = manager(disk, config=LogConfig(**config)).get_or_create(PARTITION)
    for number in range(count):
        append(log, b"%d" % number * 10, b"second")
        log.offsets.commit(False)
    return log


def _plan(disk: SimFiles, start: int, end: int, **settings: str) -> PartitionRange:
    reader = LogDirectoryReader(DATA, runtime=sim_runtime(files=disk))
    planned = reader.partition("events", 0).range(start, end, **settings)
    sent: PartitionRange = pickle.loads(pickle.dumps(planned))
    return sent


def _offsets(disk: SimFiles, planned: PartitionRange) -> list[int]:
    batches = planned.batches(runtime=sim_runtime(files=disk))
    found = [record.offset for batch in batches for record in batch.records()]
    return [offset for offset in found if planned.start <= offset < planned.end]


def test_a_range_spans_segments_and_begins_and_ends_inside_batches() -> None:
    disk = SimFiles()
    _log(disk, 40, segment_bytes=500, index_interval_bytes=0)
    for start, end in ((0, 80), (3, 4), (7, 61), (79, 80), (12, 12)):
        assert _offsets(disk, _plan(disk, start, end)) == list(range(start, end))


def test_a_planned_range_does_not_grow() -> None:
    disk = SimFiles()
    log = _log(disk, 5)
    planned = _plan(disk, 4, 10)
    append(log, b"later")
    assert _offsets(disk, planned) == list(range(4, 10))


def test_cuts_lie_between_batches_and_parts_have_about_the_wanted_size() -> None:
    disk = SimFiles()
    _log(disk, 200, segment_bytes=4_000, index_interval_bytes=0)
    reader = LogDirectoryReader(DATA, runtime=sim_runtime(files=disk))
    cuts = reader.partition("events", 0).cuts(10, 390, 2_000)
    assert len(cuts) > 5
    assert all(cut % 2 == 0 and 10 < cut < 390 for cut in cuts)
    bounds = [10, *cuts, 390]
    parts = [_offsets(disk, _plan(disk, *pair)) for pair in zip(bounds, bounds[1:], strict=False)]
    assert sum(parts, []) == list(range(10, 390))


def test_retention_after_the_plan_is_reported() -> None:
    disk = SimFiles()
    _log(disk, 40, segment_bytes=500)
    planned = _plan(disk, 0, 80)
    disk.remove(f"{DATA}/events-0/{0:020}.log")
    with pytest.raises(errors.OffsetOutOfRange):
        _offsets(disk, planned)


def test_a_recreated_topic_is_another_topic(tmp_path: Path) -> None:
    with embedlog.open(tmp_path, durability="os") as cluster:
        cluster.create_topic("t", 1)
        with cluster.producer() as producer:
            producer.send("t", b"first").result()
        with embedlog.open_reader(tmp_path) as reader:
            planned = reader.partition("t", 0).range(0, 1)
        with cluster.admin() as admin:
            admin.delete_topics(["t"]).check()
        cluster.create_topic("t", 1)
        with pytest.raises(errors.UnknownTopicOrPartition):
            list(planned.batches())


def test_after_compaction_a_range_has_all_records_that_remain() -> None:
    topic = Compacted()
    for number in range(30):
        topic.put((f"key-{number % 3}", f"{number}"))
    topic.log.roll()
    topic.put(("last", "x"))
    topic.commit()
    disk = topic.runtime.files
    planned = _plan(disk, 0, topic.log.offsets.high_watermark)
    topic.clean()
    assert _offsets(disk, planned) == [27, 28, 29, 30]


def test_a_gap_without_compaction_is_damage() -> None:
    disk = SimFiles()
    log = _log(disk, 9, segment_bytes=300)
    bases = [segment.base_offset for segment in log.segments]
    planned = _plan(disk, 0, 18)
    disk.remove(f"{DATA}/events-0/{bases[1]:020}.log")
    with pytest.raises(CorruptRecord, match="expected"):
        _offsets(disk, planned)


@pytest.mark.parametrize("start", range(6, 12))
@pytest.mark.parametrize("is_within_a_segment", [False, True])
def test_a_read_that_begins_inside_a_hole_notices_it(start: int, is_within_a_segment: bool) -> None:
    disk = SimFiles()
    log = _log(disk, 9, segment_bytes=4_000 if is_within_a_segment else 300)
    planned, short = _plan(disk, start, 18), _plan(disk, start, 12)
    path = log.segments[0].path
    if is_within_a_segment:
        content = disk.read(path)[: log.size]
        batches = list(iter_batches(memoryview(content)))
        cut, end = (sum(each.size for each in batches[:count]) for count in (3, 6))
        disk.open(path).truncate(0)
        disk.open(path).write([content[:cut] + content[end:]], 0)
    else:
        assert [segment.base_offset for segment in log.segments] == [0, 6, 12]
        disk.remove(log.segments[1].path)
    for each in (planned, short):
        with pytest.raises(CorruptRecord, match="expected"):
            _offsets(disk, each)
        with pytest.raises(CorruptRecord, match="expected"):
            reader = LogDirectoryReader(DATA, runtime=sim_runtime(files=disk))
            list(reader.partition("events", 0).batches(each.start))


def test_aborted_batches_are_left_out_though_the_marker_lies_behind_the_range() -> None:
    disk = SimFiles()
    log = manager(disk).get_or_create(PARTITION)
    append(log, b"kept", producer=(1, 0, 0), transactional=True)
    append(log, b"aborted", producer=(2, 0, 0), transactional=True)
    append_marker(log, 2, committed=False)
    append_marker(log, 1, committed=True)
    log.offsets.commit(False)
    committed = {"isolation_level": "read_committed"}
    assert _offsets(disk, _plan(disk, 0, 2, **committed)) == [0]
    assert _offsets(disk, _plan(disk, 0, 2)) == [0, 1]


def test_damage_is_reported_with_file_and_position() -> None:
    disk = SimFiles()
    _log(disk, 3)
    planned = _plan(disk, 0, 6)
    path = f"{DATA}/events-0/{0:020}.log"
    content = disk.read(path)
    at = content.index(b"1" * 10)
    disk.open(path).write([bytes([content[at] ^ 1])], at)
    with pytest.raises(CorruptRecord, match=rf"{path} at byte \d+"):
        _offsets(disk, planned)
