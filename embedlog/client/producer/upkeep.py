"""What a sender sees to beside sending: metadata, sequences, batches that have grown too old."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from embedlog.client.metadata import Metadata
    from embedlog.client.producer.accumulator import RecordAccumulator
    from embedlog.client.producer.batches import ProducerBatch
    from embedlog.client.producer.outcomes import BatchOutcomes
    from embedlog.client.producer.transactions import TransactionManager
    from embedlog.client.settings import Settings
    from embedlog.pending import Pending
    from embedlog.transport import Transport

_LEADER_RETRY_MS = 100
"""Until a partition without a leader is asked for again, when its absence was the answer."""


class Upkeep:
    """Of one sender, in its turn. No method waits."""

    def __init__(  # noqa: PLR0917  the parts of a sender, each of its own kind
        self,
        transport: Transport,
        metadata: Metadata,
        accumulator: RecordAccumulator,
        outcomes: BatchOutcomes,
        transactions: TransactionManager | None,
        settings: Settings,
    ) -> None:
        self._transport = transport
        self._metadata = metadata
        self._accumulator = accumulator
        self._outcomes = outcomes
        self._transactions = transactions
        self._delivery_timeout_ms: int = settings["delivery.timeout.ms"]
        self._watched: Pending[Any] | None = None
        self._failures_seen = 0
        self.arrived: Callable[[], None] = _nobody_waits
        """Called, in whichever thread, when there is something for the next pass or a waiter."""
        self.expiry_ms = 0
        """When the next batch may be too old."""
        self.quiet_until_ms = 0
        """Until then time asks for nothing here."""
        self.may_send = True
        """Has the producer the id that its batches need?"""

    def advance(self, now_ms: int, sent: Iterable[SentRequest]) -> int | None:
        """Do what is due; milliseconds until something is again, None when nothing will be.

        `sent` are the requests without an answer.

        Raises:
            EmbedlogError: nothing can be sent: the cluster refuses to describe itself, or an id.
        """
        failures = self._transport.failure_count
        if failures != self._failures_seen:
            # Whoever led from there may not any more.
            self._failures_seen = failures
            self._metadata.request_update()
        delay = metadata_delay = self._metadata.advance(now_ms)
        if self._metadata.pending is not None:
            self._watch(self._metadata.pending)
        if not self._accumulator.active and not sent:
            return delay
        if now_ms >= self.expiry_ms:
            self._expire(now_ms, sent)
        if metadata_delay is not None:
            self.quiet_until_ms = min(now_ms + metadata_delay, self.expiry_ms)
        if self._transactions is not None:
            delay = sooner(delay, self._transactions.advance(now_ms))
            self._watch(self._transactions.pending)
            self.may_send = self._transactions.has_producer_id
        return sooner(delay, self.expiry_ms - now_ms)

    def find_leaders(
        self, topics: Iterable[str], now_ms: int, *, has_asked: bool
    ) -> tuple[int | None, bool]:
        """Ask who leads; milliseconds to the next step, and whether there was an answer at once.

        `has_asked`: it was the answer of this very pass that names no leader.
        """
        if has_asked:
            # A partition that the topic does not have, as when it was made again with fewer.
            return _LEADER_RETRY_MS, False
        answers = self._metadata.answer_count
        for topic in topics:
            self._metadata.want(topic)
        self._metadata.request_update()
        delay = self._metadata.advance(now_ms)
        self._watch(self._metadata.pending)
        return delay, self._metadata.answer_count > answers

    def _watch(self, pending: Pending[Any] | None) -> None:
        """Make sure that the next pass happens when `pending` is done."""
        if pending is not self._watched and pending is not None:
            self._watched = pending
            pending.add_callback(lambda _: self.arrived())

    def _expire(self, now_ms: int, requests: Iterable[SentRequest]) -> None:
        """Give up what is older than delivery.timeout.ms, and find when to look again."""
        limit = now_ms - self._delivery_timeout_ms
        expired, oldest = self._accumulator.take_expired(limit)
        for sent in list(requests):
            for batch in sent.batches:
                if batch.error is not None:
                    continue
                if batch.created_ms > limit:
                    oldest = min(oldest, batch.created_ms)
                    continue
                # Its bytes are held until the request ends.
                sent.memory, batch.memory = sent.memory + batch.memory, 0
                self._outcomes.too_old(batch, "in flight")
        for batch in expired:
            self._outcomes.too_old(batch, "waiting")
        self.expiry_ms = min(oldest, now_ms) + self._delivery_timeout_ms


def sooner(one: int | None, other: int | None) -> int | None:
    """The shorter delay; None is for ever."""
    if one is None or other is None:
        return other if one is None else one
    return min(one, other)


def _nobody_waits() -> None:
    """Until there is a driver."""


class SentRequest:
    """One produce request without an outcome."""

    __slots__ = ("batches", "memory", "node_id", "pending", "sent_ms")

    def __init__(self, node_id: int, batches: list[ProducerBatch], sent_ms: int) -> None:
        self.node_id = node_id
        self.batches = batches
        self.sent_ms = sent_ms
        self.memory = 0
        """What batches that were given up meanwhile hold until the request ends."""
        self.pending: Pending[Any] | None = None
        """The answer; None until it was sent."""
