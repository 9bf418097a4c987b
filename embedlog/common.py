"""Small parts for every layer: `Value`, topic partitions, uuids, and typing stand-ins.

This module imports neither `typing` nor `collections` at run time: each costs more than opening a
log. For the same reason modules on the path of the first record import `_operator`,
`_bisect` and `_heapq`, the C modules behind `operator`, `bisect` and `heapq`.
"""

from __future__ import annotations

from _operator import itemgetter
from binascii import a2b_base64, b2a_base64

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections import deque as deque
    from collections.abc import Callable, Hashable, Iterable
    from typing import Any, Final, Self, TypeVar, dataclass_transform
    from typing import Generic as Generic

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

    def dataclass_transform(**_options):
        return lambda decorated: decorated


ZERO_UUID = bytes(16)
ONE_UUID = bytes(15) + b"\x01"
"""Kafka's reserved id of the metadata topic."""

UUID_TEXT_LENGTH = 22

IN_PROCESS_HOST = "in-process"
"""The host name of clients inside the broker's process. These clients end with that process."""


@dataclass_transform(frozen_default=True)
class Value:
    """An immutable object that consists of its fields.

    Subclasses declare fields as annotations, fields with defaults last, as for `dataclasses`. That
    module is not used because loading it took 11 ms of the first request of a group.
    """

    _names: tuple[str, ...]
    _name_set: frozenset[str]

    def __init_subclass__(cls) -> None:
        cls._names = tuple(cls.__annotations__)
        cls._name_set = frozenset(cls._names)

    def __init__(self, *values: Any, **named: Any) -> None:
        names, state = self._names, self.__dict__
        if not values and named.keys() == self._name_set:
            state.update(named)
            return
        if len(values) > len(names):
            raise TypeError(f"{type(self).__name__} takes {len(names)} fields, got {len(values)}")
        state.update(zip(names, values, strict=False))
        for name, value in named.items():
            if name not in names or name in state:
                raise TypeError(f"{type(self).__name__}: {name!r} is unknown, or given twice")
            state[name] = value
        for name in names:
            if name not in state:
                if not hasattr(type(self), name):
                    raise TypeError(f"{type(self).__name__} needs {name!r}")
                state[name] = getattr(type(self), name)

    def replace(self, **changes: Any) -> Self:
        """Return a copy in which the fields `changes` are replaced."""
        return type(self)(**{**self.__dict__, **changes})

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} cannot be changed: {name}")

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        return hash(tuple([self.__dict__[name] for name in self._names]))

    def __repr__(self) -> str:
        fields = ", ".join([f"{name}={self.__dict__[name]!r}" for name in self._names])
        return f"{type(self).__name__}({fields})"


def item(index: int, doc: str | None = None) -> Any:
    """Return a property for a tuple's item at `index`."""
    return property(itemgetter(index), doc=doc)


class TopicPartition(tuple[str, int]):
    """A topic's name and a partition number; hashable, ordered, unpacks as `topic, partition`."""

    __slots__ = ()

    def __new__(cls, topic: str, partition: int) -> TopicPartition:
        return tuple.__new__(cls, (topic, partition))

    def __getnewargs__(self) -> tuple[str, int]:
        return self[0], self[1]

    topic: Final[str] = item(0, "The topic's name.")
    partition: Final[int] = item(1, "The partition's number, from 0.")

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


def grouped(items: Iterable[T], key: Callable[[T], H]) -> dict[H, list[T]]:
    """Return the items by their key; keys and items keep their order."""
    groups: dict[H, list[T]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


REPETITIONS_MAX = 10


def few_of_each(items: Iterable[T], key: Callable[[T], Hashable] = lambda item: item) -> list[T]:
    """Return the items in their order, but at most ten with one `key`.

    Kafka repeats its answer for each repeated item. If the answer is a thousand times as large as
    the item, a small request could fill the memory. So the repeated items are limited.
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
