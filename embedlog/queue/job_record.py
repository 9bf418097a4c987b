"""`JobRecord`: a record as a job, ready or dead."""

from __future__ import annotations

from embedlog.queue import names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from embedlog.client.consumer.record import ConsumerRecord
    from embedlog.queue.values import Values

_UNREAD = object()


class JobRecord:
    """The facts about a job that its record tells. They never change.

    >>> with embedlog.open() as cluster, cluster.queue("jobs") as queue:
    ...     made = queue.put({"image": 17}, key="customer 7")
    ...     [(job.id, job.value, job.key) for job in queue.peek()]
    [('jobs-0-0', {'image': 17}, b'customer 7')]
    """

    __slots__ = ("_value", "_values", "headers", "record")

    def __init__(self, record: ConsumerRecord, values: Values) -> None:
        self.record = record
        """The record that carries the job."""
        self.headers: dict[str, bytes | None] = dict(record.headers)
        """The record's headers; the names of the queue's own begin with "job."."""
        self._values = values
        self._value: Any = _UNREAD

    @property
    def id(self) -> str:
        """The job's id, as `put` returned it."""
        record = self.record
        return self._text(names.JOB_ID) or f"{record.topic}-{record.partition}-{record.offset}"

    @property
    def value(self) -> Any:
        """The value, as it was put.

        Raises:
            Exception: the queue's serializer refused the bytes; `raw` has them.
        """
        if self._value is _UNREAD:
            content_type = self.headers.get(names.CONTENT_TYPE)
            self._value = self._values.decode(self.record.value, content_type)
        return self._value

    @property
    def raw(self) -> bytes | None:
        """The value's bytes in the log."""
        value = self.record.value
        return None if value is None else bytes(value)

    @property
    def key(self) -> bytes | None:
        """The key, as bytes."""
        key = self.record.key
        return None if key is None else bytes(key)

    @property
    def failures(self) -> int:
        """How often a worker raised an error, before the present delivery."""
        return self._number(names.FAILURES)

    @property
    def last_error(self) -> str | None:
        """The last error of a worker, or the reason of the last `release`."""
        return self._text(names.ERROR) or None

    @property
    def put_at_ms(self) -> int:
        """When the job was put, in ms since 1970."""
        return self._number(names.PUT_AT) or self.record.timestamp

    @property
    def wants_reply(self) -> bool:
        """True if the maker of the job waits for its result."""
        return names.REPLY in self.headers

    def _text(self, header: str) -> str | None:
        text = self.headers.get(header)
        return None if text is None else bytes(text).decode("utf-8", "replace")

    def _number(self, header: str) -> int:
        text = self._text(header) or ""
        return int(text) if text.isdigit() else 0

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id}>"
