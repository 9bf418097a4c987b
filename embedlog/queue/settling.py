"""`Settling`: what becomes of jobs that are not simply acknowledged.

A job that comes again later, or with an error, is a new record, and so is a dead job. The record is
durable before the old one is acknowledged. If the process dies between the two, the job exists
twice, so it is delivered again but never lost.
"""

from __future__ import annotations

from embedlog.errors import IllegalState
from embedlog.queue import names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from embedlog.queue.job_record import JobRecord
    from embedlog.queue.names import QueueNames
    from embedlog.queue.puts import Header, Puts
    from embedlog.queue.taking.taken import Taken
    from embedlog.queue.taking.taker import Taker
    from embedlog.queue.taking.takers import Takers
    from embedlog.queue.values import Values

    Why = BaseException | str | None

_ERROR_LENGTH_MAX = 2000
_PATIENCE_MS = 30_000


class Settling:
    """The ends of jobs of one queue. Any thread may use it."""

    patience_ms = _PATIENCE_MS

    def __init__(
        self,
        queue_names: QueueNames,
        values: Values,
        puts: Puts,
        takers: Takers,
        *,
        retries: int,
        is_ordered: bool,
    ) -> None:
        self.name = queue_names.name
        self.values = values
        self.retries = retries
        self.is_ordered = is_ordered
        self._names = queue_names
        self._puts = puts
        self._takers = takers

    def priority_of(self, topic: str) -> int:
        """Return the priority of the jobs in a topic."""
        levels = self._names.levels
        return len(levels) - 1 - levels.index(topic)

    def taker_of(self, taken: Taken) -> Taker:
        """Return the taker that has fetched a record."""
        return self._takers.of(taken.record.topic)

    def has_ended(self, taken: Taken) -> bool:
        """Return whether the lock of a record has certainly ended."""
        now_ms = self.taker_of(taken).clock.monotonic_ms()
        return not taken.renewals and now_ms >= taken.locked_until_ms

    def wait_for_renewal(self, taken: Taken) -> None:
        """Wait until the renewals of a record have outcomes."""
        self.taker_of(taken).wait_for_renewal(taken, _PATIENCE_MS)

    def put_again(self, job: JobRecord, deliveries: int, delay: float, error: Why) -> None:
        """Append a job once more, for `delay` seconds later.

        Raises:
            IllegalState: later jobs of the same key would overtake this one.
        """
        if self.is_ordered and job.key is not None:
            raise IllegalState(
                f"release({job.id}): with a delay or an error, later jobs of the key would "
                "overtake this one; this queue keeps the order of keys: release() without them"
            )
        changed: dict[str, bytes] = {}
        if error is not None:
            changed[names.ERROR] = _text(error)
            changed[names.FAILURES] = str(job.failures + 1).encode()
        self._puts.again(job, _told(job, deliveries, changed), delay)

    def bury(self, job: JobRecord, deliveries: int, reason: Why) -> None:
        """Append a job to the dead ones."""
        record = job.record
        changed = {names.REASON: _text("rejected" if reason is None else reason)}
        if isinstance(reason, BaseException):
            changed[names.ERROR] = _text(reason)
        letter = {
            "topic": record.topic,
            "partition": str(record.partition),
            "offset": str(record.offset),
            "group": self.name,
            "delivery.count": str(deliveries),
            "message": changed[names.REASON].decode("utf-8", "replace"),
        }
        told = [(names.LETTER + name, text.encode()) for name, text in letter.items()]
        headers = [*told, *_told(job, deliveries, changed)]
        self._puts.append(self._names.dead, job.raw, job.key, headers)

    def reply(self, job: JobRecord, *, result: Any = None, error: Why = None) -> None:
        """Append the result of a job, or its error, for the maker of the job."""
        if not job.wants_reply:
            return
        headers: list[tuple[str, bytes]] = []
        value = None
        if error is None:
            value, content_type = self.values.encode(result)
            if content_type is not None:
                headers.append((names.CONTENT_TYPE, content_type))
        else:
            headers.append((names.ERROR, _text(error)))
        self._puts.append(self._names.replies, value, job.id.encode(), headers)


def _told(job: JobRecord, deliveries: int, changed: Mapping[str, bytes]) -> list[Header]:
    """Return the headers of the next record of a job."""
    own = {
        names.JOB_ID: job.id.encode(),
        names.DELIVERIES: str(deliveries).encode(),
        names.PUT_AT: str(job.put_at_ms).encode(),
        **changed,
    }
    kept: list[Header] = [
        (name, value)
        for name, value in job.record.headers
        if not name.startswith(names.LETTER) and name not in own and name != names.REASON
    ]
    return [*kept, *own.items()]


def _text(why: BaseException | str) -> bytes:
    """Return an error as the text of a header."""
    if isinstance(why, BaseException):
        why = f"{type(why).__name__}: {why}" if str(why) else type(why).__name__
    return str(why)[:_ERROR_LENGTH_MAX].encode("utf-8", "replace")
