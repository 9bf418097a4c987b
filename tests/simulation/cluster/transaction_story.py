"""Transactions over three brokers: their coordinators and partitions move.

The writers, copiers and readers are the same as over one broker, and so are the promises.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from tests.simulation.actor import Actor
from tests.simulation.cluster.client import Client, Place
from tests.simulation.cluster.faults import Faults
from tests.simulation.cluster.watch import MIN_ISR, Watch
from tests.simulation.cluster.world import ClusterWorld
from tests.simulation.transactions.actors import (
    PARTITIONS,
    SOURCE,
    TARGET,
    TIMEOUT_MS,
    Copier,
    Reader,
    Writer,
    fetched,
)
from tests.simulation.transactions.history import History, broken
from tests.simulation.world import Life

STEPS = 5
STEP_MS_MAX = 1500
PEACE_MS = 2 * TIMEOUT_MS
PATIENCE = 60
TRANSACTION_LOG: Place = ("__transaction_state", 0)


def is_of_transactions(seed: int) -> bool:
    """Return whether the seed tells a story of transactions."""
    return seed % 32 == 31


class TransactionStory:
    """A story and its history."""

    def __init__(self, seed: int, *, log_dirs: Sequence[str] = ()) -> None:
        """`log_dirs`: additional log directories of each broker."""
        self.history = History()
        self.told: list[str] = []
        places = [(topic, n) for topic, count in PARTITIONS.items() for n in range(count)]
        self.watch = Watch([*places, TRANSACTION_LOG])
        self.world = ClusterWorld(seed, self.watch, log_dirs=log_dirs)
        self._random = self.world.random
        self._numbers = itertools.count()
        self._actors: list[Actor] = []
        config = {"min.insync.replicas": str(MIN_ISR)}
        for topic, count in PARTITIONS.items():
            self.world.cluster.create_topic(topic, count, replication_factor=3, config=config)
        place = self._random.choice((*places, TRANSACTION_LOG))
        self.faults = Faults(self.world, self.watch, place, self._say, is_harsh=False)

    def tell(self) -> None:
        """Take random steps, then mend everything and wait until all records are copied."""
        steps = (self._write, self._write, self._copy, self._end_one, *[self.faults.befall] * 3)
        self._actors.append(Reader(self._client(), self.history, "reader"))
        self._write()
        self._copy()
        self.world.run(STEP_MS_MAX)
        for _ in range(STEPS):
            self._random.choice(steps)()
            self.world.run(self._random.randrange(STEP_MS_MAX))
        self.faults.end()
        self.world.run(PEACE_MS)
        for actor in self._actors:
            actor.kill()
        # The coordinator aborts open transactions after their time-out.
        self.world.run(PEACE_MS)
        self._copy_the_rest()
        self.history.undecided = self._undecided()
        self._read_all()

    def broken(self) -> list[str]:
        """Return the broken promises."""
        return [*self.watch.broken, *broken(self.history, source=SOURCE, target=TARGET)]

    def counts(self) -> dict[str, int]:
        """Return counts for the summary."""
        return {
            "transactions": len(self.history.transactions),
            "records read": len(self.history.reads),
        }

    def _client(self) -> Client:
        return Client(self.world)

    def _write(self) -> None:
        transactional_id = f"w{self._random.randrange(2)}"
        name = f"writer {next(self._numbers)}"
        self._say(f"{name} begins as {transactional_id}")
        bumps = self._random.random() < 0.7
        self._actors.append(
            Writer(self._client(), self.history, name, transactional_id, bumps=bumps)
        )

    def _copy(self) -> None:
        name = f"copier {next(self._numbers)}"
        self._say(f"{name} begins")
        bumps = self._random.random() < 0.7
        self._actors.append(Copier(self._client(), self.history, name, "copier", bumps=bumps))

    def _end_one(self) -> None:
        alive = [each for each in self._actors if each.is_alive and not isinstance(each, Reader)]
        if alive:
            actor = self._random.choice(alive)
            self._say(f"{actor.name} is killed")
            actor.kill()

    def _copy_the_rest(self) -> None:
        last = Copier(self._client(), self.history, "last copier", "copier", bumps=True)
        last.is_told_to_end = True
        for _ in range(PATIENCE):
            if not last.is_alive:
                return
            self.world.run(TIMEOUT_MS)
        raise AssertionError("the last copier does not come to an end")

    def _undecided(self) -> list[Place]:
        found = []
        for topic, count in PARTITIONS.items():
            for index in range(count):
                leader = self.world.cluster.partition(topic, index).leader
                replica = self.watch.node(leader, (topic, index))
                if replica is None or (
                    replica.log.offsets.last_stable_offset < replica.log.log_end_offset
                ):
                    found.append((topic, index))
        return found

    def _read_all(self) -> None:
        reads = len(self.history.reads)
        _Once(self._client(), self.history, "last reader")
        self.world.run(4000)
        self.history.in_the_end = {
            (topic, n): [] for topic, count in PARTITIONS.items() for n in range(count)
        }
        for read in self.history.reads[reads:]:
            self.history.in_the_end[read.place].append((read.offset, read.value))

    def _say(self, what: str) -> None:
        self.told.append(f"{self.world.now}: {what}")


class _Once(Reader):
    """A reader of everything, once."""

    def life(self) -> Life:
        """Read each partition from the beginning to the end."""
        for topic, count in PARTITIONS.items():
            for index in range(count):
                position, before = 0, -1
                while position != before:
                    before = position
                    _, position = yield from fetched(self, (topic, index), position)
