"""The first rebalance of a group waits in steps, so that a common start makes one generation."""

from __future__ import annotations

import pytest

from tests.coordinator.classic.shard import Shard

DELAY_MS = 3000


@pytest.fixture
def shard() -> Shard:
    return Shard(group_initial_rebalance_delay_ms=DELAY_MS)


def test_one_member_waits_for_the_delay(shard: Shard) -> None:
    answer = shard.join(version=3)
    shard.advance(DELAY_MS - 1)
    assert not answer.done()
    shard.advance(1)
    assert answer.result().generation_id == 1


def test_whoever_comes_in_time_shares_the_generation(shard: Shard) -> None:
    first = shard.join(version=3)
    shard.advance(DELAY_MS - 1)
    second = shard.join(version=3)
    shard.advance(1)
    assert not (first.done() or second.done())  # a member has joined: another step
    shard.advance(DELAY_MS)
    assert first.result().generation_id == second.result().generation_id == 1
    assert len(first.result().members) == 2


def test_the_steps_end_when_nobody_comes(shard: Shard) -> None:
    first = shard.join(version=3)
    for _ in range(3):
        shard.join(version=3)
        shard.advance(DELAY_MS)
        assert not first.done()
    shard.advance(DELAY_MS)
    assert len(first.result().members) == 4


def test_the_steps_end_with_the_rebalance_timeout(shard: Shard) -> None:
    first = shard.join(version=3, rebalance_ms=7000)
    for _ in range(7):  # steps of 3, 3 and 1 seconds
        assert not first.done()
        shard.join(version=3, rebalance_ms=7000)
        shard.advance(1000)
    assert len(first.result().members) == 1 + 7


def test_a_delay_beyond_the_rebalance_timeout_has_no_second_step(shard: Shard) -> None:
    first = shard.join(version=3, rebalance_ms=1000)
    shard.advance(DELAY_MS - 1)
    shard.join(version=3, rebalance_ms=1000)
    shard.advance(1)
    assert len(first.result().members) == 2


def test_an_id_that_was_given_out_does_not_hold_the_first_rebalance_up(shard: Shard) -> None:
    first = shard.join(version=3)
    shard.member_id()
    shard.advance(DELAY_MS)
    assert first.result().generation_id == 1


def test_all_may_leave_during_the_delay(shard: Shard) -> None:
    answer = shard.join(shard.member_id())
    (member_id,) = shard.group().members.by_id
    shard.leave((member_id, None))
    assert answer.result().error_code == 25
    assert shard.group().state == "PreparingRebalance"
    shard.advance(DELAY_MS)
    assert (shard.group().state, shard.group().generation_id) == ("Empty", 1)
    assert shard.nothing_waits()


def test_the_first_rebalance_after_a_group_was_empty_waits_again(shard: Shard) -> None:
    member_id = shard.member_id()
    shard.join(member_id)
    shard.advance(DELAY_MS)
    shard.leave((member_id, None))
    answer = shard.join(version=3)
    shard.advance(DELAY_MS - 1)
    assert not answer.done()
    shard.advance(1)
    assert answer.result().generation_id == 3


def test_later_rebalances_do_not_wait(shard: Shard) -> None:
    first = shard.join(version=3)
    shard.advance(DELAY_MS)
    member_id = first.result().member_id
    second = shard.join(version=3)
    shard.join(member_id)
    assert second.result().generation_id == 2


def test_without_a_delay_the_first_member_is_answered_at_once() -> None:
    assert Shard().join(version=3).result().generation_id == 1
