"""Bytes, times and messages as people and JSON can have them."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.common import Buffer
    from wire.records.record import Record


def text_of(content: Buffer | None) -> str | None:
    r"""Bytes as text, with `\x..` for what is none; None for null.

    >>> text_of(b"caf\xc3\xa9 \xff")
    'café \\xff'
    """
    if content is None:
        return None
    return bytes(content).decode("utf-8", "backslashreplace")


def fields_of(record: Record) -> dict[str, object]:
    """A record for JSON."""
    return {
        "offset": record.offset,
        "timestamp": record.timestamp,
        "key": text_of(record.key),
        "value": text_of(record.value),
        "headers": [[name, text_of(value)] for name, value in record.headers],
    }


def line_of(fields: dict[str, object]) -> str:
    """A dictionary as one line of text: `name: value`, as Kafka's dump tool has it."""
    return printable(" ".join(f"{name}: {value}" for name, value in fields.items()))


def printable(text: str) -> str:
    """Text on one line that does nothing to a terminal: control characters are shown escaped."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)
