"""An actor in a simulated world: a script that the world can interrupt."""

from __future__ import annotations

from collections.abc import Callable, Generator
from random import Random
from typing import Any, Protocol

from tests.simulation.world import Ask, Life, Sleep

Steps = Generator[Any, Any, Any]


class ActorsWorld(Protocol):
    """The parts of a world that an actor uses."""

    random: Random

    @property
    def now(self) -> int: ...
    def at(self, delay_ms: int, action: Callable[[], None]) -> None: ...
    def ask(self, what: Ask, answered: Callable[[Any], None]) -> None: ...


class Actor:
    """A script that the world runs: `life` yields a request, a pause, or a function.

    The world calls a yielded function with the function that takes its answer.
    """

    def __init__(self, world: ActorsWorld, name: str) -> None:
        self.world = world
        self.name = name
        self.is_alive = True
        self._away_until = 0
        self._life = self.life()
        self._resume(None)

    def life(self) -> Life:
        """The script of the actor."""
        raise NotImplementedError

    def kill(self) -> None:
        """Stop the actor for good. Its sent requests may still arrive."""
        self.is_alive = False

    def freeze(self, delay_ms: int) -> None:
        """Pause the actor like a frozen process: it continues later, without noticing."""
        self._away_until = self.world.now + delay_ms

    def _resume(self, answer: Any = None) -> None:
        if not self.is_alive:
            return
        away_ms = self._away_until - self.world.now
        if away_ms > 0:
            self.world.at(away_ms, lambda: self._resume(answer))
            return
        try:
            wanted: Any = self._life.send(answer)
        except StopIteration:
            self.is_alive = False
            return
        if isinstance(wanted, Sleep):
            self.world.at(wanted.delay_ms, self._resume)
        elif isinstance(wanted, Ask):
            self.world.ask(wanted, self._resume)
        else:
            wanted(self._resume)
