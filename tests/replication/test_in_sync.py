"""The in-sync replicas, committed records, and the wait of acks=all."""

from __future__ import annotations

from collections.abc import Callable

from embedlog import errors
from embedlog.common import TopicPartition
from embedlog.replication.leader_and_isr import LeaderAndIsr
from embedlog.runtime.pending import Pending
from tests.golden.batches import simple
from tests.golden.requests import produce
from tests.replication.brokers import CONTROLLER, TOPIC, Brokers
from wire.error_codes import ErrorCode
from wire.schemas.fetch import FetchPartition, FetchRequest, FetchTopic, ReplicaState

MakeBrokers = Callable[..., Brokers]
PARTITION = TopicPartition(TOPIC, 0)
LAG_MS = 10_000


def lose(brokers: Brokers, node_id: int) -> None:
    """Cut a follower off; the others still reach the controller."""
    brokers.isolate(node_id)
    for other in brokers.members:
        if other != node_id:
            brokers.net.cut -= {(other, CONTROLLER), (CONTROLLER, other)}


def produced(brokers: Brokers, node_id: int = 1, *, acks: int = -1, timeout_ms: int = 5_000) -> int:
    """Return the error code of a produce, however long it takes."""
    topic = TOPIC, brokers.controller.topic_ids[TOPIC]
    answer = brokers[node_id].handle(
        produce(topic, 13, simple(b"x"), acks=acks, timeout_ms=timeout_ms)
    )
    if isinstance(answer, Pending):
        brokers.runtime.scheduler.wait(answer, None)
        answer = answer.result()
    code: int = answer.responses[0].partition_responses[0].error_code
    return code


def test_a_follower_that_lags_leaves_and_comes_back(make_brokers: MakeBrokers) -> None:
    brokers = make_brokers(replica_lag_time_max_ms=LAG_MS)
    brokers.controller.create(1, 2, 3)
    brokers.run(600)
    lose(brokers, 3)
    brokers.append(1, b"a")
    brokers.run(LAG_MS - 1_000)
    assert brokers.state().isr == (1, 2, 3)
    assert brokers.offsets()[1] == (0, 1)
    brokers.run(LAG_MS)
    assert brokers.state().isr == (1, 2)
    assert brokers.offsets()[1] == (1, 1)
    brokers.heal()
    brokers.run(2_000)
    assert brokers.state().isr == (1, 2, 3)
    assert brokers.proposals == [
        (1, [(1, 101), (2, 201)]),
        (1, [(1, 101), (2, 201), (3, 301)]),
    ]


def test_an_idle_follower_stays_in_sync_for_ever(make_brokers: MakeBrokers) -> None:
    brokers = make_brokers(replica_lag_time_max_ms=LAG_MS)
    brokers.controller.create(1, 2, 3)
    brokers.run(10 * LAG_MS)
    brokers.append(1, b"a")
    brokers.run(10 * LAG_MS)
    assert not brokers.proposals


def test_one_that_died_while_idle_leaves_when_there_is_something_to_fetch(
    make_brokers: MakeBrokers,
) -> None:
    brokers = make_brokers(replica_lag_time_max_ms=LAG_MS)
    brokers.controller.create(1, 2, 3)
    brokers.run(600)
    lose(brokers, 3)
    brokers.run(10 * LAG_MS)
    assert brokers.state().isr == (1, 2, 3), "it has all there is"
    brokers.append(1, b"a")
    brokers.run(LAG_MS // 2 + 1)
    assert brokers.state().isr == (1, 2), "it was last seen long ago"


def test_a_slow_but_steady_follower_stays_in_sync(make_brokers: MakeBrokers) -> None:
    """It is never at the end, but always gets to the recent end of the log."""
    brokers = make_brokers(2, replica_lag_time_max_ms=LAG_MS)
    brokers.controller.create(1, 2)
    brokers.net.delay_ms = lambda: 700
    for _ in range(100):
        brokers.append(1, b"a")
        brokers.run(500)
    assert not brokers.proposals
    assert brokers.offsets()[2][1] > 90


def test_who_joins_counts_for_the_high_watermark_before_the_controller_agrees(
    make_brokers: MakeBrokers,
) -> None:
    brokers = make_brokers(2)
    brokers.controller.create(1)
    brokers.append(1, b"a")
    brokers.net.cut |= {(1, CONTROLLER)}
    brokers.controller.change(replicas=(1, 2))
    brokers.run(100)
    others = brokers[1].partition().remote_replicas
    assert others is not None
    assert others.maximal_isr == (1, 2)
    assert brokers[1].partition().isr == (1,)
    brokers[2].replica_manager.fetchers.hold(PARTITION)
    brokers.run(1)
    brokers.append(1, b"b")
    assert brokers.offsets()[1] == (1, 2)
    brokers.heal()
    brokers.run(100)
    assert brokers.state().isr == (1, 2)
    brokers[2].replica_manager.fetchers.release(PARTITION)
    brokers.run(100)
    assert brokers.offsets()[1] == (2, 2)


def test_a_replica_that_the_controller_may_have_added_counts_though_it_lags(
    make_brokers: MakeBrokers,
) -> None:
    brokers = make_brokers(2, replica_lag_time_max_ms=LAG_MS)
    brokers.controller.create(1)
    brokers.append(1, b"a")
    brokers.net.cut |= {(1, CONTROLLER)}
    brokers.controller.change(replicas=(1, 2))
    brokers.run(100)
    brokers[2].replica_manager.fetchers.hold(PARTITION)
    brokers.run(1)
    brokers.append(1, b"b")
    brokers.run(3 * LAG_MS)
    brokers.append(1, b"c")
    assert brokers.offsets()[1] == (1, 3), "the answer of the controller may be lost"
    brokers[2].replica_manager.fetchers.release(PARTITION)
    brokers.heal()
    brokers.run(1_000)
    assert brokers.offsets() == {1: (3, 3), 2: (3, 3)}


def test_a_shrink_counts_when_the_controller_has_agreed(make_brokers: MakeBrokers) -> None:
    brokers = make_brokers(2, replica_lag_time_max_ms=LAG_MS)
    brokers.controller.create(1, 2)
    brokers.run(600)
    brokers.isolate(2)
    brokers.net.cut |= {(1, CONTROLLER)}
    brokers.append(1, b"a")
    brokers.run(3 * LAG_MS)
    others = brokers[1].partition().remote_replicas
    assert others is not None
    assert others.proposal is not None
    assert others.proposal.isr == (1,)
    assert brokers.offsets()[1] == (0, 1)
    brokers.heal()
    brokers.net.cut = {(2, 1)}
    brokers.run(100)
    assert brokers.state().isr == (1,)
    assert brokers.offsets()[1] == (1, 1)


def test_a_proposal_that_comes_too_late_waits_for_the_metadata(
    make_brokers: MakeBrokers,
) -> None:
    brokers = make_brokers()
    brokers.controller.create(1, 2)
    brokers.run(1)
    brokers.net.cut = {(3, 1)}
    brokers.controller.change(replicas=(1, 2, 3))
    brokers.controller.withheld = {1}
    brokers.controller.change()
    brokers.heal()
    brokers.run(5_000)
    assert brokers.proposals == [(1, [(1, 101), (2, 201), (3, 301)])]
    assert brokers.state().isr == (1, 2)
    brokers.controller.tell_all(1)
    brokers.append(1, b"a")
    brokers.run(100)
    assert brokers.state().isr == (1, 2, 3)


def test_an_ineligible_replica_does_not_come_in_sync(make_brokers: MakeBrokers) -> None:
    brokers = make_brokers(2)
    brokers.controller.create(1)
    brokers.controller.change(replicas=(1, 2))
    brokers.controller.alive.discard(2)
    brokers.run(2_000)
    brokers.append(1, b"a")
    brokers.run(2_000)
    assert brokers.offsets()[2][1] == 1
    assert brokers.proposals == []
    brokers.controller.alive.add(2)
    brokers.append(1, b"b")
    brokers.run(100)
    assert brokers.state().isr == (1, 2)


def test_a_refused_replica_is_proposed_again(make_brokers: MakeBrokers) -> None:
    brokers = make_brokers(2)
    brokers.controller.create(1)
    refusals = [errors.IneligibleReplica()]
    alter = brokers.controller.alter

    def refuse_once(*args: object, **how: object) -> LeaderAndIsr:
        if refusals:
            raise refusals.pop()
        return alter(*args, **how)  # type: ignore[arg-type]

    brokers.controller.alter = refuse_once  # type: ignore[method-assign]
    brokers.controller.change(replicas=(1, 2))
    brokers.run(100)
    assert brokers.state().isr == (1,)
    brokers.run(1_000)
    assert brokers.state().isr == (1, 2), "though it has nothing to fetch"


def test_acks_all_waits_for_every_replica_in_sync(make_brokers: MakeBrokers) -> None:
    brokers = make_brokers()
    brokers.controller.create(1, 2, 3)
    assert produced(brokers) == ErrorCode.NONE
    assert {end for _, end in brokers.offsets().values()} == {1}
    brokers[3].replica_manager.fetchers.hold(PARTITION)
    brokers.run(1)
    assert produced(brokers) == ErrorCode.REQUEST_TIMED_OUT
    assert produced(brokers, acks=1) == ErrorCode.NONE


def test_acks_1_waits_for_the_leaders_disk_alone(make_brokers: MakeBrokers) -> None:
    brokers = make_brokers(2, durability="fsync")
    brokers.controller.create(1, 2)
    brokers.run(600)
    brokers[2].replica_manager.fetchers.hold(PARTITION)
    brokers.run(1)
    assert produced(brokers, acks=1) == ErrorCode.NONE
    partition = brokers[1].partition()
    assert partition.log.durability.synced_offset == 1
    assert partition.log.offsets.high_watermark == 0


def test_too_few_in_sync_refuse_acks_all(make_brokers: MakeBrokers) -> None:
    brokers = make_brokers(replica_lag_time_max_ms=LAG_MS)
    brokers.controller.create(1, 2, 3, min_isr=2)
    assert produced(brokers) == ErrorCode.NONE
    brokers.controller.change(isr=(1,))
    lose(brokers, 2)
    brokers.net.cut |= {(3, 1), (1, 3)}
    assert produced(brokers) == ErrorCode.NOT_ENOUGH_REPLICAS
    end = brokers[1].partition().log.log_end_offset
    assert produced(brokers, acks=1) == ErrorCode.NONE
    assert brokers.offsets()[1] == (end, end + 1), "nothing is committed by too few"
    brokers.heal()
    brokers.run(2_000)
    assert brokers.offsets()[1] == (end + 1, end + 1)


def test_a_new_leader_commits_nothing_before_it_has_heard_of_the_others(
    make_brokers: MakeBrokers,
) -> None:
    brokers = make_brokers()
    brokers.controller.create(1, 2, 3)
    brokers.append(1, b"a")
    brokers.run(600)
    brokers[3].replica_manager.fetchers.hold(PARTITION)
    brokers.run(1)
    brokers.controller.elect(2)
    brokers.append(2, b"b")
    brokers.run(600)
    assert brokers.offsets()[2] == (1, 2)
    brokers[3].replica_manager.fetchers.release(PARTITION)
    brokers.run(600)
    assert brokers.offsets()[2] == (2, 2)


def follower_fetch(brokers: Brokers, replica_id: int, epoch: int, offset: int = 0) -> int:
    request = FetchRequest(
        replica_state=ReplicaState(replica_id=replica_id, replica_epoch=epoch),
        topics=[
            FetchTopic(
                topic_id=brokers.controller.topic_ids[TOPIC],
                partitions=[FetchPartition(fetch_offset=offset, partition_max_bytes=1000)],
            )
        ],
    )
    code: int = brokers[1].handle(request).responses[0].partitions[0].error_code
    return code


def test_only_the_partitions_own_replicas_may_fetch_as_such(make_brokers: MakeBrokers) -> None:
    brokers = make_brokers()
    brokers.controller.create(1, 2)
    assert follower_fetch(brokers, 2, 201) == ErrorCode.NONE
    assert follower_fetch(brokers, 3, 301) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert follower_fetch(brokers, 2, 200) == ErrorCode.NOT_LEADER_OR_FOLLOWER, "an earlier life"
    assert follower_fetch(brokers, 2, 201, offset=5) == ErrorCode.OFFSET_OUT_OF_RANGE
    others = brokers[1].partition().remote_replicas
    assert others is not None
    replica = others.find(2)
    assert replica is not None
    assert replica.log_end_offset == 0
