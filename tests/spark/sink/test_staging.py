"""Tasks and committers without Spark: rows are staged once, committed once, swept."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

pytest.importorskip("pyspark")

import pyarrow as pa
from pyspark.sql.types import BinaryType, StringType, StructField, StructType

import embedlog
from embedlog.common import TopicPartition
from embedlog.errors import TimedOut, UnknownTopicOrPartition
from embedlog.runtime import real_runtime
from embedlog.spark.sink.options import parse
from embedlog.spark.sink.task import StagedMessage, StagingTask
from embedlog.spark.sink.writers import BatchWriter, StreamWriter, _digest, _write
from embedlog.storage.staging import exchange
from embedlog.storage.staging.manifest import Manifest, StagedFile
from embedlog.storage.state_files import staged_layout

FILES = real_runtime().files
SCHEMA = StructType([StructField("key", BinaryType()), StructField("value", StringType())])


def _batches(begin: int, end: int, step: int = 10) -> Iterator[pa.RecordBatch]:
    for first in range(begin, end, step):
        numbers = range(first, min(first + step, end))
        keys = pa.array([b"k%d" % (number % 17) for number in numbers])
        yield pa.record_batch({"key": keys, "value": pa.array([f"v{n}" for n in numbers])})


def _seen(path: str) -> list[str]:
    """Every value, sorted by key; the values of a key keep their order."""
    found = []
    with embedlog.open_reader(path) as reader:
        for part in reader.snapshot(("t", number) for number in range(3)):
            last: dict[bytes, int] = {}
            for record in part.records():
                value = bytes(record.value or b"").decode()
                found.append(value)
                assert last.get(record.key, -1) < int(value[1:])
                last[record.key] = int(value[1:])
    return sorted(found, key=lambda value: int(value[1:]))


def _values(begin: int, end: int) -> list[str]:
    return [f"v{number}" for number in range(begin, end)]


def _staged(path: str) -> list[str]:
    return staged_layout.names_in(FILES, path, staged_layout.STAGED)


@pytest.mark.slow
@pytest.mark.parametrize("size", [0, 100, 5_000, 1 << 20])
def test_all_rows_are_committed_whatever_the_size_of_a_batch(data: str, size: int) -> None:
    options = {"path": data, "topic": "t", "kafka.batch.size": str(size)}
    writer = BatchWriter(options, SCHEMA, False)
    messages = [writer.write(_batches(0, 300)), writer.write(_batches(300, 500, 7))]
    assert _seen(data) == []
    writer.commit([*messages, None])
    assert _seen(data) == _values(0, 500)
    assert staged_layout.EXCHANGE not in FILES.list(data)


@pytest.mark.slow
@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_batches_are_compressed_as_asked_for(data: str, codec: str) -> None:
    writer = BatchWriter(
        {"path": data, "topic": "t", "kafka.compression.type": codec}, SCHEMA, False
    )
    writer.commit([writer.write(_batches(0, 200))])
    assert _seen(data) == _values(0, 200)
    with embedlog.open_reader(data) as reader:
        codecs = {batch.attributes & 7 for batch in reader.partition("t", 0).batches()}
    assert codecs == {["none", "gzip", "snappy", "lz4", "zstd"].index(codec)}


def test_a_job_that_is_aborted_leaves_nothing(data: str) -> None:
    writer = BatchWriter({"path": data, "topic": "t"}, SCHEMA, False)
    message = writer.write(_batches(0, 100))
    assert len(_staged(data)) == 1
    writer.abort([message, None])
    assert staged_layout.EXCHANGE not in FILES.list(data)
    assert _seen(data) == []


def test_files_of_attempts_that_lost_are_not_committed(data: str) -> None:
    writer = BatchWriter({"path": data, "topic": "t"}, SCHEMA, False)
    writer.write(_batches(0, 100))
    message = writer.write(_batches(0, 100))
    writer.commit([message])
    assert _seen(data) == _values(0, 100)
    assert staged_layout.EXCHANGE not in FILES.list(data)


def test_a_version_of_an_application_is_written_once(data: str) -> None:
    for version, begin in ((1, 0), (1, 0), (2, 100)):
        options = {"path": data, "topic": "t", "txnAppId": "app", "txnVersion": str(version)}
        writer = BatchWriter(options, SCHEMA, False)
        writer.commit([writer.write(_batches(begin, begin + 100))])
    assert _seen(data) == _values(0, 200)
    assert staged_layout.EXCHANGE not in FILES.list(data)


def test_jobs_without_a_version_are_all_written(data: str) -> None:
    for _ in range(2):
        writer = BatchWriter({"path": data, "topic": "t"}, SCHEMA, False)
        writer.commit([writer.write(_batches(0, 1))])
    with embedlog.open_reader(data) as reader:
        assert sum(reader.partition("t", n).high_watermark for n in range(3)) == 2


def _stream_message(writer: StreamWriter, version: int, begin: int) -> StagedMessage:
    job = f"{_digest('query')}-{version}-{writer.name}"
    message = _write(writer.options, job, "query", version, _batches(begin, begin + 10))
    assert isinstance(message, StagedMessage)
    return message


def test_a_batch_of_a_stream_that_is_replayed_is_committed_once(data: str) -> None:
    for version in (0, 1, 1, 0, 2):
        writer = StreamWriter({"path": data, "topic": "t"}, SCHEMA, False)
        message = _stream_message(writer, version, 10 * version)
        # Spark makes a new writer for the commit.
        StreamWriter({"path": data, "topic": "t"}, SCHEMA, False).commit([message], version)
    assert _seen(data) == _values(0, 30)


def test_a_commit_removes_what_killed_attempts_of_its_query_have_left(data: str) -> None:
    killed = StreamWriter({"path": data, "topic": "t"}, SCHEMA, False)
    for version in (0, 1, 2):
        _stream_message(killed, version, 0)
    writer = StreamWriter({"path": data, "topic": "t"}, SCHEMA, False)
    writer.commit([_stream_message(writer, 1, 0)], 1)
    assert _seen(data) == _values(0, 10)
    assert [name.split("-")[1] for name in _staged(data)] == ["2"]


def test_an_abort_leaves_alone_what_may_be_committed_yet(data: str) -> None:
    writer = StreamWriter({"path": data, "topic": "t"}, SCHEMA, False)
    message = _stream_message(writer, 0, 0)
    files = [
        StagedFile(TopicPartition(t, p), path, size=size, count=count)
        for t, p, path, size, count in message.files
    ]
    exchange.leave(FILES, data, Manifest("ab" * 16, files, application="query", version=0))
    writer.abort([message], 0)
    assert len(_staged(data)) == 1
    exchange.take(FILES, data)
    writer.abort([message], 0)
    assert len(_staged(data)) == 1
    with embedlog.open(data) as cluster:
        cluster.adopt_staged()
    assert _seen(data) == _values(0, 10)


def test_a_commit_that_nobody_takes_is_withdrawn_and_can_be_aborted(data: str) -> None:
    options = {"path": data, "topic": "t", "commitTimeoutMs": "50"}
    writer = BatchWriter(options, SCHEMA, False)
    with embedlog.open(data):
        message = writer.write(_batches(0, 10))
        with pytest.raises(TimedOut, match="this process"):
            writer.commit([message])
        writer.abort([message])
        assert _staged(data) == []
    assert _seen(data) == []


def test_a_topic_that_is_missing_fails_the_task(data: str) -> None:
    task = StagingTask(parse({"path": data, "topic": "nope"}), "job")
    with pytest.raises(UnknownTopicOrPartition, match="Topic nope not present in metadata"):
        task.write(_batches(0, 10))


def test_nothing_is_committed_for_no_rows(data: str) -> None:
    writer = BatchWriter({"path": data, "topic": "t"}, SCHEMA, False)
    writer.commit([writer.write(iter([])), writer.write(_batches(0, 0))])
    assert _seen(data) == []


def test_rows_go_over_the_wire_where_there_is_no_path(data: str) -> None:
    with embedlog.open(data) as cluster:
        listener = cluster.listen()
        options = {"kafka.bootstrap.servers": listener.address, "topic": "t"}
        writer = BatchWriter(options, SCHEMA, False)
        writer.commit([writer.write(_batches(0, 50))])
        writer.abort([])
    assert _seen(data) == _values(0, 50)
