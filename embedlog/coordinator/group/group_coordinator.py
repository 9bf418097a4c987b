"""`GroupCoordinator`: the broker's way to its groups, one method for each API.

A group lives in the partition of `__consumer_offsets` that its id hashes to. FindCoordinator makes
the topic; until then nobody coordinates anything. Changes of the metadata are noted at once and
acted on before the next request, or by the scheduler: who changes metadata holds a lock that groups
must not wait for.
"""

from __future__ import annotations

from embedlog import errors
from embedlog.common import deque, few_of_each
from embedlog.coordinator.answers import answered, combined, failed
from embedlog.coordinator.group.group_shard import GroupShard
from embedlog.coordinator.placement import partition_of
from embedlog.coordinator.records import GROUP_RECORD_TYPES, RecordFormat
from embedlog.coordinator.runtime import CoordinatorRuntime
from embedlog.coordinator.shard_context import CoordinatorWorld
from embedlog.errors import KafkaError
from embedlog.purgatory.purgatory import DelayedOperationPurgatory
from embedlog.purgatory.timer import Timer
from embedlog.runtime.locks import Rank, ranked_rlock
from embedlog.topic_names import OFFSETS_TOPIC

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable
    from typing import Any, Protocol

    from embedlog.config import BrokerConfig
    from embedlog.coordinator.broker_view import Metadata, MetadataChange, RequestContext
    from embedlog.coordinator.result import Result
    from embedlog.errors import KafkaError
    from embedlog.pending import Pending
    from embedlog.replication.replica_manager import ReplicaManager
    from embedlog.runtime import Runtime
    from wire.schema import R, Request
    from wire.schemas.consumer_group_describe import (
        ConsumerGroupDescribeRequest,
        ConsumerGroupDescribeResponse,
    )
    from wire.schemas.consumer_group_heartbeat import (
        ConsumerGroupHeartbeatRequest,
        ConsumerGroupHeartbeatResponse,
    )
    from wire.schemas.delete_groups import (
        DeletableGroupResult,
        DeleteGroupsRequest,
        DeleteGroupsResponse,
    )
    from wire.schemas.describe_groups import (
        DescribedGroup,
        DescribeGroupsRequest,
        DescribeGroupsResponse,
    )
    from wire.schemas.heartbeat import HeartbeatRequest, HeartbeatResponse
    from wire.schemas.join_group import JoinGroupRequest, JoinGroupResponse
    from wire.schemas.leave_group import LeaveGroupRequest, LeaveGroupResponse
    from wire.schemas.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
    from wire.schemas.offset_commit import OffsetCommitRequest, OffsetCommitResponse
    from wire.schemas.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
    from wire.schemas.offset_fetch import (
        OffsetFetchRequest,
        OffsetFetchRequestGroup,
        OffsetFetchResponse,
        OffsetFetchResponseGroup,
    )
    from wire.schemas.sync_group import SyncGroupRequest, SyncGroupResponse

    class Broker(Protocol):
        """What the coordinator needs of the broker that it is part of."""

        runtime: Runtime
        config: BrokerConfig
        replica_manager: ReplicaManager

        def metadata(self) -> Metadata:
            """The present state of the cluster."""

        def partitions_with_log(self, topic: str) -> Iterable[int]:
            """The partitions that have a log here, opened or not."""

        def settle(self, context: Any, request: Request[R], pending: Pending[R]) -> R | Pending[R]:
            """The response in `pending`, or a pending of it; failures become error responses."""


_PLACES_MAX = 100_000
_FETCH_BY_ID = 10


class GroupCoordinator:
    """The groups of this broker. Every method may be called from any thread; a response may be a
    `Pending`. Errors become what the API's response has for them.
    """

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._scheduler = broker.runtime.scheduler
        self._timers: list[Timer] = []
        self.world = CoordinatorWorld(
            broker.runtime,
            broker.config,
            broker.metadata,
            timer=self._make_timer(),
            join_purgatory=DelayedOperationPurgatory("Rebalance", self._make_timer()),
            heartbeat_purgatory=DelayedOperationPurgatory("Heartbeat", self._make_timer()),
        )
        self.runtime: CoordinatorRuntime[GroupShard] = CoordinatorRuntime(
            self.world,
            broker.replica_manager,
            topic=OFFSETS_TOPIC,
            record_format=RecordFormat(GROUP_RECORD_TYPES),
            make_shard=lambda context: GroupShard(context, self._group_count),
            partitions_with_log=lambda: broker.partitions_with_log(OFFSETS_TOPIC),
            commit_timeout_ms=broker.config.offsets_commit_timeout_ms,
            codec=broker.config.offsets_topic_compression_codec,
            when_opened=GroupShard.opened,
        )
        self._places: dict[str, int] = {}
        self._changes: deque[MetadataChange] = deque()
        self._catching_up = ranked_rlock(Rank.CATCHING_UP)
        self._scheduler.add(self)

    def _group_count(self) -> int:
        """Of all shards that are loaded: the others take no memory. Needs no lock."""
        return sum(len(shard.groups) for shard in self.runtime.loaded())

    def _make_timer(self) -> Timer:
        timer = Timer(self._broker.runtime.clock, self._scheduler.notify)
        self._scheduler.add(timer)
        self._timers.append(timer)
        return timer

    def close(self) -> None:
        """Answer whoever is parked. Requests after this find no coordinator."""
        self._catch_up()
        self.runtime.close()
        self._scheduler.remove(self)
        for timer in self._timers:
            self._scheduler.remove(timer)

    def partition_for(self, group_id: str) -> int:
        """The partition of `__consumer_offsets` that the group lives in.

        Raises:
            NotCoordinator: the topic is not there, as nobody has asked for a coordinator yet.
        """
        place = self._places.get(group_id)
        if place is None:
            topic = self._broker.metadata().topics_by_name.get(OFFSETS_TOPIC)
            if topic is None:
                raise errors.NotCoordinator()
            if len(self._places) >= _PLACES_MAX:
                self._places.clear()
            place = self._places[group_id] = partition_of(group_id, len(topic.partitions))
        return place

    # Members

    def join_group(
        self, context: RequestContext, request: JoinGroupRequest
    ) -> JoinGroupResponse | Pending[JoinGroupResponse]:
        """Become a member, or say again that one is; parked until the generation is complete."""
        return self._member(
            context, request, request.group_id, lambda shard: shard.join(context, request)
        )

    def sync_group(
        self, context: RequestContext, request: SyncGroupRequest
    ) -> SyncGroupResponse | Pending[SyncGroupResponse]:
        """Learn one's assignment; parked until the leader has made it."""
        return self._member(
            context, request, request.group_id, lambda shard: shard.sync(context, request)
        )

    def heartbeat(
        self, context: RequestContext, request: HeartbeatRequest
    ) -> HeartbeatResponse | Pending[HeartbeatResponse]:
        """A classic member lives."""
        return self._member(
            context, request, request.group_id, lambda shard: shard.heartbeat(context, request)
        )

    def leave_group(
        self, context: RequestContext, request: LeaveGroupRequest
    ) -> LeaveGroupResponse | Pending[LeaveGroupResponse]:
        """Members go."""
        return self._member(
            context, request, request.group_id, lambda shard: shard.leave(context, request)
        )

    def consumer_group_heartbeat(
        self, context: RequestContext, request: ConsumerGroupHeartbeatRequest
    ) -> ConsumerGroupHeartbeatResponse | Pending[ConsumerGroupHeartbeatResponse]:
        """A member of a consumer group lives, joins or leaves (KIP-848)."""
        return self._write(
            context,
            request,
            request.group_id,
            lambda shard: shard.consumer_heartbeat(context, request),
        )

    def _member(
        self,
        context: RequestContext,
        request: Request[R],
        group_id: str,
        operation: Callable[[GroupShard], Result[R]],
    ) -> R | Pending[R]:
        if not group_id:
            raise errors.InvalidGroupId()
        return self._write(context, request, group_id, operation)

    def _write(
        self,
        context: RequestContext,
        request: Request[R],
        group_id: str,
        operation: Callable[[GroupShard], Result[R]],
    ) -> R | Pending[R]:
        self._catch_up()
        pending = self._write_to(group_id, operation)
        return self._broker.settle(context, request, pending)

    def _write_to(self, group_id: str, operation: Callable[[GroupShard], Result[R]]) -> Pending[R]:
        try:
            return self.runtime.write(self.partition_for(group_id), operation)
        except KafkaError as error:
            return failed(error)

    def _read_from(self, group_id: str, operation: Callable[[GroupShard], R]) -> Pending[R]:
        try:
            return self.runtime.read(self.partition_for(group_id), operation)
        except KafkaError as error:
            return failed(error)

    # Offsets

    def offset_commit(
        self, context: RequestContext, request: OffsetCommitRequest
    ) -> OffsetCommitResponse | Pending[OffsetCommitResponse]:
        """Store offsets."""
        from embedlog.coordinator.group.offsets.commit import OffsetCommit

        self._catch_up()
        commit = OffsetCommit(request, context.api_version, self._broker.metadata())
        if not commit.wanted:
            return commit.response()
        pending = self._write_to(request.group_id, lambda shard: shard.commit_offsets(commit))
        return answered(pending, commit.refused)

    def offset_fetch(
        self, context: RequestContext, request: OffsetFetchRequest
    ) -> OffsetFetchResponse | Pending[OffsetFetchResponse]:
        """Tell stored offsets, of one group or of several."""
        from embedlog.coordinator.group.offsets import older_versions
        from wire.schemas.offset_fetch import OffsetFetchResponse

        self._catch_up()
        version = context.api_version
        if version >= older_versions.FIRST_WITH_GROUPS:
            asked = few_of_each(request.groups, _question)
            groups = [self._fetch(group, request, version) for group in asked]
            return combined(groups, lambda found: OffsetFetchResponse(groups=found))
        group = self._fetch(older_versions.question(request), request, version)

        def older(found: list[OffsetFetchResponseGroup]) -> OffsetFetchResponse:
            if found[0].error_code:
                return older_versions.refused(request, version, found[0].error_code)
            return older_versions.answer(found[0], version)

        return combined([group], older)

    def _fetch(
        self, asked: OffsetFetchRequestGroup, request: OffsetFetchRequest, version: int
    ) -> OffsetFetchResponseGroup | Pending[OffsetFetchResponseGroup]:
        from wire.schemas.offset_fetch import OffsetFetchResponseGroup

        by_id = version >= _FETCH_BY_ID
        require_stable = request.require_stable
        pending = self._read_from(
            asked.group_id,
            lambda shard: shard.fetch_offsets(asked, by_id=by_id, require_stable=require_stable),
        )

        def refused(error: KafkaError) -> OffsetFetchResponseGroup:
            return OffsetFetchResponseGroup(group_id=asked.group_id, error_code=error.code)

        return answered(pending, refused)

    def offset_delete(
        self, context: RequestContext, request: OffsetDeleteRequest
    ) -> OffsetDeleteResponse | Pending[OffsetDeleteResponse]:
        """Take stored offsets away."""
        return self._member(
            context, request, request.group_id, lambda shard: shard.delete_offsets(request)
        )

    # Administration

    def list_groups(
        self, _context: RequestContext, request: ListGroupsRequest
    ) -> ListGroupsResponse | Pending[ListGroupsResponse]:
        """The groups there are, of some states and types; case does not matter."""
        from embedlog.coordinator.group.administration import listed
        from wire.schemas.list_groups import ListGroupsResponse

        self._catch_up()
        states = {state.lower() for state in request.states_filter}
        types = {kind.lower() for kind in request.types_filter}
        found = self.runtime.read_all(lambda shard: listed(shard.groups, states, types))

        def response(parts: list[list[ListedGroup]]) -> ListGroupsResponse:
            return ListGroupsResponse(groups=[group for part in parts for group in part])

        # Groups whose log cannot be read are left out, as those of other brokers are.
        return combined([answered(part, lambda _error: []) for part in found], response)

    def describe_groups(
        self, context: RequestContext, request: DescribeGroupsRequest
    ) -> DescribeGroupsResponse | Pending[DescribeGroupsResponse]:
        """State and members of classic groups."""
        from wire.schemas.describe_groups import DescribeGroupsResponse

        self._catch_up()
        groups = [
            self._describe(group_id, context.api_version)
            for group_id in few_of_each(request.groups)
        ]
        return combined(groups, lambda found: DescribeGroupsResponse(groups=found))

    def _describe(self, group_id: str, version: int) -> DescribedGroup | Pending[DescribedGroup]:
        from embedlog.coordinator.group.administration import described
        from wire.schemas.describe_groups import DescribedGroup

        pending = self._read_from(
            group_id, lambda shard: described(shard.groups, group_id, version)
        )

        def refused(error: KafkaError) -> DescribedGroup:
            return DescribedGroup(group_id=group_id, error_code=error.code)

        return answered(pending, refused)

    def consumer_group_describe(
        self, _context: RequestContext, request: ConsumerGroupDescribeRequest
    ) -> ConsumerGroupDescribeResponse | Pending[ConsumerGroupDescribeResponse]:
        """State and members of consumer groups (KIP-848)."""
        from wire.schemas.consumer_group_describe import (
            ConsumerGroupDescribeResponse,
            DescribedGroup,
        )

        self._catch_up()

        def ask(group_id: str) -> DescribedGroup | Pending[DescribedGroup]:
            pending = self._read_from(
                group_id, lambda shard: shard.consumer.describe([group_id])[0]
            )

            def refused(error: KafkaError) -> DescribedGroup:
                return DescribedGroup(
                    group_id=group_id, error_code=error.code, error_message=error.message
                )

            return answered(pending, refused)

        def response(groups: list[DescribedGroup]) -> ConsumerGroupDescribeResponse:
            return ConsumerGroupDescribeResponse(groups=groups)

        return combined([ask(group_id) for group_id in few_of_each(request.group_ids)], response)

    def delete_groups(
        self, _context: RequestContext, request: DeleteGroupsRequest
    ) -> DeleteGroupsResponse | Pending[DeleteGroupsResponse]:
        """Delete groups without members, with their offsets; each is answered once."""
        from wire.schemas.delete_groups import DeleteGroupsResponse

        self._catch_up()
        groups = [self._delete(group_id) for group_id in dict.fromkeys(request.groups_names)]
        return combined(groups, lambda results: DeleteGroupsResponse(results=results))

    def _delete(self, group_id: str) -> DeletableGroupResult | Pending[DeletableGroupResult]:
        from wire.schemas.delete_groups import DeletableGroupResult

        def delete(shard: GroupShard) -> Result[DeletableGroupResult]:
            return shard.delete_group(group_id, DeletableGroupResult(group_id=group_id))

        def refused(error: KafkaError) -> DeletableGroupResult:
            return DeletableGroupResult(
                group_id=group_id, error_code=error.code, error_message=error.message
            )

        return answered(self._write_to(group_id, delete), refused)

    def expire_offsets(self) -> None:
        """Delete what has outlived offsets.retention.minutes, also before the interval is over."""
        self._catch_up()
        self.runtime.write_all(lambda shard: shard.expire())

    # Metadata

    def on_metadata(self, change: MetadataChange) -> None:
        """Note a change, to act on it soon. Callable with any lock held."""
        self._changes.append(change)
        self._scheduler.notify(self)

    def run_once(self, _now_ms: int) -> int | None:
        """Act on what was noted."""
        self._catch_up()
        return None

    def _catch_up(self) -> None:
        """Act on every change noted so far. Requires: no lock."""
        if not self._changes:
            return
        with self._catching_up:
            while self._changes:
                # It is taken off when it is done, so that no request overtakes it.
                self._act_on(self._changes[0])
                self._changes.popleft()

    def _act_on(self, change: MetadataChange) -> None:
        deleted = [topic.name for topic in change.deleted]
        if OFFSETS_TOPIC in deleted:
            self._places.clear()
            self.runtime.unload_all()
        elif deleted:
            self.runtime.write_all(lambda shard: shard.forget_topics(deleted))


def _question(asked: OffsetFetchRequestGroup) -> Hashable:
    # With topics it is as long as its answer, and counts as a question of its own.
    return asked.group_id if asked.topics is None else id(asked)
