"""In process, without a thread, a call first does all due work, in the order of time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import embedlog
from embedlog.cluster.cluster import Cluster
from embedlog.errors import InvalidTxnState
from embedlog.testing import SimClock, sim_runtime
from embedlog.transport import ANY_NODE
from tests.apis import consumer_groups, groups
from wire.error_codes import ErrorCode
from wire.records.encode.builder import build_batch
from wire.schemas.fetch import FetchPartition, FetchRequest, FetchTopic
from wire.schemas.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from wire.schemas.produce import PartitionProduceData, ProduceRequest, TopicProduceData

SECOND_MS, MINUTE_MS, DAY_MS = 1_000, 60_000, 86_400_000
PLACE = ("t", 0)
PROTOCOLS = ["classic", "consumer"]


class World:
    """A cluster in memory whose time passes while nobody calls."""

    def __init__(self, path: str | None = None) -> None:
        self.runtime = sim_runtime(seed=3)
        self.cluster = Cluster(
            path, durability=path and "os", is_embedded=True, runtime=self.runtime
        )
        self.cluster.create_topic("t", config={"segment.ms": 1000, "file.delete.delay.ms": 60_000})
        self.transport = self.cluster.connect("test")

    def pass_time(self, delay_ms: int) -> None:
        """Let nobody call for a while."""
        self.runtime.clock.advance(delay_ms)

    def ask(self, request: Any) -> Any:
        """Send a request that is answered at once, and return the answer."""
        pending = self.transport.send(ANY_NODE, request)
        assert pending.done(), request
        return pending.result()

    def joining(self, protocol: str = "classic", **settings: Any) -> embedlog.Consumer:
        consumer = self.cluster.consumer(
            group_id="g",
            group_protocol=protocol,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            **settings,
        )
        consumer.subscribe(["t"])
        return consumer

    def member(self, protocol: str = "classic", **settings: Any) -> embedlog.Consumer:
        """Return a consumer that has its assignment."""
        consumer = self.joining(protocol, **settings)
        while not consumer.assignment():
            consumer.poll(100)
        return consumer

    def first_offset(self) -> int:
        return (
            self.cluster.admin().list_offsets({PLACE: embedlog.OffsetSpec.EARLIEST})[PLACE].offset
        )

    def deleted_files(self) -> list[str]:
        names = self.runtime.files.list("/data/t-0")
        return [name for name in names if name.endswith(".deleted")]


@pytest.fixture
def world() -> Iterator[World]:
    world = World()
    yield world
    world.cluster.close()


def _nothing(_world: World) -> None: ...


@pytest.mark.parametrize("between", [_nothing, lambda world: world.cluster.maintain()])
def test_a_transaction_ends_at_its_time_out(world: World, between: Callable[[World], Any]) -> None:
    producer = world.cluster.producer(transactional_id="x", transaction_timeout_ms=5_000)
    producer.init_transactions()
    producer.begin_transaction()
    producer.send("t", b"late").result()
    world.pass_time(20 * SECOND_MS)
    between(world)
    with pytest.raises(InvalidTxnState):
        producer.commit_transaction()
    with world.cluster.consumer(
        isolation_level="read_committed", auto_offset_reset="earliest"
    ) as consumer:
        consumer.assign([PLACE])
        assert not list(consumer.poll(100))


def test_maintain_does_not_wait_for_the_next_check_of_transactions(world: World) -> None:
    producer = world.cluster.producer(transactional_id="x", transaction_timeout_ms=1_000)
    producer.init_transactions()
    producer.begin_transaction()
    producer.send("t", b"late").result()
    world.pass_time(2 * SECOND_MS)  # the check comes every ten seconds
    world.cluster.maintain()
    with pytest.raises(InvalidTxnState):
        producer.commit_transaction()


def test_transactional_ids_expire(world: World) -> None:
    with world.cluster.producer(transactional_id="x") as producer:
        producer.init_transactions()
    admin = world.cluster.admin()
    assert list(admin.list_transactions()) == ["x"]
    world.pass_time(8 * DAY_MS)
    assert list(admin.list_transactions()) == []


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_member_that_did_not_poll_in_time_cannot_commit(world: World, protocol: str) -> None:
    consumer = world.member(protocol, max_poll_interval_ms=60_000)
    world.pass_time(61 * SECOND_MS)
    with pytest.raises(embedlog.CommitFailed):
        consumer.commit({PLACE: embedlog.OffsetAndMetadata(1)})


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_members_stay_while_nobody_calls_for_longer_than_a_session(
    world: World, protocol: str
) -> None:
    world.cluster.admin().create_partitions({"t": 3})
    members = [world.joining(protocol) for _ in range(3)]
    while not all(len(each.assignment()) == 1 for each in members):
        for each in members:
            each.poll(10)
    before = [each.assignment() for each in members]
    for _ in range(3):
        world.pass_time(4 * MINUTE_MS)  # a session is 45 s, max.poll.interval.ms 5 min
        for each in members:
            each.poll(0)
        assert [each.assignment() for each in members] == before
        members[2].commit({next(iter(before[2])): embedlog.OffsetAndMetadata(1)})


def test_a_classic_session_ends(world: World) -> None:
    world.member()
    joined = world.ask(groups.join(group_id="other"))
    joined = world.ask(groups.join(joined.member_id, group_id="other"))
    beat = groups.heartbeat(joined.member_id, joined.generation_id, group_id="other")
    world.ask(groups.sync(joined.member_id, joined.generation_id, group_id="other"))
    world.pass_time(groups.SESSION_MS - 1)
    assert world.ask(beat).error_code == ErrorCode.NONE
    world.pass_time(groups.SESSION_MS + 1)
    assert world.ask(beat).error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_the_session_of_a_consumer_group_ends(world: World) -> None:
    world.member("consumer")
    epoch = world.ask(consumer_groups.join("m", "t")).member_epoch
    world.pass_time(44 * SECOND_MS)
    assert world.ask(consumer_groups.stay("m", epoch)).error_code == ErrorCode.NONE
    world.pass_time(46 * SECOND_MS)
    answer = world.ask(consumer_groups.stay("m", epoch))
    assert answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_rebalance_ends_without_a_silent_member(world: World) -> None:
    world.member()
    first = world.ask(groups.join(group_id="other"))
    first = world.ask(groups.join(first.member_id, group_id="other", rebalance_timeout_ms=5_000))
    world.ask(groups.sync(first.member_id, first.generation_id, group_id="other"))
    second = world.ask(groups.join(group_id="other"))
    waiting = world.transport.send(
        ANY_NODE, groups.join(second.member_id, group_id="other", rebalance_timeout_ms=5_000)
    )
    assert not waiting.done()
    world.pass_time(5_001)
    beat = groups.heartbeat(first.member_id, first.generation_id, group_id="other")
    assert world.ask(beat).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert waiting.result().members[0].member_id == second.member_id


@pytest.mark.slow
def test_committed_offsets_expire(world: World) -> None:
    with world.member() as consumer:
        consumer.commit({PLACE: embedlog.OffsetAndMetadata(1)})
    asked = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=None)])
    assert world.ask(asked).groups[0].topics
    world.pass_time(8 * DAY_MS)
    assert not world.ask(asked).groups[0].topics


def test_producer_ids_expire(world: World) -> None:
    with world.cluster.producer(enable_idempotence=True) as producer:
        producer.send("t", b"v").result()
    admin = world.cluster.admin()
    assert admin.describe_producers([PLACE])[PLACE]
    world.pass_time(2 * DAY_MS)
    assert not admin.describe_producers([PLACE])[PLACE]


def test_old_records_go_and_later_their_files() -> None:
    world = World("/data")
    with world.cluster.producer() as producer:
        producer.append("t", b"old", partition=0)
    world.pass_time(8 * DAY_MS)
    assert world.first_offset() == 1
    assert world.deleted_files()
    world.pass_time(MINUTE_MS + 1)
    world.first_offset()
    assert not world.deleted_files()
    world.cluster.close()


def test_a_client_learns_of_new_partitions_when_its_metadata_is_old(world: World) -> None:
    with world.member(metadata_max_age_ms=60_000) as consumer:
        world.cluster.admin().create_partitions({"t": 2})
        world.pass_time(MINUTE_MS + 1)
        consumer.poll(0)
        while len(consumer.assignment()) < 2:
            consumer.poll(0)


def test_a_member_that_asks_for_no_assignment_goes(world: World) -> None:
    world.member()
    joined = world.ask(groups.join(group_id="other"))
    request = groups.join(joined.member_id, group_id="other", rebalance_timeout_ms=5_000)
    joined = world.ask(request)
    world.pass_time(5_001)
    sync = groups.sync(joined.member_id, joined.generation_id, group_id="other")
    assert world.ask(sync).error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_fetch_that_waits_for_records_ends(world: World) -> None:
    waiting = world.transport.send(
        ANY_NODE,
        FetchRequest(
            max_wait_ms=500,
            min_bytes=1,
            topics=[
                FetchTopic(
                    topic_id=world.cluster.broker().core.image.topics_by_name["t"].topic_id,
                    partitions=[
                        FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)
                    ],
                )
            ],
        ),
    )
    assert not waiting.done()
    world.pass_time(501)
    assert world.first_offset() == 0
    assert waiting.done()


def test_lingering_records_are_sent(world: World) -> None:
    producer = world.cluster.producer(linger_ms=5_000)
    sent = producer.send("t", b"v")
    assert not sent.done()
    world.pass_time(5_001)
    with world.cluster.consumer(auto_offset_reset="earliest") as consumer:
        consumer.assign([PLACE])
        assert [record.value for record in consumer.poll(0)] == [b"v"]
    assert sent.done()


def test_work_of_timers_and_duties_is_done_in_the_order_of_its_times(world: World) -> None:
    done: list[str] = []
    scheduler, clock = world.runtime.scheduler, world.runtime.clock

    class Heartbeat:
        def run_once(self, now_ms: int) -> int:
            done.append("heartbeat")
            return 3_000

    from embedlog.purgatory.timer import Timer, TimerTask

    class Task(TimerTask):
        def run(self) -> None:
            done.append(f"timer {self.delay_ms}")

    timer = Timer(clock, scheduler.notify)
    scheduler.add(timer, is_timer=True)
    scheduler.add(Heartbeat())
    scheduler.run_due(clock.monotonic_ms())
    for delay_ms in (9_000, 2_000, 45_000, 2_500):
        timer.add(Task(delay_ms))
    scheduler.run_due(clock.monotonic_ms())
    done.clear()
    world.pass_time(MINUTE_MS)
    timer.add(Task(1))  # moves the time of the wheel
    world.first_offset()
    assert done == ["timer 2000", "timer 2500", "heartbeat", "timer 9000", "timer 45000"]


# Several brokers


@pytest.fixture
def several() -> Iterator[Cluster]:
    cluster = Cluster(None, brokers=3, is_embedded=True, runtime=sim_runtime(seed=4))
    cluster.create_topic("t", 1, replication_factor=3, config={"min.insync.replicas": 3})
    with cluster.producer(acks="all") as producer:
        producer.send("t", b"v", partition=0).result()
    yield cluster
    cluster.close()


def advance(cluster: Cluster, delay_ms: int) -> None:
    clock = cluster.runtime.clock
    assert isinstance(clock, SimClock)
    clock.advance(delay_ms)


def test_no_broker_loses_its_session_while_nobody_calls(several: Cluster) -> None:
    partition = several.partition("t", 0)
    before = partition.leader, partition.isr, partition.leader_epoch
    for _ in range(3):
        advance(several, 10 * MINUTE_MS)
        assert several.topics == ["t"]
        assert (partition.leader, partition.isr, partition.leader_epoch) == before


def test_the_session_of_a_paused_broker_ends(several: Cluster) -> None:
    partition = several.partition("t", 0)
    leader = partition.leader
    several.broker(leader).pause()
    advance(several, MINUTE_MS)
    assert several.topics == ["t"]
    assert partition.leader not in (leader, -1)


def test_a_follower_that_lags_leaves_the_in_sync_set(several: Cluster) -> None:
    partition = several.partition("t", 0)
    (follower, _) = [each for each in partition.isr if each != partition.leader]
    partition.hold(follower)
    transport = several.connect("test")
    waiting = transport.send(partition.leader, produce(several, timeout_ms=5_000))
    assert not waiting.done()
    advance(several, 5_001)
    assert several.topics == ["t"]
    code = waiting.result().responses[0].partition_responses[0].error_code
    assert code == ErrorCode.REQUEST_TIMED_OUT
    advance(several, 2 * MINUTE_MS)
    assert several.topics == ["t"]
    assert follower not in partition.isr


def produce(cluster: Cluster, *, timeout_ms: int) -> ProduceRequest:
    """Return a produce request of one record that all replicas must have."""
    topic = cluster.brokers[0].core.image.topics_by_name["t"]
    data = PartitionProduceData(index=0, records=build_batch([b"v"], timestamps=1))
    return ProduceRequest(
        acks=-1,
        timeout_ms=timeout_ms,
        topic_data=[TopicProduceData(topic_id=topic.topic_id, partition_data=[data])],
    )
