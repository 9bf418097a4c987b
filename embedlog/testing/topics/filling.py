"""Records by a seed, for `Topic.fill`."""

from __future__ import annotations

from collections.abc import Callable

from embedlog.errors import ConfigError
from embedlog.runtime.randomness import seeded
from embedlog.testing.topics.seeds import Seed


def filling(
    count: int,
    *,
    seed: int,
    value_size: int,
    key_count: int,
    start: int,
    interval_ms: int,
    partition: int | None,
    make: Callable[[int], Seed] | None,
) -> list[Seed]:
    """Return `count` records that depend on the arguments alone."""
    for name, number in (("count", count), ("value_size", value_size), ("key_count", key_count)):
        if type(number) is not int or number < 0:
            raise ConfigError(f"fill: {name}={number!r}: expected an integer from 0 on")
    random = seeded(seed)
    seeds = []
    for number in range(count):
        if make is None:
            key = b"key-%d" % random.below(key_count) if key_count else None
            text = random.bytes((value_size + 1) // 2).hex()[:value_size]
            made = Seed(text.encode(), key)
        else:
            made = make(number)
        if made.timestamp is None:
            made.timestamp = start + number * interval_ms
        if made.partition is None:
            made.partition = partition
        seeds.append(made)
    return seeds
