"""Randomness from a source that a test can seed."""

from __future__ import annotations

from os import urandom

from embedlog.common import ONE_UUID, ZERO_UUID, uuid_to_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


class Random:
    """Random bytes, uuids and numbers.

    `source(n)` returns n random bytes; the default is the operating system's. See `seeded`.
    """

    __slots__ = ("bytes",)

    def __init__(self, source: Callable[[int], bytes] = urandom) -> None:
        self.bytes = source

    def uuid(self) -> bytes:
        """Return the 16 bytes of a version 4 uuid that Kafka's tools accept.

        It is neither of Kafka's two reserved ids, and its text does not start with '-', which a
        command line would take for an option.
        """
        while True:
            made = bytearray(self.bytes(16))
            made[6] = made[6] & 0x0F | 0x40
            made[8] = made[8] & 0x3F | 0x80
            uuid = bytes(made)
            if uuid not in (ZERO_UUID, ONE_UUID) and not uuid_to_text(uuid).startswith("-"):
                return uuid

    def below(self, count: int) -> int:
        """Return an integer of [0, count), uniformly distributed."""
        assert count > 0, count
        size = (count.bit_length() + 7) // 8
        # Rejection sampling: a plain remainder would favour small results.
        limit = (1 << (8 * size)) // count * count
        while True:
            drawn = int.from_bytes(self.bytes(size), "big")
            if drawn < limit:
                return drawn % count


def seeded(seed: int) -> Random:
    """Return a source that gives the same bytes for the same seed."""
    from random import Random as Generator

    return Random(Generator(seed).randbytes)
