"""`Outcomes`: sets the futures of the event loop when any thread has completed their batches.

The client reports whole batches, and one wake-up of the loop handles all batches that are done by
then. A callback for each record would cost more than the record.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from embedlog.aio.threads import settle, tell
from embedlog.client.producer.batch import ProducerBatch
from embedlog.client.producer.futures import BatchFuture, DeliveryFuture
from embedlog.errors import TimedOut

Sent = DeliveryFuture | BatchFuture


class Outcomes:
    """The futures of one producer. Used in the event loop's thread, except `_batch_is_done`."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._create: Callable[[], asyncio.Future[Any]]
        self._serial = 0
        """The last serial number that a future or a batch got."""
        self._open: dict[asyncio.Future[Any] | ProducerBatch, int] = {}
        """The serial number of each future from `new` and each batch in `_records` that has no
        outcome yet. The numbers are in ascending order."""
        self._records: dict[ProducerBatch, list[tuple[asyncio.Future[Any], int]]] = {}
        """By batch, the futures of `of_record`, each with the index of its record in the batch."""
        self._waiting: dict[ProducerBatch, list[tuple[asyncio.Future[Any], Sent]]] = {}
        """By batch, the futures of `watch` that wait for it."""
        self._done: deque[ProducerBatch] = deque()
        """Batches with an outcome that the loop has not taken yet. Any thread appends to it."""
        self._is_told = False
        """True if `take_done` will be called soon anyway; then no batch needs to wake the loop."""
        self._flushes: list[tuple[int, asyncio.Future[None]]] = []
        """Running flushes: (serial number of the last future to wait for, the flush's future)."""

    def new(self) -> asyncio.Future[Any]:
        """Return a new future. The first one binds the producer to this thread's event loop."""
        if self._loop is None:
            self._bind()
        future: asyncio.Future[Any] = self._create()
        self._serial += 1
        self._open[future] = self._serial
        return future

    def of_record(self, sent: DeliveryFuture) -> asyncio.Future[Any]:
        """Return a future for a record in a batch: like `new` and `watch` together, but faster."""
        batch = sent.batch
        watched = self._records.get(batch)
        if watched is None:
            watched = self._watch_records(batch)
        future: asyncio.Future[Any] = self._create()
        watched.append((future, sent.index))
        return future

    def watch(self, future: asyncio.Future[Any], sent: Sent) -> None:
        """Complete `future` when every batch with records of `sent` has an outcome."""
        batches = sent.batches if isinstance(sent, BatchFuture) else (sent.batch,)
        if not batches:
            self.settle(future, sent.result(), None)
        for batch in batches:
            waiting = self._waiting.get(batch)
            if waiting is None:
                waiting = self._waiting[batch] = []
                self._hear_of(batch)
            waiting.append((future, sent))

    def settle(self, future: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
        """Set the outcome of a future that `new` returned."""
        self._open.pop(future, None)
        settle(future, result, error)

    def take_done(self) -> None:
        self._is_told = False
        while self._done:
            batch = self._done.popleft()
            if batch in self._records:
                self._settle_records(batch)
            for future, sent in self._waiting.pop(batch, ()):
                if isinstance(sent, BatchFuture) and not _is_done(sent.batches):
                    continue
                error = sent.exception()
                self.settle(future, None if error else sent.result(), error)
        if self._flushes:
            self._answer_flushes()

    def expect(self) -> None:
        """Stop batches from waking the loop: the caller is going to call `take_done` soon."""
        self._is_told = True

    async def until_settled(self, timeout: float | None) -> None:
        """Wait at most `timeout` seconds until all present futures have an outcome.

        Raises:
            TimedOut: some futures had no outcome in time.
        """
        if not self._open:
            return
        last = self._serial
        settled = asyncio.get_running_loop().create_future()
        self._flushes.append((last, settled))
        try:
            async with asyncio.timeout(timeout):
                await settled
        except TimeoutError:
            late = [each for each, serial in self._open.items() if serial <= last]
            count = sum(
                1 if isinstance(each, asyncio.Future) else len(self._records[each]) for each in late
            )
            raise TimedOut(f"{count} calls had no outcome after {timeout} s") from None

    def _bind(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._create = self._loop.create_future

    def _watch_records(self, batch: ProducerBatch) -> list[tuple[asyncio.Future[Any], int]]:
        if self._loop is None:
            self._bind()
        watched = self._records[batch] = []
        self._serial += 1
        self._open[batch] = self._serial
        self._hear_of(batch)
        return watched

    def _settle_records(self, batch: ProducerBatch) -> None:
        del self._open[batch]
        watched = self._records.pop(batch)
        outcome = batch.outcome
        for future, index in watched:
            if future.done():
                continue  # cancelled
            error = outcome.error_of(index)
            if error is None:
                future.set_result(outcome.record(index))
            else:
                future.set_exception(error)

    def _hear_of(self, batch: ProducerBatch) -> None:
        """Let the batch call `_batch_is_done` when it has an outcome."""
        batch.on_done = self._batch_is_done
        if batch.is_done:
            self._batch_is_done(batch)

    def _batch_is_done(self, batch: ProducerBatch) -> None:
        self._done.append(batch)
        if not self._is_told:
            self._is_told = True
            assert self._loop is not None, "bound by the first future"
            tell(self._loop, self.take_done)

    def _answer_flushes(self) -> None:
        oldest = next(iter(self._open.values()), self._serial + 1)
        for last, settled in self._flushes:
            if last < oldest:
                settle(settled, None, None)
        self._flushes = [each for each in self._flushes if not each[1].done()]


def _is_done(batches: Iterable[ProducerBatch]) -> bool:
    return all(batch.is_done for batch in batches)
