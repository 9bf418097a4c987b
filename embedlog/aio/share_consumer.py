"""`ShareConsumer` for asyncio."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Any, Self

from embedlog.aio.calls import Calls, awaited, awaited_here
from embedlog.client import arguments
from embedlog.client.errors import WakeupError
from embedlog.client.share import consumer as blocking
from embedlog.runtime.forks import stays_in_parent

if TYPE_CHECKING:
    from collections.abc import Mapping

    from embedlog.client.connect import Target
    from embedlog.client.share.acknowledgements import Callback
    from embedlog.client.share.record import ShareRecords


class ShareConsumer:
    """Reads the records of a share group, and acknowledges them one by one (KIP-932).

    It has the settings and calls of `embedlog.ShareConsumer`; here the calls are awaited. Many
    tasks may use one consumer. Another call interrupts a waiting poll, which continues afterwards.

    Deserializers and the callback for acknowledgements are plain functions, which run in the
    consumer's thread.

    >>> import asyncio, embedlog, embedlog.aio
    >>> async def main(cluster):
    ...     async with embedlog.aio.ShareConsumer(cluster, group_id="workers") as consumer:
    ...         await consumer.subscribe(["jobs"])
    ...         return await consumer.subscription()
    >>> with embedlog.open() as cluster:
    ...     asyncio.run(main(cluster))
    {'jobs'}
    """

    def __init__(
        self, target: Target = None, config: Mapping[str, Any] | None = None, **settings: Any
    ) -> None:
        self.blocking, parts, driver = blocking.shared(target, config, settings)
        """The synchronous share consumer."""
        self._in_flight = parts.in_flight
        self._guard = driver.guard
        self._calls = Calls(
            parts.transport.runtime.scheduler,
            "share-consumer",
            interrupt=self.blocking.wakeup,
            begin=driver.forget_wakeup,
        )
        if parts.transport.in_process:
            stays_in_parent(self)

    def __del__(self) -> None:
        calls: Calls | None = self.__dict__.get("_calls")
        if calls is not None:
            calls.abandon()

    subscribe = awaited(blocking.ShareConsumer.subscribe)
    unsubscribe = awaited(blocking.ShareConsumer.unsubscribe)
    subscription = awaited_here(blocking.ShareConsumer.subscription)

    async def poll(self, timeout_ms: int = 0) -> ShareRecords:
        """Return records, maybe none, after waiting at most `timeout_ms` for the first.

        The records of a cancelled poll are returned by the next poll. Raises the errors of
        `embedlog.ShareConsumer.poll`, and ClosedError if the consumer is closed meanwhile.
        """
        timeout_ms = arguments.timeout_ms(timeout_ms, "poll")
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_ms / 1000

        def poll_briefly_if_others_wait() -> ShareRecords:
            left_ms = max(int((deadline - loop.time()) * 1000), 0)
            return self.blocking.poll(0 if self._calls.waiting_count else left_ms)

        while True:
            with suppress(WakeupError):  # another call interrupted the poll
                found = await self._calls.in_thread(
                    poll_briefly_if_others_wait, undo=self._undo, is_patient=True
                )
                if found or loop.time() >= deadline:
                    return found

    acknowledge = awaited_here(blocking.ShareConsumer.acknowledge)
    acknowledge_offset = awaited_here(blocking.ShareConsumer.acknowledge_offset)
    commit_sync = awaited(blocking.ShareConsumer.commit_sync)

    async def set_acknowledgement_commit_callback(self, callback: Callback | None) -> None:
        """Call a plain function for each outcome of acknowledgements, in the consumer's thread.

        See `embedlog.ShareConsumer.set_acknowledgement_commit_callback`.

        Raises:
            TypeError: `callback` is a coroutine function.
        """
        if iscoroutinefunction(callback):
            raise TypeError("callback is a coroutine function; it must be a plain function")
        call = self.blocking.set_acknowledgement_commit_callback
        await self._calls.here(partial(call, callback))

    acquisition_lock_timeout_ms = awaited_here(blocking.ShareConsumer.acquisition_lock_timeout_ms)
    metrics = awaited_here(blocking.ShareConsumer.metrics)

    async def close(self, timeout: float | None = None) -> None:
        """Close like `embedlog.ShareConsumer.close`. A second call waits for the first.

        Polls that still wait raise ClosedError.
        """
        await self._calls.close(partial(self.blocking.close, timeout))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_exception: object) -> None:
        await self.close()

    def _undo(self, found: ShareRecords) -> None:
        """Return the records of a cancelled poll again. Requires: the turn of `Calls`."""
        with self._guard:
            self._in_flight.give_back(found)
