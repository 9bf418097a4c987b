"""Consumers that read from followers, and a leader's answers just after its election."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from embedlog.common import TopicPartition
from embedlog.runtime.pending import Pending
from tests.golden.requests import fetch, list_offsets
from tests.replication.brokers import TOPIC, Brokers
from wire.error_codes import ErrorCode
from wire.schemas.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from wire.schemas.fetch import PartitionData
from wire.schemas.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)

MakeBrokers = Callable[..., Brokers]
PARTITION = TopicPartition(TOPIC, 0)
SELECTOR = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
V = 18


def read(
    brokers: Brokers, node_id: int, offset: int = 0, *, version: int = V, **how: Any
) -> PartitionData:
    """Return the result of a consumer's fetch without waiting."""
    topic = TOPIC, brokers.controller.topic_ids[TOPIC]
    answer = brokers[node_id].handle(fetch(topic, version, offset, **how), version)
    [found] = answer.responses[0].partitions
    return found  # type: ignore[no-any-return]


def in_racks(brokers: Brokers, **racks: str) -> None:
    """Place brokers in racks: b1="a" is broker 1 in rack a."""
    for member in brokers.members.values():
        member.membership.racks = {int(name[1:]): rack for name, rack in racks.items()}


@pytest.fixture
def brokers(make_brokers: MakeBrokers) -> Brokers:
    made = make_brokers(replica_selector_class=SELECTOR)
    in_racks(made, b1="a", b2="b", b3="b")
    made.controller.create(1, 2, 3)
    for number in range(5):
        made.append(1, b"%d" % number)
    made.run(1_000)
    return made


def test_a_consumer_is_sent_to_its_rack(brokers: Brokers) -> None:
    found = read(brokers, 1, rack_id="b")
    assert found.preferred_read_replica in (2, 3)
    assert (found.error_code, found.records) == (ErrorCode.NONE, b"")
    assert found.high_watermark == 5


@pytest.mark.parametrize("rack", ["a", "c", ""])
def test_one_in_the_leaders_rack_or_in_nobodys_stays(brokers: Brokers, rack: str) -> None:
    found = read(brokers, 1, rack_id=rack)
    assert found.preferred_read_replica == -1
    assert found.records


def test_a_replica_must_be_in_sync_and_have_the_offset(brokers: Brokers) -> None:
    brokers[2].replica_manager.fetchers.hold(PARTITION)
    brokers.run(1)
    brokers.append(1, b"5")
    brokers.run(1)
    assert read(brokers, 1, 5, rack_id="b").preferred_read_replica == 2 + 1
    brokers.controller.change(isr=(1, 2))
    assert read(brokers, 1, 3, rack_id="b").preferred_read_replica == 2
    brokers.controller.alive.discard(2)
    assert read(brokers, 1, 3, rack_id="b").preferred_read_replica == -1


def test_without_a_selector_nobody_is_sent_away(make_brokers: MakeBrokers) -> None:
    brokers = make_brokers()
    in_racks(brokers, b1="a", b2="b")
    brokers.controller.create(1, 2)
    brokers.append(1, b"a")
    brokers.run(1_000)
    assert read(brokers, 1, rack_id="b").preferred_read_replica == -1


def test_a_consumer_that_waits_at_the_end_is_sent_away_at_once(brokers: Brokers) -> None:
    found = read(brokers, 1, 5, rack_id="b", max_wait_ms=500, min_bytes=1)
    assert found.preferred_read_replica == 3


def test_a_follower_gives_what_is_committed_as_far_as_it_knows(make_brokers: MakeBrokers) -> None:
    brokers = make_brokers(2)
    brokers.controller.create(1, 2)
    brokers.append(1, b"a")
    brokers.run(600)
    brokers.append(1, b"b")
    brokers.run(1)
    assert brokers.offsets()[2] == (1, 2)
    assert len(read(brokers, 2).records or b"") == len(read(brokers, 1).records or b"") / 2
    behind = read(brokers, 2, 2)
    assert (behind.error_code, behind.records) == (ErrorCode.NONE, b"")
    assert read(brokers, 2, 3).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert read(brokers, 2, version=10).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


@pytest.mark.parametrize(
    "epoch, code",
    [(0, ErrorCode.FENCED_LEADER_EPOCH), (1, ErrorCode.NONE), (2, ErrorCode.UNKNOWN_LEADER_EPOCH)],
)
def test_a_follower_checks_the_epoch_as_a_leader_does(
    make_brokers: MakeBrokers, epoch: int, code: int
) -> None:
    brokers = make_brokers(2)
    brokers.controller.create(1, 2)
    brokers.controller.elect(2)
    brokers.run(600)
    found = read(brokers, 1, partition_fields={"current_leader_epoch": epoch})
    assert found.error_code == code


def test_a_fetch_that_waits_at_a_follower_is_woken_by_its_high_watermark(brokers: Brokers) -> None:
    topic = TOPIC, brokers.controller.topic_ids[TOPIC]
    waiting = brokers[2].handle(fetch(topic, V, 5, max_wait_ms=30_000, min_bytes=1), V)
    assert isinstance(waiting, Pending)
    brokers.append(1, b"new")
    brokers.run()
    assert waiting.done(), "no time has passed"
    [found] = waiting.result().responses[0].partitions
    assert found.high_watermark == 6
    assert found.records


def offset_of(brokers: Brokers, node_id: int, timestamp: int, **how: Any) -> tuple[int, int]:
    """Return (error code, offset) from ListOffsets."""
    version = how.pop("version", 11)
    answer = brokers[node_id].handle(list_offsets(TOPIC, timestamp, **how), version)
    [found] = answer.topics[0].partitions
    return found.error_code, found.offset


def test_after_an_election_the_end_is_not_known_until_it_is_committed(
    make_brokers: MakeBrokers,
) -> None:
    brokers = make_brokers()
    brokers.controller.create(1, 2, 3)
    brokers.append(1, b"a", b"b")
    brokers.run(1)
    brokers[3].replica_manager.fetchers.hold(PARTITION)
    brokers.run(1)
    assert brokers.offsets()[2] == (0, 2)
    brokers.controller.elect(2)
    assert offset_of(brokers, 2, -1) == (ErrorCode.OFFSET_NOT_AVAILABLE, -1)
    assert offset_of(brokers, 2, -1, version=5) == (ErrorCode.OFFSET_NOT_AVAILABLE, -1)
    assert offset_of(brokers, 2, -1, version=4) == (ErrorCode.LEADER_NOT_AVAILABLE, -1)
    assert offset_of(brokers, 2, -1, replica_id=3) == (ErrorCode.NONE, 2)
    assert offset_of(brokers, 2, -2) == (ErrorCode.NONE, 0)
    assert offset_of(brokers, 2, 0) == (ErrorCode.OFFSET_NOT_AVAILABLE, -1)
    assert offset_of(brokers, 2, -5) == (ErrorCode.NONE, -1)
    assert offset_of(brokers, 1, -1) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)
    assert offset_of(brokers, 1, -1, replica_id=-2) == (ErrorCode.NONE, 2)
    brokers[3].replica_manager.fetchers.release(PARTITION)
    brokers.run(1_000)
    assert offset_of(brokers, 2, -1) == (ErrorCode.NONE, 2)
    assert offset_of(brokers, 2, 0) == (ErrorCode.NONE, 0)


def epoch_end(brokers: Brokers, node_id: int, epoch: int, current: int) -> tuple[int, int, int]:
    request = OffsetForLeaderEpochRequest(
        replica_id=3,
        topics=[
            OffsetForLeaderTopic(
                topic=TOPIC,
                partitions=[
                    OffsetForLeaderPartition(
                        partition=0, current_leader_epoch=current, leader_epoch=epoch
                    )
                ],
            )
        ],
    )
    [found] = brokers[node_id].handle(request).topics[0].partitions
    return found.error_code, found.leader_epoch, found.end_offset


def test_a_follower_may_ask_the_leader_where_an_epoch_ended(make_brokers: MakeBrokers) -> None:
    brokers = make_brokers()
    brokers.controller.create(1, 2, 3)
    brokers.append(1, b"a", b"b")
    brokers.run(600)
    brokers.controller.elect(2)
    brokers.append(2, b"c")
    brokers.run(600)
    assert epoch_end(brokers, 2, 0, 1) == (ErrorCode.NONE, 0, 2)
    assert epoch_end(brokers, 2, 1, 1) == (ErrorCode.NONE, 1, 3)
    assert epoch_end(brokers, 2, 2, 1) == (ErrorCode.NONE, -1, -1)
    assert epoch_end(brokers, 2, 0, 0)[0] == ErrorCode.FENCED_LEADER_EPOCH
    assert epoch_end(brokers, 2, 0, 2)[0] == ErrorCode.UNKNOWN_LEADER_EPOCH
    assert epoch_end(brokers, 1, 0, 1)[0] == ErrorCode.NOT_LEADER_OR_FOLLOWER


def delete(brokers: Brokers, offset: int, timeout_ms: int = 5_000) -> Any:
    request = DeleteRecordsRequest(
        topics=[
            DeleteRecordsTopic(
                name=TOPIC, partitions=[DeleteRecordsPartition(partition_index=0, offset=offset)]
            )
        ],
        timeout_ms=timeout_ms,
    )
    answer = brokers[1].handle(request)
    assert isinstance(answer, Pending)
    began_ms = brokers.runtime.clock.monotonic_ms()
    brokers.runtime.scheduler.wait(answer, None)
    [found] = answer.result().topics[0].partitions
    return found.error_code, found.low_watermark, brokers.runtime.clock.monotonic_ms() - began_ms


def test_delete_records_waits_for_the_live_replicas(make_brokers: MakeBrokers) -> None:
    brokers = make_brokers()
    brokers.controller.create(1, 2, 3)
    for number in range(5):
        brokers.append(1, b"%d" % number)
    brokers.run(1_000)
    assert delete(brokers, 3) == (ErrorCode.NONE, 3, 0), "no time has passed"
    brokers[3].replica_manager.fetchers.hold(PARTITION)
    brokers.run(1)
    assert delete(brokers, 4)[0] == ErrorCode.REQUEST_TIMED_OUT
    brokers.controller.alive.discard(3)
    assert delete(brokers, 5)[:2] == (ErrorCode.NONE, 5)
