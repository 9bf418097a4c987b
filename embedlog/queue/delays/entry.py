"""The headers of a delayed job: what becomes of it when its time has come."""

from __future__ import annotations

from embedlog.errors import ConfigError
from embedlog.queue.names import PUT_AT, QueueNames

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.client.consumer.record import ConsumerRecord
    from embedlog.queue.put_options import PutOptions

    Headers = list[tuple[str, bytes | None]]

TOPIC = "job.to"
"""The topic that gets the job."""
KEY = "job.key"
"""The key of the job, since the record's key is the id."""
CRON = "job.cron"
"""The times at which the job is due again."""
DEDUPE = "job.dedupe"
"""Text that a second job within the window must not have."""
WINDOW = "job.window.ms"
NAMED = "job.named"
"""A user chose the id, so several records may have it."""
_OWN = frozenset((TOPIC, KEY, CRON, DEDUPE, WINDOW, NAMED))

SEEN = b"seen:"
"""Keys of records that remember a `DEDUPE` text begin so; they are due when its window ends."""


def delayed_headers(options: PutOptions, topic: str, now_ms: int) -> Headers:
    """Return the headers that a delayed job has beside its own.

    Raises:
        ConfigError: the cron expression is wrong.
    """
    told: Headers = [(TOPIC, topic.encode()), (PUT_AT, str(now_ms).encode())]
    if options.id is not None:
        told.append((NAMED, b"1"))
    if options.key is not None:
        told.append((KEY, options.key))
    if options.cron is not None:
        told.append((CRON, options.cron.encode()))
    if options.dedupe is not None:
        told.append((DEDUPE, options.dedupe.encode()))
        told.append((WINDOW, str(int(options.window_s * 1000)).encode()))
    return told


class Entry:
    """A delayed job, read from its record."""

    __slots__ = (
        "cron",
        "dedupe",
        "due_ms",
        "headers",
        "id",
        "is_named",
        "key",
        "offset",
        "topic",
        "value",
        "window_end_ms",
    )

    def __init__(self, record: ConsumerRecord, queue: str) -> None:
        """Raises ConfigError if another program wrote a record that is no job of `queue`."""
        found = dict(record.headers)
        self.id = bytes(record.key or b"")
        self.topic = _text(found.get(TOPIC)) or ""
        if not self.only_remembers and not QueueNames.is_level(self.topic, queue):
            raise ConfigError(
                f"the record at offset {record.offset} of {record.topic!r} is no delayed job of "
                f"the queue {queue!r}: its header {TOPIC!r} is {found.get(TOPIC)!r}"
            )
        self.key = _optional(found.get(KEY))
        self.cron = _text(found.get(CRON))
        self.dedupe = _text(found.get(DEDUPE))
        self.window_end_ms = number(found.get(PUT_AT)) + number(found.get(WINDOW))
        self.is_named = NAMED in found or self.id.startswith(SEEN)
        self.value = _optional(record.value)
        self.due_ms: int = record.timestamp
        self.offset: int = record.offset
        self.headers = [(name, _optional(value)) for name, value in record.headers]

    @property
    def job_headers(self) -> Headers:
        """The headers of the ready record."""
        told = [each for each in self.headers if each[0] not in _OWN]
        return told if self.cron is None else [each for each in told if each[0] != PUT_AT]

    @property
    def only_remembers(self) -> bool:
        """True if the record is no job, but remembers a `DEDUPE` text."""
        return self.id.startswith(SEEN)


def number(value: bytes | memoryview | None) -> int:
    """Return the number in a header; 0 if another program wrote something else."""
    text = bytes(value or b"")
    return int(text) if text.isdigit() else 0


def _optional(value: bytes | memoryview | None) -> bytes | None:
    return None if value is None else bytes(value)


def _text(value: bytes | memoryview | None) -> str | None:
    return None if value is None else bytes(value).decode("utf-8", "replace")
