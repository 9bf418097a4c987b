"""The uniform assignor: balanced, sticky, and complete."""

from __future__ import annotations

import pytest
from hypothesis import given

from embedlog.coordinator.group.assignors.spec import MemberSpec
from embedlog.coordinator.group.assignors.uniform import assign
from tests.coordinator.assignors.strategies import (
    Group,
    check_valid,
    groups,
    loads,
    pairs,
    topic_id,
)

A = topic_id(1)
B = topic_id(2)


def reassigned(group: Group) -> Group:
    """Return the group with a new assignment as its last one."""
    members, counts = group
    target = assign(members, counts)
    return {
        name: MemberSpec(spec.topics, target[name], spec.instance_id)
        for name, spec in members.items()
    }, counts


def test_no_members_get_nothing() -> None:
    assert assign({}, {A: 3}) == {}


def test_members_of_a_new_group_get_equal_shares_in_order() -> None:
    members = {name: MemberSpec(frozenset({A}), {}) for name in ("m1", "m2", "m3")}
    target = assign(members, {A: 7})
    assert target == {"m1": {A: {0, 1, 2}}, "m2": {A: {3, 4}}, "m3": {A: {5, 6}}}


def test_a_new_member_takes_from_the_end_of_the_others() -> None:
    members = {
        "m1": MemberSpec(frozenset({A}), {A: {0, 1, 2, 3}}),
        "m2": MemberSpec(frozenset({A}), {}),
    }
    assert assign(members, {A: 4}) == {"m1": {A: {0, 1}}, "m2": {A: {2, 3}}}


def test_whoever_has_the_larger_share_keeps_it() -> None:
    members = {
        "m1": MemberSpec(frozenset({A}), {A: {0}}),
        "m2": MemberSpec(frozenset({A}), {A: {1, 2}}),
    }
    assert assign(members, {A: 3}) == {"m1": {A: {0}}, "m2": {A: {1, 2}}}


def test_of_two_claims_the_first_counts() -> None:
    members = {
        "m1": MemberSpec(frozenset({A}), {A: {0, 1}}),
        "m2": MemberSpec(frozenset({A}), {A: {0, 1}}),
    }
    assert assign(members, {A: 2}) == {"m1": {A: {0}}, "m2": {A: {1}}}


def test_load_moves_to_the_reader_of_one_topic() -> None:
    members = {
        "both": MemberSpec(frozenset({A, B}), {A: {0, 1, 2}, B: {0, 1, 2}}),
        "one": MemberSpec(frozenset({A}), {}),
    }
    assert assign(members, {A: 3, B: 3}) == {"both": {B: {0, 1, 2}}, "one": {A: {0, 1, 2}}}


@pytest.mark.slow
@given(groups(homogeneous=True))
def test_equal_subscriptions_are_balanced_within_one(group: Group) -> None:
    target = assign(*group)
    check_valid(target, group)
    sizes = loads(target).values()
    assert max(sizes) - min(sizes) <= 1


@pytest.mark.slow
@given(groups(homogeneous=True))
def test_equal_subscriptions_move_no_more_than_they_must(group: Group) -> None:
    members, counts = group
    target = assign(members, counts)
    total = sum(loads(target).values())
    share, larger_count = divmod(total, len(members))
    exists = {(t, n) for t, count in counts.items() for n in range(count)}
    for name, spec in members.items():
        had = {partition for partition in pairs(spec.assigned) if partition in exists}
        had = {partition for partition in had if partition[0] in spec.topics}
        assert len(had & pairs(target[name])) >= min(len(had), share)
    kept = [len(pairs(spec.assigned) & pairs(target[name])) for name, spec in members.items()]
    had_counts = [
        len({(t, n) for t, n in pairs(spec.assigned) & exists if t in spec.topics})
        for spec in members.values()
    ]
    could = sum(min(had, share) for had in had_counts)
    could += min(larger_count, sum(had > share for had in had_counts))
    assert sum(kept) == could


@pytest.mark.slow
@given(groups())
def test_different_subscriptions_are_served_completely(group: Group) -> None:
    check_valid(assign(*group), group)


@pytest.mark.slow
@given(groups())
def test_no_partition_could_move_to_somebody_with_two_less(group: Group) -> None:
    members, _ = group
    target = assign(*group)
    sizes = loads(target)
    for owner, partitions in target.items():
        for topic in partitions:
            for name, spec in members.items():
                if topic in spec.topics:
                    assert sizes[owner] <= sizes[name] + 1, (owner, name)


@pytest.mark.slow
@given(groups())
def test_assigning_again_changes_nothing(group: Group) -> None:
    members, counts = reassigned(group)
    assert assign(members, counts) == {name: spec.assigned for name, spec in members.items()}


@pytest.mark.slow
@given(groups(homogeneous=True))
def test_a_leaving_member_moves_only_its_own(group: Group) -> None:
    members, counts = reassigned(group)
    members.pop("m0")
    target = assign(members, counts)
    for name, spec in members.items():
        assert pairs(spec.assigned) <= pairs(target[name])
