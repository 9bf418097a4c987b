"""A world of one broker and many members in which a seed decides everything.

Members are generators: they yield a request or a pause, and the world resumes them. Requests and
answers take time to travel and are lost when the broker stops or a member is frozen. The broker
itself runs on a simulated clock and a simulated disk.
"""

from __future__ import annotations

import heapq
import itertools
import random
from collections.abc import Callable, Generator
from dataclasses import dataclass
from functools import partial
from typing import Any

from embedlog.cluster.cluster import Cluster
from embedlog.runtime.pending import Pending
from embedlog.runtime.randomness import seeded
from embedlog.testing import SimFiles, sim_runtime
from embedlog.testing.sim_clock import START_WALL_MS
from embedlog.transport import InProcessTransport
from tests.interop.groups.history import Event, History, Partition, in_order
from wire.schemas.find_coordinator import FindCoordinatorRequest
from wire.schemas.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)

GROUP = "group"
TOPIC = "topic"
SETTINGS = {
    "group.initial.rebalance.delay.ms": 0,
    "group.consumer.min.session.timeout.ms": 1000,
    "group.consumer.session.timeout.ms": 10_000,
    "group.consumer.min.heartbeat.interval.ms": 100,
    "group.consumer.heartbeat.interval.ms": 1000,
    "offsets.topic.num.partitions": 1,
}
LATENCY_MS_MAX = 30
LOST_AFTER_MS = 300
"""Milliseconds until a client notices a dead connection."""


@dataclass(frozen=True, slots=True)
class Ask:
    """Wait for the answer to a request; None if the connection was lost meanwhile."""

    request: Any
    version: int


@dataclass(frozen=True, slots=True)
class Sleep:
    """Wait for some milliseconds."""

    delay_ms: int


Life = Generator[Ask | Sleep, Any, None]


class SimWorld:
    """Time, the network, and a broker that stops and starts."""

    def __init__(self, seed: int, settings: dict[str, Any], *, durability: str = "fsync") -> None:
        self.random = random.Random(seed)
        self.is_up = False
        self._settings = settings
        self._durability = durability
        self._now_ms = 0
        self._waiting: list[tuple[int, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._asked: dict[int, Callable[[Any], None]] = {}
        """Number of requests at the broker, and of answers on their way."""
        self._seed = seed
        self._starts = 0
        self._cluster: Cluster
        self._transport: InProcessTransport
        self.start(SimFiles())

    # The broker

    def start(self, files: SimFiles) -> None:
        """Start a broker on a disk."""
        assert not self.is_up
        self._starts += 1
        runtime = sim_runtime(self._seed * 1000 + self._starts, files=files)
        runtime.clock.set_wall(START_WALL_MS + self._now_ms)
        self._started_ms = self._now_ms
        self._runtime = runtime
        self._cluster = Cluster(
            "data", self._settings, runtime=runtime, durability=self._durability
        )
        self._transport = self._cluster.connect()
        self.is_up = True

    def stop(self) -> SimFiles:
        """Close the broker and return its disk."""
        self._cluster.close()
        self._go_down()
        return self._runtime.files

    def crash(self) -> SimFiles:
        """Kill the broker; return a disk that may be left after a loss of power."""
        images = list(self._runtime.files.crash_images(seeded(self.random.randrange(1 << 30)), 4))
        self._go_down()
        return self.random.choice(images)

    def _go_down(self) -> None:
        self._now_ms = self.now
        self.is_up = False
        self._hang_up()

    # Time

    @property
    def now(self) -> int:
        """Milliseconds since the world began."""
        if not self.is_up:
            return self._now_ms
        return self._started_ms + self._runtime.clock.monotonic_ms()

    def at(self, delay_ms: int, action: Callable[[], None]) -> None:
        """Call `action` later."""
        heapq.heappush(self._waiting, (self.now + delay_ms, next(self._order), action))

    def run(self, delay_ms: int) -> None:
        """Let time pass, with all planned events."""
        end = self.now + delay_ms
        while True:
            now = self.now
            while self._waiting and self._waiting[0][0] <= now:
                heapq.heappop(self._waiting)[2]()
            due = self._runtime.scheduler.run_due(now - self._started_ms) if self.is_up else None
            if self._waiting and self._waiting[0][0] <= self.now:
                continue
            if now >= end:
                return
            next_ms = self._waiting[0][0] if self._waiting else end
            step = min(end, next_ms) - now
            self._pass(step if due is None else min(step, due))

    def _pass(self, delay_ms: int) -> None:
        if self.is_up:
            self._runtime.clock.advance(delay_ms)
        else:
            self._now_ms += delay_ms

    # The network

    def ask(self, what: Ask, answered: Callable[[Any], None]) -> None:
        """Send a request; `answered` gets the answer, or None for a lost one."""
        self.at(self._latency(), lambda: self._arrive(what, answered))

    def _arrive(self, what: Ask, answered: Callable[[Any], None]) -> None:
        if not self.is_up:
            self.at(LOST_AFTER_MS, lambda: answered(None))
            return
        number = next(self._order)
        self._asked[number] = answered

        def on_done(pending: Pending[Any]) -> None:
            if number in self._asked:
                self.at(self._latency(), lambda: self._return(number, pending.result()))

        self._transport.send(0, what.request, version=what.version).add_callback(on_done)

    def _return(self, number: int, answer: Any) -> None:
        answered = self._asked.pop(number, None)
        if answered is not None:
            answered(answer)

    def _hang_up(self) -> None:
        """Break all connections: each waiting client notices that after a while."""
        for answered in self._asked.values():
            self.at(LOST_AFTER_MS, partial(answered, None))
        self._asked.clear()

    def _latency(self) -> int:
        return self.random.randrange(LATENCY_MS_MAX)


class World(SimWorld):
    """A broker, a group of members, and the events that all of them recorded."""

    def __init__(self, seed: int, *, partitions: int) -> None:
        self.produced: dict[Partition, int] = {(TOPIC, number): 0 for number in range(partitions)}
        """Number of records in each partition. The records do not exist; members only count
        offsets.
        """
        self.events: list[Event] = []
        self.instances: dict[str, str] = {}
        super().__init__(seed, SETTINGS)
        topic = self._cluster.create_topic(TOPIC, partitions)
        self.topic_id = topic.topic_id
        # Every client first makes the broker create the topic of the offsets.
        self.ask(Ask(FindCoordinatorRequest(coordinator_keys=[GROUP]), 6), lambda _: None)
        self.run(2 * LATENCY_MS_MAX)

    def _go_down(self) -> None:
        super()._go_down()
        self.tell("broker", "broker killed")

    # The history

    def tell(self, member: str, kind: str, **more: Any) -> None:
        """Record an event of this moment."""
        self.events.append(Event(self.now, member, kind, **more))

    def history(self) -> History:
        """Return all events, and the final state of the coordinator."""
        return History(in_order(self.events), self.produced, self.committed(), self.instances)

    def committed(self) -> dict[Partition, int]:
        """Return the committed offset of each partition; 0 for none."""
        topics = OffsetFetchRequestTopics(
            name=TOPIC, partition_indexes=[number for _, number in self.produced]
        )
        group = OffsetFetchRequestGroup(group_id=GROUP, topics=[topics])
        found: list[Any] = []
        self.ask(Ask(OffsetFetchRequest(groups=[group]), 9), found.append)
        self.run(4 * LATENCY_MS_MAX)
        (answer,) = found
        return {
            (TOPIC, each.partition_index): max(each.committed_offset, 0)
            for topic in answer.groups[0].topics
            for each in topic.partitions
        }
