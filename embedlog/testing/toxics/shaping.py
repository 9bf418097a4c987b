"""`ToxicShaper`: the toxics of one direction of one connection, as a `Shaper` of the relay."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from embedlog.testing.toxics.toxic import Toxic
from wire.net.relay import END


class ToxicShaper:
    """Applies the toxics that are set at the moment when bytes pass."""

    def __init__(self, toxics: Callable[[], Sequence[Toxic]], began: float) -> None:
        """`toxics` returns the present toxics of this direction, `began` is the loop's time."""
        self._toxics = toxics
        self._began = began
        self._free_at = began
        self._passed = 0

    @property
    def is_blocked(self) -> bool:
        return any(each.hang for each in self._toxics())

    @property
    def resets_at(self) -> float:
        return self._began + min((each.reset_after for each in self._toxics()), default=math.inf)

    def shape(self, data: bytes, now: float) -> Iterator[tuple[float, bytes]]:
        toxics = self._toxics()
        if not toxics:
            yield now, data
            return
        delay = sum(each.delay() for each in toxics)
        bandwidth = min(each.bandwidth for each in toxics)
        slices = [each.slice for each in toxics if each.slice]
        step = min(slices) if slices else len(data)
        pause = sum(each.slice_delay for each in toxics) if slices else 0.0
        limit = min(each.limit for each in toxics)
        at = now + delay
        for start in range(0, len(data), step):
            piece = data[start : start + step]
            self._free_at = max(self._free_at, at) + len(piece) / bandwidth
            if self._passed + len(piece) >= limit:
                yield self._free_at, piece[: int(limit) - self._passed]
                yield self._free_at, END
                return
            self._passed += len(piece)
            yield self._free_at, piece
            at += pause
