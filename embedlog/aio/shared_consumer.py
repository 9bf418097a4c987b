"""The synchronous consumer, and what the one for asyncio needs of it beyond its calls."""

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
    """Used by one thread at a time, but not always the same."""

    def __init__(
        self, target: Target, config: Mapping[str, Any] | None, settings: Mapping[str, Any]
    ) -> None:
        self.sync, parts, driver = shared(target, config, settings)
        """The synchronous one."""
        self._subscription = parts.subscription
        self._guard = driver.guard
        self.forget_wakeup = driver.forget_wakeup
        self.scheduler = parts.transport.runtime.scheduler
        self.in_process = parts.transport.in_process
        self.never_calls_back = self.in_process and driver.coordinator is None
        """Does poll(0) neither wait nor call rebalance listeners?"""

    def give_back(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Records from these offsets on were not read after all, where they are assigned still."""
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
        """`commit`, by default of the positions; of `unread` partitions what is before a record."""
        if offsets is None and unread:
            with self._guard:
                read = consumed_offsets(self._subscription)
            for key, record in unread.items():
                if key in read:
                    read[key] = OffsetAndMetadata(record.offset, "", record.leader_epoch)
            offsets = read
        self.sync.commit(offsets, timeout_ms)


def first_offsets(found: Any) -> dict[TopicPartition, int]:
    """The first offset of each partition in what a poll of any kind has returned."""
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
