"""One shard of share groups, simulated time, and share coordinators that obey the test."""

from __future__ import annotations

from typing import Any

from embedlog.coordinator.group.group import ClientIdentity
from embedlog.coordinator.group.group_shard import GroupShard
from embedlog.coordinator.group.share import request_checks
from embedlog.coordinator.group.share.share_group import ShareGroup
from tests.coordinator.consumer.world import GROUP, Log, Owned, World
from tests.coordinator.group_share.share_state import ShareStates
from wire.schemas.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
)
from wire.schemas.delete_groups import DeletableGroupResult
from wire.schemas.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
)
from wire.schemas.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)

SESSION_MS = 45_000


class ShareWorld(World):
    """A `World` for share groups; by default assignments are made at once."""

    def __init__(
        self, log: Log | None = None, *, like: ShareWorld | None = None, **settings: object
    ) -> None:
        self.states = ShareStates() if like is None else like.states
        named = {"group_share_assignment_interval_ms": 0, **settings}
        super().__init__(log, like=like, **named)

    def make_shard(self) -> GroupShard:
        """Return an empty shard that knows the share coordinators."""
        return GroupShard(self.context, lambda: len(self.shard.groups), lambda: self.states)

    def restarted(self, *, compacted: bool = False, **settings: object) -> ShareWorld:
        """Return a shard that has loaded the records of this one."""
        return ShareWorld(self._kept(compacted=compacted), like=self, **settings)

    def beat(
        self, member_id: str, epoch: int, *topics: str, group_id: str = GROUP, **fields: Any
    ) -> ShareGroupHeartbeatResponse:
        """Send one ShareGroupHeartbeat; name topics only if there are any. Raises its error."""
        request = ShareGroupHeartbeatRequest(
            group_id=group_id,
            member_id=member_id,
            member_epoch=epoch,
            subscribed_topic_names=fields.pop("names", list(topics) or None),
            **fields,
        )
        request_checks.check(request)
        client = ClientIdentity.of("test", "10.0.0.1")
        response: ShareGroupHeartbeatResponse = self.write(
            lambda shard: shard.share_heartbeat(client, request)
        ).result()
        return response

    def share_group(self, group_id: str = GROUP) -> ShareGroup:
        """Return the group."""
        found = self.shard.groups[group_id]
        assert isinstance(found, ShareGroup), found
        return found

    def alter(self, topic: str, starts: dict[int, int], group_id: str = GROUP) -> Any:
        """Send AlterShareGroupOffsets of one topic; return the pending answer."""
        partitions = [
            AlterShareGroupOffsetsRequestPartition(partition_index=number, start_offset=start)
            for number, start in starts.items()
        ]
        topics = [AlterShareGroupOffsetsRequestTopic(topic_name=topic, partitions=partitions)]
        request = AlterShareGroupOffsetsRequest(group_id=group_id, topics=topics)
        return self.write(lambda shard: shard.alter_share_offsets(request))

    def forget(self, *topics: str, group_id: str = GROUP) -> Any:
        """Send DeleteShareGroupOffsets; return the pending answer."""
        rows = [DeleteShareGroupOffsetsRequestTopic(topic_name=topic) for topic in topics]
        request = DeleteShareGroupOffsetsRequest(group_id=group_id, topics=rows)
        return self.write(lambda shard: shard.share.offsets.delete(request))

    def delete_group(self, group_id: str = GROUP) -> Any:
        """Send DeleteGroups of one group; return the pending answer."""
        return self.write(
            lambda shard: shard.delete_group(group_id, DeletableGroupResult(group_id=group_id))
        )

    def forget_topic(self, name: str) -> None:
        """Delete a topic, and let the shard know."""
        topic = self.image.topics_by_name[name]
        self.delete_topic(name)
        self.write(lambda shard: shard.forget_topics([topic]))

    def held_by(self, member_id: str, group_id: str = GROUP) -> Owned:
        """Return a member's partitions by topic name."""
        return self._named(self.share_group(group_id).members[member_id].assigned)

    def initialized(self, group_id: str = GROUP) -> Owned:
        """Return the initialised partitions of a group by topic name."""
        topics = self.share_group(group_id).state_topics.initialized
        return {name: set(numbers) for name, numbers in topics.values()}

    def _named(self, partitions: Any) -> Owned:
        by_id = self.image.topics_by_id
        return {
            by_id[topic_id].name: set(numbers)
            for topic_id, numbers in partitions.items()
            if topic_id in by_id
        }


class Sharer:
    """An obedient member: it names its last epoch. After a lost answer it names its topics again,
    as Kafka's clients do: then the answer has the assignment.
    """

    def __init__(self, world: ShareWorld, member_id: str, *topics: str) -> None:
        self.world = world
        self.member_id = member_id
        self.topics = topics
        self.epoch = 0
        self.held: Owned = {}
        self.has_lost_answer = False
        self.beat(*topics)

    def beat(self, *topics: str, **fields: Any) -> Owned | None:
        """Send one heartbeat; return the new assignment, None if it has none."""
        self.topics = topics or self.topics
        if self.has_lost_answer:
            topics = self.topics
        response = self.world.beat(self.member_id, self.epoch, *topics, **fields)
        self.epoch = response.member_epoch
        self.has_lost_answer = False
        told = self.world.named(response)  # type: ignore[arg-type]
        if told is not None:
            self.held = told
        return told

    def leave(self) -> None:
        """Leave the group."""
        self.world.beat(self.member_id, -1)
