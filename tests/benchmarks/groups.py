"""Consumer groups: the first assignment, a large rebalance, and the cost of a heartbeat."""

from __future__ import annotations

import gc
import multiprocessing
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer

import embedlog
from embedlog.client.assignors.assignor import Assignment, GroupTopics, MemberSubscription
from embedlog.client.assignors.range import RangeAssignor
from embedlog.client.consumer.group.embedded_protocol import (
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from embedlog.runtime.pending import Pending
from embedlog.transport import InProcessTransport
from tests.benchmarks.brokers import embedlog_broker
from tests.benchmarks.table import show
from tests.support.kafka import real_kafka
from tests.support.tools import TOOLS
from wire.schemas.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions
from wire.schemas.find_coordinator import FindCoordinatorRequest
from wire.schemas.heartbeat import HeartbeatRequest
from wire.schemas.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from wire.schemas.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

ROUNDS = 5
MEMBERS = 100
PARTITIONS = 1000
GROUPS = (100, 1000, 10_000)
LARGE_GROUP = 1000
HEARTBEATS = 5000
SESSION_MS = 45_000
REBALANCE_MS = 300_000


# The first assignment, by a real client


def first_assignment_seconds(address: str, group: str, topic: str) -> float:
    """Return the seconds from two members' subscription until both own their half."""
    held: list[set[int]] = [set(), set()]

    def watch(index: int) -> dict[str, Callable[..., None]]:
        return {
            "on_assign": lambda _, new: held[index].update(each.partition for each in new),
            "on_revoke": lambda _, old: held[index].difference_update(
                each.partition for each in old
            ),
        }

    settings = {"bootstrap.servers": address, "group.id": group, "heartbeat.interval.ms": 100}
    members = [Consumer(settings) for _ in held]
    started = time.perf_counter()
    for index, member in enumerate(members):
        member.subscribe([topic], **watch(index))
    while not (held[0] and held[1] and len(held[0] | held[1]) == 4):
        for member in members:
            member.poll(0.005)
    elapsed = time.perf_counter() - started
    for member in members:
        member.close()
    return elapsed


def first_assignments() -> None:
    """Print the first assignment with a cluster in this process, and with brokers in processes.

    No group waits at first (`group.initial.rebalance.delay.ms`; that is the default in memory).
    """
    from tests.interop.clients.confluent import Confluent

    with ExitStack() as stack:
        cluster = stack.enter_context(embedlog.open())
        addresses = {"embedlog, in this process": cluster.listen("127.0.0.1", 0).address}
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        without_delay = ("--config", "group.initial.rebalance.delay.ms=0")
        data = str(folder / "embedlog")
        addresses["embedlog serve"] = stack.enter_context(
            embedlog_broker("--data", data, *without_delay)
        )
        if (TOOLS / "broker" / ".complete").exists():
            addresses["Apache Kafka 4.4.0"] = stack.enter_context(real_kafka(folder))
        medians = {}
        for name, address in addresses.items():
            Confluent().create_topic(address, "first", 4)
            first_assignment_seconds(address, "warm", "first")
            rounds = [
                first_assignment_seconds(address, f"g{number}", "first") for number in range(ROUNDS)
            ]
            medians[name] = statistics.median(rounds)
    show("two members of confluent-kafka, until both own their half (median)",
         medians, ours="embedlog, in this process", unit="ms")  # fmt: skip


# Members in this process, without a socket


class Peer:
    """A cluster in memory with one topic, and requests to it as objects."""

    def __init__(self, transport: InProcessTransport, topic_id: bytes) -> None:
        self.topic_id = topic_id
        self._transport = transport

    def send(self, request: Any, version: int) -> Pending[Any]:
        """Send a request; the answer may be pending."""
        return self._transport.send(0, request, version=version)

    def ask(self, request: Any, version: int) -> Any:
        """Send a request that is answered at once."""
        return self.send(request, version).result()


@contextmanager
def peer(partitions: int, **settings: object) -> Iterator[Peer]:
    """A cluster of this process."""
    config = {"group.initial.rebalance.delay.ms": 0, **settings}
    with embedlog.open(config=config) as cluster:
        topic_id = cluster.create_topic("t", partitions).topic_id
        made = Peer(cluster.connect(), topic_id)
        made.ask(FindCoordinatorRequest(coordinator_keys=["g"]), 6)
        yield made


class ClassicMember:
    """A member of the classic protocol, in steps."""

    metadata = encode_subscription(MemberSubscription(["t"]))

    def __init__(self, peer: Peer, group: str) -> None:
        self._peer = peer
        self._group = group
        self.member_id = ""
        self.generation_id = -1

    def join(self) -> Pending[Any]:
        """Send JoinGroup with an assigned member id."""
        request = JoinGroupRequest(
            group_id=self._group, session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=REBALANCE_MS, member_id=self.member_id,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=self.metadata)],
        )  # fmt: skip
        if not self.member_id:
            self.member_id = request.member_id = self._peer.ask(request, 9).member_id
        return self._peer.send(request, 9)

    def sync(self, assignments: list[SyncGroupRequestAssignment]) -> Pending[Any]:
        """SyncGroup."""
        return self._peer.send(
            SyncGroupRequest(
                group_id=self._group, generation_id=self.generation_id, member_id=self.member_id,
                protocol_type="consumer", protocol_name="range", assignments=assignments,
            ),
            5,
        )  # fmt: skip

    def heartbeat(self) -> Any:
        """Heartbeat."""
        request = HeartbeatRequest(
            group_id=self._group, generation_id=self.generation_id, member_id=self.member_id
        )
        return self._peer.ask(request, 4)


def form(members: list[ClassicMember]) -> None:
    """Form a group. The first member is the leader; it joins again when others join."""
    members[0].join()
    waiting = [member.join() for member in members[1:]]
    _complete(members, [members[0].join(), *waiting])


def rebalance(members: list[ClassicMember]) -> float:
    """Join, assign and sync; return the seconds in the leader's assignor."""
    return _complete(members, [member.join() for member in members])


def _complete(members: list[ClassicMember], joined: list[Pending[Any]]) -> float:
    for member, answer in zip(members, joined, strict=True):
        response = answer.result()
        assert response.error_code == 0, response
        member.generation_id = response.generation_id
    started = time.perf_counter()
    subscribed = {
        each.member_id: decode_subscription(each.metadata) for each in joined[0].result().members
    }
    made = RangeAssignor().assign(GroupTopics({"t": PARTITIONS}), subscribed)
    assignments = [
        SyncGroupRequestAssignment(member_id=member_id, assignment=encode_assignment(assignment))
        for member_id, assignment in made.items()
    ]
    assigning = time.perf_counter() - started
    synced = [member.sync([]) for member in members[1:]]
    synced.append(members[0].sync(assignments))
    assert all(answer.result().error_code == 0 for answer in synced)
    return assigning


class ConsumerMember:
    """A member of the consumer protocol, in steps."""

    def __init__(self, peer: Peer, group: str, number: int) -> None:
        self._peer = peer
        self._group = group
        self.member_id = f"member-{number:05}"
        self.epoch = 0
        self.owned: list[TopicPartitions] = []

    def join(self) -> None:
        """Send the first heartbeat."""
        self._beat(subscribed_topic_names=["t"], rebalance_timeout_ms=REBALANCE_MS)

    def heartbeat(self) -> bool:
        """Send a short heartbeat; return whether the assignment or epoch changed."""
        return self._beat()

    def report(self) -> bool:
        """Send a heartbeat with the owned partitions; return whether the assignment or epoch
        changed.
        """
        return self._beat(topic_partitions=self.owned)

    def _beat(self, **more: Any) -> bool:
        if self.epoch == 0:
            more["topic_partitions"] = []
        request = ConsumerGroupHeartbeatRequest(
            group_id=self._group, member_id=self.member_id, member_epoch=self.epoch, **more
        )
        answer = self._peer.ask(request, 1)
        assert answer.error_code == 0, answer
        is_news = answer.assignment is not None or answer.member_epoch != self.epoch
        self.epoch = answer.member_epoch
        if answer.assignment is not None:
            self.owned = answer.assignment.topic_partitions
        return is_news


def settle(members: list[ConsumerMember]) -> int:
    """Send heartbeats until nothing changes; return their number."""
    count = 0
    while True:
        news = False
        for member in members:
            count += 1
            while member.report():
                count += 1
                news = True
        if not news:
            return count


def rebalances() -> None:
    """Print a rebalance of a hundred members over a thousand partitions when one more joins."""
    with peer(PARTITIONS) as classic:
        members = [ClassicMember(classic, "g") for _ in range(MEMBERS)]
        form(members)
        rounds = []
        for _ in range(ROUNDS):
            started = time.perf_counter()
            assigning = rebalance(members)
            rounds.append((time.perf_counter() - started, assigning))
    took, assigning = min(rounds)
    print(f"\nrebalance of {MEMBERS} members over {PARTITIONS:,} partitions")
    print(f"  classic   {took * 1e3:8.1f} ms, of it the leader's assignor {assigning * 1e3:.1f} ms "
          f"({assigning / took:.0%})")  # fmt: skip
    settings = {"group.consumer.assignment.interval.ms": 0}
    with peer(PARTITIONS, **settings) as modern, timed_assignor() as assigned:
        consumers = [ConsumerMember(modern, "g", number) for number in range(MEMBERS)]
        for consumer in consumers:
            consumer.join()
        settle(consumers)
        assigned.clear()
        started = time.perf_counter()
        consumers.append(ConsumerMember(modern, "g", MEMBERS))
        consumers[-1].join()
        count = settle(consumers)
        took = time.perf_counter() - started
    print(f"  consumer  {took * 1e3:8.1f} ms in {count} heartbeats, of it the broker's assignor "
          f"{sum(assigned) * 1e3:.1f} ms ({sum(assigned) / took:.0%})")  # fmt: skip


@contextmanager
def timed_assignor() -> Iterator[list[float]]:
    """Measure the seconds of every call of the broker's default assignor."""
    from embedlog.coordinator.group import assignors

    seconds: list[float] = []
    plain = assignors.assignor

    def found(name: str) -> Callable[..., Any]:
        def timed(*arguments: Any) -> Any:
            started = time.perf_counter()
            made = plain(name)(*arguments)
            seconds.append(time.perf_counter() - started)
            return made

        return timed

    assignors.assignor = found  # type: ignore[assignment]
    try:
        yield seconds
    finally:
        assignors.assignor = plain


# Many groups, and many members


def resident_bytes() -> int:
    """Return the resident memory of this process."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096


def heartbeat_seconds(members: list[Any]) -> float:
    """Return the seconds of one heartbeat; the members take turns."""
    best = float("inf")
    for _ in range(3):
        started = time.perf_counter()
        for number in range(HEARTBEATS):
            members[number * 7919 % len(members)].heartbeat()
        best = min(best, time.perf_counter() - started)
    return best / HEARTBEATS


def many_groups(protocol: str, count: int) -> tuple[float, float]:
    """Return the bytes of a group of one member, and the seconds of its heartbeat."""
    with peer(4, **{"group.consumer.assignment.interval.ms": 0}) as made:
        _alone(made, protocol, count)  # loads what only the first group needs
        before = resident_bytes()
        members = [_alone(made, protocol, number) for number in range(count)]
        each = (resident_bytes() - before) / count
        return each, heartbeat_seconds(members)


def _alone(peer: Peer, protocol: str, number: int) -> ClassicMember | ConsumerMember:
    if protocol == "consumer":
        consumer = ConsumerMember(peer, f"g{number}", 0)
        consumer.join()
        settle([consumer])
        return consumer
    member = ClassicMember(peer, f"g{number}")
    member.generation_id = member.join().result().generation_id
    assignment = encode_assignment(Assignment([]))
    member.sync([SyncGroupRequestAssignment(member_id=member.member_id, assignment=assignment)])
    return member


def one_large_group(protocol: str, count: int) -> tuple[float, float]:
    """Return the bytes of one of many members of a group, and the seconds of its heartbeat."""
    # The consumer protocol computes its assignment once, after all members have joined.
    with peer(PARTITIONS, **{"group.consumer.assignment.interval.ms": 2000}) as made:
        _alone(made, protocol, 0)
        before = resident_bytes()
        if protocol == "classic":
            members = [ClassicMember(made, "g") for _ in range(count)]
            form(members)
            each = (resident_bytes() - before) / count
            return each, heartbeat_seconds(members)
        consumers = [ConsumerMember(made, "g", number) for number in range(count)]
        for consumer in consumers:
            consumer.join()
        time.sleep(2)
        settle(consumers)
        each = (resident_bytes() - before) / count
        return each, heartbeat_seconds(consumers)


def memory_and_heartbeats() -> None:
    """Print each figure from a process of its own, because freed memory is used again."""
    for protocol in ("classic", "consumer"):
        print(f"\ngroups of one {protocol} member")
        for count in GROUPS:
            each, took = _in_a_process(many_groups, protocol, count)
            print(f"  {count:>6,} groups  {each / 1024:6.1f} KiB a group, "
                  f"{took * 1e6:5.1f} us a heartbeat")  # fmt: skip
    print(f"\none group of {LARGE_GROUP:,} members")
    for protocol in ("classic", "consumer"):
        each, took = _in_a_process(one_large_group, protocol, LARGE_GROUP)
        print(f"  {protocol:<10}{each / 1024:6.1f} KiB a member, {took * 1e6:5.1f} us a heartbeat")


def _in_a_process(
    work: Callable[[str, int], tuple[float, float]], protocol: str, count: int
) -> tuple[float, float]:
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawn) as pool:
        return pool.submit(work, protocol, count).result()


def main() -> None:
    """Print all figures of groups."""
    first_assignments()
    rebalances()
    memory_and_heartbeats()
