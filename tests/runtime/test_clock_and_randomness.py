"""Monotonic clocks, and random ids that Kafka's tools accept."""

from __future__ import annotations

from collections import Counter

from embedlog.common import ONE_UUID, ZERO_UUID, uuid_to_text
from embedlog.runtime import Clock, Random
from embedlog.runtime.randomness import seeded
from embedlog.testing import SimClock


def test_monotonic_time_does_not_fall_and_units_agree() -> None:
    clock = Clock()
    first = clock.monotonic_us()
    assert first // 1000 <= clock.monotonic_ms()
    assert clock.monotonic_us() >= first
    assert clock.wall_ms() > 1_600_000_000_000
    assert clock.wall_ms() <= clock.wall_source().time_ns() // 1_000_000 <= clock.wall_ms()


def test_a_simulated_clock_moves_only_by_calls_and_its_wall_time_may_jump() -> None:
    clock = SimClock(wall_ms=1000)
    clock.advance(1.5)
    assert (clock.monotonic_ms(), clock.monotonic_us(), clock.wall_ms()) == (1, 1500, 1001)
    read = clock.wall_source().time_ns
    assert read() == 1001 * 1_000_000
    clock.set_wall(5)
    clock.advance(10)
    assert (clock.monotonic_ms(), clock.wall_ms()) == (11, 15)


def test_uuids_are_never_reserved_and_never_look_like_an_option() -> None:
    drawn = [bytes(16), bytes(15) + b"\1", b"\xf8" + bytes(15), bytes(range(16))]
    uuid = Random(lambda _size: drawn.pop(0)).uuid()
    assert uuid not in (ZERO_UUID, ONE_UUID)
    assert not uuid_to_text(uuid).startswith("-")
    assert len({Random().uuid() for _ in range(100)}) == 100


def test_below_is_uniform_and_in_range() -> None:
    random = seeded(1)
    counts = Counter(random.below(3) for _ in range(3000))
    assert set(counts) == {0, 1, 2}
    assert min(counts.values()) > 850
    assert random.below(1) == 0
    assert all(random.below(1000) < 1000 for _ in range(1000))


def test_one_seed_gives_one_sequence() -> None:
    assert [seeded(5).bytes(8) for _ in range(2)] == [seeded(5).bytes(8)] * 2
    assert seeded(5).uuid() != seeded(6).uuid()
