"""Rows measured in turn, and the table of their results."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import NamedTuple


class Row(NamedTuple):
    """One competitor: `run()` does `count` operations and may return its own seconds."""

    name: str
    count: int
    run: Callable[[], float | None]


def measure(title: str, rows: list[Row], *, ours: str, rounds: int = 5, unit: str = "ns") -> None:
    """Run every row once a round, in turn; print the best of each and its ratio to `ours`."""
    best = {row.name: float("inf") for row in rows}
    for _ in range(rounds):
        for row in rows:
            gc.collect()
            gc.disable()
            started = time.perf_counter()
            own = row.run()
            elapsed = time.perf_counter() - started
            gc.enable()
            best[row.name] = min(best[row.name], (own or elapsed) / row.count)
    show(title, best, ours=ours, unit=unit)


def show(title: str, best: dict[str, float], *, ours: str, unit: str = "ns") -> None:
    """Print seconds an operation as a table: `ratio` is how many times faster `ours` is."""
    scale = {"ns": 1e9, "us": 1e6, "ms": 1e3}[unit]
    print(f"\n{title}")
    for name, seconds in sorted(best.items(), key=lambda pair: pair[1]):
        ratio = "" if name == ours else f"{seconds / best[ours]:8.2f}x"
        print(f"  {name:<38}{seconds * scale:12.1f} {unit}{ratio}")


def show_rates(title: str, rates: dict[str, float], *, ours: str, unit: str = "/s") -> None:
    """Print rates as a table: `ratio` is ours over the row's."""
    print(f"\n{title}")
    for name, rate in sorted(rates.items(), key=lambda pair: -pair[1]):
        ratio = "" if name == ours else f"  embedlog is {rates[ours] / rate:6.2f}x"
        print(f"  {name:<38}{rate:14,.0f} {unit}{ratio}")
