"""`cordoned.log.dirs` (KIP-1066): directories and brokers that get no new replicas."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

import embedlog
from embedlog import errors
from embedlog.client.admin.configs import ConfigResource
from embedlog.client.admin.new_topics import NewTopic
from embedlog.cluster.cluster import Cluster
from embedlog.errors import ConfigError, KafkaError
from embedlog.testing import SimFiles, sim_runtime
from tests.cluster.conftest import until
from tests.cluster.test_log_directories import places

CORDONED = "cordoned.log.dirs"
SET, DELETE, APPEND, SUBTRACT = range(4)
ALL_CORDONED = "All brokers are currently fenced, or have all their log directories cordoned."


@pytest.fixture
def alone() -> Iterator[Cluster]:
    with Cluster("a", runtime=sim_runtime(), is_embedded=True, log_dirs=["b"]) as made:
        yield made


@pytest.fixture
def three() -> Iterator[Cluster]:
    with Cluster("a", brokers=3, runtime=sim_runtime(seed=3), log_dirs=["b"]) as made:
        yield made


def cordon(
    cluster: Cluster, value: str | None, node_id: int = 1, operation: int = SET
) -> KafkaError | None:
    """Change the setting, and return the reason of a refusal."""
    resource = ConfigResource("broker", str(node_id))
    with cluster.admin() as admin:
        changed = admin.incremental_alter_configs({resource: {CORDONED: (operation, value)}})
    return changed.errors.get(resource)


def cordoned(cluster: Cluster, node_id: int = 1) -> list[str]:
    with cluster.admin() as admin:
        found = admin.describe_log_dirs([node_id])[node_id]
    return [path for path, each in found.items() if each.is_cordoned]


def create(cluster: Cluster, *topics: NewTopic) -> dict[str, KafkaError]:
    with cluster.admin() as admin:
        return dict(admin.create_topics(topics).errors)


def test_a_cordoned_directory_gets_no_new_logs_and_keeps_those_it_has(alone: Cluster) -> None:
    alone.create_topic("t", 2)
    assert cordon(alone, "b") is None
    assert cordoned(alone) == ["b"]
    alone.create_topic("u", 3)
    assert places(alone) == {"a": ["t-0", "u-0", "u-1", "u-2"], "b": ["t-1"]}
    with alone.producer() as producer:
        assert producer.send("t", b"x", partition=1).result().offset == 0
    assert cordon(alone, None, operation=DELETE) is None
    assert cordoned(alone) == []
    alone.create_topic("v", 1)
    assert places(alone)["b"] == ["t-1", "v-0"]


@pytest.mark.parametrize("value", ["*", "a,b", "b,a"])
def test_nothing_is_placed_on_a_broker_whose_directories_are_all_cordoned(
    alone: Cluster, value: str
) -> None:
    alone.create_topic("t", 1)
    assert cordon(alone, value) is None
    assert cordoned(alone) == ["a", "b"]
    refused = create(
        alone,
        NewTopic("u", 1, 1),
        NewTopic("v", assignments={0: [1]}),
        NewTopic("w", 1, 2),
        NewTopic("x", assignments={0: [1, 1]}),
        NewTopic("y", assignments={0: [7, 1]}),
    )
    manual = "The manual partition assignment includes broker 1, but all its log directories are"
    assert {name: (type(error).__name__, error.message) for name, error in refused.items()} == {
        "u": (
            "InvalidReplicationFactor",
            f"Unable to replicate the partition 1 time(s): {ALL_CORDONED}",
        ),
        "v": ("InvalidReplicaAssignment", f"{manual} cordoned."),
        "w": (
            "InvalidReplicationFactor",
            f"Unable to replicate the partition 2 time(s): {ALL_CORDONED}",
        ),
        "x": ("InvalidReplicaAssignment", f"{manual} cordoned."),
        "y": ("InvalidReplicaAssignment", f"{manual} cordoned."),
    }
    with alone.admin() as admin:
        grown = admin.create_partitions({"t": 2}).errors["t"]
    assert isinstance(grown, errors.InvalidReplicationFactor)
    assert grown.message == ALL_CORDONED
    assert cordon(alone, "") is None
    assert create(alone, NewTopic("u", 1, 1)) == {}


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (
            "nowhere",
            "requirement failed: All entries in cordoned.log.dirs must be present in log.dirs or"
            " log.dir. Missing entries : nowhere",
        ),
        (
            "b,nowhere",
            "requirement failed: All entries in cordoned.log.dirs must be present in log.dirs or"
            " log.dir. Missing entries : nowhere",
        ),
        (
            "b/",
            "requirement failed: All entries in cordoned.log.dirs must be present in log.dirs or"
            " log.dir. Missing entries : b/",
        ),
        (
            "*,b",
            "requirement failed: When cordoned.log.dirs is set to *, it must not contain other"
            " values",
        ),
        ("b,b", "Configuration 'cordoned.log.dirs' values must not be duplicated."),
    ],
)
def test_values_that_kafka_refuses_are_refused(alone: Cluster, value: str, told: str) -> None:
    refused = cordon(alone, value)
    assert isinstance(refused, errors.InvalidRequest)
    assert refused.message == told
    assert cordoned(alone) == []


def test_lists_are_appended_to_and_subtracted_from(alone: Cluster) -> None:
    assert cordon(alone, "b", operation=APPEND) is None
    assert cordoned(alone) == ["b"]
    assert cordon(alone, "b", operation=SUBTRACT) is None
    assert cordoned(alone) == []
    assert cordon(alone, "*") is None
    refused = cordon(alone, "b", operation=APPEND)
    assert refused is not None
    assert refused.message is not None
    assert refused.message.endswith("it must not contain other values")


def test_an_only_directory_can_be_cordoned() -> None:
    with Cluster("a", runtime=sim_runtime(), is_embedded=True) as cluster:
        assert cordon(cluster, "a") is None
        assert cordoned(cluster) == ["a"]
        refused = create(cluster, NewTopic("t", 1))["t"]
        assert refused.message is not None
        assert refused.message.endswith(ALL_CORDONED)
        assert cordon(cluster, None, operation=DELETE) is None
        assert create(cluster, NewTopic("t", 1)) == {}


def test_an_only_directory_stays_cordoned_after_a_restart() -> None:
    files = SimFiles()
    with Cluster("a", runtime=sim_runtime(files=files)) as cluster:
        assert cordon(cluster, "*") is None
    with Cluster("a", runtime=sim_runtime(files=files)) as cluster:
        assert "t" in create(cluster, NewTopic("t", 1))


def test_directories_stay_cordoned_after_a_restart() -> None:
    files = SimFiles()
    with Cluster("a", runtime=sim_runtime(files=files), log_dirs=["b"]) as cluster:
        assert cordon(cluster, "b") is None
    with Cluster("a", runtime=sim_runtime(files=files), log_dirs=["b"]) as cluster:
        assert cordoned(cluster) == ["b"]
        cluster.create_topic("t", 2)
        assert places(cluster) == {"a": ["t-0", "t-1"], "b": []}
        assert cordon(cluster, "*") is None
    with Cluster("a", runtime=sim_runtime(files=files), log_dirs=["b"]) as cluster:
        assert "u" in create(cluster, NewTopic("u", 1))


def test_the_setting_may_be_given_at_the_first_open() -> None:
    with embedlog.open(log_dirs=["b"], cordoned_log_dirs="b") as cluster:
        cluster.create_topic("t", 2)
        assert places(cluster)["b"] == []
    with pytest.raises(ConfigError, match="Missing entries : nowhere"):
        embedlog.open(log_dirs=["b"], cordoned_log_dirs="nowhere")


def is_full(cluster: Cluster, node_id: int) -> bool:
    """Return whether the controller places no replicas on the broker."""
    return cluster.broker(1).core.image.brokers[node_id].is_cordoned


def replicas_of(cluster: Cluster, topic: str) -> list[Sequence[int]]:
    partitions = cluster.broker(1).core.image.topics_by_name[topic].partitions
    return [partition.replicas for partition in partitions]


def test_of_several_brokers_a_fully_cordoned_broker_gets_no_replicas(three: Cluster) -> None:
    assert cordon(three, "a/broker-2,b/broker-2", node_id=2) is None
    until(three, lambda: is_full(three, 2))
    three.create_topic("t", 6, replication_factor=2)
    assert all(set(nodes) == {1, 3} for nodes in replicas_of(three, "t"))
    refused = create(three, NewTopic("u", 1, 3))["u"]
    assert refused.message == (
        "Unable to replicate the partition 3 time(s): The target replication factor of 3 cannot be"
        " reached because only 2 broker(s) are registered or some brokers have all their log"
        " directories cordoned."
    )
    refused = create(three, NewTopic("v", assignments={0: [1, 2]}))["v"]
    assert refused.message == (
        "The manual partition assignment includes broker 2, but all its log directories are"
        " cordoned."
    )
    assert cordon(three, "a/broker-1", node_id=2) is not None
    assert cordon(three, None, node_id=2, operation=DELETE) is None
    until(three, lambda: not is_full(three, 2))
    assert create(three, NewTopic("u", 1, 3)) == {}


def test_of_several_brokers_a_cordoned_directory_gets_no_replicas(three: Cluster) -> None:
    assert cordon(three, "b/broker-3", node_id=3) is None
    three.create_topic("t", 4, replication_factor=3)
    assert places(three, 3)["b/broker-3"] == []
    assert len(places(three, 2)["b/broker-2"]) == 2


@pytest.mark.parametrize("log_dirs", [(), ("b",)])
def test_a_fully_cordoned_broker_gets_no_replicas_after_its_restart(
    log_dirs: tuple[str, ...],
) -> None:
    with Cluster("a", brokers=2, runtime=sim_runtime(), log_dirs=log_dirs) as cluster:
        assert cordon(cluster, "*", node_id=2) is None
        until(cluster, lambda: is_full(cluster, 2))
        cluster.broker(2).kill()
        cluster.broker(2).start()
        until(cluster, lambda: is_full(cluster, 2))
        cluster.create_topic("t", 4)
        assert set(replicas_of(cluster, "t")) == {(1,)}


def test_a_reopened_cluster_remembers_fully_cordoned_brokers() -> None:
    files = SimFiles()
    with Cluster("a", brokers=2, runtime=sim_runtime(files=files)) as cluster:
        assert cordon(cluster, "*", node_id=2) is None
    with Cluster("a", brokers=2, runtime=sim_runtime(files=files)) as cluster:
        until(cluster, lambda: is_full(cluster, 2))
        cluster.create_topic("t", 4)
        assert set(replicas_of(cluster, "t")) == {(1,)}
