"""The cost of one acknowledged record in process: calls of Python functions, and opcodes.

    python -m tests.benchmarks.calls [--list]

Counts instead of times: the figures are the same on every machine. --list prints each call.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import embedlog

_WARM_UP = 200


class Counter:
    """Counts Python calls and opcodes of a call, the call itself included."""

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
        # The lambda and the end of the trace do not belong to the call.
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


def measured(call: Callable[[], object]) -> Counter:
    """Return the smallest count of some runs, after a few hundred calls as a warm-up."""
    for _ in range(_WARM_UP):
        call()
    found = []
    for _ in range(9):
        counter = Counter()
        counter.count(call)
        found.append(counter)
    return min(found, key=lambda each: (each.opcodes, len(each.calls)))


def trips(cluster: embedlog.Cluster) -> dict[str, Callable[[], object]]:
    """Return the counted calls, by name."""
    cluster.create_topic("events", 1)
    producer = cluster.producer()
    value = b"x" * 100
    return {
        "send().result()": lambda: producer.send("events", value).result(),
        "append()": lambda: producer.append("events", value),
    }


def main(*arguments: str) -> None:
    """Print a line for each trip."""
    with embedlog.open() as cluster:
        for name, call in trips(cluster).items():
            found = measured(call)
            print(f"{name:20} {len(found.calls):4} calls {found.opcodes:6} opcodes")
            if "--list" in arguments:
                print(*(f"    {each}" for each in found.calls), sep="\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
