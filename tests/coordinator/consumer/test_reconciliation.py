"""A member's step towards its target, by the table."""

from __future__ import annotations

from typing import Any

import pytest

from embedlog import errors
from embedlog.coordinator.group.consumer import member as states
from embedlog.coordinator.group.consumer.member import ConsumerMember
from embedlog.coordinator.group.consumer.reconciliation import MemberReconciliation

A, B = b"a" * 16, b"b" * 16


def step(member: ConsumerMember, **given: Any) -> ConsumerMember:
    """Take one step; by default partitions are free and subscribed, and none is owned."""
    holders = given.pop("holders", {})
    facts: dict[str, Any] = {
        "target_epoch": 5,
        "target": {A: frozenset({0, 1})},
        "owned": None,
        "holder": lambda topic_id, number: holders.get((topic_id, number)),
        "subscribed_topics": frozenset({A, B}),
        "subscription_changed": False,
    }
    return MemberReconciliation(**{**facts, **given}).step(member)


def at(epoch: int, state: int = states.STABLE, **fields: Any) -> ConsumerMember:
    return ConsumerMember("m", epoch=epoch, previous_epoch=epoch - 1, state=state, **fields)


def test_a_member_at_its_target_stays_the_same_object() -> None:
    member = at(5, assigned={A: {0: 5}})
    assert step(member) is member


def test_free_partitions_are_assigned_at_the_target_epoch() -> None:
    stepped = step(at(4, assigned={A: {0: 2}}))
    assert stepped.assigned == {A: {0: 2, 1: 5}}
    assert (stepped.epoch, stepped.previous_epoch, stepped.state) == (5, 4, states.STABLE)


def test_held_partitions_are_waited_for() -> None:
    stepped = step(at(4), holders={(A, 1): "other"})
    assert stepped.assigned == {A: {0: 5}}
    assert (stepped.epoch, stepped.state) == (5, states.UNRELEASED_PARTITIONS)
    freed = step(stepped)
    assert freed.assigned == {A: {0: 5, 1: 5}}
    assert (freed.epoch, freed.previous_epoch, freed.state) == (5, 5, states.STABLE)


@pytest.mark.parametrize("owned", [None, {A: frozenset({2})}])
def test_nothing_is_assigned_before_all_is_given_up(owned: Any) -> None:
    stepped = step(at(4, assigned={A: {0: 2, 2: 2}}), owned=owned)
    assert (stepped.assigned, stepped.revoking) == ({A: {0: 2}}, {A: {2: 2}})
    assert (stepped.epoch, stepped.state) == (4, states.UNREVOKED_PARTITIONS)


def test_what_is_not_owned_need_not_be_given_up() -> None:
    stepped = step(at(4, assigned={A: {0: 2, 2: 2}}), owned={A: frozenset({0})})
    assert (stepped.assigned, stepped.revoking) == ({A: {0: 2, 1: 5}}, {})
    assert (stepped.epoch, stepped.state) == (5, states.STABLE)


def test_giving_up_goes_on_until_it_is_done() -> None:
    member = at(4, states.UNREVOKED_PARTITIONS, assigned={A: {0: 2}}, revoking={A: {2: 2}})
    assert step(member) is member
    assert step(member, owned={A: frozenset({2})}) is member
    done = step(member, owned={A: frozenset({0})})
    assert (done.assigned, done.revoking) == ({A: {0: 2, 1: 5}}, {})
    assert (done.epoch, done.state) == (5, states.STABLE)


def test_a_target_that_moved_on_meanwhile_may_take_more() -> None:
    member = at(3, states.UNREVOKED_PARTITIONS, assigned={A: {0: 2}}, revoking={A: {2: 2}})
    stepped = step(member, target={}, owned={A: frozenset({0})})
    assert (stepped.assigned, stepped.revoking) == ({}, {A: {0: 2}})
    assert (stepped.epoch, stepped.state) == (4, states.UNREVOKED_PARTITIONS)


def test_what_was_given_up_may_come_back_to_its_holder() -> None:
    member = at(4, states.UNREVOKED_PARTITIONS, revoking={A: {0: 2, 1: 2}})
    stepped = step(member, owned={}, holders={(A, 0): "m", (A, 1): "m"})
    assert (stepped.assigned, stepped.state) == ({A: {0: 5, 1: 5}}, states.STABLE)


def test_topics_not_read_any_more_are_not_in_the_target() -> None:
    stepped = step(at(4, assigned={A: {0: 2}}), subscribed_topics=frozenset(), owned={})
    assert (stepped.assigned, stepped.epoch) == ({}, 5)


def test_unsubscribing_takes_topics_away_at_the_present_epoch() -> None:
    member = at(5, assigned={A: {0: 2}, B: {1: 3}})
    changed: dict[str, Any] = {"subscription_changed": True, "subscribed_topics": frozenset({A})}
    told = step(member, **changed)
    assert (told.assigned, told.revoking) == ({A: {0: 2}}, {B: {1: 3}})
    assert (told.epoch, told.state) == (5, states.UNREVOKED_PARTITIONS)
    at_once = step(member, owned={A: frozenset({0})}, **changed)
    assert at_once == member.replace(assigned={A: {0: 2}})
    assert step(member, subscription_changed=True) is member


def test_unsubscribing_while_giving_up_adds_to_it() -> None:
    member = at(4, states.UNREVOKED_PARTITIONS, assigned={B: {1: 3}}, revoking={A: {2: 2}})
    told = step(member, subscription_changed=True, subscribed_topics=frozenset({A}))
    assert (told.assigned, told.revoking) == ({}, {A: {2: 2}, B: {1: 3}})
    assert told.state == states.UNREVOKED_PARTITIONS


def test_giving_up_for_a_subscription_does_not_overtake_the_target() -> None:
    member = at(5, states.UNREVOKED_PARTITIONS, assigned={A: {0: 2}}, revoking={B: {1: 3}})
    stepped = step(member, target={A: frozenset({0})}, owned={A: frozenset({0})})
    assert (stepped.epoch, stepped.state) == (5, states.STABLE)


def test_a_member_in_a_state_of_a_later_version_joins_again() -> None:
    member = at(4, states.UNKNOWN, assigned={A: {0: 2}})
    for owned in (None, {A: frozenset({0})}):
        with pytest.raises(errors.FencedMemberEpoch):
            step(member, owned=owned)
    assert step(member, owned={}).state == states.STABLE


def test_a_member_that_must_give_up_more_gets_no_epoch_beyond_the_target() -> None:
    member = at(5, states.UNREVOKED_PARTITIONS, assigned={A: {0: 2}}, revoking={B: {1: 2}})
    stepped = step(member, target={}, owned={A: frozenset({0})})
    assert (stepped.epoch, stepped.state) == (5, states.UNREVOKED_PARTITIONS)
