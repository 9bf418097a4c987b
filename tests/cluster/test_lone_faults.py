"""The only broker of a cluster takes the faults of one of several, in process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import embedlog
from embedlog import errors
from embedlog.cluster.cluster import Cluster
from embedlog.cluster.faults.network import CONTROLLER
from embedlog.errors import ClosedError, ConfigError, IllegalState
from embedlog.runtime.outer_call import as_user
from embedlog.testing import SimRuntime
from embedlog.transport import ANY_NODE
from wire.schemas.create_topics import CreatableTopic, CreateTopicsRequest
from wire.schemas.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse


@pytest.fixture(params=[None, "data"], ids=["memory", "directory"])
def lone(request: pytest.FixtureRequest, runtime: SimRuntime) -> Iterator[Cluster]:
    """A cluster of one broker, in memory and over simulated files."""
    with Cluster(request.param, runtime=runtime, is_embedded=True) as made:
        made.create_topic("t", 1)
        yield made


@pytest.fixture
def in_memory(runtime: SimRuntime) -> Iterator[Cluster]:
    with Cluster(runtime=runtime, is_embedded=True) as made:
        made.create_topic("t", 1)
        yield made


def _values(cluster: Cluster, count: int, **settings: Any) -> list[bytes | None]:
    """Read `t` from the beginning until `count` records are there."""
    settings = {"auto_offset_reset": "earliest", **settings}
    with cluster.consumer(group_id="readers", **settings) as consumer:
        consumer.subscribe(["t"])
        return _poll(consumer, count)


def _poll(consumer: embedlog.Consumer, count: int) -> list[bytes | None]:
    found: list[bytes | None] = []
    for _ in range(100):
        found += [record.value for record in consumer.poll(100)]
        if len(found) >= count:
            break
    return found


def _metadata(transport: Any, topic: str = "t") -> MetadataResponse:
    request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)])
    return transport.send(ANY_NODE, request).result()


WAYS: dict[str, Callable[[Cluster], None]] = {
    "kill": lambda cluster: cluster.broker(1).kill(),
    "stop": lambda cluster: cluster.broker(1).stop(),
}


@pytest.mark.parametrize("way", WAYS)
def test_open_clients_go_on_after_a_restart_and_lose_nothing(lone: Cluster, way: str) -> None:
    with (
        lone.producer() as producer,
        lone.consumer(group_id="g", auto_offset_reset="earliest") as consumer,
    ):
        consumer.subscribe(["t"])
        producer.send("t", b"0").result()
        assert _poll(consumer, 1) == [b"0"]
        consumer.commit()
        for round_number in range(2):
            WAYS[way](lone)
            first = 1 + 10 * round_number
            values = [b"%d" % number for number in range(first, first + 10)]
            sent = [producer.send("t", value) for value in values]
            assert not any(each.done() for each in sent)
            lone.broker(1).start()
            assert [each.result().offset for each in sent] == list(range(first, first + 10))
            assert _poll(consumer, 10) == values
        consumer.commit()
        assert consumer.committed([("t", 0)])["t", 0].offset == 21


def test_an_idempotent_producer_writes_once_and_a_transaction_ends_after_a_kill(
    lone: Cluster,
) -> None:
    with lone.producer(transactional_id="x") as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("t", b"before").result()
        lone.broker(1).kill()
        lone.broker(1).start()
        producer.send("t", b"after").result()
        assert _values(lone, 1, isolation_level="read_committed") == []
        producer.commit_transaction()
    assert _values(lone, 2, isolation_level="read_committed") == [b"before", b"after"]


def test_a_kill_keeps_topics_settings_and_deleted_records(lone: Cluster) -> None:
    lone.create_topic("u", 3, config={"retention.ms": 12345})
    with lone.producer() as producer:
        for number in range(5):
            producer.send("t", b"%d" % number).result()
    with lone.admin() as admin:
        admin.delete_records({("t", 0): 2})
        cluster_id, epoch = lone.cluster_id, lone.partition("t", 0).leader_epoch
        lone.maintain()
        lone.broker(1).kill()
        lone.broker(1).start()
        assert len(admin.describe_topics(["u"])["u"].partitions) == 3
    assert lone.cluster_id == cluster_id
    assert lone.topics == ["t", "u"]
    assert lone.partition("t", 0).leader_epoch == epoch + 1
    assert _values(lone, 3) == [b"2", b"3", b"4"]


@pytest.mark.parametrize(("level", "kept"), [("os", 0), ("fsync", 2)])
def test_a_loss_of_power_takes_what_was_not_synced(
    level: str, kept: int, runtime: SimRuntime
) -> None:
    with Cluster("data", durability=level, runtime=runtime, is_embedded=True) as cluster:
        cluster.create_topic("t", 1)
        with cluster.producer() as producer:
            for value in (b"1", b"2"):
                producer.send("t", value).result()
        cluster.broker(1).kill(lose_unsynced=True)
        cluster.broker(1).start()
        assert cluster.topics == ["t"]
        assert cluster.partition("t", 0).end_offsets == {1: kept}


def test_a_loss_of_power_empties_the_logs_in_memory_but_keeps_the_topics(
    in_memory: Cluster,
) -> None:
    with in_memory.producer() as producer:
        producer.send("t", b"1").result()
        in_memory.broker(1).kill(lose_unsynced=True)
        in_memory.broker(1).start()
        assert in_memory.topics == ["t"]
        assert producer.send("t", b"2").result().offset == 0


def test_requests_wait_while_the_broker_is_paused(lone: Cluster, runtime: SimRuntime) -> None:
    with lone.producer() as producer:
        producer.send("t", b"1").result()
        lone.broker(1).pause()
        assert lone.broker(1).is_paused
        sent = producer.send("t", b"2")
        runtime.scheduler.run_for(200)
        assert not sent.done()
        assert lone.partition("t", 0).end_offsets == {1: 1}
        lone.broker(1).resume()
        assert sent.result().offset == 1


def test_a_broker_that_is_paused_while_it_is_down_starts_paused(lone: Cluster) -> None:
    broker = lone.broker(1)
    broker.stop()
    broker.stop()
    broker.pause()
    assert not broker.is_paused
    broker.start()
    assert broker.is_paused
    broker.resume()
    with lone.producer() as producer:
        assert producer.send("t", b"1").result().offset == 0


class _Later:
    """A duty that makes a call once, as another thread would, when some time has passed."""

    def __init__(self, runtime: SimRuntime, delay_ms: int, call: Callable[[], object]) -> None:
        self._due_ms = runtime.clock.monotonic_ms() + delay_ms
        self._call: Callable[[], object] | None = call
        runtime.scheduler.add(self)
        runtime.scheduler.notify(self, delay_ms)

    def run_once(self, now_ms: int) -> int | None:
        if now_ms < self._due_ms:
            return self._due_ms - now_ms
        call, self._call = self._call, None
        if call is not None:
            as_user(call)
        return None


def test_clients_of_a_hidden_broker_know_no_broker_and_wait(
    lone: Cluster, runtime: SimRuntime
) -> None:
    transport = lone.connect()
    with lone.producer() as old, lone.producer() as new:
        old.send("t", b"1").result()
        lone.broker(1).hide()
        answer = _metadata(transport)
        assert answer.brokers == []
        assert [each.leader_id for each in answer.topics[0].partitions] == [-1]
        assert old.send("t", b"2").result().offset == 1  # connected clients are served
        lone.broker(1).kill()
        lone.broker(1).start()
        assert _metadata(transport).brokers == []
        before_ms = runtime.clock.monotonic_ms()
        _Later(runtime, 1000, lone.broker(1).show)
        assert new.send("t", b"3").result().offset == 2
        assert runtime.clock.monotonic_ms() - before_ms >= 1000
        assert [each.node_id for each in _metadata(transport).brokers] == [1]


def test_calls_that_wait_for_an_answer_go_on_with_the_started_broker(
    lone: Cluster, runtime: SimRuntime
) -> None:
    with lone.producer() as producer:
        producer.append("t", b"1")
        lone.broker(1).kill()
        _Later(runtime, 500, lone.broker(1).start)
        assert producer.append("t", b"2").offset == 1


# The disk


def test_a_full_disk_refuses_records_until_it_has_room(lone: Cluster) -> None:
    lone.create_topic("large", 1, config={"segment.bytes": 1 << 20})
    value = bytes(400_000)
    with lone.producer(retries=0) as producer:
        producer.send("large", value).result()
        lone.broker(1).disk.fill()
        with pytest.raises(errors.KafkaError):
            for _ in range(4):
                producer.send("large", value).result()
        lone.broker(1).disk.free()
        assert producer.send("large", value).result().offset >= 1


def test_a_slow_disk_delays_writes_alone(lone: Cluster, runtime: SimRuntime) -> None:
    with lone.producer() as producer:
        producer.send("t", b"1").result()
        lone.broker(1).disk.slow(500)
        before_ms = runtime.clock.monotonic_ms()
        assert _metadata(lone.connect()).brokers
        assert runtime.clock.monotonic_ms() - before_ms < 100
        producer.send("t", b"2").result()
        assert runtime.clock.monotonic_ms() - before_ms >= 500
        lone.broker(1).disk.slow(0)
        before_ms = runtime.clock.monotonic_ms()
        producer.send("t", b"3").result()
        assert runtime.clock.monotonic_ms() - before_ms < 100


def test_a_failing_directory_refuses_writes_until_a_repair_and_a_restart(lone: Cluster) -> None:
    broker = lone.broker(1)
    (directory,) = broker.disk.directories
    with lone.producer() as producer:
        producer.send("t", b"1").result()
        broker.disk.fail(directory)
        with pytest.raises(errors.KafkaStorageError) as caught:
            producer.send("t", b"2").result()
        assert isinstance(caught.value.__cause__, OSError)
        assert "offline" in {each.kind for each in lone.health()}
        broker.disk.repair()
        broker.kill()
        broker.start()
        assert lone.health() == []
        producer.send("t", b"3").result()
    assert _values(lone, 2) == [b"1", b"3"]
    with pytest.raises(ConfigError, match="none of"):
        broker.disk.fail("elsewhere")


def test_a_further_directory_fails_alone(runtime: SimRuntime) -> None:
    with Cluster("first", log_dirs=["second"], runtime=runtime, is_embedded=True) as cluster:
        cluster.create_topic("t", 8)
        broker = cluster.broker(1)
        assert broker.disk.directories == ("first", "second")
        with cluster.producer(delivery_timeout_ms=100, request_timeout_ms=100) as producer:
            for index in range(8):
                producer.send("t", b"1", partition=index).result()
            broker.disk.fail("second")
            refused = 0
            for index in range(8):
                try:
                    producer.send("t", b"2", partition=index).result()
                except (errors.KafkaError, embedlog.TimedOut):
                    refused += 1
            assert 0 < refused < 8
            assert "offline" in {each.kind for each in cluster.health()}
        broker.disk.repair()
        broker.stop()
        broker.start()
        with cluster.producer() as producer:
            for index in range(8):
                producer.send("t", b"3", partition=index).result()


def test_the_first_fault_of_a_disk_keeps_groups_sessions_and_interceptors(lone: Cluster) -> None:
    """The broker changes to files that can fail: clients notice nothing of it."""
    calls: list[str] = []
    with (
        lone.producer() as producer,
        lone.consumer(group_id="g", auto_offset_reset="earliest") as consumer,
    ):
        consumer.subscribe(["t"])
        producer.send("t", b"1").result()
        assert _poll(consumer, 1) == [b"1"]
        before = consumer.group_metadata()
        former = lone.broker(1).core
        former.interceptor = lambda _, request: calls.append(type(request).__name__)
        lone.broker(1).disk.fill()
        assert lone.broker(1).core is not former
        lone.broker(1).disk.free()
        core = lone.broker(1).core
        lone.broker(1).disk.fill()
        lone.broker(1).disk.free()
        assert lone.broker(1).core is core  # only the first fault opens the broker again
        calls.clear()
        producer.send("t", b"2").result()
        assert _poll(consumer, 1) == [b"2"]
        assert "ProduceRequest" in calls
        after = consumer.group_metadata()
        assert (after.member_id, after.generation_id) == (before.member_id, before.generation_id)


def test_a_cluster_with_faults_can_be_closed(lone: Cluster) -> None:
    with lone.producer() as producer:
        producer.send("t", b"1").result()
    disk = lone.broker(1).disk
    disk.fill()
    disk.fail(disk.directories[0])
    disk.slow(1000)
    lone.broker(1).hide()
    lone.broker(1).pause()
    lone.network.cut(1, CONTROLLER)
    lone.close()
    assert not lone.broker(1).core.log_manager.first.directory.is_held


# The controller


FAULTS: dict[str, tuple[Callable[[Cluster], None], Callable[[Cluster], None]]] = {
    "stopped": (lambda it: it.controller.stop(), lambda it: it.controller.start()),
    "cut off": (lambda it: it.network.cut(1, CONTROLLER), lambda it: it.network.heal()),
    "cut off back": (lambda it: it.network.split({1}, {CONTROLLER}), lambda it: it.network.heal()),
}


@pytest.mark.parametrize("name", FAULTS)
def test_without_the_controller_records_are_taken_and_new_topics_wait(
    lone: Cluster, name: str
) -> None:
    begin, end = FAULTS[name]
    with lone.producer() as producer:
        producer.send("t", b"1").result()
        begin(lone)
        assert producer.send("t", b"2").result().offset == 1
        request = CreateTopicsRequest(
            topics=[CreatableTopic(name="new", num_partitions=1, replication_factor=1)]
        )
        asked = lone.connect().send(ANY_NODE, request)
        assert not asked.done()
        assert _metadata(lone.connect(), "automatic").topics[0].error_code != 0
        assert lone.topics == ["t"]
        end(lone)
        assert asked.result().topics[0].error_code == 0
        assert lone.topics == ["new", "t"]


def test_the_controller_ends_and_starts_with_the_broker(lone: Cluster) -> None:
    controller = lone.controller
    assert controller.core is lone.broker(1).core.controller
    controller.stop()
    assert not controller.is_running
    with pytest.raises(IllegalState, match="does not run"):
        controller.stop()
    lone.broker(1).kill()
    with pytest.raises(IllegalState, match="part of broker 1"):
        controller.start()
    lone.broker(1).start()
    assert controller.is_running
    with pytest.raises(IllegalState, match="runs already"):
        controller.start()
    lone.create_topic("u", 1)


def test_metadata_that_is_held_back_comes_later(lone: Cluster) -> None:
    broker = lone.broker(1)
    broker.hold_metadata()
    lone.create_topic("u", 1)
    assert lone.topics == ["t"]
    broker.release_metadata()
    assert lone.topics == ["t", "u"]
    lone.create_topic("v", 1)
    assert lone.topics == ["t", "u", "v"]


# Handles


def test_a_partition_shows_its_only_replica(lone: Cluster) -> None:
    partition = lone.partition("t", 0)
    with lone.producer() as producer:
        producer.send("t", b"1").result()
    partition.move_to(1)
    partition.reassign([1])
    assert (partition.leader, partition.replicas, partition.isr) == (1, (1,), (1,))
    assert partition.end_offsets == partition.high_watermarks == {1: 1}
    lone.broker(1).kill()
    assert (partition.leader, partition.isr, partition.end_offsets) == (-1, (1,), {})
    with pytest.raises(errors.NotController):
        partition.move_to(1)
    lone.broker(1).start()
    assert (partition.leader, partition.end_offsets) == (1, {1: 1})
    with pytest.raises(errors.UnknownTopicOrPartition):
        _ = lone.partition("t", 7).leader


def test_a_look_at_the_cluster_is_no_fault(lone: Cluster) -> None:
    """Clients pay for faults with a door in their way, so handles alone must not set it up."""
    _ = lone.partition("t", 0).leader, lone.network, lone.controller.is_running
    _ = lone.broker(1).disk.directories, repr(lone.broker(1).disk)
    with lone.producer() as producer:
        producer.send("t", b"1").result()
    transport = lone.connect()
    assert transport.appends  # type: ignore[attr-defined]
    assert not transport.loses_answers
    lone.broker(1).disk.slow(0)
    assert not transport.appends  # type: ignore[attr-defined]
    assert transport.loses_answers
    assert not lone.connect().appends  # type: ignore[attr-defined]


REFUSED: dict[str, tuple[Callable[[Cluster], object], str]] = {
    "a move": (lambda it: it.partition("t", 0).move_to(2), "broker 2, but no such broker"),
    "other replicas": (lambda it: it.partition("t", 0).reassign([1, 2]), "no such broker"),
    "a follower": (lambda it: it.partition("t", 0).hold(1), "broker 1 is the only one"),
    "a link": (lambda it: it.network.cut(1, 2), "there is no broker 2, only 1"),
    "groups": (lambda it: it.network.split({1}, {2, 3}), "there is no broker 2, only 1"),
    "itself": (lambda it: it.network.cut(1, 1), "no link to itself"),
    "a delay": (lambda it: it.network.delay(1, CONTROLLER, 5), "disk.slow makes"),
    "an address": (lambda it: it.broker(1).swap_address(it.broker(1)), "no other address"),
    "one more": (lambda it: it.add_broker(), "brokers=2 or more"),
    "one less": (lambda it: it.remove_broker(1), "brokers=2 or more"),
    "another": (lambda it: it.broker(2), "there is no broker 2, only 1"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_faults_that_need_more_brokers_are_refused_by_name(in_memory: Cluster, name: str) -> None:
    call, text = REFUSED[name]
    with pytest.raises((ConfigError, errors.InvalidReplicaAssignment), match=text):
        call(in_memory)
    with in_memory.producer() as producer:
        assert producer.send("t", b"1").result().offset == 0


def test_calls_to_a_broker_that_is_down_are_refused_clearly(lone: Cluster) -> None:
    broker = lone.broker(1)
    with pytest.raises(IllegalState, match="runs already"):
        broker.start()
    broker.kill()
    assert not broker.is_running
    for call in (broker.kill, lambda: lone.listen("127.0.0.1", 0)):
        with pytest.raises(IllegalState, match="broker 1 does not run"):
            call()
    with pytest.raises(ClosedError, match="broker 1 does not run"):
        _ = broker.core
    with pytest.raises(errors.Network):
        _ = lone.topics
    assert lone.health() == []
    assert lone.maintain() == 0
    lone.adopt_staged()
    assert "topics" not in repr(lone)
    assert lone.cluster_id


def test_a_transport_to_the_broker_breaks_with_it(lone: Cluster) -> None:
    transport = lone.broker(1).connect()
    assert transport.is_ready(1)
    lone.broker(1).kill()
    assert isinstance(transport.send(1, MetadataRequest(topics=None)).error(), errors.Network)
    assert transport.failure_count == 1
    assert not transport.is_ready(1)
    assert transport.prepare(1)
    lone.broker(1).start()
    assert transport.is_ready(1)
    assert _metadata(transport).brokers


def test_a_client_may_kill_and_start_its_broker_in_a_callback(in_memory: Cluster) -> None:
    def restart(*_outcome: object) -> None:
        in_memory.broker(1).kill()
        in_memory.broker(1).start()

    with in_memory.producer() as producer:
        producer.send("t", b"1", on_delivery=restart).result()
        assert producer.send("t", b"2").result().offset == 1


def test_a_fault_inside_another_call_is_refused(in_memory: Cluster, runtime: SimRuntime) -> None:
    refused: list[str] = []

    def break_in(*_: object) -> None:
        with pytest.raises(embedlog.NestedCall) as caught:
            in_memory.broker(1).kill()
        refused.append(str(caught.value))

    class Handler:
        def run_once(self, _now_ms: int) -> int | None:
            break_in()
            return None

    runtime.scheduler.add(Handler())
    in_memory.create_topic("u", 1)
    assert "BrokerNode.kill was called inside Cluster.create_topic" in refused[0]
    assert in_memory.broker(1).is_running


def test_producers_in_other_threads_write_each_record_once() -> None:
    """The first fault comes while appends are under way that know nothing of a door."""
    with embedlog.open() as cluster:
        cluster.create_topic("t", 1)
        enough, failed = threading.Event(), list[Exception]()
        written: list[bytes] = []

        def write(name: int) -> None:
            with cluster.producer() as producer:
                while not enough.is_set():
                    value = b"%d-%d" % (name, len(written))
                    try:
                        producer.append("t", value)
                    except embedlog.EmbedlogError as error:
                        failed.append(error)
                        return
                    written.append(value)

        threads = [threading.Thread(target=write, args=(name,)) for name in range(2)]
        for each in threads:
            each.start()
        for _ in range(3):
            count = len(written)
            while len(written) == count and not failed:
                enough.wait(0.001)
            cluster.broker(1).kill()
            cluster.broker(1).start()
        enough.set()
        for each in threads:
            each.join()
        assert not failed
        found = _values(cluster, len(written))
        assert sorted(found) == sorted(written)  # type: ignore[type-var]
