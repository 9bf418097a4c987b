"""Processing: poison pills, dead letters, retries, exactly once."""

from __future__ import annotations

import json
import sqlite3

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from embedlog.testing import json_like, rec

pytestmark = [pytest.mark.interop, pytest.mark.slow]


class Worker:
    """A worker that bills orders. A record that fails three times goes to the dead letters."""

    def __init__(self, kafka, handle):
        self.reader = kafka.closing(Consumer(kafka.client_config("confluent", group_id="billing")))
        self.reader.subscribe(["orders"])
        self.producer = kafka.closing(Producer(kafka.client_config("confluent", "producer")))
        self.handle = handle
        self.pauses = []

    def run(self, count):
        for _ in range(count):
            message = self.reader.poll(30)
            error = self.attempt(message)
            if error is not None:
                headers = {"error": repr(error).encode(), "offset": b"%d" % message.offset()}
                self.producer.produce("dead", message.value(), message.key(), headers=headers)
                self.producer.flush(30)
            self.reader.commit(message=message, asynchronous=False)

    def attempt(self, message):
        for number in range(3):
            try:
                return self.handle(json.loads(message.value()))
            except ValueError as error:
                return error  # it will never work
            except OSError as error:
                last = error
                self.pauses.append(2**number)  # seconds; a real worker sleeps
        return last


@pytest.mark.kafka(topics={"orders": 1, "dead": 1})
def test_a_poison_pill(kafka):
    """A poison pill

    One record cannot be read. The worker puts it aside and goes on with the next.
    """
    kafka.topic("orders").put_many([b'{"id": 1}', b"\xff not JSON", b'{"id": 3}'])
    billed = []
    with kafka.assert_produces("dead", count=1) as dead:
        Worker(kafka, lambda order: billed.append(order["id"])).run(3)
    assert billed == [1, 3]
    assert dead[0].value == b"\xff not JSON"
    kafka.wait.lag("billing", 0)


@pytest.mark.kafka(topics={"orders": 1, "dead": 1})
def test_dead_letters(kafka):
    """Dead letters say why

    The dead letter has the record, its key, the reason and the place where it came from.
    """

    def fail(order):
        raise ConnectionError("the bank is closed")

    kafka.topic("orders", value="json").put({"id": 1}, key="ann")
    Worker(kafka, fail).run(1)
    assert kafka.topic("dead") == [
        rec(
            key=b"ann",
            value=json_like({"id": 1}),
            headers={"offset": "0", "error": lambda value: b"bank is closed" in value},
        )
    ]


@pytest.mark.kafka(topics={"orders": 1, "dead": 1})
def test_retries_with_back_off(kafka):
    """Retries with back-off

    Two attempts fail and the third succeeds: no dead letter, growing pauses, one commit.
    """
    answers = [OSError("busy"), OSError("busy"), None]

    def handle(order):
        if error := answers.pop(0):
            raise error

    kafka.topic("orders", value="json").put({"id": 1})
    worker = Worker(kafka, handle)
    with kafka.assert_nothing_produced("dead", for_ms=0):
        worker.run(1)
    assert worker.pauses == [1, 2]
    assert kafka.group("billing").committed == {("orders", 0): 1}


def copy(kafka, count, fail_after=None):
    """Copy orders to invoices, exactly once; fail after some records if the test asks for it."""
    settings = kafka.client_config("confluent", group_id="copy", enable_auto_commit=False)
    consumer = kafka.closing(Consumer(settings))
    consumer.subscribe(["orders"])
    settings = kafka.client_config("confluent", "producer", transactional_id="copy")
    producer = kafka.closing(Producer(settings))
    producer.init_transactions(30)
    producer.begin_transaction()
    for number in range(count):
        if number == fail_after:
            raise RuntimeError("power failure")
        producer.produce("invoices", consumer.poll(30).value())
    positions = consumer.position(consumer.assignment())
    producer.send_offsets_to_transaction(positions, consumer.consumer_group_metadata(), 30)
    producer.commit_transaction(30)
    consumer.close()


@pytest.mark.kafka(topics={"orders": 1, "invoices": 1})
def test_an_exactly_once_copy(kafka):
    """An exactly-once copy that breaks down

    The first run writes one invoice and dies. The second run fences it, begins again, and readers
    see each invoice once.
    """
    kafka.topic("orders").put_many([b"1", b"2"])
    with pytest.raises(RuntimeError):
        copy(kafka, 2, fail_after=1)
    kafka.close_clients()
    copy(kafka, 2)
    assert kafka.topic("invoices").values() == [b"1", b"2"]
    assert kafka.group("copy").committed == {("orders", 0): 2}


@pytest.mark.kafka(topics={"orders": 1})
def test_a_zombie(kafka):
    """A zombie is fenced

    A new instance has taken over the transactional id while the old one was away.
    """
    settings = kafka.client_config("confluent", "producer", transactional_id="shop")
    zombie = kafka.closing(Producer(settings))
    zombie.init_transactions(30)
    zombie.begin_transaction()
    zombie.produce("orders", b"from the past")
    zombie.flush(30)
    kafka.transaction("shop").fence()
    with pytest.raises(KafkaException) as refused:
        zombie.commit_transaction(30)
    assert refused.value.args[0].fatal()
    assert kafka.topic("orders").values() == []


@pytest.mark.kafka(topics={"orders": 1})
def test_a_transaction_times_out(kafka):
    """A transaction takes too long

    The coordinator aborts it after `transaction.timeout.ms`. Here that is now.
    """
    settings = kafka.client_config("confluent", "producer", transactional_id="shop")
    producer = kafka.closing(Producer(settings))
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce("orders", b"order 1")
    producer.flush(30)
    assert kafka.clock.expire_transactions() == ["shop"]
    with pytest.raises(KafkaException):
        producer.commit_transaction(30)
    assert kafka.topic("orders").values() == []


@pytest.mark.kafka(topics={"orders": 1})
def test_a_commit_half_way(kafka):
    """A commit stops half-way

    The transaction is committed for the producer, but no partition has the marker yet. Readers
    wait.
    """
    with kafka.transactions.hold("shop", at="PrepareCommit") as held:
        settings = kafka.client_config("confluent", "producer", transactional_id="shop")
        producer = kafka.closing(Producer(settings))
        producer.init_transactions(30)
        producer.begin_transaction()
        producer.produce("orders", b"order 1")
        producer.commit_transaction(30)
        held.wait()
        assert kafka.partition("orders", 0).lso == 0
    kafka.wait.records("orders", 1, isolation="read_committed")


def relay(kafka, database):
    """Send the rows of the outbox. A row is deleted once its record is acknowledged."""
    settings = kafka.client_config("confluent", "producer", message_timeout_ms=300)
    producer = kafka.closing(Producer(settings))
    for number, text in database.execute("SELECT id, text FROM outbox ORDER BY id").fetchall():
        failed = []
        producer.produce(
            "orders",
            text,
            headers={"id": b"%d" % number},
            on_delivery=lambda error, _, failed=failed: error and failed.append(error),
        )
        producer.flush(30)
        if failed:
            raise KafkaException(failed[0])
        database.execute("DELETE FROM outbox WHERE id = ?", (number,))


@pytest.mark.kafka(topics={"orders": 1})
def test_an_outbox(kafka):
    """An outbox

    The relay sees a time-out for a record that was written. Its row stays, and the next run sends
    it again: at least once, with the same id.
    """
    database = sqlite3.connect(":memory:")
    database.execute("CREATE TABLE outbox (id INTEGER PRIMARY KEY, text TEXT)")
    database.execute("INSERT INTO outbox (text) VALUES ('order 1'), ('order 2')")
    with kafka.fault("Produce", action="hang", after_apply=True, always=True):
        with pytest.raises(KafkaException):
            relay(kafka, database)
        kafka.close_clients()
    relay(kafka, database)
    assert database.execute("SELECT count(*) FROM outbox").fetchone() == (0,)
    assert [each.header("id") for each in kafka.topic("orders")] == [b"1", b"1", b"2"]


@pytest.mark.kafka(topics={"orders": 1})
def test_the_same_records_again(kafka, consumer):
    """Read the same records again

    An operator sets the group back to the start, and the worker repeats its work.
    """
    kafka.topic("orders").put_many([b"1", b"2"])
    kafka.commit("billing", {("orders", 0): 2})
    kafka.commit("billing", {("orders", 0): 0})
    reader = consumer()
    reader.assign([TopicPartition("orders", 0)])
    assert [reader.poll(30).value(), reader.poll(30).value()] == [b"1", b"2"]
