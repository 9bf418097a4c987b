"""Transactions that take too long, and ids that nobody uses: also while their next step waits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from embedlog.coordinator.transaction import states
from embedlog.coordinator.transaction.transaction_metadata import (
    NO_TIMEOUT_MS,
    TransactionMetadata,
)
from embedlog.testing import sim_runtime
from tests.coordinator.transaction.world import TOPIC, World
from wire.error_codes import ErrorCode
from wire.schemas.end_txn import EndTxnRequest

WAIT_MS = 60_000
YEAR_MS = 365 * 86_400_000


@pytest.fixture
def world() -> Iterator[World]:
    made = World()
    yield made
    made.cluster.close()


def test_a_transaction_that_goes_on_adding_is_aborted(world: World) -> None:
    producer = world.producer(timeout_ms=12_000)
    for index in range(3):
        assert world.add(producer, index) == [0]
        world.let_pass(6_500)
    world.let_pass(2_000)
    assert world.written()[-1].state == "CompleteAbort"


def test_after_a_restart_the_time_out_counts_from_the_begin() -> None:
    runtime = sim_runtime(seed=7)
    first = World(runtime, "/data")
    producer = first.producer(timeout_ms=15_000)
    assert first.add(producer, 0) == [0]
    first.let_pass(9_000)
    assert first.add(producer, 1) == [0]
    first.cluster.close()

    now_ms = runtime.clock.wall_ms()
    second = World(sim_runtime(seed=7, files=runtime.files, wall_ms=now_ms), "/data")
    second.coordinator.load()
    second.let_pass(11_000)
    assert second.written()[-1].state == "CompleteAbort"
    second.cluster.close()


def test_a_transaction_of_two_phases_has_no_time_out() -> None:
    began = TransactionMetadata("t", 1, NO_TIMEOUT_MS, state=states.ONGOING, start_ms=0)
    assert not began.is_overdue(now_ms=YEAR_MS, elapsed_ns=0)
    assert began.replace(timeout_ms=1).is_overdue(now_ms=YEAR_MS, elapsed_ns=0)


def _begin_end(world: World, producer: tuple[int, int]) -> Any:
    request = EndTxnRequest(
        transactional_id="t",
        producer_id=producer[0],
        producer_epoch=producer[1],
        committed=True,
    )
    return world.begin(request, 5)


def test_a_commit_that_waits_for_the_disk_is_not_aborted() -> None:
    world = World(path="/data", durability="fsync")
    producer = world.producer(timeout_ms=300)
    assert world.register(producer, 0) == [0]
    world.let_pass(1_000)
    answer = _begin_end(world, producer)
    assert not answer.done()
    world.coordinator.expire()
    assert world.runtime.scheduler.wait(answer, WAIT_MS)
    assert answer.result().error_code == ErrorCode.NONE
    world.let_pass(1_000)
    assert [each.state for each in world.written(first=2)] == ["PrepareCommit", "CompleteCommit"]
    assert {is_committed for _, _, is_committed, _ in world.markers} == {True}
    world.cluster.close()


EXPIRATION_MS = 500_000


def _expiring(**settings: Any) -> World:
    return World(config={"transactional.id.expiration.ms": EXPIRATION_MS}, **settings)


def test_an_id_whose_next_step_waits_for_the_disk_does_not_expire() -> None:
    world = _expiring(path="/data", durability="fsync")
    producer = world.producer()
    world.let_pass(EXPIRATION_MS + 1)
    coordinator = world.coordinator
    added = coordinator.register("t", *producer, [(TOPIC, 0)], is_verified_only=False)
    assert not added.done()
    coordinator.expire()
    assert world.runtime.scheduler.wait(added, WAIT_MS)
    assert added.result() == {(TOPIC, 0): 0}
    assert world.written()[-1].state == "Ongoing"
    world.cluster.close()


def test_an_id_with_an_open_transaction_does_not_expire() -> None:
    world = _expiring()
    producer = world.producer(timeout_ms=900_000)
    assert world.add(producer, 0) == [0]
    world.let_pass(EXPIRATION_MS + 1)
    world.coordinator.expire()
    assert world.written()[-1].state == "Ongoing"
    world.cluster.close()


def test_an_id_does_not_expire_by_a_clock_that_jumped() -> None:
    world = _expiring(path="/data")
    world.producer()
    clock = world.runtime.clock
    clock.set_wall(clock.wall_ms() + EXPIRATION_MS + 60_000)
    world.coordinator.expire()
    assert world.written()[-1].state == "Empty"
    world.cluster.close()


def test_after_a_restart_an_id_is_as_young_as_before() -> None:
    runtime = sim_runtime(seed=7)
    first = _expiring(runtime=runtime, path="/data")
    first.producer()
    first.cluster.close()

    now_ms = runtime.clock.wall_ms()
    second = _expiring(runtime=sim_runtime(files=runtime.files, wall_ms=now_ms), path="/data")
    second.coordinator.expire()
    assert second.written()[-1].state == "Empty"
    second.cluster.close()
