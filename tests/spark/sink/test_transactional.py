"""The sink over the wire in transactions, against embedlog and against Apache Kafka."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("pyspark")

import pyarrow as pa
from pyspark.sql.types import StringType, StructField, StructType

import embedlog
from embedlog import errors
from embedlog.spark.sink import transactional
from embedlog.spark.sink.writers import BatchWriter
from tests.spark.sink.transactional_job import ROWS
from tests.support.kafka import real_kafka

SCHEMA = StructType([StructField("key", StringType()), StructField("value", StringType())])
WITH_TOPIC = StructType([*SCHEMA, StructField("topic", StringType())])
ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(
    params=["embedlog", pytest.param("kafka", marks=[pytest.mark.interop, pytest.mark.slow])]
)
def address(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A broker with the topics `t` and `other` of three partitions."""
    if request.param == "kafka":
        with real_kafka(tmp_path, heap="384m") as listening:
            with embedlog.Admin(listening) as admin:
                admin.create_topics({"t": 3, "other": 3}).check()
            _end_transactions(listening)  # makes the broker start its coordinators
            yield listening
        return
    with embedlog.open() as cluster:
        cluster.create_topic("t", 3)
        cluster.create_topic("other", 3)
        yield cluster.listen().address


def _writer(address: str, version: int | None = None, **more: str) -> BatchWriter:
    options = {"kafka.bootstrap.servers": address, "kafka.transactional.id": "sink", "topic": "t"}
    if version is not None:
        options |= {"txnAppId": "app", "txnVersion": str(version)}
    return BatchWriter(options | more, SCHEMA, False)


def _rows(begin: int, end: int, **columns: Any) -> Iterator[pa.RecordBatch]:
    numbers = range(begin, end)
    keys = pa.array([f"k{number % 7}" for number in numbers], pa.string())
    values = pa.array([str(number) for number in numbers], pa.string())
    more = {name: pa.array([each] * len(numbers)) for name, each in columns.items()}
    yield pa.record_batch({"key": keys, "value": values, **more})


def _end_transactions(address: str) -> None:
    """Wait until readers see the commit: brokers answer a commit before they write its markers."""
    for transactional_id in ("sink", "job"):
        with embedlog.Producer(address, transactional_id=transactional_id) as producer:
            producer.init_transactions()


def _seen(address: str, *topics: str, isolation: str = "read_committed") -> list[int]:
    """All values, sorted."""
    _end_transactions(address)
    found = []
    with embedlog.Consumer(
        address, isolation_level=isolation, auto_offset_reset="earliest"
    ) as consumer:
        consumer.assign([(topic, number) for topic in topics or ("t",) for number in range(3)])
        ends = consumer.end_offsets(consumer.assignment())
        while any(consumer.position(each) < end for each, end in ends.items()):
            found += [int(record.value) for record in consumer.poll(1.0)]
    return sorted(found)


def test_a_version_is_written_once_however_it_is_cut_into_tasks(address: str) -> None:
    for cuts in ([0, 10, 30], [0, 30], [0, 1, 2, 30]):
        writer = _writer(address, 7)
        tasks = [writer.write(_rows(*each)) for each in zip(cuts, cuts[1:], strict=False)]
        writer.commit(tasks)
        assert _seen(address) == list(range(30))
    for version in (6, 8, 8):
        writer = _writer(address, version)
        writer.commit([writer.write(_rows(30, 40))])
    assert _seen(address) == list(range(40))


def test_a_version_counts_once_also_if_its_rows_go_to_another_topic(address: str) -> None:
    options = {"kafka.bootstrap.servers": address, "kafka.transactional.id": "sink"}
    for version, topics in ((0, ["t"]), (1, ["other"]), (1, ["other"]), (0, ["t"])):
        named = {**options, "txnAppId": "app", "txnVersion": str(version)}
        writer = BatchWriter(named, WITH_TOPIC, False)
        writer.commit([writer.write(_rows(0, 5, topic=topic)) for topic in topics])
    assert _seen(address, "t", "other") == sorted(list(range(5)) * 2)


def test_what_no_commit_has_taken_is_nowhere(address: str) -> None:
    writer = _writer(address, 0)
    tasks = [writer.write(_rows(0, 20))]
    writer.abort(tasks)
    assert _seen(address, isolation="read_uncommitted") == []


@pytest.mark.slow
def test_a_row_that_cannot_be_written_takes_its_batch_with_it(address: str) -> None:
    writer = _writer(address, 0, **{"kafka.max.block.ms": "1000"})
    bad = writer.write(_rows(10, 12, partition=9))
    with pytest.raises(errors.TimedOut, match="topic 't' has no partition 9, only 3"):
        writer.commit([writer.write(_rows(0, 10)), bad])
    assert _seen(address) == []
    again = _writer(address, 0)
    again.commit([again.write(_rows(0, 12))])
    assert _seen(address) == list(range(12))


def test_a_committer_that_was_taken_for_dead_is_fenced(address: str) -> None:
    with embedlog.Producer(address, transactional_id="sink") as zombie:
        zombie.init_transactions()
        zombie.begin_transaction()
        zombie.send("t", b"100", partition=0).result()
        writer = _writer(address, 0)
        writer.commit([writer.write(_rows(0, 10))])
        with pytest.raises(errors.KafkaError) as refusal:
            zombie.commit_transaction()
        assert type(refusal.value) in (errors.ProducerFenced, errors.InvalidProducerEpoch)
    assert _seen(address) == list(range(10))


def test_without_an_application_nothing_is_remembered(address: str) -> None:
    for _ in range(2):
        writer = _writer(address)
        writer.commit([writer.write(_rows(0, 5)), writer.write(_rows(5, 5))])
    assert _seen(address) == sorted(list(range(5)) * 2)
    nothing = _writer(address, 3)
    nothing.commit([nothing.write(iter([])), None])
    assert len(_seen(address)) == 10


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_committers_that_are_killed_lose_and_double_nothing(address: str) -> None:
    assert kill_often(address, kills=8, seed=random.randrange(1 << 30)) >= 4


def kill_often(address: str, *, kills: int, seed: int) -> int:
    """Kill committers at random moments; the next one continues with the version after the last
    printed.
    """
    print(f"seed {seed}")
    chance = random.Random(seed)
    version = killed = 0
    command = [sys.executable, "-m", "tests.spark.sink.transactional_job", address]
    for _ in range(kills):
        with subprocess.Popen(
            [*command, str(version)], stdout=subprocess.PIPE, text=True, cwd=ROOT
        ) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            time.sleep(chance.random() * 0.5)  # the moment is the point: nothing to wait for
            process.kill()
            said = [int(line) for line in process.stdout if line.endswith("\n")]
            killed += process.wait() < 0
        version = said[-1] + 1 if said else version
    # The last version may be committed but not printed: it is written again and must not count
    # twice.
    with subprocess.Popen(
        [*command, str(version)], stdout=subprocess.PIPE, text=True, cwd=ROOT
    ) as last:
        assert last.stdout is not None
        assert [last.stdout.readline() for _ in range(2)] == ["ready\n", f"{version}\n"]
        last.kill()
        version = [version, *(int(line) for line in last.stdout if line.endswith("\n"))][-1]
    seen = _seen(address)
    assert seen == list(range(len(seen)))
    assert len(seen) in (ROWS * (version + 1), ROWS * (version + 2))
    return killed


if __name__ == "__main__":
    with embedlog.open() as log:
        log.create_topic("t", 3)
        at = log.listen().address
        made = kill_often(at, kills=int(sys.argv[1]), seed=int(sys.argv[2]))
        print(f"{made} killed, all versions once")


def test_a_committer_fences_the_earlier_ones_before_it_asks_for_the_version(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: list[str] = []

    class Fencing:
        """A producer that only takes its transactional id."""

        def __init__(self, *_: Any) -> None:
            self.init_transactions = lambda: calls.append("fence")

        def __enter__(self) -> Fencing:
            return self

        def __exit__(self, *_: Any) -> None:
            return None

    class Asked:
        """An admin client that knows the version of the last batch."""

        def __init__(self, *_: Any) -> None:
            self.check = lambda: None
            self.values = {("t", 0): SimpleNamespace(offset=8)}

        def __enter__(self) -> Asked:
            return self

        def __exit__(self, *_: Any) -> None:
            return None

        def list_group_offsets(self, groups: list[str], **_: Any) -> dict[str, Asked]:
            calls.append("ask")
            return dict.fromkeys(groups, self)

    monkeypatch.setattr(transactional, "Producer", Fencing)
    monkeypatch.setattr(transactional, "Admin", Asked)
    options: Any = SimpleNamespace(producer={"transactional.id": "sink"})
    message = transactional.RowsMessage("app", 7, *transactional.pack(_rows(0, 5)))
    assert not transactional.commit_rows(options, [message])
    assert calls == ["fence", "ask"]
