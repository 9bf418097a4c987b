"""`RunningCalls` waits for the calls that had begun, and for no later ones."""

from __future__ import annotations

import threading

from embedlog.runtime.running_calls import RunningCalls


def _held(entered: threading.Event, leave: threading.Event) -> None:
    entered.set()
    leave.wait()


def _begin() -> tuple[threading.Thread, threading.Event]:
    entered, leave = threading.Event(), threading.Event()
    thread = threading.Thread(target=lambda: _held(entered, leave))
    thread.start()
    entered.wait()
    return thread, leave


def test_calls_run_until_they_return_and_later_calls_do_not_count() -> None:
    first, leave_first = _begin()
    second, leave_second = first, leave_first
    try:
        calls = RunningCalls([_held.__code__])
        second, leave_second = _begin()
        assert calls.are_running
        leave_first.set()
        first.join()
        assert not calls.are_running
    finally:
        for leave in (leave_first, leave_second):
            leave.set()
        for thread in (first, second):
            thread.join()


def test_other_functions_and_calls_of_this_thread_do_not_count() -> None:
    thread, leave = _begin()
    try:
        assert not RunningCalls([_begin.__code__]).are_running

        def own() -> bool:
            return RunningCalls([own.__code__]).are_running

        assert not own()
    finally:
        leave.set()
        thread.join()
