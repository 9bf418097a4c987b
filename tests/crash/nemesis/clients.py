"""Our clients and librdkafka's behind one small interface, for the actors.

A `Link` says where the cluster is at this moment: an address for all clients, and the open
`Cluster` for those in its process. A client raises `Broken` when it has to begin anew.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Protocol

import confluent_kafka

import embedlog
from embedlog import Cluster, TopicPartition
from embedlog.errors import ClosedError, EmbedlogError
from tests.crash.nemesis.history import Place

IN_PROCESS, OVER_TCP, LIBRDKAFKA = "in process", "tcp", "librdkafka"
KINDS = (IN_PROCESS, OVER_TCP, LIBRDKAFKA)
DELIVERY_MS = 20_000
REQUEST_MS = 3_000
TRANSACTION_MS = 4_000
SESSION_MS = 6_000

_quiet = logging.Logger("librdkafka")
_quiet.addHandler(logging.NullHandler())
"""Takes what librdkafka would print: the actors see its errors."""

Outcome = Callable[[int | None, BaseException | None], None]
"""Called with the offset of a record, or with its error."""
Message = tuple[Place, int, bytes | None, bytes]
"""Place, offset, key, value."""


class Broken(Exception):
    """The client cannot go on; its place is taken by a new one."""


class Link:
    """Where the cluster is. `cluster` is None while nobody has it open."""

    def __init__(self) -> None:
        self.cluster: Cluster | None = None
        self.address = ""
        self._closing: list[threading.Thread] = []

    def close_aside(self, close: Callable[[], object]) -> None:
        """Call `close` in a thread of its own: the call may wait for a broker that is down."""
        thread = threading.Thread(target=close, name="closes a client", daemon=True)
        self._closing.append(thread)
        thread.start()

    def wait_for_closed(self, seconds: float) -> bool:
        """Return whether every `close_aside` has ended in time."""
        deadline = time.monotonic() + seconds
        for thread in self._closing:
            thread.join(max(0.0, deadline - time.monotonic()))
        return not any(thread.is_alive() for thread in self._closing)

    def owner(self, kind: str) -> Any:
        """Return the maker of clients of a kind.

        Raises:
            Broken: the cluster of this process is closed.
        """
        if kind != IN_PROCESS:
            return None
        if self.cluster is None:
            raise Broken("the cluster is closed")
        return self.cluster


class WriterClient(Protocol):
    """A producer, idempotent or transactional. All calls may raise `Broken`."""

    def send(self, place: Place, key: bytes | None, value: bytes, outcome: Outcome) -> None: ...
    def begin(self) -> None: ...
    def commit(self) -> None: ...
    def abort(self) -> None: ...
    def drain(self) -> None:
        """Wait until every record has its outcome."""

    def close(self) -> None: ...


class OwnWriter:
    """`embedlog.Producer`."""

    def __init__(self, link: Link, kind: str, transactional_id: str | None) -> None:
        settings: dict[str, Any] = {
            "delivery_timeout_ms": DELIVERY_MS,
            "request_timeout_ms": REQUEST_MS,
            "max_block_ms": DELIVERY_MS,
            "linger_ms": 2,
        }
        if transactional_id is not None:
            settings["transactional_id"] = transactional_id
            settings["transaction_timeout_ms"] = TRANSACTION_MS
        cluster = link.owner(kind)
        with _broken():
            if cluster is None:
                self._producer = embedlog.Producer(link.address, **settings)
            else:
                self._producer = cluster.producer(**settings)
        if transactional_id is not None:
            try:
                self._call(self._producer.init_transactions)
            except Broken:
                self.close()
                raise

    def send(self, place: Place, key: bytes | None, value: bytes, outcome: Outcome) -> None:
        topic, partition = place
        with _broken():
            self._producer.send(
                topic,
                value,
                key,
                partition=partition,
                on_delivery=lambda metadata, error: outcome(
                    None if error else metadata.offset, error
                ),
            )

    def begin(self) -> None:
        self._call(self._producer.begin_transaction)

    def commit(self) -> None:
        self._call(self._producer.commit_transaction)

    def abort(self) -> None:
        self._call(self._producer.abort_transaction)

    def drain(self) -> None:
        with _broken():
            self._producer.flush(DELIVERY_MS / 1000)

    def close(self) -> None:
        try:
            self._producer.close(0)
        except EmbedlogError:
            return  # its cluster is closed, or it was fenced

    @staticmethod
    def _call(call: Callable[[], None]) -> None:
        with _broken():
            call()


class LibrdkafkaWriter:
    """`confluent_kafka.Producer`."""

    def __init__(self, link: Link, transactional_id: str | None) -> None:
        self._fatal = fatal = list[str]()
        settings: dict[str, Any] = {
            "bootstrap.servers": link.address,
            "enable.idempotence": True,
            "delivery.timeout.ms": DELIVERY_MS,
            "request.timeout.ms": REQUEST_MS,
            "linger.ms": 2,
            "log_level": 0,
            "error_cb": lambda error: fatal.append(str(error)) if error.fatal() else None,
        }
        if transactional_id is not None:
            settings["transactional.id"] = transactional_id
            settings["transaction.timeout.ms"] = TRANSACTION_MS
            settings["delivery.timeout.ms"] = TRANSACTION_MS
        self._producer = confluent_kafka.Producer(settings, logger=_quiet)
        if transactional_id is not None:
            try:
                self._call("init_transactions", DELIVERY_MS / 1000)
            except Broken:
                self.close()
                raise

    def send(self, place: Place, key: bytes | None, value: bytes, outcome: Outcome) -> None:
        topic, partition = place
        self._check()

        def told(error: Any, message: Any) -> None:
            if error is None:
                outcome(message.offset(), None)
            else:
                outcome(None, confluent_kafka.KafkaException(error))

        try:
            self._producer.produce(topic, value, key, partition=partition, on_delivery=told)
        except (BufferError, confluent_kafka.KafkaException) as error:
            raise Broken(str(error)) from error
        self._producer.poll(0)

    def begin(self) -> None:
        self._call("begin_transaction")

    def commit(self) -> None:
        self._call("commit_transaction", DELIVERY_MS / 1000)

    def abort(self) -> None:
        self._call("abort_transaction", DELIVERY_MS / 1000)

    def drain(self) -> None:
        self._call("flush", DELIVERY_MS / 1000)
        self._check()

    def close(self) -> None:
        """Drop the producer. Its own `close` would abort a transaction that is left open."""
        self._producer.purge()
        with suppress(confluent_kafka.KafkaException):  # it is fenced, or failed for good
            self._producer.flush(1)
        del self._producer

    def _check(self) -> None:
        if self._fatal:
            raise Broken(self._fatal[0])

    def _call(self, name: str, *arguments: Any) -> None:
        """Call a method of the producer. No frame keeps the producer: `close` must be able to drop
        it while an error of the call is handled.
        """
        try:
            getattr(self._producer, name)(*arguments)
        except confluent_kafka.KafkaException as error:
            raise Broken(str(error)) from error


def writer(link: Link, kind: str, transactional_id: str | None = None) -> WriterClient:
    """Return a producer of a kind, ready to send or to begin a transaction."""
    if kind == LIBRDKAFKA:
        return LibrdkafkaWriter(link, transactional_id)
    return OwnWriter(link, kind, transactional_id)


class ReaderClient(Protocol):
    """A consumer of named partitions, or a member of a group. Calls may raise `Broken`."""

    def poll(self) -> Iterable[Message]: ...
    def commit(self, positions: dict[Place, int]) -> None: ...
    def close(self) -> None: ...


Assigned = Callable[[list[Place]], None]


class _Told(embedlog.ConsumerRebalanceListener):
    def __init__(self, assigned: Assigned) -> None:
        self._assigned = assigned

    def on_partitions_assigned(self, partitions: list[TopicPartition]) -> None:
        self._assigned([(each.topic, each.partition) for each in partitions])


class OwnReader:
    """`embedlog.Consumer`."""

    def __init__(self, link: Link, kind: str, **settings: Any) -> None:
        cluster = link.owner(kind)
        settings = {
            "auto_offset_reset": "earliest",
            "enable_auto_commit": False,
            "request_timeout_ms": REQUEST_MS,
            **settings,
        }
        with _broken():
            if cluster is None:
                self._consumer = embedlog.Consumer(link.address, **settings)
            else:
                self._consumer = cluster.consumer(**settings)

    def assign(self, positions: dict[Place, int]) -> None:
        with _broken():
            self._consumer.assign(list(positions))
            for place, position in positions.items():
                self._consumer.seek(place, position)

    def subscribe(self, topics: Sequence[str], assigned: Assigned) -> None:
        with _broken():
            self._consumer.subscribe(topics, listener=_Told(assigned))

    def poll(self) -> list[Message]:
        with _broken():
            return [
                ((each.topic, each.partition), each.offset, each.key, each.value)
                for each in self._consumer.poll(100)
            ]

    def commit(self, positions: dict[Place, int]) -> None:
        try:
            self._consumer.commit(positions, timeout_ms=REQUEST_MS)
        except ClosedError as error:
            raise Broken(repr(error)) from error
        except EmbedlogError as error:
            raise NotCommitted(repr(error)) from error

    def close(self) -> None:
        try:
            self._consumer.close(2)
        except EmbedlogError:
            return  # its cluster is closed


class LibrdkafkaReader:
    """`confluent_kafka.Consumer`."""

    def __init__(self, link: Link, **settings: Any) -> None:
        self._link = link
        self._consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": link.address,
                "group.id": "nobody",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "log_level": 0,
                "error_cb": lambda error: None,
                **settings,
            },
            logger=_quiet,
        )

    def assign(self, positions: dict[Place, int]) -> None:
        self._consumer.assign(
            [confluent_kafka.TopicPartition(*place, at) for place, at in positions.items()]
        )

    def subscribe(self, topics: Sequence[str], assigned: Assigned) -> None:
        def told(_consumer: Any, partitions: list[Any]) -> None:
            assigned([(each.topic, each.partition) for each in partitions])

        self._consumer.subscribe(list(topics), on_assign=told)

    def poll(self) -> list[Message]:
        return [
            ((each.topic(), each.partition()), each.offset(), each.key(), each.value())
            for each in self._consumer.consume(500, 0.1)
            if each.error() is None
        ]

    def commit(self, positions: dict[Place, int]) -> None:
        offsets = [confluent_kafka.TopicPartition(*each, at) for each, at in positions.items()]
        try:
            stored = self._consumer.commit(offsets=offsets, asynchronous=False)
        except confluent_kafka.KafkaException as error:
            raise NotCommitted(str(error)) from error
        for each in stored:
            if each.error is not None:
                raise NotCommitted(str(each.error))

    def close(self) -> None:
        """Begin to close: librdkafka waits for a coordinator that may be down."""
        self._link.close_aside(self._consumer.close)


class NotCommitted(Exception):
    """A commit failed; the member goes on."""


@contextmanager
def _broken() -> Iterator[None]:
    """Turn an error of embedlog into `Broken`."""
    try:
        yield
    except EmbedlogError as error:
        raise Broken(repr(error)) from error
