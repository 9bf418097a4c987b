"""`embedlog.open`: a cluster in a directory, in memory, and after a restart."""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

import embedlog
from embedlog.cluster.cluster import Cluster
from embedlog.common import ONE_UUID, ZERO_UUID, TopicPartition, uuid_from_text
from embedlog.errors import (
    ClosedError,
    ConfigError,
    CorruptRecord,
    DirectoryLocked,
    InvalidConfig,
    TopicAlreadyExists,
)
from embedlog.runtime.pending import Pending
from embedlog.testing import sim_runtime
from embedlog.testing.sim_files import SimFiles, SimulatedCrash
from wire.schemas.metadata import MetadataResponse, MetadataResponseTopic


def test_a_cluster_in_memory_is_new_each_time() -> None:
    with embedlog.open() as one, embedlog.open() as other:
        one.create_topic("t")
        assert (one.topics, other.topics) == (["t"], [])
        assert one.cluster_id != other.cluster_id
        assert (one.path, one.durability) == (None, "memory")


def test_a_reopened_directory_is_the_same_cluster(tmp_path: Path) -> None:
    with embedlog.open(tmp_path / "data") as cluster:
        cluster_id = cluster.cluster_id
        configs = {"retention.ms": 5, "cleanup.policy": "compact"}
        topic = cluster.create_topic("t", 3, config=configs)
        ids = cluster.broker().core.controller.allocate_producer_ids()
    with embedlog.open(tmp_path / "data") as cluster:
        image = cluster.broker().core.controller.image
        assert cluster.cluster_id == cluster_id
        assert cluster.topics == ["t"]
        assert image.topics_by_name["t"].topic_id == topic.topic_id
        assert len(image.topics_by_name["t"].partitions) == 3
        assert image.topic_configs["t"] == {"retention.ms": "5", "cleanup.policy": "compact"}
        assert cluster.broker().core.controller.allocate_producer_ids()[0] == ids[-1] + 1


def test_the_directory_names_its_cluster_and_node_as_kafkas_do(tmp_path: Path) -> None:
    with embedlog.open(tmp_path) as cluster:
        content = (tmp_path / "meta.properties").read_text()
        properties = dict(line.split("=") for line in content.splitlines())
        assert uuid_from_text(properties.pop("directory.id")) not in (ZERO_UUID, ONE_UUID)
        assert properties == {"version": "1", "node.id": "1", "cluster.id": cluster.cluster_id}
    with embedlog.open(tmp_path):
        assert (tmp_path / "meta.properties").read_text() == content


def test_a_directory_has_one_owner(tmp_path: Path) -> None:
    with embedlog.open(tmp_path), pytest.raises(DirectoryLocked):
        embedlog.open(tmp_path)
    embedlog.open(tmp_path).close()


def test_a_failed_open_unlocks_the_directory(tmp_path: Path) -> None:
    embedlog.open(tmp_path, cluster_id="AAAAAAAAAAAAAAAAAAAAAQ").close()
    for _ in range(2):
        with pytest.raises(ConfigError, match="belongs to cluster AAAAAAAAAAAAAAAAAAAAAQ"):
            embedlog.open(tmp_path, cluster_id="BBBBBBBBBBBBBBBBBBBBBQ")
    with embedlog.open(tmp_path) as cluster:
        assert cluster.cluster_id == "AAAAAAAAAAAAAAAAAAAAAQ"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("version=0\nnode.id=1\n", "version '0', expected 1"),
        ("version=1\nnode.id=7\n", "belongs to node '7', this is 1"),
        ("version=1\nnode.id=1\ndirectory.id=x\n", "directory.id"),
    ],
)
def test_a_directory_of_another_cluster_or_node_is_refused(
    tmp_path: Path, content: str, message: str
) -> None:
    (tmp_path / "meta.properties").write_text(content)
    with pytest.raises(ConfigError, match=message):
        embedlog.open(tmp_path)


def test_a_metadata_log_of_apache_kafka_is_refused(tmp_path: Path) -> None:
    with embedlog.open(tmp_path) as cluster:
        log = cluster.broker().core.log_manager.get(TopicPartition("__cluster_metadata", 0))
        assert log is not None
        from wire.records import build_batch

        with log.lock:
            log.append_as_leader(
                build_batch([b"\x01\x02\x00"], timestamps=0), leader_epoch=0, now_ms=0
            )
    with pytest.raises(CorruptRecord, match="frame 1, record type 2"):
        embedlog.open(tmp_path)


@pytest.mark.parametrize(
    ("path", "asked", "level"),
    [
        (True, {}, "fsync"),
        (True, {"durability": "os"}, "os"),
        (True, {"durability": "memory"}, "memory"),
        (True, {"embedlog_durability": "os"}, "os"),
        (False, {}, "memory"),
        (False, {"durability": "memory"}, "memory"),
    ],
)
def test_the_durability_is_reported_and_reaches_every_log(
    tmp_path: Path, path: bool, asked: dict[str, str], level: str
) -> None:
    with embedlog.open(tmp_path if path else None, **asked) as cluster:
        assert cluster.durability == level
        cluster.create_topic("t")
        cluster.create_topic("other", config={"embedlog.durability": "memory"})
        partition = cluster.broker().core.replica_manager.partition
        assert partition("t", 0).log.config.durability == level
        assert partition("other", 0).log.config.durability == "memory"
        assert not path or f"durability {level}" in repr(cluster)


def test_a_durability_that_cannot_be_kept_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="needs a path"):
        embedlog.open(durability="fsync")
    with pytest.raises(ConfigError, match="expected one of memory, os, fsync"):
        embedlog.open(tmp_path, durability="very")
    with pytest.raises(ConfigError, match="one of: memory, os, fsync"):
        embedlog.open(tmp_path, embedlog_durability="very")


def test_settings_come_as_arguments_or_in_a_dict() -> None:
    with embedlog.open(config={"num.partitions": "2"}, message_max_bytes=500) as cluster:
        topic = cluster.create_topic("t")
        assert topic.partition_count == 2
        log = cluster.broker().core.replica_manager.partition("t", 0).log
        assert log.config.max_message_bytes == 500
    with pytest.raises(ConfigError, match="num.partitions"):
        embedlog.open(num_partitions=0)
    with pytest.warns(UserWarning, match="did you mean 'num.partitions'"):
        embedlog.open(num_partition=1).close()


def test_topics_are_created_by_kafkas_rules() -> None:
    with embedlog.open() as cluster:
        cluster.create_topic("b")
        cluster.create_topic("a")
        assert cluster.topics == ["a", "b"]
        with pytest.raises(TopicAlreadyExists):
            cluster.create_topic("a")
        with pytest.raises(InvalidConfig):
            cluster.create_topic("c", config={"retention.ms": "soon"})


def test_a_created_topic_reports_the_brokers_defaults() -> None:
    with embedlog.open(num_partitions=3) as cluster:
        made = cluster.create_topic("t", config={"retention.ms": 5, "cleanup.policy": None})
        image = cluster.broker().core.controller.image.topics_by_name["t"]
        assert isinstance(made, embedlog.CreatedTopic)
        assert (made.name, made.topic_id) == ("t", image.topic_id)
        assert (made.partition_count, made.replication_factor) == (3, 1)
        assert made.configs["retention.ms"] == "5"
        assert made.configs["cleanup.policy"] == "delete"


def test_topics_are_created_through_the_request_door() -> None:
    with embedlog.open() as cluster:
        asked: list[str] = []
        cluster.broker().core.interceptor = lambda _, request: asked.append(type(request).__name__)
        cluster.create_topic("t")
        assert cluster.topics == ["t"]
        assert asked == ["CreateTopicsRequest", "MetadataRequest"]


class LateAnswer:
    """A duty that answers in its second run."""

    def __init__(self) -> None:
        self.pending: Pending[MetadataResponse] = Pending()
        self._delays_ms = [1000]

    def run_once(self, _now_ms: int) -> int | None:
        if self._delays_ms:
            return self._delays_ms.pop()
        self.pending.complete(MetadataResponse(topics=[MetadataResponseTopic(name="late")]))
        return None


def test_a_late_answer_of_the_door_is_awaited() -> None:
    runtime = sim_runtime()
    with Cluster(runtime=runtime) as cluster:
        answer = LateAnswer()
        runtime.scheduler.add(answer)
        cluster.broker().core.interceptor = lambda _context, _request: answer.pending
        began_ms = runtime.clock.monotonic_ms()
        assert cluster.topics == ["late"]
        assert runtime.clock.monotonic_ms() - began_ms >= 1000


def test_a_closed_cluster_stays_closed() -> None:
    cluster = embedlog.open()
    transport = cluster.connect()
    cluster.close()
    cluster.close()
    assert "closed" in repr(cluster)
    for refused in (cluster.connect, cluster.listen):
        with pytest.raises(ClosedError):
            refused()
    for asked in (lambda: cluster.topics, lambda: cluster.create_topic("t")):
        with pytest.raises(ClosedError):
            asked()
    from wire.schemas.metadata import MetadataRequest

    error = transport.send(-1, MetadataRequest()).error()
    assert isinstance(error, ClosedError)


def test_a_listener_is_part_of_the_cluster() -> None:
    with embedlog.open() as cluster:
        listener = cluster.listen()
        assert listener.address in repr(cluster)
        assert cluster.broker().core.endpoints == [("PLAINTEXT", "127.0.0.1", listener.port)]
    assert cluster.broker().core.endpoints == []


def deletion(files: SimFiles) -> int:
    """Make a topic and delete it; return the number of file calls."""
    runtime = sim_runtime(seed=3, files=files)
    with suppress(SimulatedCrash), Cluster("data", runtime=runtime) as cluster:
        cluster.create_topic("keep")
        topic = cluster.create_topic("gone", 2)
        cluster.broker().core.controller.delete_topic(topic.topic_id)
    return files.calls


@pytest.mark.slow
def test_a_deletion_interrupted_by_a_crash_is_finished() -> None:
    calls = deletion(SimFiles())
    for call in range(1, calls + 1):
        files = SimFiles()
        files.crash(call, after=True)
        deletion(files)
        survivor = files.survivor()
        with Cluster("data", runtime=sim_runtime(seed=3, files=survivor)) as cluster:
            assert set(cluster.topics) <= {"keep", "gone"}
            # The name is free as soon as its topic is deleted, whatever files the crash left.
            for name in {"keep", "gone"}.difference(cluster.topics):
                cluster.create_topic(name, 2)
            for name in ("keep", "gone"):
                assert cluster.broker().core.replica_manager.partition(name, 0).log.failure is None


def test_an_unclean_stop_begins_new_leader_epochs() -> None:
    files = SimFiles()
    crashed = Cluster("data", runtime=sim_runtime(files=files))
    crashed.create_topic("t", 2)
    with Cluster("data", runtime=sim_runtime(files=files.survivor())) as cluster:
        partitions = cluster.broker().core.controller.image.topics_by_name["t"].partitions
        assert [partition.leader_epoch for partition in partitions] == [1, 1]
        assert cluster.broker().core.replica_manager.partition("t", 0).leader_epoch == 1


def test_a_clean_stop_does_not() -> None:
    files = SimFiles()
    with Cluster("data", runtime=sim_runtime(files=files)) as cluster:
        cluster.create_topic("t")
    with Cluster("data", runtime=sim_runtime(files=files)) as cluster:
        (partition,) = cluster.broker().core.controller.image.topics_by_name["t"].partitions
        assert partition.leader_epoch == 0


def test_every_public_name_is_there_and_nothing_else() -> None:
    for name in embedlog.__all__:
        assert getattr(embedlog, name) is not None, name
    assert set(embedlog.__all__) <= set(dir(embedlog))
    with pytest.raises(AttributeError):
        embedlog.nothing_of_that_name  # noqa: B018


def test_importing_the_package_loads_no_part_of_it() -> None:
    code = "import sys, embedlog; print(*[m for m in sys.modules if m.startswith('embedlog.')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_the_broker_describes_its_listening_address() -> None:
    with embedlog.open() as cluster:
        listener = cluster.listen()
        assert cluster.config.listeners == (f"PLAINTEXT://127.0.0.1:{listener.port}",)


def test_retention_starts_and_recurs_by_the_settings() -> None:
    runtime = sim_runtime(seed=1)
    old = runtime.clock.wall_ms() - 3_600_000
    settings = {"log.initial.task.delay.ms": 5_000, "log.retention.check.interval.ms": 60_000}
    with Cluster(None, {**settings, "log.retention.ms": 1000}, runtime=runtime) as cluster:
        cluster.create_topic("t")
        with cluster.producer() as producer:
            producer.send("t", b"old", timestamp_ms=old).result()
            log = cluster.broker().core.replica_manager.partition("t", 0).log
            assert log.offsets.log_start_offset == 0
            runtime.clock.advance(5_000)
            runtime.scheduler.run_due(runtime.clock.monotonic_ms())
            assert log.offsets.log_start_offset == 1
            producer.send("t", b"old", timestamp_ms=old).result()
            runtime.clock.advance(59_000)
            runtime.scheduler.run_due(runtime.clock.monotonic_ms())
            assert log.offsets.log_start_offset == 1
            runtime.clock.advance(1_001)
            runtime.scheduler.run_due(runtime.clock.monotonic_ms())
            assert log.offsets.log_start_offset == 2


@pytest.mark.parametrize(
    ("config", "expected"), [({}, 2 << 20), ({"offsets.topic.segment.bytes": "5000000"}, 5_000_000)]
)
def test_segments_of_committed_offsets_are_small_unless_a_setting_says_otherwise(
    config: dict[str, str], expected: int
) -> None:
    with embedlog.open(config=config) as cluster:
        cluster.create_topic("t", 1)
        with cluster.consumer(group_id="g") as consumer:
            consumer.commit({("t", 0): 0})
        logs = cluster.broker().core.log_manager.first.logs()
        (offsets,) = (each for each in logs if each.topic_partition.topic == "__consumer_offsets")
        assert offsets.config.segment_bytes == expected
