"""The coordinator's answers and records equal those of a Kafka 4.4.0 broker."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from embedlog.coordinator.transaction.transaction_metadata import EPOCH_MAX
from embedlog.testing import sim_runtime
from tests.coordinator.transaction.world import TOPIC, World, Written
from wire.error_codes import ErrorCode

LAST_OF_CLIENTS = EPOCH_MAX - 1


@pytest.fixture
def world() -> Iterator[World]:
    made = World()
    yield made
    made.cluster.close()


def test_a_committed_transaction_step_by_step(world: World) -> None:
    producer = world.producer()
    assert producer[1] == 0
    pid = producer[0]
    assert world.add(producer, 0, 1) == [0, 0]
    assert world.add(producer, 2) == [0]
    assert world.add(producer, 0) == [0]  # nothing is written
    assert world.end(producer) == (0, pid, 1)
    assert world.written() == [
        Written("Empty", pid, pid, -1, 0, None, 0),
        Written("Ongoing", pid, pid, -1, 0, [0, 1], 0),
        Written("Ongoing", pid, pid, -1, 0, [0, 1, 2], 0),
        Written("PrepareCommit", pid, pid, -1, 1, [0, 1, 2], 2),
        Written("CompleteCommit", pid, pid, -1, 1, [], 2),
    ]
    assert world.markers == [(pid, 1, True, {TOPIC: [0, 1, 2]})]


def test_an_aborted_transaction_that_the_broker_added_to(world: World) -> None:
    pid, epoch = world.producer()
    assert world.register((pid, epoch), 0) == [0]
    assert world.end((pid, epoch), is_committed=False) == (0, pid, 1)
    assert world.written(first=1) == [
        Written("Ongoing", pid, pid, -1, 0, [0], 2),
        Written("PrepareAbort", pid, pid, -1, 1, [0], 2),
        Written("CompleteAbort", pid, pid, -1, 1, [], 2),
    ]
    assert world.markers == [(pid, 1, False, {TOPIC: [0]})]


def test_an_abort_of_nothing_raises_the_epoch(world: World) -> None:
    pid, _ = world.producer()
    assert world.end((pid, 0), is_committed=False) == (0, pid, 1)
    assert world.end((pid, 1), is_committed=False) == (0, pid, 2)
    assert world.end((pid, 1), is_committed=False) == (0, pid, 2)  # repeated
    assert [each.state for each in world.written()] == [
        "Empty",
        "PrepareAbort",
        "CompleteAbort",
        "PrepareAbort",
        "CompleteAbort",
    ]
    assert world.markers == []


def test_before_version_5_the_epoch_stays(world: World) -> None:
    pid, _ = world.producer(version=4)
    world.add((pid, 0), 0)
    assert world.end((pid, 0), version=4) == (0, -1, -1)
    assert world.written(first=1) == [
        Written("Ongoing", pid, pid, -1, 0, [0], 0),
        Written("PrepareCommit", pid, pid, -1, 0, [0], 0),
        Written("CompleteCommit", pid, pid, -1, 0, [], 0),
    ]
    assert world.end((pid, 0), version=4) == (0, -1, -1)
    assert world.end((pid, 0), is_committed=False, version=4)[0] == ErrorCode.INVALID_TXN_STATE
    assert world.end((pid, 0), is_committed=False, version=1)[0] == ErrorCode.INVALID_TXN_STATE


def test_one_that_goes_on_names_what_it_has(world: World) -> None:
    pid, _ = world.producer()
    assert world.producer(producer_id=pid, epoch=0) == (pid, 1)
    assert world.producer(producer_id=pid, epoch=0) == (pid, 1)  # its answer was lost
    assert world.producer() == (pid, 2)  # another producer
    assert world.initialize("t", pid, 1).error_code == ErrorCode.PRODUCER_FENCED
    assert world.initialize("t", pid, 1, version=3).error_code == ErrorCode.INVALID_PRODUCER_EPOCH
    assert world.initialize("t", pid + 9, 2).error_code == ErrorCode.PRODUCER_FENCED


def test_another_instance_fences_the_open_transaction(world: World) -> None:
    pid, _ = world.producer()
    world.add((pid, 0), 0)
    assert world.initialize().error_code == ErrorCode.CONCURRENT_TRANSACTIONS
    assert world.producer() == (pid, 2)
    assert world.written(first=2) == [
        Written("PrepareAbort", pid, pid, -1, 1, [0], 2),
        Written("CompleteAbort", pid, pid, -1, 1, [], 2),
        Written("Empty", pid, pid, -1, 2, None, 2),
    ]
    assert world.markers == [(pid, 1, False, {TOPIC: [0]})]
    assert world.add((pid, 0), 0) == [ErrorCode.PRODUCER_FENCED]
    assert world.end((pid, 0))[0] == ErrorCode.PRODUCER_FENCED
    assert world.end((pid, 0), version=1)[0] == ErrorCode.INVALID_PRODUCER_EPOCH


def test_its_own_instance_goes_on_after_its_open_transaction(world: World) -> None:
    pid, _ = world.producer()
    world.add((pid, 0), 0)
    assert world.initialize("t", pid, 0).error_code == ErrorCode.CONCURRENT_TRANSACTIONS
    assert world.producer(producer_id=pid, epoch=0) == (pid, 1)


def test_what_takes_too_long_is_aborted(world: World) -> None:
    pid, _ = world.producer(timeout_ms=300)
    world.add((pid, 0), 0)
    world.let_pass(21_000)
    assert world.written(first=2) == [
        Written("PrepareAbort", pid, pid, -1, 1, [0], 2),
        Written("CompleteAbort", pid, pid, -1, 1, [], 2),
    ]
    assert world.end((pid, 0))[0] == ErrorCode.INVALID_TXN_STATE
    assert world.end((pid, 0), is_committed=False) == (0, pid, 1)
    assert world.end((pid, 1), is_committed=False) == (0, pid, 2)


def test_the_last_epoch_of_an_id_is_followed_by_another_id(world: World) -> None:
    pid, _ = world.producer()
    shard = world.cluster.broker().core.transaction_coordinator.runtime.loaded()[0]
    present = shard.transactions["t"]
    shard.transactions["t"] = present.replace(producer_epoch=LAST_OF_CLIENTS)
    assert world.add((pid, LAST_OF_CLIENTS), 0) == [0]
    code, new, epoch = world.end((pid, LAST_OF_CLIENTS), is_committed=False)
    assert (code, epoch) == (0, 0)
    assert new != pid
    assert world.written(first=2) == [
        Written("PrepareAbort", pid, pid, new, EPOCH_MAX, [0], 2),
        Written("CompleteAbort", new, pid, -1, 0, [], 2),
    ]
    assert world.markers == [(pid, EPOCH_MAX, False, {TOPIC: [0]})]
    old = (pid, LAST_OF_CLIENTS)
    assert world.end(old, is_committed=False) == (0, new, 0)  # repeated
    assert world.end(old)[0] == ErrorCode.INVALID_TXN_STATE
    assert world.add(old, 0) == [ErrorCode.INVALID_PRODUCER_ID_MAPPING]
    # The previous id counts with its last epoch only, even if the present epoch is the same.
    assert world.initialize("t", pid, 0).error_code == ErrorCode.PRODUCER_FENCED
    assert world.producer(producer_id=pid, epoch=LAST_OF_CLIENTS) == (new, 0)
    assert world.initialize("t", pid, LAST_OF_CLIENTS).error_code == ErrorCode.PRODUCER_FENCED


def test_the_id_that_follows_is_known_after_a_restart() -> None:
    """The coordinator stops between its decision and the markers."""
    runtime = sim_runtime(seed=3)
    first = World(runtime, "/data")
    pid, _ = first.producer()
    shard = first.cluster.broker().core.transaction_coordinator.runtime.loaded()[0]
    shard.transactions["t"] = shard.transactions["t"].replace(producer_epoch=LAST_OF_CLIENTS)
    assert first.add((pid, LAST_OF_CLIENTS), 0) == [0]
    first.marker_code = ErrorCode.NOT_LEADER_OR_FOLLOWER
    first.end((pid, LAST_OF_CLIENTS), is_committed=False)
    decided = first.written()[-1]
    assert decided.state == "PrepareAbort"
    first.cluster.close()

    second = World(sim_runtime(seed=3, files=runtime.files), "/data")
    old = (pid, LAST_OF_CLIENTS)
    while second.end(old, is_committed=False)[0] == ErrorCode.CONCURRENT_TRANSACTIONS:
        second.let_pass(100)
    assert second.end(old, is_committed=False) == (0, decided.next_producer_id, 0)
    second.cluster.close()


def test_one_that_begins_after_the_last_epoch_gets_another_id(world: World) -> None:
    pid, _ = world.producer()
    shard = world.cluster.broker().core.transaction_coordinator.runtime.loaded()[0]
    present = shard.transactions["t"]
    shard.transactions["t"] = present.replace(producer_epoch=LAST_OF_CLIENTS)
    new, epoch = world.producer()
    assert (new != pid, epoch) == (True, 0)


def test_only_what_was_added_is_verified(world: World) -> None:
    producer = pid, epoch = world.producer()
    look = {"is_verified_only": True}
    assert world.register(producer, 0, **look) == [ErrorCode.TRANSACTION_ABORTABLE]
    world.add(producer, 1)
    assert world.register(producer, 0, 1, **look) == [ErrorCode.TRANSACTION_ABORTABLE, 0]
    assert world.register((pid, epoch + 1), 1, **look) == [ErrorCode.PRODUCER_FENCED]
    unknown = ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert world.register((pid + 99, epoch), 1, **look) == [unknown]
    assert world.register(producer, 0, transactional_id="nobody", **look) == [unknown]
    assert world.register(producer, 0, transactional_id="nobody") == [unknown]


def test_all_partitions_are_added_or_none(world: World) -> None:
    producer = world.producer()
    assert world.add(producer, 0, 7) == [
        ErrorCode.OPERATION_NOT_ATTEMPTED,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    internal = world.add(producer, 0, topic="__transaction_state")
    assert internal == [ErrorCode.TOPIC_AUTHORIZATION_FAILED]
    assert len(world.written()) == 1


def test_markers_are_sent_until_every_partition_has_them(world: World) -> None:
    producer = pid, _ = world.producer()
    world.add(producer, 0, 1)
    world.marker_code = ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert world.end(producer) == (0, pid, 1)
    assert world.written()[-1].state == "PrepareCommit"
    for who in (producer, (pid, 1), (pid + 1, 0)):
        for is_committed in (True, False):
            again = world.end(who, is_committed=is_committed)[0]
            assert again == ErrorCode.CONCURRENT_TRANSACTIONS
        assert world.add(who, 0) == [ErrorCode.CONCURRENT_TRANSACTIONS]
    assert world.initialize().error_code == ErrorCode.CONCURRENT_TRANSACTIONS
    world.let_pass(1000)
    assert 5 < len(world.markers) < 15
    world.marker_code = ErrorCode.NONE
    world.let_pass(200)
    assert world.written()[-1].state == "CompleteCommit"
    count = len(world.markers)
    world.let_pass(1000)
    assert len(world.markers) == count


def test_a_marker_that_is_fenced_is_given_up(world: World) -> None:
    producer = world.producer()
    world.add(producer, 0)
    world.marker_code = ErrorCode.TRANSACTION_COORDINATOR_FENCED
    world.end(producer)
    world.let_pass(1000)
    assert len(world.markers) == 1
    assert world.written()[-1].state == "PrepareCommit"


def test_a_topic_that_is_deleted_needs_no_marker(world: World) -> None:
    producer = world.producer()
    world.add(producer, 0)
    world.cluster.admin().delete_topics([TOPIC])
    world.end(producer)
    assert world.markers == []
    assert world.written()[-1].state == "CompleteCommit"


@pytest.mark.parametrize("is_committed", [True, False])
def test_a_decision_outlives_the_broker(is_committed: bool) -> None:
    runtime = sim_runtime(seed=7)
    world = World(runtime, "/data")
    producer = pid, _ = world.producer()
    world.add(producer, 0, 2)
    world.marker_code = ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert world.end(producer, is_committed=is_committed)[0] == 0
    world.cluster.close()

    again = World(sim_runtime(seed=7, files=runtime.files), "/data")
    again.let_pass(300)
    assert again.written()[-1].state == ("CompleteCommit" if is_committed else "CompleteAbort")
    assert again.producer() == (pid, 2)
    again.cluster.close()


def test_an_open_transaction_outlives_the_broker_and_its_time_runs_on() -> None:
    runtime = sim_runtime(seed=7)
    world = World(runtime, "/data")
    producer = pid, _ = world.producer(timeout_ms=30_000)
    world.add(producer, 0)
    world.cluster.close()

    again = World(sim_runtime(seed=7, files=runtime.files), "/data")
    assert again.add(producer, 1) == [0]
    again.let_pass(45_000)
    assert again.markers[-1] == (pid, 1, False, {TOPIC: [0, 1]})
    again.cluster.close()


def test_an_id_that_nobody_uses_is_forgotten() -> None:
    runtime = sim_runtime(seed=7)
    config = {"transactional.id.expiration.ms": 5_000_000}
    world = World(runtime, config=config)
    pid, _ = world.producer()
    busy = world.producer("busy", timeout_ms=900_000)
    world.let_pass(3_500_000)
    assert world.add(busy, 0, transactional_id="busy") == [0]
    world.let_pass(4_000_000)
    assert world.written()[-1].state == "tombstone"
    assert world.end((pid, 0), is_committed=False)[0] == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert world.producer()[0] != pid
    assert world.written("busy")[-1].state != "tombstone"
    world.cluster.close()


def test_there_are_only_so_many_ids() -> None:
    world = World(config={"embedlog.max.transactional.ids": 2})
    world.producer("a")
    world.producer("b")
    assert world.initialize("c").error_code == ErrorCode.POLICY_VIOLATION
    assert world.producer("a")[1] == 1
    world.cluster.close()


def test_while_a_transition_waits_for_the_disk_the_id_takes_no_other() -> None:
    world = World(path="/data", durability="fsync")
    coordinator = world.cluster.broker().core.transaction_coordinator
    producer = world.producer()
    first = coordinator.register("t", *producer, [(TOPIC, 0)], is_verified_only=False)
    second = coordinator.register("t", *producer, [(TOPIC, 1)], is_verified_only=False)
    assert not first.done()
    assert world.runtime.scheduler.wait(second, 60_000)
    assert world.runtime.scheduler.wait(first, 60_000)
    assert first.result() == {(TOPIC, 0): 0}
    assert second.result() == {(TOPIC, 1): ErrorCode.CONCURRENT_TRANSACTIONS}
    world.cluster.close()
