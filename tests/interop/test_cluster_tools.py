"""Kafka's Java tools manage three brokers: topics, moves, elections, quorum, directories."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import embedlog
from embedlog import Cluster
from tests.interop.java_tools import bootstrap, run, run_until

pytestmark = [pytest.mark.interop, pytest.mark.slow]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    racks = ["a", "b", "c"]
    with embedlog.open(tmp_path_factory.mktemp("brokers"), brokers=3, racks=racks) as made:
        made.listen()
        yield made


@pytest.fixture
def to(cluster: Cluster) -> tuple[str, str]:
    return bootstrap(cluster)


def fill(cluster: Cluster, topic: str, count: int) -> None:
    with cluster.producer(acks="all") as producer:
        producer.send_batch(topic, [b"value"] * count).result()


def test_topics_are_placed_described_and_refused(cluster: Cluster, to: tuple[str, str]) -> None:
    run("topics", *to, "--create", "--topic", "placed", "--partitions", "6",
        "--replication-factor", "3", "--config", "min.insync.replicas=2")  # fmt: skip
    described = run("topics", *to, "--describe", "--topic", "placed")
    assert "PartitionCount: 6\tReplicationFactor: 3" in described
    rows = re.findall(r"Leader: (\d)\s+Replicas: (\S+)\s+Isr: (\S+)", described)
    assert sorted(leader for leader, _, _ in rows) == ["1", "1", "2", "2", "3", "3"]
    for _, replicas, isr in rows:
        assert sorted(replicas) == sorted(isr) == sorted("1,2,3")
    refused = run("topics", *to, "--create", "--topic", "wide", "--replication-factor", "4",
                  check=False)  # fmt: skip
    assert "replication factor of 4 cannot be reached because only 3 broker(s)" in refused
    assert "wide" not in cluster.topics
    node = cluster.broker(3)
    node.kill()
    behind = run("topics", *to, "--describe", "--under-replicated-partitions")
    assert len(re.findall(r"Topic: placed\s", behind)) == 6
    node.start()


def test_a_partition_is_reassigned_verified_and_led_as_preferred(
    cluster: Cluster, to: tuple[str, str], tmp_path: Path
) -> None:
    run("topics", *to, "--create", "--topic", "moved", "--replica-assignment", "1:2")
    fill(cluster, "moved", 100)
    plan = {"version": 1, "partitions": [{"topic": "moved", "partition": 0, "replicas": [3, 1]}]}
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    file = ("--reassignment-json-file", str(tmp_path / "plan.json"))
    started = run("reassign-partitions", *to, *file, "--execute", "--throttle", "10000000")
    assert "Successfully started partition reassignment for moved-0" in started
    with cluster.admin() as admin:
        while admin.list_partition_reassignments():
            pass
    verified = run("reassign-partitions", *to, *file, "--verify")
    assert "Reassignment of partition moved-0 is completed." in verified
    assert "Clearing broker-level throttles" in verified
    assert cluster.partition("moved", 0).replicas == (3, 1)
    assert cluster.partition("moved", 0).leader == 1
    assert "No partition reassignments found." in run("reassign-partitions", *to, "--list")
    election = ("leader-election", *to, "--election-type", "preferred")
    led = run(*election, "--topic", "moved", "--partition", "0")
    assert "Successfully completed leader election (PREFERRED) for partitions moved-0" in led
    assert cluster.partition("moved", 0).leader == 3
    again = run(*election, "--topic", "moved", "--partition", "0", check=False)
    assert "Valid replica already elected for partitions moved-0" in again


def test_the_quorum_and_the_directories_are_described(
    cluster: Cluster, to: tuple[str, str]
) -> None:
    status = run("metadata-quorum", *to, "describe", "--status")
    assert f"ClusterId:              {cluster.cluster_id}" in status
    assert re.search(r"LeaderId:\s+[123]\n", status)
    assert re.search(r"MaxFollowerLag:\s+0\n", status)
    replicas = run("metadata-quorum", *to, "describe", "--replication")
    assert len(re.findall(r"^[123]\s.*(?:Leader|Follower)", replicas, re.MULTILINE)) == 3
    cluster.create_topic("kept", 1, replication_factor=3)
    fill(cluster, "kept", 10)
    listed = run("log-dirs", *to, "--describe", "--topic-list", "kept")
    (found,) = [line for line in listed.splitlines() if line.startswith("{")]
    brokers = {each["broker"]: each["logDirs"] for each in json.loads(found)["brokers"]}
    assert sorted(brokers) == [1, 2, 3]
    for (directory,) in brokers.values():
        (partition,) = directory["partitions"]
        assert partition["partition"] == "kept-0"
        assert (partition["size"] > 0, partition["offsetLag"]) == (True, 0)


def test_replicas_are_verified(cluster: Cluster, to: tuple[str, str]) -> None:
    cluster.create_topic("verified", 1, replication_factor=3)
    fill(cluster, "verified", 100)
    wanted = "max lag is 0 for partition verified-0 at offset 100 among 1 partitions"
    assert run_until(wanted, "replica-verification", "--broker-list", to[1],
                     "--topics-include", "verified", "--report-interval-ms", "500")  # fmt: skip
