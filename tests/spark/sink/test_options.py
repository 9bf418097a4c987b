"""Options and columns of the sink, with the connector's error texts."""

from __future__ import annotations

import pytest

pytest.importorskip("pyspark")

from pyspark.errors import AnalysisException, IllegalArgumentException
from pyspark.sql.types import StructType

from embedlog.spark.sink.options import check_schema, parse
from embedlog.spark.sink.writers import BatchWriter, StreamWriter

GOOD = {"path": "/p", "topic": "t"}


def _schema(text: str) -> StructType:
    from pyspark.sql.types import _parse_datatype_string

    try:
        return _parse_datatype_string(text)
    except AssertionError:
        pytest.skip("this PySpark parses types with a session only")


BAD_OPTIONS = [
    ({}, "Kafka option bootstrap.servers is not set. Please make sure it is set and retry."),
    (
        {**GOOD, "kafka.key.serializer": "x"},
        "Kafka option 'key.serializer' is not supported as keys are serialized with "
        "ByteArraySerializer.",
    ),
    ({**GOOD, "kafka.partitioner.class": "x"}, "'partitioner.class' is not supported"),
    (
        {**GOOD, "kafka.transactional.id": "x"},
        "'transactional.id' is not supported as a write to a path is committed as a whole",
    ),
    ({**GOOD, "txnAppId": "x"}, "txnAppId='x' and txnVersion='' belong together"),
    ({**GOOD, "txnVersion": "1"}, "txnAppId='' and txnVersion='1' belong together"),
    ({**GOOD, "txnAppId": "x", "txnVersion": "-1"}, "txnVersion=-1: expected 0 or more"),
    ({**GOOD, "kafka.compression.type": "zip"}, "'zip': expected one of none, gzip"),
    ({**GOOD, "kafka.batch.size": "big"}, "kafka.batch.size='big': expected a whole number"),
    ({**GOOD, "commitTimeoutMs": "0"}, "commitTimeoutMs=0: expected 1 or more"),
]


@pytest.mark.parametrize(("options", "text"), BAD_OPTIONS)
def test_options_that_cannot_be_used_are_refused(options: dict[str, str], text: str) -> None:
    with pytest.raises(IllegalArgumentException) as refusal:
        parse(options)
    assert text in str(refusal.value)


def test_options_are_taken_in_any_case() -> None:
    found = parse(
        {"PATH": "/p", "Topic": "t", "TXNAPPID": "a", "txnversion": "7", "Kafka.Batch.Size": "100"}
        | {"kafka.compression.type": "zstd", "kafka.compression.zstd.level": "9"}
    )
    assert (found.path, found.topic, found.application, found.version) == ("/p", "t", "a", 7)
    assert (found.batch_size, found.codec, found.level) == (100, 4, 9)


def test_unknown_options_are_warned_of_with_the_nearest_name() -> None:
    with pytest.warns(UserWarning, match="txnappversion is not known.*did you mean txnVersion"):
        parse({**GOOD, "txnappversion": "1"})


def test_a_path_goes_before_servers() -> None:
    assert parse({"path": "/p", "kafka.bootstrap.servers": "h:1"}).path == "/p"
    assert parse({"kafka.bootstrap.servers": "h:1"}).servers == "h:1"


BAD_COLUMNS = [
    ("value string", {"path": "p"}, "topic option required when no 'topic' attribute is present."),
    ("key string", GOOD, "Required attribute 'value' not found"),
    (
        "value bigint",
        GOOD,
        "value attribute unsupported type bigint. value must be a(n) string or binary",
    ),
    ("value string, key int", GOOD, "key attribute unsupported type int. key must be a(n) string"),
    ("value string, topic int", GOOD, "topic must be a(n) string"),
    ("value string, partition bigint", GOOD, "partition must be a(n) int"),
    ("value string, headers map<string,binary>", GOOD, "headers must be a(n) array<struct<key"),
    ("value string, timestamp date", GOOD, "timestamp must be a(n) timestamp"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("columns", "options", "text"), BAD_COLUMNS)
def test_columns_that_cannot_be_used_are_refused(spark, columns, options, text) -> None:
    with pytest.raises(AnalysisException) as refusal:
        check_schema(_schema(columns), parse(options))
    assert text in str(refusal.value)


@pytest.mark.slow
def test_all_columns_of_the_source_can_be_written(spark) -> None:
    schema = _schema(
        "key binary, value binary, topic string, partition int, offset bigint, "
        "timestamp timestamp, timestampType int, headers array<struct<key:string,value:binary>>"
    )
    check_schema(schema, parse({"path": "p"}))


@pytest.mark.parametrize("writer", [BatchWriter, StreamWriter])
def test_nothing_is_overwritten(writer: type) -> None:
    with pytest.raises(IllegalArgumentException, match="Save mode Overwrite not allowed for Kafka"):
        writer(GOOD, StructType(), True)
