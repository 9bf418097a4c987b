"""Consumers and signals: a wakeup from a handler, and Ctrl-C, in the middle of a poll."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import embedlog
from embedlog import Consumer, Producer, WakeupError
from embedlog.client.consumer.guard import Guard
from embedlog.runtime.pending import Pending
from embedlog.testing import sim_runtime
from tests.client.scripted_broker import PASS, ScriptedBroker
from tests.support.sizes import size
from wire.records import build_batch
from wire.schemas.fetch import FetchRequest

ROOT = Path(__file__).parents[3]
PROGRAM = Path(__file__).with_name("interrupted_consumer.py")
PARKED_AFTER_S = 0.05

Connect = Callable[[], Any]


@pytest.mark.slow
@pytest.mark.parametrize("membership", ["alone", "group"])
@pytest.mark.parametrize("way", ["in-process", "tcp"])
def test_a_handler_may_wake_a_poll_up_at_every_line(way: str, membership: str) -> None:
    run("wakeup", way, membership, str(size(5, full=1)))


@pytest.mark.slow
@pytest.mark.parametrize("membership", ["alone", "group"])
def test_an_interrupt_gives_nobody_the_answer_of_another(membership: str) -> None:
    run("interrupt", "tcp", membership, str(size(17, full=7)))


def run(*arguments: str) -> None:
    program = subprocess.run(
        [sys.executable, PROGRAM, *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert program.returncode == 0, program.stderr


@pytest.fixture
def interrupts() -> Iterator[Callable[[], None]]:
    """Each call sends a SIGINT to this process while the main thread is in a poll."""
    timers: list[threading.Timer] = []

    def soon() -> None:
        timer = threading.Timer(PARKED_AFTER_S, os.kill, (os.getpid(), signal.SIGINT))
        timers.append(timer)
        timer.start()

    # Shells start background processes with SIGINT ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield soon
    for timer in timers:
        timer.join()
    signal.signal(signal.SIGINT, before)


@pytest.mark.slow
@pytest.mark.parametrize("group_id", [None, "readers"])
def test_sigint_that_wakes_up_is_how_a_consumer_is_stopped(
    connect: Connect, interrupts: Callable[[], None], group_id: str | None
) -> None:
    with Producer(connect()) as producer, reader(connect, group_id) as consumer:
        signal.signal(signal.SIGINT, lambda _number, _frame: consumer.wakeup())
        interrupts()
        with pytest.raises(WakeupError):
            consumer.poll(600_000)
        check_usable(consumer, producer)


@pytest.mark.slow
@pytest.mark.parametrize("group_id", [None, "readers"])
def test_a_consumer_goes_on_after_a_keyboard_interrupt(
    connect: Connect, interrupts: Callable[[], None], group_id: str | None
) -> None:
    with Producer(connect()) as producer, reader(connect, group_id) as consumer:
        for _ in range(2):
            interrupts()
            with pytest.raises(KeyboardInterrupt):
                consumer.poll(600_000)
            check_usable(consumer, producer)


def test_a_consumer_can_be_closed_after_a_keyboard_interrupt(
    connect: Connect, interrupts: Callable[[], None]
) -> None:
    consumer = reader(connect, "readers")
    interrupts()
    with pytest.raises(KeyboardInterrupt):
        consumer.poll(600_000)
    consumer.close()
    with reader(connect, "readers") as successor:
        assert successor.assignment() == {("events", 0)}


def test_a_fetch_that_an_interrupt_ended_is_sent_again() -> None:
    """In process the interrupted thread may be inside the broker, serving its own fetch."""
    broker = ScriptedBroker({"events": 1}, sim_runtime(seed=7))
    broker.append("events", 0, build_batch([b"value"], timestamps=1000))

    def interrupted_once(request: Any) -> Any:
        if not isinstance(request, FetchRequest):
            return PASS
        broker.faults.clear()
        answer: Pending[Any] = Pending()
        answer.fail(KeyboardInterrupt())
        return answer

    broker.faults.append(interrupted_once)
    with Consumer(broker.transport(), auto_offset_reset="earliest") as consumer:
        consumer.assign([("events", 0)])
        assert [record.value for record in consumer.poll(1000)] == [b"value"]


@pytest.mark.parametrize("number", range(1, 8))
def test_a_guard_lets_in_the_thread_that_was_interrupted_on_the_way_in(number: int) -> None:
    guard, turn = Guard(), threading.Lock()
    with guard:
        guard.share(turn)
    left = number

    def at_line(frame: FrameType, event: str, _arg: Any) -> Any:
        nonlocal left
        if not frame.f_code.co_filename.endswith("consumer/guard.py"):
            return None
        left -= event == "line"
        if not left:
            sys.settrace(None)
            raise KeyboardInterrupt
        return at_line

    before = sys.gettrace()
    try:
        sys.settrace(at_line)
        with pytest.raises(KeyboardInterrupt), guard:
            pass
    finally:
        sys.settrace(before)
    with guard:
        assert turn.locked()
    assert not turn.locked()


def reader(connect: Connect, group_id: str | None) -> Consumer:
    """A consumer that has read all of `events`."""
    with embedlog.Admin(connect()) as admin:
        admin.create_topics({"events": 1}).keys()  # or it has arrived already
    consumer = Consumer(connect(), group_id=group_id, auto_offset_reset="earliest")
    if group_id is None:
        consumer.assign([("events", 0)])
    else:
        consumer.subscribe(["events"])
    while not consumer.assignment() or consumer.position(("events", 0)) is None:
        consumer.poll(10)
    return consumer


def check_usable(consumer: Consumer, producer: Producer) -> None:
    written = producer.send("events", b"after it").result()
    read: list[int] = []
    while written.offset not in read:
        read += [record.offset for record in consumer.poll(10_000)]
