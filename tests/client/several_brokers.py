"""The promises of our clients on any cluster of three brokers.

The brokers are 1, 2 and 3 in the racks a, b and c, each with its own address; one may be killed and
started again (`Brokers`). `test_several_real_brokers` runs them with Apache Kafka,
`test_several_own_brokers` with our brokers.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import pytest

from embedlog import (
    Admin,
    ConfigResource,
    Consumer,
    ElectionType,
    NewTopic,
    Producer,
    ResourceType,
    TopicPartition,
    TopicPartitionReplica,
    aio,
    errors,
)
from embedlog.client.connect import parse_address
from embedlog.client.network.network_client import NetworkClient
from embedlog.client.parse_settings import parse
from embedlog.client.settings import COMMON
from wire.schemas.fetch import FetchRequest
from wire.schemas.metadata import MetadataRequest

RACKS = {1: "a", 2: "b", 3: "c"}
LONG_S = 30
_names = map("topic-{}".format, itertools.count())


class Brokers(Protocol):
    """Three brokers that run."""

    @property
    def bootstrap(self) -> str:
        """The addresses of all brokers."""

    def kill(self, node_id: int) -> None:
        """End a broker at once."""

    def restart(self, node_id: int) -> None:
        """Start a broker that was killed, at its address and with its log."""


class Watched(NetworkClient):
    """A client's network, and the requests to each node."""

    def __init__(self, brokers: Brokers) -> None:
        addresses = [parse_address(each) for each in brokers.bootstrap.split(",")]
        super().__init__(addresses, parse(COMMON))
        self.sent: list[tuple[int, Any]] = []

    def send(self, node_id: int, request: Any, **given: Any) -> Any:
        self.sent.append((node_id, request))
        return super().send(node_id, request, **given)

    def asked(self, kind: type[Any]) -> list[int]:
        """Return the nodes that got requests of a class."""
        return [node_id for node_id, request in self.sent if isinstance(request, kind)]


def until(read: Callable[[], object], wanted: object) -> None:
    """Repeat the call until it returns the answer."""
    deadline = time.monotonic() + LONG_S
    while time.monotonic() < deadline:
        if read() == wanted:
            return
    assert read() == wanted


def new_topic(
    admin: Admin, assignments: dict[int, list[int]], configs: dict[str, Any] | None = None
) -> str:
    """Make a topic, and wait until every broker knows its leaders."""
    name = next(_names)
    admin.create_topics([NewTopic(name, assignments=assignments, configs=configs)]).check()
    until(lambda: [leader_of(admin, name, each) for each in assignments],
          [replicas[0] for replicas in assignments.values()])  # fmt: skip
    return name


def described(admin: Admin, topic: str, partition: int = 0) -> Any:
    found = admin.describe_topics([topic]).get(topic)
    return None if found is None else found.partitions[partition]


def leader_of(admin: Admin, topic: str, partition: int = 0) -> int | None:
    found = described(admin, topic, partition)
    return None if found is None else int(found.leader)


def isr_of(admin: Admin, topic: str) -> set[int]:
    return set(described(admin, topic).isr)


def read_values(consumer: Consumer, count: int) -> list[bytes | None]:
    """Return at least the next `count` values, in order."""
    found: list[bytes | None] = []
    deadline = time.monotonic() + LONG_S
    while len(found) < count and time.monotonic() < deadline:
        found += [record.value for record in consumer.poll(500)]
    return found


@contextmanager
def gone(brokers: Brokers, node_id: int) -> Iterator[None]:
    """Kill a broker; start it again at the end."""
    brokers.kill(node_id)
    try:
        yield
    finally:
        brokers.restart(node_id)


# Administration


def test_brokers_describe_themselves(brokers: Brokers) -> None:
    with Admin(brokers.bootstrap) as admin:
        cluster = admin.describe_cluster(include_fenced_brokers=True)
        assert {each.node_id: each.rack for each in cluster.nodes.values()} == RACKS
        assert not any(each.is_fenced for each in cluster.nodes.values())
        resources = [ConfigResource(ResourceType.BROKER, str(each)) for each in RACKS]
        told = admin.describe_configs(resources, names=["node.id", "broker.rack"])
        assert [told[each]["broker.rack"].value for each in resources] == list(RACKS.values())
        assert [told[each]["node.id"].value for each in resources] == ["1", "2", "3"]
        assert list(admin.describe_log_dirs().check()) == list(RACKS)
        with pytest.raises(errors.BrokerIdNotRegistered):
            admin.unregister_broker(99)


def test_the_quorum_describes_itself(brokers: Brokers) -> None:
    with Admin(brokers.bootstrap) as admin:
        quorum = admin.describe_quorum()
    assert quorum.leader_id in RACKS
    assert {each.replica_id for each in quorum.voters} == set(RACKS)
    assert all(each.log_end_offset > 0 for each in quorum.voters)
    assert quorum.high_watermark > 0
    assert quorum.leader_epoch > 0
    assert quorum.observers == []
    assert {host for each in quorum.nodes.values() for host, _ in each.values()} == {"127.0.0.1"}


def test_partitions_are_moved_between_brokers(brokers: Brokers) -> None:
    with Admin(brokers.bootstrap) as admin, Producer(brokers.bootstrap) as producer:
        here = TopicPartition(new_topic(admin, {0: [1, 2]}), 0)
        absent = TopicPartition("absent", 0)
        producer.send_batch(here.topic, [b"value"] * 100).result(LONG_S)

        refused = admin.alter_partition_reassignments({here: [2, 2], absent: [1]})
        assert isinstance(refused.errors[here], errors.InvalidReplicaAssignment)
        assert isinstance(refused.errors[absent], errors.UnknownTopicOrPartition)
        cancelled = admin.alter_partition_reassignments({here: None})
        assert isinstance(cancelled.errors[here], errors.NoReassignmentInProgress)
        smaller = admin.alter_partition_reassignments(
            {here: [2]}, allow_replication_factor_change=False
        )
        assert isinstance(smaller.errors[here], errors.InvalidReplicationFactor)

        admin.alter_partition_reassignments({here: [3, 2]}).check()
        until(admin.list_partition_reassignments, {})
        assert admin.list_partition_reassignments([here, absent]) == {}
        until(lambda: described(admin, here.topic).replicas, (3, 2))


def test_a_move_under_way_is_listed_and_cancelled(brokers: Brokers) -> None:
    with Admin(brokers.bootstrap) as admin, Producer(brokers.bootstrap) as producer:
        here = TopicPartition(new_topic(admin, {0: [1]}), 0)
        for _ in range(6):  # more than a follower gets at a time
            producer.send_batch(here.topic, [bytes(1_000)] * 500).result(LONG_S)
        topic = ConfigResource(ResourceType.TOPIC, here.topic)
        broker = ConfigResource(ResourceType.BROKER, "1")
        rate = {"leader.replication.throttled.rate": (0, "1")}
        throttled = {"leader.replication.throttled.replicas": (0, "0:1")}
        admin.incremental_alter_configs({broker: rate, topic: throttled}).check()
        try:
            admin.alter_partition_reassignments({here: [2]}).check()
            (move,) = admin.list_partition_reassignments([here]).values()
            assert (set(move.replicas), move.adding_replicas) == ({1, 2}, (2,))
            assert move.removing_replicas == (1,)
            admin.alter_partition_reassignments({here: None}).check()
            until(lambda: described(admin, here.topic).replicas, (1,))
        finally:
            whole = {"leader.replication.throttled.rate": (1, None)}
            admin.incremental_alter_configs({broker: whole}).check()


def test_replicas_are_moved_between_directories(brokers: Brokers) -> None:
    with Admin(brokers.bootstrap) as admin:
        topic = new_topic(admin, {0: [1, 2]})
        first, second = (TopicPartitionReplica(topic, 0, each) for each in (1, 2))
        stranger = TopicPartitionReplica(topic, 0, 3)
        until(lambda: admin.describe_replica_log_dirs([first])[first].path is None, False)
        found = admin.describe_replica_log_dirs([first, second, stranger]).check()
        assert found[stranger].path is None
        before = found[first].path
        assert before is not None
        assert found[first].offset_lag == 0
        assert found[first].future_path is None
        (other,) = (each for each in admin.describe_log_dirs([1])[1] if each != before)
        moved = admin.alter_replica_log_dirs({first: other, (topic, 0, 2): "/nowhere"})
        assert list(moved.values) == [first]
        assert isinstance(moved.errors[second], errors.LogDirNotFound)
        until(lambda: admin.describe_replica_log_dirs([first])[first].path, other)


def test_leaders_are_elected(brokers: Brokers) -> None:
    with Admin(brokers.bootstrap) as admin:
        here = TopicPartition(new_topic(admin, {0: [1, 2]}), 0)
        absent = TopicPartition(here.topic, 7)
        led = admin.elect_leaders(ElectionType.PREFERRED, [here, absent])
        assert isinstance(led.errors[here], errors.ElectionNotNeeded)
        assert isinstance(led.errors[absent], errors.UnknownTopicOrPartition)
        assert here not in admin.elect_leaders(ElectionType.PREFERRED)
        admin.alter_partition_reassignments({here: [2, 1]}).check()
        until(lambda: described(admin, here.topic).replicas, (2, 1))
        assert leader_of(admin, here.topic) == 1
        admin.elect_leaders(ElectionType.PREFERRED, [here]).check()
        until(lambda: leader_of(admin, here.topic), 2)


# Clients


def test_a_broker_that_is_taken_for_another_says_so(brokers: Brokers) -> None:
    """The client then distrusts its address and all others (KIP-1242)."""
    with Admin(brokers.bootstrap) as admin:
        cluster = admin.describe_cluster()
    wrong = cluster.nodes[3]
    network = Watched(brokers)
    try:
        network.set_nodes({2: (wrong.host, wrong.port)}, cluster.cluster_id)
        pending = network.send(2, MetadataRequest(topics=[]))
        until(lambda: network.wait(pending, 1_000), True)
        assert "REBOOTSTRAP" in str(pending.error()).upper()
        again = network.send(2, MetadataRequest(topics=[]))
        assert str(again.error()) == "node 2 is not known"
        network.set_nodes({3: (wrong.host, wrong.port)}, cluster.cluster_id)
        right = network.send(3, MetadataRequest(topics=[]))
        until(lambda: network.wait(right, 1_000), True)
        assert right.result().cluster_id == cluster.cluster_id
    finally:
        network.close()


def test_the_clients_for_asyncio_do_the_same(brokers: Brokers) -> None:
    async def story() -> tuple[Any, Any, int, list[int]]:
        async with (
            aio.Admin(brokers.bootstrap) as admin,
            aio.Producer(brokers.bootstrap) as producer,
            aio.Consumer(
                brokers.bootstrap, auto_offset_reset="earliest", client_rack="b"
            ) as reader,
        ):
            here = TopicPartition(next(_names), 0)
            topic = NewTopic(here.topic, assignments={0: [1, 2]})
            (await admin.create_topics([topic])).check()
            await producer.send(here.topic, b"value")
            await reader.assign([here])
            records = []
            while not records:
                records = [each.value for each in await reader.poll(500)]
            led = await admin.elect_leaders(ElectionType.PREFERRED, [here])
            moves = await admin.list_partition_reassignments()
            return records, led.errors[here], len(moves), list(await admin.describe_log_dirs())

    records, error, moves, nodes = asyncio.run(story())
    assert records == [b"value"]
    assert isinstance(error, errors.ElectionNotNeeded)
    assert (moves, nodes) == (0, [1, 2, 3])


def test_clients_follow_a_leader_without_asking_for_metadata(brokers: Brokers) -> None:
    """The former leader names the new one (KIP-951)."""
    reading, writing = Watched(brokers), Watched(brokers)
    with (
        Admin(brokers.bootstrap) as admin,
        Producer(writing, linger_ms=0) as producer,
        Consumer(reading, auto_offset_reset="earliest") as consumer,
    ):
        here = TopicPartition(new_topic(admin, {0: [1, 2]}), 0)
        consumer.assign([here])
        producer.send(here.topic, b"first").result(LONG_S)
        assert read_values(consumer, 1) == [b"first"]
        admin.alter_partition_reassignments({here: [2, 1]}).check()
        until(lambda: described(admin, here.topic).replicas, (2, 1))
        admin.elect_leaders(ElectionType.PREFERRED, [here]).check()
        reading.sent.clear()
        writing.sent.clear()
        producer.send(here.topic, b"second").result(LONG_S)
        assert read_values(consumer, 1) == [b"second"]
        for client in (reading, writing):
            nodes = [node_id for node_id, request in client.sent
                     if not isinstance(request, MetadataRequest)]  # fmt: skip
            assert nodes[-1] == 2
            to_new = next(at for at, (node_id, _) in enumerate(client.sent) if node_id == 2)
            asked = [request for _, request in client.sent[:to_new]]
            # The update is under way meanwhile: nobody waits for it.
            assert sum(isinstance(each, MetadataRequest) for each in asked) <= 1


def test_a_reader_is_sent_to_the_follower_in_its_rack(brokers: Brokers) -> None:
    network = Watched(brokers)
    with (
        Admin(brokers.bootstrap) as admin,
        Producer(brokers.bootstrap) as producer,
        Consumer(network, auto_offset_reset="earliest", client_rack="b") as consumer,
    ):
        here = TopicPartition(new_topic(admin, {0: [1, 2, 3]}), 0)
        producer.send_batch(here.topic, [b"value"] * 10).result(LONG_S)
        consumer.assign([here])
        assert read_values(consumer, 10) == [b"value"] * 10
        producer.send(here.topic, b"later").result(LONG_S)
        assert read_values(consumer, 1) == [b"later"]
        asked = network.asked(FetchRequest)
        assert asked[0] == 1
        assert set(asked[asked.index(2):]) == {2}  # fmt: skip


def test_partitions_go_to_members_in_their_rack(brokers: Brokers) -> None:
    settings = {"group.id": next(_names), "auto.offset.reset": "earliest"}
    with (
        Admin(brokers.bootstrap) as admin,
        Consumer(brokers.bootstrap, settings, client_rack="c") as third,
        Consumer(brokers.bootstrap, settings, client_rack="a") as first,
    ):
        topic = new_topic(admin, {0: [3], 1: [1], 2: [3], 3: [1]})
        deadline = time.monotonic() + LONG_S
        for each in (third, first):
            each.subscribe([topic])
        shares: list[set[int]] = []
        while time.monotonic() < deadline and shares != [{0, 2}, {1, 3}]:
            shares = []
            for each in (third, first):
                each.poll(100)
                shares.append({partition for _, partition in each.assignment()})
        assert shares == [{0, 2}, {1, 3}]


# Brokers that go


class Stream:
    """Numbered records through a topic of three partitions, and a group that reads them."""

    def __init__(self, topic: str, producer: Producer, consumer: Consumer) -> None:
        self.topic = topic
        self.producer = producer
        self.consumer = consumer
        self.futures: list[Any] = []
        self.found: dict[int, list[int]] = {0: [], 1: [], 2: []}
        consumer.subscribe([topic])

    def send(self, count: int) -> None:
        """Send `count` more, and read meanwhile."""
        for number in range(len(self.futures), len(self.futures) + count):
            value = b"%d" % number
            self.futures.append(self.producer.send(self.topic, value, partition=number % 3))
            if number % 50 == 0:
                self.poll(0)

    def poll(self, timeout_ms: int) -> None:
        for record in self.consumer.poll(timeout_ms):
            assert record.value is not None
            self.found[record.partition].append(int(record.value))

    def check(self) -> None:
        """Check that each was written once and read once, in order."""
        count = len(self.futures)
        assert [future.result(LONG_S).offset for future in self.futures] == [
            number // 3 for number in range(count)
        ]
        deadline = time.monotonic() + LONG_S
        while sum(map(len, self.found.values())) < count and time.monotonic() < deadline:
            self.poll(200)
        assert self.found == {part: list(range(part, count, 3)) for part in range(3)}


def test_a_broker_dies_and_comes_back(brokers: Brokers) -> None:
    """A stream goes on, exactly once, and so does a transaction; a topic that needs both its
    replicas waits for the second.
    """
    group = {"group.id": next(_names), "auto.offset.reset": "earliest"}
    with (
        Admin(brokers.bootstrap) as admin,
        Producer(brokers.bootstrap, linger_ms=1, batch_size=2_000) as producer,
        Producer(brokers.bootstrap) as patient,
        Producer(brokers.bootstrap, retries=0, enable_idempotence=False) as impatient,
        Producer(brokers.bootstrap, transactional_id=next(_names)) as transactional,
        Consumer(brokers.bootstrap, group) as consumer,
        Consumer(
            brokers.bootstrap, auto_offset_reset="earliest", isolation_level="read_committed"
        ) as committed,
    ):
        transactional.init_transactions()
        transactional.begin_transaction()
        ledger = new_topic(admin, {0: [1, 2, 3], 1: [2, 3, 1]})
        for number in range(100):
            transactional.send(ledger, b"%d" % number, partition=number % 2)
        transactional.flush(LONG_S)
        both = new_topic(admin, {0: [3, 2]}, {"min.insync.replicas": 2})
        patient.send(both, b"0").result(LONG_S)
        impatient.send(both, b"1").result(LONG_S)
        topic = new_topic(admin, {0: [1, 2, 3], 1: [2, 3, 1], 2: [3, 1, 2]})
        stream = Stream(topic, producer, consumer)
        stream.send(1_500)
        with gone(brokers, 2):
            stream.send(1_500)
            producer.flush(LONG_S)
            consumer.commit()

            for number in range(100, 200):
                transactional.send(ledger, b"%d" % number, partition=number % 2)
            transactional.commit_transaction()
            committed.assign([TopicPartition(ledger, each) for each in range(2)])
            found = {int(each or b"-1") for each in read_values(committed, 200)}
            assert found == set(range(200))

            until(lambda: 2 in admin.describe_cluster().nodes, False)
            fenced = admin.describe_cluster(include_fenced_brokers=True).nodes[2]
            assert fenced.is_fenced
            assert isinstance(admin.describe_log_dirs([2]).errors[2], errors.BrokerNotAvailable)

            until(lambda: isr_of(admin, both), {3})
            with pytest.raises(errors.NotEnoughReplicas):
                impatient.send(both, b"refused").result(LONG_S)
            waiting = [patient.send(both, b"%d" % number) for number in (2, 3)]
            assert not any(each.done() for each in waiting)
        assert [each.result(LONG_S).offset for each in waiting] == [2, 3]
        stream.send(300)
        producer.flush(LONG_S)
        stream.check()


def test_readers_learn_that_a_log_was_cut(brokers: Brokers) -> None:
    """An unclean election loses records that were read (KIP-320)."""
    at_end = {"auto.offset.reset": "latest"}
    with (
        Admin(brokers.bootstrap) as admin,
        Producer(brokers.bootstrap) as producer,
        Consumer(brokers.bootstrap, auto_offset_reset="none") as strict,
        Consumer(brokers.bootstrap, at_end) as lenient,
    ):
        topic = new_topic(admin, {0: [1, 2]}, {"unclean.leader.election.enable": True})
        here = TopicPartition(topic, 0)
        kept = [producer.send(topic, b"kept").result(LONG_S) for _ in range(3)]
        for each in (strict, lenient):
            each.assign([here])
            each.seek(here, 0)
        brokers.kill(2)
        until(lambda: isr_of(admin, topic), {1})
        for number in range(5):
            producer.send(topic, b"lost %d" % number).result(LONG_S)
        for each in (strict, lenient):
            assert len(read_values(each, 8)) == 8
        brokers.kill(1)
        brokers.restart(2)
        until(lambda: leader_of(admin, topic), 2)
        producer.send(topic, b"new").result(LONG_S)

        with pytest.raises(errors.LogTruncation, match=f"{topic}-0 at 8") as caught:
            read_values(strict, 1)
        assert caught.value.positions == {here: 8}
        assert caught.value.divergent_offsets == {here: len(kept)}
        strict.seek(here, len(kept))
        assert read_values(strict, 1) == [b"new"]
        assert read_values(lenient, 1) == [b"new"]
        brokers.restart(1)


PROMISES = (
    test_brokers_describe_themselves,
    test_the_quorum_describes_itself,
    test_partitions_are_moved_between_brokers,
    test_a_move_under_way_is_listed_and_cancelled,
    test_replicas_are_moved_between_directories,
    test_leaders_are_elected,
    test_a_broker_that_is_taken_for_another_says_so,
    test_the_clients_for_asyncio_do_the_same,
    test_clients_follow_a_leader_without_asking_for_metadata,
    test_a_reader_is_sent_to_the_follower_in_its_rack,
    test_partitions_go_to_members_in_their_rack,
    test_a_broker_dies_and_comes_back,
    test_readers_learn_that_a_log_was_cut,
)
"""In this order: the last ones kill brokers."""
