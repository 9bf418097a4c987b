"""Many transactions that time out together, and logs that take only small batches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from embedlog.broker.context import RequestContext
from embedlog.topic_names import TRANSACTIONS_TOPIC
from tests.coordinator.transaction.world import TOPIC, World
from wire.api_keys import ApiKey
from wire.error_codes import ErrorCode
from wire.schemas.alter_configs import (
    AlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResource,
)

COUNT = 60
TIMEOUT_MS = 2_000
INTERVAL_MS = 10_000
SMALL = 2_000
TOPIC_RESOURCE = 2


@pytest.fixture
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    made = World(config={"transaction.state.log.num.partitions": "1"})
    yield made
    made.cluster.close()


def _limit(world: World, size: int) -> None:
    """Let the log of transactions take batches of at most `size` bytes."""
    config = AlterableConfig(name="max.message.bytes", value=str(size))
    resource = AlterConfigsResource(
        resource_type=TOPIC_RESOURCE, resource_name=TRANSACTIONS_TOPIC, configs=[config]
    )
    answer: Any = world.cluster.broker().core.handle(
        RequestContext(ApiKey.ALTER_CONFIGS, 2), AlterConfigsRequest(resources=[resource])
    )
    assert answer.responses[0].error_code == ErrorCode.NONE, answer


def _begin(world: World, count: int = COUNT) -> list[str]:
    """Begin transactions; return their ids."""
    names = [f"transaction-{number}" for number in range(count)]
    for name in names:
        producer = world.producer(name, timeout_ms=TIMEOUT_MS)
        assert world.add(producer, 0, 1, 2, transactional_id=name) == [0, 0, 0]
    return names


def _states(world: World, names: list[str]) -> set[str]:
    return {world.written(name)[-1].state for name in names}


def test_transactions_that_time_out_together_are_aborted_in_batches_that_fit(world: World) -> None:
    names = _begin(world)
    _limit(world, SMALL)
    world.let_pass(TIMEOUT_MS + INTERVAL_MS + 1_000)
    assert _states(world, names) == {"CompleteAbort"}
    assert len(world.markers) == COUNT


def test_one_that_does_not_fit_keeps_no_other_from_its_abort(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.cluster.create_topic("large", 400)
    names = _begin(world, 5)
    producer = world.producer("large", timeout_ms=TIMEOUT_MS)
    assert set(world.add(producer, *range(400), transactional_id="large", topic="large")) == {0}
    names += [f"later-{number}" for number in range(5)]
    for name in names[5:]:
        producer = world.producer(name, timeout_ms=TIMEOUT_MS)
        world.add(producer, 0, transactional_id=name)
    _limit(world, 1_000)
    world.let_pass(TIMEOUT_MS + INTERVAL_MS + 1_000)
    assert _states(world, names) == {"CompleteAbort"}
    assert _states(world, ["large"]) == {"Ongoing"}
    assert f"{TRANSACTIONS_TOPIC}-0: an operation has 1 records" in caplog.text
    assert "maximum configured value of 1000" in caplog.text
    _limit(world, 1_000_000)
    world.let_pass(INTERVAL_MS + 1_000)
    assert _states(world, ["large"]) == {"CompleteAbort"}


@pytest.mark.slow
def test_many_markers_leave_their_turn_to_other_work(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("embedlog.coordinator.transaction.markers._SENT_AT_ONCE", 12)
    names = _begin(world)
    seen: list[int] = []

    class Watch:
        def run_once(self, _now_ms: int) -> int:
            seen.append(len(world.markers))
            return 1

    world.let_pass(TIMEOUT_MS + INTERVAL_MS - 100)
    watch = Watch()
    world.runtime.scheduler.add(watch)
    world.let_pass(INTERVAL_MS)
    world.runtime.scheduler.remove(watch)
    assert _states(world, names) == {"CompleteAbort"}
    assert max(later - earlier for earlier, later in zip(seen, seen[1:], strict=False)) <= 4
    assert world.markers[0][3] == {TOPIC: [0, 1, 2]}


@pytest.mark.slow
def test_markers_that_cannot_be_written_keep_no_others_back(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("embedlog.coordinator.transaction.markers._SENT_AT_ONCE", 3)
    names = _begin(world, 4)
    world.marker_code = ErrorCode.NOT_LEADER_OR_FOLLOWER
    world.let_pass(TIMEOUT_MS + INTERVAL_MS + 5_000)
    assert _states(world, names) == {"PrepareAbort"}
    assert len({producer_id for producer_id, _, _, _ in world.markers}) == len(names)
    world.marker_code = ErrorCode.NONE
    world.let_pass(1_000)
    assert _states(world, names) == {"CompleteAbort"}
