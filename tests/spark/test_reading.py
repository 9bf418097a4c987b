"""A task's read while its records are removed, without Spark's JVM."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

import embedlog
from embedlog.common import TopicPartition
from embedlog.spark.access.arrow_chunks import ArrowChunks
from embedlog.spark.access.brokers import BrokerAccess
from embedlog.spark.access.directory import DirectoryAccess, DirectorySlice
from embedlog.spark.errors import DataLoss
from embedlog.spark.options import SourceOptions
from embedlog.spark.reading.batch_reader import BatchReader
from embedlog.spark.reading.slices import read_slice
from tests.spark.logs import filled

COUNT = 400


class Interrupted:
    """A slice with a callback after its first batch."""

    def __init__(self, whole: DirectorySlice, happen: Callable[[], None]) -> None:
        self._whole = whole
        self._happen = happen
        self.range = whole.range

    def arrow_batches(self, chunks: ArrowChunks) -> Iterator[Any]:
        return chunks.of_batches(self._batches())

    def remaining(self, offset: int) -> DirectorySlice | None:
        return self._whole.remaining(offset)

    def _batches(self) -> Iterator[Any]:
        for number, batch in enumerate(self._whole.range.batches()):
            yield batch
            if number == 0:
                self._happen()


def _options(path: Path, **options: str) -> SourceOptions:
    return SourceOptions.parse({"path": str(path), "subscribe": "t", **options}, streaming=False)


def _read(part: Any, options: SourceOptions) -> list[int]:
    header = StructType([StructField("key", StringType()), StructField("value", BinaryType())])
    schema = StructType([StructField("offset", LongType()), StructField("value", BinaryType())])
    if options.include_headers:
        schema.add("headers", ArrayType(header))
    batches = read_slice(part, schema, options, "g")
    return [offset for each in batches for offset in each.column("offset").to_pylist()]


@pytest.fixture
def log(tmp_path: Path) -> Iterator[tuple[Path, DirectorySlice, Callable[[], int]]]:
    """A partition of several segments, a plan for all of it, and a function that loses the first
    half.
    """
    with filled(tmp_path, {"t": [0]}) as cluster:
        partition = cluster.broker().core.replica_manager.partition("t", 0)
        with cluster.producer() as producer:
            for number in range(COUNT):
                producer.send("t", b"%d" % number, partition=0).result()
                if number % 50 == 49:
                    with partition.log.lock:
                        partition.log.roll()
        access = DirectoryAccess(str(tmp_path), read_committed=False)
        key = TopicPartition("t", 0)
        access.bounds([key])
        planned = access.slice(key, 0, COUNT)

        def lose() -> int:
            with cluster.admin() as admin:
                admin.delete_records({("t", 0): COUNT // 2 + 7}).check()
            cluster.maintain()
            return int(partition.log.offsets.log_start_offset)

        yield tmp_path, planned, lose
        access.close()


@pytest.mark.parametrize("headers", ["false", "true"])
def test_what_was_read_before_a_loss_is_given_and_what_is_left_behind_it(
    log: Any, headers: str
) -> None:
    path, planned, lose = log
    options = _options(path, failOnDataLoss="false", includeHeaders=headers)
    found = _read(Interrupted(planned, lose), options)
    lost = COUNT // 2 + 7
    assert found == [*range(50), *range(lost, COUNT)]


def test_a_loss_that_is_not_tolerated_is_told(log: Any) -> None:
    path, planned, lose = log
    with pytest.raises(DataLoss, match=rf"offset \[50, {COUNT}\) for topic partition t-0"):
        _read(Interrupted(planned, lose), _options(path))


def test_over_the_wire_a_read_goes_on_behind_what_was_deleted(tmp_path: Path) -> None:
    with filled(tmp_path, {"t": [COUNT]}) as cluster:
        listener = cluster.listen()
        with cluster.admin() as admin:
            admin.delete_records({("t", 0): 100}).check()
        options = SourceOptions.parse(
            {
                "kafka.bootstrap.servers": listener.address,
                "subscribe": "t",
                "failOnDataLoss": "false",
            },
            streaming=False,
        )
        access = BrokerAccess(options)
        planned = access.slice(TopicPartition("t", 0), 3, COUNT)
        assert _read(planned, options) == [*range(100, COUNT)]
        access.close()


@pytest.mark.parametrize("with_headers", [False, True])
def test_a_time_that_a_timestamp_cannot_hold_is_null(tmp_path: Path, with_headers: bool) -> None:
    config = {"message.timestamp.after.max.ms": str((1 << 63) - 1)}
    with embedlog.open(tmp_path / "log") as cluster:
        cluster.create_topic("t", 1, config=config)
        with cluster.producer() as producer:
            for time_ms in (1, 1 << 62, (1 << 63) - 1, 2):
                producer.send("t", b"v", partition=0, timestamp_ms=time_ms)
    fields = [StructField("timestamp", TimestampType())]
    if with_headers:
        header = StructType([StructField("key", StringType()), StructField("value", BinaryType())])
        fields.append(StructField("headers", ArrayType(header)))
    options = _options(tmp_path / "log")
    access = DirectoryAccess(str(tmp_path / "log"), read_committed=False)
    part = access.slice(TopicPartition("t", 0), 0, 4)
    batches = read_slice(part, StructType(fields), options, "g")
    found = [value for batch in batches for value in batch.column("timestamp").to_pylist()]
    access.close()
    epoch = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
    times = [None if each is None else (each - epoch).total_seconds() for each in found]
    assert times == [0.001, None, None, 0.002]


def test_a_time_that_only_an_open_transaction_has_is_the_end_of_a_committed_read(
    tmp_path: Path,
) -> None:
    """The log has an offset for the time, but a committed read ends before it."""
    with embedlog.open(tmp_path / "log") as cluster:
        cluster.create_topic("t", 1)
        with cluster.producer() as producer:
            producer.send("t", b"v", partition=0, timestamp_ms=1_000)
        open_one = cluster.producer(config={"transactional.id": "x"})
        open_one.init_transactions()
        open_one.begin_transaction()
        for time_ms in (2_000, 3_000):
            open_one.send("t", b"v", partition=0, timestamp_ms=time_ms)
        open_one.flush()
        found = {}
        for which in ("startingTimestamp", "endingTimestamp"):
            options = _options(
                tmp_path / "log", **{which: "3000", "kafka.isolation.level": "read_committed"}
            )
            schema = StructType([StructField("offset", LongType())])
            parts = BatchReader(options, schema).partitions()
            found[which] = [(each.value.range.start, each.value.range.end) for each in parts]
        open_one.abort_transaction()
        open_one.close()
    assert found == {"startingTimestamp": [], "endingTimestamp": [(0, 1)]}
