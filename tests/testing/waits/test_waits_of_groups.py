"""Waits for groups: shape, lag, commits, rebalances, and the errors at a time-out."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from embedlog.errors import ConfigError, UnknownTopicOrPartition
from embedlog.testing import Kafka, WaitTimedOut
from tests.testing.members import FAST, members

PROTOCOLS = ("classic", "consumer")


@pytest.fixture(params=[1, 3], ids=["one-broker", "three-brokers"])
def kafka(request: pytest.FixtureRequest) -> Iterator[Kafka]:
    with Kafka(brokers=request.param, topics={"orders": 6}, config=FAST) as made:
        yield made


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_shape_of_a_group_is_awaited(kafka: Kafka, protocol: str) -> None:
    with members(kafka, "a", "b", protocol=protocol):
        found = kafka.wait.group("g", state="Stable", members=2, assigned=6)
        assert found.protocol == protocol
        assert sorted(len(each.assignment) for each in found.members) == [3, 3]
        assert {each.subscription for each in found.members} == {("orders",)}
    assert kafka.wait.group("g", members=0).state == "Empty"


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_new_generation_is_awaited(kafka: Kafka, protocol: str) -> None:
    with members(kafka, "a", "b", protocol=protocol):
        before = kafka.wait.group("g", members=2).epoch
        assert kafka.group("g").rebalance() == before
        assert kafka.wait.rebalanced("g", since=before).epoch > before


def test_lag_and_commits_are_awaited(kafka: Kafka) -> None:
    producer = kafka.producer()
    for number in range(12):
        producer.send("orders", b"x", partition=number % 6)
    producer.flush()
    assert kafka.wait.records("orders", 12) == 12
    with members(kafka, "a", protocol="classic"):
        lags = kafka.wait.lag("g", 0, topics=["orders"])
        assert lags == {("orders", number): 0 for number in range(6)}
        assert kafka.wait.committed("g", {("orders", 0): 2, ("orders", 5): 2})["orders", 5] == 2
    producer.send("orders", b"x", partition=3).result()
    assert kafka.group("g").lag == 1
    with pytest.raises(WaitTimedOut, match="orders-3 lags 1"):
        kafka.wait.lag("g", timeout=0.05)


def test_a_lag_is_not_zero_while_the_group_has_no_partition(kafka: Kafka) -> None:
    with pytest.raises(WaitTimedOut, match="does not exist"):
        kafka.wait.lag("g", timeout=0.05)


def test_a_wait_names_a_group_of_nearly_that_name(kafka: Kafka) -> None:
    kafka.group("billing").commit({("orders", 0): 0})
    with pytest.raises(AssertionError) as caught:
        kafka.wait.group("biling", members=2, timeout=0.05)
    error = caught.value
    assert isinstance(error, WaitTimedOut)
    assert error.wanted == "group 'biling' in state Stable, 2 members"
    assert "there is a group 'billing': Empty" in error.near[0]
    assert "biling" in error.seen


def test_a_wait_names_members_without_a_partition(kafka: Kafka) -> None:
    kafka.create_topic("narrow", 1)
    with members(kafka, "a", protocol="classic") as (member,):
        found = kafka.wait.group("g", members=1, assigned=6)
        assert member.records == []
        with pytest.raises(WaitTimedOut) as caught:
            kafka.wait.group("g", members=2, assigned=7, timeout=0.05)
    assert found.members[0].member_id in caught.value.seen
    with pytest.raises(WaitTimedOut, match="nobody has the partition"):
        kafka.wait.committed("g", {("orders", 0): 100}, timeout=0.05)


def test_misspelt_names_are_refused_at_once(kafka: Kafka) -> None:
    with pytest.raises(ConfigError, match="did you mean 'Stable'"):
        kafka.wait.group("g", state="Stabel")
    with pytest.raises(ConfigError, match="members=-1"):
        kafka.wait.group("g", members=-1)
    with pytest.raises(ConfigError, match="timeout='soon'"):
        kafka.wait.group("g", timeout="soon")  # type: ignore[arg-type]
    with pytest.raises(UnknownTopicOrPartition, match="did you mean 'orders'"):
        kafka.wait.lag("g", topics=["order"])
    with pytest.raises(UnknownTopicOrPartition, match="6 partitions"):
        kafka.wait.committed("g", {("orders", 6): 1})


def test_a_state_may_be_written_in_any_case(kafka: Kafka) -> None:
    kafka.group("g").commit({("orders", 0): 0})
    assert kafka.wait.group("g", state="empty").state == "Empty"


def test_a_closed_cluster_refuses_waits() -> None:
    from embedlog.errors import ClosedError

    with Kafka() as kafka:
        wait = kafka.wait
    with pytest.raises(ClosedError):
        wait.group("g", timeout=0.05)
