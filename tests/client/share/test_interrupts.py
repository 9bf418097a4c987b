"""Ctrl-C in the middle of a step: the consumer does the step again, or undoes its part."""

from __future__ import annotations

from typing import Any

import pytest

from embedlog import errors
from embedlog.client.share.consumer import shared
from embedlog.runtime.pending import Pending
from tests.client.scripted_broker import PASS
from tests.client.share.places import EXPLICIT
from tests.client.share.scripted_share_broker import INTERVAL_MS
from tests.client.share.test_fetched import NO_CONVERTERS, acquired_of, fetched, log_of
from tests.client.share.test_rules import broker_with, consumer_of, pass_time
from wire.records.batch import RecordBatch
from wire.schemas.share_acknowledge import ShareAcknowledgeRequest
from wire.schemas.share_fetch import ShareFetchRequest
from wire.schemas.share_group_heartbeat import ShareGroupHeartbeatRequest


def interrupt_once(broker: Any, kind: type[Any]) -> None:
    """Let Ctrl-C come while the next request of a kind is sent."""

    def fault(request: Any) -> Any:
        if not isinstance(request, kind):
            return PASS
        broker.faults.remove(fault)
        raise KeyboardInterrupt

    broker.faults.append(fault)


def refuse_once(broker: Any, kind: type[Any]) -> None:
    """Let the next request of a kind find no connection."""

    def fault(request: Any) -> Any:
        if not isinstance(request, kind):
            return PASS
        broker.faults.remove(fault)
        answer: Pending[Any] = Pending()
        answer.fail(errors.Network("gone"))
        return answer

    broker.faults.append(fault)


def interrupt_decoding(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """Let Ctrl-C come while the batch of this number is decoded for the first time."""
    right, calls = RecordBatch.check_crc, []

    def interrupted(batch: RecordBatch) -> None:
        calls.append(batch)
        if len(calls) == number:
            raise KeyboardInterrupt
        right(batch)

    monkeypatch.setattr(RecordBatch, "check_crc", interrupted)


def test_a_batch_whose_decoding_was_interrupted_is_decoded_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data, _ = log_of([(0, 2, False), (0, 2, False)])
    acquired, _ = acquired_of([(0, 4, 1)])
    partition = fetched(data, acquired)
    interrupt_decoding(monkeypatch, 1)
    with pytest.raises(KeyboardInterrupt):
        partition.take(NO_CONVERTERS)
    found = [record.offset for _ in range(2) for record in partition.take(NO_CONVERTERS)[0]]
    assert found == [0, 1, 2, 3]
    assert partition.gaps == []


def test_records_of_an_interrupted_poll_are_not_accepted_unseen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    broker = broker_with(b"a")
    broker.write("jobs", b"b")
    interrupt_decoding(monkeypatch, 2)
    with consumer_of(broker) as consumer:
        with pytest.raises(KeyboardInterrupt):
            consumer.poll(0)
        found = [record.value for _ in range(3) for record in consumer.poll(0)]
    assert found == [b"a", b"b"]


def test_the_fetch_after_an_interrupted_one_names_the_partitions_again() -> None:
    broker = broker_with(b"a")
    interrupt_once(broker, ShareFetchRequest)
    with consumer_of(broker) as consumer:
        with pytest.raises(KeyboardInterrupt):
            consumer.poll(0)
        pass_time(broker, 1000)
        assert [record.value for record in consumer.poll(100)] == [b"a"]


def test_the_session_of_an_interrupted_request_is_ended_so_that_its_records_come_back() -> None:
    broker = broker_with(b"a")
    with consumer_of(broker, EXPLICIT) as consumer:
        (record,) = consumer.poll(0)
        consumer.acknowledge(record)
        interrupt_once(broker, ShareAcknowledgeRequest)
        with pytest.raises(KeyboardInterrupt):
            consumer.commit_sync()
        broker.requests.clear()
        consumer.poll(0)
        (closing,) = broker.of_kind(ShareAcknowledgeRequest)
        assert closing.share_session_epoch == -1
        pass_time(broker, 1000)
        consumer.poll(0)
        assert broker.of_kind(ShareFetchRequest)[0].share_session_epoch == 0


def test_an_acknowledgement_of_an_interrupted_request_fails() -> None:
    broker = broker_with(b"a")
    told: list[object] = []
    with consumer_of(broker, EXPLICIT) as consumer:
        consumer.set_acknowledgement_commit_callback(lambda offsets, error: told.append(error))
        (record,) = consumer.poll(0)
        consumer.acknowledge(record)
        interrupt_once(broker, ShareAcknowledgeRequest)
        with pytest.raises(KeyboardInterrupt):
            consumer.commit_sync()
        assert consumer.commit_sync() == {}
    assert len(told) == 1
    assert told[0] is not None


def test_a_failed_heartbeat_is_sent_again_after_the_backoff() -> None:
    broker = broker_with(b"a")
    consumer, _, driver = shared(broker.transport(), {"group.id": "workers"}, {})
    with consumer:
        consumer.subscribe(["jobs"])
        assert consumer.poll(0)
        pass_time(broker, INTERVAL_MS)
        refuse_once(broker, ShareGroupHeartbeatRequest)
        delay = driver.coordinator.poll(broker.runtime.clock.monotonic_ms())
        assert delay is not None
        assert delay < INTERVAL_MS // 2
