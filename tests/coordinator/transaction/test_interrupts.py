"""Ctrl-C in the thread that ends a transaction does not lose the transactional id."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from embedlog.coordinator.transaction.markers import TransactionMarkers
from embedlog.coordinator.transaction.transaction_shard import TransactionShard
from embedlog.replication.partition import Partition
from embedlog.storage.log.log import Log
from embedlog.storage.log.writer import LogWriter
from tests.coordinator.transaction.world import World


@pytest.fixture
def world() -> Iterator[World]:
    made = World()
    made.cluster.broker().core.interceptor = None
    yield made
    made.cluster.close()


def interrupted(
    monkeypatch: pytest.MonkeyPatch, owner: type, name: str, call: int, *, after: bool
) -> Callable[[], bool]:
    """Interrupt call number `call` of that method by Ctrl-C; return whether it was reached."""
    right, calls = getattr(owner, name), []

    def wrong(*arguments: Any, **keywords: Any) -> Any:
        calls.append(name)
        if len(calls) != call:
            return right(*arguments, **keywords)
        if after:
            right(*arguments, **keywords)
        raise KeyboardInterrupt

    monkeypatch.setattr(owner, name, wrong)
    return lambda: len(calls) >= call


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("call", range(1, 5))
@pytest.mark.parametrize(
    ("owner", "name"),
    [
        (Partition, "append"),
        (LogWriter, "append"),
        (TransactionMarkers, "tell"),
        (TransactionShard, "transit"),
    ],
    ids=lambda each: getattr(each, "__name__", each),
)
def test_a_commit_that_is_interrupted_leaves_the_id_usable(
    world: World,
    monkeypatch: pytest.MonkeyPatch,
    owner: type,
    name: str,
    call: int,
    after: bool,
) -> None:
    producer = world.producer()
    assert world.add(producer, 0, 1) == [0, 0]
    with monkeypatch.context() as patched:
        was_reached = interrupted(patched, owner, name, call, after=after)
        try:
            world.end(producer)
        except KeyboardInterrupt:
            pass
        else:
            assert not was_reached()
    world.let_pass(25_000)
    # Decided or not: the id's next producer finds it settled, and no transaction open.
    for _ in range(50):
        if world.initialize().error_code == 0:
            break
        world.let_pass(50)
    assert world.written()[-1].state == "Empty"
    for index in (0, 1):
        log: Log = world.cluster.broker().core.replica_manager.partition("orders", index).log
        assert log.offsets.last_stable_offset == log.log_end_offset
