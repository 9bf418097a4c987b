"""Polled columns as Arrow batches: equal to the records, and in place."""

from __future__ import annotations

from typing import Any

import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import embedlog

_FIELD = st.none() | st.binary(max_size=40)


def polled(cluster: embedlog.Cluster, **settings: Any) -> Any:
    with cluster.consumer(**settings) as consumer:
        consumer.assign([("t", 0)])
        consumer.seek_to_beginning()
        return consumer.poll_columns(1_000)


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(
    records=st.lists(st.tuples(_FIELD, _FIELD, st.integers(0, 2**40)), min_size=1, max_size=30),
    codec=st.sampled_from(["none", "gzip"]),
)
def test_an_arrow_batch_holds_the_records(records: Any, codec: str) -> None:
    keys, values, stamps = zip(*records, strict=True)
    with embedlog.open(log_retention_ms=-1) as cluster:
        with cluster.producer(compression_type=codec) as producer:
            for key, value, stamp in records:
                producer.send("t", value, key, timestamp_ms=stamp)
        for copy in (False, True):
            batches = [each.to_arrow(copy=copy) for each in polled(cluster)]
            for batch in batches:
                batch.validate(full=True)
            table = pyarrow.Table.from_batches(batches)
            assert table["offset"].to_pylist() == list(range(len(records)))
            assert table["timestamp"].cast(pyarrow.int64()).to_pylist() == list(stamps)
            assert tuple(table["key"].to_pylist()) == keys
            assert tuple(table["value"].to_pylist()) == values


def test_long_values_stay_where_they_are() -> None:
    with embedlog.open() as cluster:
        with cluster.producer() as producer:
            producer.send_batch("t", [b"%030d" % number for number in range(100)]).result()
        (columns,) = polled(cluster)
        batch = columns.to_arrow()
        data = batch["value"].buffers()[-1]
        assert data.size == len(columns.buffer)
        assert bytes(data) == bytes(columns.buffer)
        source = pyarrow.py_buffer(columns.buffer)
        assert data.address == source.address, "nothing was copied"
        assert batch["value"].type == pyarrow.binary_view()
        assert columns.to_arrow(copy=True)["value"].type == pyarrow.binary()


def test_a_batch_begun_in_its_middle_begins_there_in_arrow_too() -> None:
    with embedlog.open() as cluster:
        with cluster.producer() as producer:
            producer.send_batch("t", [b"a", b"b", b"c"]).result()
        with cluster.consumer() as consumer:
            consumer.assign([("t", 0)])
            consumer.seek(("t", 0), 1)
            (columns,) = consumer.poll_columns(1_000)
            assert columns.to_arrow()["value"].to_pylist() == [b"b", b"c"]
            assert columns.to_arrow()["offset"].to_pylist() == [1, 2]
