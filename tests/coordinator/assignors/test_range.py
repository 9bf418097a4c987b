"""The range assignor: contiguous ranges in member order, static members first."""

from __future__ import annotations

import pytest
from hypothesis import given

from embedlog.coordinator.group.assignors.range import assign
from embedlog.coordinator.group.assignors.spec import MemberSpec
from tests.coordinator.assignors.strategies import Group, check_valid, groups, topic_id

A = topic_id(1)
B = topic_id(2)


def test_no_members_get_nothing() -> None:
    assert assign({}, {A: 3}) == {}


def test_the_first_members_have_one_more_of_each_topic() -> None:
    both = frozenset({A, B})
    members = {"b": MemberSpec(both, {}), "a": MemberSpec(both, {A: {2}})}
    assert assign(members, {A: 3, B: 3}) == {
        "a": {A: {0, 1}, B: {0, 1}},
        "b": {A: {2}, B: {2}},
    }


def test_static_members_come_first_in_the_order_of_their_names() -> None:
    topics = frozenset({A})
    members = {
        "a": MemberSpec(topics, {}),
        "y": MemberSpec(topics, {}, instance_id="2"),
        "z": MemberSpec(topics, {}, instance_id="1"),
    }
    assert assign(members, {A: 3}) == {"z": {A: {0}}, "y": {A: {1}}, "a": {A: {2}}}


def test_more_members_than_partitions_leave_some_without() -> None:
    members = {name: MemberSpec(frozenset({A}), {}) for name in ("a", "b", "c")}
    assert assign(members, {A: 2}) == {"a": {A: {0}}, "b": {A: {1}}, "c": {}}


@pytest.mark.slow
@given(groups(static=True))
def test_every_partition_has_one_owner_and_ranges_are_contiguous(group: Group) -> None:
    target = assign(*group)
    check_valid(target, group)
    for partitions in target.values():
        for numbers in partitions.values():
            assert max(numbers) - min(numbers) == len(numbers) - 1


@pytest.mark.slow
@given(groups(static=True))
def test_each_topic_is_balanced_within_one(group: Group) -> None:
    members, counts = group
    target = assign(members, counts)
    for topic in counts:
        sizes = [
            len(target[name].get(topic, ()))
            for name, spec in members.items()
            if topic in spec.topics
        ]
        assert not sizes or max(sizes) - min(sizes) <= 1


@pytest.mark.slow
@given(groups(homogeneous=True, static=True))
def test_equal_topics_are_co_partitioned(group: Group) -> None:
    members, counts = group
    target = assign(members, counts)
    for partitions in target.values():
        for topic, numbers in partitions.items():
            for other, other_numbers in partitions.items():
                assert counts[topic] != counts[other] or numbers == other_numbers
