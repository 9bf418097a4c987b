"""The short way of a lone batch to a broker in this process: taken when it can be, and no other."""

from __future__ import annotations

from itertools import groupby
from typing import Any

import pytest

import embedlog
from embedlog.client.producer.short_way import ShortWay
from embedlog.pending import Pending
from embedlog.testing import sim_runtime
from tests.client.scripted_broker import PASS, ScriptedBroker
from wire.records.built import BuiltBatch
from wire.schemas.produce import ProduceRequest


@pytest.fixture
def broker() -> ScriptedBroker:
    return ScriptedBroker({"one": 1})


def _sent(broker: ScriptedBroker) -> list[Any]:
    return [
        request.topic_data[0].partition_data[0].records
        for request in broker.of_kind(ProduceRequest)
    ]


def test_plain_records_travel_as_what_was_built_and_others_as_bytes(
    broker: ScriptedBroker,
) -> None:
    with embedlog.Producer(broker.transport()) as producer:
        producer.send("one", b"a").result()
        producer.send("one", b"b", headers=[("h", b"v")]).result()
        producer.send_batch("one", [bytearray(b"c"), b"dd"]).result()
        producer.send_batch("one", [b"e", None]).result()
    assert [type(records) for records in _sent(broker)] == [
        BuiltBatch,
        bytes,
        BuiltBatch,  # of copies that are bytes
        BuiltBatch,
    ]
    assert broker.values("one") == [b"a", b"b", b"c", b"dd", b"e", None]


def test_a_compressing_producer_sends_bytes(broker: ScriptedBroker) -> None:
    with embedlog.Producer(broker.transport(), compression_type="gzip") as producer:
        producer.send("one", b"a").result()
    assert [type(records) for records in _sent(broker)] == [bytes]


def test_what_is_answered_later_is_followed_by_the_pass(broker: ScriptedBroker) -> None:
    late: list[tuple[Any, Pending[Any]]] = []

    def hold(request: Any) -> Any:
        if not isinstance(request, ProduceRequest) or late:
            return PASS
        late.append((request, Pending()))
        return late[0][1]

    with embedlog.Producer(broker.transport()) as producer:
        producer.send("one", b"first").result()
        late.clear()
        broker.faults.append(hold)
        future = producer.send_batch("one", [b"second"])
        assert not future.done()
        request, pending = late[0]
        pending.complete(broker.answer(request))
        assert future.result()[0].offset == 1
        assert producer.send("one", b"third").result().offset == 2


def test_a_defect_of_the_broker_is_seen_and_the_next_record_goes_on(
    broker: ScriptedBroker,
) -> None:
    def fail_once(request: Any) -> Any:
        if isinstance(request, ProduceRequest):
            broker.faults.remove(fail_once)
            raise ZeroDivisionError("defect")
        return PASS

    with embedlog.Producer(broker.transport()) as producer:
        producer.send("one", b"a").result()
        broker.faults.append(fail_once)
        with pytest.raises(ZeroDivisionError):
            producer.send("one", b"b").result()
        assert producer.send("one", b"c").result().offset == 1


def test_an_awaited_record_is_synced_when_its_result_is_there(tmp_path: Any) -> None:
    with embedlog.open(tmp_path, durability="fsync") as cluster:
        cluster.admin().create_topics({"one": 1})
        producer = cluster.producer()
        for offset in range(3):
            assert producer.send("one", b"v").result().offset == offset
            log = cluster.broker.replica_manager.partition("one", 0).log
            assert log.synced_offset == log.high_watermark == offset + 1


def test_no_short_way_without_acknowledgements(broker: ScriptedBroker) -> None:
    with embedlog.Producer(broker.transport(), acks=0) as producer:
        assert producer.send("one", b"a").result().offset == -1
        assert not isinstance(producer._sender._short_way, ShortWay)


def test_the_sticky_partition_changes_after_one_batch_size_of_awaited_records() -> None:
    broker = ScriptedBroker({"three": 3}, sim_runtime(seed=1))
    with embedlog.Producer(broker.transport(), batch_size=1000) as producer:
        partitions = [producer.send("three", bytes(88)).result().partition for _ in range(200)]
    runs = [len(list(run)) for _, run in groupby(partitions)]
    # An awaited record goes alone; ten of 100 bytes make up batch.size. Chance may stay.
    assert {run % 10 for run in runs} == {0}, runs
    assert 10 in runs
