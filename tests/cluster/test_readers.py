"""Other processes read the directory of one of several brokers, and may write little to it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import embedlog
from embedlog import errors
from embedlog.cluster.cluster import Cluster
from embedlog.common import TopicPartition
from embedlog.errors import ConfigError, TimedOut
from embedlog.reader.reader import LogDirectoryReader
from embedlog.runtime import real_runtime
from embedlog.spark.committer import commit
from embedlog.storage.staging.manifest import Manifest, Replacement
from embedlog.storage.staging.writer import StagedWriter
from embedlog.testing import SimRuntime
from tests.cluster.conftest import leader_of, until
from tests.support.commits import expect_commits
from wire.records import build_batch

TOPIC = "events"


@pytest.fixture(params=["os", "fsync"])
def cluster(request: pytest.FixtureRequest, runtime: SimRuntime) -> Iterator[Cluster]:
    with Cluster(
        "data", brokers=3, durability=request.param, runtime=runtime, is_embedded=True
    ) as made:
        yield made


def values(runtime: SimRuntime, node_id: int) -> list[bytes | None]:
    """Return the values that another process reads in a broker's directory."""
    reader = LogDirectoryReader(f"data/broker-{node_id}", runtime=runtime)
    return [record.value for record in reader.partition(TOPIC, 0).records()]


def test_records_above_the_high_watermark_are_not_read(
    cluster: Cluster, runtime: SimRuntime
) -> None:
    """A record above the high watermark may be truncated: a leader from the in-sync set may lack
    it.
    """
    cluster.create_topic(TOPIC, 1, replication_factor=3)
    with cluster.producer(acks="all") as producer:
        producer.send(TOPIC, b"all have it").result()
    partition = cluster.partition(TOPIC, 0)
    leader = leader_of(cluster, TOPIC)
    followers = [each for each in (1, 2, 3) if each != leader.node_id]
    until(cluster, lambda: set(partition.high_watermarks.values()) == {1})
    for node_id in followers:
        partition.hold(node_id)
    runtime.scheduler.run_for(1_000)  # the waiting fetch times out
    with cluster.producer(acks="1") as producer:
        producer.send(TOPIC, b"the leader alone").result()
    assert partition.end_offsets[leader.node_id] == 2
    assert partition.high_watermarks[leader.node_id] == 1
    for node_id in (1, 2, 3):
        assert values(runtime, node_id) == [b"all have it"]
    leader.kill()
    assert values(runtime, leader.node_id) == [b"all have it"]
    for node_id in followers:
        partition.release(node_id)
    with cluster.producer(acks="all") as producer:
        producer.send(TOPIC, b"instead").result()
    leader.start()
    until(cluster, lambda: set(partition.high_watermarks.values()) == {2})
    for node_id in (1, 2, 3):
        assert values(runtime, node_id) == [b"all have it", b"instead"]


def test_records_truncated_by_an_unclean_leader_are_not_read(
    cluster: Cluster, runtime: SimRuntime
) -> None:
    cluster.create_topic(
        TOPIC, 1, replication_factor=3, config={"unclean.leader.election.enable": "true"}
    )
    partition = cluster.partition(TOPIC, 0)
    leader = leader_of(cluster, TOPIC)
    other, behind = (each for each in (1, 2, 3) if each != leader.node_id)
    cluster.broker(other).stop()
    partition.hold(behind)
    with cluster.producer(acks="1") as producer:
        producer.send(TOPIC, b"lost").result()
    until(cluster, lambda: partition.isr == (leader.node_id,), 120_000)
    assert values(runtime, leader.node_id) == [b"lost"]
    leader.kill()
    partition.release(behind)
    until(cluster, lambda: partition.leader == behind)
    leader.start()
    until(cluster, lambda: partition.end_offsets.get(leader.node_id) == 0)
    assert values(runtime, leader.node_id) == []
    with cluster.producer(acks="1") as producer:
        producer.send(TOPIC, b"kept").result()
    until(cluster, lambda: partition.high_watermarks.get(leader.node_id) == 1)
    assert values(runtime, leader.node_id) == [b"kept"]


def test_the_directory_of_all_brokers_is_refused(cluster: Cluster, runtime: SimRuntime) -> None:
    with pytest.raises(ConfigError, match="name the directory of one, data/broker-1"):
        LogDirectoryReader("data", runtime=runtime)


def staged(path: str) -> Manifest:
    """Stage one record for the topic's partition in a broker's directory."""
    which = TopicPartition(TOPIC, 0)
    writer = StagedWriter(real_runtime().files, path, job="j", topic_partition=which, writer="w")
    writer.write(build_batch([b"staged"], timestamps=1_700_000_000_000))
    return Manifest("j", writer.finish())


@pytest.mark.parametrize("replicas", [1, 3])
def test_staged_files_are_committed_only_to_logs_with_one_replica(
    tmp_path: Path, replicas: int
) -> None:
    """Logs with several replicas get their records from the leader's own append."""
    with embedlog.open(tmp_path / "data", brokers=3) as several:
        several.create_topic(TOPIC, 1, replication_factor=replicas)
    for node_id in (1, 2, 3):
        expect_commits(tmp_path / "data" / f"broker-{node_id}")
    with embedlog.open(tmp_path / "data", background=True) as several:
        leader = several.partition(TOPIC, 0).leader
        path = str(tmp_path / "data" / f"broker-{leader}")
        if replicas == 1:
            commit(path, staged(path))
            assert several.partition(TOPIC, 0).high_watermarks == {leader: 1}
            return
        for manifest in (staged(path), Replacement("r", TopicPartition(TOPIC, 0), is_roll=True)):
            with pytest.raises(errors.InvalidRequest, match="events-0 has replicas on brokers"):
                commit(path, manifest)
        assert several.partition(TOPIC, 0).end_offsets[leader] == 0


def test_the_directory_of_one_of_several_brokers_is_not_opened_alone(tmp_path: Path) -> None:
    with embedlog.open(tmp_path / "data", brokers=3) as several:
        several.create_topic(TOPIC, 1)
    path = str(tmp_path / "data" / "broker-1")
    with pytest.raises(
        ConfigError, match=f"belongs to one broker of several: open {tmp_path}/data"
    ):
        embedlog.open(path)
    with pytest.raises(TimedOut, match="belongs to one broker of several"):
        commit(path, staged(path), timeout_ms=50)
