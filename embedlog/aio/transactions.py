"""Transactions of the producer for asyncio."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, Self

from embedlog.client.errors import IllegalState
from embedlog.errors import EmbedlogError

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Coroutine, Sequence
    from types import TracebackType

    from embedlog.client.consumer.group.group_offsets import (
        ConsumerGroupMetadata,
        OffsetAndMetadata,
    )
    from embedlog.client.producer.batch import BatchMetadata, RecordMetadata
    from embedlog.common import TopicPartition

    class TransactionalProducer(Protocol):
        """`Producer`, as far as its transactions need it."""

        @property
        def send(self) -> Callable[..., asyncio.Future[RecordMetadata]]: ...

        @property
        def send_batch(self) -> Callable[..., asyncio.Future[list[BatchMetadata]]]: ...

        async def begin_transaction(self) -> None: ...

        async def send_offsets_to_transaction(self, offsets: Any, group_metadata: Any) -> None: ...

        async def commit_transaction(self) -> None: ...

        async def abort_transaction(self) -> None: ...

    class GroupConsumer(Protocol):
        """`Consumer`, as far as its offsets go."""

        @property
        def consumed_offsets(
            self,
        ) -> Callable[[], Coroutine[Any, Any, dict[TopicPartition, OffsetAndMetadata]]]: ...

        @property
        def group_metadata(self) -> Callable[[], Coroutine[Any, Any, ConsumerGroupMetadata]]: ...


class Transaction:
    """One transaction of a producer, from entering the `async with` to leaving it."""

    __slots__ = ("_is_open", "_producer")

    def __init__(self, producer: TransactionalProducer) -> None:
        self._producer = producer
        self._is_open = False

    def send(
        self, topic: str, value: Any = None, key: Any = None, **more: Any
    ) -> asyncio.Future[RecordMetadata]:
        """Hand over one record, as `Producer.send` does: it counts once the block has ended.

        Nobody needs to await the future: the commit waits for it, and fails if it does.
        """
        self._check_open("send")
        return _seen(self._producer.send(topic, value, key, **more))

    def send_batch(
        self, topic: str, values: Sequence[Any], **more: Any
    ) -> asyncio.Future[list[BatchMetadata]]:
        """Hand over many records, as `Producer.send_batch` does."""
        self._check_open("send_batch")
        return _seen(self._producer.send_batch(topic, values, **more))

    async def send_offsets(self, consumer: GroupConsumer, offsets: Any = None) -> None:
        """Commit what `consumer` has read, or `offsets`, for its group with the transaction.

        See `embedlog.Transaction.send_offsets`.
        """
        self._check_open("send_offsets")
        if offsets is None:
            offsets = await consumer.consumed_offsets()
        metadata = await consumer.group_metadata()
        await self._producer.send_offsets_to_transaction(offsets, metadata)

    async def __aenter__(self) -> Self:
        await self._producer.begin_transaction()
        self._is_open = True
        return self

    async def __aexit__(
        self,
        _kind: type[BaseException] | None,
        raised: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        self._is_open = False
        if raised is not None:
            await self._abort(raised)
            return
        try:
            await self._producer.commit_transaction()
        except EmbedlogError as error:
            if error.remedy == "abort":
                await self._abort(error)
            raise

    async def _abort(self, why: BaseException) -> None:
        """Abort; what stands in the way of that must not hide `why` it is aborted."""
        try:
            await self._producer.abort_transaction()
        except EmbedlogError as error:
            why.add_note(f"and the transaction could not be aborted: {error}")

    def _check_open(self, call: str) -> None:
        if not self._is_open:
            raise IllegalState(
                f"{call}: the transaction has ended, or was not entered with `async with`"
            )


def _seen(future: asyncio.Future[Any]) -> asyncio.Future[Any]:
    """The future; asyncio need not warn that nobody asked for its error, as the commit has it."""
    future.add_done_callback(lambda done: done.cancelled() or done.exception())
    return future
