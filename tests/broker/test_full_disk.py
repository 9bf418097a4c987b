"""A producer's error when the disk refuses: the system's own words, and the error itself."""

from __future__ import annotations

import errno
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from embedlog.cluster.cluster import Cluster
from embedlog.testing import SimFiles, sim_runtime
from embedlog.testing.sim_files import SimFile
from tests.apis.ask import ask
from wire.records import build_batch
from wire.schemas.produce import PartitionProduceData, ProduceRequest, TopicProduceData

FULL = "[Errno 28] No space left on device"


def _request(cluster: Cluster, version: int) -> ProduceRequest:
    image = cluster.broker().core.controller.image.topics_by_name["t"]
    data = PartitionProduceData(index=0, records=build_batch([b"x"], timestamps=1))
    named: dict[str, Any] = {"name": "t"} if version < 13 else {"topic_id": image.topic_id}
    return ProduceRequest(
        acks=-1, timeout_ms=1000, topic_data=[TopicProduceData(partition_data=[data], **named)]
    )


def _answer(cluster: Cluster, version: int) -> Any:
    response = ask(cluster, _request(cluster, version), version)
    (topic,) = response.responses
    (partition,) = topic.partition_responses
    return partition


def _break(cluster: Cluster, number: int) -> SimFiles:
    files: SimFiles = cluster.runtime.files  # type: ignore[assignment]
    files.fail(files.calls, number, forever=True)
    return files


@pytest.mark.parametrize("version", [8, 12, 13])
@pytest.mark.parametrize(
    ("number", "text"),
    [(errno.ENOSPC, "No space left"), (errno.EFBIG, "File too large"), (errno.EIO, "Input/output")],
)
def test_a_refused_append_has_the_systems_words(version: int, number: int, text: str) -> None:
    cluster = Cluster("data", runtime=sim_runtime(), durability="os")
    cluster.create_topic("t", 1)
    transport = cluster.connect("")
    assert _answer(cluster, version).error_code == 0
    assert transport.disk_error("t", 0) is None
    _break(cluster, number)
    for _ in range(2):  # the second time an I/O error has poisoned the log
        answer = _answer(cluster, version)
        assert answer.error_code == 56
        assert f"[Errno {number}]" in answer.error_message
        assert "data/t-0/00000000000000000000.log" in answer.error_message
    cause = transport.disk_error("t", 0)
    assert isinstance(cause, OSError)
    assert cause.errno == number
    assert transport.disk_error("t", 1) is None


def test_a_failed_sync_has_the_systems_words() -> None:
    cluster = Cluster("data", runtime=sim_runtime(), durability="fsync")
    cluster.create_topic("t", 1)
    transport = cluster.connect("")
    pending = transport.send(1, _request(cluster, 13))
    assert not pending.done()
    _break(cluster, errno.EIO)
    assert cluster.runtime.scheduler.wait(pending, 10_000)
    (topic,) = pending.result().responses
    (answer,) = topic.partition_responses
    assert answer.error_code == 56
    assert "[Errno 5]" in answer.error_message
    assert "t-0/00000000000000000000.log" in answer.error_message
    assert isinstance(transport.disk_error("t", 0), OSError)


_PROGRAM = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (3 << 20, 3 << 20))
import embedlog
from tests.broker.test_full_disk import _request
from wire.records import build_batch

with embedlog.open(sys.argv[1], durability="os") as cluster:
    cluster.create_topic("t", 1)
    transport = cluster.connect("")
    request = _request(cluster, 13)
    request.topic_data[0].partition_data[0].records = build_batch([b"x" * 900_000], timestamps=1)
    for _ in range(10):
        (topic,) = transport.send(-1, request).result().responses
        (answer,) = topic.partition_responses
        if answer.error_code:
            print(answer.error_code, answer.error_message)
            print(repr(transport.disk_error("t", 0)))
            break
"""


def test_a_sync_without_a_descriptor_is_made_later(monkeypatch: pytest.MonkeyPatch) -> None:
    refusals = [errno.EMFILE] * 3
    real_sync = SimFile.sync

    def sync(file: SimFile) -> None:
        if refusals:
            raise OSError(refusals.pop(), "Too many open files")
        real_sync(file)

    with Cluster("data", runtime=sim_runtime(), durability="fsync") as cluster:
        cluster.create_topic("t", 1)
        with cluster.producer() as producer:
            monkeypatch.setattr(SimFile, "sync", sync)
            sent = producer.send("t", b"x")
            assert sent.result().offset == 0
            assert not refusals
            assert producer.send("t", b"y").result().offset == 1
        assert cluster.health() == []


@pytest.mark.slow
def test_a_real_disk_says_it_as_well(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).resolve().parents[2],
    )
    told, cause = done.stdout.splitlines()
    path = f"{tmp_path}/t-0/00000000000000000000.log"
    assert told == f"56 t-0: [Errno 27] File too large: '{path}'"
    assert cause == "OSError(27, 'File too large')"


@pytest.mark.slow
def test_64_descriptors_are_enough_for_200_partitions(tmp_path: Path) -> None:
    script = """
import resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
import embedlog
path, is_first = sys.argv[1], sys.argv[2] == "write"
with embedlog.open(path, durability="fsync") as cluster:
    if is_first:
        cluster.create_topic("big", 200)
        with cluster.producer() as producer:
            sent = [producer.send("big", b"%d" % n, partition=n) for n in range(200)]
            assert {each.result().offset for each in sent} == {0}
    with cluster.consumer() as consumer:
        consumer.assign([("big", n) for n in range(200)])
        consumer.seek_to_beginning()
        found = set()
        while len(found) < 200:
            found |= {(record.partition, record.value) for record in consumer.poll(5000)}
        assert found == {(n, b"%d" % n) for n in range(200)}
        for _ in range(200):
            if cluster.health() == []:
                break
            consumer.poll(50)  # a sync that found no descriptor is tried again
        assert cluster.health() == []
    if is_first:
        import os
        os._exit(0)  # as if it were killed: the next open recovers all of them
"""
    for way in ("write", "read"):
        subprocess.run([sys.executable, "-c", script, str(tmp_path), way], check=True, timeout=100)
