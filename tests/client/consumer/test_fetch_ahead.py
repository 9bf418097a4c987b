"""Over a network the consumer fetches one answer ahead of the buffered one, not more."""

from __future__ import annotations

from typing import Any

import pytest

from embedlog import TopicPartition, errors
from embedlog.client.consumer.consumer import Consumer
from embedlog.runtime.pending import Pending
from embedlog.testing import sim_runtime
from embedlog.transport import InProcessTransport
from tests.client.scripted_broker import PASS, VERSIONS, Context, ScriptedBroker
from wire.records import build_batch, iter_batches
from wire.schemas.fetch import FetchRequest

HERE = TopicPartition("one", 0)
THERE = TopicPartition("one", 1)


class RemoteTransport(InProcessTransport):
    """An in-process transport that claims to be a network."""

    in_process = False


class BatchBroker(ScriptedBroker):
    """Answers fetches with one batch for each partition; there are four batches of two records."""

    def __init__(self) -> None:
        super().__init__({"one": 2}, sim_runtime(seed=3))
        self.transports = RemoteTransport
        self.refused: dict[int, int] = {}
        """Error codes by fetch offset."""
        for _ in range(4):
            self.append("one", 0, build_batch([b"a", b"b"], timestamps=1000))

    def transport(self) -> InProcessTransport:
        return self.transports(self.handle, Context, VERSIONS, self.runtime)

    def fetch_partition(self, name: str, asked: Any) -> Any:
        answer = super().fetch_partition(name, asked)
        answer.records = next((batch.buffer for batch in iter_batches(answer.records)), b"")
        answer.error_code = self.refused.get(asked.fetch_offset, answer.error_code)
        return answer

    def asked_offsets(self, partition: int = 0) -> list[int]:
        """Return the fetch offsets since the last call."""
        asked = [
            each.fetch_offset
            for request in self.of_kind(FetchRequest)
            for topic in request.topics
            for each in topic.partitions
            if each.partition == partition
        ]
        self.requests.clear()
        return asked


@pytest.fixture
def broker() -> BatchBroker:
    return BatchBroker()


def reader(broker: BatchBroker, **settings: Any) -> Consumer:
    settings = {"auto_offset_reset": "none", "max_poll_records": 1, **settings}
    consumer = Consumer(broker.transport(), **settings)
    consumer.assign([HERE])
    consumer.seek(HERE, 0)
    return consumer


def read(consumer: Consumer, count: int = 1) -> list[int]:
    return [record.offset for _ in range(count) for record in consumer.poll(10)]


def test_one_answer_ahead_of_the_one_that_is_handed_out(broker: BatchBroker) -> None:
    with reader(broker) as consumer:
        assert read(consumer) == [0]
        assert broker.asked_offsets() == [0, 2]
        assert read(consumer) == [1]
        assert read(consumer) == [2]
        assert broker.asked_offsets() == [4]
        assert read(consumer, 5) == [3, 4, 5, 6, 7]


def test_a_poll_goes_on_with_the_answer_that_follows(broker: BatchBroker) -> None:
    with reader(broker) as consumer:
        assert read(consumer) == [0]
        assert [record.offset for record in consumer.poll(10, max_records=3)] == [1, 2, 3]
        assert consumer.position(HERE) == 4


def test_nothing_is_fetched_ahead_at_the_end_of_the_log(broker: BatchBroker) -> None:
    """A fetch would wait there, and a fetch for another position would wait behind it."""
    with reader(broker) as consumer:
        consumer.seek(HERE, 6)
        assert read(consumer) == [6]
        assert broker.asked_offsets() == [6]
        consumer.seek(HERE, 4)
        assert read(consumer) == [4]


def test_the_newest_records_are_handed_out_before_more_are_waited_for(broker: BatchBroker) -> None:
    with reader(broker, max_poll_records=10) as consumer:
        consumer.seek(HERE, 6)
        assert read(consumer) == [6, 7]
        assert broker.asked_offsets() == [6]
        assert read(consumer) == []
        assert broker.asked_offsets() == [8]


def test_in_process_nothing_is_fetched_ahead(broker: BatchBroker) -> None:
    broker.transports = InProcessTransport
    with reader(broker) as consumer:
        assert read(consumer) == [0]
        assert broker.asked_offsets() == [0]


def test_a_seek_makes_both_answers_stale(broker: BatchBroker) -> None:
    with reader(broker) as consumer:
        assert read(consumer) == [0]
        consumer.seek(HERE, 1)
        assert read(consumer, 3) == [1, 2, 3]
        consumer.seek(HERE, 2)  # the start of the answer ahead
        assert read(consumer, 6) == [2, 3, 4, 5, 6, 7]


def test_an_answer_that_comes_after_a_seek_is_dropped(broker: BatchBroker) -> None:
    late: list[Any] = []

    def hold_back(request: Any) -> Any:
        if type(request) is FetchRequest and request.topics[0].partitions[0].fetch_offset == 2:
            late.append((Pending(), request))
            return late[-1][0]
        return PASS

    with reader(broker) as consumer:
        broker.faults.append(hold_back)
        assert read(consumer) == [0]
        consumer.seek(HERE, 5)
        broker.faults.clear()
        ((pending, request),) = late
        pending.complete(broker.answer(request))
        assert read(consumer, 3) == [5, 6, 7]


def test_an_error_ahead_is_none_before_it_is_its_turn(broker: BatchBroker) -> None:
    with reader(broker) as consumer:
        broker.refused[2] = 1
        assert read(consumer, 2) == [0, 1]
        with pytest.raises(errors.OffsetOutOfRange, match="offset 2"):
            consumer.poll(1_000)
        broker.refused.clear()
        consumer.seek(HERE, 2)
        assert read(consumer, 6) == [2, 3, 4, 5, 6, 7]


def test_a_paused_partition_keeps_what_it_has(broker: BatchBroker) -> None:
    with reader(broker) as consumer:
        assert read(consumer) == [0]
        consumer.pause(HERE)
        broker.asked_offsets()
        assert read(consumer) == []
        assert broker.asked_offsets() == []
        consumer.resume(HERE)
        assert read(consumer, 7) == [*range(1, 8)]


def test_partitions_of_a_node_that_are_read_to_the_end_do_not_hold_others_up(
    broker: BatchBroker,
) -> None:
    with reader(broker) as consumer:
        consumer.assign([HERE, THERE])
        consumer.seek(THERE, 0)
        assert read(consumer, 2) == [0, 1]
        # Partition 1 is empty: a fetch of it alone would wait.
        assert read(consumer, 6) == [*range(2, 8)]
        assert broker.asked_offsets(1)


def test_a_partition_that_is_given_up_leaves_nothing_behind(broker: BatchBroker) -> None:
    with reader(broker) as consumer:
        assert read(consumer) == [0]
        consumer.assign([THERE])
        consumer.assign([HERE])
        consumer.seek(HERE, 3)
        assert read(consumer, 5) == [3, 4, 5, 6, 7]


def test_a_paused_partition_with_records_holds_no_other_of_its_node_up(
    broker: BatchBroker,
) -> None:
    broker.transports = InProcessTransport
    with reader(broker) as consumer:
        consumer.assign([HERE, THERE])
        consumer.seek(THERE, 0)
        assert read(consumer) == [0]
        consumer.pause(HERE)
        broker.append("one", 1, build_batch([b"c"], timestamps=1000))
        assert [record.value for record in consumer.poll(10)] == [b"c"]


def test_the_lag_of_a_reader_of_committed_records_ends_at_the_first_open_transaction(
    broker: BatchBroker,
) -> None:
    class Open(BatchBroker):
        def fetch_partition(self, name: str, asked: Any) -> Any:
            answer = super().fetch_partition(name, asked)
            answer.last_stable_offset = 4
            return answer

    for isolation, lag in (("read_committed", 3), ("read_uncommitted", 7)):
        with reader(Open(), isolation_level=isolation) as consumer:
            assert read(consumer) == [0]
            assert consumer.current_lag(HERE) == lag
