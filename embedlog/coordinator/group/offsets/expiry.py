"""Deletion of old offsets and empty groups.

    an offset with an expiry time      at that time
    any other offset                   `offsets.retention.minutes` after the time its group names
    an offset in use                   never: a member reads the topic, or a transaction is open
    a group without members            with its last offset; a share group never

The group decides which of its offsets can expire, and from when their retention counts: see
`Group.offset_expiry_base`.
"""

from __future__ import annotations

from embedlog.coordinator.group.offsets.store import (
    NO_EXPIRY,
    OffsetStore,
    StoredOffset,
    offset_tombstone,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from embedlog.coordinator.group.group import ExpiryBase, Group
    from embedlog.coordinator.result import CoordinatorRecord


def expired(
    store: OffsetStore,
    groups: Mapping[str, Group],
    *,
    now_ms: int,
    retention_ms: int,
    is_held: Callable[[Group], bool] = lambda _group: False,
) -> list[CoordinatorRecord]:
    """Return the records that delete everything expired at `now_ms`. Requires: the shard's lock.

    `is_held` tells whether a group that would be deleted has to stay for now.
    """
    records: list[CoordinatorRecord] = []
    for group in groups.values():
        if not group.expires:
            continue
        old, left_count = _expired_offsets(store, group, now_ms, retention_ms)
        records += old
        if not left_count and group.is_empty() and not store.has_open(group.group_id):
            if is_held(group):
                continue
            records += group.tombstones()
    return records


def _expired_offsets(
    store: OffsetStore, group: Group, now_ms: int, retention_ms: int
) -> tuple[list[CoordinatorRecord], int]:
    """Return (tombstones of the expired offsets, number of remaining offsets)."""
    offsets = store.of_group(group.group_id)
    count = sum(map(len, offsets.values()))
    base = group.offset_expiry_base() if count else None
    if base is None:
        return [], count
    tombstones = []
    for topic, partitions in offsets.items():
        if group.is_subscribed_to(topic):
            continue
        for number, stored in partitions.items():
            is_old = _is_expired(stored, base, now_ms, retention_ms)
            if is_old and not store.is_open(group.group_id, topic, number):
                tombstones.append(offset_tombstone(group.group_id, topic, number))
    return tombstones, count - len(tombstones)


def _is_expired(stored: StoredOffset, base: ExpiryBase, now_ms: int, retention_ms: int) -> bool:
    if stored.expire_timestamp_ms != NO_EXPIRY:
        return now_ms >= stored.expire_timestamp_ms
    return now_ms - base(stored.commit_timestamp_ms) >= retention_ms
