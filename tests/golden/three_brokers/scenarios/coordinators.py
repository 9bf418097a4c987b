"""Groups and transactions: their coordinators, the answers of other brokers, and failovers."""

from __future__ import annotations

from typing import Any

from embedlog.coordinator.placement import partition_of
from tests.golden.batches import simple
from tests.golden.group_requests import (
    beat,
    commit,
    delete_groups,
    delete_offsets,
    describe,
    describe_consumers,
    fetch_offsets,
    find,
    first_beat,
    heartbeat,
    join,
    leave,
    list_groups,
    sync,
)
from tests.golden.members import Member
from tests.golden.requests import Topic, fetch, produce
from tests.golden.three_brokers.requests import PREFERRED, assigned, elect
from tests.golden.three_brokers.run import ClusterRun, scenario_on
from tests.golden.transaction_requests import (
    RETRIED,
    add,
    add_offsets,
    batch,
    end,
    init,
    owned,
    register,
    settle,
    transaction,
    txn_commit,
)
from tests.support.kafka_cluster import BROKERS
from wire.schemas.describe_transactions import DescribeTransactionsRequest
from wire.schemas.find_coordinator import FindCoordinatorRequest
from wire.schemas.list_transactions import ListTransactionsRequest

GROUPS, TRANSACTIONS = "__consumer_offsets", "__transaction_state"
REPLICAS = ([1, 2, 3], [2, 3, 1], [3, 1, 2])
EXISTS = 36


def prepare(cluster: ClusterRun) -> None:
    """Create the internal topics, with partition 0 led by broker 1 and so on. Without a step."""
    partitions = [(name, index) for name in (GROUPS, TRANSACTIONS) for index in range(3)]
    for name in (GROUPS, TRANSACTIONS):
        request = assigned(name, *REPLICAS, configs={"cleanup.policy": "compact"})
        (made,) = cluster[1].setup(request, 7).topics
        assert made.error_code in (0, EXISTS), made
        cluster.known(name)
    cluster[1].setup(elect(PREFERRED, *partitions), 2)
    for name, index in partitions:
        cluster.see(
            name, partition=index, leader=index + 1, isr=REPLICAS[index], keep=False
        )  # fmt: skip
    # The producer id 0 also stands for a missing producer.
    owned(cluster[1], None)
    for node in BROKERS:
        await_coordinator(cluster, node, group=named(cluster, node))
        owned(cluster[node], named(cluster, node, "warm"))


def named(cluster: ClusterRun, node: int, suffix: str = "g") -> str:
    """Return the name of a group or transactional id that this broker coordinates after
    `prepare`.
    """
    names = (cluster.group(f"{suffix}{number}") for number in range(100))
    return next(name for name in names if partition_of(name, 3) == node - 1)


def await_coordinator(cluster: ClusterRun, node: int, *, group: str) -> None:
    """Return when a broker has loaded the group. Without a step."""
    request = fetch_offsets(group, version=9)
    cluster[node].until(lambda answer: answer.groups[0].error_code == 0, request, 9, keep=False)


def await_transactions(cluster: ClusterRun, node: int, name: str) -> None:
    """Return when a broker has loaded the transactional id. Without a step."""
    request = DescribeTransactionsRequest(transactional_ids=[name])
    cluster[node].until(
        lambda answer: answer.transaction_states[0].error_code not in RETRIED,
        request, 0, keep=False,
    )  # fmt: skip


@scenario_on("failing")
def who_coordinates(cluster: ClusterRun) -> None:
    prepare(cluster)
    groups = [named(cluster, node) for node in BROKERS]
    for version in range(7):
        for key_type, kind in ((0, "groups"), (1, "transactional ids")):
            if version == 0 and key_type:
                continue
            broker = cluster[version % 3 + 1]
            if version >= 4:
                request = FindCoordinatorRequest(coordinator_keys=groups, key_type=key_type)
                broker.send(request, version, kind)
                continue
            for name in groups:
                request = FindCoordinatorRequest(key=name, key_type=key_type)
                broker.send(request, version, f"one of the {kind}")
    cluster.stop(1)
    cluster.see(GROUPS, partition=0, leader=2, keep=False)
    for version in (1, 6):
        for node in (2, 3):
            if version >= 4:
                cluster[node].send(find(*groups), version, "one broker is gone")
                continue
            request = FindCoordinatorRequest(key=groups[0])
            cluster[node].send(request, version, "one broker is gone")
    cluster.start(1)
    cluster.see(GROUPS, partition=0, isr=[1, 2, 3], keep=False)
    cluster[1].send(find(*groups), 6, "it is back, and leads no more")


@scenario_on("failing")
def groups_at_the_wrong_broker(cluster: ClusterRun) -> None:
    prepare(cluster)
    topic = cluster.topic("t", [1, 2])
    group = named(cluster, 1)
    consumers = named(cluster, 1, "c")
    member = Member(cluster[1], group, "a")
    member.enter()
    for node in (2, 3):
        broker = cluster[node]
        for version in (0, 5, 9):
            broker.send(join(group), version, "a member joins")
        for version in (0, 5):
            broker.send(sync(group, member.id, member.generation), version, "it syncs")
        for version in (0, 4):
            broker.send(heartbeat(group, member.id, member.generation), version, "it lives")
        for version in (0, 5):
            broker.send(leave(group, member.id, version=version), version, "it leaves")
        for version in (2, 9, 10):
            request = commit(group, topic, (0, 1), version=version)
            broker.send(request, version, "offsets are committed")
        for version in (1, 7, 8, 9):
            request = fetch_offsets(group, (topic, [0]), version=version)
            broker.send(request, version, "offsets are asked for")
        broker.send(delete_offsets(group, (topic[0], [0])), 0, "offsets are deleted")
        for version in (0, 6):
            broker.send(describe(group), version, "it is described")
        broker.send(describe_consumers(group), 1, "it is described as a consumer group")
        broker.send(delete_groups(group), 2, "it is deleted")
        broker.send(first_beat(consumers, "m", topic[0]), 1, "a consumer joins")
        broker.send(beat(consumers, "m", 1), 1, "a consumer lives")
    for node in BROKERS:
        cluster.let_pass(200)
        cluster[node].send(list_groups(), 5, "the groups")
        cluster[node].send(describe(group, named(cluster, 2), named(cluster, 3)), 6, "three")
        request = delete_groups(named(cluster, 2), named(cluster, 3))
        cluster[node].send(request, 2, "two that are not there")


@scenario_on("failing")
def transactions_at_the_wrong_broker(cluster: ClusterRun) -> None:
    prepare(cluster)
    topic = cluster.topic("t", [1, 2], [2, 3])
    name, group = named(cluster, 1), named(cluster, 2)
    producer = owned(cluster[1], name)
    for node in (2, 3):
        broker = cluster[node]
        for version in range(6):
            broker.send(init(name), version, "it begins")
        for version in (0, 3):
            broker.send(add(name, producer, (topic, 0)), version, "a partition is added")
        for version in (4, 5):
            request = register(transaction(name, producer, (topic, 0)))
            broker.send(request, version, "a partition is registered")
        for version in (0, 4):
            broker.send(add_offsets(name, producer, group), version, "a group is added")
        for version in (0, 3, 4, 5):
            broker.send(end(name, producer), version, "it ends")
        request = DescribeTransactionsRequest(transactional_ids=[name, named(cluster, 2)])
        broker.send(request, 0, "it is described")
    for node in BROKERS:
        cluster[node].send(ListTransactionsRequest(), 1, "the transactions")
        for version in (0, 3, 5):
            request = txn_commit(name, producer, group, topic, (0, 1), version=version)
            if node != 2:
                cluster[node].send(request, version, "offsets, not to the group's broker")
    cluster[1].setup(add(name, producer, (topic, 0), (topic, 1)), 3)
    data = batch(producer, b"a")
    cluster[1].send(produce(topic, 9, data, transactional_id=name), 9, "to the leader")
    for node in (1, 3):
        request = produce(topic, 9, data, transactional_id=name, partition=1)
        cluster[node].send(request, 9, "not to the leader of its second partition")
    cluster[2].send(produce(topic, 9, data, transactional_id=name, partition=1), 9, "to it")
    unknown = batch((producer[0] + 7000, 0), b"x")
    request = produce(topic, 9, unknown, transactional_id=named(cluster, 2))
    cluster[1].send(request, 9, "of an id that another broker coordinates, and does not know")
    cluster[1].send(end(name, producer), 3, "it ends where it is coordinated")
    settle(cluster[1], name)
    for node, partition in ((1, 0), (2, 1)):
        request = fetch(topic, 12, partition=partition, isolation_level=1)
        cluster[node].send(request, 12, "each partition has its marker")


@scenario_on("failing")
def a_group_moves(cluster: ClusterRun) -> None:
    """Its coordinator stops: the next one has its members, generation and offsets."""
    prepare(cluster)
    topic = cluster.topic("t", [2, 3])
    group, offsets = named(cluster, 1), named(cluster, 1, "o")
    consumers = named(cluster, 1, "c")
    member = Member(cluster[1], group, "a")
    member.enter()
    fields: dict[str, Any] = {"member": member.id, "generation": member.generation}
    cluster[1].setup(commit(group, topic, (0, 5, "by a member"), **fields), 9)
    cluster[1].setup(commit(offsets, topic, (0, 7)), 9)
    joined = cluster[1].send(first_beat(consumers, "m", topic[0]), 1, "a consumer joins")
    cluster.let_pass(200)
    cluster[1].send(describe(group), 6, "the group before")
    cluster[1].send(describe_consumers(consumers), 1, "the consumers before")
    cluster.stop(1)
    cluster.see(GROUPS, partition=0, leader=2, keep=False)
    await_coordinator(cluster, 2, group=group)
    cluster[2].send(describe(group), 6, "the group after")
    cluster[2].send(describe_consumers(consumers), 1, "the consumers after")
    cluster[2].send(heartbeat(group, member.id, member.generation), 4, "its member lives")
    cluster[2].send(beat(consumers, "m", joined.member_epoch), 1, "the consumer lives")
    for name in (group, offsets):
        cluster[2].send(fetch_offsets(name, (topic, [0]), version=9), 9, "its offsets")
    cluster[2].send(commit(group, topic, (0, 6), **fields), 9, "its member commits")
    cluster[2].send(commit(group, topic, (0, 6), member=member.id, generation=0), 9, "too old")
    cluster[3].send(heartbeat(group, member.id, member.generation), 4, "elsewhere")
    cluster.start(1)
    cluster.see(GROUPS, partition=0, isr=[1, 2, 3], keep=False)
    cluster[1].send(heartbeat(group, member.id, member.generation), 4, "where it was")
    cluster[1].setup(elect(PREFERRED, (GROUPS, 0)), 2)
    cluster.see(GROUPS, partition=0, leader=1, keep=False)
    await_coordinator(cluster, 1, group=group)
    cluster[1].send(heartbeat(group, member.id, member.generation), 4, "where it is again")
    cluster[2].send(heartbeat(group, member.id, member.generation), 4, "where it was meanwhile")
    cluster[1].send(fetch_offsets(group, (topic, [0]), version=9), 9, "what it committed")
    cluster[1].send(leave(group, member.id), 5, "its member leaves")


@scenario_on("failing")
def a_transaction_moves(cluster: ClusterRun) -> None:
    """Its coordinator is killed: the transaction, or its decision, continues at the next one."""
    prepare(cluster)
    topic = cluster.topic("t", [2, 3], [3, 2])
    name, other = named(cluster, 1), named(cluster, 1, "o")
    producer = owned(cluster[1], name)
    aborted = owned(cluster[1], other)
    cluster[1].setup(add(name, producer, (topic, 0)), 3)
    cluster[1].setup(add(other, aborted, (topic, 1)), 3)
    data = batch(producer, b"a")
    cluster[2].setup(produce(topic, 9, data, transactional_id=name), 9)
    data = batch(aborted, b"b")
    cluster[3].setup(produce(topic, 9, data, transactional_id=other, partition=1), 9)
    request = DescribeTransactionsRequest(transactional_ids=[name, other])
    cluster[1].send(request, 0, "before")
    cluster.kill(1)
    cluster.see(TRANSACTIONS, partition=0, leader=2, keep=False)
    await_transactions(cluster, 2, name)
    cluster[2].send(request, 0, "after")
    cluster[3].send(request, 0, "elsewhere")
    cluster[2].send(add(name, producer, (topic, 1)), 3, "another partition")
    data = batch(producer, b"c")
    request = produce(topic, 9, data, transactional_id=name, partition=1)
    cluster[3].send(request, 9, "its records")
    cluster[2].send(end(name, producer), 3, "it commits")
    settle(cluster[2], name)
    cluster[2].send(init(other), 5, "the other begins anew")
    cluster[2].until(lambda answer: answer.error_code == 0, init(other), 5, keep=False)
    cluster[2].send(end(other, aborted), 3, "its former self")
    for node, partition in ((2, 0), (3, 1)):
        for level in (0, 1):
            read = fetch(topic, 12, partition=partition, isolation_level=level)
            cluster[node].send(read, 12, f"partition {partition}, isolation level {level}")
    cluster.start(1)
    cluster.see(TRANSACTIONS, partition=0, isr=[1, 2, 3], keep=False)
    cluster[1].send(init(name), 5, "where it was")
    cluster[2].setup(produce(topic, 9, simple(b"d")), 9)


@scenario_on("failing")
def a_partition_of_a_transaction_moves(cluster: ClusterRun) -> None:
    """The leader of its partition stops; the next one knows the producer, and gets the marker."""
    prepare(cluster)
    topic: Topic = cluster.topic("t", [2, 3])
    name = named(cluster, 1)
    producer = owned(cluster[1], name)
    cluster[1].setup(add(name, producer, (topic, 0)), 3)
    data = batch(producer, b"a", b"b")
    cluster[2].setup(produce(topic, 9, data, transactional_id=name), 9)
    cluster.stop(2)
    cluster.see(topic, "it moved", leader=3)
    cluster[3].send(produce(topic, 9, data, transactional_id=name), 9, "the same again")
    data = batch(producer, b"c", sequence=5)
    cluster[3].send(produce(topic, 9, data, transactional_id=name), 9, "after a gap")
    data = batch(producer, b"c", sequence=2)
    cluster[3].send(produce(topic, 9, data, transactional_id=name), 9, "what follows")
    for level in (0, 1):
        cluster[3].send(fetch(topic, 12, isolation_level=level), 12, f"isolation level {level}")
    cluster[1].send(end(name, producer), 3, "it commits")
    settle(cluster[1], name)
    cluster[3].send(fetch(topic, 12, isolation_level=1), 12, "what is committed")
    cluster.start(2)
    cluster.see(topic, isr=[2, 3], keep=False)
    cluster.reaches(2, topic, 4, "at the broker that stopped")
