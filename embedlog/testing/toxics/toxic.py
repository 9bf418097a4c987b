"""`Toxic`: one way in which connections suffer."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Self

from embedlog.errors import ConfigError
from embedlog.runtime.randomness import seeded
from embedlog.testing.names import hint

TO_BROKER, TO_CLIENT, BOTH = "to-broker", "to-client", "both"
_DIRECTIONS = (TO_BROKER, TO_CLIENT, BOTH)
_UNITS = 1 << 30


class Toxic:
    """A toxic and its handle: `Kafka.toxic` returns it. A context manager that ends it.

    Several toxics add up: their latencies are added, the lowest bandwidth and the smallest slice
    count.
    """

    def __init__(
        self,
        on_change: Callable[[Toxic | None, Toxic | None], None],
        *,
        latency: float = 0.0,
        jitter: float = 0.0,
        bandwidth: float = math.inf,
        slice: int = 0,
        slice_delay: float = 0.0,
        limit: float = math.inf,
        reset_after: float = math.inf,
        hang: bool = False,
        direction: str = BOTH,
        chance: float = 1.0,
        seed: int = 0,
        **unknown: Any,
    ) -> None:
        """See `Kafka.toxic` for the meaning. `on_change(new, old)` hears of the end."""
        if unknown:
            name = next(iter(unknown))
            raise ConfigError(
                f"{name}={unknown[name]!r}: a toxic has no such property; {hint(name, _NAMES)}"
            )
        self.latency = _not_negative("latency", latency)
        self.jitter = _not_negative("jitter", jitter)
        if jitter > latency:
            raise ConfigError(f"jitter={jitter!r}: expected at most the latency, {latency!r}")
        self.bandwidth = _not_negative("bandwidth", bandwidth)
        self.slice = int(_not_negative("slice", slice))
        self.slice_delay = _not_negative("slice_delay", slice_delay)
        self.limit = _not_negative("limit", limit)
        self.reset_after = _not_negative("reset_after", reset_after)
        self.hang = hang
        if direction not in _DIRECTIONS:
            raise ConfigError(f"direction={direction!r}: {hint(direction, _DIRECTIONS)}")
        self.direction = direction
        if not 0 <= chance <= 1:
            raise ConfigError(f"chance={chance!r}: expected 0 to 1")
        self.chance = chance
        if self._does_nothing():
            raise ConfigError(f"the toxic does nothing: give one of {', '.join(_EFFECTS)}")
        self.connections = 0
        """The number of connections that got the toxic."""
        self._random = seeded(seed)
        self._on_change = on_change

    def _does_nothing(self) -> bool:
        return (
            not (self.latency or self.slice or self.hang)
            and math.isinf(self.bandwidth)
            and math.isinf(self.limit)
            and math.isinf(self.reset_after)
        )

    def remove(self) -> None:
        """End the toxic; connections go on without it. Idempotent."""
        self._on_change(None, self)

    def acts(self, direction: str) -> bool:
        return self.direction in (BOTH, direction)

    def takes(self) -> bool:
        """Return whether the next connection gets the toxic, by its chance."""
        if self.chance < 1 and self._random.below(_UNITS) >= self.chance * _UNITS:
            return False
        self.connections += 1
        return True

    def delay(self) -> float:
        """Return the latency of one piece, in seconds."""
        if not self.jitter:
            return self.latency
        return self.latency + self.jitter * (2 * self._random.below(_UNITS) / _UNITS - 1)

    def __repr__(self) -> str:
        given = [f"{name}={getattr(self, name)!r}" for name in _EFFECTS if self._has(name)]
        return f"<Toxic {', '.join(given)}, {self.direction}: {self.connections} connections>"

    def _has(self, effect: str) -> bool:
        value = getattr(self, effect)
        return bool(value) and not math.isinf(value)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.remove()


_EFFECTS = ("latency", "bandwidth", "slice", "limit", "reset_after", "hang")
_NAMES = (*_EFFECTS, "jitter", "slice_delay", "direction", "chance", "seed", "cut")


def _not_negative(name: str, value: float) -> float:
    if not isinstance(value, int | float) or math.isnan(value) or value < 0:
        raise ConfigError(f"{name}={value!r}: expected a number from 0 on")
    return value
