"""One story of replication, drawn from a seed: writers, faults of brokers, and the final state."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from tests.simulation.actor import Actor
from tests.simulation.cluster.actors import Reader, Writer
from tests.simulation.cluster.client import Client, Place
from tests.simulation.cluster.faults import Faults
from tests.simulation.cluster.history import ONE, History, broken
from tests.simulation.cluster.logs import batches
from tests.simulation.cluster.own_clients import OwnClients
from tests.simulation.cluster.watch import ALL, MIN_ISR, Watch
from tests.simulation.cluster.world import NODES, ClusterWorld

TOPIC = "events"
STEPS = 6
STEP_MS_MAX = 2500
REST_MS = 500
PEACE_MS_MAX = 120_000
MILD, HARSH, UNCLEAN = "mild", "harsh", "unclean"


class Story:
    """A story and its history."""

    def __init__(
        self, seed: int, *, log_dirs: Sequence[str] = (), moves_often: bool = False
    ) -> None:
        """`log_dirs`: additional log directories of each broker; the topic lies in them."""
        self.temper = (MILD, MILD, HARSH, UNCLEAN)[seed % 4]
        self.place: Place = (TOPIC, 0)
        self.watch = Watch([self.place])
        self.history = History(self.watch)
        self.told: list[str] = []
        self.world = ClusterWorld(seed, self.watch, log_dirs=log_dirs)
        self._random = self.world.random
        self._numbers = itertools.count()
        self._actors: list[Actor] = []
        config = {"min.insync.replicas": str(MIN_ISR)}
        if self.temper == UNCLEAN:
            config["unclean.leader.election.enable"] = "true"
            self.watch.may_lose = True
        if log_dirs:
            self.world.cluster.create_topic("first", 1, replication_factor=3)
        self.world.cluster.create_topic(TOPIC, 1, replication_factor=3, config=config)
        self.faults = Faults(
            self.world,
            self.watch,
            self.place,
            self._say,
            is_harsh=self.temper != MILD,
            moves_often=moves_often,
        )
        self.own = OwnClients(self.world, self.history, self._random)

    def tell(self) -> None:
        """Take random steps, then mend everything and wait until all replicas are equal."""
        for anywhere in (False, True):
            name = f"reader {next(self._numbers)}"
            self._actors.append(
                Reader(Client(self.world), self.history, name, self.place, anywhere=anywhere)
            )
        self._write()
        steps = (self._write, self._write, self._own, *[self.faults.befall] * 5, self._die)
        for _ in range(STEPS):
            self._random.choice(steps)()
            self.world.run(self._random.randrange(STEP_MS_MAX))
        self.faults.end()
        self._rest()
        for actor in self._actors:
            actor.kill()
        self.own.read_all()
        for node_id in NODES:
            replica = self.watch.node(node_id, self.place)
            if replica is not None:
                end = replica.log.offsets.high_watermark
                self.history.replicas.setdefault(self.place, {})[node_id] = batches(
                    replica, end=end
                )

    def broken(self) -> list[str]:
        """Return the broken promises."""
        return broken(self.history)

    def counts(self) -> dict[str, int]:
        """Return counts for the summary."""
        return {
            "records written": len(self.history.written),
            "records read": len(self.history.reads),
            "elections": sum(len(each.elections) for each in self.watch.partitions.values()),
        }

    def _write(self) -> None:
        name = f"writer {next(self._numbers)}"
        acks = self._random.choice((ALL, ALL, ONE))
        is_idempotent = acks == ALL and self._random.random() < 0.7
        self._say(f"{name} begins, acks={acks}" + (", idempotent" if is_idempotent else ""))
        self._actors.append(
            Writer(
                Client(self.world),
                self.history,
                name,
                self.place,
                acks=acks,
                is_idempotent=is_idempotent,
            )
        )

    def _own(self) -> None:
        self.own.write(f"own writer {next(self._numbers)}", self.place, self._say)

    def _die(self) -> None:
        decided = self.watch.image(self.place)
        if decided is None or not self.world.cluster.controller.is_running:
            return
        # After a restart a killed process looks like a machine that lost power. As in Kafka, of the
        # eligible replicas only the last leader is then trusted.
        leads = decided.leader > 0 and self.watch.node(decided.leader, self.place) is not None
        if self.temper != MILD or leads:
            self._say("the process of all brokers is killed")
            self.world.die()

    def _rest(self) -> None:
        """Let time pass until nothing changes any more."""
        for _ in range(PEACE_MS_MAX // REST_MS):
            self.world.run(REST_MS)
            if self._is_at_rest():
                return
        raise AssertionError(f"no rest: {self._states()}")

    def _is_at_rest(self) -> bool:
        decided = self.watch.image(self.place)
        writers = [each for each in self._actors if isinstance(each, Writer) and each.is_alive]
        if decided is None or decided.leader < 0 or writers or decided.is_reassigning:
            return False
        replicas = [self.watch.node(node_id, self.place) for node_id in decided.replicas]
        ends = {
            offset
            for replica in replicas
            if replica is not None
            for offset in (replica.log.log_end_offset, replica.log.offsets.high_watermark)
        }
        views = {view.position for view in self.history.views}
        return set(decided.isr) == set(decided.replicas) and len(ends) == 1 and views == ends

    def _states(self) -> str:
        found = [
            f"{node_id}: {replica.state}, {replica.log.offsets.high_watermark}"
            f"..{replica.log.log_end_offset}"
            for node_id in NODES
            if (replica := self.watch.node(node_id, self.place)) is not None
        ]
        views = [view.position for view in self.history.views]
        alive = [each.name for each in self._actors if each.is_alive]
        return f"{self.watch.image(self.place)}, {found}, read {views}, {alive}"

    def _say(self, what: str) -> None:
        self.told.append(f"{self.world.now}: {what}")
