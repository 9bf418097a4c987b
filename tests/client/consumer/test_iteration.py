"""Iterating over a consumer: the position is right after the record handed out last."""

from __future__ import annotations

from itertools import islice
from typing import Any

import pytest

from embedlog import TopicPartition
from embedlog.client.consumer.consumer import Consumer
from embedlog.client.errors import RecordUnreadable, WakeupError
from embedlog.errors import ClosedError
from embedlog.testing import sim_runtime
from tests.client.scripted_broker import ScriptedBroker
from wire.records import build_batch

HERE = TopicPartition("one", 0)
THERE = TopicPartition("one", 1)


@pytest.fixture
def broker() -> ScriptedBroker:
    """Three batches: plain, with keys, with different timestamps."""
    broker = ScriptedBroker({"one": 2}, sim_runtime(seed=4))
    values = [b"%d" % number for number in range(10)]
    broker.append("one", 0, build_batch(values, timestamps=1000))
    broker.append("one", 0, build_batch(values, keys=values, timestamps=1000))
    broker.append("one", 0, build_batch(values, timestamps=[*range(1000, 1010)]))
    return broker


def reader(broker: ScriptedBroker, **settings: Any) -> Consumer:
    consumer = Consumer(broker.transport(), auto_offset_reset="earliest", **settings)
    consumer.assign([HERE])
    return consumer


@pytest.mark.parametrize("settings", [{}, {"value_deserializer": bytes}, {"max_poll_records": 3}])
def test_the_position_follows_each_record(broker: ScriptedBroker, settings: Any) -> None:
    with reader(broker, **settings) as consumer, reader(broker) as other:
        expected = list(other.poll(10))
        found = []
        for record in islice(consumer, 30):
            assert consumer.position(HERE) == record.offset + 1
            found.append(record)
        assert found == expected
        assert consumer.metrics()["records-consumed-total"] == 30


def test_whoever_leaves_the_loop_goes_on_behind_the_last_record(broker: ScriptedBroker) -> None:
    with reader(broker) as consumer:
        for record in consumer:
            if record.offset == 13:
                break
        assert [record.offset for record in consumer.poll(10)] == [*range(14, 30)]


def test_other_calls_in_the_loop_take_effect_at_once(broker: ScriptedBroker) -> None:
    with reader(broker) as consumer:
        found = []
        for record in consumer:
            found.append(record.offset)
            if found == [0, 1, 2]:
                consumer.seek(HERE, 7)
            elif record.offset == 8:
                found += [record.offset for record in consumer.poll(0, max_records=4)]
            elif record.offset == 15:
                (part,) = consumer.poll_columns(0, max_records=1)
                found += part.offsets.tolist()
            elif record.offset == 22:
                break
        assert found == [0, 1, 2, 7, 8, *range(9, 23)]


def test_a_pause_in_the_loop_holds_back_the_rest(broker: ScriptedBroker) -> None:
    broker.append("one", 1, build_batch([b"there"], timestamps=1000))
    with reader(broker) as consumer:
        consumer.assign([HERE, THERE])
        found = []
        for record in islice(consumer, 4):
            found.append((record.partition, record.offset))
            if record.partition == 0 and record.offset == 2:
                consumer.pause(HERE)
            if record.partition == 1:
                consumer.resume(HERE)
    assert found == [(0, 0), (0, 1), (0, 2), (1, 0)]


def test_a_wakeup_ends_it_before_the_next_record(broker: ScriptedBroker) -> None:
    with reader(broker) as consumer:
        found = []
        with pytest.raises(WakeupError):
            for record in consumer:
                found.append(record.offset)
                if record.offset == 4:
                    consumer.wakeup()
        assert found == [0, 1, 2, 3, 4]
        assert next(iter(consumer)).offset == 5


def test_closing_ends_it(broker: ScriptedBroker) -> None:
    consumer = reader(broker)
    with pytest.raises(ClosedError):
        for _ in consumer:
            consumer.close()


def test_a_record_that_is_refused_stays_the_next(broker: ScriptedBroker) -> None:
    def picky(value: bytes) -> bytes:
        if value == b"3":
            raise ValueError("three")
        return value

    with reader(broker, value_deserializer=picky) as consumer:
        found = []
        with pytest.raises(RecordUnreadable, match="three"):
            for record in consumer:
                found.append(record.offset)
        assert found == [0, 1, 2]
        assert consumer.position(HERE) == 3


def test_interceptors_see_every_record(broker: ScriptedBroker) -> None:
    seen: list[int] = []

    class Watching:
        def on_consume(self, records: Any) -> Any:
            seen.extend(record.offset for record in records)
            return records

    with reader(broker, interceptor_classes=[Watching()]) as consumer:
        for _ in islice(consumer, 12):
            pass
    assert seen == [*range(12)]
