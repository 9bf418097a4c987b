"""An obedient consumer of the classic protocol, for groups that mix protocols."""

from __future__ import annotations

from typing import Any

import wire
from embedlog.coordinator.group.group import ClientIdentity
from tests.coordinator.consumer.world import GROUP, REBALANCE_MS, Owned, World
from wire.error_codes import ErrorCode
from wire.schemas.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
)
from wire.schemas.heartbeat import HeartbeatRequest
from wire.schemas.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from wire.schemas.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from wire.schemas.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

CLASSIC_SESSION_MS = 20_000


def encoded(message: Any, version: int = 1) -> bytes:
    """Encode a subscription or an assignment behind its version."""
    return version.to_bytes(2, "big") + wire.encode(message, version)


def decoded(assignment: bytes) -> Owned:
    """Return the partitions of an assignment."""
    if not assignment:
        return {}
    version = int.from_bytes(assignment[:2], "big")
    message = wire.decode(ConsumerProtocolAssignment, version, assignment[2:])
    return {topic.topic: set(topic.partitions) for topic in message.assigned_partitions}


def assignment_of(owned: Owned) -> bytes:
    """Return the leader's assignment for a member."""
    topics = [TopicPartition(topic=name, partitions=sorted(p)) for name, p in owned.items()]
    return encoded(ConsumerProtocolAssignment(assigned_partitions=topics))


class ClassicClient:
    """One member. An eager one reports no owned partitions."""

    def __init__(
        self, world: World, *topics: str, instance_id: str | None = None, version: int = 9
    ) -> None:
        self.world = world
        self.topics = topics
        self.instance_id = instance_id
        self.version = version
        self.protocols: tuple[str, ...] = ("range",)
        self.protocol_type = "consumer"
        self.subscription_version = 1
        self.member_id = ""
        self.generation = -1
        self.protocol: str | None = None
        self.owned: Owned = {}

    def ask_join(self) -> Any:
        """Make a JoinGroup."""
        owned = [TopicPartition(topic=name, partitions=sorted(p)) for name, p in self.owned.items()]
        subscription = ConsumerProtocolSubscription(
            topics=list(self.topics), owned_partitions=owned
        )
        metadata = encoded(subscription, self.subscription_version)
        request = JoinGroupRequest(
            group_id=GROUP,
            session_timeout_ms=CLASSIC_SESSION_MS,
            rebalance_timeout_ms=REBALANCE_MS,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            protocol_type=self.protocol_type,
            protocols=[
                JoinGroupRequestProtocol(name=name, metadata=metadata) for name in self.protocols
            ],
        )
        return self.send_join(request)

    def send_join(self, request: JoinGroupRequest) -> Any:
        """Send a JoinGroup; the answer may be pending."""
        client = ClientIdentity.of("classic", "127.0.0.1")
        return self.world.write(lambda shard: shard.join(client, request, self.version))

    def join(self) -> JoinGroupResponse:
        """Join, with a given-out id if there is one."""
        response: JoinGroupResponse = self.ask_join().result()
        if response.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = response.member_id
            return self.join()
        if response.error_code == 0:
            self.member_id = response.member_id
            self.generation = response.generation_id
            self.protocol = response.protocol_name
        return response

    def sync(
        self, assignments: dict[str, Owned] | None = None, *, protocol: str | None = None
    ) -> int:
        """Sync, as a leader with all assignments; return the error code."""
        request = SyncGroupRequest(
            group_id=GROUP,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            protocol_type=self.protocol_type,
            protocol_name=protocol or self.protocol,
            assignments=[
                SyncGroupRequestAssignment(member_id=name, assignment=assignment_of(owned))
                for name, owned in (assignments or {}).items()
            ],
        )
        response = self.world.write(lambda shard: shard.sync(request)).result()
        if response.error_code == 0:
            self.owned = decoded(response.assignment)
        code: int = response.error_code
        return code

    def heartbeat(self) -> int:
        """Send a Heartbeat; return its error code."""
        request = HeartbeatRequest(
            group_id=GROUP,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
        )
        code: int = self.world.write(lambda shard: shard.heartbeat(request)).result().error_code
        return code

    def leave(self, *others: MemberIdentity) -> LeaveGroupResponse:
        """Let this member, and the named ones, leave."""
        own = MemberIdentity(member_id=self.member_id, group_instance_id=self.instance_id)
        request = LeaveGroupRequest(group_id=GROUP, members=[own, *others])
        response: LeaveGroupResponse = self.world.write(
            lambda shard: shard.leave(request, 5)
        ).result()
        return response

    def follow(self) -> None:
        """Send heartbeats, and join again as long as they demand it."""
        for _ in range(4):
            if self.heartbeat() != ErrorCode.REBALANCE_IN_PROGRESS:
                return
            assert self.join().error_code == 0
            assert self.sync() == 0
