"""Matching a group's patterns against topic names: when, and with which effect."""

from __future__ import annotations

from embedlog.coordinator.group.consumer import member_records, regexes
from embedlog.coordinator.group.consumer.consumer_group import ConsumerGroup
from embedlog.coordinator.group.consumer.regexes import ResolvedRegex
from embedlog.coordinator.group.consumer.subscriptions import Subscriptions
from embedlog.coordinator.group.metadata_hash import metadata_hash
from embedlog.coordinator.group.target import ids_of
from embedlog.coordinator.result import Result

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from embedlog.controller.metadata import MetadataImage
    from embedlog.coordinator.group.consumer.member import ConsumerMember
    from embedlog.coordinator.group.group import Group
    from embedlog.coordinator.shard_context import ShardContext


class RegexMatching:
    """Matches patterns right after a heartbeat's records are appended, in the same thread."""

    def __init__(self, context: ShardContext, groups: dict[str, Group]) -> None:
        self._context = context
        self._groups = groups

    def match_if_due(self, group: ConsumerGroup, member: ConsumerMember, *, is_new: bool) -> None:
        """Schedule a match of the group's patterns after a heartbeat of `member`, if it is due.

        `is_new`: the member's pattern was never matched. Requires: the shard's lock.
        """
        if not member.regex and not group.subscriptions.regexes:
            return
        if not self._may_match(group) or not (is_new or self._is_due(group)):
            return
        group_id = group.group_id

        def operation(_shard: Any) -> Result[None]:
            return self._match(group_id)

        # Deferred, so that the member's own record is applied first.
        self._context.defer(lambda: self._write(operation))

    def _write(self, operation: Any) -> None:
        # No caller waits for the result; after a failure a later heartbeat tries again.
        self._context.write(operation)

    def _may_match(self, group: ConsumerGroup) -> bool:
        last_ms = group.regexes_matched_ms
        now_ms = self._context.monotonic_ms()
        return last_ms is None or now_ms - last_ms > regexes.REFRESH_INTERVAL_MIN_MS

    def _is_due(self, group: ConsumerGroup) -> bool:
        last_ms = group.regexes_matched_ms
        if last_ms is None or group.subscriptions.unresolved():
            return True
        if group.regexes_matched_for is not self._context.metadata():
            return True
        interval_ms = self._context.config.group_consumer_regex_refresh_interval_ms
        return bool(self._context.monotonic_ms() - last_ms >= interval_ms)

    def _match(self, group_id: str) -> Result[None]:
        group = self._groups.get(group_id)
        if not isinstance(group, ConsumerGroup) or not self._may_match(group):
            return Result()
        metadata = self._context.metadata()
        subscriptions = group.subscriptions
        timestamp_ms = self._context.wall_ms()
        found = {
            regex: ResolvedRegex(
                regexes.matching(regex, metadata.topics_by_name),
                metadata.end_offset,
                timestamp_ms,
            )
            for regex in subscriptions.regexes
        }
        group.regexes_matched_ms = self._context.monotonic_ms()
        group.regexes_matched_for = metadata
        known = subscriptions.resolved
        records = [
            member_records.resolved_regex(group_id, regex, resolved)
            for regex, resolved in found.items()
            if regex not in known or known[regex].topics != resolved.topics
        ]
        after = Subscriptions()
        after.names, after.regexes = subscriptions.names, subscriptions.regexes
        after.resolved = found
        has_news = any(found[regex].topics != _topics(known.get(regex)) for regex in found)
        if has_news or _has_unmatched_target(group, after, metadata):
            hashed = metadata_hash(after.topics_after(), metadata)
            records.append(member_records.group_epoch(group_id, group.group_epoch + 1, hashed))
        return Result(records)


def _has_unmatched_target(
    group: ConsumerGroup, subscriptions: Subscriptions, metadata: MetadataImage
) -> bool:
    """Return whether a member's target has a topic that the member's pattern does not match.

    This happens after a member changed its pattern. Kafka does not check it: if the new pattern
    matches nothing, no member reads those partitions.
    """
    for member in group.members.values():
        if member.regex:
            read = ids_of(subscriptions.topics_of(member), metadata)
            if not group.target_of(member).keys() <= read:
                return True
    return False


def _topics(resolved: ResolvedRegex | None) -> frozenset[str]:
    return frozenset() if resolved is None else resolved.topics
