"""The promises of transactions over every transport; Apache Kafka keeps them as well."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import embedlog
import embedlog.aio
from embedlog import Admin, Consumer, IllegalState, Producer, TopicPartition, errors

Connect = Callable[[], Any]

OUT = [("out", 0), ("out", 1)]
ISOLATIONS = ["read_committed", "read_uncommitted"]


def make_topics(connect: Connect, **topics: int) -> None:
    with Admin(connect()) as admin:
        admin.create_topics(topics).check()


def transactional(connect: Connect, name: str = "me", **settings: Any) -> Producer:
    """An initialized producer."""
    producer = Producer(connect(), {"transactional.id": name, **settings})
    producer.init_transactions()
    return producer


def mixed(connect: Connect, **settings: Any) -> tuple[list[bytes], list[bytes]]:
    """Write committed, aborted and plain records in turns to two partitions; return the values that
    count, and the aborted ones."""
    make_topics(connect, out=2)
    kept, aborted = [], []
    with transactional(connect, **settings) as producer, Producer(connect()) as plain:
        for number in range(12):
            is_kept = number % 3 != 1
            producer.begin_transaction()
            for record in range(1 + number % 4):
                value = b"%d-%d-" % (number, record) + b"x" * (number * 7)
                (kept if is_kept else aborted).append(value)
                producer.send("out", value, partition=(number + record) % 2)
                producer.flush()
            value = b"plain %d" % number
            kept.append(value)
            plain.send("out", value, partition=number % 2).result()
            if is_kept:
                producer.commit_transaction()
            else:
                producer.abort_transaction()
    return sorted(kept), sorted(aborted)


def written_ends(connect: Connect) -> dict[TopicPartition, int]:
    """Return the ends of the log once committed readers can get there.

    A commit returns before its markers are written.
    """
    with Consumer(connect()) as consumer:
        return consumer.end_offsets(OUT)


def read_out(
    connect: Connect, consumer: Consumer, values_of: Callable[[], list[bytes]]
) -> list[bytes]:
    """Return all values of both partitions, read with `values_of`."""
    ends = written_ends(connect)
    consumer.assign(OUT)
    consumer.seek_to_beginning()
    found: list[bytes] = []
    while any(consumer.position(each) < end for each, end in ends.items()):
        found += values_of()
    return found


def committed(connect: Connect) -> list[bytes]:
    """Return the values that committed readers see."""
    with Consumer(connect(), isolation_level="read_committed") as reader:
        return read_out(
            connect, reader, lambda: [record.value or b"" for record in reader.poll(100)]
        )


WAYS: dict[str, Callable[[Consumer], list[Any]]] = {
    "poll": lambda consumer: [record.value for record in consumer.poll(100)],
    "poll of one": lambda consumer: [record.value for record in consumer.poll(100, max_records=1)],
    "poll_batches": lambda consumer: [
        record[3] for batch in consumer.poll_batches(100) for record in batch.records
    ],
    "poll_columns": lambda consumer: [
        bytes(columns.buffer[at : at + size])
        for columns in consumer.poll_columns(100)
        for at, size in zip(columns.value_positions, columns.value_sizes, strict=True)
    ],
    "arrow": lambda consumer: [
        value.as_py()
        for columns in consumer.poll_columns(100)
        for value in columns.to_arrow(copy=True)["value"]
    ],
}


@pytest.mark.parametrize("settings", [{}, {"compression_type": "lz4"}], ids=["plain", "lz4"])
def test_every_way_to_read_passes_over_what_was_aborted(
    connect: Connect, settings: dict[str, Any]
) -> None:
    kept, aborted = mixed(connect, **settings)
    for isolation, expected in zip(ISOLATIONS, (kept, sorted(kept + aborted)), strict=True):
        for name, values_of in WAYS.items():
            with Consumer(connect(), isolation_level=isolation) as consumer:
                found = read_out(connect, consumer, lambda of=values_of, by=consumer: of(by))
                assert sorted(found) == expected, (isolation, name)
                assert {consumer.current_lag(each) for each in OUT} == {0}

        async def main(level: str = isolation) -> list[bytes]:
            async with embedlog.aio.Consumer(connect(), isolation_level=level) as consumer:
                await consumer.assign(OUT)
                await consumer.seek_to_beginning()
                ends = await asyncio.to_thread(written_ends, connect)
                values: list[bytes] = []
                while any([await consumer.position(key) < end for key, end in ends.items()]):
                    values += [record.value or b"" for record in await consumer.poll(100)]
                return values

        assert sorted(asyncio.run(main())) == expected, isolation


def test_committed_readers_stop_before_an_open_transaction(connect: Connect) -> None:
    make_topics(connect, out=2)
    place = TopicPartition("out", 0)
    with transactional(connect) as producer, Producer(connect()) as plain:
        plain.send("out", b"before", partition=0).result()
        producer.begin_transaction()
        producer.send("out", b"open", partition=0).result()
        plain.send("out", b"behind", partition=0).result()
        with (
            Consumer(connect(), isolation_level="read_committed") as stable,
            Consumer(connect()) as uncommitted,
        ):
            for consumer in (stable, uncommitted):
                consumer.assign([place])
                consumer.seek_to_beginning()
            assert stable.end_offsets([place]) == {place: 1}
            assert uncommitted.end_offsets([place]) == {place: 3}
            assert values(stable, 1) == [b"before"]
            assert stable.current_lag(place) == 0
            assert values(uncommitted, 3) == [b"before", b"open", b"behind"]
            producer.commit_transaction()
            assert values(stable, 2) == [b"open", b"behind"]
            wait_for(lambda: stable.end_offsets([place]) == {place: 4})
            stable.seek_to_end(place)
            assert stable.position(place) == 4


def values(consumer: Consumer, count: int) -> list[Any]:
    """Return the values of the next `count` records."""
    found: list[Any] = []
    while len(found) < count:
        found += [record.value for record in consumer.poll(1_000)]
    return found


def wait_for(condition: Callable[[], bool]) -> None:
    for _ in range(1_000):
        if condition():
            return
    raise AssertionError(condition)


def test_what_is_read_and_what_is_written_count_together(connect: Connect) -> None:
    make_topics(connect, taken=1, out=2)
    with Producer(connect()) as plain:
        plain.send_batch("taken", [b"%d" % number for number in range(30)]).result()
    crashed = 0
    with transactional(connect) as producer:
        while True:
            with Consumer(
                connect(),
                group_id="workers",
                auto_offset_reset="earliest",
                enable_auto_commit=False,
                isolation_level="read_committed",
            ) as consumer:
                consumer.subscribe(["taken"])
                try:
                    while position(consumer) < 30:
                        polled = consumer.poll(1_000, max_records=4)
                        if not polled:
                            continue
                        with producer.transaction() as transaction:
                            for record in polled:
                                transaction.send("out", record.value, partition=record.offset % 2)
                            transaction.send_offsets(consumer)
                            crashed += 1
                            if crashed in (1, 3, 4):
                                raise ZeroDivisionError
                    stored = consumer.committed([("taken", 0)])[TopicPartition("taken", 0)]
                    assert stored is not None
                    assert stored.offset == 30
                    break
                except ZeroDivisionError:
                    continue  # another consumer begins at the position of the group
    found = committed(connect)
    assert sorted(map(int, found)) == list(range(30))


def position(consumer: Consumer) -> int:
    return consumer.position(("taken", 0)) if consumer.assignment() else 0


def test_a_zombie_is_fenced_and_its_records_never_count(connect: Connect) -> None:
    make_topics(connect, out=2)
    with transactional(connect) as zombie:
        zombie.begin_transaction()
        zombie.send("out", b"zombie", partition=0).result()
        with transactional(connect) as heir:
            with heir.transaction() as transaction:
                transaction.send("out", b"heir", partition=0)
            late = zombie.send("out", b"late", partition=1)
            with pytest.raises(errors.KafkaError):
                zombie.commit_transaction()
            refused = late.exception()
            # The broker refuses the batch, or before that its partition in the transaction.
            assert isinstance(refused, errors.InvalidProducerEpoch | errors.ProducerFenced)
            assert "another producer with transactional.id=" in str(refused)
            assert re.search(r"this one is producer \d+, epoch \d+", str(refused))
            with pytest.raises(errors.ProducerFenced) as caught:
                zombie.abort_transaction()
            assert caught.value.remedy == "close"
    assert committed(connect) == [b"heir"]


def test_a_consumer_that_left_its_group_cannot_commit_with_a_transaction(
    connect: Connect,
) -> None:
    make_topics(connect, taken=1, out=2)
    with transactional(connect) as producer:
        consumer = Consumer(connect(), group_id="workers", enable_auto_commit=False)
        consumer.subscribe(["taken"])
        while not consumer.assignment():
            consumer.poll(100)
        metadata = consumer.group_metadata()
        consumer.close()
        producer.begin_transaction()
        producer.send("out", b"x", partition=0)
        with pytest.raises(errors.KafkaError) as caught:
            producer.send_offsets_to_transaction({("taken", 0): 0}, metadata)
        assert caught.value.remedy == "abort"
        with pytest.raises(type(caught.value)):
            producer.commit_transaction()
        producer.abort_transaction()
        with producer.transaction() as transaction:
            transaction.send("out", b"y", partition=0)


@pytest.mark.parametrize("codec", ["none", "gzip"])
def test_a_large_transaction_of_many_batches_is_whole(connect: Connect, codec: str) -> None:
    make_topics(connect, out=2)
    sent = [b"%05d" % number + bytes(200) for number in range(2_000)]
    settings = {"batch_size": 8_000, "compression_type": codec}
    with transactional(connect, **settings) as producer:
        for _ in range(2):
            with producer.transaction() as transaction:
                transaction.send_batch("out", sent[:500], partition=0)
                for number, value in enumerate(sent[500:]):
                    transaction.send("out", value, partition=number % 2)
    found = committed(connect)
    assert sorted(found) == sorted(sent * 2)


@pytest.mark.slow
def test_a_topic_that_is_not_there_takes_the_transaction_with_it(connect: Connect) -> None:
    make_topics(connect, out=2)
    with transactional(connect, max_block_ms=1_000) as producer:
        producer.begin_transaction()
        producer.send("out", b"x", partition=0)
        refused = producer.send("out", b"y", partition=7)
        assert refused.exception() is not None
        with pytest.raises(errors.EmbedlogError) as caught:
            producer.commit_transaction()
        assert caught.value.remedy == "abort"
        producer.abort_transaction()
        with producer.transaction() as transaction:
            transaction.send("out", b"z", partition=0)
    assert committed(connect) == [b"z"]


def test_asyncio_has_the_same_transactions(connect: Connect) -> None:
    make_topics(connect, taken=1, out=2)

    async def main() -> None:
        target = connect()
        async with embedlog.aio.Producer(target, transactional_id="me") as producer:
            with pytest.raises(IllegalState, match="init_transactions first"):
                await producer.begin_transaction()
            await producer.init_transactions()
            async with producer.transaction() as transaction:
                kept = transaction.send("out", b"kept", partition=0)
                transaction.send_batch("out", [b"a", b"b"], partition=1)
                with pytest.raises(IllegalState, match="do not nest"):
                    await producer.begin_transaction()
            assert (await kept).offset == 0
            with pytest.raises(ZeroDivisionError):
                async with producer.transaction() as transaction:
                    dropped = transaction.send("out", b"dropped", partition=0)
                    1 / 0  # noqa: B018
            assert dropped.done()
            await producer.begin_transaction()
            lost = producer.send("out", bytes(2_000_000), partition=0)
            with pytest.raises(errors.MessageTooLarge):
                await lost
            with pytest.raises(errors.MessageTooLarge) as caught:
                await producer.commit_transaction()
            assert caught.value.remedy == "abort"
            await producer.abort_transaction()

    asyncio.run(main())
    found = committed(connect)
    assert sorted(found) == [b"a", b"b", b"kept"]


def test_asyncio_commits_what_a_consumer_has_read(connect: Connect) -> None:
    make_topics(connect, taken=1, out=2)
    with Producer(connect()) as plain:
        plain.send_batch("taken", [b"1", b"2", b"3"], partition=0).result()

    async def main() -> None:
        async with (
            embedlog.aio.Producer(connect(), transactional_id="me") as producer,
            embedlog.aio.Consumer(
                connect(),
                group_id="workers",
                auto_offset_reset="earliest",
                enable_auto_commit=False,
            ) as consumer,
        ):
            await producer.init_transactions()
            await consumer.subscribe(["taken"])
            count = 0
            while count < 3:
                polled = await consumer.poll(1_000)
                if polled:
                    async with producer.transaction() as transaction:
                        for record in polled:
                            transaction.send("out", record.value, partition=0)
                        await transaction.send_offsets(consumer)
                count += len(polled)
            stored = await consumer.committed([("taken", 0)])
            found = stored[TopicPartition("taken", 0)]
            assert found is not None
            assert found.offset == 3

    asyncio.run(main())


@pytest.mark.parametrize("linger_ms", [0, 5])
def test_closing_ends_a_transaction_that_nobody_has_ended(connect: Connect, linger_ms: int) -> None:
    make_topics(connect, out=2)
    producer = transactional(connect, linger_ms=linger_ms)
    producer.begin_transaction()
    producer.send("out", b"left", partition=0).result()
    producer.send("out", b"unsent", partition=1)
    producer.close()

    async def main() -> None:
        async with embedlog.aio.Producer(connect(), transactional_id="me") as other:
            await other.init_transactions()
            await other.begin_transaction()
            await other.send("out", b"left too", partition=0)

    asyncio.run(main())
    with Producer(connect()) as plain:
        plain.send("out", b"plain", partition=0).result()
    assert committed(connect) == [b"plain"]


@pytest.fixture
def cluster() -> Iterator[embedlog.Cluster]:
    with embedlog.open() as opened:
        yield opened
