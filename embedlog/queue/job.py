"""`Job`: one job in the hands of a worker."""

from __future__ import annotations

from embedlog.client.share.acknowledge_type import AcknowledgeType
from embedlog.errors import EmbedlogError, IllegalState, InvalidRecordState
from embedlog.queue import names
from embedlog.queue.job_record import JobRecord

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from embedlog.client.share.record import ShareRecord
    from embedlog.queue.settling import Settling
    from embedlog.queue.taking.taken import Taken


class Job(JobRecord):
    """A job that this process has locked, until it is acknowledged, released or rejected.

        with queue.get(timeout=5) as job:
            work(job.value)

    The end of the block acknowledges the job. If the block raises, the job is released with the
    error as its `last_error`, and rejected once the queue's `retries` are used up; the exception
    goes on. A job that was settled inside the block stays as it is.
    """

    __slots__ = ("_settling", "_taken")

    record: ShareRecord

    def __init__(self, settling: Settling, taken: Taken) -> None:
        super().__init__(taken.record, settling.values)
        self._settling = settling
        self._taken = taken

    @property
    def priority(self) -> int:
        """The priority; 0 is the lowest."""
        return self._settling.priority_of(self.record.topic)

    @property
    def deliveries(self) -> int:
        """How often a process fetched the job, this time included.

        It counts a job as well that a process fetched ahead and gave back unused.
        """
        return self._number(names.DELIVERIES) + self.record.delivery_count

    @property
    def locked_until_ms(self) -> int:
        """Monotonic time of the runtime's clock at which the lock ends, unless it is renewed."""
        return self._taken.locked_until_ms

    @property
    def is_settled(self) -> bool:
        """True once the job was acknowledged, released or rejected."""
        return self._taken.is_settled

    # Settling

    def ack(self, *, wait: bool = False, result: Any = None) -> None:
        """The job is done; no worker gets it again.

        The acknowledgement is sent at once if no other job is at hand, else within 10 ms, together
        with others. `wait`: return when it is stored. If this process dies before that, another
        worker gets the job again. `result` goes to the maker of the job, if it waits for one.

        Raises:
            IllegalState: the job is settled already.
            InvalidRecordState: the lock has ended: another worker gets the job, or has it.
        """
        self._check("ack")
        if result is not None or self.wants_reply:
            self._settling.reply(self, result=result)
        self._settle(AcknowledgeType.ACCEPT, wait=wait)

    def release(self, delay: float = 0, *, error: BaseException | str | None = None) -> None:
        """Let another worker have the job, after `delay` seconds.

        With a delay or an error the job becomes a new record at the end of the queue; without, it
        keeps its place.

        Raises:
            IllegalState: the job is settled already, or the queue keeps the order of keys and
                `delay` or `error` would break it.
            InvalidRecordState: the lock has ended.
        """
        self._check("release")
        if not delay and error is None:
            self._settle(AcknowledgeType.RELEASE)
            return
        self._settling.put_again(self, self.deliveries, delay, error)
        self._settle(AcknowledgeType.ACCEPT)

    def reject(self, reason: BaseException | str | None = None) -> None:
        """Give the job up: it goes to `queue.dead` with the reason.

        Raises:
            IllegalState: the job is settled already.
            InvalidRecordState: the lock has ended.
        """
        self._check("reject")
        if self.wants_reply:
            self._settling.reply(self, error=reason)
        self._settling.bury(self, self.deliveries, reason)
        self._settle(AcknowledgeType.ACCEPT)

    def renew(self, *, wait: bool = False) -> None:
        """Keep the job for another lock time, from now.

        Raises:
            IllegalState: the job is settled already.
            InvalidRecordState: the lock has ended.
        """
        self._check("renew")
        self._settling.taker_of(self._taken).settle(self._taken, AcknowledgeType.RENEW)
        if wait:
            self._settling.wait_for_renewal(self._taken)
            if not self._taken.is_settled:
                self._check("renew")

    def fail(
        self, error: BaseException | str, delay: float = 0, *, retries: int | None = None
    ) -> None:
        """Note a failure: release the job, or reject it once its retries are used up.

        `retries` replaces the queue's. In a queue that keeps the order of keys, the job of a key
        is released in its place, without the delay.

        Raises:
            IllegalState: the job is settled already.
            InvalidRecordState: the lock has ended.
        """
        limit = self._settling.retries if retries is None else retries
        keeps_place = self._settling.is_ordered and self.key is not None
        if (self.deliveries - 1 if keeps_place else self.failures) >= limit:
            self.reject(error)
        elif keeps_place:
            self._check("fail")
            self._settle(AcknowledgeType.RELEASE)
        else:
            self.release(delay, error=error)

    def _check(self, call: str) -> None:
        if self._taken.is_settled:
            raise IllegalState(f"{call}: the job {self.id} was settled already")
        if self._settling.has_ended(self._taken):
            self._taken.is_settled = True
            raise InvalidRecordState(
                f"{call}: the lock of the job {self.id} has ended, so another worker gets it; "
                "call renew() in time, or let the queue's lock last longer"
            )

    def _settle(self, kind: int, *, wait: bool = False) -> None:
        taker = self._settling.taker_of(self._taken)
        taker.settle(self._taken, kind)
        if wait:
            taker.wait_for(self._taken, self._settling.patience_ms)

    def __enter__(self) -> Job:
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        if self._taken.is_settled:
            return
        if error is None:
            self.ack()
        elif isinstance(error, Exception):
            self._end_failed(error)
        else:  # the program ends: the job has not failed
            self.release()

    def _end_failed(self, error: Exception) -> None:
        try:
            self.fail(error)
        except EmbedlogError as second:  # the worker's own error goes on
            error.add_note(f"and the job could not be released: {second}")

    def __repr__(self) -> str:
        state = "settled" if self._taken.is_settled else f"delivery {self.deliveries}"
        return f"<Job {self.id} of {self._settling.name!r}, {state}>"
