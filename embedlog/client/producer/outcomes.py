"""What becomes of a batch that was sent: written, sent again, cut in parts, or given up.

    answer                                        then
    written, or written before (a duplicate)      done
    MESSAGE_TOO_LARGE, several records            cut, and the parts are sent
    an error that may pass, in time               queued again, at the front, after a back-off
    anything else, or too late                    failed

Outcomes are told once all answers of a pass are taken: callbacks first, in the order of the
records, then those who wait.
"""

from __future__ import annotations

from embedlog import errors
from embedlog.client.backoff import Backoff
from embedlog.client.metadata import STALE_METADATA
from embedlog.client.producer.records import tells_user
from embedlog.client.user_code import describe
from embedlog.common import deque
from embedlog.errors import EmbedlogError, KafkaError, TimedOut, error_for
from embedlog.logs import Log
from wire.error_codes import ErrorCode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from embedlog.client.metadata import Metadata
    from embedlog.client.producer.accumulator import RecordAccumulator
    from embedlog.client.producer.batches import ProducerBatch
    from embedlog.client.producer.delivery import DeliveryCallback
    from embedlog.client.producer.transactions import TransactionManager
    from embedlog.client.settings import Settings
    from embedlog.errors import KafkaError
    from embedlog.transport import Transport
    from wire.schemas.produce import NodeEndpoint, PartitionProduceResponse, ProduceResponse


_WRITTEN = frozenset((ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER))
"""A duplicate is written too, though nobody knows any more where."""

_MAY_BE_WRITTEN = frozenset(
    (
        ErrorCode.UNKNOWN_SERVER_ERROR,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    )
)
"""After these errors nobody knows whether the records are in the log."""

_INTERRUPTED = (
    "KeyboardInterrupt while the records were sent: nobody knows whether they are written"
)


class BatchOutcomes:
    """Decides over the batches of one sender, in its turn."""

    def __init__(
        self,
        accumulator: RecordAccumulator,
        metadata: Metadata,
        transactions: TransactionManager | None,
        settings: Settings,
        transport: Transport,
    ) -> None:
        self.failures = Failures()
        """What failed, for who closes the producer."""
        self._accumulator = accumulator
        self._metadata = metadata
        self._disk_error = transport.disk_error if transport.in_process else None
        self._transactions = transactions
        self._retries: int = settings["retries"]
        self._delivery_timeout_ms: int = settings["delivery.timeout.ms"]
        self._batch_size: int = settings["batch.size"]
        self._backoff = Backoff.of_retries(settings, transport.runtime.random)
        self.settled: deque[ProducerBatch] = deque()
        """Batches with an outcome that their callbacks do not know yet."""
        self._is_telling = False
        self.written_count = 0
        """Records."""
        self.failed_count = 0
        self.retried_count = 0
        self.split_count = 0
        """Batches that were cut."""

    def answered(
        self, batch: ProducerBatch, answer: PartitionProduceResponse | None, now_ms: int
    ) -> None:
        """Take what a response says of the batch's partition; None if it says nothing."""
        if answer is None:
            batch.may_be_written = True
            self.failed(batch, errors.UnknownServerError("the response leaves the partition out"))
        elif answer.error_code in _WRITTEN:
            self.written(batch, answer.base_offset, answer.log_append_time_ms)
        else:
            self.refused(batch, error_of(answer), now_ms)

    def take_response(
        self, response: ProduceResponse, batches: list[ProducerBatch], now_ms: int
    ) -> None:
        """Take what a response says of each of `batches`, and of leaders if some refused."""
        answers = by_partition(response, {batch.topic_id: batch.topic for batch in batches})
        if any(answer.error_code for answer in answers.values()):
            self._metadata.learn_leaders(*leaders_in(response, answers))
        for batch in batches:
            self.answered(batch, answers.get((batch.topic, batch.partition)), now_ms)

    def attempt_failed(self, batch: ProducerBatch, error: BaseException, now_ms: int) -> None:
        """There is no answer, or only an error."""
        if isinstance(error, KafkaError):
            self.refused(batch, error, now_ms)
        else:
            batch.may_be_written = True
            if not isinstance(error, EmbedlogError):
                error = errors.UnknownServerError(repr(error))
            self.failed(batch, error)

    def defect(self, batch: ProducerBatch, error: BaseException) -> None:
        """Sending the batch raised: let those who wait for its records know."""
        batch.may_be_written = True
        self.failed(batch, errors.UnknownServerError(repr(error)), is_told=True)

    def settle_lost(self, known: set[ProducerBatch]) -> None:
        """Give batches an outcome that Ctrl-C took from between a queue and their end.

        `known` are those on their way, whose answers will come. It fails the others, as nobody
        knows whether they are written.
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
            elif batch.has_outcome:
                self.settled.append(batch)
            else:
                batch.close()
                batch.may_be_written = True
                self.failed(batch, errors.UnknownServerError(_INTERRUPTED), is_told=True)

    def written(self, batch: ProducerBatch, base_offset: int, log_append_ms: int) -> None:
        """The broker has the batch (base_offset -1: somewhere)."""
        if self._transactions is not None:
            self._transactions.acknowledged(batch)
        batch.succeed(base_offset, log_append_ms)
        self.written_count += batch.record_count
        self.settled.append(batch)

    def refused(self, batch: ProducerBatch, error: KafkaError, now_ms: int) -> None:
        """An attempt failed: try again, cut it, or give it up."""
        code = error.code
        if code in STALE_METADATA or code == ErrorCode.REQUEST_TIMED_OUT:
            self._metadata.request_update()
        if code in _MAY_BE_WRITTEN:
            batch.may_be_written = True
        if code == ErrorCode.MESSAGE_TOO_LARGE and batch.record_count > 1:
            self.split(batch, batch.size // 2 if batch.is_split_product else self._batch_size)
            return
        in_time = now_ms - batch.created_ms < self._delivery_timeout_ms
        if code == ErrorCode.KAFKA_STORAGE_ERROR and self._disk_error is not None:
            in_time = False  # no other replica can take over from a disk of this process
            error.__cause__ = self._disk_error(batch.topic, batch.partition)
        if in_time and batch.attempts < self._retries and self._may_pass(batch, error):
            batch.retry_at_ms = now_ms + self._backoff.delay_ms(batch.attempts)
            batch.attempts += 1
            self.retried_count += batch.record_count
            self._accumulator.put_back(batch)
        else:
            self.failed(batch, error)

    def split(self, batch: ProducerBatch, part_size_max: int) -> None:
        """Queue the batch in parts of at most so many bytes; that is no attempt."""
        parts = batch.split(part_size_max)
        if self._transactions is not None:
            self._transactions.split(batch, parts)
        self._accumulator.replace_by_parts(batch, parts)
        self.split_count += 1

    def too_old(self, batch: ProducerBatch, where: str) -> None:
        """Give up a batch that was in the producer for delivery.timeout.ms."""
        last = batch.last_error or self._metadata.last_error
        why = "" if last is None else f" What failed last: {last}"
        error = TimedOut(
            f"{batch.record_count} records for {batch.topic}-{batch.partition} were {where} for "
            f"delivery.timeout.ms={self._delivery_timeout_ms}, {batch.attempts} retries: is the "
            f"leader of the partition reachable?{why}"
        )
        self.failed(batch, error)

    def failed(self, batch: ProducerBatch, error: Exception, *, is_told: bool = False) -> None:
        """Give the batch up. `is_told`: the user gets an exception for it besides."""
        if self._transactions is not None:
            self._transactions.gave_up(batch)
        batch.fail(error)
        batch.is_error_seen = is_told
        self.failures.add(batch)
        self.failed_count += batch.record_count
        self.settled.append(batch)

    def tell(self) -> None:
        """Run the callbacks of settled batches, in order, then let their waiters see the outcome.

        Nothing is lost when a callback raises: it was taken off the queue, the rest is on it.
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
                self.finish(batch)
        finally:
            self._is_telling = False

    def finish(self, batch: ProducerBatch) -> None:
        """Let waiters see the outcome, which callbacks know, and use the batch's memory again."""
        batch.finish()
        self._accumulator.finished(batch)

    def _may_pass(self, batch: ProducerBatch, error: KafkaError) -> bool:
        """May the error be gone the next time? That is also asked for what it leaves behind."""
        batch.last_error = error
        if self._transactions is not None and self._transactions.may_retry(batch, error):
            return True
        return error.retriable


def _call_back(batch: ProducerBatch, callbacks: deque[tuple[int, DeliveryCallback]]) -> None:
    """Call them, each once; what one raises ends this, with a note of which it was."""
    error = batch.error
    found = None
    if len(callbacks) == batch.record_count and _is_ordinary(batch):
        found = batch.all_metadata()
    index, callback = callbacks[0]
    try:
        while callbacks:
            index, callback = callbacks.popleft()
            callback(batch.metadata(index) if found is None else found[index], error)
    except Exception as raised:
        what = "was written" if error is None else f"failed: {error}"
        record = f"{batch.metadata(index)}, which {what}"
        raised.add_note(f"raised by the on_delivery callback {describe(callback)} of {record}")
        raise


def _is_ordinary(batch: ProducerBatch) -> bool:
    """Does `all_metadata` know its records?"""
    return batch.error is None and not batch.is_bulk


_KEPT_MAX = 1_000
_log = Log("client")


class Failures:
    """The failed batches of one producer, the newest `_KEPT_MAX` of them."""

    __slots__ = ("_failed",)

    def __init__(self) -> None:
        self._failed: deque[ProducerBatch] = deque(maxlen=_KEPT_MAX)

    def add(self, batch: ProducerBatch) -> None:
        """The batch has failed. Requires: its error is known."""
        count = max(batch.record_count, 1)
        _log.info("%d records for %s were given up: %s", count, batch.place, batch.error)
        told = [callback for _, callback in batch.callbacks or () if tells_user(callback)]
        if len(told) < count:
            self._failed.append(batch)

    def take_unseen(self) -> Exception | None:
        """The first error that nobody has looked at, and forget them all; None if there is none.

        A note at it says how many records failed unseen.
        """
        unseen = [batch for batch in self._failed if not batch.is_error_seen]
        self._failed.clear()
        if not unseen:
            return None
        error = unseen[0].error
        assert error is not None, unseen[0]
        count = sum([max(batch.record_count, 1) for batch in unseen])
        places = ", ".join(sorted({batch.place for batch in unseen})[:5])
        text = (
            f"{count} records for {places} were not delivered, and nobody looked at their futures: "
            f"{type(error).__name__}: {error}"
        )
        error.add_note(text)
        return error


def by_partition(
    response: ProduceResponse, names_by_id: Mapping[bytes, str]
) -> dict[tuple[str, int], PartitionProduceResponse]:
    """The answers by (topic, partition); newer versions name topics by their ids only."""
    return {
        (topic.name or names_by_id.get(topic.topic_id, ""), each.index): each
        for topic in response.responses
        for each in topic.partition_responses
    }


def leaders_in(
    response: ProduceResponse, answers: Mapping[tuple[str, int], PartitionProduceResponse]
) -> tuple[dict[tuple[str, int], tuple[int, int]], list[NodeEndpoint]]:
    """Who leads the partitions now, as (node id, epoch), and where those nodes are (KIP-951)."""
    leaders = {
        key: (answer.current_leader.leader_id, answer.current_leader.leader_epoch)
        for key, answer in answers.items()
        if answer.current_leader.leader_id >= 0 and answer.current_leader.leader_epoch >= 0
    }
    return leaders, response.node_endpoints


def error_of(answer: PartitionProduceResponse) -> KafkaError:
    """The error that refuses a batch, with what it tells of records and of the log."""
    error = error_for(answer.error_code, answer.error_message)
    error.record_errors = tuple(
        [(each.batch_index, each.batch_index_error_message) for each in answer.record_errors]
    )
    error.log_start_offset = answer.log_start_offset
    return error
