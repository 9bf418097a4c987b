"""Sessions read only the partitions that changed, and miss no change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from embedlog.replication import fetch_reader
from embedlog.replication.replica_manager import ReplicaManager
from embedlog.runtime.pending import Pending
from embedlog.storage.validation.origin import AppendOrigin
from tests.golden.batches import simple
from tests.golden.requests import Topic, fetch, produce
from tests.replication.conftest import Rig
from wire.error_codes import ErrorCode
from wire.schemas.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from wire.schemas.fetch import FetchResponse, PartitionData

MakeRig = Callable[..., Rig]
LONG_MS = 30_000
V = 12


class Session:
    """A consumer's session over all partitions of a topic, beginning at their ends."""

    def __init__(self, rig: Rig, topic: Topic, partitions: int) -> None:
        self.rig = rig
        self.topic = topic
        more = [(topic, index, 0) for index in range(1, partitions)]
        begun = rig.handle(fetch(topic, V, session_epoch=0, more=more), V)
        self.id = begun.session_id
        self.epoch = 0

    def send(self, topic: Topic | None = None, offset: int = 0, **how: Any) -> Any:
        self.epoch += 1
        request = fetch(topic, V, offset, session_id=self.id, session_epoch=self.epoch, **how)
        return self.rig.handle(request, V)

    def news(self, **how: Any) -> list[PartitionData]:
        response: FetchResponse = self.send(**how)
        assert response.error_code == ErrorCode.NONE
        return [found for topic in response.responses for found in topic.partitions]

    def moves_to(self, partition: int, offset: int, **how: Any) -> list[PartitionData]:
        """Fetch from `offset` on; return the news."""
        return self.news(topic=self.topic, partition=partition, offset=offset, **how)


@pytest.fixture
def looked_at(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the partitions that were read, in order."""
    seen: list[int] = []
    read = fetch_reader.read_partition

    def counted(partition: Any, *rest: Any, **named: Any) -> PartitionData:
        seen.append(partition.index)
        return read(partition, *rest, **named)

    monkeypatch.setattr(fetch_reader, "read_partition", counted)
    return seen


@pytest.fixture
def rig(make_rig: MakeRig) -> Rig:
    return make_rig()


@pytest.fixture
def topic(rig: Rig) -> Topic:
    made = rig.cluster.create_topic("t", 5)
    return made.name, made.topic_id


@pytest.fixture
def session(rig: Rig, topic: Topic, looked_at: list[int]) -> Session:
    """A session whose partitions all rest."""
    begun = Session(rig, topic, 5)
    assert begun.news() == []
    looked_at.clear()
    return begun


def put(rig: Rig, topic: Topic, partition: int, *values: bytes) -> None:
    rig.handle(produce(topic, 9, simple(*(values or (b"v",))), partition=partition), 9)


def test_an_idle_session_looks_at_nothing(session: Session, looked_at: list[int]) -> None:
    assert session.news() == []
    assert looked_at == []


def test_changed_partitions_are_read_in_the_order_of_the_session(
    session: Session, rig: Rig, topic: Topic, looked_at: list[int]
) -> None:
    for partition in (3, 1):
        put(rig, topic, partition)
    assert [found.partition_index for found in session.news()] == [1, 3]
    assert looked_at == [1, 3]
    assert [found.partition_index for found in session.news()] == [1, 3]
    assert session.moves_to(1, 1)[0].partition_index == 3
    looked_at.clear()
    assert session.moves_to(3, 1) == []
    assert session.news() == []
    assert set(looked_at) <= {1, 3}


def test_partitions_without_room_are_read_again(session: Session, rig: Rig, topic: Topic) -> None:
    for partition in (0, 1):
        put(rig, topic, partition, b"x" * 1000)
    first = session.news(max_bytes=1)
    assert [(found.partition_index, bool(found.records)) for found in first] == [
        (0, True),
        (1, False),
    ]
    # The partition that was read has moved to the end of the order.
    second = session.moves_to(0, 1, max_bytes=1)
    assert [(found.partition_index, bool(found.records)) for found in second] == [(1, True)]


def test_an_append_wakes_a_session_at_rest(session: Session, rig: Rig, topic: Topic) -> None:
    waiting = session.send(max_wait_ms=LONG_MS, min_bytes=1)
    assert isinstance(waiting, Pending)
    put(rig, topic, 4)
    assert waiting.done()
    [answered] = waiting.result().responses
    assert [found.partition_index for found in answered.partitions] == [4]


def test_a_session_waits_for_min_bytes_over_its_partitions(
    session: Session, rig: Rig, topic: Topic
) -> None:
    waiting = session.send(max_wait_ms=LONG_MS, min_bytes=2000)
    put(rig, topic, 4, b"x" * 1000)
    assert not waiting.done()
    put(rig, topic, 2, b"x" * 1000)
    [answered] = waiting.result().responses
    assert [found.partition_index for found in answered.partitions] == [2, 4]


def test_news_without_records_is_told_at_the_latest_when_time_is_over(
    session: Session, rig: Rig, topic: Topic
) -> None:
    put(rig, topic, 0)
    session.news()
    session.moves_to(0, 1)
    waiting = session.send(max_wait_ms=100, min_bytes=1)
    request = DeleteRecordsRequest(
        topics=[
            DeleteRecordsTopic(
                name=topic[0], partitions=[DeleteRecordsPartition(partition_index=0, offset=1)]
            )
        ],
        timeout_ms=1000,
    )
    rig.handle(request)
    assert not waiting.done()
    rig.runtime.scheduler.run_for(101)
    [answered] = waiting.result().responses
    [found] = answered.partitions
    assert (found.partition_index, found.log_start_offset) == (0, 1)
    assert session.news() == []


def test_a_deleted_topic_wakes_and_a_remade_one_is_followed(
    session: Session, rig: Rig, topic: Topic
) -> None:
    waiting = session.send(max_wait_ms=LONG_MS, min_bytes=1)
    rig.broker.controller.delete_topic(topic[1])
    rig.run_due()
    assert waiting.done()
    codes = {found.error_code for found in session.news()}
    assert codes == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    rig.cluster.create_topic(topic[0], 5)
    assert {found.error_code for found in session.news()} == {ErrorCode.NONE}
    assert session.news() == []
    waiting = session.send(max_wait_ms=LONG_MS, min_bytes=1)
    put(rig, topic, 2)
    assert waiting.done()


def test_a_new_leader_epoch_reaches_a_session_at_rest(
    session: Session, rig: Rig, topic: Topic
) -> None:
    asked = {"partition_fields": {"current_leader_epoch": 0}, "partition": 0}
    assert session.news(topic=topic, **asked) == []
    waiting = session.send(max_wait_ms=LONG_MS, min_bytes=1)
    rig.broker.controller.bump_leader_epochs([(topic[0], 0)])
    rig.run_due()
    [answered] = waiting.result().responses
    assert answered.partitions[0].error_code == ErrorCode.FENCED_LEADER_EPOCH


def test_another_isolation_looks_at_everything_again(
    session: Session, rig: Rig, topic: Topic
) -> None:
    open_batch = simple(b"open", attributes=0x10, producer_id=9, producer_epoch=0, base_sequence=0)
    partition = rig.manager.partition(topic[0], 0)
    rig.manager.append(partition, open_batch, acks=1, origin=AppendOrigin.COORDINATOR)
    told = session.news(isolation_level=1)
    assert [(found.high_watermark, bool(found.records)) for found in told] == [(1, False)]
    assert session.news(isolation_level=1) == []
    [found] = session.news(isolation_level=0)
    assert len(found.records or b"") == len(open_batch)


def test_ended_and_forgotten_partitions_follow_no_more(
    session: Session, rig: Rig, topic: Topic
) -> None:
    partitions = [rig.manager.partition(topic[0], index) for index in range(5)]
    assert [len(partition.watchers) for partition in partitions] == [1] * 5
    session.news(forgotten=[(topic, [0, 1])])
    assert [len(partition.watchers) for partition in partitions] == [0, 0, 1, 1, 1]
    rig.handle(fetch(None, V, session_id=session.id, session_epoch=-1), V)
    assert [len(partition.watchers) for partition in partitions] == [0] * 5


def test_an_interrupted_reading_forgets_no_change(
    session: Session, rig: Rig, topic: Topic, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(rig, topic, 3)
    manager: ReplicaManager = rig.manager

    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(fetch_reader, "read_partition", interrupted)
        with pytest.raises(KeyboardInterrupt):
            session.send()
    assert manager.partition(topic[0], 3).watchers
    assert [found.partition_index for found in session.news()] == [3]
