"""Throttles slow down replicas that catch up, if their topic names them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from embedlog.config import BrokerConfig
from embedlog.replication.throttles import FOLLOWER_RATE, LEADER_RATE, Throttle
from tests.replication.brokers import TOPIC, Brokers

MakeBrokers = Callable[..., Brokers]
RATE = 1_000
COUNT = 100


def slow(brokers: Brokers, side: str, replicas: list[str]) -> None:
    name = LEADER_RATE if side == "leader" else FOLLOWER_RATE
    for member in brokers.members.values():
        member.membership.config.set_dynamic({name: str(RATE)}, {})
        joined = member.replica_manager.replication
        assert joined is not None
        joined.throttles.configure(
            TOPIC,
            leader_replicas=replicas if side == "leader" else (),
            follower_replicas=replicas if side == "follower" else (),
        )


@pytest.mark.parametrize("side, replicas", [("leader", ["0:1"]), ("follower", ["*"])])
def test_a_replica_that_catches_up_is_slowed_down(
    make_brokers: MakeBrokers, side: str, replicas: list[str]
) -> None:
    brokers = make_brokers(2, replica_fetch_max_bytes=1_000)
    brokers.controller.create(1)
    for _ in range(COUNT):
        brokers.append(1, b"x" * 100)
    size = brokers[1].partition().log.size
    slow(brokers, side, replicas)
    brokers.controller.change(replicas=(1, 2))
    seconds = size // RATE
    brokers.run(seconds * 1_000 // 2)
    assert COUNT // 4 < brokers.offsets()[2][1] < COUNT * 3 // 4
    brokers.run(seconds * 1_000)
    assert brokers.offsets()[2][1] == COUNT
    assert brokers.state().isr == (1, 2)


@pytest.mark.parametrize("side, replicas", [("leader", ["0:2"]), ("follower", ["1:2", "0:1"])])
def test_others_are_not_slowed_down(
    make_brokers: MakeBrokers, side: str, replicas: list[str]
) -> None:
    brokers = make_brokers(2, replica_fetch_max_bytes=1_000)
    brokers.controller.create(1)
    for _ in range(COUNT):
        brokers.append(1, b"x" * 100)
    slow(brokers, side, replicas)
    brokers.controller.change(replicas=(1, 2))
    brokers.run(100)
    assert brokers.offsets()[2][1] == COUNT


def test_a_replica_in_sync_is_not_slowed_down(make_brokers: MakeBrokers) -> None:
    brokers = make_brokers(2)
    brokers.controller.create(1, 2)
    brokers.run(1)
    slow(brokers, "leader", ["*"])
    for _ in range(COUNT):
        brokers.append(1, b"x" * 100)
        brokers.run()
    assert brokers.offsets()[1] == (COUNT, COUNT)


def test_the_rate_is_an_average_over_the_windows() -> None:
    now_ms = 0
    config = BrokerConfig({"replication.quota.window.num": 3})
    throttle = Throttle(LEADER_RATE, 1, config, lambda: now_ms)
    throttle.record(1_000_000)
    assert not throttle.is_exceeded, "there is no rate"
    config.set_dynamic({LEADER_RATE: "500"}, {})
    assert throttle.is_exceeded
    now_ms = 3_000
    assert not throttle.is_exceeded, "long ago"
    throttle.record(500)
    assert not throttle.is_exceeded
    throttle.record(1)
    assert throttle.is_exceeded
    now_ms = 4_500
    assert not throttle.is_exceeded
