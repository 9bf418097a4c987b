"""`with producer.transaction() as t`: commits at the end, aborts when an exception leaves."""

from __future__ import annotations

from embedlog.client.errors import IllegalState
from embedlog.errors import EmbedlogError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from embedlog.client.consumer.consumer import Consumer
    from embedlog.client.producer.futures import BatchFuture, DeliveryFuture
    from embedlog.client.producer.transactional import Transactional


class Transaction:
    """One transaction of a producer, from entering the `with` to leaving it.

    >>> with embedlog.open() as cluster, embedlog.Producer(cluster) as producer:
    ...     producer.transaction()
    Traceback (most recent call last):
        ...
    embedlog.client.errors.IllegalState: transaction: the producer has no transactional.id
    """

    def __init__(
        self,
        producer: Transactional,
        send: Callable[..., DeliveryFuture],
        send_batch: Callable[..., BatchFuture],
    ) -> None:
        """`send` and `send_batch` are methods of the producer."""
        self._producer = producer
        self._send = send
        self._send_batch = send_batch
        self._is_open = False

    def send(self, topic: str, value: Any = None, key: Any = None, **more: Any) -> DeliveryFuture:
        """Send one record, as `Producer.send` does; it is committed when the `with` ends."""
        self._check_open("send")
        return self._send(topic, value, key, **more)

    def send_batch(self, topic: str, values: Sequence[Any], **more: Any) -> BatchFuture:
        """Send many records, as `Producer.send_batch` does."""
        self._check_open("send_batch")
        return self._send_batch(topic, values, **more)

    def send_offsets(self, consumer: Consumer, offsets: Any = None) -> None:
        """Commit the position of `consumer` for its group, as part of the transaction.

        By default it commits the offsets after all returned records. `offsets` replaces them, in
        the form of `Consumer.commit`. The consumer's enable.auto.commit must be off.

        Raises:
            IllegalState: enable.auto.commit is on. KafkaError: InvalidGroupId, without a group.id.
                The rest as `Producer.send_offsets_to_transaction`.
        """
        self._check_open("send_offsets")
        if offsets is None:
            offsets = consumer.consumed_offsets()
        self._producer.send_offsets_to_transaction(offsets, consumer.group_metadata())

    def __enter__(self) -> Transaction:
        self._producer.begin_transaction()
        self._is_open = True
        return self

    def __exit__(self, _kind: object, raised: BaseException | None, _traceback: object) -> None:
        self._is_open = False
        if raised is not None:
            self._abort(raised)
            return
        try:
            self._producer.commit_transaction()
        except EmbedlogError as error:
            if error.remedy == "abort":
                self._abort(error)
            raise

    def _abort(self, why: BaseException) -> None:
        """Abort; a failure of the abort must not hide its reason `why`."""
        try:
            self._producer.abort_transaction()
        except EmbedlogError as error:
            why.add_note(f"and the transaction could not be aborted: {error}")

    def _check_open(self, call: str) -> None:
        if not self._is_open:
            raise IllegalState(f"{call}: the transaction has ended, or was not entered with `with`")
