"""Transactions as an administrator sees and ends them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import embedlog
from embedlog import Admin, Cluster, Producer, TopicPartition, errors

HERE = TopicPartition("orders", 0)


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with embedlog.open() as made:
        made.create_topic("orders", 2)
        yield made


def begun(cluster: Cluster, name: str) -> Producer:
    """A producer with an open transaction of one record, which ends with the producer."""
    producer = cluster.producer(transactional_id=name)
    producer.init_transactions()
    producer.begin_transaction()
    producer.send("orders", name.encode(), partition=0).result(10)
    return producer


def committed(cluster: Cluster) -> list[bytes | None]:
    with cluster.consumer(isolation_level="read_committed") as consumer:
        consumer.assign([HERE])
        consumer.seek_to_beginning()
        return [record.value for record in consumer.poll(200)]


def test_transactions_are_listed_and_described(cluster: Cluster) -> None:
    open_one, done = begun(cluster, "open"), begun(cluster, "done")
    done.commit_transaction()
    with cluster.admin() as admin:
        listed = admin.list_transactions()
        assert {name: each.state for name, each in listed.items()} == {
            "open": "Ongoing",
            "done": "CompleteCommit",
        }
        assert list(admin.list_transactions(states=["Ongoing"])) == ["open"]
        assert list(admin.list_transactions(pattern="d.*")) == ["done"]
        assert list(admin.list_transactions(longer_than_ms=3_600_000)) == []
        found = admin.describe_transactions(["open", "nobody"])
        described = found["open"]
        assert (described.state, described.partitions) == ("Ongoing", [HERE])
        assert described.timeout_ms == 60_000
        assert described.start_ms is not None
        assert isinstance(found.errors["nobody"], errors.TransactionalIdNotFound)
        chosen = admin.list_transactions(producer_ids=[described.producer_id])
        assert list(chosen) == ["open"]
    open_one.abort_transaction()


def test_a_producer_is_fenced_and_its_transaction_aborted(cluster: Cluster) -> None:
    producer = begun(cluster, "mine")
    with cluster.admin() as admin:
        before = admin.describe_transactions(["mine"])["mine"]
        fenced = admin.fence_producers(["mine"])["mine"]
        assert fenced.producer_id == before.producer_id
        assert fenced.producer_epoch > before.producer_epoch
    with pytest.raises(errors.KafkaError):
        producer.commit_transaction()
    assert committed(cluster) == []


def test_a_hanging_transaction_is_aborted_where_it_hangs(cluster: Cluster) -> None:
    with begun(cluster, "hangs"), cluster.admin() as admin:
        (state,) = admin.describe_producers([HERE])[HERE]
        assert state.current_transaction_start_offset == 0
        admin.abort_transaction(
            HERE,
            state.producer_id,
            state.producer_epoch,
            coordinator_epoch=state.coordinator_epoch,
        )
        (state,) = admin.describe_producers([HERE])[HERE]
        assert state.current_transaction_start_offset == -1
        with pytest.raises(errors.InvalidProducerEpoch):
            admin.abort_transaction(HERE, state.producer_id, -2)
        with pytest.raises(errors.UnknownServerError):  # as Kafka answers a missing epoch
            admin.abort_transaction(HERE, state.producer_id, -1)
    assert committed(cluster) == []


def test_over_tcp_as_well(cluster: Cluster) -> None:
    producer = begun(cluster, "open")
    with Admin(cluster.listen("127.0.0.1", 0).address) as admin:
        assert admin.describe_transactions(["open"])["open"].state == "Ongoing"
        assert admin.fence_producers(["open"])["open"].producer_epoch >= 1
        assert admin.list_transactions()["open"].state == "Empty"
    with pytest.raises(errors.ProducerFenced):
        producer.commit_transaction()
