"""Moments between two threads, made by a lock that lets another step happen before it is taken."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from embedlog.purgatory import delayed_operation
from embedlog.purgatory.delayed_operation import DelayedOperation
from embedlog.purgatory.timing_wheel import TimerTask, TimingWheel


class Lock:
    """A re-entrant lock; `before` runs once when a thread comes to take it, as another thread."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self.before: Callable[[], object] | None = None

    def __enter__(self) -> None:
        before, self.before = self.before, None
        if before is not None:
            before()
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


@pytest.fixture
def lock(monkeypatch: pytest.MonkeyPatch) -> Lock:
    """The lock of all operations made in this test."""
    made = Lock()
    monkeypatch.setattr(delayed_operation, "ranked_rlock", lambda _rank: made)
    return made


class Operation(DelayedOperation):
    def __init__(self) -> None:
        super().__init__(1_000)
        self.events: list[str] = []

    def try_complete(self) -> bool:
        self.events.append("try")
        return self.complete_held()

    def on_complete(self) -> None:
        self.events.append("complete")


class Task(TimerTask):
    def run(self) -> None:
        raise AssertionError("a wheel runs nothing")


def added(wheel: TimingWheel, expiration_ms: int) -> Task:
    task = Task(0)
    assert wheel.add(task, expiration_ms)
    return task


def test_an_operation_that_ends_just_before_its_forced_end_ends_once(lock: Lock) -> None:
    operation = Operation()
    lock.before = operation.force_complete
    assert not operation.force_complete()
    assert operation.events == ["complete"]


def test_an_operation_that_ends_just_before_a_try_is_not_tried(lock: Lock) -> None:
    operation = Operation()
    lock.before = operation.force_complete
    assert not operation.safe_try_complete()
    assert operation.events == ["complete"]


def test_a_try_that_causes_a_second_try_completes_the_operation_once() -> None:
    class Nested(Operation):
        def try_complete(self) -> bool:
            if not self.events:
                self.events.append("outer")
                assert self.safe_try_complete()
            return super().try_complete()

    operation = Nested()
    assert not operation.safe_try_complete()
    assert operation.events == ["outer", "try", "complete", "try"]


def test_an_answer_that_ctrl_c_cuts_short_is_given_again() -> None:
    class Interrupted(Operation):
        def on_complete(self) -> None:
            super().on_complete()
            if self.events == ["complete"]:
                raise KeyboardInterrupt

    operation = Interrupted()
    with pytest.raises(KeyboardInterrupt):
        operation.force_complete()
    assert operation.events == ["complete", "complete"]


def test_a_task_that_expires_just_before_its_cancellation_is_not_cancelled() -> None:
    lock = Lock()
    wheel = TimingWheel(start_ms=0, lock=lock)  # type: ignore[arg-type]
    task = added(wheel, 5)
    lock.before = lambda: wheel.advance(5)
    assert not task.cancel()


def test_a_task_that_moves_just_before_its_cancellation_leaves_its_new_bucket() -> None:
    lock = Lock()
    wheel = TimingWheel(start_ms=0, lock=lock)  # type: ignore[arg-type]
    task = added(wheel, 5)
    lock.before = lambda: wheel.add(task, 500)
    assert task.cancel()
    assert wheel.next_expiration_ms() is None
    assert wheel.advance(1_000) == []
