"""A log directory whose disk fails: its replicas are offline, the others go on, nothing is lost."""

from __future__ import annotations

from collections.abc import Iterator
from errno import EIO, EMFILE, ENOSPC

import pytest

from embedlog import TopicPartition
from embedlog.cluster import Cluster
from embedlog.errors import EmbedlogError
from embedlog.testing import SimFiles, SimRuntime, sim_runtime
from tests.brokers.conftest import until
from tests.brokers.test_log_directories import fetch_error, offline, places, send, states
from wire.error_codes import ErrorCode
from wire.schemas.metadata import MetadataRequest, MetadataResponsePartition

IMPATIENT = {"retries": 0, "delivery_timeout_ms": 300, "request_timeout_ms": 200}


@pytest.fixture
def files() -> SimFiles:
    return SimFiles()


@pytest.fixture
def runtime(files: SimFiles) -> SimRuntime:
    return sim_runtime(seed=5, files=files)


@pytest.fixture
def alone(runtime: SimRuntime) -> Iterator[Cluster]:
    with Cluster("a", runtime=runtime, is_embedded=True, log_dirs=["b"]) as made:
        made.create_topic("t", 2)
        yield made


@pytest.fixture
def three(runtime: SimRuntime) -> Iterator[Cluster]:
    with Cluster("a", brokers=3, runtime=runtime, is_embedded=True, log_dirs=["b"]) as made:
        made.create_topic("t", 4, replication_factor=3)
        until(made, lambda: is_settled(made))
        yield made


def is_settled(cluster: Cluster) -> bool:
    """Do all replicas replicate, and does the controller know where each lies?"""
    image = cluster.broker(1).core.image
    return all(
        len(each.isr) == len(each.directories) == len(each.replicas)
        for each in image.topics_by_name["t"].partitions
    )


def metadata(cluster: Cluster) -> list[MetadataResponsePartition]:
    transport = cluster.connect()
    pending = transport.send(-1, MetadataRequest(topics=None))
    transport.wait(pending, None)
    [topic] = pending.result().topics
    return topic.partitions


# Alone


def test_alone_the_replicas_of_a_failed_directory_are_offline_and_the_others_go_on(
    alone: Cluster, files: SimFiles, runtime: SimRuntime
) -> None:
    assert [send(alone, index, b"x") for index in (0, 1)] == [0, 0]
    files.failing["b"] = EIO
    with pytest.raises(EmbedlogError):
        send(alone, 1, b"lost", **IMPATIENT)
    runtime.scheduler.run_for(10)
    assert states(alone)[0] == (1, (1,))
    assert states(alone)[1][0] == -1
    assert fetch_error(alone, 1) == ErrorCode.KAFKA_STORAGE_ERROR
    assert send(alone, 0, b"y") == 1
    assert offline(alone) == ["b"]
    assert places(alone) == {"a": ["t-0"]}
    [told] = [each for each in alone.health() if each.kind == "offline"]
    assert told.subject == "b"
    [well, ill] = metadata(alone)
    assert (well.leader_id, well.offline_replicas, well.error_code) == (1, [], 0)
    assert (ill.leader_id, ill.offline_replicas) == (-1, [1])
    assert ill.error_code == ErrorCode.LEADER_NOT_AVAILABLE
    files.heal()
    # Nothing is written there again before the broker is restarted.
    assert fetch_error(alone, 1) == ErrorCode.KAFKA_STORAGE_ERROR


def test_a_directory_that_comes_back_works_after_a_restart(files: SimFiles) -> None:
    cluster = Cluster("a", runtime=sim_runtime(files=files), log_dirs=["b"])
    cluster.create_topic("t", 2)
    assert send(cluster, 1, b"x") == 0
    files.failing["b"] = EIO
    with pytest.raises(EmbedlogError):
        send(cluster, 1, b"lost", **IMPATIENT)
    cluster.close()
    with Cluster("a", runtime=sim_runtime(files=files), log_dirs=["b"]) as cluster:
        assert offline(cluster) == ["b"]
        assert fetch_error(cluster, 1) == ErrorCode.KAFKA_STORAGE_ERROR
        assert send(cluster, 0, b"y") == 0
    files.heal()
    with Cluster("a", runtime=sim_runtime(files=files), log_dirs=["b"]) as cluster:
        assert offline(cluster) == []
        assert [leader for leader, _ in states(cluster)] == [1, 1]
        assert send(cluster, 1, b"z") == 1


def test_new_logs_go_where_a_disk_works(alone: Cluster, files: SimFiles) -> None:
    files.failing["b"] = EIO
    alone.create_topic("u", 4)  # one that comes to "b" finds out
    alone.runtime.scheduler.run_for(10)  # type: ignore[attr-defined]
    alone.create_topic("v", 2)
    assert {"v-0", "v-1"} <= set(places(alone)["a"])


@pytest.mark.parametrize("errno", [ENOSPC, EMFILE])
def test_what_runs_short_takes_no_directory_offline(
    alone: Cluster, files: SimFiles, errno: int
) -> None:
    send(alone, 1, b"x")
    files.failing["b"] = errno
    alone.maintain()
    alone.runtime.scheduler.run_for(1000)  # type: ignore[attr-defined]
    files.heal()
    assert offline(alone) == []
    assert send(alone, 1, b"y") == 1


def test_the_only_broker_goes_on_when_its_first_disk_fails(alone: Cluster, files: SimFiles) -> None:
    files.failing["a"] = EIO
    with pytest.raises(EmbedlogError):
        send(alone, 0, b"lost", **IMPATIENT)
    assert send(alone, 1, b"y") == 0
    files.heal()


def test_a_directory_that_was_unmounted_is_offline(alone: Cluster, files: SimFiles) -> None:
    files.rename("b", "elsewhere")
    alone.maintain()
    alone.runtime.scheduler.run_for(120_000)  # type: ignore[attr-defined]
    send(alone, 0, b"x")
    assert fetch_error(alone, 1) == ErrorCode.KAFKA_STORAGE_ERROR
    assert offline(alone) == ["b"]


def test_a_broker_whose_first_directory_is_away_does_not_start(files: SimFiles) -> None:
    with Cluster("a", runtime=sim_runtime(files=files), log_dirs=["b"]):
        pass
    files.failing["a"] = EIO
    with pytest.raises((OSError, EmbedlogError)):
        Cluster("a", runtime=sim_runtime(files=files), log_dirs=["b"])
    files.heal()


def test_a_disk_that_fails_while_the_broker_is_closed_is_told_and_no_error(
    files: SimFiles, caplog: pytest.LogCaptureFixture
) -> None:
    cluster = Cluster("a", runtime=sim_runtime(files=files), log_dirs=["b"])
    cluster.create_topic("t", 2)
    for index in (0, 1):
        send(cluster, index, b"x")
    files.failing["b"] = EIO
    cluster.close()
    assert "b is offline" in caplog.text
    assert files.stat("a/.kafka_cleanshutdown") is not None
    files.heal()
    with Cluster("a", runtime=sim_runtime(files=files), log_dirs=["b"]) as cluster:
        assert [send(cluster, index, b"y") for index in (0, 1)] == [1, 1]


# Three brokers


def test_others_lead_what_lay_in_a_directory_that_failed_and_nothing_is_lost(
    three: Cluster, files: SimFiles, runtime: SimRuntime
) -> None:
    victim, index = led_in_second(three)
    with three.producer(acks="all") as producer:
        for number in range(4):
            for value in (b"1", b"2"):
                producer.send("t", value, partition=number).result()
        files.failing[f"b/broker-{victim}"] = EIO
        for number in range(4):
            assert producer.send("t", b"3", partition=number).result().offset == 2
    until(three, lambda: all(victim not in isr for isr in lost_isrs(three, victim)))
    state = metadata(three)[index]
    assert state.leader_id not in (victim, -1)
    assert victim not in state.isr_nodes
    assert state.offline_replicas == [victim]
    assert offline(three, victim) == [f"b/broker-{victim}"]
    assert any(each.kind == "offline" for each in three.health())
    assert values_of(three, index) == [b"1", b"2", b"3"]
    # It does not come back by itself, though the broker goes on fetching the others.
    runtime.scheduler.run_for(5_000)
    assert victim not in metadata(three)[index].isr_nodes
    assert three.broker(victim).is_running


def led_in_second(cluster: Cluster) -> tuple[int, int]:
    """A broker and a partition that it leads, in its second directory."""
    for index, each in enumerate(metadata(cluster)):
        if f"t-{index}" in places(cluster, each.leader_id)[second(each.leader_id)]:
            return each.leader_id, index
    raise AssertionError("nobody leads anything there")


def second(node_id: int) -> str:
    return f"b/broker-{node_id}"


def lost_isrs(cluster: Cluster, victim: int) -> list[list[int]]:
    return [each.isr_nodes for each in metadata(cluster) if victim in each.offline_replicas]


def values_of(cluster: Cluster, index: int) -> list[bytes | None]:
    with cluster.consumer() as consumer:
        place = TopicPartition("t", index)
        consumer.assign([place])
        consumer.seek_to_beginning(place)
        found: list[bytes | None] = []
        while len(found) < 3:
            found += [record.value for record in consumer.poll(1000)]
    return found


def test_a_broker_that_restarts_without_a_directory_leads_nothing_there(
    three: Cluster, files: SimFiles
) -> None:
    victim, index = led_in_second(three)
    send(three, index, b"x", acks="all")
    three.broker(victim).stop()
    files.failing[second(victim)] = EIO
    three.broker(victim).start()
    until(three, lambda: metadata(three)[index].offline_replicas == [victim])
    until(three, lambda: victim in metadata(three)[(index + 1) % 4].isr_nodes)
    assert victim not in metadata(three)[index].isr_nodes
    files.heal()
    three.broker(victim).stop()
    three.broker(victim).start()
    until(three, lambda: victim in metadata(three)[index].isr_nodes)
    assert metadata(three)[index].offline_replicas == []


def test_all_open_again_with_a_directory_left_out(files: SimFiles) -> None:
    with Cluster("a", brokers=3, runtime=sim_runtime(files=files), log_dirs=["b"]) as cluster:
        cluster.create_topic("t", 4, replication_factor=1)
        until(cluster, lambda: is_settled(cluster))
        for index in range(4):
            send(cluster, index, b"x")
        lost = [
            index
            for index, each in enumerate(metadata(cluster))
            if f"t-{index}" in places(cluster, each.leader_id)[second(each.leader_id)]
        ]
        assert lost
    with Cluster("a", brokers=3, runtime=sim_runtime(files=files)) as cluster:
        assert [index for index, each in enumerate(metadata(cluster)) if each.leader_id < 0] == lost
    with Cluster("a", brokers=3, runtime=sim_runtime(files=files), log_dirs=["b"]) as cluster:
        until(cluster, lambda: all(each.leader_id > 0 for each in metadata(cluster)))
        assert [send(cluster, index, b"y") for index in range(4)] == [1] * 4


def test_one_of_several_ends_with_its_first_directory(three: Cluster, files: SimFiles) -> None:
    victim = 2
    files.failing[f"a/broker-{victim}"] = EIO
    with three.producer(acks="all") as producer:
        for index in range(4):
            producer.send("t", b"x", partition=index).result()
    until(three, lambda: not three.broker(victim).is_running)
    with three.producer(acks="all") as producer:
        for index in range(4):
            assert producer.send("t", b"y", partition=index).result().offset == 1
    files.heal()
    three.broker(victim).start()
    until(three, lambda: is_settled(three))


def test_a_failure_while_the_controller_is_away_is_told_when_it_is_back(
    three: Cluster, files: SimFiles, runtime: SimRuntime
) -> None:
    victim, index = led_in_second(three)
    three.controller.stop()
    files.failing[second(victim)] = EIO
    with pytest.raises(EmbedlogError):
        send(three, index, b"lost", acks="all", **IMPATIENT)
    runtime.scheduler.run_for(200)
    three.controller.start()
    until(three, lambda: metadata(three)[index].leader_id not in (victim, -1))
    assert send(three, index, b"y", acks="all") == 0


def test_directories_in_memory_of_several_brokers() -> None:
    with Cluster(brokers=2, runtime=sim_runtime(), is_embedded=True, log_dirs=["b"]) as cluster:
        cluster.create_topic("t", 2, replication_factor=2)
        assert places(cluster, 2) == {"memory/broker-2": ["t-0"], "b/broker-2": ["t-1"]}


def test_a_topic_deleted_while_its_directory_was_away_is_gone_when_it_is_back(
    files: SimFiles,
) -> None:
    with Cluster("a", runtime=sim_runtime(files=files), log_dirs=["b"]) as cluster:
        cluster.create_topic("t", 2)
        send(cluster, 1, b"x")
    with Cluster("a", runtime=sim_runtime(files=files)) as cluster, cluster.admin() as admin:
        admin.delete_topics(["t"])
        cluster.create_topic("t", 2)
        assert places(cluster)["a"] == ["t-0", "t-1"]
        assert send(cluster, 1, b"y") == 0
    with Cluster("a", runtime=sim_runtime(files=files), log_dirs=["b"]) as cluster:
        assert places(cluster) == {"a": ["t-0", "t-1"], "b": []}
        assert send(cluster, 1, b"z") == 1
