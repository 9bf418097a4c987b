"""`Puts`: appends jobs to the topics of a queue."""

from __future__ import annotations

from embedlog.client.producer.producer import Producer
from embedlog.queue import names
from embedlog.queue.put_options import PutOptions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from embedlog.client.connect import Target
    from embedlog.queue.job_record import JobRecord
    from embedlog.queue.names import QueueNames
    from embedlog.queue.values import Values
    from embedlog.runtime import Runtime

    Header = tuple[str, bytes | None]
    Headers = Sequence[Header]

_ID_BYTES = 16


class Puts:
    """The ways of a job into the log. Any thread may use it."""

    def __init__(
        self,
        target: Target,
        queue_names: QueueNames,
        values: Values,
        runtime: Runtime,
        has_delayed: Callable[[], None],
    ) -> None:
        """`has_delayed` is called after each delayed job."""
        self._names = queue_names
        self._values = values
        self._has_delayed = has_delayed
        self._clock = runtime.clock
        self._random = runtime.random
        self._producer = Producer(target, client_id=f"queue-{queue_names.name}")

    # One job

    def put(self, value: Any, options: PutOptions) -> str:
        """Append a job; return its id once it is durable."""
        data, content_type = self._values.encode(value)
        topic = self._names.level(options.priority)
        if content_type is None and options.is_plain:
            return self._placed(topic, *self.append(topic, data, options.key))
        headers = [(names.CONTENT_TYPE, content_type)] if content_type is not None else []
        headers += options.headers
        if options.needs_no_id:
            return self._placed(topic, *self.append(topic, data, options.key, headers))
        made = options.id or self._new_id()
        headers.append((names.JOB_ID, made.encode()))
        if options.wants_reply:
            headers.append((names.REPLY, b"1"))
        if options.is_immediate:
            self._append_for(options)(topic, data, options.key, headers=headers)
        else:
            self._delay(options, topic, data, made, headers)
        return made

    def _delay(
        self, options: PutOptions, topic: str, data: bytes, job_id: str, headers: Headers
    ) -> None:
        from embedlog.queue.delays.entry import delayed_headers

        now_ms = self._clock.wall_ms()
        told = delayed_headers(options, topic, now_ms)
        told = [each for each in told if each[0] not in dict(headers)]
        due_ms = options.due_ms(now_ms)
        self._append_for(options)(
            self._names.delayed,
            data,
            job_id.encode(),
            headers=[*headers, *told],
            timestamp_ms=due_ms,
        )
        self._has_delayed()

    def _append_for(self, options: PutOptions) -> Callable[..., object]:
        """Return `append`, or the same into the transaction that is given."""
        return self.append if options.transaction is None else options.transaction.send

    def append(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None = None,
        headers: Headers = (),
        timestamp_ms: int | None = None,
    ) -> tuple[int, int]:
        """Append one record; return its partition and offset once it is durable."""
        if not headers and timestamp_ms is None:
            made = self._producer.append(topic, value, key)
        else:
            made = self._producer.append(
                topic, value, key, headers=list(headers), timestamp_ms=timestamp_ms
            )
        return made.partition, made.offset

    def _placed(self, topic: str, partition: int, offset: int) -> str:
        return f"{topic}-{partition}-{offset}"

    def _new_id(self) -> str:
        return self._random.bytes(_ID_BYTES).hex()

    # Many jobs, and jobs that come again

    def put_many(self, values: Iterable[Any], options: PutOptions) -> list[str]:
        """Append jobs in as few batches as possible; return their ids once all are durable."""
        topic = self._names.level(options.priority)
        encoded = [self._values.encode(value) for value in values]
        if not encoded:
            return []
        headers = [
            [*([(names.CONTENT_TYPE, kind)] if kind is not None else []), *options.headers]
            for _, kind in encoded
        ]
        keys = None if options.key is None else [options.key] * len(encoded)
        sent = self._producer.send_batch(
            topic,
            [data for data, _ in encoded],
            keys=keys,
            headers=headers if any(headers) else None,
        )
        return [
            self._placed(topic, batch.partition, batch.offset + index)
            for batch in sent.result()
            for index in range(batch.record_count)
        ]

    def again(self, job: JobRecord, headers: Headers, delay: float) -> None:
        """Append a job once more, for `delay` seconds later."""
        topic = job.record.topic
        if delay:
            options = PutOptions(key=job.key, delay=delay)
            self._delay(options, topic, job.raw or b"", job.id, headers)
        else:
            self.append(topic, job.raw, job.key, headers)

    def close(self) -> None:
        self._producer.close()
