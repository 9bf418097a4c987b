"""Logs with an open transaction move between Apache Kafka and embedlog.

The partitions' files are copied, `__transaction_state` and `__consumer_offsets` with them; each
side keeps its own topic ids. The new broker knows the transaction, hides its records and offsets,
and ends it on the producer's request.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

import embedlog
from tests.golden.run import Run
from tests.golden.targets import Address
from tests.golden.transaction_requests import RETRIED, end
from tests.support.kafka import real_kafka
from wire.schemas.describe_transactions import DescribeTransactionsRequest, TransactionState

pytestmark = [pytest.mark.interop, pytest.mark.slow]

COUNTS = {"offsets.topic.num.partitions": "1", "transaction.state.log.num.partitions": "1"}
FOLDERS = ("t-0", "__transaction_state-0", "__consumer_offsets-0")
KEPT = "partition.metadata"
WAIT_S = 20


@contextmanager
def kafka(directory: Path) -> Iterator[str]:
    with real_kafka(directory, settings=COUNTS) as address:
        yield address


@contextmanager
def ours(directory: Path) -> Iterator[str]:
    config = {**COUNTS, "auto.create.topics.enable": True}
    with embedlog.open(directory / "data", config=config, durability="os") as cluster:
        yield cluster.listen("127.0.0.1", 0).address


BROKERS = {"kafka": kafka, "embedlog": ours}


def leave_open(address: str) -> None:
    """Leave one committed and one open transaction, each with a record and an offset."""
    producer = Producer({"bootstrap.servers": address, "transactional.id": "x"})
    producer.init_transactions(WAIT_S)
    producer.begin_transaction()
    producer.produce("t", b"committed", partition=0)
    producer.commit_transaction(WAIT_S)
    producer.begin_transaction()
    producer.produce("t", b"open", partition=0)
    producer.flush(WAIT_S)
    consumer = Consumer({"bootstrap.servers": address, "group.id": "g"})
    offsets = [TopicPartition("t", 0, 7)]
    producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), WAIT_S)
    consumer.close()


def read(address: str, count: int) -> list[bytes]:
    """Read this number of committed records, and check that no more follow."""
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "reader",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
    )
    consumer.assign([TopicPartition("t", 0, 0)])
    found: list[bytes] = []
    for _ in range(100):
        message = consumer.poll(WAIT_S)
        assert message is not None, f"nothing more than {found} comes"
        if message.error():
            if len(found) >= count:
                break
            continue
        found.append(message.value())
    consumer.close()
    return found


def committed(address: str) -> int:
    """Return the offset of the group; -1001 for none."""
    consumer = Consumer({"bootstrap.servers": address, "group.id": "g"})
    (found,) = consumer.committed([TopicPartition("t", 0)], WAIT_S)
    consumer.close()
    return int(found.offset)


def ask(address: str, request: Any, version: int) -> Any:
    """Send one request and return its answer."""
    run = Run(Address(address), "files")
    try:
        return run.setup(request, version)
    finally:
        run.close()


def described(address: str) -> TransactionState:
    """Describe the transaction, once its coordinator has loaded it."""
    request = DescribeTransactionsRequest(transactional_ids=["x"])
    for _ in range(200):
        (state,) = ask(address, request, 0).transaction_states
        if state.error_code not in RETRIED:
            break
        time.sleep(0.05)
    assert isinstance(state, TransactionState)
    return state


@pytest.mark.parametrize("is_committed", [True, False], ids=["commit", "abort"])
@pytest.mark.parametrize(("giver", "taker"), [("embedlog", "kafka"), ("kafka", "embedlog")])
def test_another_broker_continues_an_open_transaction(
    giver: str, taker: str, is_committed: bool, tmp_path: Path
) -> None:
    for name in (giver, taker):
        (tmp_path / name).mkdir()
        with BROKERS[name](tmp_path / name) as address:
            leave_open(address)
    for folder in FOLDERS:
        source, target = tmp_path / giver / "data" / folder, tmp_path / taker / "data" / folder
        for file in target.iterdir():
            if file.name != KEPT:
                file.unlink()
        for file in source.iterdir():
            if file.name != KEPT:
                shutil.copy(file, target / file.name)
    for left in (tmp_path / taker / "data").glob("*checkpoint*"):
        left.unlink()
    (tmp_path / taker / "data" / ".kafka_cleanshutdown").unlink(missing_ok=True)

    with BROKERS[taker](tmp_path / taker) as address:
        state = described(address)
        assert state.transaction_state == "Ongoing"
        assert read(address, 1) == [b"committed"]
        producer = state.producer_id, state.producer_epoch
        answer = ask(address, end("x", producer, commit=is_committed), 5)
        assert answer.error_code == 0
        expected = [b"committed", b"open"] if is_committed else [b"committed"]
        assert read(address, len(expected)) == expected
        # To embedlog these are offsets of another topic, because the topic id differs.
        is_told = is_committed and taker == "kafka"
        assert committed(address) == (7 if is_told else -1001)
