"""The nemesis: faults of three brokers in real time, some of them at once, from a seed.

A broker is killed or stopped only while another running broker is in sync in every partition, so
that no acknowledged record may be lost.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable

import embedlog
from embedlog import Admin, Cluster, NewTopic
from embedlog.errors import EmbedlogError
from tests.crash.nemesis import topics
from tests.crash.nemesis.clients import Link
from tests.crash.nemesis.history import History

NODES = (1, 2, 3)
CONTROLLER = 0
BETWEEN_S = 0.8
SHORT_S, LONG_S = 0.3, 2.5
ANSWER_MS = 3_000


class Nemesis(threading.Thread):
    """Begins a fault each `BETWEEN_S` or sooner, and ends it later."""

    def __init__(
        self, link: Link, history: History, seed: int, reopen: Callable[[], Cluster]
    ) -> None:
        """`reopen` closes the cluster and opens it again, at the same addresses."""
        super().__init__(name="nemesis", daemon=True)
        self._link = link
        self._history = history
        self._random = random.Random(seed)
        self._reopen = reopen
        self._ends: list[tuple[float, Callable[[], None]]] = []
        self._is_over = threading.Event()
        self.faults: Counter[str] = Counter()
        self.story: list[str] = []
        self._began_s = time.monotonic()
        self._kinds: dict[str, tuple[int, Callable[[], Callable[[], None] | None]]] = {
            "kill": (3, self._kill),
            "power": (3, self._power),
            "stop": (3, self._stopped),
            "restart": (3, self._restart),
            "pause": (2, self._pause),
            "split": (2, self._split),
            "cut": (1, self._cut),
            "slow link": (1, self._slow_link),
            "held metadata": (2, self._held),
            "no controller": (2, self._no_controller),
            "full disk": (3, self._full),
            "slow disk": (2, self._slow),
            "move leader": (3, self._move),
            "reassign": (2, self._reassign),
            "delete records": (3, self._delete_records),
            "delete and create": (2, self._anew),
            "compact": (2, self._compact),
            "reopen": (1, self._reopened),
        }

    @property
    def _cluster(self) -> Cluster:
        assert self._link.cluster is not None
        return self._link.cluster

    # The thread

    def run(self) -> None:
        names = list(self._kinds)
        weights = [weight for weight, _ in self._kinds.values()]
        while not self._is_over.is_set():
            self._end_faults(time.monotonic())
            if len(self._ends) < 3:
                (name,) = self._random.choices(names, weights)
                self._begin(name)
            self._is_over.wait(self._random.random() * BETWEEN_S)

    def _begin(self, name: str) -> None:
        try:
            end = self._kinds[name][1]()
        except EmbedlogError as error:
            self._say(f"{name}: {error!r}")
            return
        self.faults[name] += 1
        if end is not None:
            wait_s = self._random.uniform(0.05, self._random.choice((SHORT_S, LONG_S)))
            self._ends.append((time.monotonic() + wait_s, end))

    def _end_faults(self, now_s: float) -> None:
        due = [end for each_s, end in self._ends if each_s <= now_s]
        self._ends = [each for each in self._ends if each[0] > now_s]
        for end in due:
            end()

    def finish(self) -> None:
        """Stop, and mend everything."""
        self._is_over.set()
        self.join()
        self._end_faults(float("inf"))
        cluster = self._cluster
        if not cluster.controller.is_running:
            cluster.controller.start()
        cluster.network.heal()
        for node in cluster.brokers:
            node.disk.free()
            node.disk.slow(0)
            if node.is_paused:
                node.resume()
            if not node.is_running:
                node.start()
            node.release_metadata()
        self._say("peace")

    def _say(self, text: str) -> None:
        self.story.append(f"{time.monotonic() - self._began_s:7.3f} {text}")

    # Choosing

    def _one(self) -> int:
        return self._random.choice(NODES)

    def _may_fall(self, node_id: int) -> bool:
        """Return whether another running broker is in sync in every partition."""
        cluster = self._cluster
        if not cluster.broker(node_id).is_running or not cluster.controller.is_running:
            return False
        core = cluster.controller.core
        if core is None:
            return False
        running = {each.node_id for each in cluster.brokers if each.is_running} - {node_id}
        return all(
            running & {*partition.isr}
            for topic in list(core.image.topics_by_name.values())
            for partition in topic.partitions
        )

    # Brokers

    def _kill(self) -> Callable[[], None] | None:
        return self._down("is killed", lambda node: node.kill())

    def _power(self) -> Callable[[], None] | None:
        return self._down("loses its power", lambda node: node.kill(lose_unsynced=True))

    def _stopped(self) -> Callable[[], None] | None:
        return self._down("stops", lambda node: node.stop())

    def _restart(self) -> Callable[[], None] | None:
        """Stop and start at once: requests are in flight."""
        end = self._down("restarts", lambda node: node.stop())
        if end is not None:
            end()
        return None

    def _down(
        self, what: str, fall: Callable[[embedlog.BrokerNode], None]
    ) -> Callable[[], None] | None:
        node_id = self._one()
        if not self._may_fall(node_id):
            return None
        self._say(f"{node_id} {what}")
        fall(self._cluster.broker(node_id))

        def start() -> None:
            node = self._cluster.broker(node_id)
            if not node.is_running:
                self._say(f"{node_id} starts")
                if not self._cluster.controller.is_running:
                    self._cluster.controller.start()
                self._cluster.network.heal()
                node.disk.free()  # a broker does not start on a full disk
                node.start()

        return start

    def _pause(self) -> Callable[[], None] | None:
        node_id = self._one()
        node = self._cluster.broker(node_id)
        if not node.is_running or node.is_paused:
            return None
        self._say(f"{node_id} is paused")
        node.pause()

        def resume() -> None:
            node = self._cluster.broker(node_id)
            if node.is_paused:
                self._say(f"{node_id} goes on")
                node.resume()

        return resume

    # Network, metadata, controller

    def _heal(self) -> None:
        self._say("the network is mended")
        self._cluster.network.heal()

    def _split(self) -> Callable[[], None]:
        alone = self._one()
        others = {each for each in NODES if each != alone}
        if self._random.random() < 0.5:
            others.add(CONTROLLER)
        self._say(f"{alone} is cut off from {sorted(others)}")
        self._cluster.network.split({alone}, others)
        return self._heal

    def _cut(self) -> Callable[[], None]:
        source, target = self._random.sample((CONTROLLER, *NODES), 2)
        self._say(f"nothing comes from {source} to {target}")
        self._cluster.network.cut(source, target)
        return self._heal

    def _slow_link(self) -> Callable[[], None]:
        source, target = self._random.sample((CONTROLLER, *NODES), 2)
        delay_ms = self._random.randrange(1, 300)
        self._say(f"from {source} to {target} takes {delay_ms} ms")
        self._cluster.network.delay(source, target, delay_ms)
        return self._heal

    def _held(self) -> Callable[[], None]:
        node_id = self._one()
        self._say(f"{node_id} hears nothing of the metadata")
        self._cluster.broker(node_id).hold_metadata()
        return lambda: self._cluster.broker(node_id).release_metadata()

    def _no_controller(self) -> Callable[[], None] | None:
        if not self._cluster.controller.is_running:
            return None
        self._say("the controller stops")
        self._cluster.controller.stop()

        def start() -> None:
            if not self._cluster.controller.is_running:
                self._say("the controller starts")
                self._cluster.controller.start()

        return start

    # Disks

    def _full(self) -> Callable[[], None]:
        node_id = self._one()
        self._say(f"the disk of {node_id} is full")
        self._cluster.broker(node_id).disk.fill()

        def free() -> None:
            self._say(f"the disk of {node_id} has room")
            self._cluster.broker(node_id).disk.free()

        return free

    def _slow(self) -> Callable[[], None]:
        node_id, delay_ms = self._one(), self._random.randrange(1, 200)
        self._say(f"a write at {node_id} takes {delay_ms} ms")
        self._cluster.broker(node_id).disk.slow(delay_ms)
        return lambda: self._cluster.broker(node_id).disk.slow(0)

    # Partitions

    def _place(self) -> tuple[str, int]:
        topic = self._random.choice([each for each in topics.PARTITIONS if each != topics.ANEW])
        return topic, self._random.randrange(topics.PARTITIONS[topic])

    def _move(self) -> None:
        if self._cluster.controller.is_running:
            place, node_id = self._place(), self._one()
            self._say(f"{node_id} is preferred for {place}")
            self._cluster.partition(*place).move_to(node_id)

    def _reassign(self) -> Callable[[], None] | None:
        if not self._cluster.controller.is_running:
            return None
        place, replicas = self._place(), self._random.sample(NODES, 2)
        self._say(f"the replicas of {place} shall be {replicas}")
        self._cluster.partition(*place).reassign(replicas)
        return lambda: self.back(place)

    def back(self, place: tuple[str, int]) -> None:
        """Give a partition three replicas again."""
        if not self._cluster.controller.is_running:
            self._cluster.controller.start()
        self._say(f"the replicas of {place} shall be three again")
        self._cluster.partition(*place).reassign(NODES)

    # Topics

    def _admin(self) -> Admin:
        return embedlog.Admin(self._link.address, default_api_timeout_ms=ANSWER_MS)

    def _delete_records(self) -> None:
        place = (topics.TRIMMED, self._random.randrange(topics.PARTITIONS[topics.TRIMMED]))
        with self._admin() as admin:
            latest = admin.list_offsets({place: embedlog.OffsetSpec.LATEST}).get(place)
            if latest is None:
                return
            before = self._random.randrange(latest.offset + 1)
            self._history.trimmed[place] = max(before, self._history.trimmed.get(place, 0))
            self._say(f"records of {place} before {before} are deleted")
            admin.delete_records({place: before}).get(place)

    def _anew(self) -> None:
        with self._admin() as admin:
            self._say(f"{topics.ANEW} is made anew")
            self._history.made_s[topics.ANEW] = float("inf")
            admin.delete_topics([topics.ANEW], timeout_ms=ANSWER_MS).get(topics.ANEW)
            make(admin, topics.ANEW)
            self._history.made_s[topics.ANEW] = time.monotonic()

    def _compact(self) -> None:
        self._cluster.maintain()

    def _reopened(self) -> None:
        """Close everything and open it again, with batches in flight."""
        self._end_faults(float("inf"))
        self.mend_all()
        self._say("the cluster is closed")
        self._reopen()
        self._say("the cluster is open again")

    def mend_all(self) -> None:
        """Start the controller and every broker, for a clean close."""
        if not self._cluster.controller.is_running:
            self._cluster.controller.start()
        self._cluster.network.heal()
        for node in self._cluster.brokers:
            node.disk.free()
            if not node.is_running:
                node.start()


def make(admin: Admin, topic: str) -> None:
    """Make one of the topics."""
    new = NewTopic(
        topic, topics.PARTITIONS[topic], replication_factor=3, configs=topics.SETTINGS[topic]
    )
    admin.create_topics([new]).get(topic)
