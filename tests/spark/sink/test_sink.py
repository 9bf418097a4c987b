"""The sink under Spark: DataFrames and streams become topics, each row once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from pyspark.errors import PySparkException

import embedlog
from embedlog.client.producer.partitioners import murmur2

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]


def _rows(path: str, topic: str = "t") -> list[list[Any]]:
    with embedlog.open_reader(path) as reader:
        parts = reader.snapshot((topic, number) for number in reader.partitions(topic))
        return [list(part.records()) for part in parts]


def _values(path: str, topic: str = "t") -> list[int]:
    return sorted(int(bytes(record.value)) for part in _rows(path, topic) for record in part)


def _append(frame: Any, path: str, **options: object) -> None:
    writer = frame.write.format("embedlog").option("path", path)
    for name, value in options.items():
        writer = writer.option(name, str(value))
    writer.mode("append").save()


def test_a_frame_is_appended_by_the_partitioner_of_kafkas_producer(spark, data) -> None:
    frame = spark.range(0, 5000, 1, 4).selectExpr(
        "cast(id % 100 as string) key", "cast(id as string) value"
    )
    _append(frame, data, topic="t")
    parts = _rows(data)
    assert sorted(int(bytes(r.value)) for part in parts for r in part) == list(range(5000))
    for number, part in enumerate(parts):
        assert [record.offset for record in part] == list(range(len(part)))
        for record in part:
            assert (murmur2(bytes(record.key)) & 0x7FFF_FFFF) % 3 == number


def test_every_column_of_a_record_is_written(spark, data) -> None:
    frame = spark.sql(
        "select * from values "
        "('t', 2, cast('k' as binary), cast('v' as binary), timestamp_millis(1700000000123), "
        "   array(named_struct('key', 'h', 'value', cast('x' as binary)))), "
        "('other', null, null, null, timestamp_millis(5), null) "
        "as rows(topic, partition, key, value, timestamp, headers)"
    )
    _append(frame.selectExpr("*", "'ignored' as more"), data)
    (record,) = _rows(data)[2]
    assert (bytes(record.key), bytes(record.value), record.timestamp) == (b"k", b"v", 1700000000123)
    assert [(name, bytes(value)) for name, value in record.headers] == [("h", b"x")]
    ((record,),) = _rows(data, "other")
    assert (record.key, record.value, record.timestamp, list(record.headers)) == (None, None, 5, [])


def test_a_job_with_an_application_and_a_version_is_written_once(spark, data) -> None:
    frame = spark.range(0, 100, 1, 2).selectExpr("cast(id as string) value")
    for version in (1, 1, 2, 1):
        _append(frame, data, topic="t", txnAppId="restore", txnVersion=version)
    assert _values(data) == sorted(list(range(100)) * 2)


@pytest.mark.parametrize(
    ("expression", "options", "text"),
    [
        ("value", {}, "topic option required when no 'topic' attribute is present"),
        ("id", {"topic": "t"}, "Required attribute 'value' not found"),
        ("id as value", {"topic": "t"}, "value attribute unsupported type bigint"),
        ("value", {"topic": "nope"}, "Topic nope not present in metadata"),
        ("value, cast(null as string) topic", {}, "null topic present in the data"),
        ("value, 9 as partition", {"topic": "t"}, "t has 3 partitions, and a row says partition 9"),
    ],
)
def test_what_cannot_be_written_fails_and_leaves_nothing(
    spark, data, expression, options, text
) -> None:
    frame = (
        spark.range(3)
        .selectExpr("id", "cast(id as string) value")
        .selectExpr(*(part.strip() for part in expression.split(",")))
    )
    with pytest.raises(PySparkException) as refusal:
        _append(frame, data, **options)
    assert text in str(refusal.value)
    assert _values(data) == []
    assert ".exchange" not in map(str, (each.name for each in Path(data).iterdir()))


def test_nothing_is_overwritten(spark, data) -> None:
    frame = spark.range(3).selectExpr("cast(id as string) value")
    with pytest.raises(PySparkException, match="Save mode Overwrite not allowed for Kafka"):
        writer = frame.write.format("embedlog").option("path", data).option("topic", "t")
        writer.mode("overwrite").save()


def _stream(spark: Any, source: Path, checkpoint: Path, **options: str) -> Any:
    """Run a query over files of numbers until it has read all of them."""
    frame = spark.readStream.schema("id long").option("maxFilesPerTrigger", 1).parquet(str(source))
    query = (
        frame.selectExpr("cast(id as string) key", "cast(id as string) value")
        .writeStream.format("embedlog")
        .options(topic="t", checkpointLocation=str(checkpoint), **options)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination(120)
    return query


def _put(spark: Any, source: Path, begin: int, end: int) -> None:
    spark.range(begin, end, 1, 1).write.mode("append").parquet(str(source))


def _forget_newest_commit(checkpoint: Path) -> None:
    """As after a crash between the sink's commit and Spark's note of it."""
    commits = checkpoint / "commits"
    newest = max(int(each.name) for each in commits.iterdir() if each.name.isdecimal())
    for name in (str(newest), f".{newest}.crc"):
        (commits / name).unlink(missing_ok=True)


def test_a_stream_writes_each_batch_once_also_when_it_is_replayed(spark, data, tmp_path) -> None:
    source, checkpoint = tmp_path / "source", tmp_path / "checkpoint"
    for number in range(3):
        _put(spark, source, 10 * number, 10 * number + 10)
    _stream(spark, source, checkpoint, path=data)
    assert _values(data) == list(range(30))
    _forget_newest_commit(checkpoint)
    _put(spark, source, 30, 40)
    _stream(spark, source, checkpoint, path=data)
    assert _values(data) == list(range(40))


def test_a_stream_goes_over_the_wire_once_in_transactions(spark, data, tmp_path) -> None:
    source, checkpoint = tmp_path / "source", tmp_path / "checkpoint"
    for number in range(3):
        _put(spark, source, 10 * number, 10 * number + 10)
    with embedlog.open(data) as cluster:
        options = {
            "kafka.bootstrap.servers": cluster.listen().address,
            "kafka.transactional.id": "query",
        }
        _stream(spark, source, checkpoint, **options)
        _forget_newest_commit(checkpoint)
        _put(spark, source, 30, 40)
        _stream(spark, source, checkpoint, **options)
        _stream(spark, source, tmp_path / "another", **options)
    assert _values(data) == sorted(list(range(40)) + list(range(40)))


def test_a_stream_is_adopted_by_the_owner_that_runs(spark, data, tmp_path) -> None:
    program = (
        f"import embedlog, sys\nwith embedlog.open({data!r}, background=True):\n"
        f"    print('ready', flush=True)\n    sys.stdin.read()\n"
    )
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as owner:
        assert owner.stdout is not None
        assert owner.stdin is not None
        assert owner.stdout.readline() == b"ready\n"
        _put(spark, tmp_path / "source", 0, 50)
        _stream(spark, tmp_path / "source", tmp_path / "checkpoint", path=data)
        assert _values(data) == list(range(50))
        owner.stdin.close()
    assert owner.returncode == 0


def test_rows_go_over_the_wire_where_there_is_no_path(spark, data) -> None:
    frame = spark.range(0, 300, 1, 2).selectExpr("cast(id as string) value")
    with embedlog.open(data) as cluster:
        listener = cluster.listen()
        writer = frame.write.format("embedlog").option("topic", "t")
        writer.option("kafka.bootstrap.servers", listener.address).mode("append").save()
    assert _values(data) == list(range(300))
