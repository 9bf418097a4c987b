"""Read a log that the broker replays for itself: check every batch, and skip none.

Such logs hold the cluster's metadata and the coordinators' state. Clients check the batches that
they fetch, but nobody else checks the batches that a broker replays: a flipped bit would change a
topic, a setting or a committed offset.
"""

from __future__ import annotations

from embedlog.errors import CorruptRecord, again
from embedlog.storage import paths
from wire.records.batch import RecordBatch, iter_batches
from wire.records.errors import RecordsError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from embedlog.storage.log.log import Log
    from wire.records.legacy import LegacyBatch

READ_SIZE = 1 << 20


class CheckedBatch:
    """A batch whose checksum is right. It begins at byte `position` of the file `path`."""

    __slots__ = ("batch", "path", "position")

    def __init__(self, batch: RecordBatch | LegacyBatch, path: str, position: int) -> None:
        self.batch = batch
        self.path = path
        self.position = position

    def corrupt(self, reason: str) -> CorruptRecord:
        """Return the error for a batch with impossible content."""
        return CorruptRecord(self.path, self.position, reason)


def read_checked(log: Log) -> Iterator[CheckedBatch]:
    """Yield every batch of `log`, from its start offset to the end that it has at the call.

    Raises:
        CorruptRecord: the log was found damaged when it was opened, or this call finds damage.
        KafkaError: the log refuses the read.
    """
    if isinstance(log.failure, CorruptRecord):
        raise again(log.failure)
    offset, end_offset = log.offsets.log_start_offset, log.log_end_offset
    while offset < end_offset:
        read = log.reader.read(offset, max_bytes=READ_SIZE, end_offset=end_offset)
        path = paths.segment_file(log.directory, read.segment_base_offset)
        position, next_offset = read.position, read.next_offset
        try:
            for batch in iter_batches(read.records):
                batch.check_crc()
                yield CheckedBatch(batch, path, position)
                position += batch.size
                next_offset = max(next_offset, batch.next_offset)
        except RecordsError as error:
            raise CorruptRecord(path, position, str(error)) from error
        if position < read.position + len(read.records):
            raise CorruptRecord(path, position, "bytes that hold no whole batch")
        if next_offset <= offset:
            return  # compaction has removed every record from here to the end
        offset = next_offset
