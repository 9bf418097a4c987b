"""The simple assignor of share groups: complete, even, sticky."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from embedlog.coordinator.group.assignors.simple import assign, check_configured
from embedlog.coordinator.group.assignors.spec import MemberSpec, Partitions
from embedlog.errors import ConfigError
from tests.coordinator.assignors.strategies import Group, groups, loads, pairs, topic_id

A = topic_id(1)
B = topic_id(2)


def numbers(counts: Mapping[bytes, int]) -> dict[bytes, set[int]]:
    return {topic: set(range(count)) for topic, count in counts.items()}


def members_of(count: int, *topics: bytes) -> dict[str, MemberSpec]:
    return {f"m{number}": MemberSpec(frozenset(topics), {}) for number in range(count)}


def check(target: Mapping[str, Partitions], group: Group) -> None:
    """Assert that each partition with a subscriber has a member, and only subscribers."""
    members, counts = group
    assert target.keys() == members.keys()
    for name, partitions in target.items():
        assert partitions.keys() <= members[name].topics
        assert all(partitions.values())
    given_out = {place for partitions in target.values() for place in pairs(partitions)}
    subscribed = frozenset[bytes]().union(*(spec.topics for spec in members.values()))
    expected = {(t, n) for t, count in counts.items() if t in subscribed for n in range(count)}
    assert given_out == expected


# The sizes that Kafka 4.4.0 gives four partitions.
@pytest.mark.parametrize(
    ("count", "sizes"),
    [
        (1, [4]),
        (2, [2, 2]),
        (3, [2, 1, 1]),
        (4, [1] * 4),
        (5, [2, 2, 2, 1, 1]),
        (6, [2, 2, 1, 1, 1, 1]),
        (8, [1] * 8),
    ],
)
def test_four_partitions_are_shared_as_kafka_shares_them(count: int, sizes: list[int]) -> None:
    target = assign(members_of(count, A), numbers({A: 4}))
    assert sorted(loads(target).values(), reverse=True) == sizes


def test_a_member_of_its_own_topic_alone_gets_it() -> None:
    members = {"a": MemberSpec(frozenset({A}), {}), "b": MemberSpec(frozenset({A, B}), {})}
    target = assign(members, numbers({A: 2, B: 2}))
    assert loads(target) == {"a": 1, "b": 3}
    assert target["b"][B] == {0, 1}


def test_only_given_partitions_are_assigned() -> None:
    target = assign(members_of(1, A), {A: {1, 3}})
    assert target == {"m0": {A: {1, 3}}}


def test_a_member_without_topics_gets_nothing() -> None:
    assert assign({"a": MemberSpec(frozenset(), {})}, numbers({A: 2})) == {"a": {}}
    assert assign({}, numbers({A: 2})) == {}


def test_a_second_member_takes_half_and_the_first_keeps_the_rest() -> None:
    members = {"a": MemberSpec(frozenset({A}), {A: {0, 1, 2, 3}})}
    members |= {"b": MemberSpec(frozenset({A}), {})}
    target = assign(members, numbers({A: 4}))
    assert target["a"] == {A: {0, 1}}
    assert target["b"] == {A: {2, 3}}


def test_when_members_leave_the_others_keep_what_they_have() -> None:
    left = {"c": MemberSpec(frozenset({A}), {A: {2}}), "d": MemberSpec(frozenset({A}), {A: {3}})}
    target = assign(left, numbers({A: 4}))
    assert 2 in target["c"][A]
    assert 3 in target["d"][A]
    assert loads(target) == {"c": 2, "d": 2}


@given(groups(homogeneous=True))
def test_equal_members_share_evenly(group: Group) -> None:
    members, counts = group
    target = assign(members, numbers(counts))
    check(target, group)
    topics = next(iter(members.values())).topics
    place_count = sum(count for topic, count in counts.items() if topic in topics)
    if not place_count:
        return
    sharing = -(-len(members) // place_count)
    holders = Counter(place for partitions in target.values() for place in pairs(partitions))
    assert max(holders.values()) <= sharing
    total = sharing * place_count
    ends = [-(-total * n // len(members)) for n in range(len(members) + 1)]
    for number, load in enumerate(loads(target).values()):
        assert load <= ends[number + 1] - ends[number]


@given(groups())
def test_every_partition_with_a_subscriber_has_a_member(group: Group) -> None:
    members, counts = group
    check(assign(members, numbers(counts)), group)


@given(groups(), st.integers(0, 3))
def test_an_assignment_is_kept_as_it_is(group: Group, more: int) -> None:
    members, counts = group
    members |= {f"n{n}": MemberSpec(frozenset(counts), {}) for n in range(more)}
    partitions = numbers(counts)
    target = assign(members, partitions)
    for _ in range(2):
        held = {name: MemberSpec(spec.topics, target[name]) for name, spec in members.items()}
        again = assign(held, partitions)
        assert all(pairs(again[name]) >= pairs(target[name]) for name in members)
        target = again


@given(groups(homogeneous=True))
def test_a_member_gives_up_no_more_than_it_has_too_many(group: Group) -> None:
    members, counts = group
    partitions = numbers(counts)
    first = assign(members, partitions)
    held = {name: MemberSpec(spec.topics, first[name]) for name, spec in members.items()}
    topics = next(iter(members.values())).topics
    held["new"] = MemberSpec(topics, {})
    target = assign(held, partitions)
    place_count = sum(count for topic, count in counts.items() if topic in topics)
    if len(held) <= place_count:
        for name in members:
            kept = pairs(first[name]) & pairs(target[name])
            assert len(kept) == min(len(pairs(first[name])), len(pairs(target[name])))


@pytest.mark.parametrize("names", [[], ["range"], ["simple", "simple"], ["simple", "x"], [""]])
def test_any_other_assignor_is_refused(names: list[str]) -> None:
    with pytest.raises(ConfigError, match=r"group\.share\.assignors"):
        check_configured(names)


def test_the_assignor_may_be_named_by_its_class() -> None:
    check_configured(["simple"])
    check_configured(["org.apache.kafka.coordinator.group.assignor.SimpleAssignor"])


def test_members_that_were_many_share_again_when_partitions_come() -> None:
    held = {name: MemberSpec(frozenset({A}), {A: {0}}) for name in ("a", "b", "c")}
    target = assign(held, numbers({A: 3}))
    assert sorted(n for partitions in target.values() for _, n in pairs(partitions)) == [0, 1, 2]
    assert loads(target) == {"a": 1, "b": 1, "c": 1}
