"""Spark starts a slow task again elsewhere: one attempt wins, the other leaves nothing.

Spark never does so on one host, nor in `local[*]`. So the test starts a cluster of two workers,
each with its own loopback address.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

pytest.importorskip("pyspark")

import embedlog
from embedlog.spark.pipeline.kit import table_rows
from tests.spark.conftest import need_spark
from tests.spark.pipeline.committer_process import open_table
from tests.spark.speculation_job import ROWS, TABLES
from tests.support import jvm
from tests.support.kafka import free_port

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

ROOT = Path(__file__).resolve().parents[2]
HOSTS = ("127.0.0.1", "127.0.0.2")


@contextmanager
def cluster(directory: Path) -> Iterator[str]:
    """Start a master, and a worker on each of `HOSTS`; return the master's URL. All end with the
    test.
    """
    import pyspark

    port = free_port()
    url = f"spark://{HOSTS[0]}:{port}"
    home = Path(pyspark.__file__).parent
    command = ["java", *jvm.OPTIONS, "-Xmx128m", "-cp"]
    command.append(f"{home}/jars/*")
    deploy = "org.apache.spark.deploy"
    master = [f"{deploy}.master.Master", "--host", HOSTS[0], "--port", str(port)]
    started = [[*master, "--webui-port", "0"]]
    for host in HOSTS:
        worker = [f"{deploy}.worker.Worker", "--host", host, "--webui-port", "0", "--cores", "2"]
        started.append([*worker, "--memory", "600m", "--work-dir", f"{directory}/{host}", url])
    environment = {**os.environ, "SPARK_HOME": str(home), "SPARK_SCALA_VERSION": "2.13"}
    environment["PYTHONPATH"] = os.pathsep.join(sys.path)
    with ExitStack() as processes:
        for each in started:
            log = processes.enter_context(open(directory / "cluster.log", "ab"))
            process = subprocess.Popen([*command, *each], stderr=log, env=environment)
            processes.enter_context(process)
            processes.callback(process.kill)
        yield url


def test_a_speculative_attempt_wins_and_the_slow_one_leaves_nothing(tmp_path: Path) -> None:
    need_spark()
    with embedlog.open(tmp_path / "log") as log:
        log.create_topic("t", 1)
    with cluster(tmp_path) as master:
        job = subprocess.run(
            [sys.executable, "-m", "tests.spark.speculation_job", master, str(tmp_path)],
            stdout=subprocess.PIPE,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            check=True,
        )
    races = [json.loads(line) for line in job.stdout.splitlines()]
    assert [each["sink"] for each in races] == ["topic", *TABLES]
    assert all({"attempt-0-0", "attempt-0-1"} <= {*each["attempts"]} for each in races)
    with embedlog.open_reader(tmp_path / "log") as reader:
        records = reader.partition("t", 0).records()
        _expect_each_row_once([bytes(each.key or b"").decode() for each in records])
    assert not (tmp_path / "log" / ".exchange").exists()
    for kind in TABLES:
        path = tmp_path / kind
        _expect_each_row_once([row["key"] for row in table_rows(kind, str(path))])
        live = {each.path for each in open_table(kind, str(path)).files()}
        assert {str(each) for each in path.rglob("*.parquet")} == live
        assert len(list((path / "data").iterdir())) == 1, "a stage was left"


def _expect_each_row_once(keys: list[str]) -> None:
    """The files of the slow task belong to an attempt that was not the first."""
    made = dict(map(int, key.split("-")) for key in keys)
    assert sorted(made) == list(range(2 * ROWS))
    assert len(keys) == 2 * ROWS
    assert 0 not in {made[number] for number in range(ROWS)}
