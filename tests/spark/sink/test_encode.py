"""Vectorised partitioning and encoding, against the client's own, without a JVM."""

from __future__ import annotations

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("pyspark")

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from embedlog.client.producer.partitioners import murmur2 as one_murmur2
from embedlog.errors import UnknownTopicOrPartition
from embedlog.spark.sink.encode import encode_batch
from embedlog.spark.sink.murmur2 import murmur2, partitions_of
from embedlog.spark.sink.options import SinkOptions
from embedlog.spark.sink.rows import Spreader, TopicRows, _places, by_topic
from tests.support import sizes
from wire.records.batch import RecordBatch
from wire.records.encode.builder import build_batch

FIELDS = st.one_of(st.none(), st.binary(max_size=300))
TIMES = st.integers(0, 2**42)
RECORDS = st.lists(st.tuples(FIELDS, FIELDS, TIMES), min_size=1, max_size=200)


def _rows(records: list[tuple], headers: list | None = None) -> TopicRows:
    keys = pa.array([key for key, _, _ in records], pa.binary())
    return TopicRows(
        pa.array([value for _, value, _ in records], pa.binary()),
        None if keys.null_count == len(keys) else keys,
        np.array([time for _, _, time in records], dtype=np.int64),
        headers,
    )


def _built(records: list[tuple], headers: list | None, codec: int) -> bytes:
    keys = [key for key, _, _ in records]
    return build_batch(
        [value for _, value, _ in records],
        keys=None if keys.count(None) == len(keys) else keys,
        timestamps=[time for _, _, time in records],
        headers=headers,
        codec=codec,
    )


@pytest.mark.slow
@settings(max_examples=sizes.size(60, full=150), deadline=None)
@given(
    st.lists(st.tuples(FIELDS, FIELDS, TIMES), min_size=1, max_size=200), st.sampled_from([0, 4])
)
def test_a_batch_is_that_of_the_producer_to_the_byte(records: list[tuple], codec: int) -> None:
    assert encode_batch(_rows(records), codec=codec, level=None) == _built(records, None, codec)


@pytest.mark.slow
def test_a_slice_of_many_records_is_encoded_as_the_whole() -> None:
    records = [(b"k" * (n % 7), b"v" * (n % 700), 10**12 + n * n) for n in range(20_000)]
    part = _rows(records).slice(5, 19_990)
    assert encode_batch(part, codec=0, level=None) == _built(records[5:19_990], None, 0)


def test_records_with_headers_are_encoded_with_them() -> None:
    records = [(b"a", b"1", 5), (None, None, 9)]
    headers = [[("h", b"x"), ("n", None)], []]
    batch = encode_batch(_rows(records, headers), codec=0, level=None)
    assert batch == _built(records, headers, 0)
    found = list(RecordBatch(batch).records())
    assert [list(record.headers) for record in found] == headers


@pytest.mark.slow
@settings(max_examples=sizes.size(80, full=200), deadline=None)
@given(st.lists(st.binary(max_size=40), max_size=50), st.integers(0, 3))
def test_hashes_are_those_of_the_clients_partitioner(keys: list[bytes], skipped: int) -> None:
    column = pa.array([b"before"] * skipped + keys, pa.binary()).slice(skipped)
    starts, sizes, data = _places(column)
    expected = list(map(one_murmur2, keys))
    hashed = murmur2(data, starts, sizes)
    assert hashed.tolist() == expected
    for count in (1, 3, 7, 1000):
        chosen = [(each & 0x7FFF_FFFF) % count for each in expected]
        assert partitions_of(hashed, count).tolist() == chosen


def _batch(**columns: list) -> pa.RecordBatch:
    types = {"partition": pa.int32(), "topic": pa.string()}
    return pa.record_batch(
        {name: pa.array(found, types.get(name, pa.binary())) for name, found in columns.items()}
    )


def test_rows_without_a_key_fill_one_partition_after_the_other() -> None:
    spreader = Spreader(1_000, lambda _: 3, lambda _: 2)
    batch = _batch(value=[b"x" * 100] * 45)
    rows = TopicRows.of(batch, 0)
    chosen = spreader.partitions("t", batch, rows).tolist()
    assert chosen == [2] * 10 + [0] * 10 + [1] * 10 + [2] * 10 + [0] * 5
    assert spreader.partitions("t", batch, rows).tolist()[:6] == [0] * 5 + [1]


def test_a_partition_column_goes_before_the_key() -> None:
    spreader = Spreader(1_000, lambda _: 3, lambda _: 0)
    keys = [b"k1", b"k2", None, b"k3"]
    batch = _batch(value=[b"v"] * 4, key=keys, partition=[2, None, 1, 0])
    by_key = (one_murmur2(b"k2") & 0x7FFF_FFFF) % 3
    assert spreader.partitions("t", batch, TopicRows.of(batch, 0)).tolist() == [2, by_key, 1, 0]
    for bad in (-1, 3):
        batch = _batch(value=[b"v"], partition=[bad])
        with pytest.raises(UnknownTopicOrPartition, match=f"t has 3 partitions.*{bad}"):
            spreader.partitions("t", batch, TopicRows.of(batch, 0))


def test_rows_are_told_apart_by_their_topic_in_their_order() -> None:
    batch = _batch(value=[b"1", b"2", b"3"], topic=["b", "a", "b"])
    options = SinkOptions(path="p", servers="", topic=None)
    found = [(name, some.column("value").to_pylist()) for name, some in by_topic(batch, options)]
    assert found == [("b", [b"1", b"3"]), ("a", [b"2"])]
    one = SinkOptions(path="p", servers="", topic="t")
    assert [name for name, _ in by_topic(batch, one)] == ["t"]
    with pytest.raises(ValueError, match="null topic present in the data"):
        by_topic(_batch(value=[b"1"], topic=[None]), options)


def test_timestamps_are_milliseconds_also_before_1970_and_where_there_is_none() -> None:
    column = pa.array([1_999_999, -1, None], pa.timestamp("us", tz="UTC"))
    batch = pa.record_batch({"value": pa.array([b"a", b"b", b"c"]), "timestamp": column})
    assert TopicRows.of(batch, 77).timestamps.tolist() == [1_999, -1, 77]
