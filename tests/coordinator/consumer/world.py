"""One shard of groups, simulated time, topics made by hand, and a log that takes or refuses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from embedlog.config import BrokerConfig
from embedlog.controller.metadata import MetadataImage, PartitionImage, TopicImage
from embedlog.coordinator.group.consumer.consumer_group import ConsumerGroup
from embedlog.coordinator.group.group import ClientIdentity
from embedlog.coordinator.group.group_shard import GroupShard
from embedlog.coordinator.records import GROUP_RECORD_TYPES, RecordFormat
from embedlog.coordinator.result import CoordinatorRecord, Result
from embedlog.coordinator.shard_context import CoordinatorWorld, ShardContext
from embedlog.errors import KafkaError
from embedlog.purgatory.purgatory import DelayedOperationPurgatory
from embedlog.purgatory.timer import Timer
from embedlog.runtime.pending import Pending
from embedlog.testing import SimRuntime, sim_runtime
from wire.schemas.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

GROUP = "g"
REBALANCE_MS = 30_000
SESSION_MS = 45_000

Log = list[tuple[bytes, bytes | None]]
Owned = dict[str, set[int]]


class World:
    """One shard, its log and its cluster.

    `settings` are the broker's, with underscores. By default assignments are made at once, see
    `group_consumer_assignment_interval_ms`.
    """

    def __init__(
        self, log: Log | None = None, *, like: World | None = None, **settings: object
    ) -> None:
        named: dict[str, object] = {
            "group.initial.rebalance.delay.ms": 0,
            "group.consumer.assignment.interval.ms": 0,
        }
        named.update({name.replace("_", "."): value for name, value in settings.items()})
        self.runtime: SimRuntime = sim_runtime() if like is None else like.runtime
        self.image = MetadataImage() if like is None else like.image
        self.format = RecordFormat(GROUP_RECORD_TYPES)
        self.log: Log = []
        self.batches: list[list[CoordinatorRecord]] = []
        """The records of each append since the start."""
        self.refusal: KafkaError | None = None
        """The error of appends, or None."""
        world = CoordinatorWorld(
            self.runtime,
            BrokerConfig(named),
            lambda: self.image,
            timer=self._timer(),
            join_purgatory=DelayedOperationPurgatory("Rebalance", self._timer()),
            heartbeat_purgatory=DelayedOperationPurgatory("Heartbeat", self._timer()),
        )
        self.context = ShardContext(0, world, lambda _context, operation: self.write(operation))
        self.shard = self.make_shard()
        self._is_locked = False
        self._load(log or [])

    def make_shard(self) -> GroupShard:
        """Return an empty shard."""
        return GroupShard(self.context, lambda: len(self.shard.groups), _no_share_state)

    def _timer(self) -> Timer:
        timer = Timer(self.runtime.clock, self.runtime.scheduler.notify)
        self.runtime.scheduler.add(timer)
        return timer

    def _load(self, log: Log) -> None:
        def load(shard: GroupShard) -> Result[None]:
            for key, value in log:
                self._replay(shard, key, value)
            shard.loaded()
            return Result()

        self.log = list(log)
        self.write(load)

    def _replay(self, shard: GroupShard, key: bytes, value: bytes | None) -> None:
        record = self.format.decode(key, value)
        assert record is not None
        shard.replay(record, offset=0)

    def restarted(self, *, compacted: bool = False, **settings: object) -> World:
        """Return a shard that has loaded the records of this one."""
        return World(self._kept(compacted=compacted), like=self, **settings)

    def _kept(self, *, compacted: bool) -> Log:
        """Return the log; compacted, it has the last record of each key."""
        if not compacted:
            return self.log
        last = {key: number for number, (key, _) in enumerate(self.log)}
        return [entry for number, entry in enumerate(self.log) if last[entry[0]] == number]

    # The cluster

    def make_topic(self, name: str, partitions: int) -> bytes:
        """Make a topic, or grow an existing one; return its id."""
        found = self.image.topics_by_name.get(name)
        topic_id = found.topic_id if found is not None else self.runtime.random.uuid()
        images = tuple(
            PartitionImage(partition=n, leader=1, leader_epoch=0, replicas=(1,), isr=(1,))
            for n in range(partitions)
        )
        self._topics(name, TopicImage(name, topic_id, images))
        return topic_id

    def delete_topic(self, name: str) -> None:
        self._topics(name, None)

    def _topics(self, name: str, topic: TopicImage | None) -> None:
        topics = dict(self.image.topics_by_name)
        topics.pop(name, None)
        if topic is not None:
            topics[name] = topic
        self.image = MetadataImage(
            topics_by_name=topics,
            topics_by_id={found.topic_id: found for found in topics.values()},
            group_configs=self.image.group_configs,
            end_offset=self.image.end_offset + 1,
        )

    def configure(self, group_id: str, **settings: str) -> None:
        """Set settings of one group."""
        named = {name.replace("_", "."): text for name, text in settings.items()}
        self.image = MetadataImage(
            topics_by_name=self.image.topics_by_name,
            topics_by_id=self.image.topics_by_id,
            group_configs={**self.image.group_configs, group_id: named},
            end_offset=self.image.end_offset + 1,
        )

    def elapse(self, delay_ms: int) -> None:
        """Advance the clock."""
        self.runtime.scheduler.run_for(delay_ms)

    # Operations

    def write(self, operation: Callable[[GroupShard], Result[Any]]) -> Pending[Any]:
        """Run, append, replay and answer, as the coordinator's runtime does."""
        pending: Pending[Any] = Pending()
        assert not self._is_locked, "an operation within an operation"
        self._is_locked = True
        try:
            self._run(operation, pending)
        except KafkaError as error:
            pending.fail(error)
        finally:
            self._is_locked = False
            deferred: list[Callable[[], None]] = []
            self.context.move_deferred(deferred)
            for action in deferred:
                action()
        return pending

    def _run(self, operation: Callable[[GroupShard], Result[Any]], pending: Pending[Any]) -> None:
        result = operation(self.shard)
        error = self.refusal if result.records else None
        if error is None and result.records:
            self.batches.append(list(result.records))
            encoded = [self.format.encode(record) for record in result.records]
            self.log += encoded
            if result.is_replayed:
                for key, value in encoded:
                    self._replay(self.shard, key, value)
        if result.on_append is not None:
            result.on_append(error)
        if error is not None:
            pending.fail(error)
        elif isinstance(result.response, Pending):
            pending.follow(result.response)
        else:
            pending.complete(result.response)

    def heartbeat(
        self, member_id: str, epoch: int, *, version: int = 1, group_id: str = GROUP, **fields: Any
    ) -> ConsumerGroupHeartbeatResponse:
        """Send one ConsumerGroupHeartbeat. Raises its error."""
        request = ConsumerGroupHeartbeatRequest(
            group_id=group_id, member_id=member_id, member_epoch=epoch, **fields
        )
        client = ClientIdentity.of("test", "127.0.0.1")
        response: ConsumerGroupHeartbeatResponse = self.write(
            lambda shard: shard.consumer_heartbeat(client, request, version)
        ).result()
        return response

    def join(self, member_id: str, *topics: str, **fields: Any) -> Member:
        """Make a member that has joined with a full request."""
        return Member(self, member_id, *topics, **fields)

    def group(self, group_id: str = GROUP) -> ConsumerGroup:
        """Return the group."""
        found = self.shard.groups[group_id]
        assert isinstance(found, ConsumerGroup), found
        return found

    def named(self, response: ConsumerGroupHeartbeatResponse) -> Owned | None:
        """Return the assignment of a response by topic name."""
        if response.assignment is None:
            return None
        by_id = self.image.topics_by_id
        return {
            by_id[t.topic_id].name: set(t.partitions) for t in response.assignment.topic_partitions
        }

    def by_id(self, owned: Owned) -> list[TopicPartitions]:
        """Return partitions in a request's form."""
        by_name = self.image.topics_by_name
        return [
            TopicPartitions(topic_id=by_name[name].topic_id, partitions=sorted(numbers))
            for name, numbers in owned.items()
            if numbers and name in by_name
        ]


class Member:
    """An obedient consumer: it owns its last assignment."""

    def __init__(self, world: World, member_id: str, *topics: str, **fields: Any) -> None:
        self.world = world
        self.member_id = member_id
        self.topics = topics
        self.instance_id: str | None = fields.get("instance_id")
        self.fields = fields
        self.epoch = 0
        self.owned: Owned = {}
        self.interval_ms = 0
        self.rejoin()

    def rejoin(self, **fields: Any) -> Owned | None:
        """Join at epoch 0 without partitions."""
        self.epoch = 0
        self.owned = {}
        names = list(self.topics) if self.topics else None
        full = {"rebalance_timeout_ms": REBALANCE_MS, "subscribed_topic_names": names}
        return self.beat(**{**full, **self.fields, "topic_partitions": [], **fields})

    def beat(self, **fields: Any) -> Owned | None:
        """Send one heartbeat; return the new assignment, None if it did not change."""
        group_id = self.fields.get("group_id", GROUP)
        if "instance_id" not in fields and self.instance_id is not None:
            fields["instance_id"] = self.instance_id
        response = self.world.heartbeat(
            self.member_id, self.epoch, **{"group_id": group_id, **fields}
        )
        self.epoch = response.member_epoch
        self.interval_ms = response.heartbeat_interval_ms
        told = self.world.named(response)
        if told is not None:
            self.owned = told
        return told

    def confirm(self, **fields: Any) -> Owned | None:
        """Send a heartbeat with the owned partitions."""
        return self.beat(topic_partitions=self.world.by_id(self.owned), **fields)

    def leave(self, epoch: int = -1) -> None:
        """Leave for good, or with -2 for a while."""
        self.epoch = epoch
        self.beat()


def settle(*members: Member, rounds: int = 8) -> None:
    """Send heartbeats until the assignments are stable."""
    for _ in range(rounds):
        for member in members:
            member.confirm()


def _no_share_state() -> NoReturn:
    raise AssertionError("no test of this world has share groups")
