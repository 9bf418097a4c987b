"""Groups: lag, rebalances, sessions and positions."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaException

pytestmark = [pytest.mark.interop, pytest.mark.slow]


@pytest.mark.kafka(topics={"orders": 1})
def test_lag(kafka, service):
    """A consumer lags behind

    `fill` writes records, and `commit` puts the group into the middle of them. `wait.lag` returns
    when the group has committed the rest.
    """
    kafka.topic("orders").fill(100)
    kafka.commit("billing", {("orders", 0): 40})
    assert kafka.group("billing").lag == 60
    service.read("orders", 60)
    kafka.wait.lag("billing", 0)


@pytest.mark.kafka(topics={"orders": 1})
def test_a_restart(kafka, service):
    """A consumer restarts at its committed position

    Nothing is read twice, and nothing is left out.
    """
    kafka.topic("orders").put_many([b"1", b"2"])
    assert service.read("orders", 2) == [b"1", b"2"]
    kafka.topic("orders").put_many([b"3"])
    assert service.read("orders", 1) == [b"3"]


@pytest.mark.kafka(topics={"orders": 1})
def test_a_rebalance_in_a_batch(kafka, consumer):
    """A rebalance in the middle of a batch

    The group rebalances while the consumer works. It commits its work before it gives the
    partition back.
    """
    kafka.topic("orders").put_many([b"1", b"2", b"3"])
    reader, done = consumer(enable_auto_commit=False), []

    def give_back(reader, partitions):
        reader.commit(message=done[-1], asynchronous=False)

    reader.subscribe(["orders"], on_revoke=give_back)
    done += [reader.poll(30), reader.poll(30)]
    before = kafka.group("billing").rebalance()
    while kafka.group("billing").committed != {("orders", 0): 2}:
        reader.poll(0.05)
    kafka.wait.rebalanced("billing", since=before)


@pytest.mark.kafka(topics={"orders": 1})
def test_a_late_commit(kafka, consumer):
    """A commit comes too late

    The group went on without the member, so its commit is refused, and somebody else gets the
    batch again. Is your work safe to repeat?
    """
    kafka.topic("orders").put(b"1")
    reader = consumer(enable_auto_commit=False)
    reader.subscribe(["orders"])
    assert reader.poll(30).value() == b"1"
    with kafka.faults.commit_too_late(group="billing"), pytest.raises(KafkaException) as refused:
        reader.commit(asynchronous=False)
    assert refused.value.args[0].name() == "ILLEGAL_GENERATION"
    assert kafka.group("billing").committed == {}


@pytest.mark.kafka(topics={"orders": 2})
def test_a_static_member(kafka, consumer):
    """A static member restarts

    A member with `group.instance.id` comes back before its session ends. It gets its partitions
    again, and nobody else notices.
    """
    member = consumer(group_instance_id="worker-1")
    member.subscribe(["orders"])
    kafka.topic("orders").put_many([b"1", b"2"])
    assert member.poll(30)
    before = kafka.wait.group("billing", members=1, assigned=2)
    member.close()
    again = consumer(group_instance_id="worker-1")
    again.subscribe(["orders"])
    kafka.topic("orders").put_many([b"3", b"4"])
    assert again.poll(30)
    after = kafka.wait.group("billing", members=1, assigned=2)
    assert after.generation == before.generation
    assert [each.instance_id for each in after.members] == ["worker-1"]


@pytest.mark.kafka(clock="manual", topics={"orders": 1})
def test_a_session_ends(kafka, consumer):
    """A session expires

    The clock of the brokers jumps. The member has been silent for too long, loses its partitions,
    and joins again.
    """
    lost = []
    reader = consumer()
    reader.subscribe(["orders"], on_lost=lambda _, partitions: lost.extend(partitions))
    kafka.topic("orders").put(b"1")
    assert reader.poll(30).value() == b"1"
    before = kafka.wait.group("billing", members=1)
    kafka.clock.jump(minutes=2)
    while not lost:
        reader.poll(0.05)
    kafka.topic("orders").put(b"2")
    while reader.poll(30).value() != b"2":
        pass
    assert kafka.group("billing").members[0].member_id != before.members[0].member_id


@pytest.mark.kafka(topics={"orders": 2})
def test_a_silent_member(kafka, consumer):
    """A member is cut off, and another one takes over

    All requests of one client vanish. Its session ends, and the other member gets everything.
    """
    first, second = consumer(client_id="worker-1"), consumer(client_id="worker-2")
    for each in (first, second):
        each.subscribe(["orders"])
    while not (first.assignment() and second.assignment()):
        first.poll(0.05), second.poll(0.05)
    (silent,) = [each for each in kafka.group("billing").members if each.client_id == "worker-1"]
    with kafka.blackhole(client_id="worker-1") as blackhole:
        blackhole.wait()  # for a heartbeat that vanishes
        kafka.clock.expire_sessions("billing", silent.member_id)
        while len(second.assignment()) < 2:
            second.poll(0.05)
        kafka.wait.group("billing", members=1, assigned=2)


@pytest.mark.kafka(topics={"orders": 1})
def test_a_graceful_shutdown(kafka, consumer):
    """A shutdown commits

    `close` commits the position, although the next automatic commit is far away, and the member
    leaves at once.
    """
    kafka.topic("orders").put_many([b"1", b"2"])
    reader = consumer(auto_commit_interval_ms=600_000)
    reader.subscribe(["orders"])
    assert [reader.poll(30).value(), reader.poll(30).value()] == [b"1", b"2"]
    reader.close()
    kafka.wait.committed("billing", {("orders", 0): 2})
    kafka.wait.group("billing", members=0)


@pytest.mark.kafka(topics={"orders": 1})
def test_the_coordinator_moves(kafka, service):
    """The coordinator moves

    The broker answers that another one coordinates the group. The client looks it up again.
    """
    kafka.topic("orders").put(b"1")
    with kafka.faults.coordinator_moves(group="billing") as fault:
        assert service.read("orders", 1) == [b"1"]
    assert fault.hits == 1
    assert kafka.group("billing").committed == {("orders", 0): 1}


@pytest.mark.kafka(topics={"orders": 1})
def test_the_coordinator_loads(kafka, service):
    """The coordinator is still loading

    So it is for some seconds after a broker has started.
    """
    kafka.topic("orders").put(b"1")
    with kafka.faults.coordinator_loads(group="billing") as fault:
        assert service.read("orders", 1) == [b"1"]
    assert fault.hits == 1


@pytest.mark.kafka(topics={"orders": 4})
def test_an_assignment_of_the_test(kafka, consumer):
    """The test decides who gets which partition

    Members are named by client id, member id or instance id.
    """
    kafka.group("billing").assign({"worker-1": [("orders", 2)]})
    worker = consumer(client_id="worker-1")
    worker.subscribe(["orders"])
    kafka.topic("orders").put(b"not mine", partition=0)
    kafka.topic("orders").put(b"mine", partition=2)
    assert worker.poll(30).value() == b"mine"
    assert [each.partition for each in worker.assignment()] == [2]
