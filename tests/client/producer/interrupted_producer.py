"""A program for `test_producer_signals`: a loop of sends that Ctrl-C ends again and again.

    python interrupted_producer.py COUNT address|cluster LINGER_MS

A timer sends the signals, at any point of the loop. After each signal the producer must be as good
as before: no lock stays taken, and all sent records get an outcome, in order.
"""

from __future__ import annotations

import contextlib
import faulthandler
import signal
import sys
from concurrent.futures import Future
from types import FrameType
from typing import Any

import embedlog

_STUCK_AFTER_S = 60
_INTERVAL_S = 0.003
_RECORDS_MAX = 5_000


def interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def send_until_interrupted(producer: embedlog.Producer, first: int) -> list[Future[Any]]:
    """Return the futures of the sends that returned; their values count from `first`."""
    futures: list[Future[Any]] = []
    # The loop is a function of its own: CPython 3.13 does not count the jump from an `if` to the
    # next round as guarded by a `try` around the loop, and looks for signals there.
    with contextlib.suppress(KeyboardInterrupt):
        send(producer, first, futures)
    return futures


def send(producer: embedlog.Producer, first: int, futures: list[Future[Any]]) -> None:
    """Send, and at times wait, until a signal comes."""
    signal.setitimer(signal.ITIMER_REAL, _INTERVAL_S)
    for number in range(first, first + _RECORDS_MAX):
        futures.append(producer.send("events", b"%d" % number))
        if number % 50 == 49:
            futures[-1].result()
    signal.pause()


def offsets_of(futures: list[Future[Any]]) -> list[int]:
    """Return the places of the written records; every other record must have failed with
    a reason."""
    errors = [future.exception() for future in futures]
    assert all(error is None or "KeyboardInterrupt" in str(error) for error in errors), errors
    return [future.result().offset for future in futures if future.exception() is None]


def main(count: str, target: str, linger_ms: str) -> None:
    faulthandler.dump_traceback_later(_STUCK_AFTER_S, exit=True)
    signal.signal(signal.SIGALRM, interrupt)
    with embedlog.open() as cluster:
        cluster.create_topic("events", 1)
        place = cluster if target == "cluster" else cluster.listen("127.0.0.1", 0).address
        sent = lost = 0
        with embedlog.Producer(place, linger_ms=int(linger_ms)) as producer:
            producer.send("events", b"-1").result()
            for turn in range(int(count)):
                futures = send_until_interrupted(producer, turn * _RECORDS_MAX)
                producer.flush(_STUCK_AFTER_S)
                offsets = offsets_of(futures)
                assert offsets == sorted(offsets), turn
                sent += len(offsets)
                lost += len(futures) - len(offsets)
        with cluster.consumer(auto_offset_reset="earliest") as consumer:
            consumer.assign([("events", 0)])
            read: list[int] = []
            while records := consumer.poll(100):
                read += [int(record.value or b"") for record in records]
    assert read == sorted(set(read))
    # The record of the interrupted send may be there or not.
    assert sent < len(read) <= 1 + sent + lost + int(count), (sent, lost, len(read))
    # In a thread of its own no Ctrl-C comes.
    assert lost == 0 or target == "cluster" or linger_ms == "0", lost
    print(f"{sent} sent, {lost} lost")


if __name__ == "__main__":
    main(*sys.argv[1:])
