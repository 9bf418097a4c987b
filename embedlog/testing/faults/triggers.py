"""`Trigger`: at which of its requests a rule acts."""

from __future__ import annotations

from embedlog.errors import ConfigError
from embedlog.runtime.randomness import seeded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.runtime.randomness import Random

_STEPS = 1 << 32


class Trigger:
    """Counts the requests of a rule and the actions. Requires: the lock of the rule.

    Without arguments a rule acts once, at its first request, as the rules of franz-go's kfake and
    of Kafka's own fault proxy do.
    """

    __slots__ = ("_chance", "_first", "_left", "_random", "_text", "seen")

    def __init__(self, text: str, first: int, left: int | None, chance: float, seed: int) -> None:
        self._text = text
        self._first = first
        self._left = left
        self._chance = chance
        self._random: Random | None = seeded(seed) if chance < 1 else None
        self.seen = 0

    def fires(self) -> bool:
        """Count a request, and return whether the rule acts at it."""
        self.seen += 1
        if self.seen < self._first or self._left == 0:
            return False
        if self._random is not None and self._random.below(_STEPS) >= self._chance * _STEPS:
            return False
        if self._left is not None:
            self._left -= 1
        return True

    def __str__(self) -> str:
        return self._text


def trigger_of(
    *,
    once: bool | None,
    nth: int | None,
    times: int | None,
    always: bool | None,
    chance: float | None,
    seed: int | None,
) -> Trigger:
    """Return the trigger that the arguments of `Kafka.fault` describe.

    Raises:
        ConfigError: a value is wrong, or two arguments contradict each other.
    """
    for name, number in (("nth", nth), ("times", times)):
        if number is not None and (isinstance(number, bool) or number < 1):
            raise ConfigError(f"{name}={number!r}: expected a number of requests from 1 on")
    if chance is not None and not 0 < chance <= 1:
        raise ConfigError(f"chance={chance!r}: expected a probability above 0, at most 1")
    if seed is not None and chance is None:
        raise ConfigError(f"seed={seed!r}: only chance= needs a seed")
    if once and (always or times is not None):
        raise ConfigError("once=True: not together with times= or always=")
    if always and times is not None:
        raise ConfigError(f"always=True: not together with times={times}")
    left: int | None = 1
    if times is not None:
        left = times
    elif always or (chance is not None and not once):
        left = None
    first = 1 if nth is None else nth
    parts = ["always" if left is None else "once" if left == 1 else f"times={left}"]
    if nth is not None:
        parts.append(f"nth={nth}")
    if chance is not None:
        parts.append(f"chance={chance:g}, seed={seed or 0}")
    share = 1.0 if chance is None else chance
    return Trigger(", ".join(parts), first, left, share, seed or 0)
