"""The calls of one client: order, cancellation, the end, and errors in the thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import embedlog
from embedlog.aio.calls import Calls
from embedlog.aio.threads import attempt, in_thread, tell
from embedlog.runtime import Scheduler, real_runtime
from tests.aio.conftest import Run


@pytest.fixture
def scheduler() -> Scheduler:
    return real_runtime().scheduler


class Gate:
    """A call that waits until it is released or interrupted."""

    def __init__(self) -> None:
        self.opened = threading.Event()
        self.is_interrupted = False

    def __call__(self) -> str:
        assert self.opened.wait(10)
        if self.is_interrupted:
            raise InterruptedError
        return "through"

    def interrupt(self) -> None:
        self.is_interrupted = True
        self.opened.set()


def calls_of(scheduler: Scheduler, interrupt: Callable[[], None] = lambda: None) -> Calls:
    return Calls(scheduler, "test", interrupt=interrupt, begin=lambda: None)


def test_calls_are_made_in_the_order_asked_for(scheduler: Scheduler, run: Run) -> None:
    made: list[int] = []

    async def main() -> None:
        calls = calls_of(scheduler)

        async def one(number: int) -> None:
            if number % 3:
                await calls.in_thread(lambda: made.append(number))
            else:
                await calls.here(lambda: made.append(number))

        await asyncio.gather(*[one(number) for number in range(50)])
        await calls.close(lambda: made.append(50))
        assert made == list(range(51))

    run(main())


def test_a_cancelled_call_is_interrupted_and_the_next_waits_for_its_end(
    scheduler: Scheduler, run: Run
) -> None:
    async def main() -> None:
        gate = Gate()
        calls = calls_of(scheduler, gate.interrupt)
        first = asyncio.create_task(calls.in_thread(gate))
        second = asyncio.create_task(calls.here(gate.opened.is_set))
        await asyncio.sleep(0.01)
        assert not second.done()
        first.cancel()
        assert await second, "it runs after the first has ended"
        assert first.cancelled()
        await calls.close(lambda: None)

    run(main())


def test_what_nobody_gets_is_undone(scheduler: Scheduler, run: Run) -> None:
    """Cancelled during the call, and after the call but before its task runs again."""

    async def main() -> None:
        undone: list[str] = []
        gate = Gate()
        calls = calls_of(scheduler, gate.opened.set)
        waiting = asyncio.create_task(calls.in_thread(gate, undo=undone.append))
        await asyncio.sleep(0.01)
        waiting.cancel()
        await asyncio.wait([waiting])
        assert await calls.in_thread(lambda: list(undone)) == ["through"]

        loop: Any = asyncio.get_running_loop()
        call_soon = loop.call_soon_threadsafe

        def call_and_cancel(callback: Callable[..., object], *given: object) -> None:
            """Deliver the thread's result and cancel the task before it runs."""

            def both() -> None:
                callback(*given)
                waiting.cancel()

            call_soon(both)

        loop.call_soon_threadsafe = call_and_cancel
        waiting = asyncio.create_task(calls.in_thread(lambda: "again", undo=undone.append))
        await asyncio.wait([waiting])
        loop.call_soon_threadsafe = call_soon
        assert waiting.cancelled()
        assert undone == ["through", "again"]
        await calls.close(lambda: None)

    run(main())


def test_a_patient_call_is_interrupted_by_the_next(scheduler: Scheduler, run: Run) -> None:
    async def main() -> None:
        gate = Gate()
        calls = calls_of(scheduler, gate.interrupt)
        patient = asyncio.create_task(calls.in_thread(gate, is_patient=True))
        await asyncio.sleep(0.01)
        assert await calls.in_thread(lambda: "first") == "first"
        with pytest.raises(InterruptedError):
            await patient
        await calls.close(lambda: None)

    run(main())


def test_after_close_every_call_is_refused(scheduler: Scheduler, run: Run) -> None:
    async def main() -> None:
        calls = calls_of(scheduler)
        await asyncio.gather(calls.close(lambda: None), calls.close(lambda: None))
        for make in (calls.here, calls.in_thread):
            with pytest.raises(embedlog.ClosedError, match="test is closed"):
                await make(lambda: None)

    run(main())


def test_whatever_a_call_raises_is_raised_where_it_is_awaited(
    scheduler: Scheduler, run: Run
) -> None:
    def stop() -> Iterator[Any]:
        raise StopIteration("a future would refuse it")

    def fail() -> None:
        raise SystemExit(7)

    def refuse() -> None:
        raise ValueError("not ready")

    async def main() -> None:
        calls = calls_of(scheduler)
        with pytest.raises(RuntimeError, match="StopIteration"):
            await calls.in_thread(stop)
        with pytest.raises(ValueError, match="not ready"):
            await calls.in_thread(stop, prepare=refuse)
        with pytest.raises(ValueError, match="not ready"):
            await calls.here(stop, prepare=refuse)
        assert isinstance(attempt(fail)[1], SystemExit)
        with pytest.raises(ZeroDivisionError):
            await in_thread(scheduler, "once", lambda: 1 // 0)
        await calls.close(lambda: None)

    run(main())


def test_nobody_is_told_when_the_loop_is_closed() -> None:
    loop = asyncio.new_event_loop()
    loop.close()
    tell(loop, print)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_duty_that_raises_does_not_end_the_client(scheduler: Scheduler, run: Run) -> None:
    """An idle thread drives the scheduler's duties."""

    class Duty:
        def __init__(self) -> None:
            self.ran = threading.Event()

        def run_once(self, now_ms: int) -> int | None:
            self.ran.set()
            raise OSError("a duty failed")

    async def main() -> None:
        calls = calls_of(scheduler)
        await calls.in_thread(lambda: None)
        duty = Duty()
        scheduler.add(duty)
        assert await asyncio.get_running_loop().run_in_executor(None, duty.ran.wait, 5)
        scheduler.remove(duty)
        assert await calls.in_thread(lambda: "still here") == "still here"
        await calls.close(lambda: None)

    run(main())


def test_a_call_that_waits_when_the_client_is_closed_is_not_made(
    scheduler: Scheduler, run: Run
) -> None:
    made: list[str] = []

    async def main() -> None:
        gate, calls = Gate(), calls_of(scheduler)
        first = asyncio.create_task(calls.in_thread(gate))
        second = asyncio.create_task(calls.here(lambda: made.append("second")))
        while not calls.waiting_count:
            await asyncio.sleep(0)
        closing = asyncio.create_task(calls.close(lambda: made.append("close")))
        while not calls.is_closing:
            await asyncio.sleep(0)
        gate.opened.set()
        assert await first == "through"
        with pytest.raises(embedlog.ClosedError):
            await second
        await closing

    run(main())
    assert made == ["close"]


def test_an_interrupt_that_came_too_late_is_cancelled_before_each_call(
    scheduler: Scheduler, run: Run
) -> None:
    steps: list[str] = []

    async def main() -> None:
        calls = Calls(
            scheduler, "test", interrupt=lambda: None, begin=lambda: steps.append("begin")
        )
        await calls.here(lambda: steps.append("here"))
        await calls.in_thread(lambda: steps.append("thread"))
        await calls.close(lambda: steps.append("close"))

    run(main())
    assert steps == ["begin", "here", "begin", "thread", "begin", "close"]
