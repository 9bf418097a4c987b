"""Several log directories of a single broker: where logs lie, and directories left out."""

from __future__ import annotations

from pathlib import Path

import pytest

import embedlog
from embedlog import TopicPartition
from embedlog.cli import main
from embedlog.cluster.cluster import Cluster
from embedlog.errors import ConfigError, DirectoryLocked, EmbedlogError
from embedlog.spark.committer import commit
from embedlog.storage import paths
from embedlog.storage.staging.manifest import Manifest
from embedlog.testing import SimFiles, sim_runtime
from wire.error_codes import ErrorCode
from wire.schemas.fetch import FetchPartition, FetchRequest, FetchTopic

IMPATIENT = {"retries": 0, "delivery_timeout_ms": 100, "request_timeout_ms": 50}


def open_both(first: Path, second: Path) -> Cluster:
    return embedlog.open(first, log_dirs=[second], durability="os")


def places(cluster: Cluster, node_id: int = 1) -> dict[str, list[str]]:
    """Return the replicas of each directory as DescribeLogDirs reports them; None if it
    is offline.
    """
    with cluster.admin() as admin:
        found = admin.describe_log_dirs([node_id])[node_id]
    return {
        path.rpartition("/")[2] if path.startswith("/") else path: sorted(
            f"{topic}-{index}" for topic, index in each.replicas
        )
        for path, each in found.items()
        if each.error is None
    }


def offline(cluster: Cluster, node_id: int = 1) -> list[str]:
    """Return the directories that DescribeLogDirs answers with KAFKA_STORAGE_ERROR."""
    with cluster.admin() as admin:
        found = admin.describe_log_dirs([node_id])[node_id]
    return [
        path
        for path, each in found.items()
        if each.error is not None and each.error.code == ErrorCode.KAFKA_STORAGE_ERROR
    ]


def send(cluster: Cluster, index: int, value: bytes, **settings: object) -> int:
    with cluster.producer(**settings) as producer:
        return producer.send("t", value, partition=index).result().offset


def states(cluster: Cluster) -> list[tuple[int, tuple[int, ...]]]:
    topic = cluster.broker(1).core.image.topics_by_name["t"]
    return [(each.leader, each.isr) for each in topic.partitions]


def test_a_new_log_goes_to_the_directory_with_the_fewest(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    with open_both(first, second) as cluster:
        cluster.create_topic("t", 3)
        assert places(cluster) == {"a": ["t-0", "t-2"], "b": ["t-1"]}
        cluster.create_topic("u", 1)
        assert places(cluster)["b"] == ["t-1", "u-0"]
    assert (second / "t-1").is_dir()
    assert (first / "__cluster_metadata-0").is_dir()
    assert not (second / "__cluster_metadata-0").exists()


def test_records_are_found_again_in_every_directory(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    with open_both(first, second) as cluster:
        cluster.create_topic("t", 2)
        assert [send(cluster, index, b"x") for index in (0, 1)] == [0, 0]
    with open_both(first, second) as cluster:
        assert cluster.broker().core.log_manager.was_clean
        assert places(cluster) == {"a": ["t-0"], "b": ["t-1"]}
        assert [send(cluster, index, b"y") for index in (0, 1)] == [1, 1]


def test_each_directory_is_kafkas_and_of_the_same_node_and_cluster(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    with open_both(first, second) as cluster:
        cluster_id = cluster.cluster_id
    properties = [
        dict(line.split("=") for line in (each / "meta.properties").read_text().split())
        for each in (first, second)
    ]
    assert {each["cluster.id"] for each in properties} == {cluster_id}
    assert {each["node.id"] for each in properties} == {"1"}
    assert len({each["directory.id"] for each in properties}) == 2
    for each in (first, second):
        assert (each / paths.CLEAN_SHUTDOWN).exists()


def test_a_directory_that_is_added_takes_new_logs(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    with embedlog.open(first) as cluster:
        cluster.create_topic("t", 2)
        send(cluster, 1, b"x")
    with open_both(first, second) as cluster:
        cluster.create_topic("u", 2)
        assert places(cluster) == {"a": ["t-0", "t-1"], "b": ["u-0", "u-1"]}
        assert send(cluster, 1, b"y") == 1


def test_replicas_in_a_left_out_directory_are_offline_and_not_recreated(
    tmp_path: Path,
) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    with open_both(first, second) as cluster:
        cluster.create_topic("t", 2)
        send(cluster, 1, b"x")
    with embedlog.open(first) as cluster:
        assert states(cluster)[0] == (1, (1,))
        assert states(cluster)[1][0] == -1
        assert send(cluster, 0, b"z") == 0
        with pytest.raises(EmbedlogError):
            send(cluster, 1, b"lost", **IMPATIENT)
        assert fetch_error(cluster, 1) == ErrorCode.KAFKA_STORAGE_ERROR
        assert not (first / "t-1").exists()
        [told] = cluster.health()
        assert (told.kind, told.subject) == ("offline", str(second))
    with open_both(first, second) as cluster:
        assert [leader for leader, _ in states(cluster)] == [1, 1]
        assert send(cluster, 1, b"y") == 1
        assert cluster.health() == []


def fetch_error(cluster: Cluster, index: int) -> int:
    """Fetch a partition of topic "t" and return the error code."""
    topic_id = cluster.broker(1).core.image.topics_by_name["t"].topic_id
    asked = FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=1000)
    request = FetchRequest(topics=[FetchTopic(topic_id=topic_id, partitions=[asked])])
    transport = cluster.connect()
    pending = transport.send(1, request)
    transport.wait(pending, None)
    [topic] = pending.result().responses
    return topic.partitions[0].error_code


def test_a_directory_without_replicas_may_be_left_out_for_good(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    with open_both(first, second) as cluster:
        cluster.create_topic("t", 2)
        with cluster.admin() as admin:
            admin.delete_topics(["t"])
    with embedlog.open(first) as cluster:
        assert cluster.health() == []
    assert not (first / paths.LOG_DIRS).exists()
    with embedlog.open(first) as cluster:
        assert cluster.health() == []


def test_a_new_disk_at_the_path_of_another_takes_only_new_logs(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    with open_both(first, second) as cluster:
        cluster.create_topic("t", 2)
        send(cluster, 1, b"x")
    second.rename(tmp_path / "unplugged")
    with open_both(first, second) as cluster:
        [told] = cluster.health()
        assert told.reason == f"it was {second}: another directory is there now"
        assert [leader for leader, _ in states(cluster)] == [1, -1]
        with cluster.admin() as admin:
            admin.delete_topics(["t"])
            admin.create_topics({"u": 2}).check()
        assert places(cluster) == {"a": ["u-0"], "b": ["u-1"]}
    with open_both(first, second) as cluster:
        assert cluster.health() == []


def test_a_moved_directory_is_known_by_its_id(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    with open_both(first, second) as cluster:
        cluster.create_topic("t", 2)
        send(cluster, 1, b"x")
    second.rename(tmp_path / "c")
    with open_both(first, tmp_path / "c") as cluster:
        assert cluster.health() == []
        assert send(cluster, 1, b"y") == 1


def test_a_log_in_two_directories_is_refused_with_both_paths(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    with open_both(first, second) as cluster:
        cluster.create_topic("t", 2)
    (first / "t-1").mkdir()
    with pytest.raises(ConfigError) as told:
        open_both(first, second)
    text = str(told.value)
    assert text.startswith("Duplicate log directories found: ")
    assert str(first / "t-1") in text
    assert str(second / "t-1") in text
    (first / "t-1").rmdir()
    open_both(first, second).close()


def test_a_further_directory_is_not_opened_without_the_first(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    open_both(first, second).close()
    with pytest.raises(ConfigError, match=f"further log directory of the broker in {first}"):
        embedlog.open(second)
    with pytest.raises(ConfigError, match="first log directory of a broker"):
        open_both(tmp_path / "c", first)


def test_a_directory_of_another_cluster_is_refused(tmp_path: Path) -> None:
    open_both(tmp_path / "a", tmp_path / "b").close()
    open_both(tmp_path / "c", tmp_path / "d").close()
    with pytest.raises(ConfigError, match="belongs to cluster"):
        open_both(tmp_path / "a", tmp_path / "d")
    open_both(tmp_path / "a", tmp_path / "b").close()


def test_a_copy_of_a_directory_is_refused(tmp_path: Path) -> None:
    open_both(tmp_path / "a", tmp_path / "b").close()
    (tmp_path / "c").mkdir()
    text = (tmp_path / "b" / "meta.properties").read_text()
    (tmp_path / "c" / "meta.properties").write_text(text)
    with pytest.raises(ConfigError, match="one directory.id"):
        embedlog.open(tmp_path / "a", log_dirs=[tmp_path / "b", tmp_path / "c"])


def test_each_directory_is_locked(tmp_path: Path) -> None:
    with open_both(tmp_path / "a", tmp_path / "b"), pytest.raises(DirectoryLocked):
        open_both(tmp_path / "c", tmp_path / "b")


@pytest.mark.parametrize(
    ("log_dirs", "told"),
    [
        (["data"], "named twice"),
        (["b", "b/"], "named twice"),
        (["data/b"], "one is in the other"),
        (["."], "one is in the other"),
        (["localhost:9092"], "is an address"),
        ([":memory:"], "is no directory"),
        ([None], "is no directory"),
        ([""], "is empty"),
        (["a,b"], "is no directory"),
        ("b", "expected a list"),
    ],
)
def test_invalid_directories_are_refused(
    log_dirs: list[str], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=told):
        embedlog.open("data", log_dirs=log_dirs)
    assert list(tmp_path.iterdir()) == []


def test_readers_without_a_lock_are_refused(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    open_both(first, second).close()
    for each, other in ((first, second), (second, first)):
        with pytest.raises(ConfigError, match=f"one of several log directories.*{other}"):
            embedlog.open_reader(each)


def test_staged_files_are_not_committed_to_one_of_several(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    open_both(first, second).close()
    manifest = Manifest("m", [])
    for each in (first, second):
        with pytest.raises(ConfigError, match="one of several log directories"):
            commit(str(each), manifest, timeout_ms=0)


def test_log_dirs_apply_if_they_contain_the_path(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    with embedlog.open(first, config={"log.dirs": f"{first},{second}"}) as cluster:
        assert set(places(cluster)) == {"a", "b"}
    with embedlog.open(tmp_path / "c", config={"log.dirs": f"{first},{second}"}) as cluster:
        assert set(places(cluster)) == {"c"}


def test_tools_name_the_other_directories(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    with open_both(first, second) as cluster:
        cluster.create_topic("t", 2)
        send(cluster, 1, b"x")
    for each, other in ((first, second), (second, first)):
        assert main(["verify", str(each)]) == 0
        assert f"one of several log directories, beside {other}" in capsys.readouterr().out
    assert main(["dump", str(second)]) == 0
    assert "t-1" in capsys.readouterr().out
    assert main(["salvage", str(second), "--dry-run"]) == 0


def test_directories_in_memory() -> None:
    with embedlog.open(log_dirs=["b"]) as cluster:
        cluster.create_topic("t", 2)
        assert places(cluster) == {"memory": ["t-0"], "b": ["t-1"]}
        assert send(cluster, 1, b"x") == 0


def test_a_kill_loses_nothing_in_any_directory() -> None:
    files = SimFiles()
    cluster = Cluster("a", runtime=sim_runtime(files=files), log_dirs=["b"])
    cluster.create_topic("t", 2)
    assert [send(cluster, index, b"x") for index in (0, 1)] == [0, 0]
    files = files.survivor()
    with Cluster("a", runtime=sim_runtime(files=files), log_dirs=["b"]) as cluster:
        assert not cluster.broker().core.log_manager.was_clean
        assert places(cluster) == {"a": ["t-0"], "b": ["t-1"]}
        assert [send(cluster, index, b"y") for index in (0, 1)] == [1, 1]


def test_a_deleted_topic_is_gone_from_every_directory(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    with open_both(first, second) as cluster:
        cluster.create_topic("t", 2)
        with cluster.admin() as admin:
            admin.delete_topics(["t"])
        assert places(cluster) == {"a": [], "b": []}
        cluster.create_topic("t", 2)
        assert places(cluster) == {"a": ["t-0"], "b": ["t-1"]}


def test_retention_and_maintenance_reach_every_directory(tmp_path: Path) -> None:
    with open_both(tmp_path / "a", tmp_path / "b") as cluster:
        cluster.create_topic("t", 2, config={"retention.bytes": 0})
        for index in (0, 1):
            send(cluster, index, bytes(1000))
        assert cluster.maintain() > 2000
        for index in (0, 1):
            log = cluster.broker().core.log_manager.get(TopicPartition("t", index))
            assert log is not None
            assert log.offsets.log_start_offset == 1
