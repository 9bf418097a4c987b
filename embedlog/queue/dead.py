"""`DeadJobs`: the jobs that were given up: to look at, to put again, or to drop.

The dead topic is a log: a job leaves it with a marker record that names its offset. Once all jobs
up to an offset have left, the log is cut there. Redriving is one transaction: the job is ready
again and its marker is there, or neither.
"""

from __future__ import annotations

from embedlog.client.consumer.consumer import Consumer
from embedlog.client.producer.producer import Producer
from embedlog.errors import KafkaError
from embedlog.queue import names
from embedlog.queue.job_record import JobRecord
from embedlog.queue.reading import read_one, read_to_end

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from embedlog.client.admin.admin import Admin
    from embedlog.client.connect import Target
    from embedlog.client.consumer.record import ConsumerRecord
    from embedlog.client.producer.transaction import Transaction
    from embedlog.queue.names import QueueNames
    from embedlog.queue.values import Values

    Header = tuple[str, bytes | None]
    Headers = Sequence[Header]
    Chosen = Iterable["str | DeadJob"] | None

LEFT = "job.left"
"""Header of a marker: the partition and offset of a job that has left."""

_NOT_KEPT = frozenset((names.REASON, names.ERROR, names.FAILURES, names.DELIVERIES))


class DeadJob(JobRecord):
    """A job that was given up. Its `value` is None if the dead letter has no copy of it."""

    __slots__ = ("all_headers",)

    def __init__(self, record: ConsumerRecord, values: Values, former: Headers = ()) -> None:
        """`former` are headers of the job's own record, if the letter has none of them."""
        super().__init__(record, values)
        self.all_headers: list[Header] = [*former, *record.headers]
        """The headers as pairs, with all of a name that occurs more than once."""
        self.headers = dict(self.all_headers)

    @property
    def id(self) -> str:
        """The job's id, as `put` returned it."""
        origin = (self._letter(name) or "?" for name in ("topic", "partition", "offset"))
        return self._text(names.JOB_ID) or "-".join(origin)

    @property
    def reason(self) -> str:
        """Why the job was given up."""
        return self._text(names.REASON) or self._letter("message") or "unknown"

    @property
    def deliveries(self) -> int:
        """How often a worker got the job."""
        count = self._number(names.LETTER + "delivery.count")
        # A letter of the queue counts all deliveries; a broker counts them for the last record.
        return count if names.REASON in self.headers else self._number(names.DELIVERIES) + count

    @property
    def died_at_ms(self) -> int:
        """When the job was given up, in ms since 1970."""
        return self.record.timestamp

    @property
    def topic(self) -> str | None:
        """The topic that had the job."""
        return self._letter("topic")

    @property
    def source(self) -> tuple[str, int, int] | None:
        """Topic, partition and offset of the job's record; None if the letter does not say."""
        topic, partition, offset = map(self._letter, ("topic", "partition", "offset"))
        if topic is None or not f"{partition}{offset}".isdigit():
            return None
        return topic, int(partition or ""), int(offset or "")

    @property
    def place(self) -> tuple[int, int]:
        """Partition and offset in the dead topic."""
        return self.record.partition, self.record.offset

    def _letter(self, name: str) -> str | None:
        return self._text(names.LETTER + name)

    def __repr__(self) -> str:
        return f"<DeadJob {self.id}, {self.deliveries} deliveries, {self.reason!r}>"


class DeadJobs:
    """The dead jobs of one queue; iteration yields them, the oldest first.

    >>> with embedlog.open() as cluster, cluster.queue("jobs") as queue:
    ...     made = queue.put(b"work")
    ...     queue.get(timeout=5).reject("no such customer")
    ...     [(job.value, job.reason) for job in queue.dead], queue.dead.redrive(), len(queue.dead)
    ([(b'work', 'no such customer')], 1, 0)
    """

    def __init__(self, target: Target, queue_names: QueueNames, values: Values, admin: Admin):
        self._target = target
        self._names = queue_names
        self._values = values
        self._admin = admin

    def __iter__(self) -> Iterator[DeadJob]:
        return iter(self._jobs())

    def __len__(self) -> int:
        return len(self._present())

    def redrive(self, jobs: Chosen = None) -> int:
        """Put dead jobs into their queue again; return how many.

        `jobs` are ids or `DeadJob`s; None means all. The jobs begin anew: without deliveries,
        failures and error. A job whose value is unknown stays.

        Raises:
            KafkaError: the log refuses, or another process redrives or drops at this moment;
                nothing has changed.
        """
        return self._leave(jobs, redrives=True)

    def drop(self, jobs: Chosen = None) -> int:
        """Remove dead jobs for ever; return how many. `jobs` is as for `redrive`."""
        return self._leave(jobs, redrives=False)

    def _leave(self, jobs: Chosen, *, redrives: bool) -> int:
        wanted = None if jobs is None else {getattr(each, "id", each) for each in jobs}
        transactional_id = f"{self._names.dead}.leaving"
        with Producer(self._target, transactional_id=transactional_id) as producer:
            producer.init_transactions()  # from here on, no other process can end its call
            chosen = [
                job
                for job in self._jobs()
                if (wanted is None or job.id in wanted)
                and not (redrives and job.record.value is None)
            ]
            if chosen:
                with producer.transaction() as transaction:
                    for job in chosen:
                        if redrives:
                            self._put_again(transaction, job)
                        self._mark(transaction, job)
        if chosen:
            self._cut()
        return len(chosen)

    def _put_again(self, transaction: Transaction, job: DeadJob) -> None:
        headers = [
            each
            for each in job.all_headers
            if not each[0].startswith(names.LETTER) and each[0] not in _NOT_KEPT
        ]
        if names.JOB_ID not in job.headers:
            headers.append((names.JOB_ID, job.id.encode()))
        topic = job.topic if job.topic in self._names.levels else self._names.name
        value = job.record.value
        assert value is not None, job
        transaction.send(topic, bytes(value), job.key, headers=headers)

    def _mark(self, transaction: Transaction, job: DeadJob) -> None:
        partition, offset = job.place
        header = (LEFT, b"%d-%d" % (partition, offset))
        transaction.send(self._names.dead, None, partition=partition, headers=[header])

    def _jobs(self) -> list[DeadJob]:
        """Return the jobs that have not left, the oldest first."""
        jobs = self._completed(self._present())
        return sorted(jobs, key=lambda job: (job.died_at_ms, job.place))

    def _present(self) -> list[DeadJob]:
        """Read the dead topic; return the jobs that have not left, as their letters are."""
        found: dict[tuple[int, int], DeadJob] = {}
        for record in self._records():
            job = DeadJob(record, self._values)
            left = job.headers.get(LEFT)
            if left is None:
                found[job.place] = job
            else:
                partition, _, offset = left.decode().partition("-")
                found.pop((int(partition), int(offset)), None)
        return list(found.values())

    def _completed(self, jobs: Iterable[DeadJob]) -> Iterator[DeadJob]:
        """Yield the jobs with their own headers, which a broker's letter does not have.

        The job's record gives them, until it is removed together with other done jobs.
        """
        with Consumer(self._target, isolation_level="read_committed", max_poll_records=1) as reader:
            for job in jobs:
                source = None if names.REASON in job.headers else job.source
                record = None
                if source is not None and source[0] in self._names.levels:
                    record = read_one(reader, source[:2], source[2])
                yield job if record is None else DeadJob(job.record, self._values, record.headers)

    def _records(self) -> Iterator[ConsumerRecord]:
        with Consumer(self._target, isolation_level="read_committed") as consumer:
            partitions = [
                (self._names.dead, each.partition)
                for each in consumer.partitions_for(self._names.dead)
            ]
            consumer.assign(partitions)
            consumer.seek_to_beginning()
            yield from read_to_end(consumer, partitions)

    def _cut(self) -> None:
        """Delete the records before the first dead job; it does not matter if that fails."""
        with Consumer(self._target, isolation_level="read_committed") as consumer:
            partitions = consumer.partitions_for(self._names.dead)
            ends = consumer.end_offsets([(self._names.dead, each.partition) for each in partitions])
        first = {key.partition: end for key, end in ends.items()}
        for job in self._present():  # after the ends, so that no job is overlooked
            partition, offset = job.place
            first[partition] = min(first[partition], offset)
        offsets = {(self._names.dead, partition): offset for partition, offset in first.items()}
        try:
            self._admin.delete_records(offsets)
        except KafkaError:
            return
