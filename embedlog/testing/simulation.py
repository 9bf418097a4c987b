"""`simulate`: run a test in simulated time, once for each of many seeds.

    @simulate(seeds=200)
    def test_nothing_is_lost(kafka):
        producer, consumer = kafka.producer(), kafka.consumer(group_id="g")
        ...

Everything runs on one thread over simulated clock, disk, scheduler and randomness. A wait costs no
real time. The seed decides all that chance decides in a real run: the order of work that is due at
one moment, pauses, ids and partitions, and the turns of the actors of `SimulatedKafka.run`. So a
seed that failed fails again.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from inspect import isasyncgenfunction, iscoroutinefunction
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from embedlog.errors import ConfigError
from embedlog.runtime.environment import variable
from embedlog.runtime.randomness import seeded
from embedlog.testing.forms import without_argument
from embedlog.testing.kafka import Kafka
from embedlog.testing.shape import Shape
from embedlog.testing.simulated_runtime import sim_runtime

if TYPE_CHECKING:
    from collections.abc import Iterator

    from embedlog.runtime.randomness import Random

F = TypeVar("F", bound=Callable[..., Any])
Actor = Generator[int | None, None, Any]
"""Yields to let others work: None for no time, or the milliseconds until it goes on."""

SEED = "EMBEDLOG_SEED"
"""The environment variable with the seed to repeat."""


class SimulatedKafka(Kafka):
    """A cluster in simulated time. Only the thread of the test may use it, and only our clients."""

    def __init__(self, shape: Shape | None = None, *, seed: int = 0, **given: Any) -> None:
        """Open a cluster whose chance is decided by `seed`."""
        self.seed = seed
        self._runtime = sim_runtime(seed)
        self.random: Random = seeded(seed + 2)
        """Randomness for the test's own decisions: `random.below(10)`."""
        super().__init__(shape, runtime=self._runtime, **given)

    @property
    def bootstrap_servers(self) -> NoReturn:
        """Raise ConfigError: a simulation has no sockets."""
        raise ConfigError(
            "a simulation has no address: use kafka.producer(), kafka.consumer() and kafka.admin()"
        )

    @property
    def now_ms(self) -> int:
        """Milliseconds of simulated time since the beginning."""
        return self._runtime.clock.monotonic_ms()

    def sleep(self, delay_ms: int) -> None:
        """Let simulated time pass, with all work that is due in it."""
        self._runtime.scheduler.run_for(delay_ms)

    def run(self, *actors: Actor) -> list[Any]:
        """Run generators in turns that the seed decides, and return their results.

            def consume(consumer):
                while len(seen) < 10:
                    seen.extend(consumer.poll(0))
                    yield 5                       # go on in 5 ms

            kafka.run(produce(producer), consume(first), consume(second))

        Each `yield` ends a turn.
        """
        due = dict.fromkeys(range(len(actors)), self.now_ms)
        results: list[Any] = [None] * len(actors)
        while due:
            ready = [number for number, at_ms in due.items() if at_ms <= self.now_ms]
            if not ready:
                self.sleep(min(due.values()) - self.now_ms)
                continue
            number = ready[self.random.below(len(ready))]
            try:
                due[number] = self.now_ms + (next(actors[number]) or 0)
            except StopIteration as end:
                results[number] = end.value
                del due[number]
            self.sleep(0)
        return results


def simulate(
    seeds: int = 100, *, first: int = 0, argument: str = "kafka", **shape: Any
) -> Callable[[F], F]:
    """Run a function once a seed, each with a new `SimulatedKafka` as its keyword argument.

    The other arguments describe the cluster: see `Shape`. An exception carries a note with the
    seed. `EMBEDLOG_SEED=7`, or `--kafka-seed=7` under pytest, runs that seed alone.

    >>> @simulate(seeds=3, topics={"orders": 1})
    ... def test(kafka):
    ...     kafka.producer().send("orders", b"x").result()
    ...     kafka.sleep(86_400_000)
    >>> test()

    Raises:
        ConfigError: an argument is wrong, or the function is a coroutine function.
    """
    if not isinstance(seeds, int):
        raise ConfigError(f"write @simulate(), with brackets; seeds={seeds!r} is no number")
    if seeds < 1:
        raise ConfigError(f"seeds={seeds}: expected at least 1")
    wanted = Shape.of(**shape)

    def decorate(function: F) -> F:
        if iscoroutinefunction(function) or isasyncgenfunction(function):
            raise ConfigError(f"{function.__qualname__}: a simulation has no event loop")

        def made(*arguments: Any, **named: Any) -> None:
            for seed in _chosen(first, seeds):
                with _noted(seed), SimulatedKafka(wanted, seed=seed) as kafka:
                    function(*arguments, **{argument: kafka}, **named)

        return without_argument(function, made, argument)

    return decorate


def _chosen(first: int, count: int) -> range:
    given = variable(SEED)
    if not given:
        return range(first, first + count)
    if not given.removeprefix("-").isdecimal():
        raise ConfigError(f"{SEED}={given!r} is no seed: expected a number")
    return range(int(given), int(given) + 1)


@contextmanager
def _noted(seed: int) -> Iterator[None]:
    """Add the seed to the exceptions of a block."""
    try:
        yield
    except BaseException as error:
        error.add_note(f"simulated with seed {seed}; again: {SEED}={seed} or --kafka-seed={seed}")
        raise
