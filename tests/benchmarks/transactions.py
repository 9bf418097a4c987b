"""Transactions: embedlog and Apache Kafka over TCP with confluent-kafka, and ours in process.

A commit is begin, produce, commit, one after the other in one thread. The extra cost of a
read_committed reader is measured on a log with every tenth transaction aborted.
"""

from __future__ import annotations

import time
from itertools import count

from confluent_kafka import Consumer, Producer, TopicPartition

import embedlog
from tests.benchmarks.brokers import MOCK_NAME, OURS, broker, names
from tests.benchmarks.table import show, show_rates

WAIT_S = 30
SIZE = 100
TRANSACTIONS = {1: 300, 10: 200, 1000: 20}
"""Records in a transaction -> transactions a round."""
ROUNDS = 2
SPREAD = 200
READ_RECORDS = 100_000
IDLE_IDS = 10_000
_numbers = count()


def _producer(address: str) -> Producer:
    producer = Producer(
        {
            "bootstrap.servers": address,
            "transactional.id": f"bench {next(_numbers)}",
            "linger.ms": 0,
        }
    )
    producer.init_transactions(WAIT_S)
    return producer


def commits(address: str, topic: str, records: int, transactions: int) -> list[float]:
    """Return the seconds of each transaction of this number of records, over three partitions."""
    producer, value, taken = _producer(address), b"x" * SIZE, []
    for _ in range(transactions):
        started = time.perf_counter()
        producer.begin_transaction()
        for number in range(records):
            producer.produce(topic, value, partition=number % 3)
        producer.commit_transaction(WAIT_S)
        taken.append(time.perf_counter() - started)
    return taken


def in_process(records: int, transactions: int) -> float:
    """Return commits a second of our producer, without files or sockets."""
    value = b"x" * SIZE
    with embedlog.open() as cluster:
        cluster.create_topic("t", 3)
        with cluster.producer(transactional_id="bench") as producer:
            producer.init_transactions()
            started = time.perf_counter()
            for _ in range(transactions):
                producer.begin_transaction()
                for number in range(records):
                    producer.send("t", value, partition=number % 3)
                producer.commit_transaction()
            return transactions / (time.perf_counter() - started)


def fill(address: str, topic: str) -> None:
    """Write transactions of a thousand records; abort every tenth."""
    producer, value = _producer(address), b"x" * SIZE
    for number in range(READ_RECORDS // 1000):
        producer.begin_transaction()
        for _ in range(1000):
            producer.produce(topic, value, partition=0)
        producer.flush(WAIT_S)  # an abort drops unsent records
        (producer.abort_transaction if number % 10 == 9 else producer.commit_transaction)(WAIT_S)


def read(address: str, topic: str, isolation: str) -> float:
    """Return the records a second that the reader gets."""
    wanted = READ_RECORDS if isolation == "read_uncommitted" else READ_RECORDS * 9 // 10
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "bench",
            "isolation.level": isolation,
            "enable.auto.commit": False,
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    found = len(consumer.consume(1, WAIT_S))
    started = time.perf_counter()
    while found < wanted:
        found += len(consumer.consume(min(1000, wanted - found), WAIT_S))
    seconds = time.perf_counter() - started
    consumer.close()
    return wanted / seconds


def idle_ids() -> float:
    """Return the bytes of an unused transactional id."""
    from wire.schemas.find_coordinator import FindCoordinatorRequest
    from wire.schemas.init_producer_id import InitProducerIdRequest

    def resident_kib() -> int:
        with open("/proc/self/status") as status:
            (line,) = [line for line in status if line.startswith("VmRSS")]
        return int(line.split()[1])

    with embedlog.open() as cluster:
        transport = cluster.connect()
        transport.send(-1, FindCoordinatorRequest(key_type=1, coordinator_keys=["x"])).result()

        def begin(number: int) -> None:
            request = InitProducerIdRequest(
                transactional_id=f"bench-{number}", transaction_timeout_ms=60_000
            )
            assert not transport.send(-1, request).result().error_code

        begin(0)
        before = resident_kib()
        for number in range(1, IDLE_IDS):
            begin(number)
        return (resident_kib() - before) * 1024 / IDLE_IDS


def main() -> None:
    """Print all tables of transactions."""
    rates: dict[int, dict[str, float]] = {records: {} for records in TRANSACTIONS}
    spread: dict[str, dict[str, float]] = {"p50": {}, "p99": {}}
    for name in names():
        if name == MOCK_NAME:
            continue
        with broker(name) as address:
            topic = f"t{next(_numbers)}"
            with embedlog.Admin(address) as admin:
                admin.create_topics({topic: 3, f"{topic}-read": 1}).check()
            for records, transactions in TRANSACTIONS.items():
                best = min(
                    sum(commits(address, topic, records, transactions)) for _ in range(ROUNDS)
                )
                rates[records][name] = transactions / best
            taken = sorted(commits(address, topic, 3, SPREAD))
            spread["p50"][name] = taken[SPREAD // 2]
            spread["p99"][name] = taken[int(SPREAD * 0.99)]
            fill(address, f"{topic}-read")
            reads = {
                isolation: max(read(address, f"{topic}-read", isolation) for _ in range(ROUNDS))
                for isolation in ("read_uncommitted", "read_committed")
            }
            share = reads["read_committed"] / reads["read_uncommitted"]
            print(f"\n{name}: read_committed reads {share:.2f}x as fast as read_uncommitted")
    for records, found in rates.items():
        show_rates(f"commits, {records} records each, TCP", found, ours=OURS, unit="/s")
    for which, found in spread.items():
        show(f"a transaction over 3 partitions, TCP, {which}", found, ours=OURS, unit="us")
    own = {f"{records} records each": in_process(records, n) for records, n in TRANSACTIONS.items()}
    for what, rate in own.items():
        print(f"  in process, no files, {what:<20}{rate:14,.0f} commits/s")
    print(f"  an idle transactional id takes {idle_ids():,.0f} bytes")


if __name__ == "__main__":
    main()
