"""Groups under many seeds: members of both protocols, and a broker that crashes."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

from tests.interop.groups.checker import check, owners
from tests.simulation.classic_member import ClassicMember
from tests.simulation.consumer_member import ConsumerMember
from tests.simulation.member import SimMember
from tests.simulation.soak import judged
from tests.simulation.world import World
from tests.support.sizes import size

SEEDS = size(40, full=200)
STEPS = 10
STEP_MS_MAX = 6000
MEMBERS_MAX = 5
FREEZE_MS_MIN = 3000
FREEZE_MS_MAX = 25_000
"""A pause may be shorter or longer than a session."""
SETTLE_MS = 15_000
KINDS: tuple[tuple[type[SimMember], ...], ...] = (
    (ClassicMember,),
    (ConsumerMember,),
    (ClassicMember, ConsumerMember),
)


class Story:
    """The events of one group, drawn from a seed."""

    def __init__(self, seed: int) -> None:
        self.world = World(seed, partitions=1 + seed % 7)
        self.told: list[str] = []
        self._kinds = KINDS[seed % len(KINDS)]
        self._members: list[SimMember] = []
        self._numbers = itertools.count()
        self._random = self.world.random

    def tell(self) -> None:
        """Take random steps, then wait until everything is consumed."""
        steps: tuple[Callable[[], None], ...] = (
            self._join, self._join, self._join_by_name, self._leave, self._kill, self._freeze,
            self._freeze, self._crash, self._stop,
        )  # fmt: skip
        self._join()
        for _ in range(STEPS):
            self._produce()
            self._random.choice(steps)()
            self.world.run(self._random.randrange(STEP_MS_MAX))
        if not self._alive():
            self._join()
        self._produce()
        self.world.run(FREEZE_MS_MAX + SETTLE_MS)
        for _ in range(10):
            if self.world.committed() != self.world.produced:
                self.world.run(SETTLE_MS)

    def broken(self) -> list[str]:
        """Return the broken promises; in the end every partition has an owner."""
        history = self.world.history()
        found = check(history)
        if history.committed != history.produced:
            found.append(f"committed {history.committed} of {history.produced}")
        held = owners(history, self.world.now)
        for partition in history.produced:
            if len(held.get(partition, [])) != 1:
                found.append(f"in the end {partition} is owned by {held.get(partition)}")
        return found

    def counts(self) -> dict[str, int]:
        """Return counts for the summary."""
        return {"members": len(self._members)}

    def _join(self, instance: str | None = None) -> None:
        if len(self._alive()) >= MEMBERS_MAX:
            self._leave()
        kind = self._random.choice(self._kinds)
        name = f"{kind.__name__}-{next(self._numbers)}"
        self._say(f"{name} joins as {instance}")
        self._members.append(kind(self.world, name, instance))

    def _join_by_name(self) -> None:
        """A static member: perhaps a former member, perhaps a running one."""
        self._join(f"name-{self._random.randrange(3)}")

    def _leave(self) -> None:
        for member in self._one():
            self._say(f"{member.name} leaves")
            member.leave()

    def _kill(self) -> None:
        for member in self._one():
            self._say(f"{member.name} is killed")
            member.kill()

    def _freeze(self) -> None:
        for member in self._one():
            delay_ms = self._random.randrange(FREEZE_MS_MIN, FREEZE_MS_MAX)
            self._say(f"{member.name} is away for {delay_ms} ms")
            member.freeze(delay_ms)

    def _crash(self) -> None:
        self._say("the broker crashes")
        files = self.world.crash()
        self.world.run(self._random.randrange(STEP_MS_MAX))
        self.world.start(files)

    def _stop(self) -> None:
        self._say("the broker stops")
        files = self.world.stop()
        self.world.run(self._random.randrange(STEP_MS_MAX))
        self.world.start(files)

    def _produce(self) -> None:
        for partition in self.world.produced:
            self.world.produced[partition] += self._random.randrange(50)

    def _alive(self) -> list[SimMember]:
        return [each for each in self._members if each.is_alive and not each.is_leaving]

    def _one(self) -> list[SimMember]:
        members = self._alive()
        return [self._random.choice(members)] if members else []

    def _say(self, what: str) -> None:
        self.told.append(f"{self.world.now}: {what}")


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, SEEDS, 20))
def test_no_promise_is_broken(first: int) -> None:
    for seed in range(first, first + 20):
        tell_one(seed)


@pytest.mark.parametrize("seed", [269, 704, 950])
def test_seeds_that_once_broke_a_promise_keep_it(seed: int) -> None:
    tell_one(seed)


def tell_one(seed: int) -> None:
    """Check that the story breaks no promise."""
    story = Story(seed)
    broken = judged(story)
    assert not broken, "\n".join([f"seed {seed}", *story.told, *broken])
