"""The stored state of one share partition, and the records that it is made of.

A snapshot holds the whole state. An update holds one write; it follows the snapshot whose epoch it
carries, and loading merges it into the state. A tombstone deletes the state.
"""

from __future__ import annotations

from embedlog.coordinator.result import CoordinatorRecord
from embedlog.coordinator.share.merging import NO_START, cut, merged
from wire.schemas.share_state import (
    ShareSnapshotKey,
    ShareSnapshotValue,
    ShareUpdateKey,
    ShareUpdateValue,
    StateBatch,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from embedlog.coordinator.share.keys import ShareKey
    from embedlog.coordinator.share.merging import Batch

NO_COUNT = -1


class StoredState:
    """The state of one share partition. Only the replay of records changes it."""

    __slots__ = (
        "batches",
        "create_ms",
        "delivery_complete_count",
        "highest_leader_epoch",
        "leader_epoch",
        "snapshot_epoch",
        "snapshot_offset",
        "start_offset",
        "state_epoch",
        "update_count",
        "write_ms",
    )

    def __init__(
        self, value: ShareSnapshotValue, *, offset: int, before: StoredState | None = None
    ) -> None:
        """Take a snapshot at `offset` of the log; `before` is the state that it replaces."""
        self.snapshot_epoch = value.snapshot_epoch
        self.snapshot_offset = offset
        self.state_epoch = value.state_epoch
        self.leader_epoch = value.leader_epoch
        self.highest_leader_epoch = value.leader_epoch
        """Also the epochs before the state was last initialized: those leaders stay fenced."""
        if before is not None:
            self.highest_leader_epoch = max(before.highest_leader_epoch, value.leader_epoch)
        self.start_offset = value.start_offset
        self.delivery_complete_count = value.delivery_complete_count
        self.create_ms = value.create_timestamp
        self.write_ms = value.write_timestamp
        self.batches = cut(merged((), _tuples(value.state_batches)), value.start_offset)
        self.update_count = 0
        """Number of updates since the snapshot."""

    @property
    def is_cold(self) -> bool:
        """Whether the last snapshot was written because nothing else was."""
        return self.create_ms != self.write_ms

    def advanced(self, start_offset: int, delivery_complete_count: int) -> tuple[int, int]:
        """Return the start and the count after a write: the start never moves back.

        A write with an earlier start is older than the state; so is a lower count at the same one.
        """
        if start_offset > self.start_offset:
            return start_offset, delivery_complete_count
        if start_offset < self.start_offset:
            return self.start_offset, self.delivery_complete_count
        return start_offset, max(delivery_complete_count, self.delivery_complete_count)

    def update(self, value: ShareUpdateValue) -> None:
        """Apply an update."""
        self.leader_epoch = value.leader_epoch
        self.highest_leader_epoch = max(self.highest_leader_epoch, value.leader_epoch)
        start = self.start_offset if value.start_offset == NO_START else value.start_offset
        self.start_offset = start
        self.delivery_complete_count = value.delivery_complete_count
        self.batches = cut(merged(self.batches, _tuples(value.state_batches)), start)
        self.update_count += 1

    # Records

    def changed(
        self,
        key: ShareKey,
        *,
        leader_epoch: int,
        start_offset: int,
        delivery_complete_count: int,
        batches: Iterable[Batch] = (),
    ) -> CoordinatorRecord:
        """Return the update with these values; `batches` are merged and cut."""
        value = ShareUpdateValue(
            snapshot_epoch=self.snapshot_epoch,
            leader_epoch=leader_epoch,
            start_offset=start_offset,
            delivery_complete_count=delivery_complete_count,
            state_batches=_messages(batches),
        )
        group_id, topic_id, partition = key
        return CoordinatorRecord(
            ShareUpdateKey(group_id=group_id, topic_id=topic_id, partition=partition), value
        )

    def changed_by_snapshot(
        self,
        key: ShareKey,
        *,
        now_ms: int,
        leader_epoch: int,
        start_offset: int,
        delivery_complete_count: int,
        batches: Iterable[Batch] = (),
    ) -> CoordinatorRecord:
        """Return the snapshot after the same change."""
        return _snapshot(
            key,
            ShareSnapshotValue(
                snapshot_epoch=self.snapshot_epoch + 1,
                state_epoch=self.state_epoch,
                leader_epoch=leader_epoch,
                start_offset=start_offset,
                delivery_complete_count=delivery_complete_count,
                create_timestamp=now_ms,
                write_timestamp=now_ms,
                state_batches=_messages(cut(merged(self.batches, batches), start_offset)),
            ),
        )

    def repeated(self, key: ShareKey, *, now_ms: int) -> CoordinatorRecord:
        """Return a snapshot of the state as it is."""
        return _snapshot(
            key,
            ShareSnapshotValue(
                snapshot_epoch=self.snapshot_epoch + 1,
                state_epoch=self.state_epoch,
                leader_epoch=self.leader_epoch,
                start_offset=self.start_offset,
                delivery_complete_count=self.delivery_complete_count,
                create_timestamp=self.create_ms,
                write_timestamp=now_ms,
                state_batches=_messages(self.batches),
            ),
        )


def first_snapshot(
    key: ShareKey, *, snapshot_epoch: int, state_epoch: int, start_offset: int, now_ms: int
) -> CoordinatorRecord:
    """Return the snapshot of a state that begins."""
    return _snapshot(
        key,
        ShareSnapshotValue(
            snapshot_epoch=snapshot_epoch,
            state_epoch=state_epoch,
            leader_epoch=0,
            start_offset=start_offset,
            delivery_complete_count=NO_COUNT if start_offset == NO_START else 0,
            create_timestamp=now_ms,
            write_timestamp=now_ms,
            state_batches=[],
        ),
    )


def tombstone(key: ShareKey) -> CoordinatorRecord:
    """Return the record that deletes a state."""
    group_id, topic_id, partition = key
    return CoordinatorRecord(
        ShareSnapshotKey(group_id=group_id, topic_id=topic_id, partition=partition)
    )


def _snapshot(key: ShareKey, value: ShareSnapshotValue) -> CoordinatorRecord:
    group_id, topic_id, partition = key
    return CoordinatorRecord(
        ShareSnapshotKey(group_id=group_id, topic_id=topic_id, partition=partition), value
    )


def _messages(batches: Iterable[Batch]) -> list[StateBatch]:
    return [
        StateBatch(first_offset=first, last_offset=last, delivery_state=state, delivery_count=count)
        for first, last, state, count in batches
    ]


def _tuples(batches: Iterable[StateBatch]) -> list[Batch]:
    return [
        (each.first_offset, each.last_offset, each.delivery_state, each.delivery_count)
        for each in batches
    ]
