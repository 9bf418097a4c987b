"""A scripted member of the consumer protocol (KIP-848)."""

from __future__ import annotations

from tests.interop.groups.history import Partition
from tests.simulation.member import (
    COMMIT_CHANCE,
    FENCED_INSTANCE_ID,
    FENCED_MEMBER_EPOCH,
    GROUP_ID_NOT_FOUND,
    HEARTBEAT_MS,
    NONE,
    RETRY_MS,
    STALE_MEMBER_EPOCH,
    UNKNOWN_MEMBER_ID,
    UNRELEASED_INSTANCE_ID,
    SimMember,
)
from tests.simulation.world import GROUP, TOPIC, Ask, Life, Sleep
from wire.schemas.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

REBALANCE_MS = 15_000
LEAVE = -1
LEAVE_FOR_A_WHILE = -2


class ConsumerMember(SimMember):
    """A member that sends ConsumerGroupHeartbeat to join, reconcile and leave."""

    def life(self) -> Life:
        """Send heartbeats and consume in turn."""
        self.member_id = f"id-of-{self.name}"
        self.epoch = 0
        self._wanted: set[Partition] = set()
        while self.is_alive and not self.is_leaving:
            known = yield from self._beat()
            if not known:
                yield Sleep(RETRY_MS)
            elif not (yield from self._reconcile()):
                yield Sleep(self._world.random.randrange(HEARTBEAT_MS, 2 * HEARTBEAT_MS))
                yield from self._work()
        yield from self._say_goodbye()

    def _work(self) -> Life:
        """Consume, and sometimes commit, before the next heartbeat can revoke a partition."""
        yield from self._find_positions()
        self._consume()
        if self._world.random.random() < COMMIT_CHANCE:
            error = yield from self._commit()
            if error == UNKNOWN_MEMBER_ID:
                self._expelled()
            elif error == FENCED_INSTANCE_ID:
                self._fenced()

    def _beat(self) -> Life:
        """Send a heartbeat; return whether the member is still in the group."""
        is_joining = self.epoch == 0
        # Full heartbeats make the coordinator repeat the assignment, so an answer may be lost.
        request = ConsumerGroupHeartbeatRequest(
            group_id=GROUP, member_id=self.member_id, member_epoch=self.epoch,
            instance_id=self.instance, rebalance_timeout_ms=REBALANCE_MS,
            subscribed_topic_names=[TOPIC],
            topic_partitions=[] if is_joining else self._owned(),
        )  # fmt: skip
        answer: ConsumerGroupHeartbeatResponse | None = yield Ask(request, 1)
        if answer is None:
            return False
        if answer.error_code in (FENCED_MEMBER_EPOCH, UNKNOWN_MEMBER_ID, GROUP_ID_NOT_FOUND):
            self._expelled()
        elif answer.error_code == FENCED_INSTANCE_ID:
            self._fenced()
        elif answer.error_code == NONE:
            self.epoch = answer.member_epoch
            if answer.assignment is not None:
                self._wanted = {
                    (TOPIC, number)
                    for each in answer.assignment.topic_partitions
                    for number in each.partitions
                }
            return True
        else:
            assert answer.error_code == UNRELEASED_INSTANCE_ID, answer
        return False

    def _reconcile(self) -> Life:
        """Take over the assigned partitions; return whether the next heartbeat must
        report at once.
        """
        surplus = set(self.positions) - self._wanted
        if surplus:
            error = yield from self._commit()
            if error == STALE_MEMBER_EPOCH:
                return True  # the next heartbeat brings the epoch, and the member tries again
            if error == UNKNOWN_MEMBER_ID:
                self._expelled()
                return True
            self._give_up("revoked", surplus)
            return True
        lacking = self._wanted - set(self.positions)
        if lacking:
            yield from self._take(lacking)
            return True
        return False

    def _owned(self) -> list[TopicPartitions]:
        numbers = sorted(number for _, number in self.positions)
        if not numbers:
            return []
        return [TopicPartitions(topic_id=self._world.topic_id, partitions=numbers)]

    def _fetches_as(self) -> str | None:
        return self.member_id

    def _fetches_at(self) -> int:
        return self.epoch

    def _expelled(self) -> None:
        self._give_up("lost")
        self._wanted = set()
        self.epoch = 0

    def _fenced(self) -> None:
        self.is_alive = False
        self.tell("fenced")

    def _say_goodbye(self) -> Life:
        """Send a heartbeat before leaving: after a pause, the member may own less than
        it believes.
        """
        while self.is_alive and self.epoch > 0 and not (yield from self._beat()):
            yield Sleep(RETRY_MS)
        if not self.is_alive:
            return
        yield from self._commit()
        self._give_up("revoked")
        request = ConsumerGroupHeartbeatRequest(
            group_id=GROUP, member_id=self.member_id, instance_id=self.instance,
            member_epoch=LEAVE if self.instance is None else LEAVE_FOR_A_WHILE,
        )  # fmt: skip
        yield Ask(request, 1)
        self.tell("closed")
