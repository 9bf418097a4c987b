"""`Calls`: makes the calls of one client one at a time and in order.

A call that never waits runs in the event loop's thread, all others in a thread of the client. A
caller holds a lock, the turn, until its call has ended. If the caller is cancelled and the call
succeeds, `undo(result)` runs before the next call. So the thread never has more than one call, and
a later call never sees a half-done call.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial, wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from embedlog.aio.threads import attempt, settle, tell
from embedlog.errors import ClosedError
from embedlog.runtime.pending import Pending
from embedlog.runtime.scheduler import Scheduler
from embedlog.runtime.threads import Thread

P = ParamSpec("P")
T = TypeVar("T")
C = TypeVar("C")

_JOIN_MAX_MS = 1_000


class _Call:
    """One call that the client's thread shall make."""

    __slots__ = ("function", "is_last", "is_patient", "loop", "outcome", "result", "undo")

    def __init__(
        self,
        function: Callable[[], Any],
        undo: Callable[[Any], None] | None,
        *,
        is_patient: bool = False,
        is_last: bool = False,
    ) -> None:
        self.function = function
        self.undo = undo
        self.is_patient = is_patient
        self.is_last = is_last
        self.loop = asyncio.get_running_loop()
        self.outcome: asyncio.Future[Any] = self.loop.create_future()
        self.result: Any = None


class Calls:
    """Makes the calls of one client. Used in the event loop's thread only."""

    def __init__(
        self,
        scheduler: Scheduler,
        name: str,
        *,
        interrupt: Callable[[], None],
        begin: Callable[[], None],
        undo: Callable[[Any], None] | None = None,
    ) -> None:
        """`interrupt()` makes the running call raise. `begin()` is called before each call, and
        cancels an interrupt that came too late for the previous call. `undo(result)` is called when
        a cancelled call succeeds nevertheless, unless the call has its own `undo`.
        """
        self._scheduler = scheduler
        self._name = name
        self._interrupt = interrupt
        self._begin = begin
        self._undo = undo
        self._turn = asyncio.Lock()
        self._running: _Call | None = None
        self._given: Pending[Any] = Pending()
        """Completes with the next call that the client's thread shall make."""
        self._thread: Thread | None = None
        self.waiting_count = 0
        """Number of calls that wait for the turn. Unless it is 0, polls do not wait for records."""
        self._closing: asyncio.Future[None] | None = None

    async def here(
        self, function: Callable[[], T], *, prepare: Callable[[], None] | None = None
    ) -> T:
        """Get the turn; in this thread, call `prepare()`, then `function()`, which must never wait.

        Raises:
            ClosedError: the client is closed.
        """
        await self._take_turn()
        try:
            if prepare is not None:
                prepare()
            return function()
        finally:
            self._turn.release()

    async def in_thread(
        self,
        function: Callable[[], T],
        *,
        prepare: Callable[[], None] | None = None,
        undo: Callable[[T], None] | None = None,
        is_patient: bool = False,
    ) -> T:
        """Get the turn, call `prepare()` in this thread and `function()` in the client's thread.

        `function` may wait. A cancelled call is interrupted. If it succeeds nevertheless,
        `undo(result)` is called in this thread. A call that `is_patient` is also interrupted when
        another call is requested.

        Raises:
            ClosedError: the client is closed.
        """
        await self._take_turn()
        result: T = await self._make(
            _Call(function, undo or self._undo, is_patient=is_patient), prepare
        )
        return result

    async def close(
        self, function: Callable[[], None], *, prepare: Callable[[], None] | None = None
    ) -> None:
        """Make the last call and end the thread. Calls that wait for the turn get ClosedError.

        The call is completed even if the task that requested it is cancelled. A second `close`
        waits for the first.
        """
        if self._closing is not None:
            await asyncio.wait([self._closing])
            return
        self._closing = asyncio.ensure_future(self._close(function, prepare))
        await asyncio.shield(self._closing)

    async def _close(
        self, function: Callable[[], None], prepare: Callable[[], None] | None
    ) -> None:
        await self._await_turn()
        await self._make(_Call(function, None, is_last=True), prepare)
        if self._thread is not None:
            self._thread.join(_JOIN_MAX_MS)

    def abandon(self) -> None:
        """End the thread: the client was dropped, so that nobody can make a call."""
        if self._closing is None:
            self._given.complete(None)

    @property
    def is_closing(self) -> bool:
        return self._closing is not None

    # The turn

    async def _take_turn(self) -> None:
        self._check_open()
        await self._await_turn()
        if self.is_closing:
            self._turn.release()
            self._check_open()

    async def _await_turn(self) -> None:
        running = self._running
        if running is not None and running.is_patient:
            self._interrupt()
        self.waiting_count += 1
        try:
            await self._turn.acquire()
        finally:
            self.waiting_count -= 1
        self._begin()

    def _check_open(self) -> None:
        if self.is_closing:
            raise ClosedError(f"the {self._name} is closed")

    # The thread

    async def _make(self, call: _Call, prepare: Callable[[], None] | None) -> Any:
        """Let the thread make `call`. Requires: the caller holds the turn. Releases the turn."""
        try:
            if prepare is not None:
                prepare()
            if self._thread is None:
                name = f"embedlog-aio-{self._name}"
                self._thread = self._scheduler.start_thread(self._serve, name)
        except BaseException:
            self._turn.release()
            raise
        self._running = call
        self._given.complete(call)
        try:
            result = await call.outcome
        except asyncio.CancelledError:
            if call.outcome.cancelled():
                self._interrupt()  # the call still runs: when it has ended, `_finished` undoes it
                raise
            self._disown(call, call.outcome.exception())
            raise
        except BaseException:
            self._end_turn()
            raise
        self._end_turn()
        return result

    def _finished(self, call: _Call, result: Any, error: BaseException | None) -> None:
        call.result = result
        if call.outcome.cancelled():
            self._disown(call, error)
        else:
            settle(call.outcome, result, error)

    def _disown(self, call: _Call, error: BaseException | None) -> None:
        """Undo a finished call whose caller was cancelled, and release the turn."""
        try:
            if error is None and call.undo is not None:
                call.undo(call.result)
        finally:
            self._end_turn()

    def _end_turn(self) -> None:
        self._running = None
        self._turn.release()

    def _serve(self) -> None:
        is_last = False
        try:
            while not is_last:
                self._scheduler.wait(self._given, None)
                call, self._given = self._given.result(), Pending()
                if call is None:
                    return
                is_last = call.is_last
                tell(call.loop, self._finished, call, *attempt(call.function))
                is_lost = call.loop.is_closed()
                del call  # it refers to the client, which may be dropped while this thread waits
                if is_lost:
                    return
        except BaseException:
            # Waiting runs the cluster's duties, and one of them raised. Report the exception as
            # this thread's error, and let a new thread serve the client.
            self._thread = self._scheduler.start_thread(self._serve, f"embedlog-aio-{self._name}")
            raise


def _nothing(_client: Any) -> None: ...


class Served(Protocol):
    """A client that uses `Calls`: `Consumer` or `Admin`. `blocking` is the synchronous client."""

    _calls: Calls
    blocking: Any


def awaited(
    method: Callable[Concatenate[C, P], T], prepare: Callable[[Any], None] = _nothing
) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]:
    """Turn a method of the synchronous client into a coroutine. The method may wait.

    `prepare(client)` is called before it, in the event loop's thread.
    """

    @wraps(method)
    async def call(self: Served, /, *args: P.args, **kwargs: P.kwargs) -> T:
        function = partial(method, self.blocking, *args, **kwargs)
        return await self._calls.in_thread(function, prepare=partial(prepare, self))

    return call


def awaited_here(
    method: Callable[Concatenate[C, P], T], prepare: Callable[[Any], None] = _nothing
) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]:
    """Turn a method into a coroutine like `awaited`. The method must never wait."""

    @wraps(method)
    async def call(self: Served, /, *args: P.args, **kwargs: P.kwargs) -> T:
        function = partial(method, self.blocking, *args, **kwargs)
        return await self._calls.here(function, prepare=partial(prepare, self))

    return call
