"""Functions that pass results from a thread to the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

from embedlog.runtime.outer_call import as_caller
from embedlog.runtime.scheduler import Scheduler
from embedlog.runtime.threads import NoThread

T = TypeVar("T")


def attempt(call: Callable[[], T]) -> tuple[T | None, BaseException | None]:
    """Make a call. Return (result, None) or (None, error), for the waiting coroutine."""
    try:
        return as_caller(call), None
    except StopIteration as error:
        # A future refuses StopIteration, because it would end the coroutine silently.
        wrapped = RuntimeError("the call raised StopIteration")
        wrapped.__cause__ = error
        return None, wrapped
    except BaseException as error:
        return None, error


def tell(loop: asyncio.AbstractEventLoop, callback: Callable[..., None], *args: Any) -> None:
    """Let the loop's thread call `callback(*args)` soon; do nothing if the loop is closed."""
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(callback, *args)


def settle(future: asyncio.Future[T], result: Any, error: BaseException | None) -> None:
    """Set a future's outcome unless it was cancelled. Requires: the event loop's thread."""
    if future.done():
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)


def in_thread(scheduler: Scheduler, name: str, call: Callable[[], T]) -> asyncio.Future[T]:
    """Make a call in a new thread, and return a future of its outcome."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def run() -> None:
        tell(loop, settle, future, *attempt(call))

    try:
        scheduler.start_thread(run, name)
    except NoThread as error:
        future.set_exception(error)
    return future
