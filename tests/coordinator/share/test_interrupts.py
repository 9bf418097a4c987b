"""Ctrl-C in the thread that changes a state leaves the state that the log has."""

from __future__ import annotations

from typing import Any

import pytest

from embedlog.coordinator.share.share_shard import ShareShard
from embedlog.coordinator.share.stored_state import StoredState
from embedlog.replication.partition import Partition
from embedlog.storage.log.writer import LogWriter
from embedlog.testing import sim_runtime
from tests.coordinator.share.world import World


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize(
    ("owner", "name"),
    [
        (Partition, "append"),
        (LogWriter, "append"),
        (ShareShard, "replay"),
        (StoredState, "update"),
        (StoredState, "changed"),
    ],
    ids=lambda each: getattr(each, "__name__", each),
)
def test_an_interrupted_write_is_whole_or_not_at_all(
    monkeypatch: pytest.MonkeyPatch, owner: type, name: str, after: bool
) -> None:
    world = World("data", sim_runtime(seed=1), durability="os")
    world.initialize()
    world.write((0, 4, 2, 1))
    right = getattr(owner, name)

    def wrong(*arguments: Any, **keywords: Any) -> Any:
        if after:
            right(*arguments, **keywords)
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr(owner, name, wrong)
        with pytest.raises(KeyboardInterrupt):
            world.write((5, 9, 2, 1), start=3, complete=7)
    seen = world.batches(), world.summary().delivery_complete_count
    assert seen in (([(0, 4, 2, 1)], 0), ([(3, 9, 2, 1)], 7))
    world.write((20, 24, 2, 1))
    expected = world.batches()
    world.cluster.close()
    with World("data", sim_runtime(files=world.runtime.files), durability="os") as again:
        assert again.batches() == expected == [*seen[0], (20, 24, 2, 1)]
