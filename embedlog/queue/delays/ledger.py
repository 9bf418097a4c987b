"""`Ledger`: which delayed records still count.

A record is void once a later record has its id: a tombstone (the job was moved or cancelled), or a
job that replaces it. Keeping every id would take 100 bytes a job. Ids that the queue made are
unique, so only these are kept: ids that users chose, cancelled ids, and ids whose own tombstone was
not read back.
"""

from __future__ import annotations

from embedlog.queue.delays.entry import DEDUPE, NAMED, SEEN, WINDOW, number
from embedlog.queue.delays.timetable import Timetable
from embedlog.queue.names import PUT_AT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.client.consumer.record import ConsumerRecord
    from embedlog.queue.delays.entry import Entry


class Ledger:
    """What the mover knows about the delayed topic. Used by one thread."""

    def __init__(self) -> None:
        self.table = Timetable()
        self.void_rows: list[tuple[int, int]] = []
        """Rows of duplicates, which the next move removes from the log."""
        self.overtaken: list[int] = []
        """Offsets of records that a tombstone of an older record has made void by mistake; the
        next move appends them again."""
        self._named: dict[bytes, int] = {}
        """Id -> offset of the newest record; of named jobs, and during the first reading of all."""
        self._cancelled: dict[bytes, int] = {}
        """Id -> offset of its tombstone, until the row of the cancelled job comes up."""
        self._moved: set[bytes] = set()
        self._seen: dict[str, int] = {}
        """Text of `dedupe` -> end of its window, in ms since 1970."""
        self._first: dict[bytes, tuple[int, int]] | None = {}
        """During the first reading: id -> row of the newest record."""

    def read(self, record: ConsumerRecord) -> None:
        """Note a record of the delayed topic, in the order of the log."""
        if record.key is None:
            return  # another program wrote it; it has no id
        job_id = bytes(record.key)
        if record.value is None:
            self._void(job_id, record.offset)
            return
        headers = dict(record.headers)
        row = record.timestamp, record.offset
        if self._is_duplicate(job_id, headers, record.timestamp):
            self.void_rows.append(row)
            return
        if NAMED in headers or job_id.startswith(SEEN):
            self._named[job_id] = record.offset
        if self._first is None:
            self.table.add(*row)
        else:
            self._first[job_id] = row

    def _void(self, job_id: bytes, offset: int) -> None:
        if self._first is not None:
            self._first.pop(job_id, None)
            self._named.pop(job_id, None)
        elif job_id in self._moved:
            self._moved.discard(job_id)
            overtaken = self._named.get(job_id)
            if overtaken is not None:
                # A user has replaced the job while it was moved: the tombstone came after it.
                self.overtaken.append(overtaken)
        elif self._named.pop(job_id, None) is None:
            self._cancelled[job_id] = offset

    def _is_duplicate(
        self, job_id: bytes, headers: dict[str, bytes | None], timestamp: int
    ) -> bool:
        if job_id.startswith(SEEN):
            self._seen[job_id[len(SEEN) :].decode("utf-8", "replace")] = timestamp
            return False
        text = headers.get(DEDUPE)
        if text is None:
            return False
        put_ms = number(headers.get(PUT_AT))
        name = bytes(text).decode("utf-8", "replace")
        if self._seen.get(name, 0) > put_ms:
            return True
        self._seen[name] = put_ms + number(headers.get(WINDOW))
        return False

    def end_first_reading(self) -> None:
        """All earlier records were read: from now on they are new."""
        assert self._first is not None, self
        for row in self._first.values():
            self.table.add(*row)
        self._first = None

    def counts(self, entry: Entry) -> bool:
        """Return whether a record that came up is the newest of its id. Asks once a record."""
        if entry.is_named:
            return self._named.get(entry.id) == entry.offset
        tombstone = self._cancelled.get(entry.id)
        if tombstone is None or tombstone < entry.offset:
            return True
        del self._cancelled[entry.id]
        return False

    def moved(self, entry: Entry) -> None:
        """Note that the tombstone of a record will be read."""
        if self._named.get(entry.id) == entry.offset:
            del self._named[entry.id]
        self._moved.add(entry.id)

    def forget_windows(self, now_ms: int) -> None:
        """Forget the texts whose window has ended."""
        self._seen = {text: end for text, end in self._seen.items() if end > now_ms}
        if not len(self.table):
            self._cancelled.clear()
