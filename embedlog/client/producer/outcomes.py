"""The outcome of a batch that was sent: written, sent again, cut in parts, or given up.

`Upkeep` does a sender's other work: metadata, sequences, batches that have grown too old.

    answer                                        then
    written, or written before (a duplicate)      done
    MESSAGE_TOO_LARGE, several records            cut, and the parts are sent
    an error that may pass, in time               queued again, at the front, after a back-off
    another error, or too late                    failed

When all answers of a pass are taken, the callbacks run in the order of the records; then waiting
threads see the outcomes.
"""

from __future__ import annotations

from embedlog import errors
from embedlog.client.backoff import Backoff, sooner
from embedlog.client.metadata import STALE_METADATA
from embedlog.client.producer.accumulator import NEVER
from embedlog.client.producer.batch import Failed
from embedlog.client.producer.metrics import RecordMetrics
from embedlog.client.producer.records import tells_user
from embedlog.client.user_code import describe
from embedlog.common import deque
from embedlog.errors import EmbedlogError, KafkaError, TimedOut, error_for
from embedlog.logger import Logger
from embedlog.runtime.outer_call import as_user
from wire.error_codes import ErrorCode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from embedlog.client.metadata import Metadata
    from embedlog.client.producer.accumulator import RecordAccumulator
    from embedlog.client.producer.batch import DeliveryCallback, ProducerBatch
    from embedlog.client.producer.metrics import RequestMetrics
    from embedlog.client.producer.transactions.sequences import Sequences
    from embedlog.client.settings import Settings
    from embedlog.runtime.pending import Pending
    from embedlog.transport import Transport
    from wire.schemas.produce import NodeEndpoint, PartitionProduceResponse, ProduceResponse


_WRITTEN = frozenset((ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER))
"""Codes of batches that are in the log. The offset of a duplicate is unknown."""

_MAY_BE_WRITTEN = frozenset(
    (
        ErrorCode.UNKNOWN_SERVER_ERROR,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.KAFKA_STORAGE_ERROR,
    )
)
"""After these errors nobody knows whether the records are in the log."""

_INTERRUPTED = (
    "a KeyboardInterrupt or a RecursionError came while the records were sent: nobody knows "
    "whether they are written"
)


class BatchOutcomes:
    """Decides the outcomes of one sender's batches. Use it in a pass, or while no pass runs."""

    def __init__(
        self,
        accumulator: RecordAccumulator,
        metadata: Metadata,
        transactions: Sequences | None,
        settings: Settings,
        transport: Transport,
    ) -> None:
        self.failures = Failures(are_told=settings["transactional.id"] is not None)
        """The failed batches; the close of the producer reports the unseen ones."""
        self._accumulator = accumulator
        self._metadata = metadata
        self._disk_error = transport.disk_error if transport.in_process else None
        self._transactions = transactions
        self._retries: int = settings["retries"]
        self._awaits_all: bool = settings["acks"] in {"all", "-1"}
        self._delivery_timeout_ms: int = settings["delivery.timeout.ms"]
        self._batch_size: int = settings["batch.size"]
        self._backoff = Backoff.of_retries(settings, transport.runtime.random)
        self.settled: deque[ProducerBatch] = deque()
        """Batches with an outcome whose callbacks have not run."""
        self._is_telling = False
        self.metrics = RecordMetrics()

    def answered(
        self, batch: ProducerBatch, answer: PartitionProduceResponse | None, now_ms: int
    ) -> None:
        """Take the answer about the batch's partition; None if the response has none."""
        if answer is None:
            batch.may_be_written = True
            self.failed(batch, errors.UnknownServerError("the response leaves the partition out"))
        elif answer.error_code in _WRITTEN:
            self.written(batch, answer.base_offset, answer.log_append_time_ms)
        else:
            self.refused(batch, error_of(answer), now_ms)

    def take_answer(self, sent: SentRequest, metrics: RequestMetrics, now_ms: int) -> None:
        """Take the answer for every batch of a request. With errors, learn the new leaders first.

        The answer to an append in process is a tuple; with acks 0 it is None.
        """
        assert sent.pending is not None, sent
        batches = [batch for batch in sent.batches if batch.outcome is None]
        error = sent.pending.error()
        if error is not None:
            for batch in batches:
                self.attempt_failed(batch, error, now_ms)
            return
        response: Any = sent.pending.result()
        if response is None or isinstance(response, tuple):
            offset, stamp = (-1, -1) if response is None else (response[0], response[2])
            for batch in batches:
                self.written(batch, offset, stamp)
            return
        metrics.throttled(response.throttle_time_ms)
        answers = by_partition(response, {batch.topic_id: batch.topic for batch in batches})
        if any(answer.error_code for answer in answers.values()):
            leaders, endpoints = leaders_in(response, answers)
            for batch in batches:
                if self._is_of_former_topic(batch):
                    leaders.pop((batch.topic, batch.partition), None)
            self._metadata.learn_leaders(leaders, endpoints)
        for batch in batches:
            self.answered(batch, answers.get((batch.topic, batch.partition)), now_ms)

    def _is_of_former_topic(self, batch: ProducerBatch) -> bool:
        """Return whether the topic was made anew after the attempt: its epochs begin again."""
        info = self._metadata.topics.get(batch.topic)
        return info is not None and info.topic_id != batch.topic_id

    def attempt_failed(self, batch: ProducerBatch, error: BaseException, now_ms: int) -> None:
        """Handle an attempt that ended with an error instead of an answer."""
        if isinstance(error, KafkaError):
            self.refused(batch, error, now_ms)
        else:
            batch.may_be_written = True
            if not isinstance(error, EmbedlogError):
                error = errors.UnknownServerError(repr(error))
            self.failed(batch, error)

    def defect(self, batch: ProducerBatch, error: BaseException) -> None:
        """Fail a batch whose sending raised, so that threads that wait for its records see it."""
        batch.may_be_written = True
        self.failed(batch, errors.UnknownServerError(repr(error)), is_told=True)

    def settle_lost(self, known: set[ProducerBatch]) -> None:
        """Settle the batches that left their queue in a pass which Ctrl-C ended.

        `known` are the batches whose answers will come. Other batches without an outcome fail,
        because nobody knows whether they are written.
        """
        accumulator = self._accumulator
        known.update(self.settled)
        with accumulator.lock:
            queued = [each for each in accumulator.incomplete if each in each.queue.batches]
            accumulator.active = dict.fromkeys([batch.queue for batch in queued])
            known.update(queued)
            lost = [batch for batch in accumulator.incomplete if batch not in known]
        for batch in lost:
            if batch.is_done:
                accumulator.finished(batch)
            elif batch.outcome is not None:
                self.settled.append(batch)
            else:
                batch.close()
                batch.may_be_written = True
                self.failed(batch, errors.UnknownServerError(_INTERRUPTED), is_told=True)

    def written(self, batch: ProducerBatch, base_offset: int, log_append_ms: int) -> None:
        """Note that the broker has the batch; `base_offset` is -1 if it is unknown."""
        if self._transactions is not None:
            self._transactions.acknowledged(batch)
        metrics = self.metrics
        metrics.written_count += batch.record_count
        metrics.written_batch_count += 1
        metrics.written_size += len(batch.encoded)  # type: ignore[arg-type]  # it was sent
        batch.succeed(base_offset, log_append_ms)
        if batch.callbacks is None and not self.settled:
            # No callback has to run before waiting threads see the outcome.
            batch.finish()
            self._accumulator.finished(batch)
        else:
            self.settled.append(batch)

    def refused(self, batch: ProducerBatch, error: KafkaError, now_ms: int) -> None:
        """After a failed attempt, try again, cut the batch, or give it up."""
        code = error.code
        if code in STALE_METADATA or code == ErrorCode.REQUEST_TIMED_OUT:
            self._metadata.request_update()
        # With acks=all another leader may take over while written records wait for the replicas.
        was_deposed = code == ErrorCode.NOT_LEADER_OR_FOLLOWER and self._awaits_all
        if was_deposed or code in _MAY_BE_WRITTEN:
            batch.may_be_written = True
        if code == ErrorCode.MESSAGE_TOO_LARGE and batch.record_count > 1:
            self.split(batch, batch.size // 2 if batch.is_split_product else self._batch_size)
            return
        in_time = now_ms - batch.created_ms < self._delivery_timeout_ms
        if code == ErrorCode.KAFKA_STORAGE_ERROR and self._disk_error is not None:
            cause = error.__cause__ = self._disk_error(batch.topic, batch.partition)
            # Do not retry: no other replica can take over from a failed disk of this process.
            in_time = in_time and cause is None
        if in_time and batch.attempts < self._retries and self._may_pass(batch, error):
            batch.retry_at_ms = now_ms + self._backoff.delay_ms(batch.attempts)
            batch.attempts += 1
            self.metrics.retried_count += batch.record_count
            self._accumulator.put_back(batch)
        else:
            self.failed(batch, error)

    def split(self, batch: ProducerBatch, part_size_max: int) -> None:
        """Queue parts of at most `part_size_max` bytes; this does not count as an attempt."""
        ratio = batch.observed_ratio
        parts = batch.split(part_size_max)
        if self._transactions is not None:
            self._transactions.split(batch, parts)
        self._accumulator.replace_by_parts(batch, parts, ratio)
        self.metrics.split_batch_count += 1

    def too_old(self, batch: ProducerBatch, where: str) -> None:
        """Give up a batch that was in the producer for delivery.timeout.ms."""
        last = batch.last_error or self._metadata.last_error
        why = "" if last is None else f" The last error was: {last}"
        error = TimedOut(
            f"{batch.record_count} records for {batch.topic}-{batch.partition} were {where} for "
            f"delivery.timeout.ms={self._delivery_timeout_ms}, {batch.attempts} retries: is the "
            f"leader of the partition reachable?{why}"
        )
        self.failed(batch, error)

    def failed(self, batch: ProducerBatch, error: Exception, *, is_told: bool = False) -> None:
        """Give the batch up. `is_told`: the user also gets an exception for it."""
        if self._transactions is not None:
            error = self._transactions.gave_up(batch, error)
        batch.fail(error)
        self.failures.add(batch, is_seen=is_told)
        self.metrics.failed_count += batch.record_count
        self.settled.append(batch)

    def tell(self) -> None:
        """Run the callbacks of settled batches in order, then let waiting threads see the outcomes.

        If a callback raises, the callbacks after it stay queued for the next pass.
        """
        if self._is_telling:
            return  # called from a callback: the loop around it goes on
        self._is_telling = True
        try:
            settled = self.settled
            while settled:
                batch = settled[0]
                if batch.callbacks:
                    _call_back(batch, batch.callbacks)
                settled.popleft()
                batch.finish()
                self._accumulator.finished(batch)
        finally:
            self._is_telling = False

    def _may_pass(self, batch: ProducerBatch, error: KafkaError) -> bool:
        """Return whether the error may be gone at the next attempt; note the error."""
        batch.last_error = error
        if self._transactions is not None and self._transactions.may_retry(batch, error):
            return True
        return error.retriable


def _call_back(batch: ProducerBatch, callbacks: deque[tuple[int, DeliveryCallback]]) -> None:
    """Call each callback once; an exception ends this, with a note that names the callback."""
    metadata, error = batch.outcome.metadata, batch.outcome.error
    index, callback = callbacks[0]
    try:
        while callbacks:
            index, callback = callbacks.popleft()
            as_user(callback, metadata(index), error)
    except Exception as raised:
        what = "was written" if error is None else f"failed: {error}"
        record = f"{metadata(index)}, which {what}"
        raised.add_note(f"raised by the on_delivery callback {describe(callback)} of {record}")
        raise


_KEPT_MAX = 1_000
_log = Logger("client")


class Failures:
    """The newest `_KEPT_MAX` failed batches of one producer."""

    def __init__(self, *, are_told: bool) -> None:
        """`are_told`: the call that ends a transaction reports all failures."""
        self._are_told = are_told
        self._failed: deque[tuple[ProducerBatch, Failed]] = deque(maxlen=_KEPT_MAX)

    def add(self, batch: ProducerBatch, *, is_seen: bool = False) -> None:
        """Add a failed batch. `is_seen`: the user also gets an exception for it."""
        failed = batch.outcome
        assert isinstance(failed, Failed), batch
        failed.is_seen = is_seen or self._are_told
        count = max(batch.record_count, 1)
        _log.info("%d records for %s were given up: %s", count, batch.place, failed.error)
        told = [callback for _, callback in batch.callbacks or () if tells_user(callback)]
        if len(told) < count:
            self._failed.append((batch, failed))

    def take_unseen(self) -> Exception | None:
        """Forget all failures; return the first error that no caller has looked at, or None.

        A note added to the error says how many records failed unseen.
        """
        unseen = [(batch, failed) for batch, failed in self._failed if not failed.is_seen]
        self._failed.clear()
        if not unseen:
            return None
        error = unseen[0][1].error
        count = sum([max(batch.record_count, 1) for batch, _ in unseen])
        places = ", ".join(sorted({batch.place for batch, _ in unseen})[:5])
        text = (
            f"{count} records for {places} were not delivered, and nobody looked at their futures: "
            f"{type(error).__name__}: {error}"
        )
        error.add_note(text)
        return error


def by_partition(
    response: ProduceResponse, names_by_id: Mapping[bytes, str]
) -> dict[tuple[str, int], PartitionProduceResponse]:
    """Return the answers by (topic, partition), also if `response` names topics by id only."""
    return {
        (topic.name or names_by_id.get(topic.topic_id, ""), each.index): each
        for topic in response.responses
        for each in topic.partition_responses
    }


def leaders_in(
    response: ProduceResponse, answers: Mapping[tuple[str, int], PartitionProduceResponse]
) -> tuple[dict[tuple[str, int], tuple[int, int]], list[NodeEndpoint]]:
    """Return the current leaders as (node id, epoch), and their addresses (KIP-951)."""
    leaders = {
        key: (answer.current_leader.leader_id, answer.current_leader.leader_epoch)
        for key, answer in answers.items()
        if answer.current_leader.leader_id >= 0 and answer.current_leader.leader_epoch >= 0
    }
    return leaders, response.node_endpoints


def error_of(answer: PartitionProduceResponse) -> KafkaError:
    """Return the error that refuses a batch, with its details about records and the log."""
    error = error_for(answer.error_code, answer.error_message)
    error.record_errors = tuple(
        [(each.batch_index, each.batch_index_error_message) for each in answer.record_errors]
    )
    error.log_start_offset = answer.log_start_offset
    return error


_LEADER_RETRY_MS = 100
"""The pause before the client asks again for a leader that the answer did not name."""


class Upkeep:
    """A sender's work besides outcomes: metadata, sequences, expiry. No method waits."""

    def __init__(  # noqa: PLR0917  the parts of a sender, each of its own kind
        self,
        transport: Transport,
        metadata: Metadata,
        accumulator: RecordAccumulator,
        outcomes: BatchOutcomes,
        transactions: Sequences | None,
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
        """Called from any thread when the next pass or a waiting thread has news."""
        self.expiry_ms = 0
        """The next time at which a batch may be older than delivery.timeout.ms."""
        self.quiet_until_ms = 0
        """Before this time, `advance` has work only after an event."""
        self.may_send = True
        """True if the producer has the id that its batches need."""
        self.sent: dict[SentRequest, None] = {}
        """Requests without an outcome; in process, appended batches that are not committed yet."""
        self.answers: deque[SentRequest] = deque()
        """The answered requests of `sent`, in the order of arrival."""

    def follow(self, sent: SentRequest, pending: Pending[Any]) -> None:
        """Let the next pass see the answer to a request."""
        sent.pending = pending
        if pending.done():
            self.answers.append(sent)
        else:
            pending.add_callback(lambda _: self._answer_arrived(sent))

    def follow_again(self) -> None:
        """Follow all requests again, because Ctrl-C may have prevented `follow`."""
        self.answers.clear()
        self.sent = {sent: None for sent in self.sent if sent.pending is not None}
        for sent in self.sent:
            assert sent.pending is not None, sent
            self.follow(sent, sent.pending)
        self._outcomes.settle_lost({batch for sent in self.sent for batch in sent.batches})

    def forget(self, sent: SentRequest) -> None:
        self.sent.pop(sent, None)
        for batch in sent.batches:
            batch.is_on_wire = batch.queue.is_muted = False
        if sent.memory:
            self._accumulator.give_back(sent.memory)

    def give_up_waiting(self, error: Exception) -> None:
        """Fail all batches that wait to be sent, or to be sent again."""
        waiting, _ = self._accumulator.take_expired(NEVER)
        for batch in waiting:
            self._outcomes.failed(batch, error)

    def give_up_all(self, error: EmbedlogError) -> None:
        self.give_up_waiting(error)
        for sent in list(self.sent):
            for batch in sent.batches:
                if batch.outcome is None:
                    self._outcomes.failed(batch, error)
            self.forget(sent)
        self.answers.clear()
        self.tell()

    def tell(self) -> None:
        try:
            self._outcomes.tell()
        finally:
            self.arrived()

    def _answer_arrived(self, sent: SentRequest) -> None:
        self.answers.append(sent)
        self.arrived()

    def advance(self, now_ms: int) -> int | None:
        """Do the due work; return the milliseconds until more is due, None if nothing will be.

        Raises:
            EmbedlogError: nothing can be sent: the cluster refuses its metadata, or a producer id.
        """
        failures = self._transport.failure_count
        if failures != self._failures_seen:
            # The leaders behind a broken connection may have changed.
            self._failures_seen = failures
            self._metadata.request_update()
        delay = metadata_delay = self._metadata.advance(now_ms)
        if self._metadata.pending is not None:
            self._watch(self._metadata.pending)
        numbers = self._transactions
        has_duties = numbers is not None and numbers.has_duties
        if not self._accumulator.active and not self.sent and not has_duties:
            return delay
        if now_ms >= self.expiry_ms:
            self._expire(now_ms)
        if metadata_delay is not None:
            self.quiet_until_ms = min(now_ms + metadata_delay, self.expiry_ms)
        if numbers is not None:
            if numbers.doom is not None:
                self.give_up_waiting(numbers.doom)
            delay = sooner(delay, numbers.advance(now_ms))
            self._watch(numbers.pending)
            self.may_send = numbers.may_send
        return sooner(delay, self.expiry_ms - now_ms)

    def find_leaders(
        self, topics: Iterable[str], now_ms: int, *, has_asked: bool
    ) -> tuple[int | None, bool]:
        """Ask for leaders; return the milliseconds to the next step, and whether an answer came at
        once.

        `has_asked`: this pass got an answer already, without the leader; only wait, do not ask.
        """
        if has_asked:
            # The topic may have been created again with fewer partitions.
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

    def _expire(self, now_ms: int) -> None:
        """Give up batches older than delivery.timeout.ms; find when to look again."""
        limit = now_ms - self._delivery_timeout_ms
        expired, oldest = self._accumulator.take_expired(limit)
        for sent in list(self.sent):
            for batch in sent.batches:
                if batch.outcome is not None:
                    continue
                if batch.created_ms > limit:
                    oldest = min(oldest, batch.created_ms)
                    continue
                # The bytes stay in use until the request ends, though the batch has its outcome.
                sent.memory, batch.memory = sent.memory + batch.memory, 0
                self._outcomes.too_old(batch, "in flight")
        for batch in expired:
            self._outcomes.too_old(batch, "waiting")
        self.expiry_ms = min(oldest, now_ms) + self._delivery_timeout_ms


def _nobody_waits() -> None:
    """Do nothing: the value of `arrived` until there is a driver."""


class SentRequest:
    """One produce request without an outcome."""

    __slots__ = ("batches", "memory", "node_id", "pending", "sent_ms")

    def __init__(self, node_id: int, batches: list[ProducerBatch], sent_ms: int) -> None:
        self.node_id = node_id
        self.batches = batches
        self.sent_ms = sent_ms
        self.memory = 0
        """Bytes of buffer.memory that given-up batches still hold until the request ends."""
        self.pending: Pending[Any] | None = None
