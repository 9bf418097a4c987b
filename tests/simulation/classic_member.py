"""A scripted member of the classic protocol: eager, "range", as the Java client behaves."""

from __future__ import annotations

from embedlog.client.assignors.assignor import Assignment, MemberSubscription
from embedlog.client.consumer.group.embedded_protocol import (
    decode_assignment,
    encode_assignment,
    encode_subscription,
)
from embedlog.common import TopicPartition
from tests.interop.groups.history import Partition
from tests.simulation.member import (
    COMMIT_CHANCE,
    FENCED_INSTANCE_ID,
    HEARTBEAT_MS,
    ILLEGAL_GENERATION,
    MEMBER_ID_REQUIRED,
    NONE,
    REBALANCE_IN_PROGRESS,
    RETRY_MS,
    UNKNOWN_MEMBER_ID,
    SimMember,
)
from tests.simulation.world import GROUP, TOPIC, Ask, Life, Sleep
from wire.schemas.heartbeat import HeartbeatRequest
from wire.schemas.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from wire.schemas.leave_group import LeaveGroupRequest, MemberIdentity
from wire.schemas.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

SESSION_MS = 10_000
REBALANCE_MS = 15_000


class ClassicMember(SimMember):
    """A member that uses JoinGroup, SyncGroup, Heartbeat and LeaveGroup."""

    def life(self) -> Life:
        """Join, serve until the group rebalances, and join again."""
        while self.is_alive and not self.is_leaving:
            joined = yield from self._join()
            if joined is None:
                yield Sleep(RETRY_MS)
                continue
            partitions = yield from self._sync(joined)
            if partitions is None:
                yield Sleep(RETRY_MS)
                continue
            yield from self._take(partitions)
            yield from self._serve()
        yield from self._say_goodbye()

    def _join(self) -> Life:
        """Return the answer of the successful JoinGroup; None to try again."""
        subscription = encode_subscription(MemberSubscription([TOPIC]))
        request = JoinGroupRequest(
            group_id=GROUP, session_timeout_ms=SESSION_MS, rebalance_timeout_ms=REBALANCE_MS,
            member_id=self.member_id, group_instance_id=self.instance, protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=subscription)],
        )  # fmt: skip
        answer = yield Ask(request, 9)
        error = None if answer is None else answer.error_code
        if error == MEMBER_ID_REQUIRED:
            self.member_id = answer.member_id
            return (yield from self._join())
        if error == NONE:
            self.member_id = answer.member_id
            self.epoch = answer.generation_id
            return answer
        self._learn(error)
        return None

    def _sync(self, joined: JoinGroupResponse) -> Life:
        """Return the assigned partitions; None to join again."""
        assignments = []
        if joined.leader == self.member_id and not joined.skip_assignment:
            assignments = self._assign(joined)
        request = SyncGroupRequest(
            group_id=GROUP, generation_id=self.epoch, member_id=self.member_id,
            group_instance_id=self.instance, protocol_type="consumer",
            protocol_name=joined.protocol_name, assignments=assignments,
        )  # fmt: skip
        answer = yield Ask(request, 5)
        if answer is None or answer.error_code != NONE:
            self._learn(None if answer is None else answer.error_code)
            return None
        return {
            (topic, number) for topic, number in decode_assignment(answer.assignment).partitions
        }

    def _assign(self, joined: JoinGroupResponse) -> list[SyncGroupRequestAssignment]:
        ids = sorted(member.member_id for member in joined.members)
        dealt: dict[str, list[Partition]] = {member_id: [] for member_id in ids}
        for index, partition in enumerate(sorted(self._world.produced)):
            dealt[ids[index * len(ids) // len(self._world.produced)]].append(partition)
        return [
            SyncGroupRequestAssignment(
                member_id=member_id,
                assignment=encode_assignment(Assignment([TopicPartition(*each) for each in owned])),
            )
            for member_id, owned in dealt.items()
        ]

    def _serve(self) -> Life:
        """Consume, commit and send heartbeats until the group rebalances."""
        while not self.is_leaving:
            yield Sleep(self._world.random.randrange(HEARTBEAT_MS, 2 * HEARTBEAT_MS))
            yield from self._find_positions()
            self._consume()
            error = NONE
            if self._world.random.random() < COMMIT_CHANCE:
                error = yield from self._commit()
            if error == NONE:
                error = yield from self._beat()
            if error == REBALANCE_IN_PROGRESS:
                error = yield from self._commit()
                if error in (NONE, REBALANCE_IN_PROGRESS):
                    self._give_up("revoked")
                    return
            if error in (ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID):
                self._learn(error)
                return

    def _beat(self) -> Life:
        """Send a heartbeat and return the coordinator's error code; None if the request
        was lost.
        """
        beat = HeartbeatRequest(
            group_id=GROUP, generation_id=self.epoch, member_id=self.member_id,
            group_instance_id=self.instance,
        )  # fmt: skip
        answer = yield Ask(beat, 4)
        return None if answer is None else answer.error_code

    def _learn(self, error: int | None) -> None:
        """React to an error code: the member loses all of its partitions."""
        if error == UNKNOWN_MEMBER_ID:
            self.member_id = ""
        if error in (ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID):
            self._give_up("lost")
        if error == FENCED_INSTANCE_ID:
            self.is_alive = False
            self.tell("fenced")

    def _say_goodbye(self) -> Life:
        """Send a heartbeat before leaving: after a pause, the member may own less than
        it believes.
        """
        while self.is_alive and self.positions:
            error = yield from self._beat()
            if error is not None:
                self._learn(error)
                break
        if not self.is_alive:
            return
        yield from self._commit()
        self._give_up("revoked")
        if self.instance is None and self.member_id:
            member = MemberIdentity(member_id=self.member_id)
            yield Ask(LeaveGroupRequest(group_id=GROUP, members=[member]), 5)
        self.tell("closed")
