"""The clock of a test's cluster: jumps, order, time limits, wall time, misuse."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from threading import Thread

import pytest

from embedlog.errors import ConfigError, InvalidTimestamp, KafkaError, TimedOut
from embedlog.testing import Kafka
from wire.schemas.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from wire.schemas.fetch import FetchPartition, FetchRequest, FetchTopic
from wire.schemas.find_coordinator import FindCoordinatorRequest
from wire.schemas.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from wire.schemas.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

DAY_MS = 86_400_000


@pytest.fixture
def kafka() -> Iterator[Kafka]:
    with Kafka(clock="manual", topics={"t": 1}) as made:
        yield made


def ask(kafka: Kafka, request: object) -> object:
    """Send a request as a remote client; return the answer, or a pending of it."""
    transport = kafka.cluster.connect(None)
    pending = transport.send(-1, request)  # type: ignore[arg-type]
    return pending.result() if pending.done() else pending


def join(kafka: Kafka, group: str, *, session_ms: int) -> str:
    """Let a client join a group of its own; return its member id."""
    protocols = [JoinGroupRequestProtocol(name="range", metadata=b"x")]
    request = JoinGroupRequest(
        group_id=group,
        session_timeout_ms=session_ms,
        rebalance_timeout_ms=session_ms,
        protocol_type="consumer",
        protocols=protocols,
    )
    ask(kafka, FindCoordinatorRequest(key=group, coordinator_keys=[group]))
    first = ask(kafka, request)
    request.member_id = first.member_id  # type: ignore[attr-defined]
    joined = ask(kafka, request)
    ask(
        kafka,
        SyncGroupRequest(
            group_id=group,
            generation_id=joined.generation_id,  # type: ignore[attr-defined]
            member_id=request.member_id,
            assignments=[SyncGroupRequestAssignment(member_id=request.member_id, assignment=b"a")],
        ),
    )
    return request.member_id


def members(kafka: Kafka, group: str) -> list[str]:
    described = kafka.admin().describe_groups([group])[group]
    return [each.member_id for each in described.members]


def sessions(kafka: Kafka) -> list[str]:
    """Return the groups that have sessions, the next end first."""
    return [
        each.what.rpartition(" ")[2] for each in kafka.clock.timers() if "session of" in each.what
    ]


def test_a_jump_moves_wall_time_and_time_stamps(kafka: Kafka) -> None:
    before, real = kafka.clock.now(), datetime.now(UTC)
    assert abs(before - real) < timedelta(minutes=1)
    kafka.clock.jump(days=1, hours=2, minutes=3, seconds=4, milliseconds=5)
    passed = kafka.clock.now() - before
    assert timedelta(days=1, hours=2, minutes=3, seconds=4) < passed < timedelta(days=1, hours=3)
    record = kafka.producer().send("t", b"x").result()
    assert abs(record.timestamp - kafka.clock.now_ms) < 60_000


def test_a_jump_ends_the_sessions_in_their_order(kafka: Kafka) -> None:
    join(kafka, "later", session_ms=50_000)
    join(kafka, "sooner", session_ms=45_000)
    assert sessions(kafka) == ["sooner", "later"]
    kafka.clock.jump(seconds=46)
    assert sessions(kafka) == ["later"]
    assert members(kafka, "sooner") == []
    assert len(members(kafka, "later")) == 1
    kafka.clock.jump(seconds=6)
    assert sessions(kafka) == []


def test_a_session_of_the_new_protocol_ends_by_a_jump(kafka: Kafka) -> None:
    ask(kafka, FindCoordinatorRequest(key="g", coordinator_keys=["g"]))
    heartbeat = ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id="m",
        rebalance_timeout_ms=1000,
        subscribed_topic_names=["t"],
        topic_partitions=[],
    )
    assert ask(kafka, heartbeat).member_epoch > 0  # type: ignore[attr-defined]
    assert sessions(kafka) == ["g"]
    kafka.clock.jump(seconds=46)
    assert sessions(kafka) == []


def test_a_member_in_this_process_sends_its_heartbeats_during_a_jump(kafka: Kafka) -> None:
    kafka.producer().send("t", b"x").result()
    consumer = kafka.consumer(group_id="g", auto_offset_reset="earliest")
    consumer.subscribe(["t"])
    assert len(consumer.poll(5_000)) == 1
    (member,) = members(kafka, "g")
    kafka.clock.jump(seconds=60)  # the session is 45 s
    assert members(kafka, "g") == [member]


def test_a_waiting_fetch_is_answered_by_a_jump(kafka: Kafka) -> None:
    topic_id = kafka.broker().core.image.topics_by_name["t"].topic_id
    request = FetchRequest(
        max_wait_ms=3_600_000,
        min_bytes=1,
        topics=[FetchTopic(topic_id=topic_id, partitions=[FetchPartition(partition=0)])],
    )
    pending = kafka.cluster.connect(None).send(-1, request)
    assert not pending.done()
    assert "a waiting Fetch" in [each.what for each in kafka.clock.timers()]
    kafka.clock.jump(minutes=59)
    assert not pending.done()
    kafka.clock.jump(minutes=2)
    assert pending.done()


def test_a_wait_of_a_client_ends_by_a_jump_from_another_thread(kafka: Kafka) -> None:
    consumer = kafka.consumer(auto_offset_reset="earliest")
    consumer.assign([("t", 0)])
    found: list[int] = []
    waiter = Thread(target=lambda: found.append(len(consumer.poll(3_600_000))))
    waiter.start()
    while not any(each.what == "a waiting Fetch" for each in kafka.clock.timers()):
        time.sleep(0.001)
    kafka.clock.jump(hours=2)
    waiter.join(30)
    assert found == [0]


def test_retention_deletes_after_a_jump() -> None:
    topics = {"t": {"partitions": 1, "config": {"retention.ms": 3_600_000}}}
    with Kafka(clock="manual", topics=topics) as kafka:
        kafka.producer().send("t", b"x").result()
        kafka.clock.jump(minutes=50)
        assert kafka.broker().core.replica_manager.partitions["t", 0].log.log_end_offset == 1
        log = kafka.broker().core.replica_manager.partitions["t", 0].log
        assert log.offsets.log_start_offset == 0
        kafka.clock.jump(minutes=30)
        assert log.offsets.log_start_offset == 1


def test_a_transaction_times_out_by_a_jump(kafka: Kafka) -> None:
    producer = kafka.producer(transactional_id="tx", transaction_timeout_ms=60_000)
    producer.init_transactions()
    producer.begin_transaction()
    producer.send("t", b"x").result()
    assert "time-out of transaction tx" in [each.what for each in kafka.clock.timers()]
    kafka.clock.jump(seconds=90)
    assert "time-out of transaction tx" not in [each.what for each in kafka.clock.timers()]
    with pytest.raises(KafkaError):
        producer.commit_transaction()
    partition = kafka.broker().core.replica_manager.partitions["t", 0]
    assert partition.log.offsets.last_stable_offset == 2  # the record and the abort marker


def test_run_until_stops_when_the_condition_holds(kafka: Kafka) -> None:
    join(kafka, "g", session_ms=45_000)
    before = kafka.clock.now()
    kafka.clock.run_until(lambda: not members(kafka, "g"), limit=120)
    assert timedelta(seconds=44) < kafka.clock.now() - before < timedelta(seconds=60)
    with pytest.raises(TimedOut, match="within 5 s"):
        kafka.clock.run_until(lambda: False, limit=5)


@pytest.mark.slow
def test_a_jump_keeps_several_brokers_and_their_replicas_in_sync() -> None:
    topics = {"t": {"partitions": 2, "replication_factor": 3}}
    with Kafka(clock="manual", brokers=3, topics=topics) as kafka:
        kafka.producer().send("t", b"x", partition=0).result()
        leaders = [kafka.partition("t", each).leader for each in range(2)]
        kafka.clock.jump(minutes=30)
        assert [kafka.partition("t", each).leader for each in range(2)] == leaders
        assert sorted(kafka.partition("t", 0).isr) == [1, 2, 3]
        kafka.producer().send("t", b"y", partition=0).result()


def test_sessions_and_transactions_end_now_with_any_clock() -> None:
    with Kafka(topics={"t": 1}) as kafka:
        join(kafka, "a", session_ms=45_000)
        join(kafka, "b", session_ms=45_000)
        assert kafka.clock.expire_sessions("a") == 1
        assert (len(members(kafka, "a")), len(members(kafka, "b"))) == (0, 1)
        assert kafka.clock.expire_sessions() == 1
        assert members(kafka, "b") == []
        producer = kafka.producer(transactional_id="tx")
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("t", b"x").result()
        assert kafka.clock.expire_transactions("other") == []
        assert kafka.clock.expire_transactions() == ["tx"]
        with pytest.raises(KafkaError):
            producer.commit_transaction()


def test_a_session_of_the_new_protocol_ends_now() -> None:
    with Kafka(topics={"t": 1}) as kafka:
        ask(kafka, FindCoordinatorRequest(key="g", coordinator_keys=["g"]))
        heartbeat = ConsumerGroupHeartbeatRequest(
            group_id="g",
            member_id="m",
            rebalance_timeout_ms=1000,
            subscribed_topic_names=["t"],
            topic_partitions=[],
        )
        ask(kafka, heartbeat)
        assert kafka.clock.expire_sessions("g", "other") == 0
        assert kafka.clock.expire_sessions("g", "m") == 1
        assert sessions(kafka) == []


def test_a_cluster_with_the_machines_clock_refuses_to_jump() -> None:
    with Kafka() as kafka:
        for move in (
            lambda: kafka.clock.jump(hours=1),
            lambda: kafka.clock.run_until(lambda: True),
        ):
            with pytest.raises(ConfigError, match=r'pytest.mark.kafka\(clock="manual"\)'):
                move()
        with kafka.clock.hold():
            assert kafka.clock.timers()


@pytest.mark.parametrize("duration", [{}, {"seconds": -1}, {"hours": 0}])
def test_a_jump_goes_ahead(kafka: Kafka, duration: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match="a millisecond ahead"):
        kafka.clock.jump(**duration)  # type: ignore[arg-type]


@pytest.mark.parametrize("clock", ["real", "manual"])
def test_frozen_time_has_no_effect_unless_the_clock_follows(
    clock: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Kafka(clock=clock, topics={"t": 1}) as kafka:
        real_ms = time.time_ns() // 1_000_000
        monkeypatch.setattr(time, "time_ns", lambda: 1_000 * DAY_MS * 1_000_000)
        assert abs(kafka.clock.now_ms - real_ms) < 3_600_000
        assert abs(kafka.producer().send("t", b"x").result().timestamp - real_ms) < 3_600_000
        kafka.clock.follow()
        assert kafka.clock.now_ms == 1_000 * DAY_MS
        assert kafka.producer().send("t", b"x").result().timestamp == 1_000 * DAY_MS
        kafka.clock.follow(False)
        assert abs(kafka.clock.now_ms - real_ms) < 3_600_000


def test_a_followed_time_in_the_past_takes_records_with_real_time(
    kafka: Kafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    real_ms = time.time_ns() // 1_000_000
    monkeypatch.setattr(time, "time_ns", lambda: (real_ms - 9 * DAY_MS) * 1_000_000)
    kafka.clock.follow()
    kafka.producer().send("t", b"x", timestamp_ms=real_ms).result()
    with pytest.raises(InvalidTimestamp):
        kafka.producer().send("t", b"x", timestamp_ms=real_ms + DAY_MS).result()
    kafka.clock.jump(days=1)
    kafka.producer().send("t", b"x", timestamp_ms=real_ms + DAY_MS).result()


def test_a_jump_adds_to_a_followed_time(kafka: Kafka, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time_ns", lambda: 1_000 * DAY_MS * 1_000_000)
    kafka.clock.follow()
    kafka.clock.jump(days=1)
    assert 1_001 * DAY_MS <= kafka.clock.now_ms < 1_001 * DAY_MS + 60_000


@pytest.mark.slow  # both libraries look through all modules
@pytest.mark.parametrize("library", ["freezegun", "time_machine"])
def test_libraries_that_freeze_time_have_no_effect(library: str) -> None:
    module = pytest.importorskip(library)
    freeze = module.freeze_time if library == "freezegun" else module.travel
    with Kafka(clock="manual", topics={"t": 1}) as kafka:
        before = kafka.clock.now_ms
        with freeze("2001-02-03"):
            assert abs(kafka.clock.now_ms - before) < 3_600_000
            kafka.clock.jump(hours=2)
            assert 7_200_000 <= kafka.clock.now_ms - before < 10_800_000
            kafka.clock.follow()
            assert kafka.clock.now().year == 2001
            with Kafka() as other:
                assert abs(other.clock.now_ms - before) < 3_600_000
