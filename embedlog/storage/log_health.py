"""Whether a log takes writes, and which error its disk last reported."""

from __future__ import annotations

from errno import EDQUOT, EFBIG, EMFILE, ENFILE, ENOMEM, ENOSPC

from embedlog import errors
from embedlog.errors import CorruptRecord, again
from embedlog.storage import events

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.common import TopicPartition
    from embedlog.runtime import Clock

HARMLESS_ERRORS = (ENOSPC, EDQUOT, EFBIG, EMFILE, ENFILE, ENOMEM)
"""Errors of a call that lacked space, descriptors or memory: it did nothing and may be repeated."""


class LogHealth:
    """The health of one log. Any thread may read it and report errors; `failure` is never reset.

    After a failed sync or an I/O error a log is poisoned: it refuses writes for good and goes on
    answering reads. A full disk poisons nothing.
    """

    __slots__ = (
        "_clock",
        "_tell_from_ms",
        "_tell_limits_from_ms",
        "_topic_partition",
        "damage",
        "disk_error",
        "failed_since_ms",
        "failure",
    )

    def __init__(self, topic_partition: TopicPartition, clock: Clock) -> None:
        self._topic_partition = topic_partition
        self._clock = clock
        self.failure: BaseException | None = None
        """Why the log refuses writes; None while it takes them."""
        self.failed_since_ms = -1
        """Wall time of the failure, -1 without one."""
        self.damage: tuple[int, CorruptRecord] | None = None
        """(wall time, error) of the last rot that a reader found in published records, or None."""
        self.disk_error: OSError | None = None
        """The last error of a write; later writes may have succeeded."""
        self._tell_from_ms = 0
        self._tell_limits_from_ms = 0

    def check(self) -> None:
        """Raise unless the log takes writes.

        Raises:
            KafkaStorageError: the log refuses writes.
        """
        if self.failure is not None:
            raise self._refusal()

    def check_rot(self) -> None:
        """Raise CorruptRecord if the log ends where rot begins.

        A reader at the log's end must then neither wait for records nor start over.
        """
        if isinstance(self.failure, CorruptRecord):
            raise again(self.failure)

    def wall_ms(self) -> int:
        return self._clock.wall_ms()

    def retire(self, reason: BaseException) -> None:
        """Refuse writes from now on because the log was closed or deleted: nothing has failed."""
        if self.failure is None:
            self.failure = reason

    def refuse(self, failure: BaseException) -> None:
        """Refuse writes from now on because of `failure`, without logging it."""
        self.failure, self.failed_since_ms = failure, self._clock.wall_ms()

    def poison(self, error: Exception) -> errors.KafkaError:
        """Refuse writes from now on because of `error`; return the error to raise."""
        if isinstance(error, OSError):
            self.disk_error = error
        if self.failure is None:
            self.refuse(error)
            events.poisoned(self._topic_partition, error)
        return self._refusal()

    def refused(self, error: OSError) -> errors.KafkaError:
        """Return the error to raise for a failed file call.

        Poison the log unless the error is one of HARMLESS_ERRORS.
        """
        self.disk_error = error
        if error.errno not in HARMLESS_ERRORS:
            return self.poison(error)
        now_ms, known = self._clock.monotonic_ms(), self._topic_partition
        self._tell_from_ms = events.write_refused(known, error, now_ms, self._tell_from_ms)
        return errors.KafkaStorageError(f"{self._topic_partition}: {error}")

    def limit_exceeded(self, error: errors.KafkaError) -> None:
        """Log that a limit of embedlog refused records, at most once in 10 s."""
        now_ms, known = self._clock.monotonic_ms(), self._topic_partition
        self._tell_limits_from_ms = events.records_refused(
            known, error, now_ms, self._tell_limits_from_ms
        )

    def note_damage(self, damage: CorruptRecord) -> None:
        """Note rot in published records, and log it once."""
        if self.damage is None or str(self.damage[1]) != str(damage):
            self.damage = (self._clock.wall_ms(), damage)
            events.events.error("%s is damaged: %s", self._topic_partition, damage)

    def _refusal(self) -> errors.KafkaError:
        return errors.KafkaStorageError(
            f"{self._topic_partition} refuses writes since an earlier failure: {self.failure}"
        )
