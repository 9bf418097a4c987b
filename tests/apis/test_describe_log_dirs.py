"""DescribeLogDirs: the directories, and the sizes of the requested partitions."""

from __future__ import annotations

import shutil
from errno import EIO
from pathlib import Path

import pytest

import embedlog
from embedlog.client.admin.configs import ConfigResource
from embedlog.cluster.cluster import Cluster
from embedlog.testing import SimRuntime, sim_runtime
from tests.apis.conftest import Client
from tests.golden.batches import simple
from tests.golden.requests import produce
from wire.error_codes import ErrorCode
from wire.schemas.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResult,
)


@pytest.fixture
def runtime() -> SimRuntime:
    return sim_runtime()


def describe(
    client: Client, version: int, *topics: tuple[str, list[int]], everything: bool = False
) -> DescribeLogDirsResult:
    asked = [DescribableLogDirTopic(topic=name, partitions=indexes) for name, indexes in topics]
    request = DescribeLogDirsRequest(topics=None if everything else asked)
    response = client.call(request, version)
    assert response.error_code == 0
    [directory] = response.results
    assert directory.error_code == 0
    assert directory.log_dir
    return directory


@pytest.mark.parametrize("version", range(6))
def test_sizes_of_partitions(client: Client, version: int) -> None:
    topic = client.make_topic(partitions=2)
    batch = simple(b"a")
    client.call(produce(topic, 9, batch, partition=1), 9)
    [described] = describe(client, version, everything=True).topics
    assert described.name == topic[0]
    sizes = [(p.partition_index, p.partition_size) for p in described.partitions]
    assert sizes == [(0, 0), (1, len(batch))]
    assert {(p.offset_lag, p.is_future_key) for p in described.partitions} == {(0, False)}


def test_only_what_was_asked_for_and_exists(client: Client) -> None:
    topic = client.make_topic(partitions=2)
    assert describe(client, 4).topics == []
    assert describe(client, 4, ("nowhere", [0]), (topic[0], [9])).topics == []
    [described] = describe(client, 4, (topic[0], [1])).topics
    assert [partition.partition_index for partition in described.partitions] == [1]


def test_room_on_the_volume(tmp_path: Path) -> None:
    with embedlog.open(tmp_path) as cluster, cluster.admin() as admin:
        [directory] = admin.describe_log_dirs()[1].values()
    assert directory.total_size == shutil.disk_usage(tmp_path).total
    assert 0 < directory.usable_size < directory.total_size


def test_every_directory_is_described(runtime: SimRuntime) -> None:
    with Cluster("a", runtime=runtime, log_dirs=["b"]) as cluster:
        cluster.create_topic("t", 3)
        with cluster.producer() as producer:
            producer.send("t", b"x", partition=1).result()
        assert described(cluster) == {
            "a": (0, {0: 0, 2: 0}, False),
            "b": (0, {1: 69}, False),
        }
        assert described(cluster, 1) == {"a": (0, {}, False), "b": (0, {1: 69}, False)}
        resource = ConfigResource("broker", "1")
        with cluster.admin() as admin:
            admin.incremental_alter_configs({resource: {"cordoned.log.dirs": (0, "b")}})
        assert described(cluster, 1) == {"a": (0, {}, False), "b": (0, {1: 69}, True)}


def test_one_that_is_offline_has_an_error_and_nothing_else(runtime: SimRuntime) -> None:
    with Cluster("a", runtime=runtime, log_dirs=["b"]) as cluster:
        cluster.create_topic("t", 2)
        runtime.files.failing["b"] = EIO
        # Kafka's error for a disk that has just failed, and for an offline one.
        assert described(cluster)["b"] == (ErrorCode.UNKNOWN_SERVER_ERROR, {}, False)
        runtime.scheduler.run_for(10)
        assert described(cluster) == {
            "a": (0, {0: 0}, False),
            "b": (ErrorCode.KAFKA_STORAGE_ERROR, {}, False),
        }


def described(cluster: Cluster, *indexes: int) -> dict[str, tuple[int, dict[int, int], bool]]:
    """Return (error, sizes by partition, cordoned) of each directory, for these partitions or
    all.
    """
    topics = [DescribableLogDirTopic(topic="t", partitions=list(indexes))] if indexes else None
    transport = cluster.connect()
    pending = transport.send(1, DescribeLogDirsRequest(topics=topics))
    transport.wait(pending, None)
    found = {}
    for each in pending.result().results:
        partitions = [partition for topic in each.topics for partition in topic.partitions]
        sizes = {partition.partition_index: partition.partition_size for partition in partitions}
        found[each.log_dir] = (each.error_code, sizes, each.is_cordoned)
    return found


def test_a_log_in_memory_has_no_volume(client: Client) -> None:
    directory = describe(client, 5)
    assert (directory.total_bytes, directory.usable_bytes) == (-1, -1)
