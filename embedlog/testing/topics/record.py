"""`LogRecord`: one record of a topic as a test sees it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from embedlog.testing.topics.formats.basic import Format


class Formats(NamedTuple):
    """The formats of keys and values; None leaves bytes as they are."""

    key: Format | None = None
    value: Format | None = None


NO_FORMATS = Formats()


@dataclass(frozen=True, slots=True)
class LogRecord:
    """One record, with the bytes that are in the log.

    >>> with Kafka(topics={"orders": 1}) as kafka:
    ...     written = kafka.topic("orders").put('{"id": 1}', key="k")
    ...     written.key, written.value, written.json()
    (b'k', b'{"id": 1}', {'id': 1})
    """

    topic: str
    partition: int
    offset: int
    timestamp: int
    """Milliseconds since the epoch; -1 for none."""
    key: bytes | None
    value: bytes | None
    """The value; None for a tombstone."""
    headers: tuple[tuple[str, bytes | None], ...] = ()
    formats: Formats = field(default=NO_FORMATS, repr=False, compare=False)

    @property
    def decoded_key(self) -> Any:
        """The key in the topic's format for keys; bytes without a format.

        Raises:
            Undecodable: the bytes have another format.
        """
        return self._decoded(self.key, self.formats.key)

    @property
    def decoded_value(self) -> Any:
        """The value in the topic's format for values; bytes without a format.

        Raises:
            Undecodable: the bytes have another format.
        """
        return self._decoded(self.value, self.formats.value)

    def _decoded(self, data: bytes | None, chosen: Format | None) -> Any:
        return data if data is None or chosen is None else chosen.decode(data)

    def json(self) -> Any:
        """Return the value decoded as JSON; None for a tombstone."""
        from embedlog.testing.topics.formats.basic import JSON

        return None if self.value is None else JSON.decode(self.value)

    def text(self) -> str | None:
        """Return the value decoded as UTF-8; None for a tombstone."""
        from embedlog.testing.topics.formats.basic import TEXT

        return None if self.value is None else TEXT.decode(self.value)

    def header(self, name: str) -> bytes | None:
        """Return the last header of this name; None if there is none, or it has no value."""
        return next((value for known, value in reversed(self.headers) if known == name), None)

    @property
    def place(self) -> str:
        """Topic, partition and offset as text: `orders[0]@5`."""
        return f"{self.topic}[{self.partition}]@{self.offset}"

    def __repr__(self) -> str:
        headers = f", headers={list(self.headers)!r}" if self.headers else ""
        return f"<{self.place}: key={short(self.key)}, value={short(self.value)}{headers}>"


_SHORT_MAX = 160


def short(value: object) -> str:
    """Return the `repr` of a value, cut if it is long."""
    shown = repr(value)
    if len(shown) <= _SHORT_MAX:
        return shown
    return f"{shown[: _SHORT_MAX - 20]}...{shown[-10:]} ({len(shown)} characters)"
