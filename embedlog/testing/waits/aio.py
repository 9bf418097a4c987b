"""`AioWaits`: the waits of a test for asyncio. The event loop goes on meanwhile.

Each wait has a thread of its own, which ends with the wait. Cancelling the task ends both.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any, TypeVar

from embedlog.common import TopicPartition
from embedlog.errors import TimedOut
from embedlog.runtime.outer_call import as_caller
from embedlog.runtime.pending import Pending
from embedlog.testing.inspection.brokers import Brokers
from embedlog.testing.inspection.group_values import GroupValue
from embedlog.testing.inspection.transactions import TransactionValue
from embedlog.testing.seen_request import SeenRequest
from embedlog.testing.signals import Waiter
from embedlog.testing.waits.condition import TIMEOUT, Condition
from embedlog.testing.waits.wanted import Wanted

T = TypeVar("T")

Run = Callable[[Condition[Any], float, Callable[[Waiter], object]], Any]


class AioWaits:
    """The calls of `Waits` as coroutines, with the same arguments, results and errors."""

    def __init__(self, wanted: Wanted, run: Run, brokers: Brokers) -> None:
        self._wanted = wanted
        self._run = run
        self._brokers = brokers

    async def group(
        self,
        group_id: str,
        *,
        state: str | None = None,
        members: int | None = None,
        assigned: int | None = None,
        timeout: float = TIMEOUT,
    ) -> GroupValue:
        """See `Waits.group`."""
        return await self._wait(self._wanted.group(group_id, state, members, assigned), timeout)

    async def rebalanced(
        self, group_id: str, *, since: int | None = None, timeout: float = TIMEOUT
    ) -> GroupValue:
        """See `Waits.rebalanced`."""
        return await self._wait(self._wanted.rebalanced(group_id, since), timeout)

    async def lag(
        self,
        group_id: str,
        lag: int = 0,
        *,
        topics: Collection[str] = (),
        isolation: str = "read_uncommitted",
        timeout: float = TIMEOUT,
    ) -> dict[TopicPartition, int]:
        """See `Waits.lag`."""
        return await self._wait(self._wanted.lag(group_id, lag, topics, isolation), timeout)

    async def committed(
        self,
        group_id: str,
        offsets: Mapping[tuple[str, int], int],
        *,
        timeout: float = TIMEOUT,
    ) -> dict[TopicPartition, int]:
        """See `Waits.committed`."""
        return await self._wait(self._wanted.committed(group_id, offsets), timeout)

    async def records(
        self,
        topic: str,
        count: int,
        *,
        partition: int | None = None,
        isolation: str = "read_uncommitted",
        timeout: float = TIMEOUT,
    ) -> int:
        """See `Waits.records`."""
        return await self._wait(self._wanted.records(topic, count, partition, isolation), timeout)

    async def isr(
        self, topic: str, partition: int, isr: Collection[int], *, timeout: float = TIMEOUT
    ) -> set[int]:
        """See `Waits.isr`."""
        return await self._wait(self._wanted.isr(topic, partition, isr), timeout)

    async def leader(
        self,
        topic: str,
        partition: int,
        node_id: int | None = None,
        *,
        timeout: float = TIMEOUT,
    ) -> int:
        """See `Waits.leader`."""
        return await self._wait(self._wanted.leader(topic, partition, node_id), timeout)

    async def request(
        self,
        api: str,
        *,
        client_id: str | None = None,
        node_id: int | None = None,
        times: int = 1,
        where: Callable[[Any], object] | None = None,
        timeout: float = TIMEOUT,
    ) -> list[SeenRequest]:
        """See `Waits.request`."""
        condition = self._wanted.request(api, client_id, node_id, times, where)
        return await self._wait(condition, timeout)

    async def transaction(
        self, transactional_id: str, state: str, *, timeout: float = TIMEOUT
    ) -> TransactionValue:
        """See `Waits.transaction`."""
        return await self._wait(self._wanted.transaction(transactional_id, state), timeout)

    async def until(
        self, function: Callable[[], T], *, describe: str | None = None, timeout: float = TIMEOUT
    ) -> T:
        """See `Waits.until`. The function runs in the event loop's thread."""
        condition = self._wanted.until(function, describe)
        loop = asyncio.get_running_loop()
        waiters: list[Waiter] = []
        condition.function = partial(self._in_loop, loop, function, waiters)
        return await self._wait(condition, timeout, waiters)

    def _in_loop(
        self, loop: asyncio.AbstractEventLoop, function: Callable[[], T], waiters: list[Waiter]
    ) -> T:
        """Call a function in the loop's thread, and return its result."""
        outcome: Pending[T] = Pending()

        def call() -> None:
            try:
                outcome.complete(function())
            except BaseException as error:
                outcome.fail(error)

        loop.call_soon_threadsafe(call)
        waiter = Waiter(self._brokers.signals, _LOOP_MS)
        waiters.append(waiter)
        waiter.until_done(outcome)
        waiters.remove(waiter)
        if not outcome.done():
            raise TimedOut(f"the event loop did not call the function in {_LOOP_MS // 1000} s")
        return outcome.result()

    async def _wait(
        self, condition: Condition[T], timeout: float, waiters: list[Waiter] | None = None
    ) -> T:
        """Wait in a thread. A cancelled task cancels all `waiters` of the thread."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[T] = loop.create_future()
        under_way: list[Waiter] = [] if waiters is None else waiters

        def started(waiter: Waiter) -> None:
            under_way.append(waiter)
            if done.cancelled():  # before the task could see this waiter
                waiter.cancel()

        def finish(result: T | None, error: BaseException | None) -> None:
            if done.done():
                return  # the task was cancelled
            if error is None:
                done.set_result(result)  # type: ignore[arg-type]
            else:
                done.set_exception(error)

        def run() -> None:
            result, error = None, None
            try:
                result = as_caller(lambda: self._run(condition, timeout, started))
            except BaseException as raised:
                error = raised
            try:
                loop.call_soon_threadsafe(finish, result, error)
            except RuntimeError:
                return  # the loop was closed

        self._brokers.cluster.runtime.scheduler.start_thread(run, "embedlog-test-wait")
        try:
            return await done
        finally:
            for waiter in list(under_way):
                waiter.cancel()


_LOOP_MS = 60_000
"""How long a function may take in a busy event loop."""
