"""What every program here is given, and what it gives back: figures, and what broke."""

from __future__ import annotations

import sys
import time
from typing import NamedTuple

SHOWN_MAX = 20
"""Failures that are printed; all are counted."""


class Options(NamedTuple):
    """How long a program runs, and on which chances."""

    seed: int
    count: int
    """Cycles, races, images: what the program says it counts."""

    soak: bool = False
    processes: int = 1
    """How many share the work, where the program can share it."""

    seconds: float = 0
    """When to stop before all is done, and"""
    progress: str = ""
    """the file to go on from, where the program can; 0 and "": neither."""


class Report:
    """The figures of one run, in the order they were first named, and its failures.

    A failure is a sentence that lets somebody run the same again: the seed's cycle, what was
    expected, what was found.
    """

    def __init__(self, name: str, options: Options) -> None:
        self.name = name
        self.options = options
        self.figures: dict[str, int] = {}
        self.notes: list[str] = []
        self.failures: list[str] = []
        self.failure_count = 0
        self._started = time.monotonic()

    def add(self, figure: str, count: int = 1) -> None:
        """Count `count` more of `figure`."""
        self.figures[figure] = self.figures.get(figure, 0) + count

    def note(self, text: str) -> None:
        """Say something that is neither a figure nor a failure, such as what could not be tried."""
        self.notes.append(text)

    def fail(self, what: str) -> None:
        """Note a broken promise."""
        self.failure_count += 1
        if len(self.failures) < SHOWN_MAX:
            self.failures.append(what)
            print(f"{self.name}: BROKEN: {what}", file=sys.stderr, flush=True)

    def take_in(self, other: Report) -> None:
        """Add what another process counted of the same run."""
        for figure, count in other.figures.items():
            self.add(figure, count)
        self.notes += other.notes
        self.failures += other.failures
        self.failure_count += other.failure_count

    def line(self) -> str:
        """The result on one line."""
        figures = ", ".join(f"{count:,} {name}" for name, count in self.figures.items())
        elapsed = time.monotonic() - self._started
        return (
            f"{self.name} --seed {self.options.seed} --count {self.options.count}: {figures}; "
            f"{self.failure_count:,} broken; {elapsed:.1f} s"
        )

    def check(self) -> None:
        """Print the result; raise AssertionError when something broke."""
        for note in self.notes:
            print(f"{self.name}: {note}", flush=True)
        print(self.line(), flush=True)
        assert self.failure_count == 0, "\n".join([self.line(), *self.failures])
