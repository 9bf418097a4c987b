"""The common parts of members of both protocols: a script that the world can interrupt."""

from __future__ import annotations

from typing import Any

from tests.interop.groups.history import Partition
from tests.simulation.world import GROUP, TOPIC, Ask, Life, Sleep, World
from wire.schemas.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from wire.schemas.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)

NONE = 0
COORDINATOR_LOAD_IN_PROGRESS = 14
ILLEGAL_GENERATION = 22
UNKNOWN_MEMBER_ID = 25
REBALANCE_IN_PROGRESS = 27
GROUP_ID_NOT_FOUND = 69
"""A heartbeat's error: no consumer group has this name, perhaps as only classic members remain."""
MEMBER_ID_REQUIRED = 79
FENCED_INSTANCE_ID = 82
FENCED_MEMBER_EPOCH = 110
UNRELEASED_INSTANCE_ID = 111
STALE_MEMBER_EPOCH = 113
HEARTBEAT_MS = 600
RETRY_MS = 100
CONSUMED_MAX = 30
COMMIT_CHANCE = 0.7


class SimMember:
    """A member: its partitions, its positions, and its commits."""

    def __init__(self, world: World, name: str, instance: str | None = None) -> None:
        self.name = name
        self.instance = instance
        self.member_id = ""
        self.epoch = -1
        """The generation of the classic group, or the member epoch."""
        self.positions: dict[Partition, int] = {}
        """The next offset of each partition that the member owns."""
        self.is_alive = True
        self.is_leaving = False
        self._world = world
        self._uncommitted: set[Partition] = set()
        self._commits = 0
        self._away_until = 0
        if instance is not None:
            world.instances[name] = instance
        self._life = self.life()
        self._resume(None)

    def life(self) -> Life:
        """The whole script of the member."""
        raise AssertionError("a member has a protocol")

    # Events from outside

    def kill(self) -> None:
        """End the member without a leave."""
        self.is_alive = False
        self._life.close()
        self.tell("killed")

    def leave(self) -> None:
        """Let the member leave at its next step."""
        self.is_leaving = True

    def freeze(self, delay_ms: int) -> None:
        """Pause the member; nothing reaches it meanwhile."""
        self._away_until = self._world.now + delay_ms

    # The script

    def _resume(self, answer: Any) -> None:
        if not self.is_alive:
            return
        now = self._world.now
        if now < self._away_until:
            self._world.at(self._away_until - now, lambda: self._resume(answer))
            return
        try:
            wanted = self._life.send(answer)
        except StopIteration:
            self.is_alive = False
            return
        if isinstance(wanted, Sleep):
            self._world.at(wanted.delay_ms, lambda: self._resume(None))
        else:
            self._world.ask(wanted, self._resume)

    def tell(self, kind: str, **more: Any) -> None:
        """Record an event of the member."""
        self._world.tell(self.name, kind, **more)

    # Partitions

    def _take(self, partitions: set[Partition]) -> Life:
        """Take partitions over and look up their positions. Lost or refused look-ups are repeated
        later.
        """
        self.tell("assigned", partitions=tuple(sorted(partitions)), generation=self.epoch)
        self.positions.update(dict.fromkeys(partitions, -1))
        yield from self._find_positions()

    def _find_positions(self) -> Life:
        """Fetch the committed offsets of partitions without a position."""
        unknown = sorted(where for where, position in self.positions.items() if position < 0)
        if not unknown:
            return
        topics = OffsetFetchRequestTopics(name=TOPIC, partition_indexes=[n for _, n in unknown])
        group = OffsetFetchRequestGroup(
            group_id=GROUP, member_id=self._fetches_as(), member_epoch=self._fetches_at(),
            topics=[topics],
        )  # fmt: skip
        answer = yield Ask(OffsetFetchRequest(groups=[group], require_stable=True), 9)
        if answer is None or answer.groups[0].error_code != NONE:
            return
        for topic in answer.groups[0].topics:
            for each in topic.partitions:
                if each.error_code == NONE:
                    where = (topic.name, each.partition_index)
                    self.positions[where] = max(each.committed_offset, 0)

    def _fetches_as(self) -> str | None:
        return None

    def _fetches_at(self) -> int:
        return -1

    def _give_up(self, kind: str, partitions: set[Partition] | None = None) -> None:
        """Drop these partitions, or all of them; `kind` is "revoked" or "lost"."""
        gone = set(self.positions) if partitions is None else partitions
        for partition in gone:
            del self.positions[partition]
        self._uncommitted -= gone
        if gone:
            self.tell(kind, partitions=tuple(sorted(gone)))

    def _consume(self) -> None:
        """Consume some records of some partitions."""
        for where, position in sorted(self.positions.items()):
            there = self._world.produced[where] - position
            if position < 0 or there <= 0:
                continue
            count = min(there, self._world.random.randrange(1, CONSUMED_MAX))
            self.tell("records", partitions=(where,), first=position, last=position + count - 1)
            self.positions[where] = position + count
            self._uncommitted.add(where)

    def _commit(self) -> Life:
        """Commit the positions. Return the error code of the group, NONE for success."""
        if not self._uncommitted:
            return NONE  # type: ignore[return-value]
        offsets = {where: self.positions[where] for where in sorted(self._uncommitted)}
        self._commits += 1
        number = self._commits
        self.tell("committing", id=number, offsets=offsets)
        topic = OffsetCommitRequestTopic(
            name=TOPIC,
            partitions=[
                OffsetCommitRequestPartition(
                    partition_index=partition, committed_offset=offset, committed_metadata=""
                )
                for (_, partition), offset in offsets.items()
            ],
        )
        answer = yield Ask(
            OffsetCommitRequest(
                group_id=GROUP, generation_id_or_member_epoch=self.epoch,
                member_id=self.member_id, group_instance_id=self.instance, topics=[topic],
            ),
            9,
        )  # fmt: skip
        if answer is None:
            return NONE  # type: ignore[return-value]
        (error,) = {each.error_code for each in answer.topics[0].partitions}
        if error == NONE:
            self.tell("committed", id=number)
            self._uncommitted -= {
                where for where, offset in offsets.items() if self.positions.get(where) == offset
            }
        elif error != COORDINATOR_LOAD_IN_PROGRESS:
            self.tell("refused", id=number, error=str(error))
        return error  # type: ignore[no-any-return]
