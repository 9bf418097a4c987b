"""`Rereading`: reads single records of the delayed topic again, when they are due."""

from __future__ import annotations

from embedlog.client.consumer.consumer import Consumer
from embedlog.errors import TimedOut

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from embedlog.client.connect import Target
    from embedlog.client.consumer.record import ConsumerRecord

_NEAR = 500
"""Records at most this far apart are read in one go."""
_PATIENCE_MS = 30_000


class Rereading:
    """Reads records by their offsets. Used by one thread."""

    def __init__(self, target: Target, topic: str) -> None:
        self._partition = (topic, 0)
        self._consumer = Consumer(
            target, client_id="queue-rereading", isolation_level="read_committed"
        )
        self._consumer.assign([self._partition])

    def records(self, offsets: Sequence[int]) -> list[ConsumerRecord]:
        """Return the records at these offsets, in the order of the log.

        Records that compaction has removed are missing.

        Raises:
            TimedOut: the log gives no records within 30 s.
        """
        found: list[ConsumerRecord] = []
        wanted = sorted(offsets)
        index = 0
        while index < len(wanted):
            index = self._read_from(wanted, index, found)
        return found

    def _read_from(self, wanted: list[int], index: int, found: list[ConsumerRecord]) -> int:
        """Read on from an offset; return the index of the next offset to read."""
        first = wanted[index]
        ahead = index
        while ahead + 1 < len(wanted) and wanted[ahead + 1] - first < _NEAR:
            ahead += 1
        self._consumer.seek(self._partition, first)
        records = self._consumer.poll(_PATIENCE_MS, max_records=wanted[ahead] - first + 1)
        if not records:
            raise TimedOut(f"{self._partition[0]} gives no record from offset {first} on")
        for record in records:
            while index < len(wanted) and wanted[index] < record.offset:
                index += 1
            if index < len(wanted) and wanted[index] == record.offset:
                found.append(record)
                index += 1
        return index

    def close(self) -> None:
        self._consumer.close()
