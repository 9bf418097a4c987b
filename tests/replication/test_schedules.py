"""Random schedules: records acknowledged by all in-sync replicas survive, and histories become
one.
"""

from __future__ import annotations

from typing import Any

import pytest

from embedlog.runtime.pending import Pending
from embedlog.runtime.randomness import Random, seeded
from embedlog.testing import SimFiles
from tests.golden.batches import simple
from tests.golden.requests import produce
from tests.replication.brokers import CONTROLLER, TOPIC, Brokers
from wire.error_codes import ErrorCode

STEPS = 120
NODES = (1, 2, 3)


class Schedule:
    """One run. Brokers are cut off, killed and left without news; at most one is dead at a time."""

    def __init__(self, seed: int, durability: str) -> None:
        self.random: Random = seeded(seed)
        self.brokers = Brokers(
            3,
            seed=seed,
            durability=durability,
            log={"segment_bytes": 600},
            replica_lag_time_max_ms=3_000,
        )
        self.brokers.controller.create(*NODES, min_isr=2)
        self.dead: dict[int, SimFiles] = {}
        self.count = 0
        self.unanswered: list[tuple[bytes, Any]] = []
        self.acknowledged: set[bytes] = set()
        self.committed: dict[int, int] = {}

    def run(self) -> None:
        steps = [
            *[self.append] * 8,
            *[self.wait] * 6,
            self.cut,
            self.isolate,
            self.heal,
            self.heal,
            self.disturb,
            self.elect,
            self.withhold,
            self.tell,
            self.tell,
            self.kill,
            self.restart,
            self.restart,
        ]
        for _ in range(STEPS):
            steps[self.random.below(len(steps))]()
            self.look()
        self.settle()

    # Steps

    def append(self) -> None:
        """Append on every broker that believes it leads: there may be two."""
        for node_id, member in self.brokers.members.items():
            if not member.partition().is_leader:
                continue
            self.count += 1
            value = b"%d by %d" % (self.count, node_id)
            topic = TOPIC, self.brokers.controller.topic_ids[TOPIC]
            acks = 1 if self.random.below(3) == 0 else -1
            answer = member.handle(produce(topic, 13, simple(value), acks=acks))
            if acks == -1:
                self.unanswered.append((value, answer))

    def wait(self) -> None:
        self.brokers.run(self.random.below(1_500))

    def cut(self) -> None:
        places = [CONTROLLER, *NODES]
        link = tuple(places[self.random.below(4)] for _ in range(2))
        self.brokers.net.cut.add(link)

    def isolate(self) -> None:
        self.brokers.isolate(NODES[self.random.below(3)])

    def heal(self) -> None:
        self.brokers.heal()
        self.brokers.net.delay_ms = lambda: 0
        self.brokers.net.is_dropped = lambda: False

    def disturb(self) -> None:
        slow_ms = 1 + self.random.below(400)
        self.brokers.net.delay_ms = lambda: self.random.below(slow_ms)
        self.brokers.net.is_dropped = lambda: self.random.below(20) == 0

    def elect(self) -> None:
        state = self.brokers.state()
        able = [one for one in state.isr if one in self.brokers.members and one != state.leader]
        if able:
            self.brokers.controller.elect(able[self.random.below(len(able))])

    def withhold(self) -> None:
        self.brokers.controller.withheld.add(NODES[self.random.below(3)])

    def tell(self) -> None:
        for node_id in list(self.brokers.controller.withheld):
            if node_id in self.brokers.members:
                self.brokers.controller.tell_all(node_id)

    def kill(self) -> None:
        node_id = NODES[self.random.below(3)]
        if not self.dead:
            self.dead[node_id] = self.brokers.kill(node_id)
            self.committed.pop(node_id, None)

    def restart(self) -> None:
        for node_id, files in self.dead.items():
            self.brokers.controller.withheld.discard(node_id)
            self.brokers.start(node_id, files)
        self.dead.clear()

    # Invariants

    def look(self) -> None:
        for value, answer in list(self.unanswered):
            if isinstance(answer, Pending):
                if not answer.done():
                    continue
                found = answer.result()
            else:
                found = answer
            self.unanswered.remove((value, answer))
            [partition] = found.responses[0].partition_responses
            if partition.error_code == ErrorCode.NONE:
                self.acknowledged.add(value)
        self.brokers.check()

    def settle(self) -> None:
        """Mend all links and let time pass."""
        self.heal()
        self.restart()
        self.tell()
        self.brokers.run(90_000)
        self.look()
        leader = self.brokers.state().leader
        expected = self.brokers[leader].values()
        for node_id in NODES:
            assert self.brokers[node_id].values() == expected, node_id
        assert sorted(self.brokers.state().isr) == list(NODES)
        end = self.brokers[leader].partition().log.log_end_offset
        assert set(self.brokers.offsets().values()) == {(end, end)}
        assert self.acknowledged <= set(expected)


def run(seed: int, durability: str) -> None:
    schedule = Schedule(seed, durability)
    try:
        schedule.run()
    finally:
        schedule.brokers.close()


@pytest.mark.parametrize(
    "seed", [0, 117, 204, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 2, 147, 199))]
)
def test_acknowledged_records_survive(seed: int) -> None:
    run(seed, "os")


@pytest.mark.slow
@pytest.mark.parametrize("durability", ["os", "fsync"])
@pytest.mark.parametrize("seed", range(100, 130))
def test_acknowledged_records_survive_any_schedule(seed: int, durability: str) -> None:
    run(seed, durability)
