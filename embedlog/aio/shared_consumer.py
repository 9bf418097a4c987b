"""`SharedConsumer`: the synchronous consumer with the extra calls that asyncio needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from embedlog.client.consumer.consumer import shared
from embedlog.client.consumer.group.auto_commit import consumed_offsets
from embedlog.client.consumer.group.group_offsets import OffsetAndMetadata
from embedlog.client.consumer.record import ConsumerRecords, PolledColumns
from embedlog.common import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Mapping

    from embedlog.client.connect import Target
    from embedlog.client.consumer.group.group_offsets import GivenOffsets
    from embedlog.client.consumer.record import ConsumerRecord


class SharedConsumer:
    """Used by one thread at a time, not always by the same one."""

    def __init__(
        self, target: Target, config: Mapping[str, Any] | None, settings: Mapping[str, Any]
    ) -> None:
        self.sync, parts, driver = shared(target, config, settings)
        """The synchronous consumer."""
        self._subscription = parts.subscription
        self._guard = driver.guard
        self.forget_wakeup = driver.forget_wakeup
        self.scheduler = parts.transport.runtime.scheduler
        self.in_process = parts.transport.in_process
        self.never_calls_back = self.in_process and driver.coordinator is None
        """True if poll(0) neither waits nor calls rebalance listeners."""

    def give_back(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Seek back to these offsets, in the partitions that are still assigned."""
        with self._guard:
            for key, offset in offsets.items():
                if key in self._subscription.partitions:
                    self.sync.seek(key, offset)

    def commit_read(
        self,
        unread: Mapping[TopicPartition, ConsumerRecord],
        offsets: GivenOffsets | None,
        timeout_ms: int | None,
    ) -> None:
        """Commit `offsets`, by default the positions; but for `unread`, the record's own offset."""
        if offsets is None and unread:
            with self._guard:
                read = consumed_offsets(self._subscription)
            for key, record in unread.items():
                if key in read:
                    read[key] = OffsetAndMetadata(record.offset, "", record.leader_epoch)
            offsets = read
        self.sync.commit(offsets, timeout_ms)


def first_offsets(found: Any) -> dict[TopicPartition, int]:
    """Return the first offset of each partition in the result of a poll of any kind."""
    offsets: dict[TopicPartition, int] = {}
    if isinstance(found, ConsumerRecords):
        for key, records in found.items():
            offsets[key] = records[0].offset
        return offsets
    for part in found:
        if part.topic_partition not in offsets:
            is_columns = isinstance(part, PolledColumns)
            offsets[part.topic_partition] = int(
                part.offsets[0] if is_columns else part.records[0][0]
            )
    return offsets
