"""Tests that freeze time: whatever waits uses the machine's clock, whatever ages the test's."""

from __future__ import annotations

from pathlib import Path

import pytest

import embedlog
from embedlog.broker.commits.inbox import CommitInbox
from embedlog.errors import InvalidTxnState
from embedlog.storage.state_files import staged_layout
from embedlog.transport import ANY_NODE
from tests.apis import consumer_groups, groups
from tests.cluster.still import PLACE, Still, pass_machine_time, until
from wire.error_codes import ErrorCode
from wire.schemas.fetch import FetchPartition, FetchRequest, FetchTopic
from wire.schemas.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup

# What waits ends although the test's clock stands still


def test_a_classic_session_ends(still: Still) -> None:
    beat = still.classic_member()
    pass_machine_time(0.15)
    assert still.ask(beat).error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_the_session_of_a_consumer_group_ends(still: Still) -> None:
    with still.consumer("consumer") as consumer:
        until(lambda: consumer.poll(10) or consumer.assignment())
        epoch = still.ask(consumer_groups.join("m", "t")).member_epoch
        pass_machine_time(0.15)
        answer = still.ask(consumer_groups.stay("m", epoch))
        assert answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_second_member_gets_its_assignment(still: Still) -> None:
    still.admin.create_partitions({"t": 2})
    with still.consumer("consumer") as one, still.consumer("consumer") as two:
        until(lambda: one.poll(5) or (len(one.assignment()) == 2))
        until(lambda: two.poll(5) or one.poll(5) or len(two.assignment()) == 1)


def test_max_poll_interval_ends(still: Still) -> None:
    with still.consumer(max_poll_interval_ms=100) as consumer:
        until(lambda: consumer.poll(10) or consumer.assignment())
        pass_machine_time(0.15)
        with pytest.raises(embedlog.CommitFailed):
            consumer.commit({PLACE: embedlog.OffsetAndMetadata(1)})


def test_a_rebalance_ends_without_a_silent_member(still: Still) -> None:
    beat = still.classic_member()
    still.ask(groups.heartbeat(beat.member_id, beat.generation_id))
    second = still.ask(groups.join())
    waiting = still.transport.send(ANY_NODE, groups.join(second.member_id))
    still.transport.wait(waiting, 20_000)
    assert waiting.result().error_code == ErrorCode.NONE


def test_a_transaction_ends_at_its_time_out(still: Still) -> None:
    producer = still.transaction(timeout_ms=100)
    pass_machine_time(0.2)
    with pytest.raises(InvalidTxnState):
        producer.commit_transaction()


def test_a_fetch_that_waits_for_records_ends(still: Still) -> None:
    topic_id = still.cluster.broker().core.image.topics_by_name["t"].topic_id
    asked = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)
    topics = [FetchTopic(topic_id=topic_id, partitions=[asked])]
    waiting = still.transport.send(
        ANY_NODE, FetchRequest(max_wait_ms=100, min_bytes=1, topics=topics)
    )
    assert not waiting.done()
    pass_machine_time(0.11)
    assert still.first_offset() == 0
    assert waiting.done()


def test_lingering_records_are_sent(still: Still) -> None:
    with still.cluster.producer(linger_ms=50) as producer:
        sent = producer.send("t", b"v")
        until(sent.done)


def test_records_that_cannot_be_sent_fail(still: Still) -> None:
    producer = embedlog.Producer(
        "127.0.0.1:1", delivery_timeout_ms=100, request_timeout_ms=50, linger_ms=0, max_block_ms=100
    )
    with pytest.raises(embedlog.TimedOut):
        producer.append("t", b"v")
    producer.close()


# What ages follows the test's clock


def test_records_are_removed(still: Still) -> None:
    with still.cluster.producer() as producer:
        producer.append("t", b"old")
        still.move()
        producer.append("t", b"new")
    still.cluster.maintain()
    assert still.first_offset() == 1


def test_segments_are_rolled(still: Still) -> None:
    with still.cluster.producer() as producer:
        producer.append("t", b"old")
        still.move()
        producer.append("t", b"new")
    log = still.cluster.broker().core.replica_manager.partition("t", 0).log
    assert len(log.segments) == 2


def test_committed_offsets_expire(still: Still) -> None:
    with still.consumer() as consumer:
        until(lambda: consumer.poll(10) or consumer.assignment())
        consumer.commit({PLACE: embedlog.OffsetAndMetadata(1)})
    asked = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=None)])
    assert still.ask(asked).groups[0].topics
    still.move()
    still.cluster.maintain()
    assert not still.ask(asked).groups[0].topics


def test_transactional_ids_expire(still: Still) -> None:
    with still.cluster.producer(transactional_id="x") as producer:
        producer.init_transactions()
    assert list(still.admin.list_transactions()) == ["x"]
    still.move()
    still.cluster.maintain()
    assert list(still.admin.list_transactions()) == []


def test_producer_ids_expire(still: Still) -> None:
    with still.cluster.producer(enable_idempotence=True) as producer:
        producer.send("t", b"v").result()
    assert still.admin.describe_producers([PLACE])[PLACE]
    still.move()
    still.cluster.maintain()
    assert not still.admin.describe_producers([PLACE])[PLACE]


def test_compacted_records_and_tombstones_go(still: Still) -> None:
    compacted = {
        "cleanup.policy": "compact",
        "segment.ms": 60_000,
        "min.cleanable.dirty.ratio": 0,
        "max.compaction.lag.ms": 3_600_000,
        "delete.retention.ms": 3_600_000,
    }
    still.cluster.create_topic("c", config=compacted)
    with still.cluster.producer() as producer:
        for day, value in enumerate((b"1", b"2", None, b"last"), 1):
            producer.send("c", value, key=b"last" if day == 4 else b"k").result()
            still.frozen.move_to(f"2030-01-0{day + 1}")
            still.cluster.maintain()
        producer.send("c", b"", key=b"roll").result()
        still.move()
        still.cluster.maintain()
    with still.cluster.consumer(auto_offset_reset="earliest") as consumer:
        consumer.assign([("c", 0)])
        assert b"k" not in [record.key for record in consumer.poll(100)]


# What waits is not ended by moving the test's clock


def test_a_moved_clock_ends_no_session(still: Still) -> None:
    with still.consumer() as consumer:
        until(lambda: consumer.poll(10) or consumer.assignment())
        still.move()
        consumer.poll(0)
        consumer.commit({PLACE: embedlog.OffsetAndMetadata(1)})


def test_a_moved_clock_ends_no_transaction(still: Still) -> None:
    producer = still.transaction(timeout_ms=60_000)
    still.move()
    still.cluster.maintain()
    producer.commit_transaction()


def test_a_moved_clock_ends_no_pin_and_no_staged_job(still: Still, tmp_path: Path) -> None:
    data = str(tmp_path)
    with embedlog.open(data, durability="os", log_retention_ms=3_600_000) as cluster:
        with cluster.producer() as producer:
            producer.append("t", b"old")
        inbox = CommitInbox(cluster.broker().core)
        staged = Path(staged_layout.part(data, staged_layout.STAGED)) / "job"
        staged.mkdir(parents=True)
        with embedlog.open_reader(data).pin({PLACE: 0}):
            still.move()
            cluster.maintain()
            inbox.worker.sweep()
            log = cluster.broker().core.replica_manager.partition("t", 0).log
            assert log.offsets.log_start_offset == 0
            assert staged.exists()
        inbox.close()
        cluster.maintain()
        assert log.offsets.log_start_offset == 1
