"""Show bytes and records as text and as JSON."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.common import Buffer
    from wire.records.record import Record


def text_of(content: Buffer | None) -> str | None:
    r"""Return bytes as text, with `\x..` for bytes that are no UTF-8; None for null.

    >>> text_of(b"caf\xc3\xa9 \xff")
    'café \\xff'
    """
    if content is None:
        return None
    return bytes(content).decode("utf-8", "backslashreplace")


def fields_of(record: Record) -> dict[str, object]:
    """Return the fields of a record, for JSON."""
    return {
        "offset": record.offset,
        "timestamp": record.timestamp,
        "key": text_of(record.key),
        "value": text_of(record.value),
        "headers": [[name, text_of(value)] for name, value in record.headers],
    }


def line_of(fields: dict[str, object]) -> str:
    """Return a dictionary as one line, `name: value`, in the manner of Kafka's dump tool."""
    return printable(" ".join(f"{name}: {value}" for name, value in fields.items()))


def printable(text: str) -> str:
    """Return the text with control characters escaped, safe for a terminal."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)
