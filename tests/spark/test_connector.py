"""Spark's own Kafka connector on the listener and `embedlog` on the directory behave alike.

The same options give the same rows, the same number of tasks and the same refusals. A query's
checkpoint moves from one to the other and back.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from embedlog.common import TopicPartition
from embedlog.spark import errors
from tests.spark.logs import FIRST_MS, add, add_transaction, filled
from tests.support.sizes import part
from tests.support.tools import need_jars, read_from_jar

pytestmark = pytest.mark.slow

FORMATS = ("embedlog", "kafka")
KEPT = {"retention.ms": "-1"}
"""The records are from 2023: by default they would be deleted while the tests run."""
Place = tuple[str, int, int]


class Served:
    """A cluster with a listener, and the options by which either format reads it."""

    def __init__(self, cluster: Any, path: Path) -> None:
        self.cluster = cluster
        address = cluster.listen("127.0.0.1", 0).address
        # Both options are always set: `embedlog` prefers the directory, the connector ignores it.
        self.options = {
            "path": str(path),
            "kafka.bootstrap.servers": address,
            # The connector's request for offsets waits behind a parked fetch, as long as the fetch
            # does.
            "kafka.fetch.max.wait.ms": "10",
        }

    def batch(self, spark: Any, name: str, **options: str) -> Any:
        return spark.read.format(name).options(**{**self.options, **options}).load()

    def stream(self, spark: Any, name: str, **options: str) -> Any:
        return spark.readStream.format(name).options(**{**self.options, **options}).load()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    need_jars("spark-kafka")
    path = tmp_path_factory.mktemp("connector") / "log"
    counts = {"orders": [40, 25, 0], "order-lines": [7], "t": [0], "empty": [0], "old": [30]}
    with filled(path, counts, **KEPT) as cluster:
        add_transaction(cluster, 7, [b"committed 1", b"committed 2"], commits=True)
        add(cluster, "t", 0, range(3))
        add_transaction(cluster, 8, [b"aborted"], commits=False)
        add(cluster, "t", 0, range(3, 5))
        for codec in ("gzip", "snappy", "lz4", "zstd"):
            cluster.create_topic(codec, 1)
            with cluster.producer(compression_type=codec, linger_ms=50) as producer:
                for n in range(50):
                    producer.send(codec, b"value %d" % n, key=b"%d" % (n % 5))
        cluster.create_topic("stamped", 1, config={"message.timestamp.type": "LogAppendTime"})
        with cluster.producer() as producer:
            producer.send("stamped", b"v").result()
            producer.send("stamped", None, key=b"k", headers=[("h", None), ("h", b"2")]).result()
        with cluster.admin() as admin:
            admin.delete_records({("old", 0): 12}).check()
        yield Served(cluster, path)


def _all(frame: Any) -> Any:
    return frame


def _where(condition: str) -> Callable[[Any], Any]:
    return lambda frame: frame.where(condition)


def _sql(query: str) -> Callable[[Any], Any]:
    def run(frame: Any) -> Any:
        frame.createOrReplaceTempView("log")
        return frame.sparkSession.sql(query)

    return run


def _stamp(n: int) -> str:
    return str(FIRST_MS + 1000 * n)


def _each(topic: str, *positions: int | str) -> str:
    return json.dumps({topic: {str(n): int(each) for n, each in enumerate(positions)}})


ORDERS = {"subscribe": "orders"}
QUERIES: dict[str, tuple[dict[str, str], Callable[[Any], Any]]] = {
    "a topic": (ORDERS, _all),
    "several topics": ({"subscribe": "orders, order-lines,empty"}, _all),
    "an empty topic": ({"subscribe": "empty"}, _all),
    "a pattern that is found within": ({"subscribePattern": "rder.*"}, _all),
    "a pattern of no topic": ({"subscribePattern": "nothing.+"}, _all),
    "partitions": ({"assign": '{"orders":[1],"order-lines":[0]}'}, _all),
    "partitions that are not there": ({"assign": '{"orders":[1,9]}'}, _all),
    "offsets": (
        {
            **ORDERS,
            "startingOffsets": _each("orders", 13, -2, 0),
            "endingOffsets": _each("orders", 20, -1, -1),
        },
        _all,
    ),
    "a time": (
        {
            **ORDERS,
            "startingTimestamp": _stamp(10),
            "startingOffsetsByTimestampStrategy": "latest",
            "endingTimestamp": _stamp(20),
        },
        _all,
    ),
    "times": (
        {
            **ORDERS,
            "startingOffsetsByTimestamp": _each("orders", _stamp(5), _stamp(30), _stamp(0)),
            "startingOffsetsByTimestampStrategy": "latest",
            "endingOffsetsByTimestamp": _each("orders", _stamp(9), _stamp(99), _stamp(99)),
        },
        _all,
    ),
    "headers": ({"subscribePattern": "orders|stamped", "includeHeaders": "true"}, _all),
    "more tasks": ({**ORDERS, "minPartitions": "7"}, _all),
    "small tasks": (
        {
            **ORDERS,
            "maxRecordsPerPartition": "9",
            "startingOffsets": _each("orders", 1, 2, 0),
            "endingOffsets": _each("orders", 40, 25, 0),
        },
        _all,
    ),
    "small tasks and more of them": (
        {
            **ORDERS,
            "maxRecordsPerPartition": "30",
            "minPartitions": "5",
            "startingOffsets": _each("orders", 1, 2, 0),
            "endingOffsets": _each("orders", 40, 25, 0),
        },
        _all,
    ),
    "transactions, aborted ones too": ({"subscribe": "t"}, _all),
    "committed transactions": (
        {"subscribe": "t", "kafka.isolation.level": "read_committed"},
        _all,
    ),
    "what is left of a log": ({"subscribe": "old"}, _all),
    "every codec": ({"subscribePattern": "gzip|snappy|lz4|zstd"}, _all),
    "the time of the append": ({"subscribe": "stamped"}, _all),
    "a filter on offsets": (ORDERS, _where("offset >= 10 AND offset < 14 AND partition = 0")),
    "a filter on keys": (ORDERS, _where("key IS NULL OR CAST(key AS STRING) = 'k4'")),
    "a filter on times": (
        ORDERS,
        _where(f"timestamp >= timestamp_millis({_stamp(7)}) AND topic LIKE 'ord%'"),
    ),
    "a count": (ORDERS, _sql("SELECT count(*) FROM log")),
    "one column": (ORDERS, lambda frame: frame.select("value")),
    "groups": (
        ORDERS,
        _sql(
            "SELECT partition, count(*), min(offset), max(timestamp), count(key), "
            "max(length(value)) FROM log GROUP BY partition"
        ),
    ),
    "windows of time": (
        ORDERS,
        _sql("SELECT window(timestamp, '10 seconds').start s, count(*) FROM log GROUP BY s"),
    ),
    "a join with itself": (
        ORDERS,
        _sql("SELECT a.offset, b.partition FROM log a JOIN log b USING (key) WHERE a.partition=0"),
    ),
    "settings of the client": (
        {**ORDERS, "kafka.max.poll.records": "7", "groupIdPrefix": "p", "failOnDataLoss": "false"},
        _all,
    ),
}


def _rows(frame: Any) -> list[str]:
    return sorted(repr(row.asDict(recursive=True)) for row in frame.collect())


@pytest.mark.parametrize("name", part(QUERIES, 3))
def test_the_same_query_gives_the_same_rows(spark: Any, served: Served, name: str) -> None:
    options, query = QUERIES[name]
    ours, theirs = (query(served.batch(spark, each, **options)) for each in FORMATS)
    assert ours.dtypes == theirs.dtypes
    rows = _rows(ours)
    assert rows == _rows(theirs)
    is_empty = name in {"an empty topic", "a pattern of no topic"}
    assert bool(rows) != is_empty


@pytest.mark.parametrize(
    "name", ["a topic", "more tasks", "small tasks", "small tasks and more of them"]
)
def test_the_same_query_has_the_same_tasks(spark: Any, served: Served, name: str) -> None:
    ours, theirs = (served.batch(spark, each, **QUERIES[name][0]) for each in FORMATS)
    assert _tasks(ours) == _tasks(theirs)


@pytest.mark.parametrize(
    "name",
    [
        "several topics",
        "a pattern that is found within",
        "partitions that are not there",
        "offsets",
        "times",
        "headers",
        "more tasks",
        "committed transactions",
        "every codec",
        "what is left of a log",
    ],
)
def test_over_the_wire_the_same_query_gives_the_same_rows(
    spark: Any, served: Served, name: str
) -> None:
    options, query = QUERIES[name]
    theirs = query(served.batch(spark, "kafka", **options))
    ours = query(served.batch(spark, "embedlog", **options, path=""))
    assert _rows(ours) == _rows(theirs)


def _tasks(frame: Any) -> list[tuple[Place, int]]:
    """Return the first place and the row count of each task that has rows."""
    found = frame.selectExpr("spark_partition_id() AS task", "topic", "partition", "offset")
    tasks: dict[int, list[Place]] = {}
    for row in found.collect():
        tasks.setdefault(row.task, []).append((row.topic, row.partition, row.offset))
    return sorted((min(places), len(places)) for places in tasks.values())


def test_filters_give_the_same_rows(spark: Any, served: Served) -> None:
    conditions = [
        "partition = 1",
        "partition IN (0, 2) AND offset > 35",
        f"timestamp < timestamp_millis({_stamp(3)})",
        "topic = 'nothing'",
        "NOT (offset >= 3) AND key IS NOT NULL",
    ]
    for condition in conditions:
        ours, theirs = (served.batch(spark, each, **ORDERS).where(condition) for each in FORMATS)
        assert _rows(ours) == _rows(theirs), condition


WRONG_BATCHES: dict[str, dict[str, str]] = {
    "no subscription": {},
    "two subscriptions": {"subscribe": "t", "assign": '{"t":[0]}'},
    "no topic": {"subscribe": " ,"},
    "no pattern": {"subscribePattern": " "},
    "partitions that are no JSON": {"assign": "t"},
    "partitions of another form": {"assign": '{"t":0}'},
    "offsets that are no JSON": {**ORDERS, "startingOffsets": "first"},
    "a time that is none": {**ORDERS, "startingTimestamp": "soon"},
    "times of another form": {**ORDERS, "startingOffsetsByTimestamp": '{"orders":5}'},
    "a start at the latest": {**ORDERS, "startingOffsets": "latest"},
    "one start at the latest": {**ORDERS, "startingOffsets": _each("orders", 0, -1, 0)},
    "an end at the earliest": {**ORDERS, "endingOffsets": "earliest"},
    "one end at the earliest": {**ORDERS, "endingOffsets": _each("orders", 0, -2, 0)},
    "an end before the start": {
        **ORDERS,
        "startingOffsets": _each("orders", 20, 0, 0),
        "endingOffsets": _each("orders", 10, 0, 0),
    },
    "times that end before they start": {
        **ORDERS,
        "startingOffsetsByTimestamp": _each("orders", 20, 0, 0),
        "endingOffsetsByTimestamp": _each("orders", 10, 0, 0),
    },
    "other partitions at the end": {
        "subscribe": "t",
        "startingOffsets": _each("t", 0),
        "endingOffsets": _each("t", 0, 1),
    },
    "too few partitions": {**ORDERS, "startingOffsets": _each("orders", 0)},
    "a start behind the end of the log": {**ORDERS, "startingOffsets": _each("orders", 50, 0, 0)},
    "no record as young as that": {"subscribe": "old", "startingTimestamp": "1800000000000"},
    "no tasks": {**ORDERS, "minPartitions": "0"},
    "no records": {**ORDERS, "maxRecordsPerPartition": "0"},
    "a minimum over the maximum": {
        **ORDERS,
        "minOffsetsPerTrigger": "10",
        "maxOffsetsPerTrigger": "5",
    },
    "an unknown topic": {"subscribe": "nope"},
    "records that are gone": {
        "subscribe": "old",
        "startingOffsets": _each("old", 5),
        "endingOffsets": _each("old", 12),
    },
    **{
        f"kafka.{name}": {**ORDERS, f"kafka.{name}": "x"}
        for name in (
            "auto.offset.reset",
            "key.deserializer",
            "value.deserializer",
            "enable.auto.commit",
            "interceptor.classes",
            "isolation.level",
        )
    },
}


@pytest.mark.parametrize("name", part(WRONG_BATCHES, 3))
def test_what_the_connector_refuses_is_refused_in_its_words(
    spark: Any, served: Served, name: str
) -> None:
    ours, theirs = (
        _refusal(lambda each=each: served.batch(spark, each, **WRONG_BATCHES[name]).collect())
        for each in FORMATS
    )
    assert _words(_said(theirs)) in _words(ours)


@pytest.mark.parametrize(
    "options",
    [
        {**ORDERS, "endingOffsets": "latest"},
        {**ORDERS, "endingOffsetsByTimestamp": _each("orders", 1, 1, 1)},
        {**ORDERS, "minOffsetsPerTrigger": "10", "maxOffsetsPerTrigger": "5"},
        {"subscribe": "t", "subscribePattern": "t"},
    ],
    ids=["an end", "an end by time", "a minimum over the maximum", "two subscriptions"],
)
def test_what_the_connector_refuses_of_a_stream_is_refused_in_its_words(
    spark: Any, served: Served, tmp_path: Path, options: dict[str, str]
) -> None:
    ours, theirs = (
        _refusal(
            lambda each=each: _run(
                served.stream(spark, each, **options), tmp_path / each, Sink().take
            )
        )
        for each in FORMATS
    )
    assert _words(_said(theirs)) in _words(ours)


def _refusal(action: Callable[[], Any]) -> str:
    with pytest.raises(Exception) as caught:
        action()
    return str(caught.value)


def _said(text: str) -> str:
    """Return the connector's own words: without the class, the condition and the stack trace."""
    for end in ("JVM stacktrace:", "\n\tat ", " SQLSTATE: "):
        text = text.partition(end)[0]
    found = re.search(r".*(?:[Ee]xception|Error): (?P<said>.*)", text, re.DOTALL)
    said = found["said"] if found else text
    said = re.sub(r"^\[[A-Z_.]+\] |^requirement failed: |^assertion failed: ", "", said.strip())
    assert " " in said, text
    return said


def _words(text: str) -> str:
    """Return the text as one line; of a consumer group, only the prefix that is not random."""
    text = re.sub(r"(group spark-kafka-(?:relation|source))[-\w]*", r"\1", text)
    return " ".join(text.split()).casefold().rstrip(". ")


def test_losses_are_told_in_the_words_of_the_connectors_list() -> None:
    text = read_from_jar("spark-kafka", "spark-sql-kafka", "error/kafka-error-conditions.json")
    listed = json.loads(text)["KAFKA_DATA_LOSS"]
    reasons = {name: "\n".join(each["message"]) for name, each in listed["subClass"].items()}
    key = TopicPartition("t", 3)
    assert str(errors.DataLoss("why")) == "\n".join(listed["message"]) + " why"
    assert errors.could_not_read(key, 5, 9, "g").reason == (
        reasons["COULD_NOT_READ_OFFSET_RANGE"]
        .replace("<startOffset>", "5")
        .replace("<endOffset>", "9")
        .replace("<topicPartition>", "t-3")
        .replace("<groupId>", "g")
    )
    assert errors.offset_changed(key, 50, 15).reason == (
        reasons["PARTITION_OFFSET_CHANGED"]
        .replace("<topicPartition>", "t-3")
        .replace("<prevOffset>", "50")
        .replace("<newOffset>", "15")
    )
    assert errors.partitions_deleted([key]).reason == (
        reasons["PARTITIONS_DELETED"].replace("<partitions>", "Set(t-3)")
    )
    assert errors.added_late(key, 7).reason == (
        reasons["ADDED_PARTITION_DOES_NOT_START_FROM_OFFSET_ZERO"]
        .replace("<topicPartition>", "t-3")
        .replace("<startOffset>", "7")
    )


class Sink:
    """The rows of a query's batches; a repeated batch replaces itself."""

    def __init__(self) -> None:
        self.batches: dict[int, list[Place]] = {}
        self.repeated: list[int] = []

    def take(self, batch: Any, number: int) -> None:
        """The function for `foreachBatch`."""
        rows = batch.select("topic", "partition", "offset").collect()
        places = sorted((row.topic, row.partition, row.offset) for row in rows)
        if number in self.batches:
            self.repeated.append(number)
            assert self.batches[number] == places
        self.batches[number] = places

    def places(self) -> list[Place]:
        return sorted(place for places in self.batches.values() for place in places)


def _run(frame: Any, checkpoint: Path, take: Callable[[Any, int], None]) -> None:
    """Read all available records."""
    writer = frame.writeStream.foreachBatch(take).trigger(availableNow=True)
    writer.option("checkpointLocation", str(checkpoint)).start().awaitTermination()


def _expected(*topics: tuple[str, int, int]) -> list[Place]:
    return sorted((topic, n, at) for topic, n, count in topics for at in range(count))


@pytest.mark.parametrize("first", FORMATS)
@pytest.mark.parametrize("options", [{}, {"maxOffsetsPerTrigger": "7"}], ids=["all", "limited"])
def test_a_checkpoint_moves_from_one_to_the_other_and_back(
    spark: Any, tmp_path: Path, first: str, options: dict[str, str]
) -> None:
    need_jars("spark-kafka")
    sink = Sink()
    second = next(name for name in FORMATS if name != first)
    options = {"subscribe": "t", "startingOffsets": "earliest", **options}
    with filled(tmp_path / "log", {"t": [6, 4]}, **KEPT) as cluster:
        served = Served(cluster, tmp_path / "log")
        counts = [6, 4]
        for leg, name in enumerate((first, second, first, second)):
            if leg:
                for number, more in enumerate((5, 3 + leg)):
                    add(cluster, "t", number, range(counts[number], counts[number] + more))
                    counts[number] += more
            _run(served.stream(spark, name, **options), tmp_path / "checkpoint", sink.take)
            assert sink.places() == _expected(("t", 0, counts[0]), ("t", 1, counts[1])), name
    assert sink.repeated == []


@pytest.mark.parametrize("first", FORMATS)
def test_a_batch_that_was_not_committed_is_done_again_by_the_other(
    spark: Any, tmp_path: Path, first: str
) -> None:
    need_jars("spark-kafka")
    sink = Sink()
    second = next(name for name in FORMATS if name != first)
    options = {"subscribe": "t", "startingOffsets": "earliest"}
    commits = tmp_path / "checkpoint" / "commits"
    with filled(tmp_path / "log", {"t": [5]}, **KEPT) as cluster:
        served = Served(cluster, tmp_path / "log")
        _run(served.stream(spark, first, **options), tmp_path / "checkpoint", sink.take)
        add(cluster, "t", 0, range(5, 9))
        _run(served.stream(spark, first, **options), tmp_path / "checkpoint", sink.take)
        newest = max(int(path.name) for path in commits.iterdir() if path.name.isdigit())
        (commits / str(newest)).unlink()
        (commits / f".{newest}.crc").unlink(missing_ok=True)
        add(cluster, "t", 0, range(9, 12))
        _run(served.stream(spark, second, **options), tmp_path / "checkpoint", sink.take)
    assert sink.repeated == [newest]
    assert sink.places() == _expected(("t", 0, 12))


@pytest.mark.parametrize("first", FORMATS)
def test_a_checkpoint_from_the_latest_moves_too(spark: Any, tmp_path: Path, first: str) -> None:
    need_jars("spark-kafka")
    sink = Sink()
    second = next(name for name in FORMATS if name != first)
    options = {"subscribe": "t", "startingOffsets": "latest"}
    with filled(tmp_path / "log", {"t": [5]}, **KEPT) as cluster:
        served = Served(cluster, tmp_path / "log")
        _run(served.stream(spark, first, **options), tmp_path / "checkpoint", sink.take)
        for name, numbers in ((second, range(5, 8)), (first, range(8, 9))):
            add(cluster, "t", 0, numbers)
            _run(served.stream(spark, name, **options), tmp_path / "checkpoint", sink.take)
    assert sink.places() == [("t", 0, n) for n in range(5, 9)]


def test_batches_of_a_limit_are_the_same_batches(
    spark: Any, served: Served, tmp_path: Path
) -> None:
    options = {
        "subscribePattern": "order.*",
        "startingOffsets": "earliest",
        "maxOffsetsPerTrigger": "11",
    }
    batches = []
    for name in FORMATS:
        sink = Sink()
        _run(served.stream(spark, name, **options), tmp_path / name, sink.take)
        # The first batch of `embedlog` has no records: it pins where the query began.
        batches.append([places for _, places in sorted(sink.batches.items()) if places])
    assert batches[0] == batches[1]
    assert len(batches[0]) > 5


def test_counts_of_a_moved_checkpoint_go_on(spark: Any, tmp_path: Path) -> None:
    need_jars("spark-kafka")
    counted: dict[int, int] = {}

    def take(batch: Any, _number: int) -> None:
        counted.update({row.partition: row.n for row in batch.collect()})

    options = {"subscribe": "t", "startingOffsets": "earliest"}
    with filled(tmp_path / "log", {"t": [6, 4]}, **KEPT) as cluster:
        served = Served(cluster, tmp_path / "log")
        for leg, name in enumerate(("kafka", "embedlog", "kafka")):
            if leg:
                add(cluster, "t", 0, range(5 + leg, 6 + leg))
            frame = served.stream(spark, name, **options).groupBy("partition").count()
            writer = frame.withColumnRenamed("count", "n").writeStream.outputMode("update")
            writer = writer.foreachBatch(take).trigger(availableNow=True)
            writer.option("checkpointLocation", str(tmp_path / "c")).start().awaitTermination()
            assert counted == {0: 6 + leg, 1: 4}


def _advanced(spark: Any, served: Served, tmp_path: Path, change: Callable[[Any], None]) -> None:
    """Each format reads ten records of t-0 into its own checkpoint; then `change` happens."""
    for name in FORMATS:
        frame = served.stream(spark, name, subscribe="t", startingOffsets="earliest")
        _run(frame, tmp_path / name, Sink().take)
    change(served.cluster)


def _removes_what_was_not_read(cluster: Any) -> None:
    add(cluster, "t", 0, range(10, 20))
    with cluster.admin() as admin:
        admin.delete_records({("t", 0): 20}).check()


def _makes_the_topic_anew(cluster: Any) -> None:
    with cluster.admin() as admin:
        admin.delete_topics(["t"]).check()
    cluster.create_topic("t", 1, config=KEPT)
    add(cluster, "t", 0, range(4))


@pytest.mark.parametrize("change", [_removes_what_was_not_read, _makes_the_topic_anew])
def test_a_stream_that_lost_records_fails_in_the_same_words_or_goes_on_alike(
    spark: Any, tmp_path: Path, change: Callable[[Any], None]
) -> None:
    need_jars("spark-kafka")
    with filled(tmp_path / "log", {"t": [10]}, **KEPT) as cluster:
        served = Served(cluster, tmp_path / "log")
        _advanced(spark, served, tmp_path, change)
        ours, theirs = (
            _refusal(
                lambda each=each: _run(
                    served.stream(spark, each, subscribe="t"), tmp_path / each, Sink().take
                )
            )
            for each in FORMATS
        )
        assert _words(_said(theirs)) in _words(ours)
        sinks = {name: Sink() for name in FORMATS}
        tolerant = {"subscribe": "t", "failOnDataLoss": "false"}
        for name in FORMATS:
            _run(served.stream(spark, name, **tolerant), tmp_path / name, sinks[name].take)
        add(cluster, "t", 0, range(3))
        for name in FORMATS:
            _run(served.stream(spark, name, **tolerant), tmp_path / name, sinks[name].take)
    places = sinks["embedlog"].places()
    assert places == sinks["kafka"].places()
    assert len(places) >= 3


def test_both_write_the_same_records_into_the_same_partitions(spark: Any, served: Served) -> None:
    rows = spark.range(200).selectExpr(
        "CAST(id % 17 AS STRING) AS key",
        "IF(id % 5 = 0, NULL, CAST(CONCAT('value ', id) AS BINARY)) AS value",
        "array(struct('n' AS key, CAST(CAST(id AS STRING) AS BINARY) AS value)) AS headers",
    )
    columns = ("partition", "key", "value", "headers")
    written = []
    for name in FORMATS:
        topic = f"written-by-{name}"
        served.cluster.create_topic(topic, 3)
        options = {**served.options, "topic": topic, "includeHeaders": "true"}
        rows.coalesce(1).write.format(name).mode("append").options(**options).save()
        frame = served.batch(spark, "kafka", subscribe=topic, includeHeaders="true")
        # Records of one partition come in the order of their offsets.
        written.append(
            [tuple(row) for row in frame.orderBy("partition", "offset").select(*columns).collect()]
        )
    assert written[0] == written[1]
    assert len(written[0]) == 200
