"""Consume, process, produce, exactly once: over networks and brokers that fail.

A worker takes numbers from the position of its group, and writes its results and the new position
in one transaction. After an error it follows the error's `remedy`. The seed decides each run, which
takes simulated time only; `Worker(seed).run()` replays one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from embedlog import ConsumerGroupMetadata, Producer
from embedlog.cluster.cluster import Cluster
from embedlog.common import TopicPartition
from embedlog.errors import EmbedlogError
from embedlog.runtime.randomness import seeded
from embedlog.testing import sim_runtime
from tests.client.faulty_network import FaultyBroker, FaultyTransport, Plan
from tests.client.producer.transactions.conftest import transaction_features
from wire.schemas.api_versions import ApiVersionsRequest

PARTITIONS = 2
NUMBERS = 60
TAKEN = TopicPartition("taken", 0)
GROUP = ConsumerGroupMetadata("workers")
STEPS_MAX = 2_000
"""More than any run takes."""


class Worker:
    """One worker's life under faults."""

    def __init__(
        self, seed: int, *, version: int = 2, rate: int = 120, broker_rate: int = 150
    ) -> None:
        self.draw = seeded(seed + 1_000)
        self.runtime = sim_runtime(seed)
        self.cluster = Cluster(runtime=self.runtime)
        self.cluster.create_topic("taken", 1)
        self.cluster.create_topic("out", PARTITIONS)
        self.plan = Plan(seeded(seed + 2_000), rate)
        tell_version(self.cluster, version)
        FaultyBroker(self.cluster, seeded(seed + 3_000), broker_rate)
        self.remedies: dict[str, int] = {}
        self.producer = self.make_producer()
        self.is_ready = False

    def make_producer(self) -> Producer:
        settings: dict[str, Any] = {
            "linger_ms": 0,
            "request_timeout_ms": 2_000,
            "delivery_timeout_ms": 4_000 + self.draw.below(20_000),
            "max_block_ms": 3_000,
            "transaction_timeout_ms": 30_000,
            "batch_size": 300,
        }
        transport = FaultyTransport(self.cluster, self.plan, **settings)
        return Producer(transport, transactional_id="worker", **settings)

    def run(self) -> None:
        """Work until every number is done."""
        for _ in range(STEPS_MAX):
            if not self.is_ready:
                self.is_ready = self.attempt(self.producer.init_transactions)
                continue
            place = self.place()
            if place == NUMBERS:
                break
            self.work(place, min(place + 1 + self.draw.below(5), NUMBERS))
        else:
            raise AssertionError((self.place(), self.remedies))
        self.plan.rate = 0
        self.producer.close()

    def work(self, start: int, end: int) -> None:
        """Make one transaction, with any outcome."""
        producer = self.producer
        producer.begin_transaction()
        try:
            for number in range(start, end):
                value = b"%d:" % number + bytes(self.draw.below(150))
                producer.send("out", value, partition=number % PARTITIONS)
                if self.draw.below(8) == 0:
                    self.runtime.scheduler.run_for(self.draw.below(400))
            producer.send_offsets_to_transaction({TAKEN: end}, GROUP)
        except EmbedlogError as error:
            self.count(error)
            if error.remedy == "close":
                self.replace()
            else:
                self.attempt(producer.abort_transaction)
            return
        if self.draw.below(6) == 0:
            self.attempt(producer.abort_transaction)
        else:
            self.attempt(producer.commit_transaction)

    def attempt(self, call: Callable[[], None]) -> bool:
        """Repeat a call until it has an outcome, as errors advise; return whether there was no
        error."""
        while True:
            try:
                call()
                return True
            except EmbedlogError as error:
                self.count(error)
                if error.remedy == "retry" and self.draw.below(4):
                    continue
                if error.remedy == "abort":
                    self.attempt(self.producer.abort_transaction)
                else:
                    self.replace()  # also as if this process had been killed
                return False

    def count(self, error: EmbedlogError) -> None:
        assert error.remedy is not None, repr(error)
        self.remedies[error.remedy] = self.remedies.get(error.remedy, 0) + 1

    def replace(self) -> None:
        """Go on with another producer; the old one may still have requests on their way."""
        self.producer.close(0)
        self.producer = self.make_producer()
        self.is_ready = False

    def place(self) -> int:
        """Return the position of the group."""
        with self.cluster.consumer(group_id="workers", isolation_level="read_committed") as reader:
            found = reader.committed([TAKEN])[TAKEN]
            return 0 if found is None else found.offset

    def committed(self) -> list[list[int]]:
        """Return the numbers that committed readers see, by partition."""
        found: list[list[int]] = []
        with self.cluster.consumer(isolation_level="read_committed") as reader:
            for partition in range(PARTITIONS):
                reader.assign([("out", partition)])
                reader.seek_to_beginning()
                (end,) = reader.end_offsets([("out", partition)]).values()
                values: list[bytes] = []
                while reader.position(("out", partition)) < end:
                    values += [record.value or b"" for record in reader.poll(10)]
                found.append([int(value.partition(b":")[0]) for value in values])
        return found


def tell_version(cluster: Cluster, level: int) -> None:
    """Announce this transaction.version to clients from here on."""
    handle = cluster.broker().core.handle

    def answer(context: Any, request: Any) -> Any:
        answered = handle(context, request)
        if isinstance(request, ApiVersionsRequest):
            return transaction_features(answered, level)
        return answered

    cluster.broker().core.handle = answer  # type: ignore[method-assign]


EXPECTED = [list(range(partition, NUMBERS, PARTITIONS)) for partition in range(PARTITIONS)]


@pytest.mark.slow
@pytest.mark.parametrize("version", [2, 1])
@pytest.mark.parametrize("seed", range(10))
def test_every_number_is_processed_exactly_once(seed: int, version: int) -> None:
    worker = Worker(seed, version=version)
    worker.run()
    assert worker.committed() == EXPECTED


def test_a_calm_network_leaves_nothing_to_remedy() -> None:
    worker = Worker(1, rate=0, broker_rate=0)
    worker.run()
    assert worker.committed() == EXPECTED
    assert worker.remedies == {}
