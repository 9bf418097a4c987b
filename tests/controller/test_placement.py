"""Placement of replicas: over racks, over brokers, fenced ones last."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from embedlog.controller import placement
from embedlog.controller.metadata import BrokerImage
from embedlog.errors import InvalidReplicaAssignment, InvalidReplicationFactor
from embedlog.runtime.randomness import seeded


def brokers(**racks: str) -> dict[int, BrokerImage]:
    """Make brokers: `A="1 2 !3"` has 1 to 3 in rack A, with 3 fenced."""
    made = {}
    for rack, nodes in racks.items():
        for node in nodes.split():
            number = int(node.lstrip("!"))
            made[number] = BrokerImage(
                number, None if rack == "none" else rack, is_fenced=node.startswith("!")
            )
    return made


def test_partitions_take_turns_over_racks_and_the_brokers_of_each() -> None:
    found = brokers(A="1 2 3", B="4 5 6", C="7 8 9")
    placed = placement.place(found, 9, 3, random=seeded(1))
    for nodes in placed:
        assert {found[node].rack for node in nodes} == {"A", "B", "C"}
    assert Counter(found[nodes[0]].rack for nodes in placed) == Counter("ABC" * 3)
    assert Counter(node for nodes in placed for node in nodes) == Counter([*range(1, 10)] * 3)


def test_the_leaders_of_following_partitions_are_in_following_racks() -> None:
    found = brokers(A="1", B="2", C="3")
    leaders = [nodes[0] for nodes in placement.place(found, 3, 1, random=seeded(4))]
    first = leaders[0] - 1
    assert leaders == [(first + step) % 3 + 1 for step in range(3)]


def test_fenced_brokers_come_last_and_never_first() -> None:
    found = brokers(none="1 2 !3")
    for nodes in placement.place(found, 20, 2, random=seeded(2)):
        assert set(nodes) == {1, 2}
    for nodes in placement.place(found, 20, 3, random=seeded(3)):
        assert nodes[2] == 3


def test_one_unfenced_broker_leads_everything() -> None:
    placed = placement.place(brokers(A="1 !2", B="!3"), 5, 2, random=seeded(1))
    assert [nodes[0] for nodes in placed] == [1] * 5


@pytest.mark.parametrize(
    ("found", "factor", "message"),
    [
        (
            brokers(none="!1 !2"),
            1,
            "All brokers are currently fenced, or have all their log directories cordoned.",
        ),
        (
            brokers(none="1 2"),
            3,
            "The target replication factor of 3 cannot be reached because only 2 broker(s) are"
            " registered or some brokers have all their log directories cordoned.",
        ),
    ],
)
def test_what_cannot_be_placed_is_refused(
    found: dict[int, BrokerImage], factor: int, message: str
) -> None:
    with pytest.raises(InvalidReplicationFactor) as caught:
        placement.place(found, 1, factor, random=seeded(1))
    assert caught.value.message == message


def test_a_new_partition_is_led_by_the_first_that_is_active() -> None:
    found = brokers(none="!1 2 3")
    found[2] = found[2].replace(in_controlled_shutdown=True)
    made = placement.new_partition(found, 4, (1, 2, 3))
    assert (made.partition, made.leader, made.isr, made.replicas) == (4, 3, (3,), (1, 2, 3))
    with pytest.raises(InvalidReplicationFactor, match="All brokers are currently fenced or in"):
        placement.new_partition(found, 0, (1, 2))


def test_a_manual_assignment_needs_an_active_broker() -> None:
    with pytest.raises(InvalidReplicaAssignment) as caught:
        placement.manual_assignments(
            brokers(none="1 !2"),
            [(0, [1, 2]), (1, [2, 1]), (2, [2])],
            partition_count=-1,
            replication_factor=-1,
        )
    assert "2 replica(s)" in (caught.value.message or "")
    with pytest.raises(InvalidReplicaAssignment) as caught:
        placement.manual_assignments(
            brokers(none="1 !2"), [(0, [2])], partition_count=-1, replication_factor=-1
        )
    assert caught.value.message == (
        "All brokers specified in the manual partition assignment for partition 0 are fenced or"
        " in controlled shutdown."
    )


@given(
    st.lists(
        st.tuples(st.sampled_from(["A", "B", "C", None]), st.booleans()), min_size=1, max_size=9
    ),
    st.integers(1, 30),
    st.integers(0, 1000),
    st.data(),
)
def test_whatever_the_brokers_each_partition_has_different_ones_and_a_leader(
    shape: list[tuple[str | None, bool]], count: int, seed: int, data: st.DataObject
) -> None:
    found = {
        node: BrokerImage(node, rack, is_fenced=is_fenced and node > 0)
        for node, (rack, is_fenced) in enumerate(shape)
    }
    factor = data.draw(st.integers(1, len(found)))
    placed = placement.place(found, count, factor, random=seeded(seed))
    unfenced = sum(not broker.is_fenced for broker in found.values())
    assert len(placed) == count
    for nodes in placed:
        assert len(set(nodes)) == len(nodes) == factor
        assert not found[nodes[0]].is_fenced
    leaders = Counter(nodes[0] for nodes in placed)
    if len({broker.rack for broker in found.values()}) == 1:
        # Every broker leads once before one leads twice.
        assert max(leaders.values()) <= -(-count // unfenced)
