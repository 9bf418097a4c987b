"""The acknowledgements of one process, by the places of its jobs."""

from __future__ import annotations

import pytest

from embedlog import AcknowledgeType, ShareRecord, TopicPartition
from embedlog.errors import InvalidRecordState
from embedlog.queue.taking.holdings import Holdings
from embedlog.queue.taking.prefetch import HORIZON_NS, Prefetch
from embedlog.testing import SimClock

KEY = TopicPartition("jobs", 0)


def record(offset: int, delivery: int = 1) -> ShareRecord:
    return ShareRecord((*KEY, 0, 0, offset, 0, None, b"", (), delivery))


@pytest.fixture
def clock() -> SimClock:
    return SimClock()


@pytest.fixture
def holdings(clock: SimClock) -> Holdings:
    return Holdings(clock)


def taken_all(_record: ShareRecord, _kind: int) -> bool:
    return True


def test_a_former_delivery_cannot_acknowledge_the_present_one(holdings: Holdings) -> None:
    (former,) = holdings.add([record(7)])
    (present,) = holdings.add([record(7, 2)])
    holdings.order(former, AcknowledgeType.ACCEPT)
    holdings.hand_over(lambda *_: pytest.fail("the present delivery was acknowledged"))
    assert isinstance(former.error, InvalidRecordState)
    assert holdings.late_count == 1
    assert not present.is_settled
    assert len(holdings) == 1


def test_an_acknowledgement_waits_for_the_renewal_before_it(holdings: Holdings) -> None:
    (job,) = holdings.add([record(7)])
    holdings.order(job, AcknowledgeType.RENEW)
    holdings.order(job, AcknowledgeType.ACCEPT)
    handed: list[int] = []

    def acknowledge(_record: ShareRecord, kind: int) -> bool:
        handed.append(kind)
        return True

    holdings.hand_over(acknowledge)
    holdings.hand_over(acknowledge)
    assert handed == [AcknowledgeType.RENEW]
    holdings.outcome({KEY: {7}}, None)
    holdings.hand_over(acknowledge)
    holdings.outcome({KEY: {7}}, None)
    assert handed == [AcknowledgeType.RENEW, AcknowledgeType.ACCEPT]
    assert (job.has_outcome, job.error, len(holdings), holdings.has_open) == (True, None, 0, False)


def test_a_renewal_moves_the_end_of_the_lock(holdings: Holdings, clock: SimClock) -> None:
    (job,) = holdings.add([record(7)])
    before_ms = job.locked_until_ms
    clock.advance(1000)
    holdings.order(job, AcknowledgeType.RENEW)
    assert not job.is_settled
    holdings.hand_over(taken_all)
    holdings.outcome({KEY: {7}}, None)
    assert job.locked_until_ms == before_ms + 1000
    assert not job.renewals


def test_a_refused_renewal_ends_the_lock(holdings: Holdings, clock: SimClock) -> None:
    (job,) = holdings.add([record(7)])
    holdings.order(job, AcknowledgeType.RENEW)
    holdings.hand_over(taken_all)
    holdings.outcome({KEY: {7}}, InvalidRecordState("no"))
    assert job.locked_until_ms <= clock.monotonic_ms()
    assert not job.has_outcome


def test_a_refused_acknowledgement_is_counted(holdings: Holdings) -> None:
    (job,) = holdings.add([record(7)])
    holdings.order(job, AcknowledgeType.ACCEPT)
    holdings.hand_over(taken_all)
    holdings.outcome({KEY: {7, 8}}, InvalidRecordState("too late"))
    assert (holdings.late_count, len(holdings), str(job.error)) == (1, 0, "too late")


def test_fast_jobs_are_fetched_together_and_slow_ones_one_by_one() -> None:
    prefetch = Prefetch(20)
    now_ns = 10**12
    counts = []
    for _ in range(7):
        asked = prefetch.count(now_ns)
        counts.append(asked)
        prefetch.arrived(asked, now_ns)
        for _ in range(asked):
            prefetch.took()
        now_ns += HORIZON_NS // 1000
    assert counts == [1, 2, 4, 8, 16, 20, 20]
    assert prefetch.is_fast
    assert prefetch.count(now_ns + 2 * HORIZON_NS) == 9  # 20 jobs took twice the horizon
    assert prefetch.count(now_ns + 100 * HORIZON_NS) == 1
