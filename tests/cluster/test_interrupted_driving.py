"""Ctrl-C anywhere in a call that drives time-outs of coordinators: no time-out is lost."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import embedlog
from embedlog.runtime.lock_order import held_here
from embedlog.testing.simulated_runtime import sim_runtime
from tests.crash.opcodes import Countdown
from tests.support.sizes import IS_FULL

_ROOTS = ("/embedlog/", "/wire/")
_TIMEOUT_MS = 1_000


class Late:
    """A cluster with an open transaction, which will time out."""

    def __init__(self) -> None:
        self.runtime = sim_runtime(seed=1)
        self.cluster = embedlog.Cluster(
            None,
            {
                "transaction.abort.timed.out.transaction.cleanup.interval.ms": 500,
                "group.min.session.timeout.ms": 1,
            },
            runtime=self.runtime,
        )
        self.cluster.create_topic("events", 1)
        self.producer = self.cluster.producer(
            transactional_id="late", transaction_timeout_ms=_TIMEOUT_MS
        )
        self.producer.init_transactions()
        self.producer.begin_transaction()
        self.producer.send("events", b"aborted").result()
        self.admin = self.cluster.admin()

    def drive(self) -> None:
        self.runtime.scheduler.run_for(2 * _TIMEOUT_MS)

    def is_ended(self) -> bool:
        (found,) = self.admin.list_transactions().values.values()
        return str(found.state) == "CompleteAbort"


def places() -> int:
    """Return the number of places for an interrupt in the driving of the time-outs."""
    count = 0
    for _ in range(2):
        late = Late()
        countdown = Countdown(1 << 60, lambda: None, _ROOTS, interrupts_only=True)
        countdown.start()
        late.drive()
        countdown.stop()
        assert late.is_ended()
        count = (1 << 60) - countdown.left
        late.cluster.close()
    return count


def swept(chosen: Callable[[int], range]) -> None:
    for place in chosen(places()):
        late = Late()
        countdown = Countdown(place, _interrupt, _ROOTS, interrupts_only=True)
        countdown.start()
        try:
            late.drive()
        except KeyboardInterrupt:
            held_here().clear()
        finally:
            countdown.stop()
        late.runtime.scheduler.run_for(4 * _TIMEOUT_MS)
        assert late.is_ended(), f"place {place}: the transaction never times out"
        late.cluster.close()


def _interrupt() -> None:
    raise KeyboardInterrupt


@pytest.mark.slow
def test_an_interrupt_does_not_lose_the_time_out_of_a_transaction() -> None:
    swept(lambda count: range(1, count, count // 12))


@pytest.mark.slow
def test_an_interrupt_at_any_place_does_not_lose_the_time_out_of_a_transaction() -> None:
    swept(lambda count: range(2, count, 1 if IS_FULL else max(count // 400, 1)))
