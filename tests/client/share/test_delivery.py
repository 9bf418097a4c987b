"""What a share consumer promises about records and acknowledgements, on each broker."""

from __future__ import annotations

import threading

import pytest

from embedlog import (
    AcknowledgeType,
    Admin,
    IllegalState,
    Producer,
    RecordUnreadable,
    ShareConsumer,
    TopicPartition,
    WakeupError,
    errors,
)
from tests.client.share.places import EXPLICIT, WAIT_MS, Connect, Place, numbered, read

ACCEPT, RELEASE = AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE
REJECT, RENEW = AcknowledgeType.REJECT, AcknowledgeType.RENEW
SOON_MS = 1_500
"""Longer than fetch.max.wait.ms: no record comes in this time."""


def test_records_are_delivered_once_and_accepted_by_the_commit(place: Place) -> None:
    place.fill(*numbered(10))
    with place.consumer() as consumer:
        records = read(consumer, 10)
        assert [record.value for record in records] == numbered(10)
        assert [record.offset for record in records] == list(range(10))
        assert {record.delivery_count for record in records} == {1}
        assert consumer.commit_sync() == {TopicPartition(place.topic, 0): None}
        assert consumer.commit_sync() == {}
        assert consumer.acquisition_lock_timeout_ms() == 30_000
    with place.consumer() as consumer:
        assert not consumer.poll(SOON_MS)


def test_the_next_poll_accepts_the_records_of_the_last(place: Place) -> None:
    place.fill(*numbered(3))
    with place.consumer() as consumer:
        read(consumer, 3)
        assert not consumer.poll(SOON_MS)
        assert consumer.metrics()["acknowledgements-send-total"] == 3
    with place.consumer() as consumer:
        assert not consumer.poll(SOON_MS)


def test_close_releases_the_records_that_nobody_accepted(place: Place) -> None:
    place.fill(*numbered(3))
    with place.consumer() as consumer:
        read(consumer, 3)
    with place.consumer() as consumer:
        assert [record.delivery_count for record in read(consumer, 3)] == [2, 2, 2]


def test_each_record_gets_its_own_acknowledgement(place: Place) -> None:
    place.fill(*numbered(6))
    told = []
    with place.consumer(EXPLICIT) as consumer:
        consumer.set_acknowledgement_commit_callback(lambda *outcome: told.append(outcome))
        for record in read(consumer, 6):
            consumer.acknowledge(record, (ACCEPT, RELEASE, REJECT)[record.offset % 3])
        assert consumer.commit_sync() == {TopicPartition(place.topic, 0): None}
        assert told == [({TopicPartition(place.topic, 0): set(range(6))}, None)]
        again = read(consumer, 2)
        assert [(record.offset, record.delivery_count) for record in again] == [(1, 2), (4, 2)]
        consumer.acknowledge_offset((place.topic, 0), 1)
        consumer.acknowledge_offset((place.topic, 0), 4, RELEASE)
        consumer.acknowledge(again[1], ACCEPT)  # the last type wins
        assert not consumer.poll(SOON_MS)


def test_the_explicit_mode_demands_an_acknowledgement_of_each_record(place: Place) -> None:
    place.fill(*numbered(2))
    with place.consumer(EXPLICIT) as consumer:
        first, second = read(consumer, 2)
        consumer.acknowledge(first)
        with pytest.raises(IllegalState, match="1 records of the last poll"):
            consumer.poll(0)
        consumer.acknowledge(second, RELEASE)
        with pytest.raises(IllegalState, match="no record of"):
            consumer.acknowledge(first)
        assert [record.offset for record in read(consumer, 1)] == [1]


def test_close_sends_the_acknowledgements_and_releases_the_rest(place: Place) -> None:
    place.fill(*numbered(4))
    told = []
    with place.consumer(EXPLICIT) as consumer:
        consumer.set_acknowledgement_commit_callback(lambda *outcome: told.append(outcome))
        records = read(consumer, 4)
        consumer.acknowledge(records[0])
        consumer.acknowledge(records[3], REJECT)
    assert told == [({TopicPartition(place.topic, 0): {0, 3}}, None)]
    with place.consumer(EXPLICIT) as consumer:
        again = [(record.offset, record.delivery_count) for record in read(consumer, 2)]
        assert again == [(1, 2), (2, 2)]


def test_a_renewed_record_comes_back_without_a_new_delivery(place: Place) -> None:
    place.fill(*numbered(2))
    with place.consumer(EXPLICIT) as consumer:
        first, second = read(consumer, 2)
        consumer.acknowledge(first, RENEW)
        consumer.acknowledge(second)
        place.fill(b"later")
        again = list(consumer.poll(WAIT_MS))
        assert again == [first]
        assert again[0].delivery_count == 1
        consumer.acknowledge(first)
        assert [record.value for record in read(consumer, 1)] == [b"later"]


def test_a_record_may_be_accepted_right_after_its_renewal(place: Place) -> None:
    place.fill(*numbered(1))
    with place.consumer(EXPLICIT) as consumer:
        (record,) = read(consumer, 1)
        for _ in range(3):
            consumer.acknowledge(record, RENEW)
            assert consumer.commit_sync() == {TopicPartition(place.topic, 0): None}
        consumer.acknowledge(record, ACCEPT)
        assert consumer.commit_sync() == {TopicPartition(place.topic, 0): None}
        assert not consumer.poll(SOON_MS)


def test_a_lock_that_ran_out_fails_the_commit(connect: Connect) -> None:
    place = Place(connect, 1, **{"share.record.lock.duration.ms": "1000"})
    place.fill(*numbered(1))
    told = []
    with place.consumer() as slow, place.consumer() as quick:
        slow.set_acknowledgement_commit_callback(lambda *outcome: told.append(outcome))
        read(slow, 1)
        (taken,) = read(quick, 1)
        assert taken.delivery_count == 2
        (error,) = slow.commit_sync().values()
        assert quick.commit_sync() == {TopicPartition(place.topic, 0): None}
        assert isinstance(error, errors.InvalidRecordState)
        ((offsets, reason),) = told
        assert offsets == {TopicPartition(place.topic, 0): {0}}
        assert reason is error


def test_members_share_the_records_of_one_partition(place: Place) -> None:
    place.fill(*numbered(20), one_batch=False)
    settings = {"max.poll.records": 1, "share.acquire.mode": "record_limit"}
    seen: dict[bytes, int] = {}
    with place.consumer(settings) as one, place.consumer(settings) as other:
        turns = [one, other]
        while len(seen) < 20:
            for number, member in enumerate(turns):
                for record in member.poll(WAIT_MS if not seen else SOON_MS):
                    assert record.value not in seen
                    seen[record.value] = number
    assert set(seen) == set(numbered(20))
    assert set(seen.values()) == {0, 1}


def test_record_limit_returns_no_more_than_max_poll_records(place: Place) -> None:
    place.fill(*numbered(10))
    settings = {"max.poll.records": 4, "share.acquire.mode": "record_limit"}
    with place.consumer(settings) as consumer:
        sizes = []
        while sum(sizes) < 10:
            sizes.append(len(consumer.poll(WAIT_MS)))
        assert max(sizes) == 4


def test_batch_optimized_returns_whole_batches(place: Place) -> None:
    place.fill(*numbered(10))
    with place.consumer(max_poll_records=4) as consumer:
        read(consumer, 10)


def test_several_partitions_have_an_outcome_each(connect: Connect) -> None:
    place = Place(connect, 3)
    for number in range(3):
        place.fill(*numbered(5), partition=number)
    with place.consumer() as consumer:
        read(consumer, 15)
        results = consumer.commit_sync()
        assert not any(results.values())
        assert consumer.metrics()["acknowledgements-error-total"] == 0
    with place.consumer() as consumer:
        assert not consumer.poll(SOON_MS)


def test_markers_of_transactions_are_acknowledged_by_the_client(place: Place) -> None:
    with Producer(place.connect(), transactional_id=place.group) as producer:
        producer.init_transactions()
        for value in (b"first", b"second"):
            producer.begin_transaction()
            producer.send(place.topic, value, partition=0)
            producer.commit_transaction()
    told = []
    with place.consumer(EXPLICIT) as consumer:
        consumer.set_acknowledgement_commit_callback(lambda *outcome: told.append(outcome))
        records = read(consumer, 2)
        assert [(record.offset, record.value) for record in records] == [
            (0, b"first"),
            (2, b"second"),
        ]
        for record in records:
            consumer.acknowledge(record)
        consumer.commit_sync()
        place.fill(b"third")
        (third,) = read(consumer, 1)
        assert third.offset == 4
        consumer.acknowledge(third)
        consumer.commit_sync()
    offsets = [offset for outcome, _ in told for found in outcome.values() for offset in found]
    assert sorted(offsets) == [0, 2, 4], "the callback hears only of records"


def test_a_refused_record_is_released_and_the_others_are_returned(place: Place) -> None:
    place.fill(b"1", b"bad", b"3")
    with place.consumer(EXPLICIT, value_deserializer=int) as consumer:
        (first,) = read(consumer, 1)
        assert first.value == 1
        consumer.acknowledge(first)
        with pytest.raises(RecordUnreadable, match="acknowledge_offset") as raised:
            consumer.poll(WAIT_MS)
        assert (raised.value.offset, raised.value.partition) == (1, 0)
        (third,) = read(consumer, 1)
        assert third.value == 3
        consumer.acknowledge(third)
        with pytest.raises(RecordUnreadable):  # it was released, and is delivered again
            consumer.poll(WAIT_MS)
        consumer.acknowledge_offset((place.topic, 0), 1, REJECT)
        assert not consumer.poll(SOON_MS)


def test_wakeup_ends_a_poll_of_another_thread(place: Place) -> None:
    with place.consumer() as consumer:
        timer = threading.Timer(0.3, consumer.wakeup)
        timer.start()
        with pytest.raises(WakeupError):
            consumer.poll(60_000)
        timer.join()
        place.fill(b"after")
        assert [record.value for record in read(consumer, 1)] == [b"after"]


def test_unsubscribed_records_can_still_be_committed(place: Place) -> None:
    place.fill(*numbered(3))
    with place.consumer() as consumer:
        read(consumer, 3)
        consumer.unsubscribe()
        with pytest.raises(IllegalState, match="subscribe first"):
            consumer.poll(0)
        assert consumer.commit_sync() == {TopicPartition(place.topic, 0): None}
        consumer.subscribe([place.topic])
        place.fill(b"next")
        assert [record.value for record in read(consumer, 1)] == [b"next"]


def test_a_changed_subscription_brings_other_records(connect: Connect) -> None:
    one, other = Place(connect, 1), Place(connect, 1)
    one.fill(b"one")
    other.fill(b"other")
    with one.consumer() as consumer:
        assert [record.value for record in read(consumer, 1)] == [b"one"]
        consumer.subscribe([one.topic, other.topic])
        assert consumer.subscription() == {one.topic, other.topic}
        assert [record.value for record in read(consumer, 1)] == [b"other"]


def test_new_records_reach_a_waiting_poll(place: Place) -> None:
    with place.consumer() as consumer:
        assert not consumer.poll(0)
        timer = threading.Timer(0.5, place.fill, (b"later",))
        timer.start()
        assert [record.value for record in read(consumer, 1)] == [b"later"]
        timer.join()


def test_a_closed_consumer_takes_no_records(place: Place) -> None:
    with place.consumer() as other:
        assert not other.poll(SOON_MS)
        with place.consumer() as consumer:
            assert not consumer.poll(SOON_MS)
            assert not consumer.poll(0)  # leaves a fetch that waits
        place.fill(*numbered(3))
        assert {record.delivery_count for record in read(other, 3)} == {1}


def test_a_member_that_polls_too_seldom_leaves_and_comes_back(place: Place) -> None:
    place.fill(*numbered(2), one_batch=False)
    with place.consumer(max_poll_interval_ms=300) as consumer:
        before = len(read(consumer, 2))
        assert before == 2
        _wait_until_it_has_left(place, consumer)
        assert consumer.commit_sync() == {TopicPartition(place.topic, 0): None}
        place.fill(b"more")
        assert [record.value for record in read(consumer, 1)] == [b"more"]


def _wait_until_it_has_left(place: Place, consumer: ShareConsumer) -> None:
    with Admin(place.connect()) as admin:
        while admin.describe_share_groups([place.group])[place.group].members:
            consumer.metrics()
