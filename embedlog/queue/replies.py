"""`Replies`: results of jobs for the process that has put them."""

from __future__ import annotations

from embedlog.client.consumer.consumer import Consumer
from embedlog.errors import EmbedlogError, TimedOut
from embedlog.queue import names
from embedlog.runtime.locks import Rank, ranked_lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from embedlog.client.connect import Target
    from embedlog.client.consumer.record import ConsumerRecord
    from embedlog.queue.names import QueueNames
    from embedlog.queue.values import Values
    from embedlog.runtime import Runtime

_KEPT_MAX = 10_000
_SLICE_MS = 50


class JobFailed(EmbedlogError):
    """The job was given up; the message is the reason."""


class Replies:
    """Reads the queue's replies from the first job on that wants one. Any thread may use it."""

    def __init__(self, target: Target, queue_names: QueueNames, values: Values, runtime: Runtime):
        self._values = values
        self._clock = runtime.clock
        self._lock = ranked_lock(Rank.QUEUE_PARTS)
        self._found: dict[str, ConsumerRecord] = {}
        """Replies that nobody has asked for yet, the oldest first."""
        self._consumer = Consumer(target, client_id=f"queue-{queue_names.name}-replies")
        partitions = self._consumer.partitions_for(queue_names.replies)
        self._consumer.assign([(queue_names.replies, each.partition) for each in partitions])
        self._consumer.seek_to_end()
        for each in partitions:
            self._consumer.position((queue_names.replies, each.partition))

    def result(self, job_id: str, timeout_ms: int) -> Any:
        """Return the result of a job, once.

        Raises:
            JobFailed: the job was rejected.
            TimedOut: there is no result within `timeout_ms`.
        """
        until_ms = self._clock.monotonic_ms() + timeout_ms
        while True:
            with self._lock:
                found = self._found.pop(job_id, None)
                if found is None:
                    left_ms = until_ms - self._clock.monotonic_ms()
                    for record in self._consumer.poll(max(0, min(left_ms, _SLICE_MS))):
                        self._keep(record)
                    found = self._found.pop(job_id, None)
            if found is not None:
                return self._value(found)
            if self._clock.monotonic_ms() >= until_ms:
                raise TimedOut(f"the job {job_id} has no result after {timeout_ms / 1000} s")

    def _keep(self, record: ConsumerRecord) -> None:
        if record.key is None:
            return
        self._found[bytes(record.key).decode("utf-8", "replace")] = record
        while len(self._found) > _KEPT_MAX:
            del self._found[next(iter(self._found))]

    def _value(self, record: ConsumerRecord) -> Any:
        headers = dict(record.headers)
        error = headers.get(names.ERROR)
        if error is not None:
            raise JobFailed(bytes(error).decode("utf-8", "replace"))
        return self._values.decode(record.value, headers.get(names.CONTENT_TYPE))

    def close(self) -> None:
        with self._lock:
            self._consumer.close()
