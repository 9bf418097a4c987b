"""`Consumer` for asyncio."""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress
from functools import partial
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Any, Self, TypeVar

from embedlog.aio.calls import Calls, awaited, awaited_here
from embedlog.aio.shared_consumer import SharedConsumer, first_offsets
from embedlog.client import arguments
from embedlog.client.consumer import consumer as blocking
from embedlog.client.consumer.rebalance_listener import LISTENER_METHODS
from embedlog.client.errors import WakeupError
from embedlog.common import TopicPartition
from embedlog.errors import ClosedError
from embedlog.runtime.forks import stays_in_parent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from re import Pattern
    from types import TracebackType

    from embedlog.client.connect import Target
    from embedlog.client.consumer.group.group_offsets import GivenOffsets, OffsetAndMetadata
    from embedlog.client.consumer.rebalance_listener import ConsumerRebalanceListener
    from embedlog.client.consumer.record import (
        ConsumerRecord,
        ConsumerRecords,
        PolledBatch,
        PolledColumns,
    )
    from embedlog.client.consumer.subscription_state import SubscriptionPattern

    T = TypeVar("T")

    Partition = TopicPartition | tuple[str, int]

_ITERATION_WAIT_MS = 3_600_000


class Consumer:
    """Reads records by assignment, or by subscription as a member of a group.

    See `embedlog.Consumer` for the settings and for what each call does; all are awaited here.
    Many tasks may use one consumer. A call does not wait for a poll that waits: it goes first, and
    then the poll goes on.

    Rebalance listeners are plain functions, called in the consumer's thread; there they use
    `blocking`, the synchronous consumer underneath. Deserializers and interceptors run in that
    thread too, or, in process and without a group, in the event loop's.

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
        self._shared = SharedConsumer(target, config, settings)
        self.blocking = self._shared.sync
        """The synchronous consumer underneath: for rebalance listeners, and for nobody else."""
        self._calls = Calls(
            self._shared.scheduler,
            "consumer",
            interrupt=self.blocking.wakeup,
            begin=self._shared.forget_wakeup,
        )
        self._ahead: deque[ConsumerRecord] = deque()
        """Polled by the iteration, and not handed out yet."""
        self._filling = asyncio.Lock()
        """Held by the task that polls, of those that iterate."""
        if self._shared.in_process:
            stays_in_parent(self)

    # What to read

    async def subscribe(
        self,
        topics: Iterable[str] | Pattern[str] | SubscriptionPattern | None = None,
        *,
        pattern: str | Pattern[str] | None = None,
        listener: ConsumerRebalanceListener | None = None,
    ) -> None:
        """Read these topics together with the other members of the group.

        Raises:
            TypeError: the listener has coroutines: nobody could await them in a rebalance.
            Exception: as `embedlog.Consumer.subscribe`.
        """
        for name in LISTENER_METHODS:
            if iscoroutinefunction(getattr(listener, name, None)):
                raise TypeError(f"{name} is a coroutine function; a listener has plain functions")
        call = self.blocking.subscribe
        await self._moving(partial(call, topics, pattern=pattern, listener=listener))

    async def unsubscribe(self) -> None:
        """Read nothing, and leave the group."""
        await self._moving(self.blocking.unsubscribe)

    async def assign(self, partitions: Iterable[Partition]) -> None:
        """Read these partitions and no others; see `embedlog.Consumer.assign`."""
        chosen = arguments.partitions(partitions, "assign")
        await self._moving(partial(self.blocking.assign, chosen))

    async def unassign(self) -> None:
        """Read nothing."""
        await self.unsubscribe()

    subscription = awaited_here(blocking.Consumer.subscription)
    assignment = awaited_here(blocking.Consumer.assignment)

    # Reading

    async def poll(self, timeout_ms: int = 0, *, max_records: int | None = None) -> ConsumerRecords:
        """Records that have arrived, waiting at most `timeout_ms` for the first; maybe none.

        Cancelled, it has taken no records. Raises what `embedlog.Consumer.poll` raises, and
        ClosedError when the consumer is closed meanwhile.
        """
        return await self._poll(
            timeout_ms, lambda wait_ms: self.blocking.poll(wait_ms, max_records=max_records)
        )

    async def poll_batches(
        self, timeout_ms: int = 0, *, max_records: int | None = None
    ) -> list[PolledBatch]:
        """As `poll`, but plain tuples, together as they were written."""
        return await self._poll(
            timeout_ms, lambda wait_ms: self.blocking.poll_batches(wait_ms, max_records=max_records)
        )

    async def poll_columns(
        self, timeout_ms: int = 0, *, max_records: int | None = None
    ) -> list[PolledColumns]:
        """As `poll`, but whole record batches as numpy columns over the bytes as they are."""
        return await self._poll(
            timeout_ms, lambda wait_ms: self.blocking.poll_columns(wait_ms, max_records=max_records)
        )

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> ConsumerRecord:
        """The next record, waiting for it for ever; the end is when the consumer is closed.

        A record that was handed out counts as read when the next is asked for or something is
        committed; one that was not does not, though it may have been fetched.
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

    async def seek(self, partition: Partition, offset: int | OffsetAndMetadata) -> None:
        """Go on at `offset` of an assigned partition."""
        await self._moving_here(partial(self.blocking.seek, partition, offset))

    async def seek_to_beginning(self, *partitions: Partition) -> None:
        """Go on at the first record, of all assigned partitions when none is named."""
        await self._moving_here(partial(self.blocking.seek_to_beginning, *partitions))

    async def seek_to_end(self, *partitions: Partition) -> None:
        """Go on at the end (with read_committed: before open transactions)."""
        await self._moving_here(partial(self.blocking.seek_to_end, *partitions))

    async def pause(self, *partitions: Partition) -> None:
        """Stop handing out records of these partitions."""
        await self._moving_here(partial(self.blocking.pause, *partitions))

    async def position(self, partition: Partition, timeout_ms: int | None = None) -> int:
        """The offset of the next record to read, looked up if there is none yet."""
        return await self._moving(partial(self.blocking.position, partition, timeout_ms))

    async def current_lag(self, partition: Partition) -> int | None:
        """Records between the position and the end as of the last fetch; None if not known."""
        return await self._moving_here(partial(self.blocking.current_lag, partition))

    resume = awaited_here(blocking.Consumer.resume)
    paused = awaited_here(blocking.Consumer.paused)

    # Offsets

    async def commit(
        self, offsets: GivenOffsets | None = None, timeout_ms: int | None = None
    ) -> None:
        """Store offsets for the group, by default the positions; returns when they are stored.

        Of an iteration every record that it handed out counts as read. Raises what
        `embedlog.Consumer.commit` raises; cancelled, it may have stored the offsets or not.
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

    # Looking around

    beginning_offsets = awaited(blocking.Consumer.beginning_offsets)
    end_offsets = awaited(blocking.Consumer.end_offsets)
    offsets_for_times = awaited(blocking.Consumer.offsets_for_times)
    partitions_for = awaited(blocking.Consumer.partitions_for)
    list_topics = awaited(blocking.Consumer.list_topics)
    metrics = awaited_here(blocking.Consumer.metrics)

    # Life

    async def close(self, timeout: float | None = None, *, membership: int = 0) -> None:
        """End what waits, commit if that is automatic, leave the group. Again is allowed.

        A poll that waits raises ClosedError, an iteration ends. See `embedlog.Consumer.close`.
        """
        await self._calls.close(
            partial(self.blocking.close, timeout, membership=membership), prepare=self._give_back
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        await self.close()

    # Inside

    async def _poll(self, timeout_ms: int, poll: Callable[[int], T]) -> T:
        """Poll until there is something, first here if it cannot wait, then in the thread."""
        timeout_ms = arguments.timeout_ms(timeout_ms, "poll")
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_ms / 1000
        if self._shared.never_calls_back:
            await asyncio.sleep(0)  # other tasks run between two polls
            found = await self._calls.here(lambda: poll(0), prepare=self._give_back)
            if found or timeout_ms <= 0:
                return found

        def poll_briefly_if_others_wait() -> T:
            left_ms = max(int((deadline - loop.time()) * 1000), 0)
            return poll(0 if self._calls.waiting_count else left_ms)

        while True:
            with suppress(WakeupError):  # another call goes first
                found = await self._calls.in_thread(
                    poll_briefly_if_others_wait,
                    prepare=self._give_back,
                    undo=self._undo,
                    is_patient=True,
                )
                if found or loop.time() >= deadline:
                    return found

    async def _moving(self, call: Callable[[], T]) -> T:
        """A call that looks at positions, or changes them."""
        return await self._calls.in_thread(call, prepare=self._give_back)

    async def _moving_here(self, call: Callable[[], T]) -> T:
        return await self._calls.here(call, prepare=self._give_back)

    def _unread(self) -> dict[TopicPartition, ConsumerRecord]:
        """The first record of each partition that the iteration has not handed out."""
        unread: dict[TopicPartition, ConsumerRecord] = {}
        for record in self._ahead:
            unread.setdefault(TopicPartition(record.topic, record.partition), record)
        return unread

    def _give_back(self) -> None:
        """Forget what the iteration has not handed out: it is polled again. Requires: the turn."""
        if self._ahead:
            unread = self._unread()
            self._ahead.clear()
            self._shared.give_back({key: record.offset for key, record in unread.items()})

    def _undo(self, found: Any) -> None:
        """A poll whose task was cancelled has not happened. Requires: the turn."""
        self._shared.give_back(first_offsets(found))
