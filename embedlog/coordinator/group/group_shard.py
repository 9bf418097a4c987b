"""`GroupShard`: the groups and offsets of one partition of `__consumer_offsets`.

    classic    groups whose members elect a leader        record type 2
    consumer   groups that the coordinator assigns        record types 3-8 and 16
    share      groups whose members share partitions      record types 10-15
    streams    groups of tasks of an application          record types 17-23
    offsets    committed offsets of groups of any kind    record types 0 and 1

All parts share one dictionary of groups. The group's type selects the part for a request, the
record type the part for a record. The parts for consumer, share and streams groups are made with
the first such group.
"""

from __future__ import annotations

from embedlog import errors
from embedlog.coordinator.group.classic.classic_group import ClassicGroup
from embedlog.coordinator.group.classic.classic_groups import ClassicGroups
from embedlog.coordinator.group.classic.heartbeat import heartbeat
from embedlog.coordinator.group.offsets.store import OffsetStore
from embedlog.coordinator.result import CoordinatorRecord, Result
from wire.schema import declaration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

    from embedlog.controller.metadata import TopicImage
    from embedlog.coordinator.group.consumer.consumer_group import ConsumerGroup
    from embedlog.coordinator.group.consumer.consumer_groups import ConsumerGroups
    from embedlog.coordinator.group.group import ClientIdentity, Group
    from embedlog.coordinator.group.offsets.commit import OffsetCommit
    from embedlog.coordinator.group.share.share_groups import ShareGroups
    from embedlog.coordinator.group.streams.streams_groups import StreamsGroups
    from embedlog.coordinator.group.streams.streams_heartbeats import Answer as StreamsAnswer
    from embedlog.coordinator.shard_context import ShardContext
    from embedlog.coordinator.share.state_client import ShareStateClient
    from embedlog.errors import KafkaError
    from wire.schemas.alter_share_group_offsets import (
        AlterShareGroupOffsetsRequest,
        AlterShareGroupOffsetsResponse,
    )
    from wire.schemas.consumer_group_heartbeat import (
        ConsumerGroupHeartbeatRequest,
        ConsumerGroupHeartbeatResponse,
    )
    from wire.schemas.delete_groups import DeletableGroupResult
    from wire.schemas.heartbeat import HeartbeatRequest, HeartbeatResponse
    from wire.schemas.join_group import JoinGroupRequest, JoinGroupResponse
    from wire.schemas.leave_group import LeaveGroupRequest, LeaveGroupResponse
    from wire.schemas.offset_commit import OffsetCommitResponse
    from wire.schemas.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
    from wire.schemas.offset_fetch import OffsetFetchRequestGroup, OffsetFetchResponseGroup
    from wire.schemas.share_group_heartbeat import (
        ShareGroupHeartbeatRequest,
        ShareGroupHeartbeatResponse,
    )
    from wire.schemas.streams_group_heartbeat import StreamsGroupHeartbeatRequest
    from wire.schemas.sync_group import SyncGroupRequest, SyncGroupResponse

_OFFSETS = (0, 1)
_CLASSIC_GROUP = 2
_CONSUMER = "consumer"
_SHARE = "share"
_SHARE_RECORDS = range(10, 16)
_STREAMS_RECORDS = range(17, 24)
_EXPIRY = "offset expiry"
_MINUTE_MS = 60_000


class GroupShard:
    """One loaded shard. Requires for every method: the shard's lock."""

    def __init__(
        self,
        context: ShardContext,
        group_count: Callable[[], int],
        share_state: Callable[[], ShareStateClient],
        *,
        forget_description: Callable[[str], object] | None = None,
    ) -> None:
        """`group_count` counts the groups of all loaded shards of the broker. `share_state` returns
        the way to the share coordinators. `forget_description` lets the plugin for descriptions of
        topologies forget a group; it is called without the lock.
        """
        self._forget_description = forget_description
        self.context = context
        self._share_state = share_state
        self._group_count = group_count
        self.groups: dict[str, Group] = {}
        """All groups by id; the parts share this dictionary."""
        self.classic = ClassicGroups(context, self.groups)
        self._consumer: ConsumerGroups | None = None
        self._share: ShareGroups | None = None
        self._streams: StreamsGroups | None = None
        self.offsets = OffsetStore()

    @property
    def consumer(self) -> ConsumerGroups:
        """The part for consumer groups."""
        if self._consumer is None:
            from embedlog.coordinator.group.consumer.consumer_groups import ConsumerGroups

            self._consumer = ConsumerGroups(self.context, self.groups, self.classic)
        return self._consumer

    @property
    def share(self) -> ShareGroups:
        """The part for share groups."""
        if self._share is None:
            from embedlog.coordinator.group.share.share_groups import ShareGroups

            self._share = ShareGroups(self.context, self.groups, self._share_state)
        return self._share

    @property
    def streams(self) -> StreamsGroups:
        """The part for streams groups."""
        if self._streams is None:
            from embedlog.coordinator.group.streams.streams_groups import StreamsGroups

            self._streams = StreamsGroups(self.context, self.groups)
        return self._streams

    def _modern_parts(self) -> list[ConsumerGroups | ShareGroups | StreamsGroups]:
        """Return the parts that exist, except for the classic groups."""
        parts = (self._consumer, self._share, self._streams)
        return [part for part in parts if part is not None]

    # Members

    def join(
        self, client: ClientIdentity, request: JoinGroupRequest, version: int
    ) -> Result[JoinGroupResponse]:
        """Let a classic client join a group of either type. An empty consumer group becomes
        classic.
        """
        if not request.member_id:
            self._check_room(request.group_id)
        group = self._consumer_group(request.group_id)
        if group is None or group.is_empty():
            return self.classic.joins.join(client, request, version=version)
        return self.consumer.classic_members.join(group, client, request, version)

    def sync(self, request: SyncGroupRequest) -> Result[SyncGroupResponse]:
        group = self._consumer_group(request.group_id)
        if group is None:
            return self.classic.syncs.sync(request)
        return self.consumer.classic_members.sync(group, request)

    def heartbeat(self, request: HeartbeatRequest) -> Result[HeartbeatResponse]:
        group = self._consumer_group(request.group_id)
        if group is None:
            return heartbeat(self.groups, request)
        return self.consumer.classic_members.heartbeat(group, request)

    def leave(self, request: LeaveGroupRequest, version: int) -> Result[LeaveGroupResponse]:
        group = self._consumer_group(request.group_id)
        if group is None:
            return self.classic.leaves.leave(request, version=version)
        return self.consumer.classic_members.leave(group, request, version)

    def consumer_heartbeat(
        self, client: ClientIdentity, request: ConsumerGroupHeartbeatRequest, version: int
    ) -> Result[ConsumerGroupHeartbeatResponse]:
        from embedlog.coordinator.group.consumer.member import JOIN_EPOCH

        if request.member_epoch == JOIN_EPOCH:
            self._check_room(request.group_id)
        return self.consumer.heartbeats.heartbeat(client, request, version)

    def share_heartbeat(
        self, client: ClientIdentity, request: ShareGroupHeartbeatRequest
    ) -> Result[ShareGroupHeartbeatResponse]:
        if request.member_epoch == 0:
            self._check_room(request.group_id)
        return self.share.heartbeats.heartbeat(client, request)

    def streams_heartbeat(
        self, client: ClientIdentity, request: StreamsGroupHeartbeatRequest, version: int
    ) -> Result[StreamsAnswer]:
        if request.member_epoch == 0:
            self._check_room(request.group_id)
        return self.streams.heartbeats.heartbeat(client, request, version)

    def keep_alive(self, is_alive: Callable[[str, str, int], bool]) -> int | None:
        """Restart the time limits of the chosen members; return the shortest of their sessions.

        `is_alive` gets the group, the member and the session time-out. None: no member was chosen.
        """
        kept: list[int] = []
        for group_id, group in self.groups.items():
            if isinstance(group, ClassicGroup):
                for member in group.members.by_id.values():
                    if is_alive(group_id, member.member_id, member.session_timeout_ms):
                        kept.append(member.session_timeout_ms)
                        member.keep_alive()
        for part in self._modern_parts():
            kept += part.keep_alive(is_alive)
        return min(kept, default=None)

    def expire_sessions(self, is_chosen: Callable[[str, str], bool]) -> int:
        """End the sessions of the chosen members now; return the number of sessions.

        `is_chosen` gets the group and the member.
        """
        count = 0
        for group_id, group in self.groups.items():
            if isinstance(group, ClassicGroup):
                for member in group.members.by_id.values():
                    if member.session is not None and is_chosen(group_id, member.member_id):
                        count += 1
                        member.session.expire()
        for part in self._modern_parts():
            count += part.expire_sessions(is_chosen)
        return count

    def _check_room(self, group_id: str) -> None:
        """Raise PolicyViolation for a new group if the broker has its maximum number of groups."""
        if group_id in self.groups:
            return
        count_max: int = self.context.config.embedlog_max_groups
        if self._group_count() >= count_max:
            raise errors.PolicyViolation(
                f"There are {count_max} groups; no more than embedlog.max.groups can be made.",
            )

    def _consumer_group(self, group_id: str) -> ConsumerGroup | None:
        # Compare the type's name: `isinstance` would load the modules of consumer groups for
        # nothing.
        group: Any = self.groups.get(group_id)
        return group if group is not None and group.GROUP_TYPE == _CONSUMER else None

    # Offsets

    def commit_offsets(self, commit: OffsetCommit) -> Result[OffsetCommitResponse]:
        if commit.request.generation_id_or_member_epoch < 0:
            self._check_room(commit.request.group_id)
        return commit.apply(self.context, self.groups.get(commit.request.group_id))

    def fetch_offsets(
        self, asked: OffsetFetchRequestGroup, *, by_id: bool, require_stable: bool
    ) -> OffsetFetchResponseGroup:
        from embedlog.coordinator.group.offsets.fetch import OffsetFetch

        fetch = OffsetFetch(
            self.offsets,
            self.context.metadata(),
            asked.group_id,
            by_id=by_id,
            require_stable=require_stable,
        )
        return fetch.answer(asked, self.groups.get(asked.group_id))

    def delete_offsets(self, request: OffsetDeleteRequest) -> Result[OffsetDeleteResponse]:
        from embedlog.coordinator.group.offsets.delete import delete_offsets

        group = self.groups.get(request.group_id)
        return delete_offsets(request, self.offsets, group, self.context.metadata())

    def alter_share_offsets(
        self, request: AlterShareGroupOffsetsRequest
    ) -> Result[AlterShareGroupOffsetsResponse]:
        self._check_room(request.group_id)
        return self.share.offsets.alter(request)

    def forget_topics(self, topics: Iterable[TopicImage]) -> Result[None]:
        """Delete everything that groups store about deleted topics."""
        from embedlog.coordinator.group.offsets.store import offset_tombstone

        records = [
            offset_tombstone(*place)
            for topic in topics
            for place in self.offsets.places_of(topic.name)
        ]
        if self._share is not None:
            records += self._share.forget_topics({topic.topic_id for topic in topics})
        return Result(records, is_atomic=False)

    # Groups

    def delete_group(
        self, group_id: str, response: DeletableGroupResult
    ) -> Result[DeletableGroupResult]:
        """DeleteGroups of one group. Raises the errors of `administration.deletion`."""
        from embedlog.coordinator.group.administration import deletion

        group: Any = self.groups.get(group_id)
        if group is not None and group.GROUP_TYPE == _SHARE:
            return self.share.delete_group(group, response)
        records = deletion(self.groups, self.offsets, group_id)
        return Result(records, response, is_atomic=False)

    def expire(self) -> Result[None]:
        """Delete expired offsets and groups, and schedule the next check.

        Delete nothing while the wall clock is not trusted: deleted offsets do not come back when it
        is corrected.
        """
        from embedlog.coordinator.group.offsets.expiry import expired

        config = self.context.config
        self.context.timer.schedule(
            _EXPIRY, config.offsets_retention_check_interval_ms, self.expire
        )
        if not self.context.allows_deletion():
            return Result(())
        records = expired(
            self.offsets,
            self.groups,
            now_ms=self.context.wall_ms(),
            retention_ms=config.offsets_retention_minutes * _MINUTE_MS,
            is_held=self._is_described,
        )
        return Result(records, is_atomic=False)

    def _is_described(self, group: Group) -> bool:
        """Return whether an expired group has to wait until its description is forgotten."""
        forget, group_id = self._forget_description, group.group_id
        if forget is None or self._streams is None or not self._streams.is_described(group):
            return False

        def action() -> None:
            forget(group_id)

        self.context.defer(action)
        return True

    # Life

    def replay(self, record: CoordinatorRecord, *, offset: int, producer_id: int = -1) -> None:
        record_type = declaration(type(record.key)).record_type
        if record_type in _OFFSETS:
            if record.value is not None and record.key.group not in self.groups:
                # The group only stores offsets, or its own record comes later.
                self.classic.get_or_make(record.key.group)
            self.offsets.replay(record.key, record.value, offset=offset, producer_id=producer_id)
        elif record_type == _CLASSIC_GROUP:
            self.classic.replay_metadata(record.key, record.value)
        elif record_type in _SHARE_RECORDS:
            self.share.replay(record.key, record.value)
        elif record_type in _STREAMS_RECORDS:
            self.streams.replay(record.key, record.value)
        else:
            self.consumer.replay(record.key, record.value)

    def end_transaction(self, producer_id: int, *, is_committed: bool) -> None:
        self.offsets.end_transaction(producer_id, is_committed=is_committed)

    def loaded(self) -> None:
        self.context.timer.schedule(
            _EXPIRY, self.context.config.offsets_retention_check_interval_ms, self.expire
        )
        self.classic.loaded()
        for part in self._modern_parts():
            part.loaded()

    def opened(self) -> Iterator[Result[Any]]:
        yield from self.classic.opened()
        for part in self._modern_parts():
            yield from part.opened()

    def unloaded(self, error: KafkaError) -> None:
        self.classic.unloaded(error)
