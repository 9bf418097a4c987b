"""From topics to an archive and back, and the comparison of both."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

import embedlog
from embedlog.cli import main
from embedlog.errors import ConfigError, DirectoryLocked, UnknownTopicOrPartition
from embedlog.runtime import real_runtime
from embedlog.spark.errors import DataLoss
from embedlog.spark.jobs.archive import archive
from embedlog.spark.jobs.diff import diff
from embedlog.spark.jobs.restore import restore
from embedlog.spark.jobs.topics import JobTopics, Selection
from embedlog.spark.pipeline import read_table
from embedlog.spark.pipeline.errors import ProjectError
from embedlog.spark.pipeline.tables.manifest import ManifestTable
from embedlog.spark.pipeline.tables.table import CommitKey
from embedlog.storage.state_files.archived_offsets import read_archived
from tests.spark.logs import FIRST_MS, add, add_transaction, filled

pytestmark = pytest.mark.slow


def _offsets(table: Path) -> dict[int, list[int]]:
    rows = read_table(table).to_arrow().to_pylist()
    found: dict[int, list[int]] = {}
    for row in rows:
        found.setdefault(row["partition"], []).append(row["offset"])
    return found


def _fields(path: Path, topic: str, partition: int) -> list[Any]:
    with embedlog.open_reader(path) as reader:
        return [
            (each.key, each.value, each.timestamp, tuple(each.headers))
            for each in reader.partition(topic, partition).records()
        ]


def test_the_date_is_a_day_of_utc_wherever_the_session_is(spark: Any, tmp_path: Path) -> None:
    log, table = tmp_path / "log", tmp_path / "table"
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        with embedlog.open(log) as cluster, cluster.producer() as producer:
            cluster.create_topic("t")
            for hour in (23, 24):
                producer.send("t", b"v", timestamp_ms=hour * 3_600_000)
            producer.flush()
            archive(spark, JobTopics(("t",), str(log)), table)
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
    assert read_table(table).to_arrow()["date"].to_pylist() == ["1970-01-01", "1970-01-02"]


def test_every_run_adds_what_came_since(spark: Any, tmp_path: Path) -> None:
    log, table = tmp_path / "log", tmp_path / "table"
    topics = JobTopics(("t",), str(log))
    with filled(log, {"t": [70, 0, 31]}) as cluster:
        told: list[tuple[int, int]] = []
        first = archive(
            spark, topics, table, commit_records=40, progress=lambda *done: told.append(done)
        )
        assert first.counts["records"] == 101
        assert first.counts["commits"] >= 3
        assert told[0] == (0, 101)
        assert told[-1] == (101, 101)
        assert archive(spark, topics, table).counts["commits"] == 0
        add(cluster, "t", 0, range(70, 75))
        add(cluster, "t", 1, range(2))
        assert archive(spark, topics, table).counts == {
            "records": 7, "commits": 1, "bytes": pytest.approx(5_000, rel=2),
        }  # fmt: skip
    assert _offsets(table) == {0: [*range(75)], 1: [0, 1], 2: [*range(31)]}
    names = {Path(each).parent.name for each in read_table(table).paths}
    assert names == {"date=2023-11-14"}


def test_retention_waits_for_the_archive(spark: Any, tmp_path: Path) -> None:
    log, table = tmp_path / "log", tmp_path / "table"
    waits = {"segment.bytes": "1048576", "retention.ms": "1", "embedlog.retention.archived": "true"}
    with filled(log, {"t": [10]}, **waits) as cluster:
        partition = cluster.broker().core.replica_manager.partition("t", 0)

        def start() -> int:
            # A planned read pins its records for ten minutes.
            for pin in (log / ".exchange" / "pins").glob("*"):
                pin.unlink()
            cluster.maintain()
            return int(partition.log.offsets.log_start_offset)

        assert start() == 0

        def die(step: str) -> None:
            if step == "archive: committed":
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            archive(spark, JobTopics(("t",), str(log)), table, reached=die)
        assert start() == 0, "nobody has told it yet"
        assert archive(spark, JobTopics(("t",), str(log)), table).counts["records"] == 0
        assert start() == 10
        add(cluster, "t", 0, range(10, 15))
        assert start() == 10
        assert archive(spark, JobTopics(("t",), str(log)), table).counts["records"] == 5
        assert start() == 15


def test_over_the_wire_as_from_the_directory(spark: Any, tmp_path: Path) -> None:
    with filled(tmp_path / "log", {"t": [20]}) as cluster:
        listener = cluster.listen()
        archive(spark, JobTopics(("t",), bootstrap_servers=listener.address), tmp_path / "wire")
        archive(spark, JobTopics(("t",), str(tmp_path / "log")), tmp_path / "directory")
        report = diff(spark, tmp_path / "wire", JobTopics(("t",), str(tmp_path / "log")))
    assert report.counts == {"offsets": 20, "left": 20, "right": 20, "differing": 0}
    rows = [
        sorted(read_table(tmp_path / name).to_arrow().to_pylist(), key=lambda row: row["offset"])
        for name in ("wire", "directory")
    ]
    assert rows[0] == rows[1]


@pytest.mark.parametrize("step", ["archive: staged", "table: before the commit",
                                  "table: after the commit", "archive: committed"])  # fmt: skip
@pytest.mark.parametrize("nth", [1, 2])
def test_a_run_that_dies_anywhere_loses_and_doubles_nothing(
    spark: Any, tmp_path: Path, step: str, nth: int
) -> None:
    log, table = tmp_path / "log", tmp_path / "table"
    count = 0

    def die(reached: str) -> None:
        nonlocal count
        count += reached == step
        if reached == step and count == nth:
            raise KeyboardInterrupt

    with filled(log, {"t": [50, 10]}):
        topics = JobTopics(("t",), str(log))
        with pytest.raises(KeyboardInterrupt):
            archive(spark, topics, table, commit_records=30, reached=die)
        archive(spark, topics, table, commit_records=30)
    assert _offsets(table) == {0: [*range(50)], 1: [*range(10)]}
    kept = {str(each) for each in (table / "data").rglob("*.parquet")}
    assert kept == set(read_table(table).paths), "no uncommitted file is left"


@pytest.mark.parametrize(("step", "kept"), [("archive: staged", 0), ("archive: committed", 30)])
@pytest.mark.parametrize("is_remote", [False, True])
def test_a_topic_that_is_made_anew_meanwhile_is_not_archived_as_the_old_one(
    spark: Any, tmp_path: Path, step: str, kept: int, is_remote: bool
) -> None:
    log, table = tmp_path / "log", tmp_path / "table"
    is_done = False

    def make_anew(reached: str) -> None:
        nonlocal is_done
        if reached == step and not is_done:
            is_done = True
            admin.delete_topics(["t"]).check()
            cluster.create_topic("t", 1)
            add(cluster, "t", 0, range(60))

    with filled(log, {"t": [60]}) as cluster, cluster.admin() as admin:
        local = JobTopics(("t",), str(log))
        address = cluster.listen().address
        topics = JobTopics(("t",), bootstrap_servers=address) if is_remote else local
        with pytest.raises(ProjectError, match="was made anew"):
            archive(spark, topics, table, commit_records=30, reached=make_anew)
        assert len(_offsets(table).get(0, []) if kept else []) == kept
        assert ManifestTable(str(table)).state().version == (0 if kept else -1)
        assert read_archived(real_runtime().files, str(log)) == {}


def test_topics_of_one_table_may_be_archived_by_turns(spark: Any, tmp_path: Path) -> None:
    log, table = tmp_path / "log", tmp_path / "table"
    with filled(log, {"a": [10], "b": [5], "c": [1]}) as cluster, cluster.admin() as admin:
        for name in "abc":
            archive(spark, JobTopics((name,), str(log)), table)
        admin.delete_topics(["c"]).check()
        archive(spark, JobTopics(("a",), str(log)), table)
    told = read_archived(real_runtime().files, str(log))
    assert {key.topic: offset for key, offset in told.items()} == {"a": 10, "b": 5}


def test_an_archive_has_one_isolation_level(spark: Any, tmp_path: Path) -> None:
    log, table = tmp_path / "log", tmp_path / "table"
    committed = {"kafka.isolation.level": "read_committed"}
    with filled(log, {"t": [5]}):
        archive(spark, JobTopics(("t",), str(log)), table)
        with pytest.raises(ProjectError, match="was read with read_uncommitted, and cannot go on"):
            archive(spark, JobTopics(("t",), str(log), options=committed), table)


@pytest.mark.parametrize("is_remote", [False, True])
def test_an_unknown_topic_is_told(spark: Any, tmp_path: Path, is_remote: bool) -> None:
    with filled(tmp_path / "log", {"t": [1]}) as cluster:
        address = cluster.listen().address
        place = {"bootstrap_servers": address} if is_remote else {"path": str(tmp_path / "log")}
        with pytest.raises(UnknownTopicOrPartition, match="'nope'"):
            archive(spark, JobTopics(("t", "nope"), **place), tmp_path / "table")


def test_what_cannot_be_archived_is_told(spark: Any, tmp_path: Path) -> None:
    log, table = tmp_path / "log", tmp_path / "table"
    topics = JobTopics(("t",), str(log))
    with filled(log, {"t": [30]}) as cluster, cluster.admin() as admin:
        archive(spark, topics, table)
        with pytest.raises(ConfigError, match="commit_records=0"):
            archive(spark, topics, table, commit_records=0)
        held = real_runtime().files.lock(str(table / "_archive.lock"))
        with pytest.raises(DirectoryLocked):
            archive(spark, topics, table)
        held.close()
        add(cluster, "t", 0, range(30, 50))
        admin.delete_records({("t", 0): 40}).check()
        with pytest.raises(DataLoss, match="begins at 40, and is archived up to 30"):
            archive(spark, topics, table)
        assert archive(spark, topics, table, allow_loss=True).counts["records"] == 10
        admin.delete_topics(["t"]).check()
        cluster.create_topic("t", 1)
        with pytest.raises(ProjectError, match="was made anew"):
            archive(spark, topics, table)


@pytest.mark.parametrize("how", ["alone", "owned", "wire"])
def test_a_restored_topic_is_what_it_was(spark: Any, tmp_path: Path, how: str) -> None:
    log, table, target = tmp_path / "log", tmp_path / "table", tmp_path / "target"
    with filled(log, {"t": [40, 25], "other": [3]}):
        archive(spark, JobTopics(("t", "other"), str(log)), table)
    with embedlog.open(target, durability="os", background=True) as cluster:
        place: dict[str, Any] = {"path": str(target)}
        if how == "alone":
            cluster.close()
        elif how == "wire":
            place = {"bootstrap_servers": cluster.listen().address}
        else:
            with pytest.raises(ConfigError, match="make the topic first"):
                restore(spark, table, chosen=Selection(("t",)), names={"t": "again"}, **place)
            cluster.create_topic("again", 2)
        report = restore(spark, table, chosen=Selection(("t",)), names={"t": "again"}, **place)
        assert report.counts["records"] == 65
        if how == "wire":
            with embedlog.Admin(place["bootstrap_servers"]) as admin:
                resource = embedlog.ConfigResource("topic", "again")
                assert admin.describe_configs([resource])[resource]["retention.ms"].value == "-1"
        for partition in range(2):
            assert _fields(target, "again", partition) == _fields(log, "t", partition)
        if how == "wire":
            with pytest.raises(ProjectError, match="again has 65 records already"):
                restore(spark, table, chosen=Selection(("t",)), names={"t": "again"}, **place)
        else:
            again = restore(spark, table, chosen=Selection(("t",)), names={"t": "again"}, **place)
            assert again.counts == {"records": 0, "repeated": 1}
        assert len(_fields(target, "again", 0)) == 40


def test_a_part_is_restored(spark: Any, tmp_path: Path) -> None:
    log, table, target = tmp_path / "log", tmp_path / "table", tmp_path / "target"
    with filled(log, {"t": [10]}):
        archive(spark, JobTopics(("t",), str(log)), table)
    target.mkdir()
    where = Selection(where=f"offset >= 3 AND timestamp < timestamp_millis({FIRST_MS + 7_000})")
    assert restore(spark, table, path=str(target), chosen=where).counts["records"] == 4
    with pytest.raises(ProjectError, match="t has 4 records already"):
        restore(spark, table, path=str(target))
    assert restore(spark, table, path=str(target), append=True).counts["records"] == 10
    with pytest.raises(ConfigError, match="one of path"):
        restore(spark, table)
    with filled(tmp_path / "two", {"a": [2, 2], "b": [2]}):
        archive(spark, JobTopics(("a", "b"), str(tmp_path / "two")), tmp_path / "both")
    with pytest.raises(ConfigError, match="two topics cannot become one: a as b, b as b"):
        restore(spark, tmp_path / "both", path=str(target), names={"a": "b"})
    with pytest.raises(ProjectError, match="no archive"):
        restore(spark, tmp_path / "nowhere", path=str(target))


def test_a_difference_is_found_and_named(spark: Any, tmp_path: Path) -> None:
    with filled(tmp_path / "a", {"t": [100]}), filled(tmp_path / "b", {"t": [50]}) as other:
        with other.producer() as producer:
            # Offset 50: a null and an empty value differ. Offset 60 has another header.
            for n in range(50, 100):
                key = None if n % 3 == 0 else b"k%d" % n
                value = b"x" if n == 50 else b"v%d" % n
                headers = [("number", None if n == 60 else b"%d" % n)]
                producer.send("t", value, key=key, partition=0, timestamp_ms=FIRST_MS + 1000 * n,
                              headers=headers)  # fmt: skip
        left, right = (JobTopics(("t",), str(tmp_path / name)) for name in "ab")
        report = diff(spark, left, right)
        assert report.counts["offsets"] == 100
        named = {row["offset"]: row["why"] for row in report.rows}
        assert named == {50: "differs", 60: "differs"}
        assert report.counts["differing"] == 2
        archive(spark, left, tmp_path / "table")
        assert diff(spark, tmp_path / "table", left).counts["differing"] == 0
        assert diff(spark, tmp_path / "table", right, rows_max=1).rows[0]["offset"] == 50


def test_a_difference_is_found_where_an_archive_lacks_its_beginning(
    spark: Any, tmp_path: Path
) -> None:
    log, table = JobTopics(("t",), str(tmp_path / "log")), tmp_path / "table"
    with filled(tmp_path / "log", {"t": [60, 10]}) as cluster, cluster.admin() as admin:
        admin.delete_records({("t", 0): 5}).check()
        archive(spark, log, table, commit_records=30)
    assert diff(spark, table, log).counts["differing"] == 0
    manifest = ManifestTable(str(table))
    files = manifest.files()
    manifest.commit(CommitKey("another", 0), [], files[:1])
    assert {row["why"] for row in diff(spark, table, log).rows} == {"left lacks it"}
    found = diff(spark, table, log)
    assert found.counts["differing"] == files[0].row_count
    manifest.commit(CommitKey("another", 1), [], files[1:-1])
    assert diff(spark, table, log).counts["differing"] == 65 - files[-1].row_count


def test_aborted_records_are_archived_only_if_they_are_wanted(spark: Any, tmp_path: Path) -> None:
    log = tmp_path / "log"
    with filled(log, {"t": [5]}) as cluster:
        add_transaction(cluster, 1, [b"a", b"b"], commits=True)
        add_transaction(cluster, 2, [b"c"], commits=False)
        committed = JobTopics(("t",), str(log), options={"kafka.isolation.level": "read_committed"})
        assert archive(spark, committed, tmp_path / "committed").counts["records"] == 7
        assert archive(spark, JobTopics(("t",), str(log)), tmp_path / "all").counts["records"] == 8
        assert diff(spark, tmp_path / "committed", committed).counts["differing"] == 0
        report = diff(spark, tmp_path / "committed", JobTopics(("t",), str(log)))
        assert [row["why"] for row in report.rows] == ["left lacks it"]
        assert main(["pipeline", "diff", str(tmp_path / "committed"), "--path", str(log),
                     "--topic", "t", "--read-committed"]) == 0  # fmt: skip
