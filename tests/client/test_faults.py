"""Exactly once, in order: an idempotent producer over networks and brokers that fail.

The seed decides each run, which takes simulated time only; `_run(seed)` replays one.
"""

from __future__ import annotations

from typing import Any

import pytest

from embedlog.client.producer.producer import Producer
from embedlog.cluster.cluster import Cluster
from embedlog.errors import KafkaError, TimedOut
from embedlog.runtime.randomness import seeded
from embedlog.testing import sim_runtime
from tests.client.faulty_network import FAULTS, FaultyBroker, FaultyTransport, Plan, stored
from tests.support.sizes import size

PARTITIONS = 2
RECORDS = 60
LONGEST_MS = 20_000
"""More than any run takes, less than a sleep of one minute over an event."""


class Run:
    """One producer's life under faults, and its outcomes."""

    def __init__(
        self,
        seed: int,
        *,
        rate: int,
        broker_rate: int,
        forgetting_rate: int = 0,
        **settings: Any,
    ) -> None:
        self.draw = seeded(seed + 1000)
        runtime = sim_runtime(seed)
        self.cluster = Cluster(runtime=runtime)
        self.cluster.create_topic("t", partitions=PARTITIONS)
        self.plan = Plan(seeded(seed + 2000), rate)
        random = seeded(seed + 3000)
        FaultyBroker(self.cluster, random, broker_rate, forgetting_rate=forgetting_rate)
        settings = {"linger_ms": 0, "request_timeout_ms": 2_000, "batch_size": 300, **settings}
        self.runtime = runtime
        self.transport = FaultyTransport(self.cluster, self.plan, **settings)
        self.producer = Producer(self.transport, **settings)
        self.sent: list[list[bytes]] = [[] for _ in range(PARTITIONS)]
        self.futures: list[list[Any]] = [[] for _ in range(PARTITIONS)]
        self.told: list[list[tuple[int, int, bool]]] = [[] for _ in range(PARTITIONS)]

    @property
    def epoch_bump_count(self) -> int:
        """The highest epoch of the batches, counted from 0."""
        batches = [future.batch for futures in self.futures for future in futures]
        return max(batch.numbers[1] for batch in batches)

    def send_all(self) -> None:
        for number in range(RECORDS):
            self._send(number)
            if self.draw.below(10) == 0:
                self.runtime.scheduler.run_for(self.draw.below(300))
            if self.draw.below(20) == 0:
                self.producer.flush()

    def _send(self, number: int) -> None:
        partition = self.draw.below(PARTITIONS)
        value = b"%d:" % number + bytes(self.draw.below(120))
        told = self.told[partition]
        position = len(self.sent[partition])
        self.sent[partition].append(value)
        self.futures[partition].append(
            self.producer.send(
                "t",
                value,
                partition=partition,
                on_delivery=lambda metadata, error: told.append(
                    (position, metadata.offset, error is None)
                ),
            )
        )

    def end(self) -> None:
        self.plan.rate = 0
        self.producer.flush()
        self.done_ms = self.runtime.clock.monotonic_ms()
        for _ in range(
            50
        ):  # records that were given up in flight hold their memory until the request ends
            self.runtime.scheduler.run_for(100)
            self.producer.flush()
        metrics = self.producer.metrics()
        assert metrics["buffer-available-bytes"] == metrics["buffer-total-bytes"]
        assert metrics["requests-in-flight"] == 0
        self.producer.close()
        assert not self.transport.channels.ends
        self.runtime.scheduler.run_for(10_000)  # requests that are still on their way

    def check_exactly_once(self) -> None:
        """Check that every record is there once, in order, and that no wait was in vain."""
        assert self.done_ms < LONGEST_MS
        for partition in range(PARTITIONS):
            assert stored(self.cluster, "t", partition) == self.sent[partition]
            told = self.told[partition]
            # Each outcome is reported once; not in order if a record was written and its answer
            # lost.
            assert sorted(position for position, _, _ in told) == list(range(len(told)))
            assert all(written for _, _, written in told)
            # The broker names no offset for a duplicate.
            assert all(offset in {-1, position} for position, offset, _ in told)

    def check_at_most_once(self) -> int:
        """Check that acknowledged records are there once, failed ones at most once; count the
        failed."""
        failed = 0
        for partition in range(PARTITIONS):
            sent = self.sent[partition]
            found = [sent.index(value) for value in stored(self.cluster, "t", partition)]
            assert found == sorted(set(found)), "in order, and nothing twice"
            told = {position: written for position, _, written in self.told[partition]}
            assert len(told) == len(self.told[partition]) == len(sent)
            assert {position for position, written in told.items() if written} <= set(found)
            for position, future in enumerate(self.futures[partition]):
                error = future.exception(0)
                assert (error is None) == told[position]
                assert error is None or isinstance(error, TimedOut | KafkaError), error
                failed += error is not None
        return failed


def _run(seed: int, rate: int = 60, **settings: Any) -> Run:
    settings = {"delivery_timeout_ms": 10_000_000, **settings}
    run = Run(seed, rate=rate, broker_rate=150, **settings)
    run.send_all()
    run.end()
    return run


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(25))
def test_no_record_is_lost_doubled_or_out_of_order(seed: int) -> None:
    _run(seed).check_exactly_once()


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("hundred", range(size(2, full=5)))
def test_no_record_is_lost_doubled_or_out_of_order_in_many_runs(hundred: int) -> None:
    drawn: set[str] = set()
    for seed in range(1000 + 100 * hundred, 1100 + 100 * hundred):
        run = _run(seed)
        run.check_exactly_once()
        drawn |= run.plan.drawn.keys()
    assert drawn == set(FAULTS), "every kind of fault happened"


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 110))
@pytest.mark.parametrize("in_flight", [1, 2])
def test_fewer_in_flight_keep_the_order_too(seed: int, in_flight: int) -> None:
    _run(seed, max_in_flight_requests_per_connection=in_flight).check_exactly_once()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(200, 220))
def test_what_fails_for_lack_of_time_is_written_at_most_once(seed: int) -> None:
    run = _run(seed, rate=200, delivery_timeout_ms=2_500)
    run.check_at_most_once()


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_what_fails_for_lack_of_time_is_written_at_most_once_in_many_runs() -> None:
    failed = bumps = 0
    for seed in range(5000, 5000 + size(100, full=300)):
        run = _run(seed, rate=200, delivery_timeout_ms=2_500)
        failed += run.check_at_most_once()
        bumps += run.epoch_bump_count
    assert failed > 300
    assert bumps > 30


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(300, 310))
def test_what_runs_out_of_retries_is_written_at_most_once(seed: int) -> None:
    run = _run(seed, rate=150, retries=1)
    run.check_at_most_once()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(400, 430))
def test_what_a_broker_has_forgotten_is_written_at_most_once(seed: int) -> None:
    run = _run(seed, rate=150, forgetting_rate=300, delivery_timeout_ms=20_000)
    run.check_at_most_once()
