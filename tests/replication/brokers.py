"""Replica managers of several brokers in one simulated runtime, behind a network of the test.

A controller of a few lines keeps each partition's state, answers proposals, and informs the
brokers. Every message goes through `Net`, which cuts, delays, drops and reorders.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from types import SimpleNamespace
from typing import Any

from embedlog import errors
from embedlog.broker import dispatch
from embedlog.broker.context import RequestContext
from embedlog.broker.parked_fetches import ParkedFetches
from embedlog.common import TopicPartition
from embedlog.config import BrokerConfig
from embedlog.replication.fetch_sessions import FetchSessions
from embedlog.replication.leader_and_isr import LeaderAndIsr
from embedlog.replication.partition import Partition
from embedlog.replication.replica_manager import ReplicaManager
from embedlog.runtime import Runtime
from embedlog.runtime.pending import Pending
from embedlog.storage.directory.log_manager import LogManager
from embedlog.storage.log_config import LogConfig
from embedlog.storage.log_values import LogAppendInfo
from embedlog.testing import SimFiles, SimRuntime, sim_runtime
from tests.golden.batches import simple
from tests.storage.logs import values
from wire.schema import declaration

CONTROLLER = 0
"""The controller's place in the network."""
TOPIC = "t"
FETCH_MAX_BYTES = 55 << 20


class Net:
    """The network: a duty that carries calls between places and delays their arrival."""

    def __init__(self, runtime: SimRuntime) -> None:
        self._runtime = runtime
        self.cut: set[tuple[int, int]] = set()
        """Directed links that are cut: the sender gets an error at once."""
        self.delay_ms: Callable[[], int] = lambda: 0
        self.is_dropped: Callable[[], bool] = lambda: False
        self._on_the_way: list[tuple[int, int, Callable[[], None]]] = []
        self._count = 0
        runtime.scheduler.add(self)

    def call(
        self, sender: int, receiver: int, work: Callable[[], Any], timeout_ms: int = 30_000
    ) -> Pending[Any]:
        """Let the receiver work, and carry its answer back."""
        answer: Pending[Any] = Pending()
        if (sender, receiver) in self.cut:
            answer.fail(errors.Network())
            return answer
        if self.is_dropped():
            self._later(timeout_ms, lambda: answer.fail(errors.RequestTimedOut()))
            return answer

        def arrive() -> None:
            try:
                found = work()
            except errors.KafkaError as refusal:
                error = refusal
                self._bring_back(sender, receiver, lambda: answer.fail(error), answer)
                return
            if not isinstance(found, Pending):
                self._bring_back(sender, receiver, lambda: answer.complete(found), answer)
                return
            found.add_callback(
                lambda done: self._bring_back(
                    sender, receiver, lambda: answer.complete(done.result()), answer
                )
            )

        self._later(self.delay_ms(), arrive)
        return answer

    def _bring_back(
        self, sender: int, receiver: int, give: Callable[[], object], answer: Pending[Any]
    ) -> None:
        if (receiver, sender) in self.cut or self.is_dropped():
            self._later(1, lambda: answer.fail(errors.Network()))
        else:
            self._later(self.delay_ms(), give)

    def _later(self, delay_ms: int, work: Callable[[], object]) -> None:
        if delay_ms == 0:
            work()
            return
        self._count += 1
        due_ms = self._runtime.clock.monotonic_ms() + delay_ms
        heappush(self._on_the_way, (due_ms, self._count, work))  # type: ignore[misc]
        self._runtime.scheduler.notify(self)

    def run_once(self, now_ms: int) -> int | None:
        while self._on_the_way and self._on_the_way[0][0] <= now_ms:
            heappop(self._on_the_way)[2]()
        return self._on_the_way[0][0] - now_ms if self._on_the_way else None


class FakeMembership:
    """The cluster as one broker's replication sees it."""

    def __init__(self, world: Brokers, node_id: int, config: BrokerConfig) -> None:
        self._world = world
        self._node_id = node_id
        self.config = config
        self.racks: dict[int, str] = {}

    @property
    def broker_epoch(self) -> int:
        return self._world.controller.epochs[self._node_id]

    def send(self, node_id: int, request: Any, *, timeout_ms: int) -> Pending[Any]:
        world = self._world
        self._world.sent.append((self._node_id, node_id, request))

        def handle() -> Any:
            if node_id not in world.members:
                raise errors.Network()
            return world.members[node_id].handle(request)

        return world.net.call(self._node_id, node_id, handle, timeout_ms)

    def alter_partition(self, topic_id: bytes, partition: int, **what: Any) -> Pending[Any]:
        world = self._world
        world.proposals.append((self._node_id, what["isr"]))
        return world.net.call(
            self._node_id,
            CONTROLLER,
            lambda: world.controller.alter(self._node_id, topic_id, partition, **what),
        )

    def epoch_of(self, node_id: int) -> int:
        return self._world.controller.epochs.get(node_id, -1)

    def is_eligible(self, node_id: int) -> bool:
        return node_id in self._world.controller.alive

    def rack_of(self, node_id: int) -> str | None:
        return self.racks.get(node_id)


class Member:
    """A reduced broker: its logs, its partitions, and a door to them."""

    def __init__(self, world: Brokers, node_id: int, files: SimFiles) -> None:
        runtime = world.runtime
        self.node_id = node_id
        self.files = files
        self.runtime = Runtime(
            clock=runtime.clock, files=files, scheduler=runtime.scheduler, random=runtime.random
        )
        self.replica_manager = ReplicaManager(self.runtime, node_id=node_id)
        self.membership = FakeMembership(world, node_id, BrokerConfig(world.settings))
        self.replica_manager.join(self.membership)
        self.fetch_sessions = FetchSessions(runtime.clock, runtime.random)
        self.fetch_max_bytes = FETCH_MAX_BYTES
        self.logs = LogManager(self.runtime, "/data", world.log_config)
        self.image = SimpleNamespace(
            brokers={n: SimpleNamespace(rack=None) for n in world.controller.epochs}
        )
        self.peers = None
        self.parked = ParkedFetches(self.runtime)
        self.log_manager = self.logs
        self._topics = world.controller.topic_ids

    def handle(self, request: Any, version: int | None = None) -> Any:
        known = declaration(type(request))
        assert known.api is not None
        newest = known.last_version if version is None else version
        return dispatch.call(self, RequestContext(known.api, newest), request)

    def topic_name(self, topic_id: bytes) -> str:
        return next((name for name, id in self._topics.items() if id == topic_id), "")

    def report(self, context: RequestContext, error: Exception) -> None:
        raise error

    def partition(self, index: int = 0, topic: str = TOPIC) -> Partition:
        return self.replica_manager.partition(topic, index)

    def values(self, index: int = 0) -> list[bytes | None]:
        """Return all values of the log on this broker."""
        return values(self.partition(index).log)

    def close(self) -> None:
        self.replica_manager.close()
        self.runtime.scheduler.remove(self.logs.tasks)
        self.logs.close()


class SmallController:
    """The decisions of a real controller that replication can see."""

    def __init__(self, world: Brokers) -> None:
        self._world = world
        self.epochs: dict[int, int] = {}
        self.alive: set[int] = set()
        self.topic_ids: dict[str, bytes] = {}
        self.states: dict[TopicPartition, LeaderAndIsr] = {}
        self.withheld: set[int] = set()
        """Brokers that get no news for now."""

    def create(self, *replicas: int, topic: str = TOPIC, index: int = 0, min_isr: int = 1) -> None:
        """Create a partition, led by the first of its replicas."""
        self.topic_ids.setdefault(topic, (topic * 16).encode()[:16])
        key = TopicPartition(topic, index)
        self.states[key] = LeaderAndIsr(
            leader=replicas[0],
            leader_epoch=0,
            partition_epoch=0,
            replicas=replicas,
            isr=replicas,
            min_insync_replicas=min_isr,
        )
        self.tell(key)

    def change(self, index: int = 0, topic: str = TOPIC, **changes: Any) -> LeaderAndIsr:
        """Make a decision and inform the brokers."""
        key = TopicPartition(topic, index)
        former = self.states[key]
        changes.setdefault("partition_epoch", former.partition_epoch + 1)
        if changes.get("leader", former.leader) != former.leader:
            changes.setdefault("leader_epoch", former.leader_epoch + 1)
        if "isr" in changes:
            changes["isr"] = tuple(changes["isr"])
        self.states[key] = former.replace(**changes)
        self.tell(key)
        return self.states[key]

    def elect(self, leader: int, *, isr: Sequence[int] | None = None, index: int = 0) -> None:
        """Elect another leader. After an election outside the ISR, only the leader is in sync."""
        state = self.states[TopicPartition(TOPIC, index)]
        self.change(index, leader=leader, isr=state.isr if isr is None else isr)

    def fence(self, node_id: int) -> None:
        """Fence a broker: it leaves each ISR unless it is the last one in it, and leads nothing."""
        self.alive.discard(node_id)
        for (topic, index), state in list(self.states.items()):
            isr = tuple(one for one in state.isr if one != node_id)
            if node_id in state.isr and isr:
                leader = next(one for one in state.replicas if one in isr)
                leader = state.leader if state.leader != node_id else leader
                self.change(index, topic, isr=isr, leader=leader)
            elif state.leader == node_id:
                self.change(index, topic, leader=-1)

    def revive(self, node_id: int) -> None:
        """Unfence a broker: it leads the partitions that no other broker may lead."""
        for (topic, index), state in list(self.states.items()):
            if state.leader == -1 and node_id in state.isr:
                self.change(index, topic, leader=node_id)

    def alter(
        self,
        node_id: int,
        topic_id: bytes,
        index: int,
        *,
        leader_epoch: int,
        partition_epoch: int,
        isr: Sequence[tuple[int, int]],
        is_recovering: bool,
    ) -> LeaderAndIsr:
        """AlterPartition."""
        topic = next(name for name, id in self.topic_ids.items() if id == topic_id)
        state = self.states[TopicPartition(topic, index)]
        if leader_epoch < state.leader_epoch or node_id != state.leader:
            raise errors.FencedLeaderEpoch()
        if partition_epoch != state.partition_epoch:
            raise errors.InvalidUpdateVersion()
        for member, epoch in isr:
            if member not in self.alive or epoch not in (-1, self.epochs[member]):
                raise errors.IneligibleReplica()
        return self.change(
            index, topic, isr=[member for member, _ in isr], is_recovering=is_recovering
        )

    def tell(self, key: TopicPartition, only: int | None = None) -> None:
        """Bring the brokers up to date with one partition."""
        state = self.states[key]
        for node_id, member in self._world.members.items():
            if node_id in self.withheld or only not in (None, node_id):
                continue
            if node_id not in state.replicas:
                continue
            manager = member.replica_manager
            partition = manager.partitions.get(key)
            if partition is None:
                topic_id = self.topic_ids[key.topic]
                log = member.logs.get_or_create(key, topic_id=topic_id)
                partition = manager.host(key, log, state, topic_id=topic_id)
            else:
                partition.apply(state, node_id)
            manager.changed(partition)

    def tell_all(self, node_id: int) -> None:
        """Bring a broker up to date."""
        self.withheld.discard(node_id)
        for key in self.states:
            self.tell(key, node_id)


class Brokers:
    """A whole cluster. Every broker has `settings`, with dots as underscores."""

    def __init__(
        self,
        count: int = 3,
        *,
        seed: int = 1,
        durability: str = "os",
        log: dict[str, Any] | None = None,
        **settings: Any,
    ) -> None:
        self.runtime = sim_runtime(seed)
        self.settings = {name.replace("_", "."): value for name, value in settings.items()}
        self.log_config = LogConfig(durability=durability, **(log or {}))
        self.net = Net(self.runtime)
        self.controller = SmallController(self)
        self.members: dict[int, Member] = {}
        self.sent: list[tuple[int, int, Any]] = []
        self.proposals: list[tuple[int, Any]] = []
        for node_id in range(1, count + 1):
            self.start(node_id)

    def __getitem__(self, node_id: int) -> Member:
        return self.members[node_id]

    def start(self, node_id: int, files: SimFiles | None = None) -> Member:
        """Start a broker, on its earlier disk if it had one."""
        controller = self.controller
        controller.epochs[node_id] = controller.epochs.get(node_id, 100 * node_id) + 1
        controller.alive.add(node_id)
        disk = files if files is not None else SimFiles(self.runtime.clock)
        member = self.members[node_id] = Member(self, node_id, disk)
        controller.tell_all(node_id)
        controller.revive(node_id)
        return member

    def stop(self, node_id: int) -> SimFiles:
        """Stop a broker cleanly and inform the controller; return its disk."""
        member = self.members.pop(node_id)
        self.controller.fence(node_id)
        member.close()
        return member.files

    def kill(self, node_id: int) -> SimFiles:
        """Kill a broker as a process is killed; its written data stays on its disk."""
        member = self.members.pop(node_id)
        files = member.files.survivor()
        member.close()
        self.controller.fence(node_id)
        return files

    def isolate(self, node_id: int) -> None:
        """Cut a broker off from the others and from the controller."""
        for other in [CONTROLLER, *self.members]:
            self.net.cut |= {(node_id, other), (other, node_id)}

    def heal(self) -> None:
        """Mend all links."""
        self.net.cut.clear()

    def run(self, delay_ms: int = 0) -> None:
        """Let time pass; without an argument do only the work that is due."""
        self.runtime.scheduler.run_for(delay_ms)

    def append(self, node_id: int, *data: bytes, acks: int = 1, index: int = 0) -> LogAppendInfo:
        """Append one batch at a leader."""
        member = self.members[node_id]
        return member.replica_manager.append(member.partition(index), simple(*data), acks=acks)

    def state(self, index: int = 0) -> LeaderAndIsr:
        """Return the controller's last decision."""
        return self.controller.states[TopicPartition(TOPIC, index)]

    def offsets(self, index: int = 0) -> dict[int, tuple[int, int]]:
        """Return (high watermark, log end offset) of each broker's replica."""
        found = {}
        for node_id, member in self.members.items():
            partition = member.replica_manager.partitions.get(TopicPartition(TOPIC, index))
            if partition is not None:
                log = partition.log
                found[node_id] = (log.offsets.high_watermark, log.log_end_offset)
        return found

    def check(self) -> None:
        """Check that every in-sync replica has the same committed records as its leader."""
        for (topic, index), state in self.controller.states.items():
            leader = self.members.get(state.leader)
            if leader is None or state.leader in self.controller.withheld:
                continue
            partition = leader.replica_manager.partitions[topic, index]
            end = partition.log.offsets.high_watermark
            expected = values(partition.log)[: end - partition.log.offsets.log_start_offset]
            for node_id in partition.isr:
                if node_id not in self.members:
                    continue
                other = self.members[node_id].replica_manager.partitions[topic, index].log
                assert other.log_end_offset >= end, (node_id, other, end)
                start = other.offsets.log_start_offset
                lag = partition.log.offsets.log_start_offset - start
                assert values(other)[max(lag, 0) :][: len(expected)] == expected

    def close(self) -> None:
        for member in self.members.values():
            member.close()
