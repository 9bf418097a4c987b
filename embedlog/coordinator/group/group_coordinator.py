"""`GroupCoordinator`: the broker's way to its groups, one method for each API.

A group lives in the partition of `__consumer_offsets` that its id hashes to. The topic is made with
the first request that needs it. Changes of the metadata are noted at once and acted on before the
next request, or by the scheduler: who changes metadata holds a lock that groups must not wait for.
"""

from __future__ import annotations

from _thread import RLock

from embedlog.common import deque
from embedlog.coordinator.group.group_shard import GroupShard
from embedlog.coordinator.placement import partition_of
from embedlog.coordinator.records import GROUP_RECORD_TYPES, RecordFormat
from embedlog.coordinator.runtime import CoordinatorRuntime
from embedlog.coordinator.shard_context import CoordinatorWorld
from embedlog.errors import error_for
from embedlog.purgatory.purgatory import DelayedOperationPurgatory
from embedlog.purgatory.timer import Timer
from wire.error_codes import ErrorCode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, Protocol, TypeVar

    from embedlog.config import BrokerConfig
    from embedlog.coordinator.result import Result
    from embedlog.coordinator.surroundings import Metadata, MetadataChange, RequestContext
    from embedlog.pending import Pending
    from embedlog.replication.replica_manager import ReplicaManager
    from embedlog.runtime import Runtime
    from wire.schemas.consumer_group_heartbeat import (
        ConsumerGroupHeartbeatRequest,
        ConsumerGroupHeartbeatResponse,
    )
    from wire.schemas.heartbeat import HeartbeatRequest, HeartbeatResponse
    from wire.schemas.join_group import JoinGroupRequest, JoinGroupResponse
    from wire.schemas.leave_group import LeaveGroupRequest, LeaveGroupResponse
    from wire.schemas.sync_group import SyncGroupRequest, SyncGroupResponse

    R = TypeVar("R")

    class Broker(Protocol):
        """What the coordinator needs of the broker that it is part of."""

        runtime: Runtime
        config: BrokerConfig
        replica_manager: ReplicaManager

        def metadata(self) -> Metadata:
            """The present state of the cluster."""

        def ensure_internal_topic(self, name: str) -> bool:
            """Make a coordinator's topic if it is missing; False when that cannot be."""

        def partitions_with_log(self, topic: str) -> Iterable[int]:
            """The partitions that have a log here, opened or not."""

        def settle(self, context: Any, request: Any, pending: Pending[Any]) -> Any:
            """The response in `pending`, or a pending of it; failures become error responses."""


OFFSETS_TOPIC = "__consumer_offsets"
_PLACES_MAX = 100_000


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
            make_shard=GroupShard,
            partitions_with_log=lambda: broker.partitions_with_log(OFFSETS_TOPIC),
            commit_timeout_ms=broker.config.offsets_commit_timeout_ms,
            codec=broker.config.offsets_topic_compression_codec,
        )
        self._places: dict[str, int] = {}
        self._changes: deque[MetadataChange] = deque()
        self._catching_up = RLock()
        self._scheduler.add(self)

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
        """The partition of `__consumer_offsets` that the group lives in; the topic is made first.

        Raises:
            CoordinatorNotAvailable: the topic cannot be made.
        """
        place = self._places.get(group_id)
        if place is None:
            if not self._broker.ensure_internal_topic(OFFSETS_TOPIC):
                raise error_for(ErrorCode.COORDINATOR_NOT_AVAILABLE)
            count = len(self._broker.metadata().topics_by_name[OFFSETS_TOPIC].partitions)
            if len(self._places) >= _PLACES_MAX:
                self._places.clear()
            place = self._places[group_id] = partition_of(group_id, count)
        return place

    # Members

    def join_group(
        self, context: RequestContext, request: JoinGroupRequest
    ) -> JoinGroupResponse | Pending[JoinGroupResponse]:
        """Become a member, or say again that one is; parked until the generation is complete."""
        return self._member(context, request, lambda shard: shard.join(context, request))

    def sync_group(
        self, context: RequestContext, request: SyncGroupRequest
    ) -> SyncGroupResponse | Pending[SyncGroupResponse]:
        """Learn one's assignment; parked until the leader has made it."""
        return self._member(context, request, lambda shard: shard.sync(context, request))

    def heartbeat(
        self, context: RequestContext, request: HeartbeatRequest
    ) -> HeartbeatResponse | Pending[HeartbeatResponse]:
        """A classic member lives."""
        return self._member(context, request, lambda shard: shard.heartbeat(context, request))

    def leave_group(
        self, context: RequestContext, request: LeaveGroupRequest
    ) -> LeaveGroupResponse | Pending[LeaveGroupResponse]:
        """Members go."""
        return self._member(context, request, lambda shard: shard.leave(context, request))

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
        request: Any,
        operation: Callable[[GroupShard], Result[R]],
    ) -> R | Pending[R]:
        if not request.group_id:
            raise error_for(ErrorCode.INVALID_GROUP_ID)
        return self._write(context, request, request.group_id, operation)

    def _write(
        self,
        context: RequestContext,
        request: Any,
        group_id: str,
        operation: Callable[[GroupShard], Result[R]],
    ) -> R | Pending[R]:
        self._catch_up()
        pending = self.runtime.write(self.partition_for(group_id), operation)
        answer: R | Pending[R] = self._broker.settle(context, request, pending)
        return answer

    # Metadata

    def on_metadata(self, change: MetadataChange) -> None:
        """Note a change, to act on it soon. Callable with any lock held."""
        self._changes.append(change)
        self._scheduler.notify()

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
        if any(topic.name == OFFSETS_TOPIC for topic in change.deleted):
            self._places.clear()
            self.runtime.unload_all()
