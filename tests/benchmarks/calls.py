"""What one acknowledged record costs in process: calls of Python functions, and opcodes.

    python -m tests.benchmarks.calls [--list]
    python -m tests.benchmarks.calls tcp [--list]

Counted, not timed: the figures are the same on every machine. With --list each call is named.
"tcp" counts the client's half of a record sent over TCP: the calls of the thread that sends and of
the producer's own thread, the functions called, and their files.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter as Tally
from collections.abc import Callable
from typing import Any, NamedTuple

import embedlog

_WARM_UP = 200
_RUNS = 9
_SETTLE_S = 0.05
"""How long the producer's thread may take to fall asleep after an answer."""


class Counter:
    """Counts the calls and opcodes below a call, with the call itself."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.opcodes = 0

    def count(self, call: Callable[[], object]) -> None:
        """Run `call` once, under the trace."""
        sys.settrace(self._enter)
        try:
            call()
        finally:
            sys.settrace(None)
        # The lambda around the call, and the end of the trace, do not count.
        self.calls = [each for each in self.calls if "<lambda>" not in each]

    def _enter(self, frame: Any, event: str, _argument: object) -> Any:
        frame.f_trace_opcodes = True
        frame.f_trace_lines = False
        code = frame.f_code
        self.calls.append(f"{code.co_filename.rpartition('/embedlog/')[2]} {code.co_qualname}")
        return self._step

    def _step(self, _frame: Any, event: str, _argument: object) -> Any:
        self.opcodes += event == "opcode"
        return self._step


def _nothing() -> None:
    """Prepare nothing."""


class Trip(NamedTuple):
    """A call to count, and the uncounted work before each call."""

    call: Callable[[], object]
    prepare: Callable[[], object] = _nothing


def measured(trip: Trip) -> Counter:
    """Return the cost of the call after a few hundred calls: the least of some runs."""
    found = []
    for number in range(_WARM_UP + _RUNS):
        trip.prepare()
        if number < _WARM_UP:
            trip.call()
            continue
        counter = Counter()
        counter.count(trip.call)
        found.append(counter)
    return min(found, key=lambda each: (each.opcodes, len(each.calls)))


def trips(cluster: embedlog.Cluster) -> dict[str, Trip]:
    """Return the calls to count, by name."""
    for topic in ("events", "polled", "committed"):
        cluster.create_topic(topic, 1)
    producer = cluster.producer()
    transactional = cluster.producer(transactional_id="calls")
    transactional.init_transactions()
    consumer = cluster.consumer(auto_offset_reset="earliest", enable_auto_commit=False)
    consumer.assign([("polled", 0)])
    value = b"x" * 100

    def begin() -> None:
        transactional.begin_transaction()
        transactional.send("committed", value).result()

    return {
        "send().result()": Trip(lambda: producer.send("events", value).result()),
        "append()": Trip(lambda: producer.append("events", value)),
        "poll() of one": Trip(
            lambda: consumer.poll(1000), lambda: producer.append("polled", value)
        ),
        "commit_transaction()": Trip(transactional.commit_transaction, begin),
    }


class ThreadCalls:
    """Counts calls of embedlog's and wire's functions in the threads that `watch` was called in."""

    def __init__(self) -> None:
        self.is_on = False
        self.by_thread: dict[str, Tally[str]] = {}

    def watch(self, _frame: object = None, _event: str = "", _argument: object = None) -> None:
        """Count in this thread from here on; a profile function, so that threads start with it."""
        found = self.by_thread.setdefault(threading.current_thread().name, Tally())

        def count(frame: Any, event: str, _argument: object) -> None:
            if event == "call" and self.is_on:
                code = frame.f_code
                name = code.co_filename
                if name.startswith((f"{_ROOT}embedlog", f"{_ROOT}wire")):
                    found[f"{name.removeprefix(_ROOT)} {code.co_qualname}"] += 1

        sys.setprofile(count)


_ROOT = embedlog.__file__.removesuffix("embedlog/__init__.py")
_CLIENT_THREADS = ("MainThread", "embedlog-producer")


def over_tcp(*arguments: str) -> None:
    """Print the calls of a record over TCP with default settings, by thread: the least of some
    runs."""
    calls = ThreadCalls()
    with embedlog.open() as cluster:
        cluster.create_topic("events", 1)
        address = cluster.listen("127.0.0.1", 0).address
        threading.setprofile(calls.watch)
        with embedlog.Producer(address) as producer:
            calls.watch()
            found: list[dict[str, Tally[str]]] = []
            for number in range(60):
                time.sleep(_SETTLE_S)
                calls.is_on = number >= 20
                producer.send("events", b"x" * 100).result()
                time.sleep(_SETTLE_S)
                calls.is_on = False
                if number >= 20:
                    found.append({name: calls.by_thread[name].copy() for name in _CLIENT_THREADS})
                for tally in calls.by_thread.values():
                    tally.clear()
        threading.setprofile(None)
        sys.setprofile(None)
    least = min(found, key=lambda each: sum(tally.total() for tally in each.values()))
    together: Tally[str] = sum(least.values(), Tally())
    files = {name.split()[0] for name in together}
    each = " + ".join(str(tally.total()) for tally in least.values())
    print(f"TCP send().result() {together.total()} calls ({each}) / {len(together)} / {len(files)}")
    if "--list" in arguments:
        for name, tally in least.items():
            print(name, *(f"    {count:3} {call}" for call, count in tally.most_common()), sep="\n")


def main(*arguments: str) -> None:
    """Print a line for each trip."""
    if "tcp" in arguments:
        over_tcp(*arguments)
        return
    with embedlog.open() as cluster:
        for name, trip in trips(cluster).items():
            found = measured(trip)
            print(f"{name:20} {len(found.calls):4} calls {found.opcodes:6} opcodes")
            if "--list" in arguments:
                print(*(f"    {each}" for each in found.calls), sep="\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
