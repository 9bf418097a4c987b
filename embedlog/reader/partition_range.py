"""`PartitionRange`: a part of a partition, planned in one process and read in another."""

from __future__ import annotations

from typing import NamedTuple

from embedlog.common import TopicPartition
from embedlog.runtime import real_runtime
from embedlog.storage.foreign.committed_batches import committed_batches, data_batches
from embedlog.storage.foreign.offset_range import ForeignRange, Mark

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from embedlog.runtime import Runtime
    from embedlog.storage.foreign.segment import Batch

_READ_COMMITTED = "read_committed"


class PartitionRange(NamedTuple):
    """Published offsets [start, end) of a partition. It can be pickled."""

    path: str
    topic: str
    partition: int
    start: int
    end: int
    isolation_level: str
    high_watermark: int
    topic_id: bytes
    mark: Mark | None = None
    """A hint: a position in a file at which reading may begin."""

    def batches(self, *, runtime: Runtime | None = None) -> Iterator[Batch]:
        """See `PartitionReader.batches`. The first batch may begin before `start`, and the last
        batch may end after `end`.

        Raises:
            UnknownTopicOrPartition: the topic was deleted or recreated.
            OffsetOutOfRange: retention removed `start` meanwhile.
            CorruptRecord: the next batch is damaged; the error names the file and the position.
        """
        log = self._log(runtime)
        if self.isolation_level == _READ_COMMITTED:
            return committed_batches(log, self.start, self.end)
        return data_batches(log, self.start, self.end)

    def log_start(self, *, runtime: Runtime | None = None) -> int:
        """Return the partition's present log start offset.

        Raises:
            UnknownTopicOrPartition: the topic was deleted or recreated.
        """
        return self._log(runtime).start()

    def _log(self, runtime: Runtime | None) -> ForeignRange:
        return ForeignRange(
            (runtime or real_runtime()).files,
            self.path,
            TopicPartition(self.topic, self.partition),
            high_watermark=self.high_watermark,
            topic_id=self.topic_id,
            mark=self.mark,
        )
