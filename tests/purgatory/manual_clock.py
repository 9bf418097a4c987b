"""A clock that a test moves, and tasks that record when they ran."""

from __future__ import annotations

from embedlog.purgatory.timer import Timer, TimerTask


class ManualClock:
    def __init__(self, now_ms: int = 0) -> None:
        self.now_ms = now_ms

    def monotonic_ms(self) -> int:
        return self.now_ms


class Noted(TimerTask):
    """Appends its name to `log` when it runs."""

    def __init__(self, name: object, delay_ms: int, log: list) -> None:
        super().__init__(delay_ms)
        self.name = name
        self.log = log

    def run(self) -> None:
        self.log.append(self.name)


def advance(clock: ManualClock, timer: Timer, to_ms: int) -> int:
    clock.now_ms = to_ms
    return timer.advance_clock(to_ms)
