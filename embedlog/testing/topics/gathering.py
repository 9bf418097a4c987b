"""`Gathering`: the records that became visible since a moment."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from embedlog.replication.partition import Isolation
from embedlog.testing.topics.look import Key, Look, settled
from embedlog.testing.topics.matching import rec
from embedlog.testing.topics.reading import isolation_of, read_records
from embedlog.testing.topics.record import NO_FORMATS, LogRecord

if TYPE_CHECKING:
    from embedlog.testing.topics.logs import Logs


class Gathering:
    """New records of some topics, matching ones and others. Used by one thread at a time."""

    def __init__(
        self,
        logs: Logs,
        topics: list[str] | None,
        matching: rec | None,
        *,
        isolation: str,
        missing_ok: bool,
    ) -> None:
        """None as `topics` means all but the internal ones.

        Raises:
            UnknownTopicOrPartition: a topic does not exist, and `missing_ok` is false.
        """
        if matching is not None and not isinstance(matching, rec):
            raise TypeError(f"{matching!r}: expected a rec(...) to match")
        self._isolation = isolation_of(isolation)
        for topic in topics or ():
            logs.check(topic, missing_ok=missing_ok)
        logs.image()  # raises if the cluster was closed
        self.logs = logs
        self.topics = topics
        self.matching = matching
        self.found: list[LogRecord] = []
        self.others: list[LogRecord] = []
        """New records that do not match."""
        self._places: dict[Key, int] = {}

    def begin(self) -> None:
        """Note the ends: later records are new."""
        self._places = settled(self.logs, self.topics, self._isolation).ends

    def take(self) -> Look:
        """Take the new records. Return the look that decided how far."""
        look = Look(self.logs, self.topics, self._isolation)
        for key, partition in look.leaders.items():
            start, end = self._places.get(key, 0), look.ends[key]
            if end <= start:
                continue
            formats = self.logs.formats.get(key[0], NO_FORMATS)
            for record in read_records(
                partition, start, end, isolation=self._isolation, formats=formats
            ):
                is_match = self.matching is None or self.matching.matches(record)
                (self.found if is_match else self.others).append(record)
            self._places[key] = end
        return look

    def wait(self, is_enough: Callable[[int], bool], timeout_ms: int) -> bool:
        """Take new records until there are enough; return False if the time was over first."""
        clock = self.logs.runtime.clock
        deadline = clock.monotonic_ms() + timeout_ms
        while True:
            look = self.take()
            if is_enough(len(self.found)):
                return True
            left_ms = deadline - clock.monotonic_ms()
            if left_ms <= 0:
                return False
            look.wait(left_ms)

    def uncommitted_count(self) -> int:
        """Return the number of offsets in the logs that readers do not see yet."""
        look = Look(self.logs, self.topics, Isolation.LOG_END)
        return sum(max(0, end - self._places.get(key, 0)) for key, end in look.ends.items())

    def missing_topics(self) -> list[str]:
        """Return the topics that do not exist."""
        return [each for each in self.topics or () if not self.logs.partition_count(each)]
