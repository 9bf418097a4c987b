"""Small values for every layer: topic partitions, uuids, and typing stand-ins.

This module imports neither `typing` nor `collections` at run time: each costs more than opening a
log. For the same reason modules on the path of the first record import the C modules below
`operator`, `bisect` and `heapq`.
"""

from __future__ import annotations

from _operator import itemgetter
from binascii import a2b_base64, b2a_base64

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections import deque as deque
    from collections.abc import Callable, Hashable, Iterable
    from typing import Generic as Generic
    from typing import TypeVar

    from typing_extensions import Buffer as Buffer

    T = TypeVar("T")
    H = TypeVar("H", bound=Hashable)
else:
    from _collections import deque as deque

    class Generic:
        """`Generic[T]` for a type checker; at run time only the subscription."""

        def __class_getitem__(cls, item):
            return cls

    T = H = None

ZERO_UUID = bytes(16)
ONE_UUID = bytes(15) + b"\x01"
"""Kafka's reserved id of the metadata topic."""

UUID_TEXT_LENGTH = 22

IN_PROCESS_HOST = "in-process"
"""The host of a client inside the broker's process; it ends with that process."""


class TopicPartition(tuple[str, int]):
    """A topic's name and a partition number; hashable, ordered, unpacks as `topic, partition`."""

    __slots__ = ()

    def __new__(cls, topic: str, partition: int) -> TopicPartition:
        return tuple.__new__(cls, (topic, partition))

    def __getnewargs__(self) -> tuple[str, int]:
        return self[0], self[1]

    if TYPE_CHECKING:

        @property
        def topic(self) -> str: ...

        @property
        def partition(self) -> int: ...

    else:
        topic = property(itemgetter(0), doc="The topic's name.")
        partition = property(itemgetter(1), doc="The partition's number, from 0.")

    def __str__(self) -> str:
        return f"{self[0]}-{self[1]}"

    def __repr__(self) -> str:
        return f"TopicPartition({self[0]!r}, {self[1]})"


def repeated(items: Iterable[H]) -> set[H]:
    """Return the items that occur more than once."""
    seen: set[H] = set()
    again: set[H] = set()
    for item in items:
        (again if item in seen else seen).add(item)
    return again


REPETITIONS_MAX = 10


def few_of_each(items: Iterable[T], key: Callable[[T], Hashable] = lambda item: item) -> list[T]:
    """Return the items in their order, but at most ten with one `key`.

    Kafka repeats its answer for each repeated item. If the answer is a thousand times the item, a
    small request could fill the memory; this limits it.
    """
    counts: dict[Hashable, int] = {}
    few = []
    for item in items:
        item_key = key(item)
        counts[item_key] = count = counts.get(item_key, 0) + 1
        if count <= REPETITIONS_MAX:
            few.append(item)
    return few


def uuid_to_text(uuid: bytes) -> str:
    """Return Kafka's text of a uuid: 22 characters, URL-safe base64 without padding."""
    text = b2a_base64(uuid, newline=False).decode("ascii")
    return text.rstrip("=").replace("+", "-").replace("/", "_")


def uuid_from_text(text: str) -> bytes:
    """Return the 16 bytes of a uuid from Kafka's 22-character text.

    Raises:
        ValueError: `text` is not 22 characters of URL-safe base64.
    """
    if len(text) != UUID_TEXT_LENGTH:
        raise ValueError(f"uuid {text!r}: {len(text)} characters, expected {UUID_TEXT_LENGTH}")
    uuid = a2b_base64(text.replace("-", "+").replace("_", "/") + "==", strict_mode=True)
    if len(uuid) != len(ZERO_UUID):
        raise ValueError(f"uuid {text!r}: {len(uuid)} bytes, expected 16")
    return uuid
