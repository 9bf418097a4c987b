"""Logs of the coordinator that are created on first use, and the settings of groups."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import embedlog
from embedlog.broker.context import RequestContext
from embedlog.cluster.cluster import Cluster
from embedlog.controller.metadata import RESOURCE_GROUP
from embedlog.coordinator.placement import java_hash, partition_of
from embedlog.testing import SimRuntime, sim_runtime
from tests.support.offsets import commit, fetch, fetched
from wire.schemas.describe_log_dirs import DescribeLogDirsRequest
from wire.schemas.find_coordinator import FindCoordinatorRequest
from wire.schemas.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)

TOPIC = "__consumer_offsets"
DELAY = "group.initial.rebalance.delay.ms"


def ask(cluster: Cluster, api_key: int, version: int, request: Any) -> Any:
    """Return the answer of a broker that does not wait for the disk."""
    return cluster.broker().core.handle(RequestContext(api_key, version), request)


def find_coordinator(cluster: Cluster) -> None:
    request = FindCoordinatorRequest(key_type=0, coordinator_keys=["g"])
    assert ask(cluster, 10, 4, request).coordinators[0].error_code == 0


def logs(cluster: Cluster) -> list[int]:
    """Return the partitions of the offsets topic that have a log."""
    return [n for topic, n in cluster.broker().core.log_manager.partitions() if topic == TOPIC]


def sizes(cluster: Cluster) -> dict[int, int]:
    """Return the sizes of the offsets topic's partitions, by DescribeLogDirs."""
    (found,) = ask(cluster, 35, 4, DescribeLogDirsRequest(topics=None)).results
    (topic,) = [topic for topic in found.topics if topic.name == TOPIC]
    return {partition.partition_index: partition.partition_size for partition in topic.partitions}


@pytest.mark.parametrize(
    ("key", "hashed", "partition"),
    [
        ("", 0, 0),
        ("a", 97, 47),
        ("group", 98629247, 47),
        ("my-group", -1906497762, 12),
        ("test-consumer-group", -1793216381, 31),
        ("console-consumer-12345", 158455506, 6),
        ("grüppe", -1233264812, 12),
        ("\U0001f600", 1772899, 49),
    ],
)
def test_groups_are_placed_as_java_hashes_strings(key: str, hashed: int, partition: int) -> None:
    assert (java_hash(key), partition_of(key, 50)) == (hashed, partition)


def test_the_hash_without_a_positive_twin_counts_as_0() -> None:
    assert java_hash("polygenelubricants") == -(2**31)
    assert partition_of("polygenelubricants", 50) == 0


def test_finding_a_coordinator_makes_no_log_and_using_it_makes_one() -> None:
    with Cluster("data", runtime=sim_runtime(), durability="os") as cluster:
        find_coordinator(cluster)
        assert logs(cluster) == []
        assert sizes(cluster) == dict.fromkeys(range(50), 0)
        assert logs(cluster) == []
        cluster.create_topic("t")
        ask(cluster, 8, 9, commit("my-group", {("t", 0): 5}))
        assert logs(cluster) == [12]
        found = sizes(cluster)
        assert len(found) == 50
        assert [number for number, size in found.items() if size] == [12]


def test_a_log_that_was_never_used_can_be_read() -> None:
    with Cluster(runtime=sim_runtime()) as cluster:
        find_coordinator(cluster)
        asked = ListOffsetsPartition(partition_index=3, timestamp=-1)
        request = ListOffsetsRequest(topics=[ListOffsetsTopic(name=TOPIC, partitions=[asked])])
        (answer,) = ask(cluster, 2, 7, request).topics[0].partitions
        assert (answer.error_code, answer.offset) == (0, 0)
        assert logs(cluster) == [3]


@pytest.mark.parametrize("is_clean", [True, False])
def test_after_a_restart_the_same_logs_are_there(is_clean: bool) -> None:
    runtime = sim_runtime()
    first = Cluster("data", runtime=runtime, durability="os")
    find_coordinator(first)
    first.create_topic("t")
    ask(first, 8, 9, commit("my-group", {("t", 0): 5}))
    if is_clean:
        first.close()
    files = runtime.files if is_clean else runtime.files.survivor()
    second_runtime: SimRuntime = sim_runtime(files=files)
    with Cluster("data", runtime=second_runtime, durability="os") as second:
        assert logs(second) == [12]
        assert fetched(ask(second, 9, 9, fetch("my-group"))) == {("t", 0): 5}
        assert fetched(ask(second, 9, 9, fetch("another"))) == {}
        assert len(sizes(second)) == 50


@pytest.mark.parametrize(
    ("path", "config", "delay_ms"),
    [
        (None, {}, 0),
        ("data", {}, 3000),
        (None, {DELAY: 1234}, 1234),
        (None, {DELAY: 3000}, 3000),
        ("data", {DELAY: 0}, 0),
    ],
)
def test_only_a_cluster_in_memory_has_no_initial_delay(
    path: str | None, config: dict[str, object], delay_ms: int
) -> None:
    with Cluster(path, config, runtime=sim_runtime()) as cluster:
        assert cluster.config.group_initial_rebalance_delay_ms == delay_ms


@pytest.mark.parametrize("in_memory", [True, False])
def test_an_opened_cluster_has_no_initial_delay_unless_told(
    in_memory: bool, tmp_path: Path
) -> None:
    path = None if in_memory else tmp_path
    with embedlog.open(path) as cluster:
        assert cluster.config.group_initial_rebalance_delay_ms == 0
    with embedlog.open(path, group_initial_rebalance_delay_ms=3000) as cluster:
        assert cluster.config.group_initial_rebalance_delay_ms == 3000


def test_a_group_obeys_its_own_settings_before_the_brokers() -> None:
    config = {"group.consumer.heartbeat.interval.ms": 6000}
    with Cluster(None, config, runtime=sim_runtime()) as cluster:
        find_coordinator(cluster)
        name = "consumer.heartbeat.interval.ms"

        def in_force(group_id: str) -> object:
            coordinator = cluster.broker().core.group_coordinator
            pending = coordinator.runtime.read(
                coordinator.partition_for(group_id),
                lambda shard: shard.context.group_config(group_id, name),
            )
            return pending.result()

        assert in_force("g") == 6000
        cluster.broker().core.controller.replace_configs(RESOURCE_GROUP, "g", [(name, "7000")])
        assert (in_force("g"), in_force("h")) == (7000, 6000)
        cluster.broker().core.controller.replace_configs(RESOURCE_GROUP, "g", [])
        assert in_force("g") == 6000
