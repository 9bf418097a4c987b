"""An interrupt anywhere in the last slice of a move: the log is in one of the two, and works."""

from __future__ import annotations

import pytest

from embedlog.runtime.lock_order import held_here
from tests.crash.opcodes import Countdown
from tests.storage.logs import append
from tests.storage.relocation.relocation import HERE, THERE, Moving
from tests.support import sizes


class Interrupted(BaseException):
    """Stands for KeyboardInterrupt, which a test runner would take for its own."""


def interrupt() -> None:
    raise Interrupted


def copied(durability: str) -> Moving:
    """Make all slices but the last."""
    moving = Moving(durability=durability)
    moving.log.chain.is_swapping = True
    moving.ask()
    moving.relocations.run_once(0)
    moving.log.chain.is_swapping = False
    return moving


@pytest.mark.parametrize("durability", ["os", "fsync"])
@pytest.mark.parametrize(
    "step", [907, pytest.param(sizes.size(41, full=13), marks=pytest.mark.slow)]
)
def test_an_interrupted_move_is_done_or_not_done(durability: str, step: int) -> None:
    opcode, is_over, ends = 1, False, set()
    while not is_over:
        moving = copied(durability)
        before = moving.told()
        countdown = Countdown(opcode, interrupt, interrupts_only=True)
        countdown.start()
        try:
            moving.relocations.run_once(0)
        except Interrupted:
            held_here().clear()
        else:
            is_over = True
        finally:
            countdown.stop()
        opcode += step
        assert moving.told() == before
        if moving.log.failure is not None:
            ends.add("poisoned")
        else:
            ends.add(moving.log.directory.partition("/")[0])
            append(moving.log, b"next", epoch=1)
            moving.commit()
            before = moving.told()
            moving.go_on()
            assert (moving.place, moving.told()) == (THERE, before)
        opened = Moving(moving.disk.survivor(), durability=durability)
        opened.commit()
        # Except for the epoch that an opening after an unclean end begins.
        assert opened.told()[:6] == before[:6]
        opened.resume()
        opened.go_on()
        opened.check()
    assert {HERE, THERE} <= ends
