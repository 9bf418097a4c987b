"""Groups on demand: rebalance, expel, assign, configure, commit, delete."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from embedlog.coordinator.placement import partition_of
from embedlog.errors import (
    ConfigError,
    GroupIdNotFound,
    IllegalState,
    InvalidConfig,
    NonEmptyGroup,
    UnknownMemberId,
    UnknownTopicOrPartition,
)
from embedlog.testing import Kafka
from embedlog.testing.inspection.group_values import GroupValue
from tests.testing.members import FAST, members

PROTOCOLS = ("classic", "consumer")


@pytest.fixture(
    params=[1, pytest.param(3, marks=pytest.mark.slow)], ids=["one-broker", "three-brokers"]
)
def kafka(request: pytest.FixtureRequest) -> Iterator[Kafka]:
    with Kafka(brokers=request.param, topics={"orders": 6}, config=FAST) as made:
        yield made


@pytest.fixture
def alone() -> Iterator[Kafka]:
    with Kafka(topics={"orders": 6, "other": 2}, config=FAST) as made:
        yield made


def _shares(value: GroupValue) -> dict[str, list[int]]:
    return {
        each.client_id: [place.partition for place in each.assignment] for each in value.members
    }


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_an_expelled_member_joins_again(kafka: Kafka, protocol: str) -> None:
    group = kafka.group("g")
    with members(kafka, "a", "b", protocol=protocol):
        before = kafka.wait.group("g", members=2, assigned=6)
        group.expel("b")
        after = kafka.wait.rebalanced("g", since=before.epoch)
        kafka.wait.group("g", members=2, assigned=6)
        assert after.epoch > before.epoch


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_pinned_assignment_stays_until_it_is_taken_back(kafka: Kafka, protocol: str) -> None:
    group = kafka.group("g")
    with members(kafka, "a", "b", protocol=protocol):
        kafka.wait.group("g", members=2, assigned=6)
        group.assign({"a": [("orders", 0)], "b": [("orders", n) for n in range(1, 6)]})
        found = kafka.wait.until(
            lambda: _shares(group.value) == {"a": [0], "b": [1, 2, 3, 4, 5]} and group.value
        )
        kafka.wait.group("g", state="Stable")
        kafka.wait.rebalanced("g", since=group.rebalance())
        assert _shares(kafka.wait.group("g", members=2)) == {"a": [0], "b": [1, 2, 3, 4, 5]}
        assert found.epoch < group.epoch
        group.assign(None)
        kafka.wait.until(lambda: sorted(map(len, _shares(group.value).values())) == [3, 3])


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_group_may_be_pinned_before_its_members_come(alone: Kafka, protocol: str) -> None:
    alone.group("g").assign({"a": [("orders", 5)]})
    with members(alone, "a", protocol=protocol):
        found = alone.wait.group("g", members=1, assigned=1)
        assert _shares(found) == {"a": [5]}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_pin_outlives_its_topics(alone: Kafka, protocol: str) -> None:
    alone.create_topic("short-lived")
    alone.group("g").assign({"a": [("short-lived", 0), ("orders", 5)]})
    alone.admin().delete_topics(["short-lived"]).check()
    with members(alone, "a", protocol=protocol):
        found = alone.wait.group("g", members=1, assigned=1)
        assert _shares(found) == {"a": [5]}


@pytest.mark.slow
def test_cooperative_members_never_share_a_partition(alone: Kafka) -> None:
    group = alone.group("g")
    strategy = {"partition_assignment_strategy": ["cooperative-sticky"]}
    with members(alone, "a", "b", protocol="classic", **strategy):
        alone.wait.group("g", members=2, assigned=6)
        first, second = [("orders", n) for n in range(6)], []
        for _ in range(2):
            group.assign({"a": first, "b": second})
            wanted = {
                "a": [place[1] for place in first],
                "b": [place[1] for place in second],
            }
            alone.wait.until(lambda wanted=wanted: _shares(group.value) == wanted)
            first, second = second, first


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_static_members_are_named_by_their_instance_ids(alone: Kafka, protocol: str) -> None:
    with members(alone, "a", protocol=protocol, group_instance_id="machine-1"):
        value = alone.wait.group("g", members=1, assigned=6)
        assert value.members[0].instance_id == "machine-1"
        alone.group("g").assign({"machine-1": [("orders", 2)]})
        assert alone.wait.group("g", assigned=1).assigned == {
            ("orders", 2): value.members[0].member_id
        }
        alone.group("g").expel("machine-1")
        alone.wait.rebalanced("g", since=value.epoch)


@pytest.mark.slow
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_pin_and_a_wait_follow_the_coordinator_to_another_broker(protocol: str) -> None:
    topics = {"orders": {"partitions": 6, "replication_factor": 3}}
    config = {**FAST, "offsets.topic.replication.factor": 3}
    with Kafka(brokers=3, topics=topics, config=config) as kafka:
        group = kafka.group("g")
        with members(kafka, "a", "b", protocol=protocol):
            kafka.wait.group("g", members=2, assigned=6, timeout=30)
            group.assign({"a": [("orders", 0)], "b": [("orders", 1)]})
            kafka.wait.until(lambda: _shares(group.value) == {"a": [0], "b": [1]}, timeout=30)
            before = kafka.wait.group("g", state="Stable", timeout=30)
            places = kafka.broker(1).core.image.topics_by_name["__consumer_offsets"].partitions
            place = kafka.partition("__consumer_offsets", partition_of("g", len(places)))
            first = place.leader
            kafka.broker(first).stop()
            kafka.wait.leader("__consumer_offsets", place.topic_partition.partition, timeout=30)
            assert place.leader != first
            kafka.wait.rebalanced("g", since=group.rebalance(), timeout=30)
            after = kafka.wait.group("g", members=2, assigned=2, timeout=30)
            assert after.epoch > before.epoch
            assert _shares(after) == {"a": [0], "b": [1]}


@pytest.mark.slow
def test_names_of_members_and_partitions_are_checked(alone: Kafka) -> None:
    group = alone.group("g")
    with members(alone, "alpha", "beta", "twin", "twin", protocol="classic"):
        alone.wait.group("g", members=4)
        with pytest.raises(UnknownMemberId, match="did you mean 'alpha'"):
            group.expel("alfa")
        with pytest.raises(UnknownMemberId, match="2 members of group 'g' have the client id"):
            group.expel("twin")
        with pytest.raises(UnknownMemberId, match="did you mean 'beta'"):
            group.assign({"bata": []})
        with pytest.raises(ConfigError, match="orders-1 is given to 'alpha' and to 'beta'"):
            group.assign({"alpha": [("orders", 1)], "beta": [("orders", 1)]})
        with pytest.raises(UnknownTopicOrPartition, match="did you mean 'orders'"):
            group.assign({"alpha": [("oders", 1)]})
        with pytest.raises(NonEmptyGroup):
            group.delete()
        with pytest.raises(ConfigError, match="its members choose their time-outs"):
            group.configure(session_timeout_ms=50_000)


def test_missing_groups_are_refused_with_the_nearest_name(alone: Kafka) -> None:
    alone.group("billing").commit({("orders", 0): 1})
    for call in (alone.group("biling").delete, alone.group("biling").rebalance):
        with pytest.raises(GroupIdNotFound, match="did you mean 'billing'"):
            call()
    with pytest.raises(IllegalState, match="has no members"):
        alone.group("billing").rebalance()
    with pytest.raises(ConfigError, match="expected the name of a group"):
        alone.group("")


def test_offsets_are_committed_also_while_a_group_has_members(kafka: Kafka) -> None:
    group = kafka.group("g")
    assert (group.exists, group.state, group.epoch, group.members) == (False, "Dead", -1, ())
    group.commit({("orders", 1): 0})
    assert group.committed == {("orders", 1): 0}
    with members(kafka, "a", protocol="classic", enable_auto_commit=False):
        kafka.wait.group("g", members=1)
        group.commit({("orders", 2): 7})
        assert kafka.wait.committed("g", {("orders", 2): 7}) == {("orders", 2): 7}
    kafka.wait.group("g", members=0)
    group.delete()
    assert not group.exists
    with pytest.raises(ConfigError, match="offset -1"):
        group.commit({("orders", 1): -1})


def test_settings_of_a_group_are_changed(alone: Kafka) -> None:
    group = alone.group("g")
    group.configure(heartbeat_interval_ms=30, session_timeout_ms=300)
    configs = alone.broker().core.image.group_configs["g"]
    assert configs["consumer.session.timeout.ms"] == "300"
    group.configure(session_timeout_ms=None)
    assert "consumer.session.timeout.ms" not in alone.broker().core.image.group_configs["g"]
    with pytest.raises(ConfigError, match="did you mean 'session_timeout_ms'"):
        group.configure(sesion_timeout_ms=1)
    with pytest.raises(InvalidConfig):
        group.configure(session_timeout_ms=1)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_values_of_groups_are_copies_and_print_readably(alone: Kafka, protocol: str) -> None:
    alone.group("zero").commit({("orders", 0): 0})
    with members(alone, "a", protocol=protocol):
        value = alone.wait.group("g", members=1, assigned=6)
    assert value.state == "Stable"
    assert alone.group("g").state == "Empty"
    text = str(value)
    assert text.startswith(f"group 'g': Stable, {protocol}, ")
    assert "(client 'a' at in-process): has orders-0, orders-1" in text
    assert [each.group_id for each in alone.groups()] == ["g", "zero"]
    assert str(alone.group("none")) == "group 'none' does not exist"


@pytest.mark.slow
def test_nothing_is_loaded_or_installed_before_its_first_use() -> None:
    import subprocess
    import sys

    code = (
        "import sys; from embedlog.testing import Kafka\n"
        "with Kafka(topics={'t': 1}) as kafka: kafka.producer().send('t', b'x').result()\n"
        "parts = tuple(f'embedlog.testing.{p}' for p in ('inspection', 'waits', 'on_demand'))\n"
        "print([name for name in sys.modules if name.startswith(parts)])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
