"""A log directory with a failed disk: its replicas go offline, the others continue, nothing is
lost.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from errno import EIO, EMFILE, ENOSPC

import pytest

from embedlog import TopicPartition
from embedlog.cluster.cluster import Cluster
from embedlog.cluster.faults.network import CONTROLLER
from embedlog.controller.metadata_log import METADATA_PARTITION
from embedlog.coordinator.placement import partition_of
from embedlog.errors import EmbedlogError
from embedlog.replication.replica_manager import ReplicaManager
from embedlog.storage.directory.log_manager import LogManager
from embedlog.testing import SimFiles, SimRuntime, sim_runtime
from tests.cluster.conftest import until
from tests.cluster.test_log_directories import fetch_error, offline, places, send, states
from tests.golden.batches import simple
from tests.golden.requests import produce
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
    """Return whether all replicas are in sync and the controller knows the directory of each."""
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


def produce_error(cluster: Cluster, index: int, version: int) -> int:
    """Produce to a partition of topic "t" and return the error code."""
    topic_id = cluster.broker(1).core.image.topics_by_name["t"].topic_id
    transport = cluster.connect()
    request = produce(("t", topic_id), version, simple(b"x"), partition=index)
    pending = transport.send(1, request, version=version)
    transport.wait(pending, None)
    [answer] = pending.result().responses[0].partition_responses
    return answer.error_code


# A single broker


def test_only_the_replicas_of_a_failed_directory_go_offline(
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
    codes = {3: ErrorCode.KAFKA_STORAGE_ERROR, 2: ErrorCode.NOT_LEADER_OR_FOLLOWER}
    assert {version: produce_error(alone, 1, version) for version in codes} == codes
    files.heal()
    # The broker writes nothing there before its restart.
    assert fetch_error(alone, 1) == ErrorCode.KAFKA_STORAGE_ERROR


@pytest.mark.parametrize("step", [(LogManager, "abandon"), (ReplicaManager, "retire")])
def test_a_directory_goes_offline_though_ctrl_c_comes_meanwhile(
    alone: Cluster,
    files: SimFiles,
    runtime: SimRuntime,
    step: tuple[type, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert send(alone, 1, b"x") == 0
    original = getattr(*step)

    def interrupted(*_arguments: object) -> None:
        monkeypatch.setattr(*step, original)
        raise KeyboardInterrupt

    monkeypatch.setattr(*step, interrupted)
    files.failing["b"] = EIO
    with pytest.raises(KeyboardInterrupt):
        send(alone, 1, b"lost", **IMPATIENT)
        runtime.scheduler.run_for(10)
    runtime.scheduler.run_for(2_000)
    assert list(alone.broker(1).core.replica_manager.partitions) == [("t", 0)]
    assert fetch_error(alone, 1) == ErrorCode.KAFKA_STORAGE_ERROR
    assert send(alone, 0, b"y") == 0


def test_a_repaired_directory_works_after_a_restart(files: SimFiles) -> None:
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


def test_new_logs_go_to_a_working_disk(alone: Cluster, files: SimFiles) -> None:
    files.failing["b"] = EIO
    alone.create_topic("u", 4)  # the first new log for "b" finds the failure
    alone.runtime.scheduler.run_for(10)  # type: ignore[attr-defined]
    alone.create_topic("v", 2)
    assert {"v-0", "v-1"} <= set(places(alone)["a"])


@pytest.mark.parametrize("errno", [ENOSPC, EMFILE])
def test_a_lack_of_space_or_descriptors_takes_no_directory_offline(
    alone: Cluster, files: SimFiles, errno: int
) -> None:
    send(alone, 1, b"x")
    files.failing["b"] = errno
    alone.maintain()
    alone.runtime.scheduler.run_for(1000)  # type: ignore[attr-defined]
    files.heal()
    assert offline(alone) == []
    assert send(alone, 1, b"y") == 1


def test_a_single_broker_continues_when_its_first_disk_fails(
    alone: Cluster, files: SimFiles
) -> None:
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


def test_a_broker_without_its_first_directory_does_not_start(files: SimFiles) -> None:
    with Cluster("a", runtime=sim_runtime(files=files), log_dirs=["b"]):
        pass
    files.failing["a"] = EIO
    with pytest.raises((OSError, EmbedlogError)):
        Cluster("a", runtime=sim_runtime(files=files), log_dirs=["b"])
    files.heal()


def test_a_disk_that_fails_at_the_close_is_logged_and_no_error(
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


@pytest.mark.slow
@pytest.mark.parametrize("is_first_time", [False, True])
def test_a_broker_opens_after_any_failure_in_a_further_directory(*, is_first_time: bool) -> None:
    """Fail each file call of the opening in turn."""
    before = SimFiles()
    log_dirs = ["b"]
    with Cluster("a", runtime=sim_runtime(files=before), log_dirs=log_dirs) as cluster:
        cluster.create_topic("t", 2)
        for index in (0, 1):
            send(cluster, index, b"x")
    if is_first_time:
        log_dirs = ["b", "c"]
    failing = log_dirs[-1]
    whole = before.survivor()
    opened = Cluster("a", runtime=sim_runtime(7, files=whole), log_dirs=log_dirs)
    calls = list(whole.trace)
    opened.close()
    numbers = [
        number
        for number, (_, path) in enumerate(calls)
        if path == failing or path.startswith(f"{failing}/")
    ]
    assert len(numbers) > 10
    for number in numbers:
        files = before.survivor()
        files.fail(number, EIO)
        with Cluster("a", runtime=sim_runtime(7, files=files), log_dirs=log_dirs) as cluster:
            assert send(cluster, 0, b"y") == 1
        files.heal()
        with Cluster("a", runtime=sim_runtime(8, files=files), log_dirs=log_dirs) as cluster:
            assert offline(cluster) == []
            assert [send(cluster, index, b"z") for index in (0, 1)] == [2, 1]


@pytest.mark.parametrize("step", [5, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("errno", [ENOSPC, EIO])
def test_after_any_failure_while_creating_a_topic_its_directories_are_recorded(
    errno: int, step: int
) -> None:
    before = SimFiles()
    Cluster("a", runtime=sim_runtime(files=before), log_dirs=["b"]).close()
    whole = before.survivor()
    cluster = Cluster("a", runtime=sim_runtime(7, files=whole), log_dirs=["b"])
    first = whole.calls
    cluster.create_topic("t", 2)
    numbers = range(first, whole.calls)
    cluster.close()
    assert len(numbers) > 20
    for number in numbers[::step]:
        files = before.survivor()
        runtime = sim_runtime(7, files=files)
        with Cluster("a", runtime=runtime, log_dirs=["b"]) as cluster:
            files.fail(number, errno)
            with suppress(EmbedlogError):
                cluster.create_topic("t", 2)
            runtime.scheduler.run_for(2_000)
            topic = cluster.broker(1).core.image.topics_by_name.get("t")
            served = cluster.broker(1).core.replica_manager.partitions
            metadata_log = cluster.broker(1).core.log_manager.get(METADATA_PARTITION)
            assert metadata_log is not None
            if topic is not None and metadata_log.failure is None:
                assert all(
                    each.directories for each in topic.partitions if ("t", each.partition) in served
                )
        with Cluster("a", runtime=sim_runtime(8, files=files), log_dirs=["b"]) as cluster:
            if "t" not in cluster.topics:
                cluster.create_topic("t", 2)
            assert [send(cluster, index, b"z") for index in (0, 1)] == [0, 0]


# Three brokers


def test_other_brokers_lead_the_partitions_of_a_failed_directory(
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
    # The directory stays offline without a restart, though the broker goes on fetching the others.
    runtime.scheduler.run_for(5_000)
    assert victim not in metadata(three)[index].isr_nodes
    assert three.broker(victim).is_running


def led_in_second(cluster: Cluster) -> tuple[int, int]:
    """Return a broker, and a partition that it leads in its second directory."""
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


def test_a_broker_restarted_without_a_directory_leads_nothing_there(
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


def test_a_cluster_reopens_with_a_directory_left_out(files: SimFiles) -> None:
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


def test_one_of_several_brokers_stops_when_its_first_directory_fails(
    three: Cluster, files: SimFiles
) -> None:
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


def test_a_failure_is_reported_once_the_controller_is_back(
    three: Cluster, files: SimFiles, runtime: SimRuntime
) -> None:
    victim, index = fail_unheard(three, files)
    runtime.scheduler.run_for(200)
    assert_others_take_over(three, victim, index)


def test_a_broker_that_cannot_report_a_failure_stops(
    three: Cluster, files: SimFiles, runtime: SimRuntime
) -> None:
    victim, index = fail_unheard(three, files)
    runtime.scheduler.run_for(29_000)
    assert three.broker(victim).is_running
    runtime.scheduler.run_for(3_000)
    assert [each.node_id for each in three.brokers if not each.is_running] == [victim]
    assert_others_take_over(three, victim, index)


def fail_unheard(cluster: Cluster, files: SimFiles) -> tuple[int, int]:
    """Stop the controller, then fail the second directory of a broker, and a partition that it
    leads.
    """
    victim, index = led_in_second(cluster)
    cluster.controller.stop()
    files.failing[second(victim)] = EIO
    with pytest.raises(EmbedlogError):
        send(cluster, index, b"lost", acks="all", **IMPATIENT)
    return victim, index


def assert_others_take_over(cluster: Cluster, victim: int, index: int) -> None:
    cluster.controller.start()
    until(cluster, lambda: metadata(cluster)[index].leader_id not in (victim, -1))
    assert send(cluster, index, b"y", acks="all") == 0


def test_a_second_failure_has_its_own_time_limit_for_its_report(
    files: SimFiles, runtime: SimRuntime
) -> None:
    with Cluster("a", brokers=3, runtime=runtime, is_embedded=True, log_dirs=["b", "c"]) as three:
        runtime.scheduler.run_for(1_000)
        _, *others = three.broker(2).core.log_manager.managers
        three.network.delay(2, CONTROLLER, 500)
        for owner in others:
            path = owner.directory.path
            files.failing[path] = EIO
            with suppress(OSError):
                owner.directory.files.list(path)
            runtime.scheduler.run_for(100)
        controller = three.controller.core
        assert controller is not None
        until(three, lambda: len(controller.image.brokers[2].directories) == 2)
        three.network.cut(2, CONTROLLER)
        runtime.scheduler.run_for(32_000)
        assert not three.broker(2).is_running


def test_directories_in_memory_of_several_brokers() -> None:
    with Cluster(brokers=2, runtime=sim_runtime(), is_embedded=True, log_dirs=["b"]) as cluster:
        cluster.create_topic("t", 2, replication_factor=2)
        assert places(cluster, 2) == {"memory/broker-2": ["t-0"], "b/broker-2": ["t-1"]}


def test_a_topic_deleted_while_its_directory_was_missing_is_removed_later(
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


# Coordinators


def commit(cluster: Cluster, group: str, offset: int) -> None:
    """Commit an offset of the group as a member that owns the partition."""
    with cluster.admin() as admin:
        refused = admin.alter_group_offsets(group, {TopicPartition("t", 0): offset}).errors
    if refused:
        raise next(iter(refused.values()))


def committed(cluster: Cluster, group: str) -> int:
    with cluster.admin() as admin:
        return admin.list_group_offsets([group])[group][TopicPartition("t", 0)].offset


def groups_by_directory(cluster: Cluster, node_id: int = 1) -> dict[str, str]:
    """Return a group for each directory of a single broker that has its offsets there."""
    found: dict[str, str] = {}
    for number in range(40):
        group = f"g{number}"
        commit(cluster, group, 1)
        index = partition_of(group, 4)
        for path, logs in places(cluster, node_id).items():
            if f"__consumer_offsets-{index}" in logs:
                found.setdefault(path, group)
    return found


def test_only_groups_of_a_failed_directory_wait(files: SimFiles, runtime: SimRuntime) -> None:
    config = {"offsets.topic.num.partitions": "4"}
    with Cluster("a", config, runtime=runtime, is_embedded=True, log_dirs=["b"]) as cluster:
        cluster.create_topic("t", 1)
        groups = groups_by_directory(cluster)
        assert set(groups) == {"a", "b"}
        files.failing["b"] = EIO
        with pytest.raises(EmbedlogError), cluster.admin() as admin:
            stored = {TopicPartition("t", 0): 2}
            refused = admin.alter_group_offsets(groups["b"], stored, timeout_ms=300).errors
            raise next(iter(refused.values()))
        runtime.scheduler.run_for(100)
        commit(cluster, groups["a"], 2)
        assert committed(cluster, groups["a"]) == 2
    files.heal()
    runtime = sim_runtime(files=files)
    with Cluster("a", config, runtime=runtime, is_embedded=True, log_dirs=["b"]) as cluster:
        assert committed(cluster, groups["a"]) == 2
        assert committed(cluster, groups["b"]) == 1
        commit(cluster, groups["b"], 3)
        assert committed(cluster, groups["b"]) == 3


def test_groups_of_several_brokers_move_to_another_broker(
    files: SimFiles, runtime: SimRuntime
) -> None:
    config = {"offsets.topic.num.partitions": "1", "offsets.topic.replication.factor": "3"}
    with Cluster(
        "a", config, brokers=3, runtime=runtime, is_embedded=True, log_dirs=["b"]
    ) as cluster:
        cluster.create_topic("t", 1, replication_factor=3)
        commit(cluster, "g", 1)
        until(cluster, lambda: committed(cluster, "g") == 1)
        leader = cluster.partition("__consumer_offsets", 0).leader
        until(cluster, lambda: set(cluster.partition("__consumer_offsets", 0).isr) == {1, 2, 3})
        assert "__consumer_offsets-0" in places(cluster, leader)[second(leader)]
        files.failing[second(leader)] = EIO
        commit(cluster, "g", 2)
        assert committed(cluster, "g") == 2
        assert cluster.partition("__consumer_offsets", 0).leader not in (leader, -1)
