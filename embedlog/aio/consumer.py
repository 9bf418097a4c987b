"""`Consumer` for asyncio."""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress
from functools import partial
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Any, Self, TypeVar

from embedlog.aio.calls import Calls, awaited, awaited_here
from embedlog.client import arguments
from embedlog.client.consumer import consumer as blocking
from embedlog.client.consumer.group.auto_commit import consumed_offsets
from embedlog.client.consumer.group.group_offsets import OffsetAndMetadata
from embedlog.client.consumer.rebalance_listener import LISTENER_METHODS
from embedlog.client.consumer.record import ConsumerRecords, PolledColumns
from embedlog.client.errors import WakeupError
from embedlog.common import TopicPartition
from embedlog.errors import ClosedError
from embedlog.runtime.forks import stays_in_parent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from re import Pattern

    from embedlog.client.connect import Target
    from embedlog.client.consumer.group.group_offsets import GivenOffsets
    from embedlog.client.consumer.rebalance_listener import ConsumerRebalanceListener
    from embedlog.client.consumer.record import ConsumerRecord, PolledBatch
    from embedlog.client.consumer.subscription_state import SubscriptionPattern

    T = TypeVar("T")

    Partition = TopicPartition | tuple[str, int]

_ITERATION_WAIT_MS = 3_600_000


def _give_back(consumer: Consumer) -> None:
    consumer._give_back()


class Consumer:
    """Reads records of assigned partitions, or of subscribed topics as a member of a group.

    It has the settings and calls of `embedlog.Consumer`; here the calls are awaited. Many tasks
    may use one consumer. Another call interrupts a waiting poll, which continues afterwards.

    Rebalance listeners are plain functions. They run in the consumer's thread and must use
    `blocking`, the synchronous consumer. Deserializers and interceptors run in that thread as well;
    in process and without a group they may also run in the event loop's thread.

    >>> import asyncio, embedlog, embedlog.aio
    >>> async def main(cluster):
    ...     async with embedlog.aio.Consumer(cluster, auto_offset_reset="earliest") as consumer:
    ...         await consumer.assign([("events", 0)])
    ...         async for record in consumer:
    ...             return record.value
    >>> with embedlog.open() as cluster, cluster.producer() as producer:
    ...     written = producer.send("events", b"value").result()
    ...     asyncio.run(main(cluster))
    b'value'
    """

    def __init__(
        self, target: Target = None, config: Mapping[str, Any] | None = None, **settings: Any
    ) -> None:
        self._shared = _SharedConsumer(target, config, settings)
        self.blocking = self._shared.sync
        """The synchronous consumer, for rebalance listeners only."""
        self._calls = Calls(
            self._shared.scheduler,
            "consumer",
            interrupt=self.blocking.wakeup,
            begin=self._shared.forget_wakeup,
        )
        self._ahead: deque[ConsumerRecord] = deque()
        """Records that the iteration has polled but not handed out."""
        self._filling = asyncio.Lock()
        """If several tasks iterate, the task that polls holds this lock."""
        if self._shared.in_process:
            stays_in_parent(self)

    def __del__(self) -> None:
        calls: Calls | None = self.__dict__.get("_calls")
        if calls is not None:
            calls.abandon()

    # Subscription

    async def subscribe(
        self,
        topics: Iterable[str] | Pattern[str] | SubscriptionPattern | None = None,
        *,
        pattern: str | Pattern[str] | None = None,
        listener: ConsumerRebalanceListener | None = None,
    ) -> None:
        """Read these topics together with the other members of the group.

        Raises:
            TypeError: the listener has coroutine functions, which a rebalance cannot await.
            Exception: an error of `embedlog.Consumer.subscribe`.
        """
        for name in LISTENER_METHODS:
            if iscoroutinefunction(getattr(listener, name, None)):
                raise TypeError(f"{name} is a coroutine function; a listener has plain functions")
        call = self.blocking.subscribe
        await self._moving(partial(call, topics, pattern=pattern, listener=listener))

    async def assign(self, partitions: Iterable[Partition]) -> None:
        """Read these partitions and no others; see `embedlog.Consumer.assign`."""
        chosen = arguments.partitions(partitions, "assign")
        await self._moving(partial(self.blocking.assign, chosen))

    unsubscribe = awaited(blocking.Consumer.unsubscribe, _give_back)
    unassign = awaited(blocking.Consumer.unassign, _give_back)
    subscription = awaited_here(blocking.Consumer.subscription)
    assignment = awaited_here(blocking.Consumer.assignment)

    # Reading

    async def poll(self, timeout_ms: int = 0, *, max_records: int | None = None) -> ConsumerRecords:
        """Return records, maybe none, after waiting at most `timeout_ms` for the first.

        A cancelled poll takes no records. Raises the errors of `embedlog.Consumer.poll`, and
        ClosedError if the consumer is closed meanwhile.
        """
        return await self._poll(
            timeout_ms, lambda wait_ms: self.blocking.poll(wait_ms, max_records=max_records)
        )

    async def poll_batches(
        self, timeout_ms: int = 0, *, max_records: int | None = None
    ) -> list[PolledBatch]:
        """Like `poll`, but return plain tuples, grouped by record batch."""
        return await self._poll(
            timeout_ms, lambda wait_ms: self.blocking.poll_batches(wait_ms, max_records=max_records)
        )

    async def poll_columns(
        self, timeout_ms: int = 0, *, max_records: int | None = None
    ) -> list[PolledColumns]:
        """Like `poll`, but return whole record batches as numpy columns over the stored bytes."""
        return await self._poll(
            timeout_ms, lambda wait_ms: self.blocking.poll_columns(wait_ms, max_records=max_records)
        )

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> ConsumerRecord:
        """Return the next record, however long it takes. The iteration ends when `close` is called.

        A record counts as read when the task requests the next record or commits. Records that were
        fetched but not yet handed out do not count as read.
        """
        ahead = self._ahead
        if not ahead:
            async with self._filling:
                while not ahead:
                    try:
                        ahead.extend(await self._poll(_ITERATION_WAIT_MS, self.blocking.poll))
                    except ClosedError:
                        if self._calls.is_closing:
                            raise StopAsyncIteration from None
                        raise
        return ahead.popleft()

    # Positions

    seek = awaited_here(blocking.Consumer.seek, _give_back)
    seek_to_beginning = awaited_here(blocking.Consumer.seek_to_beginning, _give_back)
    seek_to_end = awaited_here(blocking.Consumer.seek_to_end, _give_back)
    pause = awaited_here(blocking.Consumer.pause, _give_back)
    position = awaited(blocking.Consumer.position, _give_back)
    current_lag = awaited_here(blocking.Consumer.current_lag, _give_back)
    resume = awaited_here(blocking.Consumer.resume)
    paused = awaited_here(blocking.Consumer.paused)

    # Offsets

    async def commit(
        self, offsets: GivenOffsets | None = None, timeout_ms: int | None = None
    ) -> None:
        """Store offsets for the group, by default the positions, and wait until they are stored.

        The positions of an iteration cover every record that it handed out. Raises the errors of
        `embedlog.Consumer.commit`. A cancelled commit may or may not have stored the offsets.
        """
        unread: dict[TopicPartition, ConsumerRecord] = {}
        await self._calls.in_thread(
            partial(self._shared.commit_read, unread, offsets, timeout_ms),
            prepare=lambda: unread.update(self._unread()),
        )

    committed = awaited(blocking.Consumer.committed)
    consumed_offsets = awaited_here(blocking.Consumer.consumed_offsets)
    group_metadata = awaited_here(blocking.Consumer.group_metadata)
    enforce_rebalance = awaited_here(blocking.Consumer.enforce_rebalance)

    # Topics and offsets

    beginning_offsets = awaited(blocking.Consumer.beginning_offsets)
    end_offsets = awaited(blocking.Consumer.end_offsets)
    offsets_for_times = awaited(blocking.Consumer.offsets_for_times)
    partitions_for = awaited(blocking.Consumer.partitions_for)
    list_topics = awaited(blocking.Consumer.list_topics)
    metrics = awaited_here(blocking.Consumer.metrics)

    # Closing

    async def close(self, timeout: float | None = None, *, membership: int = 0) -> None:
        """Close like `embedlog.Consumer.close`. A second call waits for the first.

        Polls that still wait raise ClosedError, and iterations end.
        """
        await self._calls.close(
            partial(self.blocking.close, timeout, membership=membership), prepare=self._give_back
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_exception: object) -> None:
        await self.close()

    # Inside

    async def _poll(self, timeout_ms: int, poll: Callable[[int], T]) -> T:
        """Poll until there are records or the time is over.

        If `poll(0)` cannot wait, try it first in this thread; then poll in the client's thread.
        """
        timeout_ms = arguments.timeout_ms(timeout_ms, "poll")
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_ms / 1000
        if self._shared.never_calls_back:
            await asyncio.sleep(0)  # let other tasks run between two polls
            found = await self._calls.here(lambda: poll(0), prepare=self._give_back)
            if found or timeout_ms <= 0:
                return found

        def poll_briefly_if_others_wait() -> T:
            left_ms = max(int((deadline - loop.time()) * 1000), 0)
            return poll(0 if self._calls.waiting_count else left_ms)

        while True:
            with suppress(WakeupError):  # another call interrupted the poll
                found = await self._calls.in_thread(
                    poll_briefly_if_others_wait,
                    prepare=self._give_back,
                    undo=self._undo,
                    is_patient=True,
                )
                if found or loop.time() >= deadline:
                    return found

    async def _moving(self, call: Callable[[], T]) -> T:
        """Make a call that reads or changes positions."""
        return await self._calls.in_thread(call, prepare=self._give_back)

    def _unread(self) -> dict[TopicPartition, ConsumerRecord]:
        """Return each partition's first record that the iteration has not handed out."""
        unread: dict[TopicPartition, ConsumerRecord] = {}
        for record in self._ahead:
            unread.setdefault(TopicPartition(record.topic, record.partition), record)
        return unread

    def _give_back(self) -> None:
        """Seek back to the records that the iteration has not handed out.

        Requires: the caller holds the turn of `Calls`.
        """
        if self._ahead:
            unread = self._unread()
            self._ahead.clear()
            self._shared.give_back({key: record.offset for key, record in unread.items()})

    def _undo(self, found: Any) -> None:
        """Seek back to the first records of a cancelled poll.

        Requires: the caller holds the turn of `Calls`.
        """
        self._shared.give_back(_first_offsets(found))


class _SharedConsumer:
    """The synchronous consumer with extra calls. Only one thread uses it at a time."""

    def __init__(
        self, target: Target, config: Mapping[str, Any] | None, settings: Mapping[str, Any]
    ) -> None:
        self.sync, parts, driver = blocking.shared(target, config, settings)
        """The synchronous consumer."""
        self._subscription = parts.subscription
        self._guard = driver.guard
        self.forget_wakeup = driver.forget_wakeup
        self.scheduler = parts.transport.runtime.scheduler
        self.in_process = parts.transport.in_process
        self.never_calls_back = self.in_process and driver.coordinator is None
        """True if poll(0) neither waits nor calls rebalance listeners."""

    def give_back(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Seek back to these offsets, in the partitions that are still assigned."""
        with self._guard:
            for key, offset in offsets.items():
                if key in self._subscription.partitions:
                    self.sync.seek(key, offset)

    def commit_read(
        self,
        unread: Mapping[TopicPartition, ConsumerRecord],
        offsets: GivenOffsets | None,
        timeout_ms: int | None,
    ) -> None:
        """Commit `offsets`, or by default the offsets up to which records were handed out.

        These offsets are the positions, except for partitions in `unread`: it has the first record
        that was fetched but not handed out, and this record's offset is committed.
        """
        if offsets is None and unread:
            with self._guard:
                read = consumed_offsets(self._subscription)
            for key, record in unread.items():
                if key in read:
                    read[key] = OffsetAndMetadata(record.offset, "", record.leader_epoch)
            offsets = read
        self.sync.commit(offsets, timeout_ms)


def _first_offsets(found: Any) -> dict[TopicPartition, int]:
    """Return the first offset of each partition in a result of any of the three polls."""
    offsets: dict[TopicPartition, int] = {}
    if isinstance(found, ConsumerRecords):
        for key, records in found.items():
            offsets[key] = records[0].offset
        return offsets
    for part in found:
        if part.topic_partition not in offsets:
            is_columns = isinstance(part, PolledColumns)
            offsets[part.topic_partition] = int(
                part.offsets[0] if is_columns else part.records[0][0]
            )
    return offsets
