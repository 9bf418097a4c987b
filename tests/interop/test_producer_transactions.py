"""Our transactional producer against Apache Kafka itself, with each of its transaction versions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from embedlog import Admin, Consumer, IllegalState, PreparedTransaction, Producer, errors
from tests.client.producer.transactions import test_promises as promises
from tests.client.producer.transactions.test_killed import run_and_kill
from tests.support.kafka import real_kafka

pytestmark = [pytest.mark.interop, pytest.mark.slow]

SETTINGS = {
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
    "transaction.two.phase.commit.enable": "true",
    "unstable.api.versions.enable": "true",
}


@pytest.fixture(scope="module", params=[2, 1, 0], ids=["v2", "v1", "v0"])
def address(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    features = {"transaction.version": request.param}
    directory = tmp_path_factory.mktemp("kafka")
    with real_kafka(directory, settings=SETTINGS, features=features, heap="384m") as listening:
        yield listening


@pytest.fixture
def connect(address: str) -> Callable[[], Any]:
    """Return a transport to a cluster without topics, whose groups have coordinators."""
    with Admin(address) as admin:
        admin.delete_topics(list(admin.list_topics())).check()
    with Consumer(address, group_id="first") as consumer:
        consumer.committed([("any", 0)])
    return lambda: address


@pytest.mark.parametrize(
    "promise",
    [
        promises.test_committed_readers_stop_before_an_open_transaction,
        promises.test_what_is_read_and_what_is_written_count_together,
        promises.test_a_zombie_is_fenced_and_its_records_never_count,
        promises.test_a_consumer_that_left_its_group_cannot_commit_with_a_transaction,
        promises.test_a_topic_that_is_not_there_takes_the_transaction_with_it,
        promises.test_asyncio_has_the_same_transactions,
        promises.test_asyncio_commits_what_a_consumer_has_read,
    ],
    ids=lambda promise: promise.__name__.removeprefix("test_"),
)
def test_kafka_keeps_transactions_exactly_once(promise: Any, connect: Callable[[], Any]) -> None:
    promise(connect)


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_kafka_hides_aborted_records_from_every_kind_of_read(
    connect: Callable[[], Any], codec: str
) -> None:
    promises.test_every_way_to_read_passes_over_what_was_aborted(
        connect, {"compression_type": codec}
    )


@pytest.mark.parametrize("linger_ms", [0, 5])
def test_closing_ends_a_transaction_with_kafka(connect: Callable[[], Any], linger_ms: int) -> None:
    promises.test_closing_ends_a_transaction_that_nobody_has_ended(connect, linger_ms)


def test_kafka_keeps_large_transactions_whole(connect: Callable[[], Any]) -> None:
    promises.test_a_large_transaction_of_many_batches_is_whole(connect, "lz4")


def test_a_transaction_aborted_by_its_coordinator_is_not_committed(
    connect: Callable[[], Any],
) -> None:
    promises.make_topics(connect, out=2)
    with promises.transactional(connect, transaction_timeout_ms=300) as producer:
        producer.begin_transaction()
        producer.send("out", b"late", partition=0).result()
        with Consumer(connect(), isolation_level="read_committed") as reader:
            reader.assign([("out", 0)])
            end = reader.end_offsets([("out", 0)])
            while reader.end_offsets([("out", 0)]) == end:
                pass  # until the marker is written
        with pytest.raises(errors.KafkaError) as caught:
            producer.commit_transaction()
        assert caught.value.remedy == "close"
    with promises.transactional(connect) as producer, producer.transaction() as transaction:
        transaction.send("out", b"in time", partition=0)
    found = promises.committed(connect)
    assert found == [b"in time"]


def test_a_killed_worker_handles_each_number_once(connect: Callable[[], Any], address: str) -> None:
    run_and_kill(connect, address, seed=3)


@pytest.mark.parametrize("ends", ["commits", "aborts"])
def test_a_prepared_transaction_ends_as_the_external_coordinator_decides(
    connect: Callable[[], Any], ends: str
) -> None:
    promises.make_topics(connect, out=2)
    settings = {"transactional.id": "two", "transaction.two.phase.commit.enable": True}
    with Producer(connect(), settings) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("out", b"prepared", partition=0)
        stored = str(producer.prepare_transaction())
        with pytest.raises(IllegalState, match="a prepared transaction can only be ended"):
            producer.send("out", b"more")
        producer.complete_transaction(
            PreparedTransaction.parse(stored if ends == "commits" else "")
        )
        with producer.transaction() as transaction:
            transaction.send("out", b"next", partition=0)
    found = promises.committed(connect)
    assert found == ([b"prepared", b"next"] if ends == "commits" else [b"next"])


def test_kafka_cannot_keep_a_prepared_transaction_yet(connect: Callable[[], Any]) -> None:
    settings = {"transactional.id": "two", "transaction.two.phase.commit.enable": True}
    with Producer(connect(), settings) as producer:
        with pytest.raises(errors.UnsupportedVersion) as caught:
            producer.init_transactions(keep_prepared=True)
        assert caught.value.remedy == "close"
