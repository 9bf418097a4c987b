"""Brokers that fall silent, and periodic elections, with a simulated clock."""

from __future__ import annotations

import pytest

from embedlog.common import TopicPartition
from embedlog.controller.controller import NewTopic
from embedlog.controller.partitions import LeaderDuties
from embedlog.controller.state import ControllerState
from embedlog.errors import DuplicateBrokerRegistration, StaleBrokerEpoch
from embedlog.testing.sim_clock import SimClock
from embedlog.testing.simulated_runtime import sim_runtime
from tests.controller.metadata_state import Opened

TIMEOUT_MS = 9000


@pytest.fixture
def opened() -> Opened:
    made = Opened(node_ids=(1, 2, 3))
    made.controller.create_topics([NewTopic("t", assignments=[(0, [1, 2, 3])])])
    return made


def clock_of(opened: Opened) -> SimClock:
    clock = opened.runtime.clock
    assert isinstance(clock, SimClock)
    return clock


def fenced(opened: Opened) -> list[int]:
    brokers = opened.controller.image.brokers.values()
    return [broker.node_id for broker in brokers if broker.is_fenced]


def test_who_is_silent_for_too_long_is_fenced(opened: Opened) -> None:
    clock, sessions = clock_of(opened), opened.controller.brokers.sessions
    assert sessions.run_once(clock.monotonic_ms()) == TIMEOUT_MS
    clock.advance(5000)
    sessions.touch(2, opened.epoch(2))
    sessions.touch(3, opened.epoch(3))
    assert sessions.run_once(clock.monotonic_ms()) == 4001
    clock.advance(4000)
    sessions.run_once(clock.monotonic_ms())
    assert fenced(opened) == []
    clock.advance(1)
    assert sessions.run_once(clock.monotonic_ms()) == 0
    assert sessions.run_once(clock.monotonic_ms()) == 5000
    assert fenced(opened) == [1]
    clock.advance(5000)
    for _ in range(2):
        sessions.run_once(clock.monotonic_ms())
    assert fenced(opened) == [1, 2, 3]
    with pytest.raises(StaleBrokerEpoch):
        sessions.touch(2, opened.epoch(2) + 1)


def test_who_is_heard_of_before_the_second_look_is_not_fenced(opened: Opened) -> None:
    clock, sessions = clock_of(opened), opened.controller.brokers.sessions
    sessions.run_once(clock.monotonic_ms())
    clock.advance(2 * TIMEOUT_MS)
    assert sessions.run_once(clock.monotonic_ms()) == 0
    for node_id in (1, 2):
        sessions.touch(node_id, opened.epoch(node_id))
    sessions.run_once(clock.monotonic_ms())
    assert fenced(opened) == [3]
    clock.advance(TIMEOUT_MS + 1)
    assert sessions.run_once(clock.monotonic_ms()) == 0, "the first look at this silence"
    assert fenced(opened) == [3]


def test_a_second_incarnation_waits_for_the_end_of_the_session(opened: Opened) -> None:
    clock, sessions = clock_of(opened), opened.controller.brokers.sessions
    sessions.touch(1, opened.epoch(1))
    with pytest.raises(DuplicateBrokerRegistration, match="Another broker is registered with"):
        opened.start(1)
    clock.advance(TIMEOUT_MS + 1)
    opened.start(1)
    with pytest.raises(DuplicateBrokerRegistration):
        opened.start(1)
    sessions.forget(1)
    opened.start(1)
    opened.controller.brokers.fence(1)
    opened.start(1)
    assert fenced(opened) == []


def test_leaders_are_balanced_now_and_then(opened: Opened) -> None:
    clock, duties = clock_of(opened), opened.controller.partitions.leader_duties
    partitions = opened.controller.partitions
    opened.controller.brokers.fence(1)
    epoch = opened.start(1, previous_epoch=opened.epoch(1))
    present = opened.controller.image.partition("t", 0)
    assert present is not None
    leader = opened.epoch(2)
    partitions.alter(
        2,
        leader,
        opened.controller.image.topics_by_name["t"].topic_id,
        0,
        leader_epoch=present.leader_epoch,
        partition_epoch=present.partition_epoch,
        isr=[(2, leader), (3, -1), (1, epoch)],
    )
    assert duties.run_once(clock.monotonic_ms()) == 300_000
    clock.advance(299_999)
    assert duties.run_once(clock.monotonic_ms()) == 1
    assert leader_of(opened) == 2
    clock.advance(1)
    assert duties.run_once(clock.monotonic_ms()) == 300_000
    assert leader_of(opened) == 1


def test_leaders_stay_where_the_settings_say_so() -> None:
    opened = Opened(sim_runtime(), {"auto.leader.rebalance.enable": "false"}, node_ids=(1, 2))
    opened.controller.create_topics([NewTopic("t", assignments=[(0, [1, 2])])])
    partitions = opened.controller.partitions
    duties = partitions.leader_duties
    partitions.reassign("t", 0, [2, 1])
    clock_of(opened).advance(300_000)
    duties.run_once(clock_of(opened).monotonic_ms())
    assert leader_of(opened) == 1
    assert partitions.elect_leaders(0, [TopicPartition("t", 0)]) == {TopicPartition("t", 0): None}
    assert leader_of(opened) == 2


def test_leaderless_partitions_are_looked_at_by_an_interval_of_their_own() -> None:
    opened = Opened(sim_runtime(), {"unclean.leader.election.interval.ms": "1000"}, node_ids=(1,))
    done: list[str] = []

    def note(what: str) -> int:
        done.append(what)
        return 0

    state = ControllerState(
        opened.metadata_log, opened.config, opened.controller.image, opened.runtime.clock
    )
    duties = LeaderDuties(state, lambda: note("balanced"), lambda: note("elected"))
    clock = clock_of(opened)
    clock.advance(1000)
    assert duties.run_once(clock.monotonic_ms()) == 1000
    assert done == ["elected"]
    clock.advance(299_000)
    duties.run_once(clock.monotonic_ms())
    assert done == ["elected", "balanced", "elected"]


def leader_of(opened: Opened) -> int:
    partition = opened.controller.image.partition("t", 0)
    assert partition is not None
    return partition.leader
