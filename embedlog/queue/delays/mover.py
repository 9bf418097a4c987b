"""`Mover`: the thread that moves due jobs to the ready topics.

    join the group of movers -> partition assigned -> fence the former mover
         ^                                             read the delayed topic from the start
         |                                             move due jobs; wait; read new records
         +-------------- fenced, or partition revoked ---------+

Each process that uses delayed jobs has one mover for a queue; the group gives the topic to one of
them. A mover that lost the group without knowing it is fenced by the transactional id.
"""

from __future__ import annotations

from embedlog.client.consumer.consumer import Consumer
from embedlog.client.consumer.rebalance_listener import ConsumerRebalanceListener
from embedlog.client.errors import WakeupError
from embedlog.client.producer.producer import Producer
from embedlog.errors import ClosedError, ConfigError, EmbedlogError
from embedlog.logger import Logger
from embedlog.queue.cron import next_ms
from embedlog.queue.delays.entry import SEEN, Entry
from embedlog.queue.delays.ledger import Ledger
from embedlog.queue.delays.rereading import Rereading
from embedlog.queue.names import JOB_ID
from embedlog.runtime.outer_call import as_caller
from embedlog.runtime.pending import Pending

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from embedlog.client.connect import Target
    from embedlog.client.consumer.record import ConsumerRecords
    from embedlog.client.producer.transaction import Transaction
    from embedlog.common import TopicPartition
    from embedlog.queue.names import QueueNames
    from embedlog.runtime import Runtime

_BATCH = 500
"""Jobs that one transaction moves at most."""
_READ_MAX = 5000
_WAIT_MS_MAX = 1000
_READING_MS = 50
_PAUSE_MS = 1000
_CRON_PAUSE_MS = 60_000
_SESSION_MS = 6000
_JOIN_MS = 10_000

_log = Logger("queue")


class Mover:
    """Moves due jobs, in a thread of its own, from `start` until `close`."""

    def __init__(self, target: Target, names: QueueNames, runtime: Runtime) -> None:
        self._target = target
        self._names = names
        self._runtime = runtime
        self._clock = runtime.clock
        self._consumer: Consumer | None = None
        self._tenure: Tenure | None = None
        self._is_closing = False
        self._thread = runtime.scheduler.start_thread(self._run, f"embedlog-queue-{names.name}")

    @property
    def delayed_count(self) -> int | None:
        """Number of delayed jobs; None if another process moves them, or they are being read."""
        tenure = self._tenure
        return None if tenure is None or tenure.is_reading else tenure.count

    def end(self) -> None:
        """Let the thread end, after the move that is under way. Takes no lock."""
        self._is_closing = True
        consumer = self._consumer
        if consumer is not None:
            consumer.wakeup()

    def close(self) -> None:
        """End the thread, and wait for its end."""
        self.end()
        self._thread.join(_JOIN_MS)

    def _run(self) -> None:
        as_caller(self._work)

    def _work(self) -> None:
        while not self._is_closing:
            try:
                self._serve()
            except (ClosedError, WakeupError):
                if self._is_gone:
                    return
            except EmbedlogError as error:
                _log.warning("the mover of queue %r begins again: %s", self._names.name, error)
                self._runtime.scheduler.wait(Pending(), _PAUSE_MS)
            except Exception as error:
                text = "the mover of queue %r begins again: %r"
                _log.error(text, self._names.name, error, exc_info=error)
                self._runtime.scheduler.wait(Pending(), _PAUSE_MS)

    @property
    def _is_gone(self) -> bool:
        return self._is_closing or bool(getattr(self._target, "is_closed", False))

    def _serve(self) -> None:
        """Be a member of the group until an error, or until `close`."""
        consumer = Consumer(
            self._target,
            group_id=f"{self._names.name}.mover",
            client_id=f"queue-{self._names.name}-mover",
            isolation_level="read_committed",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            max_poll_records=_READ_MAX,
            session_timeout_ms=_SESSION_MS,
            heartbeat_interval_ms=_SESSION_MS // 3,
        )
        self._consumer = consumer
        try:
            consumer.subscribe([self._names.delayed], listener=_Assigned(self))
            while not self._is_closing:
                tenure = self._tenure
                records = consumer.poll(_WAIT_MS_MAX if tenure is None else tenure.wait_ms())
                if self._tenure is not None:  # the poll may have begun one, or ended it
                    self._tenure.read(records)
        finally:
            self.end_tenure()
            self._consumer = None
            consumer.close()

    def begin_tenure(self) -> None:
        """The topic belongs to this mover now."""
        assert self._consumer is not None, self
        self.end_tenure()
        self._tenure = Tenure(self._target, self._names, self._runtime, self._consumer)

    def end_tenure(self) -> None:
        """The topic belongs to another mover, or to none."""
        tenure, self._tenure = self._tenure, None
        if tenure is not None:
            tenure.close()


class _Assigned(ConsumerRebalanceListener):
    def __init__(self, mover: Mover) -> None:
        self._mover = mover

    def on_partitions_assigned(self, partitions: Iterable[TopicPartition]) -> None:
        if list(partitions):
            self._mover.begin_tenure()

    def on_partitions_revoked(self, partitions: Iterable[TopicPartition]) -> None:
        if list(partitions):
            self._mover.end_tenure()

    on_partitions_lost = on_partitions_revoked


class Tenure:
    """The time in which one mover has the delayed topic."""

    def __init__(
        self, target: Target, names: QueueNames, runtime: Runtime, consumer: Consumer
    ) -> None:
        self._names = names
        self._clock = runtime.clock
        self._consumer = consumer
        self._partition = (names.delayed, 0)
        self._producer = Producer(target, transactional_id=f"{names.name}.mover")
        self._rereading = Rereading(target, names.delayed)
        self.ledger = Ledger()
        self._producer.init_transactions()  # no move of the former mover is open any more
        consumer.seek_to_beginning(self._partition)
        (self._end_offset,) = consumer.end_offsets([self._partition]).values()
        self._goal: tuple[int, int] | None = None
        """The time at which due jobs came up, and the end of the topic at that time."""
        self.is_reading = True
        """True until all earlier records of the topic were read."""

    @property
    def count(self) -> int:
        """Number of delayed jobs, and of texts that are remembered against duplicates."""
        return len(self.ledger.table)

    def wait_ms(self) -> int:
        """Return how long to wait for new records."""
        ledger = self.ledger
        if ledger.void_rows or ledger.overtaken:
            return 0
        if self.is_reading or self._goal is not None:
            return _READING_MS
        due_ms = ledger.table.next_due_ms()
        if due_ms is None:
            return _WAIT_MS_MAX
        return max(0, min(due_ms - self._clock.wall_ms(), _WAIT_MS_MAX))

    def read(self, records: ConsumerRecords) -> None:
        """Note new records, and move due jobs.

        Raises:
            KafkaError: another mover has fenced this one, or the log refuses.
        """
        for record in records:
            self.ledger.read(record)
        if self.is_reading:
            if self._consumer.position(self._partition) < self._end_offset:
                return
            self.is_reading = False
            self.ledger.end_first_reading()
        now_ms = self._clock.wall_ms()
        until_ms = self._until_ms(now_ms)
        if until_ms is None:
            return
        ledger = self.ledger
        rows = ledger.table.take(until_ms, _BATCH)
        if rows or ledger.void_rows or ledger.overtaken:
            self._move(rows)
        else:
            ledger.forget_windows(now_ms)

    def _until_ms(self, now_ms: int) -> int | None:
        """Return up to which time jobs may be moved; None if the topic has to be read first.

        A due job stays if its cancellation, or its replacement, was there before its time.
        """
        due_ms = self.ledger.table.next_due_ms()
        if self._goal is None:
            if due_ms is None or due_ms > now_ms:
                return now_ms
            (end_offset,) = self._consumer.end_offsets([self._partition]).values()
            self._goal = now_ms, end_offset
        until_ms, end_offset = self._goal
        if self._consumer.position(self._partition) < end_offset:
            return None
        self._goal = None
        return until_ms

    def _move(self, rows: list[tuple[int, int]]) -> None:
        """Move records in one transaction."""
        ledger = self.ledger
        void, again = {offset for _, offset in ledger.void_rows}, set(ledger.overtaken)
        offsets = [*(offset for _, offset in rows), *void, *again]
        moved: list[Entry] = []
        with self._producer.transaction() as transaction:
            for entry in sorted(self._entries(offsets), key=lambda entry: entry.due_ms):
                if entry.offset in again:
                    self._append_again(transaction, entry)
                    continue
                is_void = entry.offset in void
                counts = is_void or ledger.counts(entry)
                if counts and self._end(transaction, entry, is_ready=not is_void):
                    moved.append(entry)
        ledger.void_rows, ledger.overtaken = [], []
        for entry in moved:
            ledger.moved(entry)

    def _entries(self, offsets: list[int]) -> Iterator[Entry]:
        for record in self._rereading.records(offsets):
            try:
                yield Entry(record, self._names.name)
            except ConfigError as error:
                _log.warning("queue %r: %s", self._names.name, error)

    def _append_again(self, transaction: Transaction, entry: Entry) -> None:
        transaction.send(
            self._names.delayed,
            entry.value,
            entry.id,
            headers=entry.headers,
            timestamp_ms=entry.due_ms,
        )

    def _end(self, transaction: Transaction, entry: Entry, *, is_ready: bool) -> bool:
        """Make a due job ready, unless it is a duplicate, and end its delayed record.

        Returns False if the record goes on, or another record of the id follows it.
        """
        if entry.cron is not None:
            self._repeat(transaction, entry, entry.cron)
            return False
        now_ms, delayed = self._clock.wall_ms(), self._names.delayed
        if is_ready and not entry.only_remembers:
            transaction.send(entry.topic, entry.value, entry.key, headers=entry.job_headers)
        transaction.send(delayed, None, entry.id)
        if is_ready and entry.dedupe is not None and entry.window_end_ms > now_ms:
            seen = SEEN + entry.dedupe.encode()
            transaction.send(delayed, b"", seen, timestamp_ms=entry.window_end_ms)
        return True

    def _repeat(self, transaction: Transaction, entry: Entry, cron: str) -> None:
        """Make the job of a cron expression ready, and delay it until the next time."""
        now_ms = self._clock.wall_ms()
        try:
            due_ms = next_ms(cron, max(now_ms, entry.due_ms))
        except ConfigError as error:  # here the package is missing, or another program wrote it
            _log.warning("queue %r: job %r waits: %s", self._names.name, entry.id, error)
            self.ledger.table.add(now_ms + _CRON_PAUSE_MS, entry.offset)
            return
        headers = [each for each in entry.job_headers if each[0] != JOB_ID]
        headers.append((JOB_ID, b"%s-%d" % (entry.id, entry.due_ms)))
        transaction.send(entry.topic, entry.value, entry.key, headers=headers)
        delayed = self._names.delayed
        transaction.send(delayed, entry.value, entry.id, headers=entry.headers, timestamp_ms=due_ms)

    def close(self) -> None:
        self._producer.close()
        self._rereading.close()
