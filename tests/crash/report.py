"""Options and reports of the programs: figures and failures."""

from __future__ import annotations

import sys
import time
from typing import NamedTuple

SHOWN_MAX = 20
"""Failures that are printed; all are counted."""


class Options(NamedTuple):
    """The size of a run, and its seed."""

    seed: int
    count: int
    """Cycles, races or images: each program has its own unit."""

    soak: bool = False
    processes: int = 1
    """Number of processes, for programs that can share the work."""

    seconds: float = 0
    """Time limit before all is done, and"""
    progress: str = ""
    """the file to continue from, for programs that have one; 0 and "" for neither."""


class Report:
    """The figures of one run, in the order of their first use, and its failures.

    A failure is a sentence with everything that is needed to repeat it: the seed's cycle, the
    expected and the found value.
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
        """Add `count` to `figure`."""
        self.figures[figure] = self.figures.get(figure, 0) + count

    def note(self, text: str) -> None:
        """Print a line that is neither a figure nor a failure, for example about a skipped part."""
        self.notes.append(text)

    def fail(self, what: str) -> None:
        """Record a broken promise."""
        self.failure_count += 1
        if len(self.failures) < SHOWN_MAX:
            self.failures.append(what)
            print(f"{self.name}: BROKEN: {what}", file=sys.stderr, flush=True)

    def take_in(self, other: Report) -> None:
        """Add the counts of another process of the same run."""
        for figure, count in other.figures.items():
            self.add(figure, count)
        self.notes += other.notes
        self.failures += other.failures
        self.failure_count += other.failure_count

    def line(self) -> str:
        """Return the result as one line."""
        figures = ", ".join(f"{count:,} {name}" for name, count in self.figures.items())
        elapsed = time.monotonic() - self._started
        return (
            f"{self.name} --seed {self.options.seed} --count {self.options.count}: {figures}; "
            f"{self.failure_count:,} broken; {elapsed:.1f} s"
        )

    def check(self) -> None:
        """Print the result; raise AssertionError for a failure."""
        for note in self.notes:
            print(f"{self.name}: {note}", flush=True)
        print(self.line(), flush=True)
        assert self.failure_count == 0, "\n".join([self.line(), *self.failures])
