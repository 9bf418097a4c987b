"""One story of transactions, drawn from a seed: writers, crashes, and the final state."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from embedlog.testing import SimulatedCrash
from tests.simulation.transactions.actors import (
    GROUP,
    PARTITIONS,
    SOURCE,
    TARGET,
    TIMEOUT_MS,
    Actor,
    Copier,
    Reader,
    Writer,
)
from tests.simulation.transactions.history import History, broken
from tests.simulation.world import LATENCY_MS_MAX, Ask, Life, SimWorld
from wire.schemas.find_coordinator import FindCoordinatorRequest

STEPS = 6
STEP_MS_MAX = 900
AWAY_MS_MAX = 2 * TIMEOUT_MS
CALLS_AHEAD = 60
"""A crash comes within this number of file calls."""
PEACE_MS = 4 * TIMEOUT_MS
SETTINGS: dict[str, Any] = {
    "offsets.topic.num.partitions": 1,
    "transaction.state.log.num.partitions": 2,
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 1000,
    "group.initial.rebalance.delay.ms": 0,
}


class TransactionWorld(SimWorld):
    """A broker whose process may die in any file call."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed, SETTINGS, durability="fsync" if seed % 2 else "os")
        for topic, count in PARTITIONS.items():
            self._cluster.create_topic(topic, count)
        for key_type, key in ((0, GROUP), (1, "w0")):
            request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key])
            self.ask(Ask(request, 6), lambda _: None)
        self.run(2 * LATENCY_MS_MAX)

    def crash_soon(self, calls: int) -> None:
        """Let the process die at one of its next file calls."""
        files = self._runtime.files
        files.crash(files.calls + calls)

    def restart(self) -> None:
        """Close the broker, unless it dies meanwhile; start another one a little later."""
        try:
            self._left = self.stop()
            self._left.heal()
        except SimulatedCrash:
            self._die()
        super().run(self.random.randrange(STEP_MS_MAX))
        self.start(self._left)

    def run(self, delay_ms: int) -> None:
        """Let time pass; a process that dies is restarted a little later."""
        end = self.now + delay_ms
        while self.now < end:
            try:
                super().run(end - self.now)
            except SimulatedCrash:
                self._die()
                super().run(self.random.randrange(STEP_MS_MAX))
                self.start(self._left)

    def _die(self) -> None:
        if self._durability == "fsync" and self.random.random() < 0.5:
            self._left = self.crash()
        else:
            self._left = self._runtime.files.survivor()
            self._go_down()

    def undecided(self) -> list[tuple[str, int]]:
        """Return the partitions that have an open transaction."""
        found = []
        for topic, count in PARTITIONS.items():
            for index in range(count):
                log = self._cluster.broker().core.replica_manager.partition(topic, index).log
                if log.offsets.last_stable_offset < log.log_end_offset:
                    found.append((topic, index))
        return found


class Story:
    """A story and its history."""

    def __init__(self, seed: int) -> None:
        self.world = TransactionWorld(seed)
        self.history = History()
        self.told: list[str] = []
        self._random = self.world.random
        self._numbers = itertools.count()
        self._actors: list[Actor] = []
        self._bumps = seed % 3 != 0

    def tell(self) -> None:
        """Take random steps, then wait until everything is copied."""
        steps: tuple[Callable[[], None], ...] = (
            self._write,
            self._write,
            self._write,
            self._copy,
            self._kill,
            self._freeze,
            self._crash,
            self._restart,
        )
        self._actors.append(Reader(self.world, self.history, "reader"))
        self._write()
        self._copy()
        for _ in range(STEPS):
            self._random.choice(steps)()
            self.world.run(self._random.randrange(STEP_MS_MAX))
        self.world.run(PEACE_MS)
        for actor in self._actors:
            actor.kill()
        # The coordinator aborts open transactions after their time-out.
        self.world.run(PEACE_MS)
        self._copy_the_rest()
        self.history.undecided = self.world.undecided()
        self._read_all()

    def broken(self) -> list[str]:
        """Return the broken promises."""
        return broken(self.history, source=SOURCE, target=TARGET)

    def counts(self) -> dict[str, int]:
        """Return counts for the summary."""
        return {
            "transactions": len(self.history.transactions),
            "records read": len(self.history.reads),
        }

    def _write(self) -> None:
        """Start a writer with one of two ids, perhaps already in use."""
        transactional_id = f"w{self._random.randrange(2)}"
        name = f"writer {next(self._numbers)}"
        self._say(f"{name} begins as {transactional_id}")
        self._actors.append(
            Writer(self.world, self.history, name, transactional_id, bumps=self._draw_bumps())
        )

    def _copy(self) -> None:
        name = f"copier {next(self._numbers)}"
        self._say(f"{name} begins")
        self._actors.append(
            Copier(self.world, self.history, name, "copier", bumps=self._draw_bumps())
        )

    def _draw_bumps(self) -> bool:
        """Draw the transaction version: mostly all clients have the same."""
        return self._bumps if self._random.random() < 0.8 else not self._bumps

    def _kill(self) -> None:
        for actor in self._one():
            self._say(f"{actor.name} is killed")
            actor.kill()

    def _freeze(self) -> None:
        for actor in self._one():
            delay_ms = self._random.randrange(AWAY_MS_MAX)
            self._say(f"{actor.name} is away for {delay_ms} ms")
            actor.freeze(delay_ms)

    def _crash(self) -> None:
        calls = self._random.randrange(CALLS_AHEAD)
        self._say(f"the broker dies in {calls} file calls")
        self.world.crash_soon(calls)

    def _restart(self) -> None:
        self._say("the broker stops")
        self.world.restart()

    def _one(self) -> list[Actor]:
        alive = [each for each in self._actors if each.is_alive and not isinstance(each, Reader)]
        return [self._random.choice(alive)] if alive else []

    def _say(self, what: str) -> None:
        self.told.append(f"{self.world.now}: {what}")

    def _copy_the_rest(self) -> None:
        last = Copier(self.world, self.history, "last copier", "copier", bumps=True)
        last.is_told_to_end = True
        for _ in range(40):
            if not last.is_alive:
                return
            self.world.run(TIMEOUT_MS)
        raise AssertionError("the last copier does not come to an end")

    def _read_all(self) -> None:
        reads = len(self.history.reads)
        self._actors.append(_Once(self.world, self.history, "last reader"))
        self.world.run(2000)
        self.history.in_the_end = {
            (topic, n): [] for topic, count in PARTITIONS.items() for n in range(count)
        }
        for read in self.history.reads[reads:]:
            self.history.in_the_end[read.place].append((read.offset, read.value))


class _Once(Reader):
    """A reader of everything, once."""

    def life(self) -> Life:
        """Read each partition from the beginning to the end."""
        from tests.simulation.transactions.actors import fetched

        for topic, count in PARTITIONS.items():
            for index in range(count):
                position = before = -1
                position = 0
                while position != before:
                    before = position
                    _, position = yield from fetched(self, (topic, index), position)
