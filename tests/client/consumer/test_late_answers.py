"""An answer counts only for its question, and only while the asker is in the same state.

Each test asks, changes the state, and lets the answer arrive afterwards.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from embedlog import TopicPartition, errors
from embedlog.client.consumer.consumer import Consumer
from embedlog.errors import TimedOut
from embedlog.testing import sim_runtime
from embedlog.transport import InProcessTransport
from tests.client.held_answers import HeldAnswers
from tests.client.scripted_broker import VERSIONS, Context, ScriptedBroker
from wire.api_keys import ApiKey
from wire.records import build_batch, iter_batches
from wire.schemas.fetch import FetchRequest
from wire.schemas.list_offsets import ListOffsetsRequest
from wire.schemas.metadata import MetadataResponse
from wire.schemas.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)

HERE, THERE, ELSEWHERE = TopicPartition("x", 0), TopicPartition("x", 1), TopicPartition("x", 2)
_NOBODY = -1


class Broker(ScriptedBroker):
    """Nodes 1, 2 and 3 lead partitions 0, 1 and 2; `epochs` are the leader epochs."""

    def __init__(self) -> None:
        super().__init__({"x": 3}, sim_runtime(seed=5))
        self.leaders = {("x", 1): 2, ("x", 2): 3}
        self.epochs = [0, 0, 0]
        self.refused: dict[int, int] = {}
        """Error codes of fetches by partition."""
        for partition in range(3):
            self.write(partition)

    def write(self, partition: int) -> None:
        """Append two records."""
        self.append("x", partition, build_batch([b"a", b"b"], timestamps=1000))

    def append(self, topic: str, partition: int, records: Any) -> int:
        self.leader_epoch = self.epochs[partition]
        return super().append(topic, partition, records)

    def transport(self) -> InProcessTransport:
        served = {**VERSIONS, ApiKey.OFFSET_FOR_LEADER_EPOCH: (0, 4)}
        return InProcessTransport(self.handle, Context, served, self.runtime)

    def another_leader(self, partition: int) -> None:
        """Raise the leader epoch; the consumer learns it with the next metadata."""
        self.epochs[partition] += 1
        self.runtime.clock.advance(2_000)  # type: ignore[attr-defined]

    def _MetadataRequest(self, request: Any) -> Any:
        answer: MetadataResponse = super()._MetadataRequest(request)
        answer.brokers = [each for each in answer.brokers if each.node_id != _NOBODY]
        for topic in answer.topics:
            for each in topic.partitions:
                each.leader_epoch = self.epochs[each.partition_index]
        return answer

    def fetch_partition(self, name: str, asked: Any) -> Any:
        """Answers one batch at a time, so that the consumer's buffer stays empty."""
        answer = super().fetch_partition(name, asked)
        answer.records = next((batch.buffer for batch in iter_batches(answer.records)), b"")
        answer.error_code = self.refused.get(asked.partition, answer.error_code)
        return answer

    def _OffsetForLeaderEpochRequest(self, request: Any) -> Any:
        """Every epoch ends where the log ends now."""
        (topic,) = request.topics
        ends = [
            EpochEndOffset(
                partition=each.partition,
                leader_epoch=each.leader_epoch,
                end_offset=self.end_offset("x", each.partition),
            )
            for each in topic.partitions
        ]
        results = [OffsetForLeaderTopicResult(topic="x", partitions=ends)]
        return OffsetForLeaderEpochResponse(topics=results)


@pytest.fixture
def broker() -> Broker:
    return Broker()


@pytest.fixture
def late(broker: Broker) -> HeldAnswers:
    return HeldAnswers(broker)


def reader(broker: Broker, *partitions: TopicPartition, **settings: Any) -> Consumer:
    chosen = {"auto_offset_reset": "earliest", "metadata_max_age_ms": 1_000, **settings}
    consumer = Consumer(broker.transport(), fetch_max_wait_ms=0, **chosen)
    consumer.assign(partitions)
    return consumer


def offsets(consumer: Consumer, partition: int = 0, timeout_ms: int = 300) -> list[int]:
    return [record.offset for record in consumer.poll(timeout_ms) if record.partition == partition]


def about(partition: int) -> Callable[[Any], bool]:
    def is_about(request: Any) -> bool:
        (topic,) = request.topics
        numbers = [getattr(each, "partition_index", None) for each in topic.partitions]
        return partition in (numbers if None not in numbers else _numbers(topic))

    return is_about


def _numbers(topic: Any) -> list[int]:
    return [each.partition for each in topic.partitions]


# Validations


def test_a_validation_is_answered_only_by_its_own_look_up(
    broker: Broker, late: HeldAnswers
) -> None:
    with reader(broker, HERE, THERE) as consumer:
        consumer.seek_to_beginning()
        while {consumer.position(HERE), consumer.position(THERE)} != {2}:
            consumer.poll(100)
        late.hold(OffsetForLeaderEpochRequest, which=about(1))
        broker.another_leader(1)
        broker.another_leader(0)
        consumer.poll(100)  # the answer about partition 0 has arrived: its log ends at 2
        broker.another_leader(0)
        broker.write(0)
        assert offsets(consumer) == [2, 3]
        late.hold(OffsetForLeaderEpochRequest, which=about(0))
        broker.another_leader(0)
        consumer.poll(100)
        late.release()  # the first look-up has all answers now
        assert not offsets(consumer)
        late.release()
        broker.write(0)
        assert offsets(consumer) == [4, 5]


def test_the_answer_to_a_former_leader_epoch_is_dropped(broker: Broker, late: HeldAnswers) -> None:
    with reader(broker, HERE, auto_offset_reset="none") as consumer:
        consumer.seek(HERE, 0)
        assert offsets(consumer) == [0, 1]
        late.hold(OffsetForLeaderEpochRequest, 2)
        broker.another_leader(0)
        consumer.poll(100)
        broker.logs[tuple(HERE)].clear()  # the next leader has lost all records
        broker.another_leader(0)
        consumer.poll(100)
        late.release()  # the former leader has them
        assert not consumer.poll(100)
        late.release()
        with pytest.raises(errors.LogTruncation, match="x-0 at 2"):
            consumer.poll(100)


def test_a_validation_answered_after_a_seek_is_dropped(broker: Broker, late: HeldAnswers) -> None:
    with reader(broker, HERE, auto_offset_reset="none") as consumer:
        consumer.seek(HERE, 0)
        assert offsets(consumer) == [0, 1]
        late.hold(OffsetForLeaderEpochRequest)
        broker.another_leader(0)
        broker.logs[tuple(HERE)].clear()
        consumer.poll(100)
        broker.write(0)
        consumer.seek(HERE, 1)
        late.release()
        assert offsets(consumer) == [1]


# Resets


def test_a_reset_answered_after_a_seek_is_dropped(broker: Broker, late: HeldAnswers) -> None:
    with reader(broker, HERE) as consumer:
        late.hold(ListOffsetsRequest)
        assert not consumer.poll(100)
        consumer.seek(HERE, 1)
        late.release()
        assert offsets(consumer) == [1]


def test_a_reset_refused_after_a_seek_is_no_error(broker: Broker, late: HeldAnswers) -> None:
    with reader(broker, HERE) as consumer:
        late.hold(ListOffsetsRequest)
        assert not consumer.poll(100)
        consumer.seek(HERE, 1)
        late.held[0][1].topics[0].partitions[0].error_code = 29
        late.release()
        assert offsets(consumer) == [1]


def test_only_the_last_of_two_resets_counts(broker: Broker, late: HeldAnswers) -> None:
    with reader(broker, HERE) as consumer:
        late.hold(ListOffsetsRequest, 2)
        consumer.seek_to_end()
        consumer.poll(100)
        consumer.seek_to_beginning()
        consumer.poll(100)
        late.release()
        consumer.poll(100)
        late.release()
        assert offsets(consumer) == [0, 1]


def test_of_two_resets_the_last_counts_even_if_its_answer_arrives_first(
    broker: Broker, late: HeldAnswers
) -> None:
    with reader(broker, HERE) as consumer:
        late.hold(ListOffsetsRequest, 2)
        consumer.seek_to_end()
        consumer.poll(100)
        consumer.seek_to_beginning()
        consumer.poll(100)
        late.release(1)
        assert offsets(consumer) == [0, 1]
        late.release()
        consumer.poll(100)
        assert consumer.position(HERE) == 2


def test_a_reset_of_an_earlier_assignment_is_dropped(broker: Broker, late: HeldAnswers) -> None:
    with reader(broker, HERE) as consumer:
        late.hold(ListOffsetsRequest)
        consumer.seek_to_end()
        consumer.poll(100)
        consumer.unassign()
        consumer.assign([HERE])
        late.release()
        assert offsets(consumer) == [0, 1]


def test_a_paused_partition_takes_the_answer_to_its_reset(
    broker: Broker, late: HeldAnswers
) -> None:
    with reader(broker, HERE) as consumer:
        late.hold(ListOffsetsRequest)
        consumer.poll(100)
        consumer.pause(HERE)
        late.release()
        assert not consumer.poll(100)
        consumer.resume(HERE)
        assert offsets(consumer) == [0, 1]
        assert len(broker.of_kind(ListOffsetsRequest)) == 1


def test_an_answer_kept_back_by_an_error_does_not_answer_a_later_reset(
    broker: Broker, late: HeldAnswers
) -> None:
    """One pass gets the first two answers, and the error of the first ends it."""
    with reader(broker, HERE, THERE, ELSEWHERE) as consumer:
        consumer.seek(HERE, 0)
        consumer.seek(ELSEWHERE, 0)
        consumer.pause(HERE, THERE, ELSEWHERE)
        late.hold(ListOffsetsRequest, 3)
        consumer.seek_to_end(THERE)
        consumer.poll(0)
        consumer.seek_to_end(HERE, ELSEWHERE)
        consumer.poll(0)
        (_, refused, _), _, _ = late.held
        refused.topics[0].partitions[0].error_code = 29
        late.release()
        late.release()
        with pytest.raises(errors.TopicAuthorizationFailed):
            consumer.poll(0)
        consumer.seek_to_beginning(HERE)
        consumer.resume(HERE)
        assert offsets(consumer) == [0, 1]


def test_no_leader_is_asked_again_for_a_position_that_was_left(
    broker: Broker, late: HeldAnswers
) -> None:
    with reader(broker, HERE, THERE) as consumer:
        consumer.pause(HERE, THERE)
        late.hold(ListOffsetsRequest, which=about(0))
        late.hold(ListOffsetsRequest, which=about(1))
        assert not consumer.poll(0)
        consumer.seek(HERE, 1)
        late.fail(errors.Network("the connection broke"))
        consumer.poll(1_000)
        assert len(broker.of_kind(ListOffsetsRequest)) == 2


def test_a_reset_answered_by_a_former_leader_is_validated(
    broker: Broker, late: HeldAnswers
) -> None:
    with reader(broker, HERE) as consumer:
        late.hold(ListOffsetsRequest)
        consumer.seek_to_end()
        consumer.poll(100)
        broker.another_leader(0)
        consumer.poll(100)
        late.release()
        consumer.poll(100)
        (asked,) = broker.of_kind(OffsetForLeaderEpochRequest)
        assert asked.topics[0].partitions[0].current_leader_epoch == 1


# A partition that nobody answers for


def test_a_partition_is_read_while_another_has_no_leader(broker: Broker) -> None:
    broker.leaders[tuple(THERE)] = _NOBODY
    with reader(broker, HERE, THERE) as consumer:
        assert offsets(consumer) == [0, 1]
        broker.leaders[tuple(THERE)] = 2
        assert offsets(consumer, 1, 5_000) == [0, 1]


def test_a_partition_is_read_while_the_leader_of_another_does_not_answer(
    broker: Broker, late: HeldAnswers
) -> None:
    with reader(broker, HERE, THERE) as consumer:
        late.hold(ListOffsetsRequest, which=about(1))
        assert offsets(consumer) == [0, 1]
        late.release()
        assert offsets(consumer, 1) == [0, 1]


def test_a_partition_is_read_after_a_change_of_leader_while_another_has_no_answer(
    broker: Broker, late: HeldAnswers
) -> None:
    with reader(broker, HERE, THERE) as consumer:
        while {consumer.position(HERE), consumer.position(THERE)} != {2}:
            consumer.poll(100)
        late.hold(OffsetForLeaderEpochRequest, which=about(1))
        broker.another_leader(1)
        broker.another_leader(0)
        broker.write(0)
        assert offsets(consumer) == [2, 3]


# Fetches


def test_a_fetch_answered_after_a_seek_is_dropped(broker: Broker, late: HeldAnswers) -> None:
    with reader(broker, HERE) as consumer:
        consumer.seek(HERE, 0)
        late.hold(FetchRequest)
        consumer.poll(0)
        consumer.seek(HERE, 1)
        late.release()
        assert offsets(consumer) == [1]


def test_a_fetch_answered_after_seeks_that_end_at_its_offset_is_dropped(
    broker: Broker, late: HeldAnswers
) -> None:
    """The first answer has a record that another leader has replaced meanwhile."""
    with reader(broker, HERE) as consumer:
        consumer.seek(HERE, 0)
        late.hold(FetchRequest)
        consumer.poll(0)
        consumer.seek(HERE, 1)
        consumer.seek(HERE, 0)
        broker.logs[tuple(HERE)].clear()
        broker.append("x", 0, build_batch([b"new"], timestamps=1000))
        late.release()
        assert [bytes(record.value or b"") for record in consumer.poll(300)] == [b"new"]


def test_a_fetch_of_an_earlier_assignment_is_dropped(broker: Broker, late: HeldAnswers) -> None:
    with reader(broker, HERE) as consumer:
        consumer.seek(HERE, 0)
        late.hold(FetchRequest)
        consumer.poll(0)
        consumer.unassign()
        consumer.assign([HERE])
        consumer.seek(HERE, 1)
        late.release()
        assert offsets(consumer) == [1]


def test_a_fetch_answered_during_a_pause_is_kept(broker: Broker, late: HeldAnswers) -> None:
    with reader(broker, HERE) as consumer:
        consumer.seek(HERE, 0)
        late.hold(FetchRequest)
        consumer.poll(0)
        consumer.pause(HERE)
        late.release()
        assert not consumer.poll(100)
        consumer.resume(HERE)
        assert offsets(consumer, timeout_ms=0) == [0, 1]
        assert len(broker.of_kind(FetchRequest)) == 1


def test_a_fetch_of_a_topic_that_was_made_anew_is_dropped(
    broker: Broker, late: HeldAnswers
) -> None:
    with reader(broker, HERE) as consumer:
        consumer.seek(HERE, 0)
        late.hold(FetchRequest)
        consumer.poll(0)
        for topic in late.held[0][1].responses:
            topic.topic = ""  # answers name topics by id
        broker.ids["x"] = bytes([77]) * 16
        broker.logs[tuple(HERE)].clear()
        broker.append("x", 0, build_batch([b"new"], timestamps=1000))
        broker.runtime.clock.advance(2_000)  # type: ignore[attr-defined]
        assert not consumer.poll(0)
        late.release()
        assert [bytes(record.value or b"") for record in consumer.poll(300)] == [b"new"]


@pytest.mark.parametrize("code", [1, 29])
def test_the_error_of_a_fetch_ends_with_the_position_it_was_about(
    broker: Broker, late: HeldAnswers, code: int
) -> None:
    with reader(broker, HERE, auto_offset_reset="none") as consumer:
        consumer.seek(HERE, 0)
        late.hold(FetchRequest)
        broker.refused[0] = code
        consumer.poll(0)
        late.release()
        consumer.position(HERE)  # this call's pass takes the answer
        broker.refused.clear()
        consumer.seek(HERE, 1)
        assert offsets(consumer) == [1]


def test_the_error_of_a_fetch_ends_with_the_assignment(broker: Broker, late: HeldAnswers) -> None:
    with reader(broker, HERE, THERE) as consumer:
        consumer.seek(HERE, 0)
        consumer.seek(THERE, 0)
        late.hold(FetchRequest, which=about(0))
        broker.refused[0] = 29
        consumer.poll(0)
        late.release()
        consumer.position(THERE)  # this call's pass takes the answer
        consumer.assign([THERE])
        consumer.seek(THERE, 0)
        assert offsets(consumer, 1) == [0, 1]


def test_an_answer_to_a_call_that_timed_out_is_not_taken_by_the_next(
    broker: Broker, late: HeldAnswers
) -> None:
    with reader(broker, HERE) as consumer:
        late.hold(ListOffsetsRequest)
        with pytest.raises(TimedOut):
            consumer.end_offsets([HERE], timeout_ms=50)
        broker.write(0)
        late.release()
        assert consumer.end_offsets([HERE]) == {HERE: 4}


def test_answers_after_the_close_change_nothing(broker: Broker, late: HeldAnswers) -> None:
    consumer = reader(broker, HERE, THERE)
    late.hold(ListOffsetsRequest)
    late.hold(FetchRequest)
    consumer.seek(THERE, 0)
    consumer.poll(0)
    assert len(late.held) == 2
    consumer.close()
    count = len(broker.requests)
    late.release()
    late.release()
    assert len(broker.requests) == count
