"""After a change of leader, doubtful positions are validated first (KIP-320)."""

from __future__ import annotations

from typing import Any

import pytest

from embedlog import TopicPartition, errors
from embedlog.client.consumer.consumer import Consumer
from embedlog.client.consumer.group.group_offsets import OffsetAndMetadata
from embedlog.errors import LogTruncation
from embedlog.testing import SimRuntime, sim_runtime
from embedlog.transport import InProcessTransport
from tests.client.held_answers import HeldAnswers
from tests.client.scripted_broker import VERSIONS, Context, ScriptedBroker
from wire.api_keys import ApiKey
from wire.records import build_batch, iter_batches
from wire.schemas.fetch import FetchRequest
from wire.schemas.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)

HERE = TopicPartition("one", 0)


class EpochBroker(ScriptedBroker):
    """Also answers OffsetForLeaderEpoch from `ends`: (error code, epoch, end offset) each time."""

    def __init__(self, runtime: SimRuntime) -> None:
        super().__init__({"one": 1}, runtime)
        self.ends: list[tuple[int, int, int]] = []
        self.is_old = False
        for _ in range(3):
            self.append("one", 0, build_batch([b"a", b"b"], timestamps=1000))

    def transport(self) -> InProcessTransport:
        newest = 2 if self.is_old else 4
        served = {**VERSIONS, ApiKey.OFFSET_FOR_LEADER_EPOCH: (0, newest)}
        return InProcessTransport(self.handle, Context, served, self.runtime)

    def fetch_partition(self, name: str, asked: Any) -> Any:
        """Answers one batch at a time, so that the consumer's buffer stays empty."""
        answer = super().fetch_partition(name, asked)
        answer.records = next((batch.buffer for batch in iter_batches(answer.records)), b"")
        return answer

    def _OffsetForLeaderEpochRequest(self, request: Any) -> Any:
        code, epoch, offset = self.ends.pop(0)
        end = EpochEndOffset(error_code=code, partition=0, leader_epoch=epoch, end_offset=offset)
        result = OffsetForLeaderTopicResult(topic="one", partitions=[end])
        return OffsetForLeaderEpochResponse(topics=[result])


@pytest.fixture
def broker() -> EpochBroker:
    return EpochBroker(sim_runtime(seed=3))


def reader(broker: EpochBroker, policy: str = "earliest") -> Consumer:
    """A consumer that has read the first batch: offsets 0 and 1, leader epoch 0."""
    consumer = Consumer(
        broker.transport(),
        auto_offset_reset=policy,
        metadata_max_age_ms=1_000,
        max_poll_records=2,
        fetch_max_wait_ms=0,
    )
    consumer.assign([HERE])
    consumer.seek(HERE, 0)
    assert len(consumer.poll(10)) == 2
    return consumer


def another_leader(broker: EpochBroker) -> None:
    broker.leader_epoch = 1
    broker.runtime.clock.advance(2_000)  # type: ignore[attr-defined]


def offsets(records: Any) -> list[int]:
    return [record.offset for record in records]


def test_a_log_that_has_what_was_read_is_read_on(broker: EpochBroker) -> None:
    with reader(broker) as consumer:
        another_leader(broker)
        broker.ends = [(0, 0, 6)]
        consumer.poll(10)
        assert consumer.position(HERE) in {2, 4}
        (asked,) = broker.of_kind(OffsetForLeaderEpochRequest)
        (partition,) = asked.topics[0].partitions
        assert asked.replica_id == -1
        assert (partition.leader_epoch, partition.current_leader_epoch) == (0, 1)
        consumer.poll(2_000)
        assert len(broker.of_kind(OffsetForLeaderEpochRequest)) == 1, "once for a leader"


def test_a_log_that_was_cut_is_read_from_where_it_differs(broker: EpochBroker) -> None:
    with reader(broker) as consumer:
        another_leader(broker)
        broker.ends = [(0, 0, 1)]
        assert offsets(consumer.poll(10)) == [1], "the user has not read the records that follow"


def test_a_log_that_knows_nothing_of_the_epoch_is_read_by_the_policy(
    broker: EpochBroker,
) -> None:
    with reader(broker, "latest") as consumer:
        another_leader(broker)
        broker.ends = [(0, -1, -1)]
        assert not consumer.poll(10)
        assert consumer.position(HERE) == 6


@pytest.mark.parametrize(("end", "divergent"), [((0, 0, 1), 1), ((0, -1, -1), None)])
def test_without_a_policy_a_cut_log_is_an_error_until_the_user_seeks(
    broker: EpochBroker, end: tuple[int, int, int], divergent: int | None
) -> None:
    with reader(broker, "none") as consumer:
        another_leader(broker)
        broker.ends = [end, end]
        for _ in range(2):
            with pytest.raises(LogTruncation, match="one-0 at 2") as caught:
                consumer.poll(10)
            assert caught.value.positions == {HERE: 2}
            assert caught.value.divergent_offsets == {HERE: divergent}
        consumer.seek(HERE, 1)
        assert offsets(consumer.poll(10)) == [1]


@pytest.mark.parametrize("code", [74, 75, 6, 3])
def test_a_leader_that_is_none_is_asked_again_later(broker: EpochBroker, code: int) -> None:
    with reader(broker) as consumer:
        another_leader(broker)
        broker.ends = [(code, -1, -1), (code, -1, -1), (0, 0, 6)]
        assert offsets(consumer.poll(5_000)) == [2, 3]
        assert len(broker.of_kind(OffsetForLeaderEpochRequest)) == 3


def test_a_refusal_for_good_is_raised(broker: EpochBroker) -> None:
    with reader(broker) as consumer:
        another_leader(broker)
        broker.ends = [(29, -1, -1), (0, 0, 6)]
        with pytest.raises(errors.TopicAuthorizationFailed, match="one-0"):
            consumer.poll(5_000)
        assert offsets(consumer.poll(10)) == [2, 3]


def test_an_offset_with_an_epoch_is_proven_first(broker: EpochBroker) -> None:
    with reader(broker, "none") as consumer:
        broker.ends = [(0, 0, 3)]
        consumer.seek(HERE, OffsetAndMetadata(4, "", 0))
        with pytest.raises(LogTruncation, match="one-0 at 4"):
            consumer.poll(10)
        broker.ends = [(0, 0, 6)]
        consumer.seek(HERE, OffsetAndMetadata(4, "", 0))
        assert consumer.position(HERE) == 4
        consumer.seek(HERE, OffsetAndMetadata(2))
        assert len(broker.of_kind(OffsetForLeaderEpochRequest)) == 2
        assert offsets(consumer.poll(10)) == [2, 3]


def test_an_answer_to_an_older_position_is_dropped(broker: EpochBroker) -> None:
    with reader(broker) as consumer:
        another_leader(broker)
        broker.ends = [(6, -1, -1)]
        consumer.poll(0)
        consumer.seek(HERE, 5)
        assert offsets(consumer.poll(500)) == [5]


def test_a_broker_too_old_to_prove_it_is_believed(broker: EpochBroker) -> None:
    broker.is_old = True
    with reader(broker) as consumer:
        another_leader(broker)
        assert offsets(consumer.poll(500)) == [2, 3]
        assert not broker.of_kind(OffsetForLeaderEpochRequest)


def test_nothing_is_fetched_until_it_is_proven(broker: EpochBroker) -> None:
    with reader(broker) as consumer:
        another_leader(broker)
        broker.ends = [(6, -1, -1)]
        fetched = len(broker.of_kind(FetchRequest))
        assert not consumer.poll(50)
        assert len(broker.of_kind(FetchRequest)) == fetched
        broker.ends = [(0, 0, 6)]
        assert offsets(consumer.poll(500)) == [2, 3]


@pytest.mark.parametrize(("first", "count"), [(6, 1), (7, 1), (6, 2)])
def test_a_position_has_the_epoch_of_the_batch_that_was_read_last(
    broker: EpochBroker, first: int, count: int
) -> None:
    """Also if only the second half of the batch was read, or the first."""
    with reader(broker) as consumer:
        broker.leader_epoch = 1
        broker.append("one", 0, build_batch([b"c", b"d"], timestamps=1000))
        consumer.seek(HERE, first)
        assert len(consumer.poll(10, max_records=count)) == count
        broker.leader_epoch = 2
        broker.runtime.clock.advance(2_000)  # type: ignore[attr-defined]
        broker.ends = [(0, 1, 8)]
        assert consumer.position(HERE) == first + count
        asked = broker.of_kind(OffsetForLeaderEpochRequest)[-1].topics[0].partitions[0]
        assert asked.leader_epoch == 1


def test_a_position_without_an_epoch_cannot_be_proven_and_is_believed(broker: EpochBroker) -> None:
    with reader(broker) as consumer:
        consumer.seek(HERE, 4)
        another_leader(broker)
        assert offsets(consumer.poll(10)) == [4, 5]
        assert not broker.of_kind(OffsetForLeaderEpochRequest)


def test_records_of_a_deposed_leader_are_not_handed_out_after_the_proof(
    broker: EpochBroker,
) -> None:
    late = HeldAnswers(broker)
    with reader(broker) as consumer:
        late.hold(FetchRequest)
        consumer.poll(0)
        assert len(late.held) == 1
        another_leader(broker)
        broker.ends = [(0, 0, 2)]
        del broker.logs["one", 0][1:]
        broker.append("one", 0, build_batch([b"new", b"newer"], timestamps=1000))
        assert not consumer.poll(300), "the fetch is still under way"
        assert consumer.position(HERE) == 2
        late.release()
        assert [record.value for record in consumer.poll(300)] == [b"new", b"newer"]


def test_the_back_off_of_a_position_ends_with_it(broker: EpochBroker) -> None:
    with reader(broker) as consumer:
        fetch, refused = broker.fetch_partition, [True]

        def refuse_once(name: str, asked: Any) -> Any:
            answer = fetch(name, asked)
            if refused:
                answer.error_code = 9 * refused.pop()  # REPLICA_NOT_AVAILABLE
            return answer

        broker.fetch_partition = refuse_once  # type: ignore[method-assign]
        assert not consumer.poll(0)
        assert not refused
        consumer.seek(HERE, 4)
        assert offsets(consumer.poll(0)) == [4, 5]
