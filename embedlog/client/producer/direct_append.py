"""`Producer.append` where the broker is in this process: a record, and its place in the log.

No future, no queue, no pass. It only serves a record that nothing was sent before which has no
outcome yet, as its place in the order would be theirs; any other goes by `send`.
"""

from __future__ import annotations

from embedlog.client.producer.delivery import RecordMetadata
from embedlog.errors import KafkaError, TimedOut
from embedlog.pending import Pending
from wire.records.encode.built import BuiltBatch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from embedlog.client.producer.accumulator import RecordAccumulator
    from embedlog.client.producer.batches import TopicQueues
    from embedlog.client.producer.outcomes import BatchOutcomes
    from embedlog.client.producer.settings import SenderSettings
    from embedlog.transport import InProcessTransport


class DirectAppend:
    """For a producer that neither compresses nor numbers its records, and wants to be answered."""

    def __init__(  # noqa: PLR0917  the parts of a producer, each of its own kind
        self,
        transport: InProcessTransport,
        accumulator: RecordAccumulator,
        topics: Mapping[str, TopicQueues],
        outcomes: BatchOutcomes,
        settings: SenderSettings,
        size_max: int,
    ) -> None:
        """`topics` are those that are known, see `Destinations.known`. A batch of `size_max` bytes
        is surely not too large."""
        self._transport = transport
        self._clock = transport.runtime.clock
        self._wall_source = transport.runtime.clock.wall_source()
        self._accumulator = accumulator
        self._topics = topics
        self._outcomes = outcomes
        self._settings = settings
        self._size_max = size_max

    def append(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None,
        timeout_ms: int | None,
    ) -> RecordMetadata | None:
        """Append a record; None, and nothing is done, when it has to be sent.

        Raises:
            KafkaError: the broker took the record and could not keep it: see `Producer.append`.
            TimedOut: time is over; the record is in the log, and may not be committed.
        """
        queues = self._topics.get(topic)
        if queues is None or self._accumulator.incomplete:
            return None
        queue = queues.sticky_queue if key is None else queues.queue_of(key)
        if queue is None:
            return None
        timestamp_ms = self._wall_source.time_ns() // 1_000_000
        built = BuiltBatch((value,), keys=None if key is None else (key,), timestamps=timestamp_ms)
        settings = self._settings
        if built.size > self._size_max:
            return None
        try:
            answer: Any = self._transport.append(
                (topic, queues.info.topic_id, queue.partition),
                built,
                acks=settings.acks,
                timeout_ms=settings.request_timeout_ms,
                is_awaited=True,
            )
        except KafkaError:
            return None  # nothing was written: what can be done about it a sender knows
        if answer is None:
            return None
        if type(answer) is Pending:
            answer = self._await(answer, timeout_ms)
        with self._accumulator.lock:
            self._outcomes.written_count += 1
            if key is None and len(queues.info.partitions) > 1:
                self._accumulator.produced(queue, built.size, is_full=True)
        stamp = answer[2] if answer[2] >= 0 else timestamp_ms
        return RecordMetadata(
            (
                topic,
                queue.partition,
                answer[0],
                stamp,
                -1 if key is None else len(key),
                -1 if value is None else len(value),
            )
        )

    def _await(self, answer: Pending[Any], timeout_ms: int | None) -> Any:
        deadline_ms = None if timeout_ms is None else self._clock.monotonic_ms() + timeout_ms
        while not answer.done():
            left = None if deadline_ms is None else deadline_ms - self._clock.monotonic_ms()
            if left is not None and left <= 0:
                raise TimedOut(f"the record is in the log, but not committed after {timeout_ms} ms")
            self._transport.wait(answer, left)
        return answer.result()
