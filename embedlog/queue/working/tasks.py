"""`run_jobs`: an event loop that works on several jobs at once."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    InThread = Callable[..., Awaitable[Any]]
    """Calls a function in a thread, and returns its result."""

J = TypeVar("J")

_LOOK_S = 0.25


def run_jobs(
    take: Callable[[], J | None],
    work: Callable[[J, InThread], Awaitable[None]],
    concurrency: int,
    *,
    is_over: Callable[[], bool],
) -> None:
    """Run a new event loop until `is_over()`, with up to `concurrency` tasks of `work`.

    `take` returns the next job, or None after a moment; it is called in a thread. The running tasks
    end before this call does.
    """

    async def main() -> None:
        running: set[asyncio.Task[None]] = set()
        while not is_over():
            if len(running) >= concurrency:
                await asyncio.wait(running, timeout=_LOOK_S, return_when=asyncio.FIRST_COMPLETED)
            else:
                job = await asyncio.to_thread(take)
                if job is not None:
                    running.add(asyncio.create_task(_call(work, job)))
            running = {task for task in running if not task.done()}
        if running:
            await asyncio.wait(running)

    asyncio.run(main())


async def _call(work: Callable[[J, InThread], Awaitable[None]], job: J) -> None:
    await work(job, asyncio.to_thread)
