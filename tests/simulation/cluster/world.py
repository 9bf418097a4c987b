"""A world of several brokers, their network and their clients; a seed decides everything.

The world is a duty of the brokers' own scheduler. Planned events therefore happen even while a
client blocks, in an order that the seed decides. Requests take time to travel. A stopped broker
breaks its connections, and a paused broker never answers.
"""

from __future__ import annotations

import heapq
import itertools
import random
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from embedlog.cluster.cluster import Cluster
from embedlog.cluster.faults.network import CONTROLLER
from embedlog.runtime.outer_call import as_caller
from embedlog.runtime.pending import Pending
from embedlog.testing import SimFiles, sim_runtime
from embedlog.testing.sim_clock import START_WALL_MS
from tests.simulation.world import LATENCY_MS_MAX, LOST_AFTER_MS, Ask, Life, Sleep
from wire.schemas.produce import ProduceRequest

NODES = (1, 2, 3)
REQUEST_TIMEOUT_MS = 1500
LOST_SHARE = 0.05
"""Share of answers that a broken connection loses."""
SETTINGS: dict[str, Any] = {
    "broker.heartbeat.interval.ms": 500,
    "broker.session.timeout.ms": 2000,
    "group.initial.rebalance.delay.ms": 0,
    "offsets.topic.num.partitions": 1,
    "replica.fetch.backoff.ms": 200,
    "replica.lag.time.max.ms": 1500,
    "replica.socket.timeout.ms": 2000,
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 1000,
    "transaction.state.log.num.partitions": 1,
}


class Watcher(Protocol):
    """An observer of the cluster."""

    def opened(self, cluster: Cluster) -> None:
        """A cluster was opened."""

    def look(self) -> None:
        """The state may have changed."""

    def answered(self, node_id: int, request: Any, answer: Any) -> None:
        """A broker has just answered this request."""


class ClusterWorld:
    """Time, the brokers, and the network between clients and brokers."""

    settings: dict[str, Any] = SETTINGS
    broker_count = len(NODES)

    def __init__(self, seed: int, watch: Watcher, *, log_dirs: Sequence[str] = ()) -> None:
        """`log_dirs`: additional log directories of each broker."""
        self.log_dirs = log_dirs
        self.random = random.Random(seed)
        self.cluster: Cluster
        self._seed = seed
        self._watch = watch
        self._link_ms_max = self.random.choice((0, 3, 40))
        self._durability = "fsync" if self.random.random() < 0.3 else "os"
        self._starts = 0
        self._started_ms = 0
        self._waiting: list[tuple[int, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._asked: dict[int, Callable[[Any], None]] = {}
        """Number of requests at a broker, and of answers on their way."""
        self._is_busy = False
        self.ambush: Callable[[int], None] | None = None
        """Called with the broker that got the last batch, before it answers."""
        self._start(SimFiles())

    @property
    def loses_nothing(self) -> bool:
        """Return whether acknowledged records survive a loss of power."""
        return self._durability == "fsync"

    def _start(self, files: SimFiles) -> None:
        self._starts += 1
        self.runtime = sim_runtime(self._seed * 1000 + self._starts, files=files)
        self.runtime.clock.set_wall(START_WALL_MS + self._started_ms)
        self.cluster = Cluster(
            "data",
            self.settings,
            brokers=self.broker_count,
            log_dirs=self.log_dirs,
            durability=self._durability,
            runtime=self.runtime,
            is_embedded=True,
        )
        self._transport = self.cluster.connect()
        self.heal()
        self.runtime.scheduler.add(self)
        self._watch.opened(self.cluster)

    def die(self) -> None:
        """Kill the process of all brokers, and open their directories in a new one.

        Requires: no client waits for anything.
        """
        self._started_ms = self.now
        asked, self._asked = self._asked, {}
        self._start(self.runtime.files.survivor())
        for answered in asked.values():
            self.at(LOST_AFTER_MS, lambda answered=answered: answered(None))

    def stop(self) -> None:
        """Close all brokers."""
        self.cluster.close()

    # Time

    @property
    def now(self) -> int:
        """Milliseconds since the world began."""
        return self._started_ms + self.runtime.clock.monotonic_ms()

    def at(self, delay_ms: int, action: Callable[[], None]) -> None:
        """Call `action` later."""
        heapq.heappush(self._waiting, (self.now + delay_ms, next(self._order), action))
        if not self._is_busy:
            self.runtime.scheduler.notify(self)

    def run(self, delay_ms: int) -> None:
        """Let time pass, with all planned events."""
        self.runtime.scheduler.run_for(delay_ms)

    def run_once(self, _now_ms: int) -> int | None:
        """Run due events: the world as a duty.

        An event is another program's, although a waiting call of this thread may run it.
        """
        as_caller(self._run_due)
        return max(0, self._waiting[0][0] - self.now) if self._waiting else None

    def _run_due(self) -> None:
        self._is_busy = True
        try:
            while self._waiting and self._waiting[0][0] <= self.now:
                heapq.heappop(self._waiting)[2]()
                self._watch.look()
        finally:
            self._is_busy = False

    def live(self, life: Life, process: int | None = None) -> None:
        """Run a script that only sleeps, until its end or the end of the brokers' process."""
        process = self._starts if process is None else process
        if process != self._starts:
            return
        try:
            wanted = next(life)
        except StopIteration:
            return
        assert isinstance(wanted, Sleep), wanted
        self.at(wanted.delay_ms, lambda: self.live(life, process))

    # The brokers' network

    def heal(self) -> None:
        """Mend every link, which gets its original delay back."""
        if self.broker_count == 1:
            return
        network = self.cluster.network
        network.heal()
        if self._link_ms_max:
            for source, target in itertools.permutations((CONTROLLER, *NODES), 2):
                network.delay(source, target, self.random.randrange(self._link_ms_max))

    # The clients' network

    def send(self, node_id: int, what: Ask, answered: Callable[[Any], None]) -> None:
        """Send a request to a broker; `answered` gets the answer, or None for a lost one."""
        number = next(self._order)
        self._asked[number] = answered
        self.at(self._latency(), lambda: self._arrive(number, node_id, what))
        self.at(REQUEST_TIMEOUT_MS, lambda: self._return(number, None))

    def _arrive(self, number: int, node_id: int, what: Ask) -> None:
        def on_done(pending: Pending[Any]) -> None:
            answer = None if pending.error() is not None else pending.result()
            if answer is not None:
                self._watch.answered(node_id, what.request, answer)
                if self.random.random() < LOST_SHARE:
                    answer = None
            delay_ms = LOST_AFTER_MS if answer is None else self._latency()
            self.at(delay_ms, lambda: self._return(number, answer))

        if number in self._asked:
            self._hand_over(node_id, what).add_callback(on_done)
            if self.ambush is not None and isinstance(what.request, ProduceRequest):
                ambush, self.ambush = self.ambush, None
                self.at(self._latency(), lambda: ambush(node_id))

    def _hand_over(self, node_id: int, what: Ask) -> Pending[Any]:
        """Give a request to its broker."""
        return self._transport.send(node_id, what.request, version=what.version)

    def _return(self, number: int, answer: Any) -> None:
        answered = self._asked.pop(number, None)
        if answered is not None:
            answered(answer)

    def _latency(self) -> int:
        return self.random.randrange(LATENCY_MS_MAX)
