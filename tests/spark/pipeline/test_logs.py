"""Pipelines over a log: `format("embedlog")` on its directory, and the same file over the wire."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

import embedlog
from embedlog.spark.pipeline import load, read_table
from embedlog.spark.pipeline.errors import ReplayRefused
from embedlog.spark.pipeline.project import Project
from embedlog.spark.pipeline.running.replay import Replayer, ReplayRange
from embedlog.spark.pipeline.running.runner import Runner
from tests.spark.pipeline.support import plain, project

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[3]


def produce(cluster: Any, first: int, last: int) -> None:
    """Append records first..last-1; every tenth is nonsense."""
    with cluster.producer() as producer:
        for n in range(first, last):
            value = b'{"id": %d, "amount": 1}' % n if n % 10 else b"nonsense"
            producer.send("orders", value, key=b"%d" % n, partition=n % 2)
        producer.flush()


def ids(path: Path) -> list[int]:
    return sorted(read_table(path).to_arrow()["id"].to_pylist())


def good(first: int, last: int) -> list[int]:
    return [n for n in range(first, last) if n % 10]


def test_rows_and_dead_letters_go_to_topics_in_one_write_once(spark: Any, tmp_path: Path) -> None:
    with embedlog.open(tmp_path / "log") as cluster:
        for topic in ("orders", "paid", "orders.dlq"):
            cluster.create_topic(topic, 2)
        produce(cluster, 0, 30)
    made = project(
        tmp_path,
        transform=[{"name": "paid", "sql": "SELECT id, _key FROM input"}],
        sink=[{"name": "paid", "type": "topic", "topic": "paid",
               "options": {"dead_letter_topic": "orders.dlq"}}],
    )  # fmt: skip
    Runner(spark, made).run()
    # As if the process had died before Spark noted its last batch.
    shutil.rmtree(Path(made.state, "checkpoint", "commits"))
    Runner(spark, made).run()
    with embedlog.open_reader(tmp_path / "log") as reader:

        def records(topic: str) -> list[Any]:
            parts = [reader.partition(topic, n) for n in reader.partitions(topic)]
            return [record for part in parts for record in part.records()]

        assert sorted(json.loads(bytes(r.value))["id"] for r in records("paid")) == good(0, 30)
        letters = [
            (bytes(r.value), {k: v and bytes(v) for k, v in r.headers}["embedlog.offset"])
            for r in records("orders.dlq")
        ]
        assert sorted(letters) == [(b"nonsense", b"%d" % offset) for offset in (0, 10, 5)]


def test_a_project_moves_to_the_wire_with_its_state(spark: Any, tmp_path: Path) -> None:
    """The directory, then Spark's own Kafka connector at an address, then the directory again."""
    from tests.spark.conftest import KAFKA
    from tests.support.tools import has_jars

    if not has_jars(KAFKA):
        (pytest.fail if os.environ.get("CI") else pytest.skip)("no jars of Spark's connector")
    with embedlog.open(tmp_path / "log") as cluster:
        cluster.create_topic("orders", 2)
        address = cluster.listen("127.0.0.1", 0).address
        here = project(tmp_path)
        options = {"kafka.bootstrap.servers": address}
        there = project(
            tmp_path, source={"format": "kafka", "topics": ["orders"], "options": options}
        )
        first = 0
        for number, made in enumerate((here, there, here), 1):
            produce(cluster, first, 20 * number)
            Runner(spark, made).run()
            first = 20 * number
            assert ids(tmp_path / "tables/orders") == good(0, first)
        for made in (here, there):
            report = Replayer(spark, made).replay(
                ReplayRange(
                    from_offsets='{"orders":{"0":5,"1":5}}', to_offsets='{"orders":{"0":10}}'
                )
            )
            assert report.read == 5 + 25
            assert ids(tmp_path / "tables/orders") == good(0, 60)
        letters = read_table(tmp_path / "tables/orders", dead_letters=True).to_arrow()
        assert plain(letters.to_pylist(), "offset") == [(n // 2,) for n in range(0, 60, 10)]


@pytest.mark.timeout(300)  # many jobs
def test_a_replay_ends_where_the_stream_is_whatever_came_since(spark: Any, tmp_path: Path) -> None:
    """New partitions, new records and another topic of the project belong to the next run."""
    table = tmp_path / "tables/orders"
    with embedlog.open(tmp_path / "log") as cluster:
        cluster.create_topic("orders", 2)
        cluster.create_topic("more", 1)
        produce(cluster, 0, 20)
        Runner(spark, project(tmp_path)).run()
        with cluster.admin() as admin:
            admin.create_partitions({"orders": 3}).check()
        with cluster.producer() as producer:
            for partition in (0, 2):
                producer.send("orders", b'{"id": 99}', partition=partition).result()
        made = project(tmp_path, source={"topics": ["orders", "more"], "path": "log"})
        replayer = Replayer(spark, made)
        now_ms = str(int(time.time() * 1000) + 60_000)
        for wanted, count in (
            (ReplayRange(), 20),
            (ReplayRange(from_offsets='{"orders":{"0":5}}'), 5),
            (ReplayRange(from_time="0"), 20),
            (ReplayRange(from_time=now_ms), 0),
            (ReplayRange(keys=("3",)), 1),
        ):
            assert replayer.replay(wanted).read == count, wanted
            assert ids(table) == good(0, 20)
        assert replayer.redrive().read == 2
        for offsets in ('{"orders":{"2":0}}', '{"orders":{"0":11}}', '{"more":{"0":0}}'):
            with pytest.raises(ReplayRefused, match="is behind the stream"):
                replayer.replay(ReplayRange(from_offsets=offsets))
        Runner(spark, project(tmp_path)).run()
        assert ids(table) == [*good(0, 20), 99, 99]
        with cluster.admin() as admin:
            admin.delete_topics(["orders"]).check()
        cluster.create_topic("orders", 2)
        produce(cluster, 0, 40)
        with pytest.raises(ReplayRefused, match="'orders' was deleted and made again"):
            Replayer(spark, project(tmp_path))


@pytest.mark.timeout(300)  # a busy machine may need long to start a JVM
def test_the_command_stops_gracefully_and_goes_on_where_it_stopped(tmp_path: Path) -> None:
    with embedlog.open(tmp_path / "log") as cluster:
        cluster.create_topic("orders", 2)
        produce(cluster, 0, 20)
        made = _written(tmp_path)
        command = [sys.executable, "-m", "embedlog", "pipeline", "run", "--json", str(tmp_path)]
        with subprocess.Popen(
            [*command, "--master", "local[2]"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            text=True, cwd=ROOT,
        ) as process:  # fmt: skip
            try:
                assert process.stdout is not None
                read = 0
                for line in process.stdout:
                    read += json.loads(line)["read"]
                    if read >= 20:
                        break
                # The callback of a batch comes before Spark notes the batch. If the query is
                # stopped in between, the next run repeats the batch, and no progress has it yet.
                progress_file = Path(made.state, "progress.json")
                deadline = time.monotonic() + 60
                while not progress_file.exists() and time.monotonic() < deadline:
                    time.sleep(0.05)
                process.send_signal(signal.SIGTERM)
                assert process.wait(120) == 0
            finally:
                process.kill()
    assert ids(tmp_path / "tables/orders") == good(0, 20)
    events = [
        json.loads(line) for line in Path(made.state, "events.jsonl").read_text().splitlines()
    ]
    assert events[-1]["event"] == "stopped"
    progress = json.loads(progress_file.read_text())
    assert progress["lag_records"] == 0


def _written(directory: Path) -> Project:
    project(directory)  # writes the schema
    (directory / "pipeline.toml").write_text(
        """
        pipeline = { name = "orders", state = "state" }
        source = { topics = ["orders"], path = "log" }
        decode = { format = "json", schema = "order.json" }
        sink = [{ name = "orders", type = "parquet", path = "tables/orders" }]
        trigger = { every = "100ms" }
        """
    )
    return load(directory)
