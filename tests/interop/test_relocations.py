"""Kafka's Java tools move replicas between the log directories of brokers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import embedlog
from embedlog import Cluster
from tests.interop.java_tools import bootstrap, run

pytestmark = [pytest.mark.interop, pytest.mark.slow]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("relocations")


@pytest.fixture(scope="module")
def cluster(folder: Path) -> Iterator[Cluster]:
    with embedlog.open(folder / "brokers", brokers=2, log_dirs=[folder / "disk"]) as made:
        made.listen()
        yield made


@pytest.fixture
def to(cluster: Cluster) -> tuple[str, str]:
    return bootstrap(cluster)


def fill(cluster: Cluster, topic: str, count: int) -> None:
    with cluster.producer(acks="all") as producer:
        for _ in range(count):
            producer.send(topic, bytes(1000))


def plan(folder: Path, topic: str, replicas: dict[int, str]) -> tuple[str, str]:
    """Return a file with a reassignment of partition 0, {node id: path of the directory}."""
    wanted = {
        "topic": topic,
        "partition": 0,
        "replicas": list(replicas),
        "log_dirs": list(replicas.values()),
    }
    path = folder / f"{topic}.json"
    path.write_text(json.dumps({"version": 1, "partitions": [wanted]}))
    return "--reassignment-json-file", str(path)


def directories(to: tuple[str, str], topic: str) -> dict[int, list[tuple[str, bool]]]:
    """Return node id -> (directory, is it a future replica), from kafka-log-dirs."""
    listed = run("log-dirs", *to, "--describe", "--topic-list", topic)
    (found,) = [line for line in listed.splitlines() if line.startswith("{")]
    return {
        broker["broker"]: [
            (directory["logDir"], partition["isFuture"])
            for directory in broker["logDirs"]
            for partition in directory["partitions"]
        ]
        for broker in json.loads(found)["brokers"]
    }


def test_replicas_are_moved_and_verified(
    cluster: Cluster, folder: Path, to: tuple[str, str]
) -> None:
    cluster.create_topic("moved", 1, replication_factor=2)
    fill(cluster, "moved", 500)
    disk = {node_id: str(folder / "disk" / f"broker-{node_id}") for node_id in (1, 2)}
    file = plan(folder, "moved", disk)
    slow = ("--replica-alter-log-dirs-throttle", "20000")
    started = run("reassign-partitions", *to, *file, "--execute", *slow)
    assert "Successfully started partition reassignment for moved-0" in started
    for node_id, path in disk.items():
        moving = f"Successfully started moving log directory to {path} for replica moved-0"
        assert f"{moving} with broker {node_id}" in started
    assert any(is_future for places in directories(to, "moved").values() for _, is_future in places)
    verified = run("reassign-partitions", *to, *file, "--verify", "--preserve-throttles")
    assert "Reassignment of replica moved-0-1 is still in progress." in verified
    run("reassign-partitions", *to, *file, "--execute", "--additional",
        "--replica-alter-log-dirs-throttle", "100000000")  # fmt: skip
    while "is still in progress" in verified:
        verified = run("reassign-partitions", *to, *file, "--verify")
    for node_id in (1, 2):
        assert f"Reassignment of replica moved-0-{node_id} completed successfully." in verified
    assert directories(to, "moved") == {node_id: [(disk[node_id], False)] for node_id in (1, 2)}


def test_a_replica_is_moved_to_a_directory_of_another_broker(
    cluster: Cluster, folder: Path, to: tuple[str, str]
) -> None:
    cluster.create_topic("across", 1, replication_factor=1)
    fill(cluster, "across", 50)
    (former,) = cluster.partition("across", 0).replicas
    other = 3 - former
    path = str(folder / "disk" / f"broker-{other}")
    file = plan(folder, "across", {other: path})
    run("reassign-partitions", *to, *file, "--execute")
    while "is completed." not in run("reassign-partitions", *to, *file, "--verify"):
        pass
    assert directories(to, "across") == {former: [], other: [(path, False)]}
