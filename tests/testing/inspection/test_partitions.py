"""Partitions and connections as values."""

from __future__ import annotations

import pytest

from embedlog.errors import InvalidReplicaAssignment, UnknownTopicOrPartition
from embedlog.testing import Kafka
from embedlog.testing.inspection.partition import EpochValue


def test_a_partition_of_one_broker_has_its_offsets_epochs_and_producers() -> None:
    with Kafka(topics={"orders": 1}) as kafka:
        kafka.producer().send("orders", b"x").result()
        partition = kafka.partition("orders", 0)
        assert (partition.start, partition.lso, partition.hw, partition.leo) == (0, 1, 1, 1)
        assert (partition.leader, partition.isr, partition.replicas) == (1, (1,), (1,))
        assert partition.end_offsets == partition.high_watermarks == {1: 1}
        assert partition.epochs == [EpochValue(0, 0)]
        with pytest.raises(InvalidReplicaAssignment, match="broker 2"):
            partition.move_to(2)


def test_a_new_leader_begins_an_epoch() -> None:
    topics = {"orders": {"partitions": 1, "replication_factor": 3}}
    with Kafka(brokers=3, topics=topics) as kafka:
        kafka.producer().send("orders", b"x").result()
        partition = kafka.partition("orders", 0)
        first = partition.leader
        kafka.broker(first).stop()
        kafka.wait.leader("orders", 0)
        kafka.producer(enable_idempotence=True).send("orders", b"y").result()
        assert [each.start_offset for each in partition.epochs] == [0, 1]
        assert partition.leader_epoch == partition.epochs[-1].epoch
        producer = partition.producers[-1]
        assert (producer.last_offset, producer.last_sequence, producer.transaction_start) == (
            1,
            0,
            None,
        )


def test_a_broker_that_has_not_heard_of_a_move_is_no_replica_any_more() -> None:
    topics = {"orders": {"partitions": 1, "replication_factor": 2}}
    with Kafka(brokers=3, topics=topics) as kafka:
        kafka.producer().send("orders", b"x").result()
        partition = kafka.partition("orders", 0)
        leader, follower = partition.replicas
        (third,) = {1, 2, 3} - {leader, follower}
        assert set(partition.end_offsets) == {leader, follower}
        kafka.broker(follower).pause()
        partition.reassign([leader, third])
        kafka.wait.until(lambda: partition.replicas == (leader, third))
        assert kafka.broker(follower).core.replica_manager.partition("orders", 0)
        assert set(partition.end_offsets) == {leader, third}


def test_partitions_that_do_not_exist_are_refused() -> None:
    with Kafka(topics={"orders": 1}) as kafka:
        with pytest.raises(UnknownTopicOrPartition, match="did you mean 'orders'"):
            kafka.partition("order", 0)
        with pytest.raises(UnknownTopicOrPartition, match="has 1 partitions, no 1"):
            kafka.partition("orders", 1)
        with pytest.raises(UnknownTopicOrPartition, match="partition True .*: no number"):
            kafka.partition("orders", True)


def test_connections_are_listed_with_client_and_software() -> None:
    import embedlog

    with Kafka(topics={"orders": 1}) as kafka:
        assert kafka.connections() == []
        with embedlog.Producer(kafka.bootstrap_servers, client_id="observer") as producer:
            producer.send("orders", b"x").result()
            found = kafka.connections()[0]
            assert (found.client_id, found.node_id) == ("observer", 1)
            assert found.software
            assert found.listener == kafka.bootstrap_servers
            assert found.since_ms > 0
            assert str(found).startswith("'observer' (")
        kafka.wait.until(lambda: not kafka.connections())
