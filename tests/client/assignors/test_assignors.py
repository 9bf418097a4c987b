"""The assignors: Kafka's examples, Kafka's bytes, and properties that hold for any group."""

from __future__ import annotations

from itertools import chain
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embedlog import TopicPartition
from embedlog.client.assignors import rebalance_protocol, resolve
from embedlog.client.assignors.assignor import (
    COOPERATIVE,
    EAGER,
    Assignment,
    GroupTopics,
    MemberSubscription,
)
from embedlog.client.assignors.sticky import Claim, decode_claim, encode_claim
from embedlog.client.consumer.group.embedded_protocol import (
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from embedlog.errors import ConfigError
from wire.errors import MalformedMessage

NAMES = ["range", "roundrobin", "sticky", "cooperative-sticky"]
Shares = dict[str, list[TopicPartition]]


def assign(name: str, counts: dict[str, int], members: dict[str, Any], racks: Any = None) -> Shares:
    """`members` has topics or a MemberSubscription by member id."""
    asked = {
        member_id: each if isinstance(each, MemberSubscription) else MemberSubscription(each)
        for member_id, each in members.items()
    }
    (assignor,) = resolve([name])
    given = assignor.assign(GroupTopics(counts, racks), asked)
    assert set(given) == set(members)
    return {member_id: each.partitions for member_id, each in given.items()}


def text(shares: Shares) -> dict[str, str]:
    return {member_id: " ".join(map(str, mine)) for member_id, mine in shares.items()}


def test_kafkas_example() -> None:
    counts = {"t0": 3, "t1": 3}
    members = {"C0": ["t0", "t1"], "C1": ["t0", "t1"]}
    assert text(assign("range", counts, members)) == {
        "C0": "t0-0 t0-1 t1-0 t1-1",
        "C1": "t0-2 t1-2",
    }
    assert text(assign("roundrobin", counts, members)) == {
        "C0": "t0-0 t0-2 t1-1",
        "C1": "t0-1 t1-0 t1-2",
    }
    for name in ("sticky", "cooperative-sticky"):
        assert [len(mine) for mine in assign(name, counts, members).values()] == [3, 3]


def test_static_members_come_first_by_instance_id() -> None:
    members = {
        "a": MemberSubscription(["t"]),
        "z": MemberSubscription(["t"], group_instance_id="1"),
        "y": MemberSubscription(["t"], group_instance_id="2"),
    }
    assert text(assign("range", {"t": 4}, members)) == {"z": "t-0 t-1", "y": "t-2", "a": "t-3"}
    assert text(assign("roundrobin", {"t": 4}, members)) == {
        "z": "t-0 t-3",
        "y": "t-1",
        "a": "t-2",
    }


def test_a_topic_that_does_not_exist_is_passed_over() -> None:
    for name in NAMES:
        assert assign(name, {"t": 1}, {"a": ["t", "gone"]}) == {"a": [("t", 0)]}
        assert assign(name, {}, {"a": ["gone"], "b": []}) == {"a": [], "b": []}


def test_range_prefers_the_members_rack() -> None:
    racks = {TopicPartition("t", n): frozenset("ab"[n % 2]) for n in range(4)}
    members = {
        "1": MemberSubscription(["t"], rack_id="b"),
        "2": MemberSubscription(["t"], rack_id="a"),
    }
    assert text(assign("range", {"t": 4}, members, racks)) == {"1": "t-1 t-3", "2": "t-0 t-2"}
    everywhere = dict.fromkeys(racks, frozenset("ab"))
    assert text(assign("range", {"t": 4}, members, everywhere)) == {
        "1": "t-0 t-1",
        "2": "t-2 t-3",
    }


def test_range_keeps_topics_together_across_racks() -> None:
    members = {
        "1": MemberSubscription(["t", "u"], rack_id="b"),
        "2": MemberSubscription(["t", "u"], rack_id="a"),
    }
    racks = {
        TopicPartition(topic, number): frozenset("ab"[number % 2])
        for topic in "tu"
        for number in range(3)
    }
    shares = assign("range", {"t": 3, "u": 3}, members, racks)
    assert text(shares) == {"1": "t-1 u-1", "2": "t-0 t-2 u-0 u-2"}


def test_sticky_user_data_has_kafkas_bytes() -> None:
    claim = Claim([TopicPartition("ab", 1), TopicPartition("ab", 3)], 7)
    data = bytes.fromhex("00000001 0002 6162 00000002 00000001 00000003 00000007")
    assert encode_claim(claim) == data
    for cut, generation in ((data, 7), (data[:-4], -1)):
        found = decode_claim(cut)
        assert (found.partitions, found.generation_id) == (claim.partitions, generation)
    for broken in (None, b"", b"\0\0\0\1", b"\0\0\0\1\0\1\xff\0\0\0\0"):
        assert decode_claim(broken).partitions == []


def test_an_assignor_remembers_what_it_was_given() -> None:
    mine = Assignment([TopicPartition("t", 0)])
    sticky, cooperative = resolve(["sticky", "cooperative-sticky"])
    assert sticky.user_data(["t"]) is None
    assert cooperative.user_data(["t"]) == b"\xff\xff\xff\xff"
    for each in (sticky, cooperative):
        each.on_assignment(mine, 5)
    assert sticky.user_data(["t"]) == encode_claim(Claim(mine.partitions, 5))
    assert cooperative.user_data(["t"]) == b"\0\0\0\5"


@pytest.mark.parametrize("name", ["sticky", "cooperative-sticky"])
def test_two_claims_of_one_partition_are_settled_by_generation(name: str) -> None:
    here = TopicPartition("t", 0)

    def member(generation: int) -> MemberSubscription:
        data = encode_claim(Claim([here], generation)) if name == "sticky" else None
        return MemberSubscription(
            ["t"], user_data=data, owned_partitions=[here], generation_id=generation
        )

    assert assign(name, {"t": 1}, {"a": member(3), "b": member(4)})["b"] == [here]
    # With equal generations neither claim counts; the first member gets it as usual.
    assert assign(name, {"t": 1}, {"a": member(3), "b": member(3)})["b"] == []


def test_names_classes_and_objects_make_assignors() -> None:
    class Mine:
        name = "mine"

        def assign(self, topics: Any, members: Any) -> Any:
            return {}

    found = resolve(["org.apache.kafka.clients.consumer.RangeAssignor", Mine, Mine()][:2])
    assert [each.name for each in found] == ["range", "mine"]
    assert rebalance_protocol(resolve(["range", "cooperative-sticky"])) == EAGER
    assert rebalance_protocol(resolve(["cooperative-sticky"])) == COOPERATIVE
    for wrong in ([], ["range", "range"], ["fair"], [object()], [Mine, "mine"]):
        with pytest.raises(ConfigError):
            resolve(wrong)


_TOPICS = "abcd"
_GROUPS = st.tuples(
    st.dictionaries(st.sampled_from(_TOPICS), st.integers(0, 7)),
    st.dictionaries(
        st.sampled_from([f"m{number}" for number in range(7)]),
        st.sets(st.sampled_from(_TOPICS), max_size=4),
        min_size=1,
    ),
)


def eager(name: str, counts: dict[str, int], asked: Any, held: Shares, generation: int) -> Shares:
    """Make one rebalance of members that own `held` since `generation`."""
    members = {}
    for member_id, topics in asked.items():
        mine = held.get(member_id)
        claim = Claim(mine or [], generation if mine is not None else -1)
        members[member_id] = MemberSubscription(
            topics,
            user_data=encode_claim(claim) if name == "sticky" else None,
            owned_partitions=claim.partitions if name == "cooperative-sticky" else [],
            generation_id=claim.generation_id,
        )
    return assign(name, counts, members)


ROUNDS_MAX = 6


def check_valid(counts: dict[str, int], asked: Any, shares: Shares) -> None:
    """Each subscribed partition is assigned once, to a member with the subscription."""
    given = list(chain.from_iterable(shares.values()))
    assert len(given) == len(set(given))
    wanted = set(chain.from_iterable(asked.values()))
    assert set(given) == {(t, n) for t in wanted for n in range(counts.get(t, 0))}
    for member_id, mine in shares.items():
        assert {topic for topic, _ in mine} <= set(asked[member_id])


def settle(name: str, counts: dict[str, int], asked: Any, held: Shares, generation: int) -> Shares:
    """Rebalance until nothing moves: once, or cooperatively until no member gives anything up.

    Mostly in two rounds. If members have different topics, dealing the given-up partitions may even
    out the shares once more, so that another partition moves.
    """
    shares = eager(name, counts, asked, held, generation)
    if name != "cooperative-sticky":
        return shares
    for number in range(1, ROUNDS_MAX):
        before = shares
        shares = eager(name, counts, asked, before, generation + number)
        if shares == before:
            return shares
    raise AssertionError(f"still moving after {ROUNDS_MAX} rounds: {shares}")


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=60, deadline=None)
@given(group=_GROUPS, other=_GROUPS)
def test_every_partition_goes_to_one_member_that_asked(name: str, group: Any, other: Any) -> None:
    counts, asked = group
    shares = settle(name, counts, asked, {}, 0)
    check_valid(counts, asked, shares)
    counts, asked = other
    check_valid(counts, asked, settle(name, counts, asked, shares, 1))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["sticky", "cooperative-sticky"])
@settings(max_examples=60, deadline=None)
@given(group=_GROUPS, other=_GROUPS)
def test_sticky_shares_are_even_and_stay(name: str, group: Any, other: Any) -> None:
    held: Shares = {}
    for generation, (counts, asked) in enumerate((group, other)):
        shares = settle(name, counts, asked, held, generation)
        for topic, number in chain.from_iterable(shares.values()):
            (owner,) = (each for each, mine in shares.items() if (topic, number) in mine)
            for reader in asked:
                if topic in asked[reader]:
                    assert len(shares[owner]) <= len(shares[reader]) + 1
        assert settle(name, counts, asked, shares, generation + 5) == shares, "nothing moves"
        held = shares


@given(
    count=st.integers(0, 20),
    before=st.integers(1, 6),
    after=st.integers(1, 6),
    data=st.data(),
)
def test_with_equal_subscriptions_no_more_moves_than_must(
    count: int, before: int, after: int, data: Any
) -> None:
    def names(size: int) -> dict[str, list[str]]:
        return {f"m{number}": ["t"] for number in range(size)}

    held = settle("sticky", {"t": count}, names(before), {}, 0)
    shares = settle("sticky", {"t": count}, names(after), held, 1)
    sizes = [len(mine) for mine in shares.values()]
    assert max(sizes) - min(sizes) <= 1
    stays = sum(len(set(held.get(each, [])) & set(mine)) for each, mine in shares.items())
    quota, larger = divmod(count, after)
    most = sorted((len(held.get(each, [])) for each in shares), reverse=True)
    possible = sum(min(size, quota + (rank < larger)) for rank, size in enumerate(most))
    assert stays == possible


@given(group=_GROUPS, other=_GROUPS)
def test_cooperatively_nobody_gets_what_another_still_holds(group: Any, other: Any) -> None:
    name = "cooperative-sticky"
    held = settle(name, *group, {}, 0)
    counts, asked = other
    shares = eager(name, counts, asked, held, 1)
    holders = {each: owner for owner, mine in held.items() if owner in asked for each in mine}
    for member_id, mine in shares.items():
        assert all(holders.get(each, member_id) == member_id for each in mine)


def test_subscriptions_and_assignments_travel_as_kafka_writes_them() -> None:
    subscription = MemberSubscription(
        ["b", "a"],
        user_data=b"\1",
        owned_partitions=[TopicPartition("a", 1)],
        generation_id=3,
        rack_id="r",
    )
    data = encode_subscription(subscription)
    assert data == bytes.fromhex(
        "0003 00000002 0001 61 0001 62 00000001 01 00000001 0001 61 00000001 00000001"
        "00000003 0001 72"
    )
    found = decode_subscription(data, "instance")
    assert (found.topics, found.user_data, found.rack_id) == (["a", "b"], b"\1", "r")
    assert (found.owned_partitions, found.generation_id) == ([("a", 1)], 3)
    assert found.group_instance_id == "instance"
    newer = decode_subscription(b"\0\x09" + data[2:] + b"more")
    assert newer.rack_id == "r", "a later version is read as the newest known one"
    oldest = decode_subscription(bytes.fromhex("0000 00000001 0001 61 ffffffff"))
    assert (oldest.topics, oldest.owned_partitions, oldest.generation_id) == (["a"], [], -1)

    assignment = encode_assignment(Assignment([TopicPartition("a", 2), TopicPartition("a", 0)]))
    assert assignment == bytes.fromhex("0003 00000001 0001 61 00000002 00000000 00000002 ffffffff")
    assert decode_assignment(assignment).partitions == [("a", 0), ("a", 2)]
    assert decode_assignment(b"").partitions == []
    for broken in (b"\0", b"\xff\xff", b"\0\1\0"):
        with pytest.raises(MalformedMessage):
            decode_subscription(broken)


def test_a_claim_of_a_topic_that_a_member_no_longer_reads_is_void() -> None:
    claim = Claim([TopicPartition("a", 0), TopicPartition("b", 0)], 1)
    left = MemberSubscription(["a"], user_data=encode_claim(claim))
    counts = {"a": 1, "b": 1, "c": 1}
    shares = assign("sticky", counts, {"m1": left, "m2": ["b", "c"]})
    assert text(shares) == {"m1": "a-0", "m2": "b-0 c-0"}


def test_a_partition_that_two_members_hold_goes_to_no_third_before_both_gave_it_up() -> None:
    held = [TopicPartition("t", 0)]
    holders = {
        member_id: MemberSubscription(["t"], owned_partitions=held, generation_id=3)
        for member_id in ("m1", "m2")
    }
    shares = assign("cooperative-sticky", {"t": 1}, {"m0": ["t"], **holders})
    assert text(shares)["m0"] == ""
