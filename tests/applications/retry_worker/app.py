"""A worker that tries each job several times, with growing pauses, and then sets it aside.

jobs            the work
jobs.retry      failed jobs, with the number of attempts and the time of the next in their headers
jobs.dead       jobs that failed too often, or that nobody can read, with the reason
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

Handler = Callable[[Any], None]
Headers = dict[str, bytes]
_PASSING = (KafkaError.REQUEST_TIMED_OUT, KafkaError.COORDINATOR_LOAD_IN_PROGRESS)


@dataclass(frozen=True)
class Policy:
    """How often and when a job is tried."""

    attempts: int = 3
    backoff_ms: int = 1_000

    def pause_ms(self, attempt: int) -> int:
        """Return the pause after an attempt: it doubles each time."""
        return self.backoff_ms << (attempt - 1)


class Unreadable(Exception):
    """The job is not JSON: another attempt would not help."""


class Worker:
    """Takes jobs from a group. An offset is committed only after its job is done or passed on."""

    def __init__(
        self,
        consumer: dict[str, Any],
        producer: dict[str, Any],
        topic: str,
        handle: Handler,
        *,
        policy: Policy,
        now_ms: Callable[[], int],
    ) -> None:
        """Subscribe to `topic` and its retries. `handle` does a job or raises."""
        self.topic, self.retries, self.dead = topic, f"{topic}.retry", f"{topic}.dead"
        self._handle = handle
        self._policy = policy
        self._now_ms = now_ms
        self._waiting: dict[tuple[str, int], int] = {}
        """Paused partitions, and when each goes on."""
        self.assigned: list[TopicPartition] = []
        self._producer = Producer({**producer, "enable.idempotence": True})
        self._consumer = Consumer({**consumer, "enable.auto.commit": False})
        self._consumer.subscribe(
            [self.topic, self.retries], on_assign=self._on_assign, on_revoke=self._on_revoke
        )

    def step(self, timeout: float = 0.1) -> bool:
        """Do the next job if there is one; return whether there was."""
        self._resume_due()
        message = self._consumer.poll(timeout)
        if message is None:
            return False
        if message.error() is not None:
            if not message.error().retriable() and message.error().fatal():
                raise KafkaException(message.error())
            return False
        headers = {name: value or b"" for name, value in message.headers() or ()}
        due = int(headers.get("not-before", b"0"))
        if message.topic() == self.retries and due > self._now_ms():
            self._wait(message, due)
            return False
        self._do(message, headers)
        self._commit(message)
        return True

    def close(self) -> None:
        """Leave the group, and close both clients."""
        self._consumer.close()
        self._producer.close()

    def _do(self, message: Message, headers: Headers) -> None:
        attempt = int(headers.get("attempt", b"0")) + 1
        try:
            self._handle(_decoded(message.value()))
        except Unreadable as error:
            self._pass_on(self.dead, message, {"reason": str(error).encode()})
        except Exception as error:
            reason = f"{type(error).__name__}: {error}".encode()
            told = {**headers, "attempt": str(attempt).encode(), "reason": reason}
            told.setdefault("origin", f"{message.topic()}/{message.partition()}".encode())
            if attempt >= self._policy.attempts:
                told.pop("not-before", None)
                self._pass_on(self.dead, message, told)
            else:
                due = self._now_ms() + self._policy.pause_ms(attempt)
                told["not-before"] = str(due).encode()
                self._pass_on(self.retries, message, told)

    def _pass_on(self, topic: str, message: Message, headers: Headers) -> None:
        errors: list[KafkaError] = []
        self._producer.produce(
            topic,
            message.value(),
            message.key(),
            headers=list(headers.items()),
            on_delivery=lambda error, _sent: errors.append(error) if error else None,
        )
        self._producer.flush()
        if errors:
            raise KafkaException(errors[0])

    def _commit(self, message: Message) -> None:
        """Commit, and try again after errors that pass. After a rebalance the next owner does the
        job again.
        """
        lost = (
            KafkaError.ILLEGAL_GENERATION,
            KafkaError.UNKNOWN_MEMBER_ID,
            KafkaError.REBALANCE_IN_PROGRESS,
        )
        for _ in range(5):
            try:
                self._consumer.commit(message=message, asynchronous=False)
                return
            except KafkaException as error:
                code = error.args[0].code()
                if code in lost:
                    return
                if code not in _PASSING and not error.args[0].retriable():
                    raise
        raise RuntimeError("the offset could not be committed")

    def _wait(self, message: Message, due: int) -> None:
        where = TopicPartition(message.topic(), message.partition(), message.offset())
        self._consumer.pause([where])
        self._consumer.seek(where)
        self._waiting[where.topic, where.partition] = due

    def _resume_due(self) -> None:
        now = self._now_ms()
        for (topic, partition), due in list(self._waiting.items()):
            if due <= now:
                del self._waiting[topic, partition]
                self._consumer.resume([TopicPartition(topic, partition)])

    def _on_assign(self, _consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self.assigned = partitions

    def _on_revoke(self, _consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self.assigned = []
        for each in partitions:
            self._waiting.pop((each.topic, each.partition), None)


def _decoded(value: bytes | None) -> Any:
    try:
        return json.loads(value or b"")
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"{type(error).__name__}: {error}") from None
