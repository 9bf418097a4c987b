"""One shard with classic groups, simulated time, and a log that commits, waits or refuses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import wire
from embedlog.config import BrokerConfig
from embedlog.coordinator.group.classic.classic_group import ClassicGroup
from embedlog.coordinator.group.classic.classic_groups import ClassicGroups
from embedlog.coordinator.group.classic.heartbeat import heartbeat
from embedlog.coordinator.group.group import ClientIdentity, Group
from embedlog.coordinator.records import GROUP_RECORD_TYPES, RecordFormat
from embedlog.coordinator.result import CoordinatorRecord, Result
from embedlog.coordinator.shard_context import CoordinatorWorld, ShardContext
from embedlog.errors import KafkaError
from embedlog.purgatory.purgatory import DelayedOperationPurgatory
from embedlog.purgatory.timer import Timer
from embedlog.runtime.pending import Pending
from embedlog.testing import sim_runtime
from wire.schemas.heartbeat import HeartbeatRequest
from wire.schemas.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from wire.schemas.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from wire.schemas.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)

GROUP = "g"
SESSION_MS = 10_000
REBALANCE_MS = 60_000
RANGE = (("range", b"r"),)

Operation = Callable[[Any], Result[Any]]


class Shard:
    """Runs operations as the coordinator's runtime does, in one thread.

    `settings` are the broker's, with underscores; the default initial rebalance delay is 0.
    """

    def __init__(
        self, records: Sequence[tuple[bytes, bytes | None]] = (), **settings: object
    ) -> None:
        named: dict[str, object] = {"group.initial.rebalance.delay.ms": 0}
        named.update({name.replace("_", "."): value for name, value in settings.items()})
        # Another seed after a restart, so that ids do not repeat.
        self.runtime = sim_runtime(seed=len(records))
        self.heartbeats = DelayedOperationPurgatory("Heartbeat", self._timer())
        self.joins = DelayedOperationPurgatory("Rebalance", self._timer())
        world = CoordinatorWorld(
            self.runtime,
            BrokerConfig(named),
            lambda: None,
            timer=self._timer(),
            join_purgatory=self.joins,
            heartbeat_purgatory=self.heartbeats,
        )
        self.context = ShardContext(0, world, lambda _context, operation: self.write(operation))
        self.groups: dict[str, Group] = {}
        self.classic = ClassicGroups(self.context, self.groups)
        self.format = RecordFormat(GROUP_RECORD_TYPES)
        self.log: list[tuple[bytes, bytes | None]] = []
        self.refusal: KafkaError | None = None
        """The error of appends, or None."""
        self.holds_commits = False
        """True: appended records stay uncommitted until `commit`."""
        self._uncommitted: list[Callable[[KafkaError | None], None]] = []
        self._is_locked = False
        self._load(list(records))

    def _timer(self) -> Timer:
        timer = Timer(self.runtime.clock, self.runtime.scheduler.notify)
        self.runtime.scheduler.add(timer)
        return timer

    def _load(self, records: list[tuple[bytes, bytes | None]]) -> None:
        def load(_shard: Any) -> Result[None]:
            for key, value in records:
                record = self.format.decode(key, value)
                assert record is not None
                self.classic.replay_metadata(record.key, record.value)
            self.classic.loaded()
            return Result()

        self.log = records
        self.write(load)

    def restarted(self, **settings: object) -> Shard:
        """Return a shard that has loaded the records of this one."""
        return Shard(self.log, **settings)

    # Operations

    def write(self, operation: Operation) -> Pending[Any]:
        """Run an operation, append its records, answer."""
        pending: Pending[Any] = Pending()

        def decide(error: KafkaError | None, result: Result[Any]) -> None:
            if result.on_append is not None:
                result.on_append(error)
            self.context.defer(lambda: answer(error, result.response))

        def answer(error: KafkaError | None, response: Any) -> None:
            if error is not None:
                pending.fail(error)
            elif isinstance(response, Pending):
                response.add_callback(lambda done: answer(None, done.result()))
            else:
                pending.complete(response)

        def run() -> None:
            result = operation(self)
            if not result.records:
                self.context.defer(lambda: answer(None, result.response))
            elif self.refusal is not None:
                decide(self.refusal, result)
            else:
                self.log += [self.format.encode(record) for record in result.records]
                if self.holds_commits:
                    self._uncommitted.append(lambda error: decide(error, result))
                else:
                    decide(None, result)

        self.locked(run)
        return pending

    def commit(self, error: KafkaError | None = None) -> None:
        """Commit the appended records, or fail them for good."""
        waiting, self._uncommitted = self._uncommitted, []
        for decide in waiting:
            self.locked(lambda decide=decide: decide(error))

    def locked(self, work: Callable[[], None]) -> None:
        """Run `work` as if under the shard's lock."""
        assert not self._is_locked, "an operation within an operation"
        self._is_locked = True
        try:
            work()
        finally:
            self._is_locked = False
            deferred: list[Callable[[], None]] = []
            self.context.move_deferred(deferred)
            for action in deferred:
                action()

    # Requests

    def join(
        self,
        member_id: str = "",
        *,
        group_id: str = GROUP,
        version: int = 9,
        instance_id: str | None = None,
        protocols: tuple[tuple[str, bytes], ...] = RANGE,
        protocol_type: str = "consumer",
        session_ms: int = SESSION_MS,
        rebalance_ms: int = REBALANCE_MS,
        client_id: str | None = "client",
    ) -> Pending[JoinGroupResponse]:
        """JoinGroup, which may be parked."""
        request = JoinGroupRequest(
            group_id=group_id,
            session_timeout_ms=session_ms,
            rebalance_timeout_ms=rebalance_ms if version >= 1 else -1,
            member_id=member_id,
            group_instance_id=instance_id,
            protocol_type=protocol_type,
            protocols=[
                JoinGroupRequestProtocol(name=name, metadata=metadata)
                for name, metadata in protocols
            ],
        )
        client = ClientIdentity.of(client_id, "127.0.0.1")
        return self.write(lambda _: self.classic.joins.join(client, request, version=version))

    def sync(
        self,
        member_id: str,
        generation_id: int,
        assignments: dict[str, bytes] | None = None,
        *,
        group_id: str = GROUP,
        instance_id: str | None = None,
        protocol_type: str | None = "consumer",
        protocol_name: str | None = "range",
    ) -> Pending[SyncGroupResponse]:
        """SyncGroup, which may be parked."""
        request = SyncGroupRequest(
            group_id=group_id,
            generation_id=generation_id,
            member_id=member_id,
            group_instance_id=instance_id,
            protocol_type=protocol_type,
            protocol_name=protocol_name,
            assignments=[
                SyncGroupRequestAssignment(member_id=assigned, assignment=assignment)
                for assigned, assignment in (assignments or {}).items()
            ],
        )
        return self.write(lambda _: self.classic.syncs.sync(request))

    def heartbeat(
        self,
        member_id: str,
        generation_id: int,
        *,
        group_id: str = GROUP,
        instance_id: str | None = None,
    ) -> int:
        """Send a Heartbeat; return its error code."""
        request = HeartbeatRequest(
            group_id=group_id,
            generation_id=generation_id,
            member_id=member_id,
            group_instance_id=instance_id,
        )
        pending = self.write(lambda _: heartbeat(self.groups, request))
        code: int = pending.result().error_code
        return code

    def leave(
        self, *members: tuple[str, str | None], group_id: str = GROUP, version: int = 5
    ) -> LeaveGroupResponse:
        """Send a LeaveGroup of (member id, instance id)s."""
        request = LeaveGroupRequest(group_id=group_id)
        if version >= 3:
            request = LeaveGroupRequest(
                group_id=group_id,
                members=[
                    MemberIdentity(member_id=member_id, group_instance_id=instance_id)
                    for member_id, instance_id in members
                ],
            )
        else:
            request = LeaveGroupRequest(group_id=group_id, member_id=members[0][0])
        response: LeaveGroupResponse = self.write(
            lambda _: self.classic.leaves.leave(request, version=version)
        ).result()
        return response

    # Fixtures

    def form(self, *names: str, **options: Any) -> list[str]:
        """Make a stable group; return its members' ids, the leader's first.

        Each member is assigned its name. All share the `options` of `join`. The first member has
        made a generation alone before the others come.
        """
        leader, *followers = ids = [self.member_id(**options) for _ in names]
        for member_id in ids:
            self.join(member_id, **options)
        if followers:
            self.join(leader, **options)
        self.assign(dict(zip(ids, [name.encode() for name in names], strict=True)))
        return ids

    def member_id(self, **options: Any) -> str:
        """Return a member id that has not joined yet."""
        answer = self.join(**options).result()
        assert answer.error_code == 79, answer
        return answer.member_id

    def assign(self, assignments: dict[str, bytes]) -> None:
        """Sync all members, the leader last."""
        group = self.group()
        leader_id = group.members.leader_id
        assert leader_id is not None
        followers = [member_id for member_id in group.members.by_id if member_id != leader_id]
        options: dict[str, Any] = {"protocol_type": None, "protocol_name": None}
        answers = [self.sync(m, group.generation_id, **options) for m in followers]
        answers.append(self.sync(leader_id, group.generation_id, assignments, **options))
        assert [answer.result().error_code for answer in answers] == [0] * len(answers)
        assert group.state == "Stable"

    def group(self, group_id: str = GROUP) -> ClassicGroup:
        """Return the present group."""
        group = self.groups[group_id]
        assert isinstance(group, ClassicGroup)
        return group

    def stored(self, group_id: str = GROUP) -> list[CoordinatorRecord]:
        """Return the group's records, the newest last."""
        records = [self.format.decode(key, value) for key, value in self.log]
        return [record for record in records if record and record.key.group == group_id]

    def advance(self, delay_ms: int) -> None:
        """Advance the clock."""
        self.runtime.scheduler.run_for(delay_ms)

    def nothing_waits(self) -> bool:
        """Return True if no timer and no purgatory entry is left."""
        sizes = [self.joins.watched, self.joins.delayed]
        sizes += [self.heartbeats.watched, self.heartbeats.delayed]
        return sizes == [0, 0, 0, 0]


def subscription(*topics: str, version: int = 1) -> bytes:
    """Return a consumer's protocol metadata."""
    from wire.schemas.consumer_protocol import ConsumerProtocolSubscription

    known = min(version, 3)
    body = wire.encode(ConsumerProtocolSubscription(topics=list(topics)), known)
    return version.to_bytes(2, "big") + body
