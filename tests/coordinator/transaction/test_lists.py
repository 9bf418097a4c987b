"""ListTransactions: the filter by duration."""

from __future__ import annotations

from tests.coordinator.transaction.world import World
from wire.schemas.list_transactions import ListTransactionsRequest


def test_a_filter_by_duration_leaves_out_younger_transactions() -> None:
    world = World()
    for name in ("old", "young"):
        assert world.add(world.producer(name), 0, transactional_id=name) == [0]
        world.let_pass(5_000)
    for duration_ms, names in ((-1, {"old", "young"}), (7_000, {"old"}), (12_000, set())):
        answer = world.ask(ListTransactionsRequest(duration_filter=duration_ms), 1)
        assert {each.transactional_id for each in answer.transaction_states} == names
    world.cluster.close()
