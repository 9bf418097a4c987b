"""Two-phase commit (KIP-939) as far as the broker supports it: InitProducerId 6, and no
time-out.
"""

from __future__ import annotations

from itertools import product

from tests.golden.requests import make_topic, produce
from tests.golden.run import Run, scenario_on
from tests.golden.transaction_requests import (
    RETRIED,
    Producer,
    add,
    batch,
    end,
    settle,
    warm_up_transactions,
)
from wire.schemas.api_versions import ApiVersionsRequest
from wire.schemas.describe_transactions import DescribeTransactionsRequest
from wire.schemas.init_producer_id import InitProducerIdRequest
from wire.schemas.list_transactions import ListTransactionsRequest

OVER_LONG_MS = 900_001
INT_MAX = 2**31 - 1


def begin(
    transactional_id: str | None,
    producer: Producer = (-1, -1),
    *,
    timeout_ms: int = 60_000,
    two_phases: bool = True,
    keeps: bool = False,
) -> InitProducerIdRequest:
    """InitProducerId, version 6."""
    return InitProducerIdRequest(
        transactional_id=transactional_id,
        transaction_timeout_ms=timeout_ms,
        producer_id=producer[0],
        producer_epoch=producer[1],
        enable2_pc=two_phases,
        keep_prepared_txn=keeps,
    )


def _begun(run: Run, name: str, note: str, **how: bool) -> Producer:
    """One step: begin, repeated while the coordinator is busy; return the producer."""
    answer = run.until(lambda got: got.error_code not in RETRIED, begin(name, **how), 6, note)
    return answer.producer_id, answer.producer_epoch


def _flags(run: Run) -> None:
    for two_phases, keeps in product((False, True), repeat=2):
        how = {"two_phases": two_phases, "keeps": keeps}
        note = f"two phases: {two_phases}, keep prepared: {keeps}"
        run.send(begin(None, **how), 6, f"no id, {note}")
        run.send(begin("", **how), 6, f"empty id, {note}")
        name = run.group(f"{two_phases}-{keeps}")
        for timeout_ms in (-1, 0, 1, 60_000, OVER_LONG_MS, INT_MAX):
            request = begin(name, timeout_ms=timeout_ms, **how)
            run.send(request, 6, f"{timeout_ms} ms, {note}")
        run.send(DescribeTransactionsRequest(transactional_ids=[name]), 0, note)
        run.send(begin(name, (5, -1), **how), 6, f"half a producer, {note}")
        run.send(begin(name, (999_999, 3), **how), 6, f"a foreign producer, {note}")


@scenario_on("two phases")
def two_phase_flags(run: Run) -> None:
    warm_up_transactions(run)
    served = run.setup(ApiVersionsRequest(), 0)
    run.keep("the last version", [row.max_version for row in served.api_keys if row.api_key == 22])
    _flags(run)


@scenario_on("unstable versions")
def two_phases_not_allowed(run: Run) -> None:
    warm_up_transactions(run)
    _flags(run)


@scenario_on("transactions")
def two_phases_not_served(run: Run) -> None:
    warm_up_transactions(run)
    run.send(begin(run.group("none")), 6, "a version that is not served")


@scenario_on("two phases")
def two_phase_transactions(run: Run) -> None:
    warm_up_transactions(run)
    topic = make_topic(run, "t")
    for commit in (True, False):
        name = run.group(f"ends-{commit}")
        producer = _begun(run, name, f"commit={commit}")
        run.send(add(name, producer, (topic, 0)), 3, f"commit={commit}")
        request = produce(topic, 11, batch(producer, b"a"), transactional_id=name)
        run.send(request, 11, f"commit={commit}")
        run.send(DescribeTransactionsRequest(transactional_ids=[name]), 0, "prepared")
        run.send(end(name, producer, commit=commit), 5, f"commit={commit}")
        settle(run, name)
    for two_phases, keeps in product((False, True), repeat=2):
        note = f"open, then two phases: {two_phases}, keep prepared: {keeps}"
        name = run.group(f"taken-{two_phases}-{keeps}")
        producer = _begun(run, name, note)
        run.send(add(name, producer, (topic, 0)), 3, note)
        run.send(begin(name, two_phases=two_phases, keeps=keeps), 6, note)
        run.let_pass(300)
        described = DescribeTransactionsRequest(transactional_ids=[name])
        run.send(described, 0, note)
        run.send(begin(name, two_phases=two_phases, keeps=keeps), 6, f"{note}, again")
        run.send(end(name, producer), 5, f"{note}, who was first commits")
    run.send(ListTransactionsRequest(), 2, "those that are there")


@scenario_on("two phases")
def two_phases_have_no_timeout(run: Run) -> None:
    warm_up_transactions(run)
    topic = make_topic(run, "t")
    short, long = run.group("short"), run.group("long")
    for name, two_phases in ((short, False), (long, True)):
        request = begin(name, timeout_ms=1_000, two_phases=two_phases)
        answer = run.until(lambda got: got.error_code not in RETRIED, request, 6, name)
        producer = answer.producer_id, answer.producer_epoch
        run.send(add(name, producer, (topic, 0)), 3, name)
    run.let_pass(4_000)
    for name in (short, long):
        run.send(DescribeTransactionsRequest(transactional_ids=[name]), 0, f"later, {name}")
