"""A topic with another number of partitions: Kafka's partition for each key, in order, once."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

import embedlog
from embedlog.cli import main
from embedlog.client.producer.partitioners import murmur2
from embedlog.errors import ConfigError, InvalidPartitions, UnknownTopicOrPartition
from embedlog.spark.jobs.repartition import repartition
from embedlog.spark.jobs.targets import ensure_topic

COUNT = 600


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Records of 37 keys, and some without, over three partitions."""
    with embedlog.open(tmp_path / "log", durability="os") as cluster:
        cluster.create_topic("old", 3)
        with cluster.producer(linger_ms=5) as producer:
            for number in range(COUNT):
                key = None if number % 11 == 0 else b"k%d" % (number % 37)
                producer.send(
                    "old",
                    json.dumps({"n": number, "user": number % 5}).encode(),
                    key=key,
                    partition=number % 3 if key is None else _partition(key, 3),
                    timestamp_ms=1_000 + number,
                    headers=[("n", b"%d" % number)],
                )
            producer.flush()
    return tmp_path / "log"


def _partition(key: bytes, count: int) -> int:
    return (murmur2(key) & 0x7FFF_FFFF) % count


def _records(path: Path, topic: str) -> list[tuple[int, Any]]:
    with embedlog.open_reader(path) as reader:
        return [
            (number, record)
            for number in reader.partitions(topic)
            for record in reader.partition(topic, number).records()
        ]


def _facts(record: Any) -> tuple[Any, ...]:
    return record.key, bytes(record.value), record.timestamp, list(record.headers)


@pytest.mark.slow
def test_every_record_is_there_once_where_its_key_belongs_and_in_order(
    spark: Any, log: Path
) -> None:
    report = repartition(spark, str(log), "old", "new", 7, options={"minPartitions": "9"})
    assert report.counts["records"] == COUNT
    assert report.counts["made"] is True
    before, after = _records(log, "old"), _records(log, "new")
    assert sorted(map(str, (_facts(r) for _, r in before))) == sorted(
        map(str, (_facts(r) for _, r in after))
    )
    order: dict[Any, list[int]] = {}
    for partition, record in after:
        number = json.loads(bytes(record.value))["n"]
        if record.key is not None:
            assert partition == _partition(bytes(record.key), 7)
            order.setdefault(bytes(record.key), []).append(number)
        else:
            assert partition == number % 3
    assert len(order) == 37
    assert all(numbers == sorted(numbers) for numbers in order.values())
    again = repartition(spark, str(log), "old", "new", 7)
    assert again.counts["done_already"] is True
    assert len(_records(log, "new")) == COUNT


@pytest.mark.slow
def test_a_new_key_is_an_expression(
    spark: Any, log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    verb = ["pipeline", "repartition", str(log), "old", "by-user", "4", "--json"]
    assert main([*verb, "--key", "get_json_object(cast(value as string), '$.user')"]) == 0
    assert json.loads(capsys.readouterr().out)["counts"]["records"] == COUNT
    for partition, record in _records(log, "by-user"):
        user = json.loads(bytes(record.value))["user"]
        assert record.key == b"%d" % user
        assert partition == _partition(bytes(record.key), 4)


def test_what_would_lose_the_order_or_is_not_there_is_refused(log: Path) -> None:
    none: Any = None
    with pytest.raises(ConfigError, match="both 'old'"):
        repartition(none, str(log), "old", "old", 4)
    with pytest.raises(ConfigError, match="partitions=0"):
        repartition(none, str(log), "old", "new", 0)
    with pytest.raises(UnknownTopicOrPartition, match="'nope'"):
        repartition(none, str(log), "nope", "new", 4)
    with embedlog.open(log) as cluster:
        cluster.create_topic("three", 3)
        with pytest.raises(ConfigError, match="open elsewhere"):
            repartition(none, str(log), "old", "new", 4)
    with pytest.raises(InvalidPartitions, match="has 3 partitions, not 4"):
        repartition(none, str(log), "old", "three", 4)


_PROGRAM = """
import sys
from embedlog.spark.jobs.repartition import repartition
from embedlog.spark.jobs.targets import ensure_topic
from embedlog.spark.pipeline.running.spark_session import open_session
spark = open_session("killed", master="local[2]", **{"spark.driver.bindAddress": "127.0.0.1"})
spark.range(1).count()
print("ready", flush=True)
repartition(spark, sys.argv[1], "old", "new", 7)
print("done", flush=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize("delay_s", [0.7, 3.0, 5.0])
def test_a_job_that_is_killed_is_run_again_and_writes_once(
    spark: Any, log: Path, delay_s: float
) -> None:
    """Kill the job and all of its processes between its start and its answer."""
    child = subprocess.Popen(
        [sys.executable, "-c", _PROGRAM, str(log)],
        stdout=subprocess.PIPE,
        start_new_session=True,
        cwd=Path(__file__).resolve().parents[3],
    )
    assert child.stdout is not None
    assert child.stdout.readline() == b"ready\n"
    with suppress(subprocess.TimeoutExpired):
        child.wait(delay_s)
    with suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.communicate()
    repartition(spark, str(log), "old", "new", 7)
    found = [json.loads(bytes(record.value))["n"] for _, record in _records(log, "new")]
    assert sorted(found) == list(range(COUNT))


def test_a_topic_that_was_made_in_part_is_made_whole(log: Path) -> None:
    """Leave a topic as a process does that is killed between the directories of two partitions."""
    with embedlog.open(log) as cluster:
        cluster.create_topic("new", 7)
    for number in range(2, 7):
        shutil.rmtree(log / f"new-{number}")
    assert ensure_topic(str(log), "new", 7, config={}) is False
    with embedlog.open_reader(log) as reader:
        assert reader.partitions("new") == list(range(7))
    with pytest.raises(InvalidPartitions, match="has 7 partitions, not 8"):
        ensure_topic(str(log), "new", 8, config={})
    assert ensure_topic(str(log), "other", 2, config={}) is True
