"""One story: three brokers, all clients, the nemesis; then peace, and the check."""

from __future__ import annotations

import random
import socket
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import embedlog
from embedlog import Cluster
from tests.crash.nemesis import topics
from tests.crash.nemesis.actors import (
    Actor,
    Member,
    ReadingActor,
    TransactionWriter,
    Writer,
    wait,
)
from tests.crash.nemesis.check import broken
from tests.crash.nemesis.clients import IN_PROCESS, KINDS, LIBRDKAFKA, OVER_TCP, Link
from tests.crash.nemesis.faults import NODES, Nemesis, make
from tests.crash.nemesis.history import Final, Group, History, Place
from tests.crash.simulated import shown

PEACE_S_MAX = 60
"""Time in which every client has to reach its end after the last fault."""
PORTS = (20_000, 30_000)
"""Below the ports that the system gives to clients."""


class Outcome(NamedTuple):
    """What one run did and found."""

    faults: Counter[str]
    records: int
    acknowledged: int
    transactions: int
    read: int
    restarts: list[str]
    broken: list[str]
    story: list[str]


class Story:
    """Three brokers at ports that stay, and all clients."""

    def __init__(self, seed: int, folder: Path) -> None:
        chance = random.Random(seed)
        self._seed = seed
        self._folder = folder
        self._durability = chance.choice(("os", "os", "fsync"))
        self._port = _free_ports(chance)
        self.link = Link()
        self.history = History()
        self.nemesis = Nemesis(self.link, self.history, seed, self._reopen)

    def tell(self, seconds: float) -> Outcome:
        self._open()
        try:
            return self._tell(seconds)
        finally:
            if self.link.cluster is not None:
                self.link.cluster.close()

    def _open(self) -> Cluster:
        cluster = embedlog.open(
            self._folder / "data", brokers=3, config=topics.CLUSTER, durability=self._durability
        )
        self.link.address = cluster.listen("127.0.0.1", self._port).address
        self.link.cluster = cluster
        return cluster

    def _reopen(self) -> Cluster:
        cluster = self.link.cluster
        assert cluster is not None
        self.link.cluster = None
        cluster.close()
        return self._open()

    def _tell(self, seconds: float) -> Outcome:
        with embedlog.Admin(self.link.address) as admin:
            for topic in topics.PARTITIONS:
                make(admin, topic)
        actors = self._actors()
        for actor in actors:
            actor.start()
        self.nemesis.start()
        time.sleep(seconds)
        found = self._peace(actors)
        history = self.history
        return Outcome(
            self.nemesis.faults,
            len(history.written),
            sum(each.outcome == "acknowledged" for each in history.written),
            len(history.transactions),
            sum(len(got) for reader in history.readers for got in reader.got.values()),
            history.restarts,
            found,
            self.nemesis.story,
        )

    def _actors(self) -> list[Actor]:
        given = self.link, self.history, str(self._seed)
        actors: list[Actor] = [Writer(kind, *given) for kind in KINDS]
        actors += [TransactionWriter(kind, *given) for kind in KINDS]
        for kind in KINDS:
            actors += [ReadingActor(kind, *given, is_committed=each) for each in (True, False)]
        for name, kinds in (
            ("consumer group", (IN_PROCESS, OVER_TCP)),
            ("classic group", (IN_PROCESS, OVER_TCP)),
            ("librdkafka group", (LIBRDKAFKA, LIBRDKAFKA)),
        ):
            group = Group(name)
            self.history.groups.append(group)
            actors += [Member(group, at, kind, *given) for at, kind in enumerate(kinds)]
        return actors

    # The end

    def _peace(self, actors: list[Actor]) -> list[str]:
        """Mend all, let every client reach its end, and return the broken promises."""
        self.nemesis.finish()
        with embedlog.Admin(self.link.address) as admin:
            if topics.ANEW not in admin.list_topics():
                make(admin, topics.ANEW)  # the nemesis was interrupted by a fault of its own
        found = list(self._make_whole())
        writers = [each for each in actors if isinstance(each, Writer | TransactionWriter)]
        others = [each for each in actors if each not in writers]
        found += _stop(writers)
        final = self._final()
        wait(lambda: self._have_read_all(final), PEACE_S_MAX)
        found += _stop(others)
        if not self.link.wait_for_closed(PEACE_S_MAX):
            found.append("a consumer of librdkafka does not close")
        return found + broken(self.history, final)

    def _make_whole(self) -> list[str]:
        for topic, count in topics.PARTITIONS.items():
            for partition in range(count):
                if topic != topics.ANEW:
                    self._assign_three((topic, partition))
        if wait(lambda: not self._behind(), PEACE_S_MAX):
            return []
        return [
            f"not in sync {PEACE_S_MAX} s after the last fault: {each}" for each in self._behind()
        ]

    def _assign_three(self, place: Place) -> None:
        cluster = self.link.cluster
        assert cluster is not None
        if len(cluster.partition(*place).replicas) < len(NODES):
            cluster.partition(*place).reassign(NODES)

    def _behind(self) -> list[str]:
        cluster = self.link.cluster
        assert cluster is not None
        return [
            f"{topic.name}-{each.partition}: {each.isr} of {each.replicas} at {node.node_id}, ends "
            f"{cluster.partition(topic.name, each.partition).end_offsets}"
            for node in cluster.brokers
            for topic in list(node.core.image.topics_by_name.values())
            for each in topic.partitions
            if len(each.isr) < len(each.replicas)
        ]

    def _have_read_all(self, final: Final) -> bool:
        for reader in self.history.readers:
            logs = final.committed if reader.is_committed else final.everything
            for place, log in logs.items():
                if place[0] != topics.ANEW and log and reader.position(place) <= max(log):
                    return False
        plain = {place: log for place, log in final.everything.items() if place[0] == topics.PLAIN}
        return all(
            log.keys() <= group.got.get(place, set())
            for group in self.history.groups
            for place, log in plain.items()
        )

    def _final(self) -> Final:
        """Read everything, with a new client in process."""
        cluster = self.link.cluster
        assert cluster is not None
        places = [(topic, at) for topic, count in topics.PARTITIONS.items() for at in range(count)]
        final = Final({}, {}, {}, {})
        for level, logs in (
            ("read_uncommitted", final.everything),
            ("read_committed", final.committed),
        ):
            with cluster.consumer(isolation_level=level, auto_offset_reset="earliest") as consumer:
                consumer.assign(places)
                ends = self._stable_ends(consumer, places)
                starts = consumer.beginning_offsets(places)
                for topic_partition, start in starts.items():
                    final.start[topic_partition.topic, topic_partition.partition] = start
                for place in places:
                    logs[place] = {}
                    final.keys.setdefault(place, {})
                while any(consumer.position(place) < ends[place] for place in places):
                    for each in consumer.poll(100):
                        place = (each.topic, each.partition)
                        logs[place][each.offset] = each.value
                        final.keys[place][each.offset] = each.key
        for place in places:
            leader = cluster.partition(*place).leader
            log = cluster.broker(leader).core.replica_manager.partitions[place].log
            final.numbers[place] = {each.offset: each.producer for each in shown(log).records}
        return final

    def _stable_ends(self, consumer: embedlog.Consumer, places: list[Place]) -> dict[Place, int]:
        """Return the end offsets, once no transaction is open."""
        with embedlog.Admin(self.link.address) as admin:

            def end(level: str) -> dict[Place, int]:
                specs = dict.fromkeys(places, embedlog.OffsetSpec.LATEST)
                found = admin.list_offsets(specs, isolation_level=level)
                return {place: found.get(place).offset for place in places}

            wait(lambda: end("read_committed") == end("read_uncommitted"), PEACE_S_MAX)
            committed, ends = end("read_committed"), end("read_uncommitted")
            if committed != ends:
                self.history.broken.append(f"transactions stay open: {committed} of {ends}")
            return committed


def _stop(actors: list[Actor]) -> list[str]:
    """Stop the actors; return a line for each that does not end."""
    for actor in actors:
        actor.stop.set()
    deadline = time.monotonic() + PEACE_S_MAX
    for actor in actors:
        actor.join(max(0.0, deadline - time.monotonic()))
    return [f"{each.name} does not end" for each in actors if each.is_alive()]


def _free_ports(chance: random.Random) -> int:
    """Return the first of three free ports in a row."""
    while True:
        port = chance.randrange(*PORTS)
        try:
            for each in range(len(NODES)):
                with socket.socket() as probe:
                    probe.bind(("127.0.0.1", port + each))
        except OSError:
            continue
        return port
