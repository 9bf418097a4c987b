"""A fetch session, with a broker that ends it, or with a topic that was made anew (KIP-227)."""

from __future__ import annotations

from typing import Any

from embedlog import TopicPartition, errors
from embedlog.client.consumer.consumer import Consumer
from embedlog.client.consumer.fetch_session import FetchSession
from embedlog.runtime.pending import Pending
from embedlog.testing import sim_runtime
from tests.client.scripted_broker import PASS, ScriptedBroker
from wire.error_codes import ErrorCode
from wire.records import build_batch
from wire.schemas.fetch import FetchRequest, FetchResponse
from wire.schemas.metadata import MetadataRequest

ONE, OTHER = TopicPartition("t", 0), TopicPartition("t", 1)
OLD_ID, NEW_ID = bytes(15) + b"\1", bytes(15) + b"\2"


def wanted(topic_id: bytes = OLD_ID, *keys: TopicPartition) -> dict[TopicPartition, Any]:
    return dict.fromkeys(keys or (ONE, OTHER), (topic_id, 0, 5, 1000))


def named(request: FetchRequest) -> list[int]:
    return [each.partition for topic in request.topics for each in topic.partitions]


def test_a_topic_that_was_made_anew_replaces_the_old_one_in_the_session() -> None:
    session = FetchSession()
    session.request(wanted())
    session.answered(0, 7)
    request = session.request(wanted(NEW_ID))
    assert [topic.topic_id for topic in request.topics] == [NEW_ID]
    assert [topic.topic_id for topic in request.forgotten_topics_data] == [OLD_ID]


def test_a_session_that_the_broker_did_not_keep_begins_anew() -> None:
    session = FetchSession()
    for number in (7, 0):
        session.request(wanted())
        session.answered(0, number)
    request = session.request(wanted())
    assert (request.session_id, request.session_epoch) == (0, 0)
    assert named(request) == [0, 1]


class SessionBroker(ScriptedBroker):
    """Opens a session with each consumer, but takes only requests that name all partitions."""

    def __init__(self) -> None:
        super().__init__({"t": 2}, sim_runtime(seed=3))
        for partition in range(2):
            self.append("t", partition, build_batch([b"a", b"b"], timestamps=1000))

    def _FetchRequest(self, request: Any) -> Any:
        answer = super()._FetchRequest(request)
        if isinstance(answer, FetchResponse):
            answer.session_id = 7
        return answer

    def once(self, answer: Any) -> None:
        """Answer the next fetch with this."""

        def fault(request: Any) -> Any:
            if not isinstance(request, FetchRequest):
                return PASS
            self.faults.remove(fault)
            return answer

        self.faults.append(fault)


def reader(broker: SessionBroker) -> Consumer:
    consumer = Consumer(broker.transport(), fetch_max_wait_ms=0, auto_offset_reset="earliest")
    consumer.assign([ONE, OTHER])
    found = 0
    while found < 4:
        found += len(consumer.poll(10))
    return consumer


def lost() -> Pending[Any]:
    pending: Pending[Any] = Pending()
    pending.fail(errors.Network("gone"))
    return pending


def test_after_a_lost_answer_the_session_begins_anew_and_in_time() -> None:
    broker = SessionBroker()
    with reader(broker) as consumer:
        broker.once(lost())
        consumer.poll(0)
        broker.append("t", 1, build_batch([b"c"], timestamps=1000))
        began_ms = broker.runtime.clock.monotonic_ms()
        assert [record.value for record in consumer.poll(60_000)] == [b"c"]
        assert broker.runtime.clock.monotonic_ms() - began_ms < 1_000, "the back-off is 100 ms"
        request = broker.of_kind(FetchRequest)[-1]
        assert (request.session_id, request.session_epoch) == (7, 0), "it ends the old one too"
        assert named(request) == [0, 1]


def test_a_session_with_an_unknown_topic_id_makes_the_consumer_ask_for_metadata() -> None:
    broker = SessionBroker()
    with reader(broker) as consumer:
        asked = len(broker.of_kind(MetadataRequest))
        broker.once(FetchResponse(error_code=ErrorCode.UNKNOWN_TOPIC_ID))
        consumer.poll(200)
        assert len(broker.of_kind(MetadataRequest)) == asked + 1
