"""`Queue`: jobs that are put, taken, and acknowledged one by one.

with embedlog.open("data") as cluster, cluster.queue("jobs") as queue:
    queue.put({"image": 17})
    with queue.get(timeout=5) as job:
        work(job.value)
"""

from __future__ import annotations

from contextlib import suppress
from sys import is_finalizing

from embedlog.client import arguments
from embedlog.client.admin.admin import Admin
from embedlog.errors import ClosedError, IllegalState
from embedlog.queue.chores import Chores
from embedlog.queue.job import Job
from embedlog.queue.names import QueueNames
from embedlog.queue.put_options import MANY, ONE, PutOptions, check_names
from embedlog.queue.puts import Puts
from embedlog.queue.settling import Settling
from embedlog.queue.setup import DELIVERIES_MAX, create_missing, keeps_order
from embedlog.queue.taking.takers import Takers
from embedlog.queue.values import Values
from embedlog.runtime import real_runtime
from embedlog.runtime.locks import Rank, ranked_lock
from embedlog.user_warnings import user_line, warn_user

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any, Unpack, overload

    from embedlog.client.connect import Target
    from embedlog.queue.arguments import PutArguments, PutManyArguments
    from embedlog.queue.backoff import Backoff
    from embedlog.queue.dead import DeadJobs
    from embedlog.queue.delays.mover import Mover
    from embedlog.queue.job_record import JobRecord
    from embedlog.queue.replies import Replies
    from embedlog.queue.stats import QueueStats
    from embedlog.queue.values import Serializer
    from embedlog.queue.working.worker import Worker
    from embedlog.runtime import Runtime

_PLAIN = PutOptions()
_PREFETCH_MAX = 500
_RESULT_S = 30.0


class Queue:
    """A queue of jobs over a share group of Kafka. Any thread may call its methods.

    `cluster.queue(name)` returns one, and explains the options. `Queue("host:port", name)` is a
    queue of an embedlog or a Kafka cluster (4.2 or later; without `ordered`) at that address.

    A job is delivered at least once: it comes again if its worker dies, or loses the lock, before
    the acknowledgement is stored.

    >>> with embedlog.open() as cluster, cluster.queue("jobs") as queue:
    ...     made = queue.put(b"work")
    ...     with queue.get(timeout=5) as job:
    ...         job.value, job.deliveries
    (b'work', 1)
    """

    def __init__(
        self,
        target: Target,
        name: str,
        *,
        serializer: Serializer | None = None,
        priorities: int = 1,
        ordered: bool = False,
        retries: int = 4,
        lock: float | None = None,
        partitions: int = 1,
        prefetch: int = _PREFETCH_MAX,
    ) -> None:
        """See `Cluster.queue`."""
        call = "queue"
        count = arguments.number(priorities, call, "priorities", "a number of priorities", lowest=1)
        QueueNames(name)  # the name is checked first
        retries = arguments.number(retries, call, "retries", "a number of retries", lowest=0)
        partitions = arguments.partition_count(partitions, call, "partitions")
        prefetch = arguments.number(prefetch, call, "prefetch", "a number of jobs", lowest=1)
        lock_s = arguments.timeout_s(lock, call, "lock")
        self.retries = retries
        """How often a failing job is tried again."""
        self._target = target
        self._runtime: Runtime = getattr(target, "runtime", None) or real_runtime()
        self._admin = admin = Admin(target, client_id=f"queue-{name}")
        try:
            known = set(admin.list_topics())
            self._names = QueueNames.present(name, known, priorities=count)
            create_missing(
                admin,
                self._names,
                known,
                partitions=partitions,
                lock_ms=None if lock_s is None else int(lock_s * 1000),
                is_ordered=ordered,
            )
            is_ordered = ordered or keeps_order(admin, name)
        except BaseException:
            admin.close()
            raise
        self._values = values = Values(serializer)
        self._puts = Puts(target, self._names, values, self._runtime, self._start_mover)
        # In an ordered queue deliveries count as failures, and a job that goes back unworked has
        # been delivered.
        self._takers = Takers(target, self._names, prefetch_max=1 if is_ordered else prefetch)
        self._settling = Settling(
            self._names, values, self._puts, self._takers, retries=retries, is_ordered=is_ordered
        )
        self._making = ranked_lock(Rank.QUEUE_PARTS)
        self._mover: Mover | None = None
        self._replies: Replies | None = None
        self._chores = Chores(admin, self._names, self._runtime, self._start_mover)
        self._made_at = user_line()
        self.is_closed = False
        """True once `close` began."""

    @property
    def name(self) -> str:
        """The name of the queue, its share group, and its topic."""
        return self._names.name

    # Putting

    def put(self, value: Any, **options: Unpack[PutArguments]) -> str:
        """Append a job; return its id once the job is durable.

        `value` is bytes or JSON, or whatever the queue's serializer takes.

        Options:
            key: str or bytes. Jobs of one key go to one partition; with `ordered`, they are worked
                on one after another.
            delay, at, cron: when the job becomes ready. Give one of them: seconds or a timedelta
                from now; an aware datetime or seconds since 1970; a cron expression in UTC of five
                fields, or six with seconds in front, which makes a job each time until `cancel`.
            id: the job's id, by default a new one. A delayed job or cron job with the id is
                replaced. Jobs that are ready at once may share an id.
            priority: 0 (the lowest, and the default) up to `priorities` - 1.
            dedupe, window: of the jobs with one text in `dedupe`, only the first within `window`
                seconds (300) becomes ready. The others disappear, though `put` returns their ids.
            reply: True to get the result with `result(id)`.
            headers: a dict of str or bytes, for the record.
            transaction: of a producer of the same cluster; the job exists once it is committed.

        Raises:
            TypeError, ValueError: the value or an option is not of its type or range.
            KafkaError: the record was not written, such as RecordTooLarge.
            ClosedError: the queue or its cluster was closed.
        """
        self._check_open("put")
        given = self._options("put", options, ONE) if options else _PLAIN
        if given.wants_reply and self._replies is None:
            self._follow_replies()
        return self._puts.put(value, given)

    def put_many(self, values: Iterable[Any], **options: Unpack[PutManyArguments]) -> list[str]:
        """Append jobs together; return their ids once all are durable.

        Options are `key`, `priority` and `headers` of `put`, for all jobs. The jobs become durable
        together if they fit into one request; after an error some of them may exist.
        """
        self._check_open("put_many")
        return self._puts.put_many(values, self._options("put_many", options, MANY))

    def _options(self, call: str, given: Mapping[str, Any], known: Sequence[str]) -> PutOptions:
        check_names(call, given, known)
        return PutOptions(**given, priorities=len(self._names.levels))

    def cancel(self, id: str) -> None:
        """Remove the delayed job, or the cron job, with this id; without effect if there is none.

        A job that is ready already stays. Returns once this is durable.
        """
        self._check_open("cancel")
        self._puts.append(self._names.delayed, None, arguments.name(id, "cancel", "id").encode())
        self._start_mover()

    def _start_mover(self) -> None:
        """Take part in the moving of delayed jobs, from now until `close`."""
        with self._making:
            if self._mover is None and not self.is_closed:
                from embedlog.queue.delays.mover import Mover

                self._mover = Mover(self._target, self._names, self._runtime)
                self._chores.has_mover = True

    def result(self, job_id: str, timeout: float | None = None) -> Any:
        """Return the result of a job that was put with `reply=True`, once.

        Waits at most `timeout` seconds (30 by default). Another process cannot ask for the results
        of this one's jobs.

        Raises:
            JobFailed: the job was rejected; the message is the reason.
            TimedOut: there is no result yet.
            IllegalState: this queue object has put no job with `reply=True`.
        """
        self._check_open("result")
        arguments.name(job_id, "result", "job_id")
        limit_s = arguments.timeout_s(timeout, "result")
        if self._replies is None:
            raise IllegalState(f"result({job_id!r}): no job was put here with reply=True")
        return self._replies.result(job_id, int(1000 * (_RESULT_S if limit_s is None else limit_s)))

    def _follow_replies(self) -> None:
        with self._making:
            if self._replies is None and not self.is_closed:
                from embedlog.queue.replies import Replies

                self._replies = Replies(self._target, self._names, self._values, self._runtime)

    # Looking

    @property
    def dead(self) -> DeadJobs:
        """The jobs that were given up: look at them, put them again, or drop them."""
        self._check_open("dead")
        from embedlog.queue.dead import DeadJobs

        return DeadJobs(self._target, self._names, self._values, self._admin)

    def peek(self, count: int = 10) -> list[JobRecord]:
        """Return the next jobs, and lock none: up to `count`, the highest priority first.

        Jobs that a worker has are among them.
        """
        self._check_open("peek")
        limit = arguments.number(count, "peek", "count", "a number of jobs", lowest=1)
        from embedlog.queue.peek import next_jobs

        self._takers.flush(None)
        return next_jobs(self._target, self._admin, self._names, self._values, limit)

    def stats(self) -> QueueStats:
        """Return the numbers of the queue: ready, locked, delayed and dead jobs, and more.

        The call reads the dead topic, and the delayed one if another process moves its jobs.
        """
        self._check_open("stats")
        from embedlog.queue import stats

        self._takers.flush(None)
        count, starts = stats.undone(self._admin, self._names)
        locked = stats.locked_count(self._target, self.name)
        if locked is None:
            locked = self._takers.held_count
        oldest_ms = stats.oldest_ms(self._target, self._admin, self.name, starts) if count else None
        now_ms = self._runtime.clock.wall_ms()
        delayed = None if self._mover is None else self._mover.delayed_count
        if delayed is None:
            delayed = stats.delayed_count(self._target, self._names.delayed)
        return stats.QueueStats(
            ready=max(0, count - locked),
            locked=locked,
            delayed=delayed,
            dead=len(self.dead),
            oldest_s=None if oldest_ms is None else max(0, now_ms - oldest_ms) / 1000,
            late=self._takers.late_count,
        )

    # Taking

    def get(self, timeout: float | None = None) -> Job | None:
        """Lock the next job, and return it; None if there is none within `timeout` seconds.

        Without a timeout it waits for ever.

        Raises:
            RecordUnreadable: a batch in the log is damaged; its jobs went to the dead ones.
            KafkaError: the cluster refused, and a retry cannot help.
            ClosedError: the queue or its cluster was closed.
        """
        self._check_open("get")
        if self._runtime.clock.monotonic_ms() >= self._chores.next_ms:
            self._chores.do()
        timeout_s = arguments.timeout_s(timeout, "get")
        while True:
            taken = self._takers.take(timeout_s)
            if taken is None:
                return None
            job = Job(self._settling, taken)
            if taken.record.delivery_count < DELIVERIES_MAX:
                return job
            # A broker would give the job up at the end of this delivery, and lose its headers.
            job.reject(f"{job.deliveries - 1} deliveries ended without an acknowledgement")

    def flush(self, timeout: float | None = None) -> bool:
        """Wait until every acknowledgement of this process is stored or refused.

        Returns False if that took longer than `timeout` seconds (30 by default).
        """
        self._check_open("flush")
        return self._takers.flush(arguments.timeout_s(timeout, "flush"))

    if TYPE_CHECKING:

        @overload
        def worker(
            self,
            function: Callable[[Job], Any],
            *,
            concurrency: int = 1,
            retries: int | None = None,
            backoff: Backoff | None = None,
        ) -> Worker: ...

        @overload
        def worker(
            self,
            function: None = None,
            *,
            concurrency: int = 1,
            retries: int | None = None,
            backoff: Backoff | None = None,
        ) -> Callable[[Callable[[Job], Any]], Worker]: ...

    def worker(
        self,
        function: Callable[[Job], Any] | None = None,
        *,
        concurrency: int = 1,
        retries: int | None = None,
        backoff: Backoff | None = None,
    ) -> Any:
        """Make a worker of a function, as a decorator or with the function as argument.

        `concurrency` threads call a plain function. A coroutine function runs in one event loop,
        as up to `concurrency` tasks. `retries` is by default the queue's, and `backoff` no pause.
        See `embedlog.queue.working.worker.Worker` for its calls `start`, `stop` and `run`.
        """
        from embedlog.queue.working.worker import Worker

        def make(function: Callable[[Job], Any]) -> Worker:
            return Worker(
                self.name,
                arguments.callback(function, "worker", "function"),
                self.get,
                self._runtime,
                concurrency=concurrency,
                retries=self.retries if retries is None else retries,
                backoff=backoff,
            )

        return make if function is None else make(function)

    # Closing

    def close(self, timeout: float | None = None) -> None:
        """Send the acknowledgements, and release all other jobs of this process.

        Waits at most `timeout` seconds (30 by default) for the cluster. A second call does nothing.
        """
        if self.is_closed:
            return
        with self._making:
            self.is_closed = True
        limit_s = arguments.timeout_s(timeout, "close")
        try:
            if self._mover is not None:
                self._mover.close()
            with suppress(ClosedError):  # the cluster was closed before
                self._takers.close(limit_s)
        finally:
            if self._replies is not None:
                self._replies.close()
            self._puts.close()
            self._admin.close()

    def _check_open(self, call: str) -> None:
        if self.is_closed:
            raise ClosedError(f"{call}: the queue {self.name!r} was closed")

    def __del__(self) -> None:
        if not self.__dict__.get("is_closed", True) and not is_finalizing():
            if self._mover is not None:
                self._mover.end()
            text = f"{self!r}, made here, was not closed"
            warn_user(text, ResourceWarning, line=self._made_at)

    def __enter__(self) -> Queue:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Queue {self.name!r}{', closed' if self.is_closed else ''}>"
