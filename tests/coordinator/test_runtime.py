"""Operations on shards are appended, replayed, and answered when committed; failures on the way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from errno import EIO, ENOSPC
from typing import Any

import pytest

from embedlog import errors
from embedlog.cluster.cluster import Cluster
from embedlog.common import TopicPartition
from embedlog.coordinator.result import Result
from embedlog.runtime.pending import Pending
from embedlog.storage.validation.origin import AppendOrigin
from embedlog.testing import SimFiles, sim_runtime
from tests.controller.made_topics import create_topic
from tests.coordinator.notebook import TOPIC, Notebook, Rig, note
from wire.records import Codec, build_batch, iter_batches
from wire.records.control import ControlType, control_key


@pytest.fixture
def make_rig() -> Iterator[Callable[..., Rig]]:
    """`make_rig(path=None, durability=None, files=None)`: notebooks over a simulated cluster."""
    made: list[Cluster] = []

    def make(path: str | None = None, *, files: SimFiles | None = None, **how: Any) -> Rig:
        runtime = sim_runtime(seed=3, files=files)
        made.append(Cluster(path, runtime=runtime, **how))
        return Rig(made[-1], runtime)

    yield make
    for cluster in made:
        cluster.close()


@pytest.fixture
def rig(make_rig: Callable[..., Rig]) -> Rig:
    return make_rig()


@pytest.fixture
def durable(make_rig: Callable[..., Rig]) -> Rig:
    return make_rig("data", durability="fsync")


def test_what_an_operation_writes_is_one_batch_replayed_and_answered(rig: Rig) -> None:
    pending = rig.write(note("a", 1), note("b", 2), note("a", 3))
    assert pending.result() == "done"
    assert rig.notes().result() == {"a": 3, "b": 2}
    read = rig.partition.log.reader.read(0, max_bytes=1 << 20, end_offset=3)
    assert [batch.record_count for batch in iter_batches(read.records)] == [3]
    assert rig.shards[0].offsets == [0, 1, 2]


def test_an_operation_that_raises_writes_nothing_and_answers_with_its_error(rig: Rig) -> None:
    def refuse(_shard: Notebook) -> Result[Any]:
        raise errors.IllegalGeneration("no")

    pending = rig.coordinator.write(0, refuse)
    error = pending.error()
    assert isinstance(error, errors.IllegalGeneration)
    assert error.message == "no"
    assert rig.partition.log.log_end_offset == 0
    assert rig.notes().result() == {}


def test_partitions_have_shards_of_their_own(rig: Rig) -> None:
    rig.write(note("a", 1), index=0)
    rig.write(note("a", 2), index=2)
    assert [rig.notes(index).result() for index in range(3)] == [{"a": 1}, {}, {"a": 2}]


def test_a_partition_that_does_not_exist_has_no_coordinator(rig: Rig) -> None:
    assert isinstance(rig.notes(9).error(), errors.NotCoordinator)


def test_soft_state_is_not_replayed_into(rig: Rig) -> None:
    rig.write(note("a", 1), is_replayed=False)
    assert rig.notes().result() == {}
    assert rig.partition.log.log_end_offset == 1


def test_a_parked_response_is_answered_when_it_completes(rig: Rig) -> None:
    parked: Pending[str] = Pending()
    pending = rig.coordinator.write(0, lambda _shard: Result([note("a", 1)], parked))
    assert not pending.done()
    parked.complete("at last")
    assert pending.result() == "at last"


def test_a_parked_response_may_fail(rig: Rig) -> None:
    parked: Pending[str] = Pending()
    pending = rig.coordinator.write(0, lambda _shard: Result((), parked))
    parked.fail(errors.RebalanceInProgress())
    assert isinstance(pending.error(), errors.RebalanceInProgress)


# Commitment


def test_an_answer_waits_for_the_disk(durable: Rig) -> None:
    pending = durable.write(note("a", 1))
    assert not pending.done()
    assert durable.wait(pending) == "done"
    assert durable.partition.log.durability.synced_offset == 1


def test_a_read_is_answered_when_what_it_saw_is_committed(durable: Rig) -> None:
    durable.wait(durable.write(note("a", 1)))
    assert durable.notes().done()
    written = durable.write(note("a", 2))
    read = durable.notes()
    assert not read.done()
    assert durable.wait(read) == {"a": 2}
    assert written.done()


def test_one_sync_commits_many_operations(durable: Rig) -> None:
    durable.wait(durable.write(note("a", 0)))
    files = durable.runtime.files
    before = len(files.trace)
    pending = [durable.write(note("a", number)) for number in range(10)]
    durable.wait(pending[-1])
    assert all(one.done() for one in pending)
    assert [call for call, _ in files.trace[before:]].count("sync") == 1


def test_on_append_is_told_of_the_commit_under_the_lock(durable: Rig) -> None:
    told: list[object] = []

    def operation(shard: Notebook) -> Result[str]:
        def on_append(error: errors.KafkaError | None) -> None:
            told.append(error)
            shard.context.defer(lambda: told.append("deferred"))

        return Result([note("a", 1)], "done", on_append=on_append)

    pending = durable.coordinator.write(0, operation)
    assert told == []
    durable.wait(pending)
    assert told == [None, "deferred"]


def test_a_commit_that_takes_too_long_is_told_and_stays_in_the_log(
    durable: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    durable.wait(durable.write(note("a", 1)))
    monkeypatch.setattr(durable.manager, "appended", lambda _partition: None)
    pending = durable.write(note("a", 2))
    durable.pass_time(4_999)
    assert not pending.done()
    durable.pass_time(2)
    assert isinstance(pending.error(), errors.CoordinatorNotAvailable)
    assert durable.partition.log.log_end_offset == 2


# Deferred actions


def test_deferred_actions_run_after_the_lock_is_released(rig: Rig) -> None:
    answers: list[Any] = []

    def operation(shard: Notebook) -> Result[str]:
        # The answered code may call the same shard.
        shard.context.defer(lambda: answers.append(rig.notes().result()))
        return Result([note("a", 1)], "done")

    assert rig.run(operation) == "done"
    assert answers == [{"a": 1}]


def test_deferred_actions_run_when_the_operation_raises(rig: Rig) -> None:
    ran: list[str] = []

    def operation(shard: Notebook) -> Result[str]:
        shard.context.defer(lambda: ran.append("yes"))
        raise errors.UnknownMemberId()

    assert rig.coordinator.write(0, operation).error() is not None
    assert ran == ["yes"]


def test_an_operation_within_an_operation_is_refused(rig: Rig) -> None:
    with pytest.raises(AssertionError, match="defer it"):
        rig.coordinator.write(0, lambda _shard: Result((), rig.notes()))
    assert rig.notes().result() == {}


# Refusals of the log


def test_a_full_disk_refuses_and_leaves_the_shard_as_it_was(durable: Rig) -> None:
    durable.wait(durable.write(note("a", 1)))
    told: list[errors.KafkaError | None] = []
    files = durable.runtime.files
    files.fail(files.calls, ENOSPC)
    pending = durable.write(note("a", 2), on_append=told.append)
    assert isinstance(pending.error(), errors.NotCoordinator)
    assert [type(error) for error in told] == [errors.NotCoordinator]
    assert durable.wait(durable.notes()) == {"a": 1}
    assert durable.wait(durable.write(note("a", 3))) == "done"


def test_on_append_may_answer_a_refusal_itself(durable: Rig) -> None:
    durable.wait(durable.write(note("a", 1)))
    parked: Pending[str] = Pending()

    def operation(shard: Notebook) -> Result[str]:
        def on_append(_error: errors.KafkaError | None) -> None:
            shard.context.defer(lambda: parked.complete("rolled back"))

        return Result([note("a", 2)], parked, on_append=on_append)

    files = durable.runtime.files
    files.fail(files.calls, ENOSPC)
    assert durable.run(operation) == "rolled back"


def test_a_failed_sync_is_told_to_writers_and_readers(durable: Rig) -> None:
    durable.wait(durable.write(note("a", 1)))
    told: list[errors.KafkaError | None] = []
    pending = durable.write(note("a", 2), on_append=told.append)
    read = durable.notes()
    files = durable.runtime.files
    files.fail(files.calls, EIO)
    for waiting in (pending, read):
        with pytest.raises(errors.NotCoordinator):
            durable.wait(waiting)
    assert [type(error) for error in told] == [errors.NotCoordinator]
    # It must never show a number that the disk may not have.
    assert isinstance(durable.notes().error(), errors.NotCoordinator)
    assert isinstance(durable.write(note("a", 3)).error(), errors.NotCoordinator)


def test_records_too_large_for_the_log_are_refused(make_rig: Callable[..., Rig]) -> None:
    rig = make_rig(config={"message.max.bytes": 300})
    pending = rig.write(*(note(f"name {number}", 1) for number in range(20)))
    assert isinstance(pending.error(), errors.UnknownServerError)
    assert rig.notes().result() == {}


def test_too_few_replicas_refuse(rig: Rig) -> None:
    rig.notes()
    rig.partition.isr = ()
    assert isinstance(rig.write(note("a", 1)).error(), errors.CoordinatorNotAvailable)


def test_records_that_need_not_be_atomic_may_be_several_batches(rig: Rig) -> None:
    records = [note(f"{'name' * 100} {number}", number) for number in range(2000)]
    assert rig.write(*records, is_atomic=False).result() == "done"
    assert len(rig.notes().result()) == 2000
    read = rig.partition.log.reader.read(0, max_bytes=10 << 20, end_offset=2000)
    counts = [batch.record_count for batch in iter_batches(read.records)]
    assert sum(counts) == 2000
    assert 1 < len(counts) < 10
    assert rig.shards[0].offsets == list(range(2000))


# Loading


def test_a_shard_is_loaded_from_its_log_when_it_is_first_asked_for(
    make_rig: Callable[..., Rig],
) -> None:
    first = make_rig("data", durability="fsync")
    first.wait(first.write(note("a", 1), note("b", 2)))
    first.wait(first.write(note("b", None), note("c", 3)))
    first.cluster.close()
    second = make_rig("data", durability="fsync", files=first.runtime.files)
    assert second.shards == []
    assert second.wait(second.notes()) == {"a": 1, "c": 3}
    assert second.shards[0].is_loaded
    assert second.shards[0].offsets == [0, 1, 2, 3]


def test_read_all_finds_what_no_shard_was_loaded_for(make_rig: Callable[..., Rig]) -> None:
    first = make_rig("data", durability="os")
    first.write(note("a", 1), index=0)
    first.write(note("b", 2), index=2)
    first.cluster.close()
    second = make_rig("data", durability="os", files=first.runtime.files)
    found = [second.wait(p) for p in second.coordinator.read_all(lambda shard: dict(shard.notes))]
    assert found == [{"a": 1}, {"b": 2}]


def test_loading_understands_whatever_a_log_may_hold(rig: Rig) -> None:
    def pair(record: Any) -> tuple[bytes, bytes | None]:
        from embedlog.coordinator.records import GROUP_RECORD_TYPES, RecordFormat

        return RecordFormat(GROUP_RECORD_TYPES).encode(record)

    def append(*records: tuple[bytes, bytes | None], **how: Any) -> None:
        batch = build_batch(
            [value for _, value in records], keys=[key for key, _ in records], timestamps=1, **how
        )
        rig.manager.append(rig.partition, batch, acks=-1, origin=AppendOrigin.COORDINATOR)

    def transaction(producer_id: int, *records: Any) -> None:
        append(*map(pair, records), producer_id=producer_id, producer_epoch=0, transactional=True)

    def marker(producer_id: int, control_type: int) -> None:
        append(
            (control_key(control_type), b"\0\0\0\0\0\1"),
            producer_id=producer_id,
            producer_epoch=0,
            transactional=True,
            control=True,
        )

    append(pair(note("plain", 1)), pair(note("gone", 1)))
    append(pair(note("zipped", 2)), pair(note("plain", 3)), codec=Codec.GZIP)
    append((b"\0\x63of another version", b"\0\0?"), pair(note("gone", None)))
    transaction(7, note("committed", 4))
    transaction(8, note("aborted", 5))
    transaction(9, note("open", 6))
    marker(8, ControlType.ABORT)
    marker(7, ControlType.COMMIT)
    append((b"\0\x63", None))
    assert rig.notes().result() == {"plain": 3, "zipped": 2, "committed": 4}
    assert rig.shards[0].pending == {9: {"open": 6}}


def test_a_log_that_cannot_be_understood_has_no_coordinator(rig: Rig) -> None:
    batch = build_batch([b"\0\3?"], keys=[b"\0\1\0\1a"], timestamps=1)
    rig.manager.append(rig.partition, batch, acks=-1, origin=AppendOrigin.COORDINATOR)
    assert isinstance(rig.notes().error(), errors.UnknownServerError)
    assert rig.notes(1).result() == {}


# Unloaded shards


def test_a_new_leader_epoch_begins_a_new_shard(rig: Rig) -> None:
    rig.write(note("a", 1))
    context = rig.shards[0].context
    rig.cluster.broker().core.controller.bump_leader_epochs([TopicPartition(TOPIC, 0)])
    assert rig.notes().result() == {"a": 1}
    assert len(rig.shards) == 2
    assert isinstance(rig.shards[0].ended_with, errors.NotCoordinator)
    late = context.write(lambda _shard: Result([note("a", 2)], "too late"))
    assert isinstance(late.error(), errors.NotCoordinator)
    assert rig.notes().result() == {"a": 1}


def test_a_former_leader_refuses(rig: Rig) -> None:
    rig.write(note("a", 1))
    rig.partition.is_leader = False
    assert isinstance(rig.notes().error(), errors.NotCoordinator)
    assert isinstance(rig.shards[0].ended_with, errors.NotCoordinator)


def test_a_topic_that_is_made_again_begins_empty(rig: Rig) -> None:
    rig.write(note("a", 1))
    controller = rig.cluster.broker().core.controller
    controller.delete_topic(controller.image.topics_by_name[TOPIC].topic_id)
    rig.coordinator.unload_all()
    assert isinstance(rig.notes().error(), errors.NotCoordinator)
    create_topic(controller, TOPIC, partition_count=3)
    assert rig.notes().result() == {}


def test_who_is_parked_at_a_deleted_topic_is_told_by_the_next_one(rig: Rig) -> None:
    rig.write(note("a", 1))
    controller = rig.cluster.broker().core.controller
    controller.delete_topic(controller.image.topics_by_name[TOPIC].topic_id)
    create_topic(controller, TOPIC, partition_count=3)
    assert rig.notes().result() == {}
    assert isinstance(rig.shards[0].ended_with, errors.NotCoordinator)


def test_closing_answers_whoever_is_parked(rig: Rig) -> None:
    rig.write(note("a", 1))
    rig.coordinator.close()
    assert isinstance(rig.shards[0].ended_with, errors.CoordinatorNotAvailable)
    assert isinstance(rig.notes().error(), errors.CoordinatorNotAvailable)


# Timers


def set_timer(rig: Rig, key: str, delay_ms: int, number: int) -> None:
    def operation(shard: Notebook) -> Result[Any]:
        shard.context.timer.schedule(key, delay_ms, lambda: Result([note(key, number)]))
        return Result()

    rig.run(operation)


def test_a_timer_runs_its_operation_when_its_time_has_come(rig: Rig) -> None:
    set_timer(rig, "a", 100, 1)
    set_timer(rig, "b", 0, 2)
    assert rig.shards[0].context.timer.is_scheduled("a")
    rig.pass_time(99)
    assert rig.notes().result() == {"b": 2}
    rig.pass_time(1)
    assert rig.notes().result() == {"a": 1, "b": 2}
    assert not rig.shards[0].context.timer.is_scheduled("a")


def test_a_key_has_one_timer(rig: Rig) -> None:
    set_timer(rig, "a", 100, 1)
    set_timer(rig, "a", 200, 2)
    rig.pass_time(150)
    assert rig.notes().result() == {}
    rig.pass_time(50)
    assert rig.notes().result() == {"a": 2}


def test_a_cancelled_timer_does_nothing(rig: Rig) -> None:
    set_timer(rig, "a", 100, 1)

    def operation(shard: Notebook) -> Result[Any]:
        shard.context.timer.cancel("a")
        shard.context.timer.cancel("never set")
        return Result()

    rig.run(operation)
    rig.pass_time(1000)
    assert rig.notes().result() == {}


def test_timers_end_with_their_shard(rig: Rig) -> None:
    set_timer(rig, "a", 100, 1)
    rig.cluster.broker().core.controller.bump_leader_epochs([TopicPartition(TOPIC, 0)])
    rig.notes()
    rig.pass_time(1000)
    assert rig.notes().result() == {}


def test_a_timer_whose_records_are_refused_tries_again(durable: Rig) -> None:
    durable.wait(durable.write(note("b", 1)))
    set_timer(durable, "a", 100, 1)
    durable.pass_time(99)
    files = durable.runtime.files
    files.fail(files.calls, ENOSPC)
    durable.pass_time(2)
    assert durable.wait(durable.notes()) == {"b": 1}
    durable.pass_time(600)
    assert durable.wait(durable.notes()) == {"a": 1, "b": 1}


# Damage


@pytest.mark.slow
def test_a_damaged_shard_refuses_and_is_not_taken_for_an_empty_one(
    durable: Rig, make_rig: Callable[..., Rig]
) -> None:
    """One flipped bit at a time: the notes are unchanged, or cannot be read."""
    for number in range(3):
        durable.wait(durable.write(note("a", number)))
    durable.cluster.close()
    disk = durable.runtime.files
    path = f"data/{TOPIC}-0/00000000000000000000.log"
    for bit in range(0, len(disk.read(path)) * 8, 13):
        damaged = disk.survivor()
        file = damaged.open(path)
        file.write([bytes([file.view(bit // 8, 1)[0] ^ 1 << bit % 8])], bit // 8)
        rig = make_rig("data", durability="fsync", files=damaged)
        answer = rig.notes()
        error = answer.error()
        if error is None:
            # A batch of a compacted log may have any offset: that is no note's number.
            assert bit // 8 % 103 < 8, bit
            assert answer.result() == {"a": 2}
        else:
            assert isinstance(error, errors.UnknownServerError), bit
            assert path in str(error)
            assert isinstance(rig.notes().error(), errors.UnknownServerError)
            assert isinstance(rig.write(note("a", 4)).error(), errors.UnknownServerError)
        rig.cluster.close()


def test_a_shard_whose_damage_was_noticed_by_a_recovery_refuses(
    durable: Rig, make_rig: Callable[..., Rig]
) -> None:
    for number in range(2):
        durable.wait(durable.write(note("a", number)))
    durable.cluster.broker().core.log_manager.first.checkpoints.write_positions()
    disk = durable.runtime.files.survivor()
    file = disk.open(f"data/{TOPIC}-0/00000000000000000000.log")
    file.write([bytes([file.view(70, 1)[0] ^ 1])], 70)
    rig = make_rig("data", durability="fsync", files=disk)
    assert isinstance(rig.partition.log.failure, errors.CorruptRecord)
    assert isinstance(rig.notes().error(), errors.UnknownServerError)
