"""The plans of a query's batches: `StreamReader` as Spark calls it, without a JVM."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from pyspark.sql.streaming.datasource import ReadAllAvailable
from pyspark.sql.types import LongType, StructField, StructType

from embedlog.common import TopicPartition
from embedlog.spark.errors import DataLoss, IllegalArgument
from embedlog.spark.options import SourceOptions
from embedlog.spark.reading import planning
from embedlog.spark.reading.stream_reader import StreamReader
from embedlog.testing import sim_runtime
from tests.spark.logs import add, filled

SCHEMA = StructType([StructField("offset", LongType())])
KEY = TopicPartition("t", 0)
OTHER = TopicPartition("t", 1)
ALL = ReadAllAvailable()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Any]:
    """A cluster whose topic t has a partition with ten records."""
    with filled(tmp_path / "log", {"t": [10]}) as made:
        yield made


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "log"


def _stream(path: Path, **options: str) -> StreamReader:
    given = {"path": str(path), "subscribe": "t", "startingOffsets": "earliest", **options}
    return StreamReader(SourceOptions.parse(given, streaming=True), SCHEMA)


def _offset(offsets: dict[str, Any], partition: int = 0) -> int:
    found: int = offsets["t"][str(partition)]
    return found


def test_the_first_batch_pins_where_a_query_begins(cluster: Any, path: Path) -> None:
    stream = _stream(path, startingOffsets="latest")
    start = stream.initialOffset()
    add(cluster, "t", 0, range(10, 15))
    assert stream.latestOffset(start, ALL) == start
    assert _offset(stream.latestOffset(start, ALL)) == 15


def test_a_query_of_what_is_available_ends_where_the_log_ended(cluster: Any, path: Path) -> None:
    stream = _stream(path, minOffsetsPerTrigger="100")
    start = stream.initialOffset()
    stream.prepareForTriggerAvailableNow()
    add(cluster, "t", 0, range(10, 15))
    for _ in range(2):  # however few the records are
        assert _offset(stream.latestOffset(start, ALL)) == 10


def test_a_trigger_waits_for_records_and_not_too_long(
    cluster: Any, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime = sim_runtime()
    monkeypatch.setattr("embedlog.spark.reading.stream_reader.real_runtime", lambda: runtime)
    stream = _stream(path, minOffsetsPerTrigger="5", maxTriggerDelay="10s")
    end = stream.latestOffset(stream.initialOffset(), ALL)
    assert _offset(end) == 10
    for first in (10, 12):  # each delay counts from the last batch
        add(cluster, "t", 0, range(first, first + 2))
        assert stream.latestOffset(end, ALL) == end
        runtime.clock.advance(9_000)
        assert stream.latestOffset(end, ALL) == end
        runtime.clock.advance(1_000)
        end = stream.latestOffset(end, ALL)
        assert _offset(end) == first + 2
    add(cluster, "t", 0, range(14, 19))
    assert _offset(stream.latestOffset(end, ALL)) == 19


def test_a_topic_made_anew_during_a_batch_is_a_loss(cluster: Any, path: Path) -> None:
    stream = _stream(path)
    start = stream.initialOffset()
    end = stream.latestOffset(start, ALL)
    assert stream.partitions(start, end)
    cluster.admin().delete_topics(["t"])
    cluster.create_topic("t", 1)
    add(cluster, "t", 0, range(20))
    with pytest.raises(DataLoss):
        stream.partitions(start, end)
    assert _stream(path, failOnDataLoss="false").partitions(start, end)


def test_a_batch_that_ends_before_its_start_is_a_loss(cluster: Any, path: Path) -> None:
    start, end = {"t": {"0": 10}}, {"t": {"0": 2}}
    with pytest.raises(DataLoss):
        _stream(path).partitions(start, end)
    assert _stream(path, failOnDataLoss="false").partitions(start, end) == []


def test_a_partition_that_is_gone_is_a_loss(cluster: Any, path: Path) -> None:
    start, end = {"gone": {"0": 3}, "t": {"0": 0}}, {"t": {"0": 10}}
    with pytest.raises(DataLoss):
        _stream(path).partitions(start, end)
    assert len(_stream(path, failOnDataLoss="false").partitions(start, end)) == 1


def test_a_new_partition_without_its_first_records_is_a_loss(cluster: Any, path: Path) -> None:
    with cluster.admin() as admin:
        admin.create_partitions({"t": 2})
        add(cluster, "t", 1, range(5))
        admin.delete_records({OTHER: 3})
    start = {"t": {"0": 10}}
    with pytest.raises(DataLoss):
        _stream(path).latestOffset(start, ALL)
    tolerant = _stream(path, failOnDataLoss="false")
    assert _offset(tolerant.latestOffset(start, ALL), 1) == 5


class Groups:
    """A log whose group g has committed one of two partitions, and that has no later records."""

    def committed(self, _group: str) -> dict[TopicPartition, int]:
        return {KEY: 7}

    def offset_for_timestamp(self, _key: TopicPartition, _timestamp: int) -> int | None:
        return None


BOUNDS = {KEY: (2, 10), OTHER: (3, 12)}


def _options(**options: str) -> SourceOptions:
    given = {"path": "log", "subscribe": "t", **options}
    return SourceOptions.parse(given, streaming=False)


def test_a_partition_without_a_committed_offset_is_read_from_its_first_record() -> None:
    log: Any = Groups()
    options = _options(**{"startingOffsets": "committed", "kafka.group.id": "g"})
    assert planning.starting_positions(log, options, BOUNDS, BOUNDS) == {KEY: 7, OTHER: 3}


def test_a_time_after_all_records_is_an_end_but_no_start() -> None:
    log: Any = Groups()
    late = {"startingTimestamp": "9", "endingTimestamp": "9"}
    options = _options(**late)
    ends = planning.ending_positions(log, options, BOUNDS, BOUNDS)
    assert ends == {KEY: 10, OTHER: 12}
    with pytest.raises(IllegalArgument, match="No offset matched"):
        planning.starting_positions(log, options, BOUNDS, BOUNDS)


def test_a_range_that_ends_before_it_begins_is_refused() -> None:
    with pytest.raises(IllegalArgument, match="start offset 8 is greater"):
        planning.checked_ranges(_options(), {KEY: 8}, {KEY: 4}, BOUNDS, "g")


@pytest.mark.parametrize("wanted", [(1, 5), (5, 11), (0, 12)])
def test_a_range_beyond_either_end_of_the_log_is_a_loss(wanted: tuple[int, int]) -> None:
    bounds = BOUNDS[KEY]
    with pytest.raises(DataLoss):
        planning.available(_options(), KEY, wanted, bounds, "g")
    tolerant = _options(failOnDataLoss="false")
    start, end = planning.available(tolerant, KEY, wanted, bounds, "g")
    assert (start, end) == (max(wanted[0], 2), min(wanted[1], 10))


def test_a_time_gives_no_offset_behind_the_end_that_the_plan_has_read() -> None:
    class Grown(Groups):
        """A log that has grown since its bounds were read."""

        def offset_for_timestamp(self, _key: TopicPartition, _timestamp: int) -> int | None:
            return 50

    log: Any = Grown()
    options = _options(startingTimestamp="9", endingTimestamp="9")
    for find in (planning.starting_positions, planning.ending_positions):
        assert find(log, options, BOUNDS, BOUNDS) == {KEY: 10, OTHER: 12}
