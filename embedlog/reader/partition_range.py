"""A part of a partition that one process plans and another reads: no lock, no walk to its end."""

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
    """Offsets [start, end) of a partition that were published when this was made."""

    path: str
    topic: str
    partition: int
    start: int
    end: int
    isolation_level: str
    high_watermark: int
    topic_id: bytes
    mark: Mark | None = None
    """Where the file may be entered: a hint."""

    def batches(self, *, runtime: Runtime | None = None) -> Iterator[Batch]:
        """As `PartitionReader.batches`; the first may begin before `start`, the last end behind.

        Raises:
            UnknownTopicOrPartition: the topic was deleted, or made anew.
            OffsetOutOfRange: `start` was removed meanwhile.
            CorruptRecord: the next batch is damaged; it names the file and the position.
        """
        log = self._log(runtime)
        if self.isolation_level == _READ_COMMITTED:
            return committed_batches(log, self.start, self.end)
        return data_batches(log, self.start, self.end)

    def log_start(self, *, runtime: Runtime | None = None) -> int:
        """Where the partition begins by now.

        Raises:
            UnknownTopicOrPartition: the topic was deleted, or made anew.
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
