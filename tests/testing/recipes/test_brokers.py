"""Brokers: crashes, elections, splits, disks and slow links."""

from __future__ import annotations

import pytest

pytestmark = [pytest.mark.interop, pytest.mark.slow]

ORDERS = {
    "orders": {"partitions": 1, "replication_factor": 3, "config": {"min.insync.replicas": 2}}
}


@pytest.mark.kafka(brokers=3, topics=ORDERS)
def test_the_leader_moves(kafka, service):
    """The leader moves

    Another broker leads the partition, and clients follow.
    """
    service.send("orders", b"1")
    partition = kafka.partition("orders", 0)
    target = next(each for each in partition.isr if each != partition.leader)
    partition.move_to(target)
    kafka.wait.leader("orders", 0, target)
    service.send("orders", b"2")
    assert service.read("orders", 2) == [b"1", b"2"]


@pytest.mark.kafka(brokers=3, topics=ORDERS)
def test_a_broker_is_lost(kafka, service):
    """A broker is lost after a write

    The record was acknowledged by all in-sync replicas, so the next leader has it.
    """
    service.send("orders", b"1")
    lost = kafka.partition("orders", 0).leader
    kafka.broker(lost).kill(lose_unsynced=True)
    assert service.read("orders", 1) == [b"1"]
    assert kafka.partition("orders", 0).leader != lost


@pytest.mark.kafka(
    brokers=3,
    topics=ORDERS,
    config={"broker.session.timeout.ms": 500, "broker.heartbeat.interval.ms": 100},
)
def test_a_network_split(kafka, producer):
    """The network splits

    The leader is alone on one side, without the controller, and the others elect a new one. The
    old leader takes a record that it cannot acknowledge. After the heal the producer sends it again
    to the new leader.
    """
    partition = kafka.partition("orders", 0)
    old, others = partition.leader, {1, 2, 3} - {partition.leader}
    kafka.network.split({old}, {*others, kafka.network.CONTROLLER})
    producer.produce("orders", b"1")
    kafka.wait.until(lambda: partition.leader in others, timeout=30)
    kafka.network.heal()
    assert producer.flush(60) == 0
    kafka.wait.isr("orders", 0, {1, 2, 3}, timeout=30)
    assert kafka.topic("orders").values() == [b"1"]


@pytest.mark.kafka(brokers=3, topics=ORDERS)
def test_a_rolling_restart(kafka, service):
    """A rolling restart

    Every broker restarts once, and the service writes all the time.
    """
    for node in kafka.brokers:
        node.stop()
        service.send("orders", b"without broker %d" % node.node_id)
        node.start()
        kafka.wait.isr("orders", 0, {1, 2, 3}, timeout=30)
    assert len(service.read("orders", 3)) == 3


@pytest.mark.kafka(brokers=3, topics=ORDERS)
def test_not_enough_replicas(kafka, producer):
    """Not enough replicas

    One of three brokers is left, and `min.insync.replicas` is 2. The record waits for another one.
    """
    partition = kafka.partition("orders", 0)
    followers = [each for each in partition.replicas if each != partition.leader]
    for each in followers:
        kafka.broker(each).stop()
    kafka.wait.isr("orders", 0, {partition.leader})
    with kafka.record() as seen:
        producer.produce("orders", b"1")
        kafka.wait.until(lambda: seen.requests("Produce", error="NOT_ENOUGH_REPLICAS"))
        kafka.broker(followers[0]).start()
        assert producer.flush(30) == 0
    assert kafka.topic("orders").values() == [b"1"]


@pytest.mark.kafka(topics={"orders": 1})
def test_power_loss(kafka, service):
    """Power is lost before the disk has the records

    Kafka acknowledges before it syncs. A single broker that loses power forgets those records.
    """
    service.send("orders", b"1")
    kafka.broker().kill(lose_unsynced=True)
    kafka.broker().start()
    assert kafka.topic("orders").values() == []
    service.send("orders", b"2")
    assert kafka.topic("orders").values() == [b"2"]


@pytest.mark.kafka(topics={"orders": 1})
def test_the_only_broker_restarts(kafka, producer):
    """The only broker restarts

    The producer keeps its record until the broker is back, at the same address.
    """
    producer.produce("orders", b"1")
    producer.flush(30)
    kafka.broker().kill()
    producer.produce("orders", b"2")
    kafka.broker().start()
    assert producer.flush(30) == 0
    assert kafka.topic("orders").values() == [b"1", b"2"]


@pytest.mark.kafka(topics={"orders": 1})
def test_a_full_disk(kafka, producer):
    """The disk is full

    The broker refuses records until there is room again.
    """
    kafka.broker().disk.fill()
    with kafka.record() as seen:
        producer.produce("orders", b"1")
        kafka.wait.until(lambda: seen.requests("Produce", error="KAFKA_STORAGE_ERROR"))
    kafka.broker().disk.free()
    assert producer.flush(30) == 0
    assert kafka.topic("orders").values() == [b"1"]


@pytest.mark.kafka(brokers=3, topics=ORDERS)
def test_no_controller(kafka, service):
    """The controller is away

    Reading and writing go on. Changes of topics and leaders wait, and so do new idempotent
    producers that need an id.
    """
    service.send("orders", b"1")
    assert service.read("orders", 1) == [b"1"]
    kafka.controller.stop()
    service.send("orders", b"2", idempotent=False)
    assert service.read("orders", 1) == [b"2"]
    kafka.controller.start()


@pytest.mark.kafka(topics={"orders": 1})
def test_a_slow_link(kafka, service):
    """A slow link

    Every piece of data needs 20 ms more, and large answers come in pieces.
    """
    with kafka.toxic(latency=0.02, slice=500) as toxic:
        service.send("orders", b"x" * 2_000)
        assert service.read("orders", 1) == [b"x" * 2_000]
    assert toxic.connections > 0


@pytest.mark.kafka(brokers=3, topics=ORDERS)
def test_stale_metadata(kafka, service):
    """Clients know an old leader

    The rule answers once with the metadata from before the move.
    """
    partition = kafka.partition("orders", 0)
    target = next(each for each in partition.isr if each != partition.leader)
    with kafka.fault("Metadata", action="stale-metadata") as fault:
        partition.move_to(target)
        kafka.wait.leader("orders", 0, target)
        service.send("orders", b"1")
    assert fault.hits == 1
    assert kafka.topic("orders").values() == [b"1"]
