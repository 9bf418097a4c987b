"""A batch read by Spark: every record once, in the connector's columns, by its rules."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import embedlog
from tests.spark.logs import FIRST_MS, add, add_transaction, filled

pytestmark = pytest.mark.slow


def _read(spark: Any, path: Path | str, **options: Any) -> Any:
    reader = spark.read.format("embedlog").option("path", str(path))
    return reader.options(**{"subscribe": "t", **options}).load()


def _places(frame: Any) -> list[tuple[str, int, int]]:
    rows = frame.select("topic", "partition", "offset").collect()
    return sorted((row.topic, row.partition, row.offset) for row in rows)


def _all(topic: str, sizes: list[int]) -> list[tuple[str, int, int]]:
    return [(topic, number, n) for number, size in enumerate(sizes) for n in range(size)]


def test_every_record_is_a_row_with_the_connectors_columns(spark: Any, tmp_path: Path) -> None:
    with filled(tmp_path / "log", {"t": [5, 3]}):
        frame = _read(spark, tmp_path / "log")
        assert frame.dtypes == [
            ("key", "binary"),
            ("value", "binary"),
            ("topic", "string"),
            ("partition", "int"),
            ("offset", "bigint"),
            ("timestamp", "timestamp"),
            ("timestampType", "int"),
        ]
        rows = sorted(frame.collect(), key=lambda row: (row.partition, row.offset))
        assert [(row.key, row.value) for row in rows[:4]] == [
            (None, b"v0"), (b"k1", b"v1"), (b"k2", b"v2"), (None, b"v3"),
        ]  # fmt: skip
        first = datetime.fromtimestamp(FIRST_MS / 1000, UTC).replace(tzinfo=None)
        assert rows[0].timestamp == first
        assert {row.timestampType for row in rows} == {0}
        assert _places(frame) == _all("t", [5, 3])


def test_headers_come_when_they_are_asked_for(spark: Any, tmp_path: Path) -> None:
    with filled(tmp_path / "log", {"t": [2]}):
        rows = _read(spark, tmp_path / "log", includeHeaders="true").orderBy("offset").collect()
    assert [[(h.key, h.value) for h in row.headers] for row in rows] == [
        [("number", b"0")],
        [("number", b"1")],
    ]


def test_a_schema_of_the_users_chooses_columns(spark: Any, tmp_path: Path) -> None:
    with filled(tmp_path / "log", {"t": [4]}):
        reader = spark.read.format("embedlog").option("subscribe", "t")
        frame = reader.schema("offset long, value binary").load(str(tmp_path / "log"))
        assert sorted(map(tuple, frame.collect())) == [(n, b"v%d" % n) for n in range(4)]
        with pytest.raises(Exception, match="no column 'colour'"):
            reader.schema("colour string").load(str(tmp_path / "log")).collect()


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_ranges_are_cut_inside_batches_of_every_codec(
    spark: Any, tmp_path: Path, codec: str
) -> None:
    with embedlog.open(tmp_path / "log", durability="os") as cluster:
        cluster.create_topic("t", 1)
        with cluster.producer(compression_type=codec, linger_ms=50) as producer:
            for n in range(100):
                producer.send("t", b"value %d" % n)
            producer.flush()
        frame = _read(
            spark,
            tmp_path / "log",
            startingOffsets='{"t":{"0":13}}',
            endingOffsets='{"t":{"0":57}}',
        )
        rows = frame.orderBy("offset").collect()
    assert [(row.offset, row.value) for row in rows] == [
        (n, b"value %d" % n) for n in range(13, 57)
    ]


def test_long_ranges_are_cut_at_batches_into_tasks(spark: Any, tmp_path: Path) -> None:
    with filled(tmp_path / "log", {"t": [0, 0]}, **{"segment.bytes": "1048576"}) as cluster:
        with cluster.producer(linger_ms=0) as producer:
            for n in range(300):
                producer.send("t", b"x" * 10_000, partition=n % 2).result()
        frame = _read(spark, tmp_path / "log", maxPartitionBytes=str(500_000))
        assert frame.rdd.getNumPartitions() >= 5
        assert _places(frame) == _all("t", [150, 150])
        assert _read(spark, tmp_path / "log").rdd.getNumPartitions() == 2
        split = _read(spark, tmp_path / "log", minPartitions="7")
        assert split.rdd.getNumPartitions() >= 6
        assert _places(split) == _all("t", [150, 150])


def test_patterns_and_assignments_choose_partitions(spark: Any, tmp_path: Path) -> None:
    topics = {"orders": [2, 1], "order-lines": [3], "other": [1], "__mine": [1]}
    with filled(tmp_path / "log", topics) as cluster, cluster.admin() as admin:
        admin.alter_group_offsets("readers", {("orders", 0): 1}).check()
        path = str(tmp_path / "log")
        reader = spark.read.format("embedlog").option("path", path)
        by_pattern = reader.option("subscribePattern", "^order").load()
        assert _places(by_pattern) == _all("order-lines", [3]) + _all("orders", [2, 1])
        reader = spark.read.format("embedlog").option("path", path)
        ours = reader.option("subscribePattern", "__").load()
        assert _places(ours) == [("__mine", 0, 0)]
        reader = spark.read.format("embedlog").option("path", path)
        chosen = reader.option("assign", json.dumps({"orders": [1], "other": [0, 7]})).load()
        assert _places(chosen) == [("orders", 1, 0), ("other", 0, 0)]


def test_timestamps_begin_and_end_a_read(spark: Any, tmp_path: Path) -> None:
    with filled(tmp_path / "log", {"t": [10]}):
        frame = _read(
            spark,
            tmp_path / "log",
            startingTimestamp=str(FIRST_MS + 3000),
            endingTimestamp=str(FIRST_MS + 6500),
        )
        assert _places(frame) == [("t", 0, n) for n in range(3, 7)]
        late = str(FIRST_MS + 1_000_000)
        with pytest.raises(Exception, match="No offset matched from request of topic-partition"):
            _read(spark, tmp_path / "log", startingTimestamp=late).collect()
        none = _read(
            spark,
            tmp_path / "log",
            startingTimestamp=late,
            startingOffsetsByTimestampStrategy="latest",
        )
        assert none.count() == 0


def test_aborted_records_do_not_show_to_read_committed(spark: Any, tmp_path: Path) -> None:
    with embedlog.open(tmp_path / "log", durability="os") as cluster:
        cluster.create_topic("t", 1)
        add_transaction(cluster, 11, [b"kept"], commits=True)
        add_transaction(cluster, 12, [b"gone", b"gone too"], commits=False)
        add_transaction(cluster, 13, [b"kept too"], commits=True)
        committed = _read(spark, tmp_path / "log", **{"kafka.isolation.level": "read_committed"})
        assert sorted(row.value for row in committed.collect()) == [b"kept", b"kept too"]
        assert _read(spark, tmp_path / "log").count() == 4


def test_what_retention_has_removed_is_told_or_left_out(spark: Any, tmp_path: Path) -> None:
    with filled(tmp_path / "log", {"t": [10]}) as cluster:
        with cluster.admin() as admin:
            admin.delete_records({("t", 0): 4}).check()
        old = {"startingOffsets": '{"t":{"0":1}}'}
        with pytest.raises(
            Exception, match=r"Could not read records in offset \[1, 4\) for topic partition t-0"
        ):
            _read(spark, tmp_path / "log", **old).collect()
        rest = _read(spark, tmp_path / "log", failOnDataLoss="false", **old)
        assert _places(rest) == [("t", 0, n) for n in range(4, 10)]


@pytest.mark.parametrize("is_rolled", [False, True])
def test_damage_fails_the_read_and_names_the_file(
    spark: Any, tmp_path: Path, is_rolled: bool
) -> None:
    with filled(tmp_path / "log", {"t": [0]}) as cluster:
        for n in range(5):
            add(cluster, "t", 0, range(n, n + 1))
        if is_rolled:
            log = cluster.broker().core.replica_manager.partition("t", 0).log
            with log.lock:
                log.roll()
            add(cluster, "t", 0, range(5, 6))
    segment = tmp_path / "log" / "t-0" / f"{0:020}.log"
    content = bytearray(segment.read_bytes())
    content[content.index(b"v1")] ^= 1
    segment.write_bytes(content)
    with pytest.raises(Exception, match=r"t-0/0{20}\.log"):
        _read(spark, tmp_path / "log").collect()


def test_scans_of_one_frame_have_rows_of_their_own(spark: Any, tmp_path: Path) -> None:
    """Spark may keep what one scan has pushed to a source of Python for the next one."""
    assert spark.conf.get("spark.sql.python.filterPushdown.enabled") == "true"
    with filled(tmp_path / "log", {"t": [10, 10]}):
        frame = _read(spark, tmp_path / "log", subscribe="t", pushdown="true")
        one = frame.where("partition = 0 and offset = 1")
        assert _places(one) == [("t", 0, 1)]
        assert frame.count() == 20
        assert _places(one.union(frame.where("offset = 2"))) == [
            ("t", 0, 1), ("t", 0, 2), ("t", 1, 2),
        ]  # fmt: skip
        by_time = frame.where(f"timestamp >= timestamp_millis({FIRST_MS + 8000}L)")
        assert by_time.count() == 4
        assert frame.where("offset <> 1 or topic like '%u%'").count() == 18
        assert one.crossJoin(frame.where("offset >= 8").select("value")).count() == 4


def test_a_group_says_where_to_begin(spark: Any, tmp_path: Path) -> None:
    with filled(tmp_path / "log", {"t": [6, 4]}) as cluster:
        with cluster.admin() as admin:
            admin.alter_group_offsets("readers", {("t", 0): 4, ("t", 1): 1}).check()
        frame = _read(
            spark,
            tmp_path / "log",
            startingOffsets="committed",
            **{"kafka.group.id": "readers"},
        )
        assert _places(frame) == [("t", 0, 4), ("t", 0, 5), ("t", 1, 1), ("t", 1, 2), ("t", 1, 3)]
        groups = spark.read.format("embedlog").option("table", "groups").load(str(tmp_path / "log"))
        found = {(r.group, r.topic, r.partition, r.offset, r.lag) for r in groups.collect()}
        assert found == {("readers", "t", 0, 4, 2), ("readers", "t", 1, 1, 3)}


def test_tables_tell_of_the_log_without_its_records(spark: Any, tmp_path: Path) -> None:
    with filled(tmp_path / "log", {"t": [5], "u": [3]}):

        def table(name: str) -> Any:
            return spark.read.format("embedlog").option("table", name).load(str(tmp_path / "log"))

        partitions = {(r.topic, r.highWatermark, r.segments) for r in table("partitions").collect()}
        assert partitions == {("t", 5, 1), ("u", 3, 1)}
        segments = {(r.topic, r.baseOffset, r.nextOffset) for r in table("segments").collect()}
        assert segments == {("t", 0, 5), ("u", 0, 3)}
        batches = table("batches").groupBy("topic").sum("records").collect()
        assert {(r[0], r[1]) for r in batches} == {("t", 5), ("u", 3)}


def test_a_scrub_finds_what_is_damaged_wherever_it_lies(spark: Any, tmp_path: Path) -> None:
    def findings(**options: str) -> list[tuple[Any, ...]]:
        reader = spark.read.format("embedlog").option("table", "findings").options(**options)
        rows = reader.load(str(tmp_path / "log")).collect()
        return sorted((row.topic or "", row.partition, Path(row.file).name) for row in rows)

    with filled(tmp_path / "log", {"t": [20, 20], "u": [5]}):
        assert findings() == [], "while the owner has the directory open"
    assert findings() == []
    segment = tmp_path / "log" / "t-1" / f"{0:020}.log"
    content = bytearray(segment.read_bytes())
    content[content.index(b"v7")] ^= 1
    segment.write_bytes(content)
    (tmp_path / "log" / "meta.properties").write_text("version=1\n")
    assert ("t", 1, f"{0:020}.log") in findings()
    assert ("", None, "meta.properties") in findings()
    assert {(topic, number) for topic, number, _ in findings(subscribe="t")} == {("t", 1)}
    assert findings(subscribe="u") == []


def test_brokers_are_read_with_the_same_options(spark: Any, tmp_path: Path) -> None:
    with filled(tmp_path / "log", {"t": [7, 5]}) as cluster:
        address = cluster.listen("127.0.0.1", 0).address
        reader = spark.read.format("embedlog").option("kafka.bootstrap.servers", address)
        frame = reader.option("subscribe", "t").load()
        assert _places(frame) == _all("t", [7, 5])
        with_headers = reader.option("subscribe", "t").option("includeHeaders", "true").load()
        same = _read(spark, tmp_path / "log", includeHeaders="true")
        assert sorted(map(str, with_headers.collect())) == sorted(map(str, same.collect()))


def test_a_topic_that_is_not_there_is_an_error(spark: Any, tmp_path: Path) -> None:
    told = pytest.raises(Exception, match="This server does not host this topic-partition")
    with filled(tmp_path / "log", {"t": [1]}), told:
        _read(spark, tmp_path / "log", subscribe="nope").collect()
