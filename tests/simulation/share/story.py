"""One story of a share group, drawn from a seed: members, faults of brokers, and the end."""

from __future__ import annotations

import itertools
from typing import Any

import embedlog
from tests.simulation.actor import Actor
from tests.simulation.cluster.client import Client, Place
from tests.simulation.cluster.faults import Faults
from tests.simulation.cluster.watch import MIN_ISR
from tests.simulation.cluster.world import NODES
from tests.simulation.share.checks import broken
from tests.simulation.share.contents import content, letters
from tests.simulation.share.history import History
from tests.simulation.share.member import Careful, Closer, Member
from tests.simulation.share.world import (
    GROUP,
    LETTERS,
    LOCK_MS,
    PARTITION_COUNT,
    PLACES,
    TOPIC,
    Recorder,
    ShareWorld,
)
from tests.simulation.share.writers import TransactionWriter, Writer
from tests.simulation.world import Ask
from wire.schemas.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from wire.schemas.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
)

STATE: Place = ("__share_group_state", 0)
OFFSETS: Place = ("__consumer_offsets", 0)
STEPS = 6
STEP_MS_MAX = 1600
REST_MS = 1000
PATIENCE = 90
CALLS_AHEAD = 60
"""A crash comes within this number of file calls."""
ENABLE = "errors.deadletterqueue.group.enable"


class Story:
    """A story and its history."""

    def __init__(self, seed: int) -> None:
        self.told: list[str] = []
        has_letters = seed % 3 != 2
        self.history = History(
            delivery_limit=(2, 3, 5)[seed // 3 % 3],
            lock_ms=LOCK_MS,
            is_committed_only=seed % 2 == 1,
            has_letters=has_letters,
            is_ordered=seed % 5 == 4,
        )
        places = [*PLACES, STATE, OFFSETS, *([(LETTERS, 0)] if has_letters else [])]
        self.watch = Recorder(places, self.history)
        self.is_alone = seed % 4 == 3
        self.world = ShareWorld(seed, self.watch, broker_count=1 if self.is_alone else len(NODES))
        self._random = self.world.random
        self._numbers = itertools.count()
        self._actors: list[Actor] = []
        self._client = Client(self.world)
        self._make_topics()
        place = self._random.choice((PLACES[0], PLACES[0], STATE, OFFSETS))
        self.faults = Faults(self.world, self.watch, place, self._say, is_harsh=False)

    def _make_topics(self) -> None:
        cluster, history = self.world.cluster, self.history
        count = self.world.broker_count
        config = {"min.insync.replicas": str(min(MIN_ISR, count))}
        topic = cluster.create_topic(
            TOPIC, PARTITION_COUNT, replication_factor=count, config=config
        )
        self.watch.topic_id = topic.topic_id
        settings = {
            "share.auto.offset.reset": "earliest",
            "share.delivery.count.limit": str(history.delivery_limit),
            "share.isolation.level": (
                "read_committed" if history.is_committed_only else "read_uncommitted"
            ),
        }
        if history.is_ordered:
            settings["embedlog.share.key.order"] = "true"
        if history.has_letters:
            cluster.create_topic(LETTERS, 1, replication_factor=count, config={ENABLE: "true"})
            settings["errors.deadletterqueue.topic.name"] = LETTERS
        admin = cluster.admin()
        admin.alter_configs({embedlog.ConfigResource("group", GROUP): settings})

    def tell(self) -> None:
        """Take random steps, then mend everything and let a careful member take the rest."""
        self._write()
        self._join()
        self._join()
        self.world.run(STEP_MS_MAX)
        steps = (
            self._write,
            self._transact,
            self._transact,
            self._join,
            self._end_one,
            self._freeze,
            self._delete,
            self._describe,
            *([self._crash, self._crash] if self.is_alone else [self.faults.befall] * 3),
            self._depose,
            self._depose,
            self._die,
        )
        for _ in range(STEPS):
            self.world.perform(self._random.choice(steps))
            self.world.run(self._random.randrange(STEP_MS_MAX))
        self.world.runtime.files.heal()
        if not self.is_alone:
            self.faults.end()
        self.world.run(self._random.randrange(2 * LOCK_MS))
        for actor in self._actors:
            actor.kill()
        self._rest()
        self._close_one()
        self._look_again()
        self._finish()

    def broken(self) -> list[str]:
        """Return the broken promises."""
        return [*self.watch.broken, *broken(self.history)]

    def counts(self) -> dict[str, int]:
        """Return counts for the summary."""
        return {
            "deliveries": len(self.history.deliveries),
            "acknowledgements": len(self.history.said),
            "dead letters": len(self.history.letters),
        }

    # Steps

    def _join(self) -> None:
        name = f"member {next(self._numbers)}"
        wired = self._random.random() < 0.5
        self._say(f"{name} joins" + (" with connections" if wired else ""))
        client = Client(self.world)
        self._actors.append(Member(client, self.world, name, self.watch.topic_id, wired=wired))

    def _write(self) -> None:
        name = f"writer {next(self._numbers)}"
        self._say(f"{name} begins")
        count = self._random.randrange(2, 8)
        self._actors.append(Writer(Client(self.world), name, count))

    def _transact(self) -> None:
        name = f"transactional writer {next(self._numbers)}"
        self._say(f"{name} begins")
        self._actors.append(TransactionWriter(Client(self.world), name, "w"))

    def _end_one(self) -> None:
        for actor in self._one():
            self._say(f"{actor.name} crashes")
            actor.kill()

    def _freeze(self) -> None:
        for actor in self._one():
            delay_ms = self._random.randrange(2 * LOCK_MS)
            self._say(f"{actor.name} is away for {delay_ms} ms")
            actor.freeze(delay_ms)

    def _one(self) -> list[Actor]:
        alive = [each for each in self._actors if each.is_alive and isinstance(each, Member)]
        return [self._random.choice(alive)] if alive else []

    def _delete(self) -> None:
        place = self._random.choice(PLACES)
        leader = self._leader(place)
        replica = None if leader is None else self.watch.node(leader, place)
        if leader is None or replica is None:
            return
        offset = self._random.randrange(max(1, replica.log.offsets.high_watermark // 2))
        self._say(f"records of {place} below {offset} are deleted")
        rows = [DeleteRecordsPartition(partition_index=place[1], offset=offset)]
        request = DeleteRecordsRequest(
            topics=[DeleteRecordsTopic(name=place[0], partitions=rows)], timeout_ms=1000
        )
        self.world.send(leader, Ask(request, 2), lambda _: None)

    def _leader(self, place: Place) -> int | None:
        image = self.watch.image(place)
        return image.leader if image is not None and image.leader > 0 else None

    def _describe(self) -> None:
        """Ask a broker for the stored start offsets and the lags."""
        topic = DescribeShareGroupOffsetsRequestTopic(
            topic_name=TOPIC, partitions=list(range(PARTITION_COUNT))
        )
        group = DescribeShareGroupOffsetsRequestGroup(group_id=GROUP, topics=[topic])
        request = DescribeShareGroupOffsetsRequest(groups=[group])
        node_id = self._random.choice(NODES)
        self.world.send(node_id, Ask(request, 1), self._described)

    def _described(self, answer: Any) -> None:
        if answer is None:
            return
        for group in answer.groups:
            for topic in group.topics:
                for row in topic.partitions:
                    if not row.error_code:
                        self.history.lags[topic.topic_name, row.partition_index] = row.lag

    def _die(self) -> None:
        if self.world.cluster.controller.is_running and self._random.random() < 0.5:
            places = [place for place in self.watch.partitions if self._leader(place)]
            if all(self.watch.node(self._leader(each) or 1, each) for each in places):
                self._say("the process of all brokers is killed")
                self.world.die()

    def _crash(self) -> None:
        calls = self._random.randrange(CALLS_AHEAD)
        self._say(f"the process dies in {calls} file calls")
        self.world.crash_soon(calls)

    def _depose(self) -> None:
        """Move a partition while its leader hears nothing of it, and members go on."""
        place = self._random.choice(PLACES)
        leader = self._leader(place)
        others = [each for each in NODES if each != leader]
        cluster = self.world.cluster
        if self.is_alone or leader is None or not cluster.controller.is_running:
            return
        if not all(node.is_running for node in cluster.brokers):
            return
        self._say(f"{leader} loses {place} and does not know")
        cluster.broker(leader).hold_metadata()
        cluster.partition(*place).move_to(self._random.choice(others))
        for actor in self._actors:
            if isinstance(actor, Member) and self._random.random() < 0.5:
                actor.look_up_again(place)
        node = cluster.broker(leader)
        self.world.at(self._random.randrange(400, STEP_MS_MAX), node.release_metadata)

    # The end

    def _rest(self) -> None:
        """Let a careful member take everything, until no partition has a lag."""
        client = Client(self.world)
        self._actors.append(
            Careful(client, self.world, "careful", self.watch.topic_id, wired=False)
        )
        self.world.run(4 * LOCK_MS)
        for turn in range(PATIENCE):
            if turn % 10 == 0:
                # The last word about a record may not be stored; the word about a new one is.
                Writer(Client(self.world), f"last writer {turn}", PARTITION_COUNT)
                self.world.run(2 * REST_MS)
            self.history.lags.clear()
            self._describe()
            self.world.run(REST_MS)
            lags = self.history.lags
            if len(lags) == PARTITION_COUNT and not any(lags.values()) and self._is_taken():
                return
        raise AssertionError(f"no rest: {self.history.lags}")

    def _is_taken(self) -> bool:
        """Return whether the windows of all partitions have reached the end."""
        for place in PLACES:
            leader = self._leader(place)
            if leader is None:
                return False
            core: Any = self.world.cluster.broker(leader).core
            share = core.sharing.find(GROUP, (self.watch.topic_id, place[1]))
            replica = self.watch.node(leader, place)
            if share is None or replica is None:
                return False
            if share.window.start_offset < replica.log.offsets.high_watermark:
                return False
        return True

    def _close_one(self) -> None:
        """Let a member close its session: its record is there for another one at once."""
        for actor in self._actors:
            actor.kill()
        self.world.run(2 * LOCK_MS)
        Writer(Client(self.world), "writer for the closer", 1, PLACES[:1])
        self.world.run(REST_MS)
        closer = Closer(Client(self.world), self.world, "closer", self.watch.topic_id, wired=False)
        self.world.run(LOCK_MS // 4)
        has_closed = closer.has_closed
        closer.kill()
        client, name = Client(self.world), "second careful"
        self._actors.append(Careful(client, self.world, name, self.watch.topic_id, wired=False))
        self.world.run(LOCK_MS // 2)
        if has_closed and all(each.member != name for each in self.history.deliveries):
            self.history.notes.append("the records of a closed session are not there")
        self.world.run(3 * LOCK_MS)

    def _look_again(self) -> None:
        """Let other leaders load the stored state: they deliver nothing."""
        for place in PLACES:
            if self.is_alone:
                self.world.die()
                break
            partition = self.world.cluster.partition(*place)
            others = [each for each in NODES if each != partition.leader]
            partition.move_to(self._random.choice(others))
        before = len(self.history.deliveries)
        self.world.run(4 * REST_MS)
        for each in self.history.deliveries[before:]:
            self.history.notes.append(f"{each} after the end")
        for actor in self._actors:
            actor.kill()

    def _finish(self) -> None:
        for place in PLACES:
            replica = self.watch.node(self._leader(place) or 0, place)
            assert replica is not None
            self.history.content[place] = content(replica)
        if self.history.has_letters:
            replica = self.watch.node(self._leader((LETTERS, 0)) or 0, (LETTERS, 0))
            assert replica is not None
            self.history.letters = letters(replica)

    def _say(self, what: str) -> None:
        self.told.append(f"{self.world.now}: {what}")
