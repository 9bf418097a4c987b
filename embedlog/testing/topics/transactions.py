"""`OpenTransaction`: records in a transaction that a test leaves open, commits or aborts."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, Self

from embedlog.errors import IllegalState
from embedlog.testing.topics.record import Formats, LogRecord
from embedlog.testing.topics.seeds import Headers, Seed, seed, seed_of

if TYPE_CHECKING:
    from embedlog.testing.topics.logs import Logs

CLIENT_ID = "embedlog-testing"
"""The client id of all requests of this part of the test kit."""


class OpenTransaction:
    """A transaction of a producer of its own. The end of the cluster aborts it.

    >>> with Kafka(topics={"orders": 1}) as kafka:
    ...     transaction = kafka.topic("orders").transaction()
    ...     written = transaction.put(b"x")
    ...     before = len(kafka.topic("orders"))
    ...     transaction.commit()
    ...     before, len(kafka.topic("orders"))
    (0, 1)
    """

    def __init__(
        self,
        logs: Logs,
        topic: str,
        formats: Formats,
        *,
        transactional_id: str | None,
        timeout: float,
    ) -> None:
        """Begin a transaction. `timeout` in seconds: then the broker aborts it."""
        self.transactional_id = transactional_id or logs.next_transactional_id()
        self._logs = logs
        self._topic = topic
        self._formats = formats
        self._producer = logs.producer(
            transactional_id=self.transactional_id,
            transaction_timeout_ms=round(timeout * 1000),
            client_id=CLIENT_ID,
        )
        self._producer.init_transactions()
        self._producer.begin_transaction()
        self._outcome: str | None = None

    @property
    def is_open(self) -> bool:
        """False after `commit` and `abort`."""
        return self._outcome is None

    def put(
        self,
        value: Any,
        key: Any = None,
        *,
        timestamp: int | datetime | None = None,
        headers: Headers | None = None,
        partition: int | None = None,
        topic: str | None = None,
    ) -> LogRecord:
        """Write a record as part of the transaction; the arguments are as of `Topic.put`.

        `topic` may be another topic. The limits of message.timestamp hold here.
        """
        name = self._topic if topic is None else topic
        self._logs.check(name)
        made = seed(
            value, key, self._formats, timestamp=timestamp, headers=headers, partition=partition
        )
        return self._write(name, made)

    def put_many(self, records: Any) -> list[LogRecord]:
        """Write values or `rec`s as part of the transaction."""
        return [self._write(self._topic, seed_of(each, self._formats)) for each in records]

    def _write(self, topic: str, made: Seed) -> LogRecord:
        if self._outcome is not None:
            raise IllegalState(f"the transaction {self.transactional_id!r} is {self._outcome}")
        if made.at_offset is not None:
            raise IllegalState("a record of a transaction gets the next offset; skip comes before")
        if made.partition is None and made.key is None:
            made.partition = self._logs.next_turn(topic) % self._logs.partition_count(topic)
        elif made.partition is not None:
            self._logs.check_partition(topic, made.partition)
        written = self._producer.send(
            topic,
            made.value,
            made.key,
            partition=made.partition,
            timestamp_ms=made.timestamp,
            headers=list(made.headers),
        ).result()
        return LogRecord(
            topic,
            written.partition,
            written.offset,
            written.timestamp,
            made.key,
            made.value,
            made.headers,
            self._formats,
        )

    def commit(self) -> None:
        """Commit the transaction: readers see its records."""
        self._end("committed")

    def abort(self) -> None:
        """Abort the transaction: its records stay in the log, and no committed reader sees them."""
        self._end("aborted")

    def _end(self, outcome: str) -> None:
        if self._outcome is not None:
            raise IllegalState(f"the transaction {self.transactional_id!r} is {self._outcome}")
        if outcome == "committed":
            self._producer.commit_transaction()
        else:
            self._producer.abort_transaction()
        self._outcome = outcome
        self._producer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_exception: object) -> None:
        """Commit, or abort after an exception, unless the transaction has ended."""
        if self.is_open:
            self._end("committed" if kind is None else "aborted")

    def __repr__(self) -> str:
        return f"<transaction {self.transactional_id!r}, {self._outcome or 'open'}>"
