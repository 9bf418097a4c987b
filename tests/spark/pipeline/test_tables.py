"""Tables of each format: appends, upserts, histories, replays, and interrupted runs."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from embedlog.spark.pipeline import read_table
from embedlog.spark.pipeline.batch.processor import BatchProcessor
from embedlog.spark.pipeline.commands.sample import SampleRecord, as_frame
from embedlog.spark.pipeline.errors import ReplayRefused
from embedlog.spark.pipeline.project import Project
from embedlog.spark.pipeline.running.replay import Replayer, ReplayRange
from embedlog.spark.pipeline.tables.table import CommitKey
from tests.spark.pipeline.support import START_MS, plain, project, record
from tests.support import sizes

pytestmark = pytest.mark.slow
FORMATS = ("parquet", "delta", "iceberg")


def rows(kind: str, path: Path) -> list[dict[str, Any]]:
    """The rows that the format's own reader sees."""
    found: list[dict[str, Any]]
    if kind == "parquet":
        found = read_table(path).to_arrow().to_pylist()
    elif kind == "delta":
        import pyarrow as pa
        from deltalake import DeltaTable

        found = pa.table(DeltaTable(path).to_pyarrow_dataset().to_table()).to_pylist()
    else:
        from pyiceberg.catalog import load_catalog

        settings = {"type": "sql", "uri": f"sqlite:///{path}/catalog.sqlite"}
        table = load_catalog("embedlog", **settings).load_table("pipeline.rows")
        found = table.scan().to_arrow().to_pylist()
    return found


def made(tmp_path: Path, kind: str, **sink: Any) -> Project:
    whole = {"name": "orders", "type": kind, "path": "table", **sink}
    decode = {"format": "json", "schema": "order.json", "key": {"format": "long", "column": "id"}}
    return project(tmp_path, sink=[whole], decode=decode)


class Batches:
    """Batches of one query, and the log that holds their records."""

    def __init__(self, spark: Any, project: Project) -> None:
        self.spark = spark
        self.project = project
        self.log: list[SampleRecord] = []
        self.version = 0

    def put(self, *changes: tuple[int, Any]) -> list[SampleRecord]:
        """The records of (id, amount); for amount None, a tombstone."""
        found = [
            record(
                len(self.log) + n,
                None if amount is None else {"id": number, "amount": amount},
                str(number).encode(),
            )
            for n, (number, amount) in enumerate(changes)
        ]
        self.log += found
        return found

    def run(self, *changes: tuple[int, Any], reached: Any = lambda step: None) -> None:
        self.run_records(self.put(*changes), reached)

    def run_records(self, records: list[SampleRecord], reached: Any = lambda step: None) -> None:
        frame = as_frame(self.spark, records)
        key = CommitKey("query", self.version)
        BatchProcessor(self.project, reached).run(frame, key)
        self.version += 1

    def replayer(self, **arguments: Any) -> Replayer:
        return Replayer(
            self.spark,
            arguments.pop("project", self.project),
            read=lambda spark, project, options: as_frame(spark, self.log),
            positions=lambda checkpoint: {("orders", 0): len(self.log)},
            **arguments,
        )


@pytest.mark.parametrize("kind", FORMATS)
def test_a_batch_that_was_ended_anywhere_is_in_the_table_once(
    spark: Any, tmp_path: Path, kind: str
) -> None:
    batches = Batches(spark, made(tmp_path, kind))
    batches.run((1, 1.0), (2, 2.0))
    steps: list[str] = []
    second = batches.put((3, 3.0))
    BatchProcessor(batches.project, steps.append).run(
        as_frame(spark, second), CommitKey("query", 1)
    )
    assert len(steps) >= 5
    batches.version = 2
    for number, step in enumerate(steps):
        records = batches.put((10 + number, 1.0))

        def reached(name: str, step: str = step) -> None:
            if name == step:
                raise KilledError

        with pytest.raises(KilledError):
            batches.run_records(records, reached)
        batches.run_records(records)
    expected = [(1,), (2,), (3,), *((10 + number,) for number in range(len(steps)))]
    assert plain(rows(kind, tmp_path / "table"), "id") == expected


@pytest.mark.parametrize("sequence", [None, "amount"])
def test_a_key_that_moved_to_a_new_partition_ends_with_its_newer_change(
    spark: Any, tmp_path: Path, sequence: str | None
) -> None:
    own = {} if sequence is None else {"sequence_by": sequence}
    sinks = [
        {"name": mode, "type": "parquet", "path": mode, "mode": mode, "keys": ["id"], **own}
        for mode in ("scd1", "scd2")
    ]
    batches = Batches(spark, project(tmp_path, sink=sinks))
    # Within a partition offsets decide, also against the records' times.
    late = [
        record(50, {"id": 1, "amount": 1}, at_s=20),
        record(51, {"id": 1, "amount": 1}, at_s=10),
    ]
    batches.run_records(late)
    batches.run_records([record(0, {"id": 1, "amount": 1}, partition=1, at_s=30)])
    batches.run_records([record(1, {"id": 1, "amount": 1}, partition=2, at_s=25)])
    assert plain(rows("parquet", tmp_path / "scd1"), "_partition", "_offset") == [(1, 0)]
    history = rows("parquet", tmp_path / "scd2")
    history.sort(key=lambda row: (row["_valid_from"], row["_valid_to"] or row["_valid_from"]))
    found = [(row["_partition"], row["_offset"], row["_is_current"]) for row in history]
    assert sorted(found) == [(0, 50, False), (0, 51, False), (1, 0, True), (2, 1, False)]
    assert found[-1] == (1, 0, True)
    if sequence is None:
        for row in history:
            assert row["_valid_to"] is None or row["_valid_from"] <= row["_valid_to"]


class KilledError(Exception):
    """Ends a run in the middle of a step."""


@pytest.mark.parametrize("kind", sizes.part(FORMATS, 2))
def test_a_table_of_states_has_the_last_row_of_each_key(
    spark: Any, tmp_path: Path, kind: str
) -> None:
    batches = Batches(spark, made(tmp_path, kind, mode="scd1", keys=["id"], buckets=2))
    batches.run((1, 1.0), (2, 2.0), (1, 1.5), (3, 3.0))
    batches.run((2, None), (3, 3.5), (4, 4.0), (4, None))
    expected = [(1, 1.5), (3, 3.5)]
    assert plain(rows(kind, tmp_path / "table"), "id", "amount") == expected
    batches.replayer().replay(ReplayRange(from_offsets='{"orders":{"0":1}}'))
    assert plain(rows(kind, tmp_path / "table"), "id", "amount") == expected
    batches.run((2, 2.5))
    assert plain(rows(kind, tmp_path / "table"), "id", "amount") == [(1, 1.5), (2, 2.5), (3, 3.5)]


@pytest.mark.parametrize("kind", sizes.part(FORMATS, 2))
def test_a_history_says_from_when_to_when_each_version_was_valid(
    spark: Any, tmp_path: Path, kind: str
) -> None:
    batches = Batches(spark, made(tmp_path, kind, mode="scd2", keys=["id"], buckets=2))
    batches.run((1, 1.0), (2, 2.0), (1, 1.5))
    batches.run((2, None), (1, 1.7), (2, 2.5))
    start = datetime.datetime.fromtimestamp(START_MS / 1000, datetime.UTC)

    def at(offset: int) -> datetime.datetime:
        return start + datetime.timedelta(seconds=offset)

    expected = [
        (1, 1.0, at(0), at(2), False),
        (1, 1.5, at(2), at(4), False),
        (1, 1.7, at(4), None, True),
        (2, 2.0, at(1), at(3), False),
        (2, 2.5, at(5), None, True),
    ]
    names = ("id", "amount", "_valid_from", "_valid_to", "_is_current")
    assert plain(rows(kind, tmp_path / "table"), *names) == expected
    batches.replayer().replay(ReplayRange())
    assert plain(rows(kind, tmp_path / "table"), *names) == expected


@pytest.mark.parametrize("kind", sizes.part(FORMATS, 2))
def test_a_replay_replaces_the_rows_of_its_records_and_no_others(
    spark: Any, tmp_path: Path, kind: str
) -> None:
    batches = Batches(spark, made(tmp_path, kind))
    batches.run((1, 1.0), (2, 2.0), (3, 3.0))
    batches.run((4, 4.0), (5, 5.0))
    table = tmp_path / "table"
    changed = project(
        tmp_path,
        sink=[{"name": "orders", "type": kind, "path": "table"}],
        decode={"format": "json", "schema": "order.json"},
        transform=[{"name": "t", "sql": "SELECT id, amount * 10 AS amount, _topic, _partition, "
               "_offset, _timestamp FROM input"}],
    )  # fmt: skip
    for _ in range(2):
        report = batches.replayer(project=changed).replay(
            ReplayRange(from_offsets='{"orders":{"0":1}}', to_offsets='{"orders":{"0":4}}')
        )
        assert report.written == {"orders": 3}
        assert plain(rows(kind, table), "id", "amount") == [
            (1, 1.0), (2, 20.0), (3, 30.0), (4, 40.0), (5, 5.0),
        ]  # fmt: skip
    batches.replayer(project=changed).replay(ReplayRange(keys=("1",)))
    batches.replayer(project=changed).replay(ReplayRange(from_time=str(START_MS + 4000)))
    assert [row[1] for row in plain(rows(kind, table), "id", "amount")] == [10, 20, 30, 40, 50]


def test_a_replay_never_goes_beyond_the_stream_nor_into_rows_without_coordinates(
    spark: Any, tmp_path: Path
) -> None:
    batches = Batches(spark, made(tmp_path, "parquet"))
    batches.run((1, 1.0))
    with pytest.raises(ReplayRefused, match="orders-0: the end 2 is behind the stream"):
        batches.replayer().replay(ReplayRange(to_offsets='{"orders":{"0":2}}'))
    bare = project(
        tmp_path,
        transform=[{"name": "bare", "sql": "SELECT id FROM input"}],
        sink=[{"name": "orders", "type": "parquet", "path": "bare"}],
    )
    with pytest.raises(ReplayRefused, match="no _topic"):
        batches.replayer(project=bare).replay(ReplayRange())
    with pytest.raises(ReplayRefused, match="has not finished a batch"):
        Replayer(spark, bare)


def test_a_backfill_from_an_archive_into_a_new_version(spark: Any, tmp_path: Path) -> None:
    archive = project(
        tmp_path,
        decode={"format": "none"},
        transform=[{"name": "kept", "sql": "SELECT * EXCEPT (_key), _key AS key FROM input"}],
        sink=[{"name": "archive", "type": "parquet", "path": "archive"}],
    )
    batches = Batches(spark, archive)
    batches.run((1, 1.0), (2, 2.0))
    report = batches.replayer(project=made(tmp_path, "parquet"), into=str(tmp_path / "new")).replay(
        ReplayRange(archive=str(tmp_path / "archive"))
    )
    assert report.written == {"orders": 2}
    assert plain(rows("parquet", tmp_path / "new/orders"), "id", "amount") == [(1, 1.0), (2, 2.0)]
    assert not (tmp_path / "table").exists()


@pytest.mark.parametrize("kind", sizes.part(FORMATS, 2))
def test_letters_are_redriven_once_and_no_more_often_than_allowed(
    spark: Any, tmp_path: Path, kind: str
) -> None:
    batches = Batches(spark, made(tmp_path, kind))
    good = batches.put((1, 1.0), (2, 2.0))
    bad = [
        good[0],
        good[1]._replace(value=b'{"id": 2, "amount": "two"}'),
        record(2, b"nonsense", b"3"),
    ]
    batches.run_records(bad)
    # The schema is mended: the amount may be text as well.
    mended = project(
        tmp_path,
        decode={"format": "json", "schema": "order.json", "maps": [_mend],
                "mapped_schema": "order.json"},
        sink=[{"name": "orders", "type": kind, "path": "table"}],
        dead_letters={"max_attempts": 3},
    )  # fmt: skip
    table = tmp_path / "table"
    replayer = batches.replayer(project=mended)
    assert replayer.redrive(where="error LIKE 'amount%'").written == {"orders": 1}
    assert plain(rows(kind, table), "id", "amount") == [(1, 1.0), (2, 2.0)]
    holder = table if kind == "parquet" else Path(mended.state) / "dead_letters"
    for attempt in (2, 3, 3):
        replayer.redrive(limit=10)
        letters = read_table(holder, dead_letters=True).to_arrow().to_pylist()
        assert plain(letters, "offset", "attempt") == [(2, attempt)]
    assert plain(rows(kind, table), "id", "amount") == [(1, 1.0), (2, 2.0)]


def test_a_row_that_an_output_rule_rejected_is_not_decoded_as_a_record(
    spark: Any, tmp_path: Path
) -> None:
    """Its letter has the record's coordinates, but the row's JSON as its value."""
    whole = project(
        tmp_path,
        transform=[{"name": "t", "sql": "SELECT *, id * 10 AS id10 FROM input"}],
        rule=[{"name": "small", "expect": "id10 < 20", "action": "drop", "on": "output"}],
        sink=[{"name": "o", "type": "parquet", "path": "table"}],
    )
    batches = Batches(spark, whole)
    batches.run((1, 1.0), (2, 2.0))
    before = read_table(tmp_path / "table", dead_letters=True).to_arrow().to_pylist()
    assert plain(before, "error_stage", "offset", "partition") == [("output", 1, 0)]
    without = project(tmp_path, sink=[{"name": "o", "type": "parquet", "path": "table"}])
    for each in (whole, without):
        assert batches.replayer(project=each).redrive().read == 0
    assert read_table(tmp_path / "table", dead_letters=True).to_arrow().to_pylist() == before
    assert plain(rows("parquet", tmp_path / "table"), "id") == [(1,)]


@pytest.mark.parametrize("step", ["other: staged", "orders: staged", "other: committed"])
def test_a_redrive_that_is_ended_midway_loses_no_letter(
    spark: Any, tmp_path: Path, step: str
) -> None:
    """The letters stay in the first sink's table until the other sink has the rows."""
    sinks = [
        {"name": "orders", "type": "parquet", "path": "table"},
        {"name": "other", "type": "delta", "path": "other"},
    ]
    batches = Batches(spark, project(tmp_path, sink=sinks))
    good, bad = batches.put((1, 1.0), (2, 2.0))
    batches.run_records([good, bad._replace(value=b'{"id": 2, "amount": "two"}')])
    mended = project(
        tmp_path,
        sink=sinks,
        decode={"format": "json", "schema": "order.json", "maps": [_mend],
                "mapped_schema": "order.json"},
    )  # fmt: skip

    def reached(name: str) -> None:
        if name == step:
            raise KilledError

    with pytest.raises(KilledError):
        batches.replayer(project=mended, reached=reached).redrive()
    if read_table(tmp_path / "table", dead_letters=True).row_count:
        batches.replayer(project=mended).redrive()
    for kind, name in (("parquet", "table"), ("delta", "other")):
        assert plain(rows(kind, tmp_path / name), "id", "amount") == [(1, 1.0), (2, 2.0)]
    assert read_table(tmp_path / "table", dead_letters=True).row_count == 0


def _mend(row: Any) -> Any:
    return {**row, "amount": 2.0 if row["amount"] == "two" else row["amount"]}


@pytest.mark.parametrize("kind", sizes.part(FORMATS, 2))
def test_a_partitioned_table_reads_equal_in_every_format(
    spark: Any, tmp_path: Path, kind: str
) -> None:
    whole = project(
        tmp_path,
        transform=[{"name": "t", "sql": "SELECT *, id % 2 AS parity FROM input"}],
        sink=[{"name": "o", "type": kind, "path": "table", "partition_by": ["parity"]}],
    )
    batches = Batches(spark, whole)
    batches.run((1, 1.0), (2, 2.0), (3, 3.0))
    batches.run((4, 4.0))
    assert plain(rows(kind, tmp_path / "table"), "id", "parity") == [(1, 1), (2, 0), (3, 1), (4, 0)]
