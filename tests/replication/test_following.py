"""Followers fetch, append, truncate, and take over the leader's offsets."""

from __future__ import annotations

from collections.abc import Callable
from errno import ENOSPC

import pytest

from embedlog.common import TopicPartition
from embedlog.replication.fetch_sessions import FetchSessions
from embedlog.storage.state_files.leader_epochs import read_epochs
from tests.replication.brokers import TOPIC, Brokers
from wire.schemas.fetch import FetchRequest

MakeBrokers = Callable[..., Brokers]
PARTITION = TopicPartition(TOPIC, 0)


def test_followers_have_the_leaders_records(make_brokers: MakeBrokers) -> None:
    brokers = make_brokers()
    brokers.controller.create(1, 2, 3)
    brokers.run()
    for number in range(5):
        brokers.append(1, b"%d" % number, b"more")
        brokers.run()
    assert brokers[2].values() == brokers[3].values() == brokers[1].values()
    assert {end for _, end in brokers.offsets().values()} == {10}
    assert brokers.offsets()[1] == (10, 10)


def test_no_time_passes_until_all_replicas_have_a_record(make_brokers: MakeBrokers) -> None:
    brokers = make_brokers()
    brokers.controller.create(1, 2, 3)
    brokers.run(60_000)
    began_ms = brokers.runtime.clock.monotonic_ms()
    brokers.append(1, b"a")
    brokers.run()
    assert brokers.offsets()[1] == (1, 1)
    assert brokers.runtime.clock.monotonic_ms() == began_ms


def test_a_partition_that_comes_later_does_not_wait_for_the_fetch_in_flight(
    make_brokers: MakeBrokers,
) -> None:
    brokers = make_brokers()
    brokers.controller.create(1, 2, 3)
    brokers.run(1)
    brokers.controller.create(1, 2, 3, index=1)
    brokers.append(1, b"a", index=1)
    brokers.run()
    assert brokers.offsets(1)[1] == (1, 1)


def test_followers_learn_the_high_watermark_with_their_next_answer(
    make_brokers: MakeBrokers,
) -> None:
    brokers = make_brokers()
    brokers.controller.create(1, 2, 3)
    brokers.run()
    brokers.append(1, b"a")
    brokers.run()
    assert brokers.offsets()[1] == (1, 1)
    brokers.run(501)
    assert set(brokers.offsets().values()) == {(1, 1)}


def test_a_follower_that_was_cut_off_catches_up(make_brokers: MakeBrokers) -> None:
    brokers = make_brokers()
    brokers.controller.create(1, 2, 3)
    brokers.run()
    brokers.isolate(3)
    for number in range(100):
        brokers.append(1, b"%d" % number)
    brokers.run(10)
    assert brokers.offsets()[2][1] == 100
    assert brokers.offsets()[1] == (0, 100), "a replica in sync has not got them"
    assert brokers.offsets()[3][1] == 0
    brokers.heal()
    brokers.run(1_100)
    assert brokers.offsets()[1] == (100, 100)
    assert brokers[3].values() == brokers[1].values()


def test_an_empty_replica_takes_everything(make_brokers: MakeBrokers) -> None:
    brokers = make_brokers(2, log={"segment_bytes": 400})
    brokers.controller.create(1)
    for number in range(50):
        brokers.append(1, b"%d" % number * 10)
    brokers.controller.change(replicas=(1, 2))
    brokers.run(2_000)
    assert brokers[2].values() == brokers[1].values()
    assert brokers.state().isr == (1, 2)


def test_a_replica_begins_at_the_leaders_log_start(make_brokers: MakeBrokers) -> None:
    brokers = make_brokers(2)
    brokers.controller.create(1)
    for number in range(10):
        brokers.append(1, b"%d" % number)
    brokers[1].partition().delete_records(7)
    brokers.net.delay_ms = lambda: 1
    brokers.controller.change(replicas=(1, 2))
    brokers.run(2_000)
    log = brokers[2].partition().log
    assert (log.offsets.log_start_offset, log.log_end_offset) == (7, 10)
    assert brokers[2].values() == [b"7", b"8", b"9"]


@pytest.mark.parametrize("start", range(4, 8))
def test_a_replica_begins_within_the_batch_that_holds_the_leaders_log_start(
    make_brokers: MakeBrokers, start: int
) -> None:
    brokers = make_brokers(2)
    brokers.controller.create(1)
    brokers.append(1, *[b"%d" % number for number in range(4)])
    brokers.append(1, *[b"%d" % number for number in range(4, 8)])
    brokers.append(1, b"8")
    brokers[1].partition().delete_records(start)
    brokers.controller.change(replicas=(1, 2))
    brokers.run(2_000)
    log = brokers[2].partition().log
    assert brokers.state().isr == (1, 2)
    assert (log.offsets.log_start_offset, log.log_end_offset) == (start, 9)
    assert log.segments[0].base_offset == 4


def test_a_replica_follows_the_leaders_log_start(make_brokers: MakeBrokers) -> None:
    brokers = make_brokers()
    brokers.controller.create(1, 2, 3)
    for number in range(10):
        brokers.append(1, b"%d" % number)
    brokers.run(1_000)
    brokers[1].partition().delete_records(4)
    brokers[1].replica_manager.records_deleted(brokers[1].partition())
    brokers.run(1_000)
    logs = [member.partition().log for member in brokers.members.values()]
    assert [log.offsets.log_start_offset for log in logs] == [4, 4, 4]


def test_a_replica_that_ends_below_the_leaders_start_begins_anew(
    make_brokers: MakeBrokers,
) -> None:
    brokers = make_brokers(2, replica_lag_time_max_ms=1000)
    brokers.controller.create(1, 2)
    brokers.append(1, b"old")
    brokers.run(600)
    brokers.isolate(2)
    brokers.net.cut -= {(1, 0), (0, 1)}
    for number in range(10):
        brokers.append(1, b"%d" % number)
    brokers.run(3_000)
    assert brokers.state().isr == (1,)
    brokers[1].partition().delete_records(8)
    brokers.heal()
    brokers.run(3_000)
    log = brokers[2].partition().log
    assert (log.offsets.log_start_offset, log.log_end_offset) == (8, 11)
    assert brokers.state().isr == (1, 2)


def test_a_former_leader_cuts_what_was_not_replicated(make_brokers: MakeBrokers) -> None:
    brokers = make_brokers()
    brokers.controller.create(1, 2, 3)
    brokers.append(1, b"kept")
    brokers.run(600)
    brokers.isolate(1)
    brokers.controller.withheld.add(1)
    brokers.append(1, b"lost 1", b"lost 2")
    brokers.append(1, b"lost 3")
    brokers.controller.elect(2, isr=(2, 3))
    brokers.append(2, b"new")
    brokers.run(600)
    brokers.heal()
    brokers.controller.tell_all(1)
    brokers.run(2_000)
    assert brokers[1].values() == brokers[2].values() == brokers[3].values() == [b"kept", b"new"]
    assert sorted(brokers.state().isr) == [1, 2, 3]
    assert brokers[1].partition().log.epochs.cache.entries == [(0, 0), (1, 1)]


def test_a_full_disk_at_the_end_of_a_term_does_not_keep_a_follower_from_catching_up(
    make_brokers: MakeBrokers,
) -> None:
    brokers = make_brokers()
    brokers.controller.create(1, 2, 3)
    brokers.append(1, b"kept")
    brokers.run(600)
    brokers.controller.elect(2)
    brokers.run(600)
    epochs, files = brokers[2].partition().log.epochs, brokers[2].files
    assert epochs.cache.entries == [(0, 0), (1, 1)]
    files.fail(files.calls, ENOSPC, forever=True)
    brokers.controller.elect(1)
    brokers.run(2_000)
    assert epochs.cache.entries == [(0, 0)]
    assert sorted(brokers.state().isr) == [1, 2, 3], "there is nothing that it must write"
    files.heal()
    (told,) = brokers[2].logs.health()
    assert told.subject == f"{PARTITION}: leader epochs"
    brokers.append(1, b"new")
    brokers.run(2_000)
    assert brokers[2].values() == [b"kept", b"new"]
    assert not brokers[2].logs.health()
    assert epochs.cache.entries == [(0, 0), (2, 1)]
    reopened = read_epochs(files.survivor(), brokers[2].partition().log.directory)
    assert reopened is not None
    assert reopened.entries == epochs.cache.entries


def test_a_log_without_epochs_is_cut_before_it_is_fetched_into_though_the_disk_was_full(
    make_brokers: MakeBrokers,
) -> None:
    brokers = make_brokers(replica_lag_time_max_ms=500)
    brokers.controller.create(1, 2)
    brokers.append(1, b"kept")
    brokers.run(600)
    brokers.isolate(1)
    brokers.append(1, b"lost")
    brokers.controller.elect(2, isr=(2,))
    brokers.append(2, b"new 1")
    brokers.append(2, b"new 2")
    log, files = brokers[1].partition().log, brokers[1].files
    log.epochs.clear()  # as of a log without records of the present format
    log.epochs.store()
    files.fail(files.calls, ENOSPC, forever=True)
    brokers.heal()
    brokers.controller.tell_all(1)
    brokers.run(5_000)
    files.heal()
    brokers.run(5_000)
    assert brokers[1].values() == brokers[2].values() == [b"kept", b"new 1", b"new 2"]


@pytest.mark.parametrize("is_new", [False, True])
def test_a_leader_that_hears_of_its_term_last_is_asked_again_soon(
    make_brokers: MakeBrokers, is_new: bool
) -> None:
    brokers = make_brokers()
    if is_new:
        brokers.controller.withheld.add(2)
        brokers.controller.create(2, 1, 3)
    else:
        brokers.controller.create(1, 2, 3)
        brokers.run()
        brokers.controller.withheld.add(2)
        brokers.controller.elect(2)
    brokers.run(3)
    brokers.controller.tell_all(2)
    brokers.append(2, b"a")
    brokers.run(20)
    assert brokers.offsets()[2] == (1, 1)


def test_a_leader_that_hears_nothing_is_asked_less_and_less(make_brokers: MakeBrokers) -> None:
    brokers = make_brokers(2)
    brokers.controller.create(1, 2)
    brokers.run()
    brokers.controller.withheld.add(1)
    brokers.controller.change(leader_epoch=1)
    brokers.sent.clear()
    brokers.run(60_000)
    asked = [each for _, _, each in brokers.sent if isinstance(each, FetchRequest) and each.topics]
    assert 60 < len(asked) < 75, "once a second in the end"


def test_histories_that_part_several_epochs_ago_are_cut_step_by_step(
    make_brokers: MakeBrokers,
) -> None:
    """Two isolated leaders wrote in turn: each step cuts one epoch."""
    brokers = make_brokers(2)
    brokers.controller.create(1, 2)
    brokers.append(1, b"0")
    brokers.run(600)
    for epoch in range(3):
        brokers.isolate(2)
        brokers.controller.withheld = {2}
        brokers.controller.elect(1, isr=(1,))
        brokers.controller.change(leader=1, leader_epoch=brokers.state().leader_epoch + 1)
        brokers.append(1, b"one %d" % epoch)
        brokers.controller.withheld = {1}
        brokers.controller.change(leader=2, isr=(2,))
        brokers.append(2, b"two %d" % epoch, b"two again")
    brokers.heal()
    brokers.controller.withheld = set()
    brokers.controller.tell(PARTITION)
    brokers.run(5_000)
    assert brokers[1].values() == brokers[2].values()
    assert brokers[2].values()[:2] == [b"0", b"two 0"]


def test_records_of_an_own_epoch_are_cut_where_the_former_epoch_ended_here(
    make_brokers: MakeBrokers,
) -> None:
    """The leader wrote more records of the common epoch than the follower ever had."""
    brokers = make_brokers(2)
    brokers.controller.create(1, 2)
    brokers.append(1, b"0")
    brokers.run(600)
    brokers.isolate(2)
    brokers.controller.withheld = {2}
    for number in range(4):
        brokers.append(1, b"one %d" % number)
    brokers.controller.withheld = {1}
    brokers.controller.change(leader=2, isr=(2,))
    brokers.append(2, b"two 0", b"two 1")
    brokers.controller.withheld = {2}
    brokers.controller.change(leader=1, isr=(1,))
    brokers.heal()
    brokers.net.delay_ms = lambda: 1
    brokers.controller.withheld = set()
    brokers.controller.tell(PARTITION)
    brokers.run(5_000)
    assert brokers[2].values() == brokers[1].values()
    assert len(brokers[1].values()) == 5


def test_a_follower_ahead_of_an_uncleanly_elected_leader_is_cut(
    make_brokers: MakeBrokers,
) -> None:
    brokers = make_brokers(2, replica_lag_time_max_ms=1000)
    brokers.controller.create(1, 2)
    brokers.append(1, b"a")
    brokers.run(600)
    brokers.isolate(2)
    brokers.net.cut -= {(1, 0), (0, 1)}
    for number in range(5):
        brokers.append(1, b"lost %d" % number)
    brokers.run(3_000)
    assert brokers.offsets()[1] == (6, 6)
    brokers.heal()
    brokers.controller.change(leader=2, isr=(2,), is_recovering=True)
    brokers.append(2, b"b")
    brokers.run(2_000)
    assert brokers[1].values() == brokers[2].values() == [b"a", b"b"]


def test_a_restarted_broker_goes_on_where_it_ended(make_brokers: MakeBrokers) -> None:
    brokers = make_brokers()
    brokers.controller.create(1, 2, 3)
    for number in range(5):
        brokers.append(1, b"%d" % number)
    brokers.run(600)
    disk = brokers.stop(3)
    brokers.append(1, b"meanwhile")
    brokers.run(600)
    brokers.start(3, disk)
    assert brokers.offsets()[3] == (5, 5)
    brokers.run(2_000)
    assert brokers[3].values() == brokers[1].values()
    assert sorted(brokers.state().isr) == [1, 2, 3]


def test_a_killed_broker_whose_log_began_an_epoch_of_its_own_follows(
    make_brokers: MakeBrokers,
) -> None:
    brokers = make_brokers()
    brokers.controller.create(1, 2, 3)
    for number in range(5):
        brokers.append(1, b"%d" % number)
    brokers.run(600)
    disk = brokers.kill(3)
    brokers.append(1, b"meanwhile")
    brokers.net.delay_ms = lambda: 1
    brokers.start(3, disk)
    brokers.run(2_000)
    assert brokers[3].values() == brokers[1].values()
    assert sorted(brokers.state().isr) == [1, 2, 3]


def test_a_synced_topic_is_synced_before_the_follower_asks_for_more(
    make_brokers: MakeBrokers,
) -> None:
    brokers = make_brokers(2, durability="fsync")
    brokers.controller.create(1, 2)
    brokers.append(1, b"a", acks=-1)
    brokers.run(600)
    assert brokers.offsets() == {1: (1, 1), 2: (1, 1)}
    assert brokers[2].partition().log.durability.synced_offset == 1


def test_a_held_replica_falls_behind_until_it_is_released(make_brokers: MakeBrokers) -> None:
    brokers = make_brokers()
    brokers.controller.create(1, 2, 3)
    brokers.run(1)
    brokers[3].replica_manager.fetchers.hold(PARTITION)
    brokers.run(1)
    brokers.append(1, b"a")
    brokers.run(600)
    assert brokers.offsets() == {1: (0, 1), 2: (0, 1), 3: (0, 0)}
    brokers[3].replica_manager.fetchers.release(PARTITION)
    brokers.run(600)
    assert set(brokers.offsets().values()) == {(1, 1)}


def test_an_idle_follower_names_no_partition(make_brokers: MakeBrokers) -> None:
    brokers = make_brokers(2)
    for index in range(20):
        brokers.controller.create(1, 2, index=index)
    brokers.run(2_000)
    brokers.sent.clear()
    brokers.run(5_000)
    assert len(brokers.sent) == 10
    assert all(not request.topics for _, _, request in brokers.sent)


def test_a_leader_without_room_for_sessions_is_followed_too(make_brokers: MakeBrokers) -> None:
    brokers = make_brokers(2)
    clock, random = brokers.runtime.clock, brokers.runtime.random
    brokers[1].fetch_sessions = FetchSessions(clock, random, slot_count=0)
    brokers.controller.create(1, 2)
    for number in range(3):
        brokers.append(1, b"%d" % number)
        brokers.run(100)
    assert brokers[2].values() == brokers[1].values()


def test_a_session_that_the_leader_has_lost_begins_anew(make_brokers: MakeBrokers) -> None:
    brokers = make_brokers(2)
    brokers.controller.create(1, 2)
    brokers.append(1, b"a")
    brokers.run(1_000)
    brokers[1].fetch_sessions = FetchSessions(brokers.runtime.clock, brokers.runtime.random)
    brokers.append(1, b"b")
    brokers.run(2_000)
    assert brokers[2].values() == [b"a", b"b"]
