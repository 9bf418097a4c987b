"""Groups for assignors: topics, members with subscriptions, and their last assignments."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import strategies as st

from embedlog.coordinator.group.assignors.spec import MemberSpec, Partitions

Group = tuple[dict[str, MemberSpec], dict[bytes, int]]


def topic_id(number: int) -> bytes:
    return number.to_bytes(16, "big")


@st.composite
def groups(draw: st.DrawFn, *, homogeneous: bool = False, static: bool = False) -> Group:
    counts = {
        topic_id(n): count
        for n, count in enumerate(draw(st.lists(st.integers(1, 9), min_size=1, max_size=5)))
    }
    # A deleted topic, and more partitions than exist: last assignments may be stale.
    known = [*counts, topic_id(99)]
    member_count = draw(st.integers(1, 8))
    everything = frozenset(draw(st.sets(st.sampled_from(known), min_size=1)))
    unclaimed = [(topic, partition) for topic in known for partition in range(11)]
    members = {}
    for number in range(member_count):
        topics = everything
        if not homogeneous:
            topics = frozenset(draw(st.sets(st.sampled_from(known))))
        claimed = draw(st.sets(st.sampled_from(unclaimed), max_size=12)) if unclaimed else set()
        unclaimed = [partition for partition in unclaimed if partition not in claimed]
        assigned: dict[bytes, set[int]] = {}
        for topic, partition in claimed:
            assigned.setdefault(topic, set()).add(partition)
        instance = draw(st.sampled_from([None, f"i{9 - number}"])) if static else None
        members[f"m{number}"] = MemberSpec(topics, assigned, instance)
    return members, counts


def pairs(partitions: Partitions) -> set[tuple[bytes, int]]:
    return {(topic, number) for topic, numbers in partitions.items() for number in numbers}


def loads(target: Mapping[str, Partitions]) -> dict[str, int]:
    return {name: len(pairs(partitions)) for name, partitions in target.items()}


def check_valid(target: Mapping[str, Partitions], group: Group) -> None:
    """Assert that every subscribed partition has one owner, which subscribes to it."""
    members, counts = group
    assert target.keys() == members.keys()
    owned = [partition for partitions in target.values() for partition in pairs(partitions)]
    subscribed = frozenset[bytes]().union(*(spec.topics for spec in members.values()))
    expected = {(t, n) for t, count in counts.items() if t in subscribed for n in range(count)}
    assert len(owned) == len(set(owned))
    assert set(owned) == expected
    for name, partitions in target.items():
        assert partitions.keys() <= members[name].topics
        assert all(partitions.values())
