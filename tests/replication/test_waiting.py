"""Operations that wait, and what ends the wait: always outside the partition lock."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from embedlog import errors
from embedlog.replication.delayed_delete_records import DelayedDeleteRecords, DeletedPartition
from embedlog.replication.partition import Partition
from embedlog.runtime.lock_order import LockOrderViolation
from embedlog.runtime.pending import Pending
from tests.golden.batches import simple
from tests.golden.requests import Topic, fetch, produce
from tests.replication.conftest import Rig, held_partition_locks
from wire.error_codes import ErrorCode
from wire.schemas.delete_records import DeleteRecordsPartitionResult, DeleteRecordsResponse

MakeRig = Callable[..., Rig]
LONG_MS = 30_000


def make_topic(rig: Rig, partitions: int = 1, **config: object) -> Topic:
    made = rig.cluster.create_topic("t", partitions, config=config)
    return made.name, made.topic_id


def waiting_fetch(rig: Rig, topic: Topic, offset: int = 0, **how: int) -> Pending[object]:
    how = {"max_wait_ms": LONG_MS, "min_bytes": 1, **how}
    answer = rig.handle(fetch(topic, 12, offset, **how), 12)
    assert isinstance(answer, Pending)
    return answer


def test_nothing_completes_under_a_partition_lock(
    make_rig: MakeRig, lock_violations: list[str]
) -> None:
    rig = make_rig()
    topic = make_topic(rig)
    partition = rig.manager.partition(topic[0], 0)
    waiting_fetch(rig, topic)
    with partition.lock:
        assert held_partition_locks() == [partition.lock]
        with pytest.raises(LockOrderViolation, match="OPERATION .* under .* PARTITION"):
            rig.manager.append(partition, simple(b"a"), acks=1)
    assert held_partition_locks() == []
    assert len(lock_violations) == 1


def test_an_append_completes_waiting_fetches_after_its_lock(
    make_rig: MakeRig, completed: list[str]
) -> None:
    rig = make_rig()
    topic = make_topic(rig)
    waiting = [waiting_fetch(rig, topic) for _ in range(3)]
    rig.handle(produce(topic, 9, simple(b"a")), 9)
    assert [pending.done() for pending in waiting] == [True] * 3
    assert completed == ["DelayedFetch"] * 3


@pytest.mark.slow
def test_a_thousand_waiting_fetches_of_one_partition_leave_the_others_alone(
    make_rig: MakeRig,
) -> None:
    rig = make_rig()
    topic = make_topic(rig, partitions=2)
    waiting = [waiting_fetch(rig, topic, partition=1) for _ in range(1000)]
    rig.handle(produce(topic, 9, simple(b"a")), 9)
    assert not any(pending.done() for pending in waiting)
    assert rig.manager.fetch_purgatory.delayed == 1000
    rig.runtime.scheduler.run_for(LONG_MS + 1)
    assert all(pending.done() for pending in waiting)


def test_a_rolled_segment_ends_the_wait_for_more_bytes(make_rig: MakeRig) -> None:
    rig = make_rig()
    topic = make_topic(rig)
    rig.handle(produce(topic, 9, simple(b"a")), 9)
    waiting = waiting_fetch(rig, topic, min_bytes=10_000)
    partition = rig.manager.partition(topic[0], 0)
    with partition.lock:
        partition.log.roll()
    assert not waiting.done()
    rig.handle(produce(topic, 9, simple(b"b")), 9)
    assert waiting.done()


def test_a_partition_limit_below_min_bytes_counts_in_full(make_rig: MakeRig) -> None:
    """Kafka counts the bytes up to the limit, whole batches or not."""
    rig = make_rig()
    topic = make_topic(rig)
    for _ in range(5):
        rig.handle(produce(topic, 9, simple(b"x" * 30)), 9)
    answer = rig.handle(
        fetch(topic, 12, max_wait_ms=LONG_MS, min_bytes=250, partition_max_bytes=250), 12
    )
    assert not isinstance(answer, Pending)


@pytest.mark.parametrize("acks", [1, -1])
def test_fsync_topics_answer_after_the_sync(
    make_rig: MakeRig, completed: list[str], acks: int
) -> None:
    rig = make_rig("/data", durability="fsync")
    topic = make_topic(rig)
    partition = rig.manager.partition(topic[0], 0)
    reader = waiting_fetch(rig, topic)
    first = rig.handle(produce(topic, 9, simple(b"a"), acks=acks), 9)
    second = rig.handle(produce(topic, 9, simple(b"b"), acks=acks), 9)
    assert isinstance(first, Pending)
    assert (first.done(), second.done(), reader.done()) == (False, False, False)
    assert (partition.log.log_end_offset, partition.log.offsets.high_watermark) == (2, 0)
    rig.run_due()
    assert (first.done(), second.done(), reader.done()) == (True, True, True)
    assert (partition.log.durability.synced_offset, partition.log.offsets.high_watermark) == (2, 2)
    offsets = [
        pending.result().responses[0].partition_responses[0].base_offset
        for pending in (first, second)
    ]
    assert offsets == [0, 1]
    assert sorted(completed) == ["DelayedFetch", "DelayedProduce", "DelayedProduce"]


def test_many_produces_share_one_sync(make_rig: MakeRig, monkeypatch: pytest.MonkeyPatch) -> None:
    rig = make_rig("/data", durability="fsync")
    topic = make_topic(rig)
    syncs: list[int] = []
    sync = Partition.sync

    def counted(partition: Partition) -> None:
        syncs.append(partition.log.log_end_offset)
        sync(partition)

    monkeypatch.setattr(Partition, "sync", counted)
    waiting = [rig.handle(produce(topic, 9, simple(b"a")), 9) for _ in range(50)]
    rig.run_due()
    assert all(pending.done() for pending in waiting)
    assert syncs == [50]


def test_acks_0_does_not_wait_for_the_sync(make_rig: MakeRig) -> None:
    rig = make_rig("/data", durability="fsync")
    topic = make_topic(rig)
    assert rig.handle(produce(topic, 9, simple(b"a"), acks=0), 9) is None
    rig.run_due()
    assert rig.manager.partition(topic[0], 0).log.offsets.high_watermark == 1


def test_a_produce_that_waits_too_long_times_out(make_rig: MakeRig) -> None:
    rig = make_rig("/data", durability="fsync")
    topic = make_topic(rig)
    rig.runtime.scheduler.remove(rig.manager.to_sync)
    waiting = rig.handle(produce(topic, 9, simple(b"a"), timeout_ms=500), 9)
    rig.runtime.scheduler.run_for(499)
    assert not waiting.done()
    rig.runtime.scheduler.run_for(2)
    [answer] = waiting.result().responses[0].partition_responses
    assert (answer.error_code, answer.base_offset) == (ErrorCode.REQUEST_TIMED_OUT, 0)


@pytest.mark.parametrize(
    "version, code",
    [(2, ErrorCode.NOT_LEADER_OR_FOLLOWER), (3, ErrorCode.KAFKA_STORAGE_ERROR), (9, 56)],
)
def test_a_failed_sync_is_an_error_for_waiting_and_new_producers(
    make_rig: MakeRig, version: int, code: int
) -> None:
    rig = make_rig("/data", durability="fsync")
    topic = make_topic(rig)
    waiting = rig.handle(produce(topic, version, simple(b"a")), version)
    log = rig.manager.partition(topic[0], 0).log
    log.retire(OSError(5, "Input/output error"))
    rig.run_due()
    [answer] = waiting.result().responses[0].partition_responses
    assert answer.error_code == code
    later = rig.handle(produce(topic, version, simple(b"b")), version)
    [answer] = later.responses[0].partition_responses
    assert answer.error_code == code


@pytest.mark.parametrize("change", ["delete", "no leader", "too few replicas"])
def test_outcomes_of_a_waiting_produce(make_rig: MakeRig, change: str) -> None:
    rig = make_rig("/data", durability="fsync")
    topic = make_topic(rig)
    partition = rig.manager.partition(topic[0], 0)
    waiting = rig.handle(produce(topic, 9, simple(b"a")), 9)
    if change == "delete":
        rig.broker.controller.delete_topic(topic[1])
        expected = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    elif change == "no leader":
        partition.is_leader = False
        rig.manager.changed(partition)
        expected = ErrorCode.NOT_LEADER_OR_FOLLOWER
    else:
        partition.min_isr = 2
        expected = ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
    rig.run_due()
    [answer] = waiting.result().responses[0].partition_responses
    assert answer.error_code == expected


def test_a_topic_may_be_less_durable_than_the_cluster(make_rig: MakeRig) -> None:
    rig = make_rig("/data", durability="fsync")
    topic = make_topic(rig, **{"embedlog.durability": "os"})
    response = rig.handle(produce(topic, 9, simple(b"a")), 9)
    assert not isinstance(response, Pending)
    partition = rig.manager.partition(topic[0], 0)
    assert (partition.log.offsets.high_watermark, partition.syncs) == (1, False)


class LaggingPartition:
    """A partition with a second replica that still holds deleted records."""

    def __init__(self, partition: Partition) -> None:
        self._partition = partition
        self.low_watermark = 0

    def __getattr__(self, name: str) -> object:
        return getattr(self._partition, name)


@pytest.mark.parametrize("end", ["follows", "times out", "deleted", "no leader"])
def test_delete_records_waits_for_the_other_replicas(make_rig: MakeRig, end: str) -> None:
    rig = make_rig()
    topic = make_topic(rig)
    partition = rig.manager.partition(topic[0], 0)
    lagging = LaggingPartition(partition)
    answer = DeleteRecordsPartitionResult()
    waiting = rig.manager.await_deletion(
        1000,
        [DeletedPartition(lagging, 5, answer)],  # type: ignore[arg-type]
        DeleteRecordsResponse(),
    )
    assert isinstance(waiting, Pending)
    assert not waiting.done()
    if end == "follows":
        lagging.low_watermark = 5
    elif end == "deleted":
        partition.retired_with = errors.UnknownTopicOrPartition
    elif end == "no leader":
        partition.is_leader = False
    else:
        rig.runtime.scheduler.run_for(1001)
    rig.manager.changed(partition)
    rig.run_due()
    assert waiting.done()
    assert (answer.error_code, answer.low_watermark) == {
        "follows": (ErrorCode.NONE, 5),
        "times out": (ErrorCode.REQUEST_TIMED_OUT, 0),
        "deleted": (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1),
        "no leader": (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1),
    }[end]
    assert rig.manager.delete_records_purgatory.delayed == 0


def test_delete_records_that_has_arrived_does_not_wait(make_rig: MakeRig) -> None:
    rig = make_rig()
    topic = make_topic(rig)
    partition = rig.manager.partition(topic[0], 0)
    response = DeleteRecordsResponse()
    deleted = DeletedPartition(partition, 0, DeleteRecordsPartitionResult())
    assert rig.manager.await_deletion(1000, [deleted], response) is response
    assert DelayedDeleteRecords(0, [deleted], response).try_complete()


def test_partitions_are_loaded_when_they_are_asked_for(make_rig: MakeRig) -> None:
    first = make_rig("/data", durability="os")
    topic = make_topic(first, partitions=3)
    first.handle(produce(topic, 9, simple(b"a"), partition=1), 9)
    first.cluster.close()
    second = make_rig("/data", durability="os", files=first.runtime.files)
    assert second.manager.partitions == {}
    found = second.handle(fetch(topic, 12, partition=1), 12).responses[0].partitions[0]
    assert (found.error_code, found.high_watermark) == (ErrorCode.NONE, 1)
    assert list(second.manager.partitions) == [(topic[0], 1)]
    with pytest.raises(errors.UnknownTopicOrPartition):
        second.manager.partition(topic[0], 3)
    assert len(second.broker.all_partitions()) == 3


def test_an_unclean_stop_begins_a_leader_epoch_that_clients_see(make_rig: MakeRig) -> None:
    first = make_rig("/data", durability="os")
    topic = make_topic(first)
    first.handle(produce(topic, 9, simple(b"a")), 9)
    # The process dies here: its writes are on disk, but nothing was closed.
    second = make_rig("/data", durability="os", files=first.runtime.files.survivor())
    partition = second.manager.partition(topic[0], 0)
    image = second.broker.controller.image.partition(topic[0], 0)
    assert image is not None
    assert partition.leader_epoch == image.leader_epoch == partition.log.epochs.latest == 1
