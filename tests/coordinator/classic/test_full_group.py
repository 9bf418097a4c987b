"""group.max.size: the members that may join in each state."""

from __future__ import annotations

import pytest

from tests.coordinator.classic.shard import REBALANCE_MS, SESSION_MS, Shard


@pytest.fixture
def shard() -> Shard:
    return Shard(group_max_size=2)


@pytest.mark.parametrize("version", [3, 9])
def test_a_stable_group_that_is_full_takes_nobody(shard: Shard, version: int) -> None:
    leader, follower = shard.form("a", "b")
    answer = shard.join(version=version).result()
    assert (answer.error_code, answer.member_id) == (81, "")
    assert shard.group().members.pending == {}
    assert shard.join(follower).result().error_code == 0


def test_an_id_that_was_given_out_is_no_place(shard: Shard) -> None:
    (leader,) = shard.form("a")
    ids = [shard.member_id(), shard.member_id()]
    first = shard.join(ids[0])
    again = shard.join(leader)
    answer = shard.join(ids[1]).result()
    assert (answer.error_code, answer.member_id) == (81, "")
    assert shard.group().members.pending == {}
    assert not first.done() and not again.done()


def test_while_others_join_those_who_wait_have_their_places(shard: Shard) -> None:
    leader, follower = shard.form("a", "b")
    again = shard.join(leader)
    newcomer = shard.join(version=3)
    assert shard.join(follower).result().error_code == 81
    assert follower not in shard.group().members.by_id
    assert not again.done()  # as in Kafka, this does not complete the join phase
    shard.advance(REBALANCE_MS)
    assert again.result().generation_id == newcomer.result().generation_id == 3
    assert len(again.result().members) == 2


def test_one_that_waits_to_join_may_say_it_again_in_a_full_group(shard: Shard) -> None:
    leader, _ = shard.form("a", "b")
    first = shard.join(leader)
    shard.join(version=3)
    second = shard.join(leader)
    assert first.result().error_code == 27
    assert not second.done()


def test_between_join_and_sync_only_members_are_let_in(shard: Shard) -> None:
    leader, follower = shard.form("a", "b")
    shard.join(leader)
    shard.join(follower)
    assert shard.join(version=3).result().error_code == 81
    assert shard.join(follower).result().error_code == 0


def test_the_initial_delay_fills_the_group_to_its_size() -> None:
    shard = Shard(group_max_size=2, group_initial_rebalance_delay_ms=1000)
    answers = [shard.join(version=3) for _ in range(4)]
    assert [answer.result().error_code for answer in answers[2:]] == [81, 81]
    shard.advance(2000)
    assert [answer.result().error_code for answer in answers[:2]] == [0, 0]


def test_static_members_that_restart_have_their_places(shard: Shard) -> None:
    former = shard.join(instance_id="l").result().member_id
    shard.assign({})
    shard.join(version=3)
    shard.join(former, instance_id="l")
    assert len(shard.group().members.by_id) == 2
    # Kafka checks for room before it checks the instance id.
    assert shard.join(instance_id="l").result().error_code == 81


def test_a_group_that_has_become_too_large_rebalances_when_it_is_loaded(shard: Shard) -> None:
    leader, follower = shard.form("a", "b")
    smaller = shard.restarted(group_max_size=1)
    assert smaller.group().state == "PreparingRebalance"
    assert smaller.heartbeat(follower, 2) == 27
    again = smaller.join(follower)
    assert smaller.join(leader).result().error_code == 81
    smaller.advance(max(SESSION_MS, REBALANCE_MS))
    assert list(smaller.group().members.by_id) == [follower]
    assert again.result().leader == follower
