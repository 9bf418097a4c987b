"""Three brokers in one process: they replicate, fail, take over, and come back."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from embedlog import errors
from embedlog.client.errors import IllegalState
from embedlog.cluster.cluster import Cluster
from embedlog.cluster.faults.network import CONTROLLER
from embedlog.cluster.handles.broker_node import BrokerNode
from embedlog.common import TopicPartition
from embedlog.errors import ClosedError, ConfigError
from embedlog.runtime.files import write_whole
from embedlog.testing import SimRuntime, sim_runtime
from tests.cluster.conftest import RACKS, leader_of, until
from wire.schemas.describe_cluster import DescribeClusterRequest
from wire.schemas.metadata import MetadataRequest

TOPIC = "events"


def make_topic(cluster: Cluster, **config: str) -> None:
    settings = {"min.insync.replicas": "2", **{k.replace("_", "."): v for k, v in config.items()}}
    cluster.create_topic(TOPIC, 1, replication_factor=3, config=settings)


def produce(cluster: Cluster, *values: bytes, acks: str = "all") -> list[int]:
    with cluster.producer(acks=acks) as producer:
        futures = [producer.send(TOPIC, value) for value in values]
        return [future.result().offset for future in futures]


def consume(cluster: Cluster, count: int) -> list[bytes]:
    with cluster.consumer(auto_offset_reset="earliest") as consumer:
        consumer.assign([(TOPIC, 0)])
        values: list[bytes] = []
        for _ in range(100):
            values += [record.value for record in consumer.poll(1_000)]
            if len(values) >= count:
                return values
    return values


def all_in_sync(cluster: Cluster) -> bool:
    return len(cluster.partition(TOPIC, 0).isr) == 3


def test_records_acknowledged_by_all_are_on_every_broker(cluster: Cluster) -> None:
    make_topic(cluster)
    assert produce(cluster, b"a", b"b", b"c") == [0, 1, 2]
    assert cluster.partition(TOPIC, 0).end_offsets == {1: 3, 2: 3, 3: 3}
    assert consume(cluster, 3) == [b"a", b"b", b"c"]


def test_followers_learn_the_high_watermark(cluster: Cluster) -> None:
    make_topic(cluster)
    produce(cluster, b"a")
    partition = cluster.partition(TOPIC, 0)
    until(cluster, lambda: partition.high_watermarks == {1: 1, 2: 1, 3: 1})


def test_metadata_names_every_broker_and_its_rack(cluster: Cluster) -> None:
    transport = cluster.broker(2).connect()
    told = transport.send(-1, MetadataRequest(topics=None)).result()
    assert [(each.node_id, each.rack) for each in told.brokers] == [(1, "a"), (2, "b"), (3, "c")]


@pytest.mark.parametrize("end", [BrokerNode.kill, BrokerNode.stop])
def test_metadata_names_a_stopped_broker_until_clients_have_moved(
    cluster: Cluster, runtime: SimRuntime, end: Callable[[BrokerNode], None]
) -> None:
    make_topic(cluster)
    former = leader_of(cluster, TOPIC)
    other = cluster.broker(former.node_id % 3 + 1)
    end(former)

    def told() -> tuple[int, bool]:
        answer = other.connect().send(-1, MetadataRequest(topics=None)).result()
        topic = next(each for each in answer.topics if each.name == TOPIC)
        assert topic.partitions[0].leader_id not in (former.node_id, -1)
        assert answer.controller_id != former.node_id
        return len(answer.brokers), former.node_id in [each.node_id for each in answer.brokers]

    assert told() == (3, True)
    described = other.connect().send(-1, DescribeClusterRequest()).result()
    assert former.node_id not in [each.broker_id for each in described.brokers]
    runtime.scheduler.run_for(499)
    assert told() == (3, True)
    runtime.scheduler.run_for(1)
    assert told() == (2, False)
    former.start()
    assert told() == (3, True)


@pytest.mark.parametrize("loses", [False, True])
def test_a_killed_leader_loses_no_records_that_all_replicas_had(
    cluster: Cluster, loses: bool
) -> None:
    make_topic(cluster)
    produce(cluster, b"a", b"b")
    former = leader_of(cluster, TOPIC)
    former.kill(lose_unsynced=loses)
    partition = cluster.partition(TOPIC, 0)
    assert partition.leader not in (-1, former.node_id)
    assert produce(cluster, b"c") == [2]
    former.start()
    until(cluster, lambda: all_in_sync(cluster))
    assert partition.end_offsets == {1: 3, 2: 3, 3: 3}
    assert consume(cluster, 3) == [b"a", b"b", b"c"]


@pytest.mark.slow
def test_a_producer_continues_with_the_next_leader(cluster: Cluster) -> None:
    make_topic(cluster)
    with cluster.producer(acks="all") as producer:
        for number in range(6):
            assert producer.send(TOPIC, b"%d" % number).result().offset == number
            former = leader_of(cluster, TOPIC)
            former.kill() if number % 2 else former.stop()
            former.start()
            until(cluster, lambda: all_in_sync(cluster))
    assert consume(cluster, 6) == [b"%d" % number for number in range(6)]


def test_failover_takes_almost_no_virtual_time(cluster: Cluster, runtime: SimRuntime) -> None:
    make_topic(cluster)
    with cluster.producer(acks="all") as producer:
        producer.send(TOPIC, b"before").result()
        for number in range(4):
            former = leader_of(cluster, TOPIC)
            killed_ms = runtime.clock.monotonic_ms()
            former.kill() if number % 2 else former.stop()
            producer.send(TOPIC, b"after").result()
            assert runtime.clock.monotonic_ms() - killed_ms < 10
            former.start()
            until(cluster, lambda: all_in_sync(cluster))


def test_a_stopped_leader_hands_over_first(cluster: Cluster) -> None:
    make_topic(cluster)
    produce(cluster, b"a")
    former = leader_of(cluster, TOPIC)
    epoch = cluster.partition(TOPIC, 0).leader_epoch
    former.stop()
    assert cluster.partition(TOPIC, 0).leader_epoch == epoch + 1
    assert produce(cluster, b"b") == [1]
    former.start()
    until(cluster, lambda: all_in_sync(cluster))


def test_a_paused_leader_is_replaced_after_its_session(cluster: Cluster) -> None:
    make_topic(cluster)
    produce(cluster, b"a")
    former = leader_of(cluster, TOPIC)
    former.pause()
    assert cluster.partition(TOPIC, 0).leader == former.node_id
    until(cluster, lambda: cluster.partition(TOPIC, 0).leader != former.node_id, 15_000)
    assert produce(cluster, b"b") == [1]
    former.resume()
    until(cluster, lambda: all_in_sync(cluster))
    assert cluster.partition(TOPIC, 0).end_offsets == {1: 2, 2: 2, 3: 2}


def test_too_few_in_sync_replicas_refuse_only_acks_all(cluster: Cluster) -> None:
    make_topic(cluster)
    leader = cluster.partition(TOPIC, 0).leader
    for node in cluster.brokers:
        if node.node_id != leader:
            node.kill()
    assert cluster.partition(TOPIC, 0).isr == (leader,)
    with (
        cluster.producer(acks="all", retries=0) as producer,
        pytest.raises(errors.NotEnoughReplicas),
    ):
        producer.send(TOPIC, b"a").result()
    assert produce(cluster, b"b", acks="1") == [0]


def test_a_leader_without_the_controller_knows_min_insync_replicas(cluster: Cluster) -> None:
    make_topic(cluster)
    leader = leader_of(cluster, TOPIC)
    leader.hold_metadata()
    cluster.network.split({leader.node_id}, {1, 2, 3} - {leader.node_id})
    produce(cluster, b"a", acks="1")
    until(cluster, lambda: cluster.partition(TOPIC, 0).isr == (leader.node_id,))
    with (
        cluster.producer(acks="all", retries=0) as producer,
        pytest.raises(errors.NotEnoughReplicas),
    ):
        producer.send(TOPIC, b"b").result()
    assert cluster.partition(TOPIC, 0).high_watermarks[leader.node_id] == 0


@pytest.mark.slow
def test_a_leader_cut_off_from_its_followers_shrinks_the_isr(cluster: Cluster) -> None:
    make_topic(cluster)
    leader = cluster.partition(TOPIC, 0).leader
    others = {1, 2, 3} - {leader}
    cluster.network.split({leader}, others)
    produce(cluster, b"a", acks="1")
    until(cluster, lambda: cluster.partition(TOPIC, 0).isr == (leader,))
    cluster.network.heal()
    until(cluster, lambda: all_in_sync(cluster))
    assert cluster.partition(TOPIC, 0).end_offsets == {1: 1, 2: 1, 3: 1}


def test_an_acks_1_record_without_followers_is_truncated(cluster: Cluster) -> None:
    make_topic(cluster)
    produce(cluster, b"a")
    partition = cluster.partition(TOPIC, 0)
    former = leader_of(cluster, TOPIC)
    for node_id in {1, 2, 3} - {former.node_id}:
        partition.hold(node_id)
    assert produce(cluster, b"lost", acks="1") == [1]
    former.kill()
    for node_id in {1, 2, 3} - {former.node_id}:
        partition.release(node_id)
    assert produce(cluster, b"b") == [1]
    former.start()
    until(cluster, lambda: all_in_sync(cluster))
    assert consume(cluster, 2) == [b"a", b"b"]
    assert partition.end_offsets == {1: 2, 2: 2, 3: 2}


def test_without_the_controller_records_are_taken_and_new_topics_wait(cluster: Cluster) -> None:
    make_topic(cluster)
    with cluster.producer() as producer:
        producer.send(TOPIC, b"first").result()  # the broker has its block of producer ids now
        cluster.controller.stop()
        assert producer.send(TOPIC, b"a").result().offset == 1
    assert produce(cluster, b"another producer") == [2]
    admin = cluster.admin(request_timeout_ms=1_000, default_api_timeout_ms=2_000)
    with admin, pytest.raises(errors.EmbedlogError):
        admin.create_topics(["later"])
    cluster.controller.start()
    assert "later" in cluster.topics  # the request waited for the controller without its client
    assert produce(cluster, b"b") == [3]


def test_a_broker_with_old_metadata_answers_kafkas_errors(cluster: Cluster) -> None:
    make_topic(cluster)
    partition = cluster.partition(TOPIC, 0)
    former = partition.leader
    target = next(each for each in (1, 2, 3) if each != former)
    cluster.broker(target).hold_metadata()
    partition.move_to(target)
    assert partition.leader == target
    assert not cluster.broker(target).core.replica_manager.partition(TOPIC, 0).is_leader
    cluster.broker(target).release_metadata()
    assert cluster.broker(target).core.replica_manager.partition(TOPIC, 0).is_leader
    assert produce(cluster, b"a") == [0]


def test_a_partition_moves_to_a_broker_without_a_replica(cluster: Cluster) -> None:
    cluster.create_topic("lone", 1, replication_factor=1)
    partition = cluster.partition("lone", 0)
    target = next(each for each in (1, 2, 3) if each not in partition.replicas)
    with cluster.producer() as producer:
        producer.send("lone", b"a").result()
    partition.reassign([target])
    until(cluster, lambda: partition.replicas == (target,))
    assert partition.leader == target
    assert partition.end_offsets == {target: 1}


@pytest.mark.slow
def test_a_group_continues_at_its_new_coordinator(cluster: Cluster) -> None:
    make_topic(cluster)
    with cluster.consumer(group_id="g", auto_offset_reset="earliest") as consumer:
        consumer.subscribe([TOPIC])
        produce(cluster, b"a")
        values = [record.value for _ in range(20) for record in consumer.poll(1_000)]
        consumer.commit()
        former = leader_of(cluster, "__consumer_offsets", _group_partition(cluster, "g"))
        former.kill()
        produce(cluster, b"b")
        values += [record.value for _ in range(60) for record in consumer.poll(1_000)]
        consumer.commit()
    assert values == [b"a", b"b"]
    with cluster.consumer(group_id="g") as again:
        assert again.committed([(TOPIC, 0)])[TopicPartition(TOPIC, 0)].offset == 2


def _group_partition(cluster: Cluster, group: str) -> int:
    node = next(each for each in cluster.brokers if each.is_running)
    return node.core.group_coordinator.partition_for(group)


def test_a_reopened_cluster_continues_unchanged(runtime: SimRuntime) -> None:
    with Cluster("data", brokers=3, racks=RACKS, runtime=runtime, is_embedded=True) as cluster:
        make_topic(cluster)
        produce(cluster, b"a")
        before = cluster.partition(TOPIC, 0)
        was = before.leader, before.isr, before.leader_epoch
        cluster_id = cluster.cluster_id
    with Cluster("data", runtime=sim_runtime(files=runtime.files)) as again:
        assert again.cluster_id == cluster_id
        assert [node.node_id for node in again.brokers] == [1, 2, 3]
        after = again.partition(TOPIC, 0)
        assert (after.leader, after.isr, after.leader_epoch) == was
        assert produce(again, b"b") == [1]
        assert consume(again, 2) == [b"a", b"b"]


def test_a_cluster_elects_new_leaders_after_a_crash_and_loses_nothing(runtime: SimRuntime) -> None:
    cluster = Cluster("data", brokers=3, runtime=runtime, is_embedded=True)
    make_topic(cluster)
    produce(cluster, b"a")
    with Cluster("data", runtime=sim_runtime(files=runtime.files.survivor())) as again:
        until(again, lambda: all_in_sync(again))
        assert produce(again, b"b") == [1]
        assert consume(again, 2) == [b"a", b"b"]


def test_a_broker_stopped_before_the_others_reopens_with_them(
    runtime: SimRuntime,
) -> None:
    with Cluster("data", brokers=3, runtime=runtime, is_embedded=True) as cluster:
        make_topic(cluster)
        cluster.broker(3).stop()
    with Cluster("data", runtime=sim_runtime(files=runtime.files)) as again:
        until(again, lambda: all_in_sync(again))


@pytest.mark.parametrize("ends", ["stop", "kill"])
def test_a_broker_restarts_although_the_controller_missed_its_stop(
    cluster: Cluster, runtime: SimRuntime, ends: str
) -> None:
    make_topic(cluster)
    cluster.controller.stop()
    getattr(cluster.broker(3), ends)()
    cluster.controller.start()
    runtime.scheduler.run_for(1_000)  # it waits for the broker's session to end
    cluster.broker(3).start()
    until(cluster, lambda: all_in_sync(cluster))


def test_a_broker_that_cannot_reach_the_controller_does_not_start(cluster: Cluster) -> None:
    node = cluster.broker(2)
    node.kill()
    cluster.network.split({CONTROLLER, 1, 3}, {2})
    with pytest.raises(IllegalState, match="broker 2 cannot start: it is cut off the controller"):
        node.start()
    assert not node.is_running
    cluster.network.heal()
    node.start()
    assert node.is_running


def test_a_broker_may_join_and_leave(cluster: Cluster) -> None:
    node = cluster.add_broker(rack="d")
    assert node.node_id == 4
    cluster.create_topic("four", 1, replication_factor=4)
    assert set(cluster.partition("four", 0).isr) == {1, 2, 3, 4}
    cluster.remove_broker(4)
    with pytest.raises(ConfigError):
        cluster.broker(4)
    assert set(cluster.partition("four", 0).isr) == {1, 2, 3}


def test_a_stopped_broker_refuses_calls_clearly(cluster: Cluster) -> None:
    node = cluster.broker(2)
    node.kill()
    assert not node.is_running
    with pytest.raises(ClosedError):
        _ = node.core
    with pytest.raises(IllegalState):
        node.kill()
    node.start()
    with pytest.raises(IllegalState):
        node.start()
    assert node.is_running


@pytest.mark.parametrize(
    ("brokers", "racks"), [(0, ()), (3, ("a",)), (1, ("a",)), (None, ("a",)), (3, "abc")]
)
def test_invalid_numbers_and_racks_are_refused(brokers: int | None, racks: object) -> None:
    with pytest.raises(ConfigError):
        Cluster(brokers=brokers, racks=racks)  # type: ignore[arg-type]


def test_a_directory_keeps_its_number_of_brokers(runtime: SimRuntime) -> None:
    with Cluster("one", runtime=runtime):
        pass
    with pytest.raises(ConfigError, match="belongs to one broker"):
        Cluster("one", brokers=3, runtime=sim_runtime(files=runtime.files))
    with Cluster("three", brokers=3, runtime=runtime):
        pass
    with pytest.raises(ConfigError, match="belongs to 3 brokers"):
        Cluster("three", brokers=1, runtime=sim_runtime(files=runtime.files))


def test_a_refused_broker_does_not_run_and_may_start_later(
    cluster: Cluster, runtime: SimRuntime
) -> None:
    make_topic(cluster)
    third = cluster.broker(3)
    third.stop()
    own, other = (f"data/broker-{node_id}/meta.properties" for node_id in (3, 1))
    content = runtime.files.read(own)
    its_id, taken_id = (
        line
        for path in (own, other)
        for line in runtime.files.read(path).splitlines()
        if line.startswith(b"directory.id=")
    )
    write_whole(runtime.files, own, content.replace(its_id, taken_id), sync=True)
    for _ in range(2):  # the failed first start leaves nothing that would break the next
        with pytest.raises(errors.InvalidRegistration):
            third.start()
        assert not third.is_running
    write_whole(runtime.files, own, content, sync=True)
    third.start()
    until(cluster, lambda: all_in_sync(cluster))
    produce(cluster, b"a")
    assert cluster.partition(TOPIC, 0).end_offsets == {1: 1, 2: 1, 3: 1}


@pytest.mark.slow
def test_a_record_is_stored_once_if_its_leader_is_killed(cluster: Cluster) -> None:
    """A killed leader may lose its answer, in process as over a network."""
    make_topic(cluster)
    partition = cluster.partition(TOPIC, 0)
    behind = partition.replicas[2]
    with cluster.producer() as producer:
        producer.send(TOPIC, b"a").result()
        partition.hold(behind)
        future = producer.send(TOPIC, b"b")
        until(cluster, lambda: sorted(partition.end_offsets.values()) == [1, 2, 2])
        cluster.broker(partition.leader).kill()
        partition.release(behind)
        assert future.result().offset == 1
    assert consume(cluster, 3) == [b"a", b"b"]


def test_a_follower_held_twice_follows_after_one_release(cluster: Cluster) -> None:
    cluster.create_topic("t", 1, replication_factor=3)
    partition = cluster.partition("t", 0)
    behind = next(node for node in partition.replicas if node != partition.leader)
    with cluster.producer(acks=1) as producer:
        partition.hold(behind)
        producer.send("t", b"1").result()
        until(cluster, lambda: sorted(partition.end_offsets.values()) == [0, 1, 1])
        partition.hold(behind)
        partition.release(behind)
        # Later, a change of the in-sync set would resume the fetches anyway.
        until(cluster, lambda: set(partition.high_watermarks.values()) == {1}, 5_000)


@pytest.mark.parametrize("is_full", [False, True])
def test_a_broker_that_lost_unsynced_records_does_not_lead(
    runtime: SimRuntime, is_full: bool
) -> None:
    """The whole process is killed before the controller learns of the loss."""
    killed = Cluster("data", brokers=3, durability="os", runtime=runtime, is_embedded=True)
    killed.create_topic("t", 1, replication_factor=3, config={"min.insync.replicas": 2})
    with killed.producer(acks="all") as producer:
        for number in range(5):
            producer.send("t", b"%d" % number).result()
    killed.network.split({3}, {CONTROLLER, 1, 2})
    if is_full:
        killed.broker(3).disk.fill()
    killed.broker(3).kill(lose_unsynced=True)
    assert set(killed.partition("t", 0).isr) == {1, 2, 3}
    after = sim_runtime(seed=20, files=runtime.files.survivor())
    with Cluster("data", durability="os", runtime=after, is_embedded=True) as cluster:
        until(cluster, lambda: cluster.partition("t", 0).leader > 0)
        with cluster.consumer() as consumer:
            consumer.assign([("t", 0)])
            consumer.seek_to_beginning()
            found = [record.value for record in consumer.poll(1000)]
        assert found == [b"0", b"1", b"2", b"3", b"4"]


@pytest.mark.parametrize("is_late", [True, False])
def test_a_broker_in_shutdown_is_in_sync_after_the_cluster_reopens(is_late: bool) -> None:
    """Its last heartbeat comes late, or the cluster closes in the middle of its shutdown."""
    before = sim_runtime(seed=1)
    cluster = Cluster("data", brokers=3, durability="os", runtime=before, is_embedded=True)
    cluster.create_topic("t", replication_factor=3)
    controller = cluster.controller.core
    assert controller is not None
    epoch = controller.image.brokers[3].epoch
    if is_late:
        cluster.broker(3).stop()
        controller.brokers.unfence(3, epoch)
    else:
        controller.brokers.begin_controlled_shutdown(3, epoch)
        cluster.close()
    after = sim_runtime(seed=2, files=before.files.survivor())
    with Cluster("data", durability="os", runtime=after, is_embedded=True) as cluster:
        until(cluster, lambda: sorted(cluster.partition("t", 0).isr) == [1, 2, 3])


def test_a_stop_during_a_heartbeat_is_no_failure(
    cluster: Cluster, runtime: SimRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another thread stops the broker while its heartbeat is on the way."""
    controller = cluster.controller.core
    assert controller is not None
    touch = controller.brokers.sessions.touch
    stopped = []

    def touch_and_stop(node_id: int, epoch: int) -> None:
        touch(node_id, epoch)
        if node_id == 2 and not stopped:
            stopped.append(node_id)
            cluster.broker(2).stop()

    monkeypatch.setattr(controller.brokers.sessions, "touch", touch_and_stop)
    until(cluster, lambda: bool(stopped))
    runtime.scheduler.run_for(10)
    assert not runtime.scheduler.failing
    cluster.broker(2).start()
    until(cluster, lambda: not controller.image.brokers[2].is_fenced)


def test_a_process_that_stood_still_loses_no_broker_sessions(
    cluster: Cluster, runtime: SimRuntime
) -> None:
    """After the process was stopped or starved, all duties are due at once, in any order."""
    cluster.create_topic("t", replication_factor=3)
    led = cluster.partition("t", 0)
    leader, epoch = led.leader, led.leader_epoch
    for _ in range(20):
        runtime.clock.advance(60_000)
        runtime.scheduler.run_for(100)
        assert (led.leader, led.leader_epoch) == (leader, epoch)
    cluster.broker(leader).pause()
    runtime.clock.advance(60_000)
    runtime.scheduler.run_for(100)
    assert led.leader != leader


@pytest.mark.parametrize("is_clean", [True, False])
def test_an_eligible_broker_leads_alone_only_after_a_clean_stop(
    cluster: Cluster, runtime: SimRuntime, is_clean: bool
) -> None:
    cluster.create_topic("t", 1, replication_factor=3, config={"min.insync.replicas": 2})
    partition = cluster.partition("t", 0)
    with cluster.producer(acks="all") as producer:
        producer.send("t", b"0").result()
    leader = leader_of(cluster, "t")
    eligible, other = (cluster.broker(n) for n in (1, 2, 3) if n != partition.leader)
    other.stop()
    if is_clean:
        eligible.stop()
    else:
        eligible.kill(lose_unsynced=True)
    leader.stop()
    eligible.start()
    runtime.scheduler.run_for(1_000)
    assert partition.leader == (eligible.node_id if is_clean else -1)
