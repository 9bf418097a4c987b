"""Ctrl-C inside the work of a share partition, in the user's thread."""

from __future__ import annotations

from typing import Any

import pytest

from embedlog.sharing.acknowledgement import Acknowledgement, Application
from embedlog.sharing.acquisition import Acquisition
from embedlog.sharing.delivery import Cause
from embedlog.sharing.in_flight import InFlightBatch
from embedlog.sharing.share_partition import FENCED
from embedlog.sharing.state_writer import StateWriter
from tests.sharing.memory_state import MemoryState
from tests.sharing.world import World


@pytest.mark.parametrize(
    ("owner", "name", "after"),
    [
        (Acquisition, "run", True),
        (Application, "apply", True),
        (InFlightBatch, "join", False),
        (StateWriter, "pump", False),
        (MemoryState, "write", False),
        (MemoryState, "write", True),
    ],
    ids=str,
)
def test_records_of_interrupted_work_come_again_or_are_over(
    world: World, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, after: bool
) -> None:
    world.fill(4)
    right = getattr(owner, name)

    def wrong(*arguments: Any, **how: Any) -> Any:
        if after:
            right(*arguments, **how)
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        if owner is not Acquisition:
            world.acquire()
        broken.setattr(owner, name, wrong)
        with pytest.raises(KeyboardInterrupt):
            world.acquire()
            world.share.acknowledge("one", [Acknowledgement(0, 1, (Cause.ACCEPT,))])
    assert world.share.life == FENCED
    world.load()
    is_stored = owner is InFlightBatch or (owner is MemoryState and after)
    expected = [(2, 3, 1)] if is_stored else [(0, 3, 1)]
    assert world.acquire("two") == expected
    assert world.say("two", expected[0][0], 3, Cause.ACCEPT) is None
    assert world.share.window.start_offset == 4
