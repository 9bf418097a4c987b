"""Faults of brokers: each is a script that begins a fault, and ends it later.

Mild faults always leave another running broker that is in sync or eligible, so that no committed
record may be lost. Harsh faults do not check this.
"""

from __future__ import annotations

from collections.abc import Callable
from errno import EIO
from typing import Any

from tests.simulation.cluster.client import Place
from tests.simulation.cluster.watch import Watch
from tests.simulation.cluster.world import CONTROLLER, NODES, ClusterWorld
from tests.simulation.world import Life, Sleep

AWAY_MS_MAX = 5000
SHORT_MS_MAX = 300
DELAY_MS_MAX = 400
JUMP_MS_MAX = 500_000
AGAIN_MS = 200


class Faults:
    """All faults. `say` gets a line for each."""

    def __init__(
        self,
        world: ClusterWorld,
        watch: Watch,
        place: Place,
        say: Callable[[str], None],
        *,
        is_harsh: bool,
        moves_often: bool = False,
    ) -> None:
        """`moves_often`: half of the faults are reassignments of the partition."""
        self._world = world
        self._watch = watch
        self._place = place
        self._say = say
        self._is_harsh = is_harsh
        self._moves_often = moves_often
        self._behind_ms = 0
        """How far the clock is behind the latest time that it has shown."""
        self.is_over = False
        """Whether everything is mended."""
        self._random = world.random

    def befall(self) -> None:
        """Begin a random fault."""
        kinds: tuple[Callable[[], Life], ...] = (
            self._killed,
            self._killed,
            self._killed_in_turn,
            self._ambushed,
            self._ambushed,
            self._stopped,
            self._paused,
            self._split,
            self._cut,
            self._slow,
            self._held,
            self._in_the_dark,
            self._moved,
            self._reassigned,
            self._without_controller,
            self._rolling,
            self._clock_jumps,
        )
        if self._moves_often:
            kinds = (*kinds, *[self._reassigned] * len(kinds))
        if self._world.log_dirs:
            # A reassignment away from a failed directory and back leaves two copies of the replica.
            kinds = (*[each for each in kinds if each != self._reassigned], *[self._disk_fails] * 5)
        self._world.live(self._random.choice(kinds)())

    def end(self) -> None:
        """Mend everything and begin no more faults."""
        self.is_over = True
        self._say("peace")
        # Timers would otherwise wait until the clock has caught up.
        clock = self._world.runtime.clock
        clock.set_wall(clock.wall_ms() + self._behind_ms)
        cluster = self._world.cluster
        if not cluster.controller.is_running:
            self._start_controller()
        self._world.heal()
        self._world.runtime.files.heal()
        for node in cluster.brokers:
            if node.is_paused:
                node.resume()
            node.release_metadata()
            node.disk.slow(0)
            if node.is_running and node.core.log_manager.offline:
                node.kill()
            if not node.is_running:
                node.start()
            node.core.replica_manager.fetchers.release(self._topic_partition)

    @property
    def _topic_partition(self) -> Any:
        return self._world.cluster.partition(*self._place).topic_partition

    # Choosing a broker

    def _one(self) -> int:
        """Return a random broker, often the leader."""
        decided = self._watch.image(self._place)
        if decided is not None and decided.leader > 0 and self._random.random() < 0.4:
            return decided.leader
        return self._random.choice(NODES)

    def _takes(self, node_id: int) -> bool:
        """Return whether the broker may fail."""
        if not self._world.cluster.broker(node_id).is_running:
            return False
        return self._is_harsh or all(
            self._has_another(place, node_id) for place in self._watch.partitions
        )

    def _has_another(self, place: Place, node_id: int) -> bool:
        """Return whether another running broker has all committed records."""
        decided = self._watch.image(place)
        if decided is None:
            return True
        others = {*decided.isr, *decided.elr} - {node_id}
        if self._world.log_dirs:
            others = {each for each in others if self._watch.node(each, place) is not None}
        return any(self._world.cluster.broker(other).is_running for other in others)

    def _sleep(self) -> Sleep:
        return Sleep(self._random.randrange(self._random.choice((SHORT_MS_MAX, AWAY_MS_MAX))))

    def _reaches_controller(self, node_id: int) -> bool:
        cluster = self._world.cluster
        is_cut = cluster.network.is_cut
        return cluster.controller.is_running and not (
            is_cut(node_id, CONTROLLER) or is_cut(CONTROLLER, node_id)
        )

    def _back(self, node_id: int) -> Life:
        """Start the broker again as soon as possible."""
        while not self.is_over:
            node = self._world.cluster.broker(node_id)
            if node.is_running:
                return
            if self._reaches_controller(node_id):
                self._say(f"{node_id} starts")
                node.start()
                return
            yield Sleep(AGAIN_MS)

    # The faults

    def _killed(self) -> Life:
        yield from self._kill(self._one(), self._random.choice((SHORT_MS_MAX, AWAY_MS_MAX)))

    def _ambushed(self) -> Life:
        """Kill the broker that gets the next batch, before it answers."""

        def fall(node_id: int) -> None:
            if not self.is_over:
                self._world.live(self._kill(node_id, AWAY_MS_MAX))

        self._world.ambush = fall
        return
        yield

    def _killed_in_turn(self) -> Life:
        for node_id in self._random.sample(NODES, len(NODES)):
            if not self.is_over:
                yield from self._kill(node_id, 1000)
                yield Sleep(self._random.randrange(300))

    def _kill(self, node_id: int, away_ms_max: int) -> Life:
        if not self._takes(node_id):
            return
        loses = self._random.random() < 0.5
        if loses and self._is_harsh and not self._world.loses_nothing:
            self._watch.may_lose = True
        self._say(f"{node_id} is killed" + (" and loses its unsynced data" if loses else ""))
        self._world.cluster.broker(node_id).kill(lose_unsynced=loses)
        yield Sleep(self._random.randrange(away_ms_max))
        yield from self._back(node_id)

    def _disk_fails(self) -> Life:
        """Fail the disk of a log directory; later repair it and restart the broker."""
        node_id = self._one()
        if not self._takes(node_id):
            return
        (path,) = self._world.log_dirs
        failing, directory = self._world.runtime.files.failing, f"{path}/broker-{node_id}"
        if directory in failing:
            return
        self._say(f"the second disk of {node_id} fails")
        failing[directory] = EIO
        yield self._sleep()
        self._say(f"the second disk of {node_id} is repaired")
        failing.pop(directory, None)
        node = self._world.cluster.broker(node_id)
        if node.is_running and node.core.log_manager.offline:
            self._say(f"{node_id} is restarted")
            if self._random.random() < 0.5:
                node.stop()
            else:
                node.kill()
            yield from self._back(node_id)

    def _stopped(self) -> Life:
        node_id = self._one()
        if not self._takes(node_id):
            return
        self._say(f"{node_id} stops")
        self._world.cluster.broker(node_id).stop()
        yield self._sleep()
        yield from self._back(node_id)

    def _paused(self) -> Life:
        node_id = self._one()
        node = self._world.cluster.broker(node_id)
        if not node.is_running or node.is_paused:
            return
        self._say(f"{node_id} is paused")
        node.pause()
        yield self._sleep()
        if node.is_paused:
            self._say(f"{node_id} goes on")
            node.resume()

    def _split(self) -> Life:
        alone = self._one()
        others = {each for each in NODES if each != alone}
        if self._random.random() < 0.5:
            others.add(CONTROLLER)
        self._say(f"{alone} is cut off from {sorted(others)}")
        self._world.cluster.network.split({alone}, others)
        yield from self._healed()

    def _cut(self) -> Life:
        source, target = self._random.sample((CONTROLLER, *NODES), 2)
        self._say(f"nothing comes from {source} to {target}")
        self._world.cluster.network.cut(source, target)
        yield from self._healed()

    def _slow(self) -> Life:
        source, target = self._random.sample((CONTROLLER, *NODES), 2)
        delay_ms = self._random.randrange(1, DELAY_MS_MAX)
        self._say(f"from {source} to {target} takes {delay_ms} ms")
        self._world.cluster.network.delay(source, target, delay_ms)
        yield from self._healed()

    def _healed(self) -> Life:
        yield self._sleep()
        if not self.is_over:
            self._say("the network is mended")
            self._world.heal()

    def _held(self) -> Life:
        node_id = self._one()
        replica = self._watch.node(node_id, self._place)
        if replica is None:
            return
        fetchers = self._world.cluster.broker(node_id).core.replica_manager.fetchers
        self._say(f"{node_id} is held behind")
        fetchers.hold(self._topic_partition)
        yield self._sleep()
        fetchers.release(replica.topic_partition)

    def _in_the_dark(self) -> Life:
        node = self._world.cluster.broker(self._one())
        self._say(f"{node.node_id} hears nothing of the metadata")
        node.hold_metadata()
        yield self._sleep()
        node.release_metadata()

    def _moved(self) -> Life:
        if self._world.cluster.controller.is_running:
            node_id = self._one()
            self._say(f"{node_id} is preferred")
            self._world.cluster.partition(*self._place).move_to(node_id)
        return
        yield

    def _reassigned(self) -> Life:
        """Assign two replicas for a while, in any order, then three again."""
        partition = self._world.cluster.partition(*self._place)
        for count in (2, 3):
            if self.is_over or not self._world.cluster.controller.is_running:
                return
            replicas = self._random.sample(NODES, count)
            self._say(f"the replicas shall be {replicas}")
            partition.reassign(replicas)
            yield self._sleep()

    def _without_controller(self) -> Life:
        controller = self._world.cluster.controller
        if not controller.is_running:
            return
        self._say("the controller stops")
        controller.stop()
        yield self._sleep()
        if not self.is_over and not controller.is_running:
            self._start_controller()

    def _start_controller(self) -> None:
        self._say("the controller starts")
        self._world.cluster.controller.start()
        self._watch.controller_started()

    def _rolling(self) -> Life:
        for node_id in NODES:
            if not self.is_over and self._takes(node_id):
                self._say(f"{node_id} stops, in turn")
                self._world.cluster.broker(node_id).stop()
                yield Sleep(self._random.randrange(1000))
                yield from self._back(node_id)
                yield Sleep(self._random.randrange(1000))

    def _clock_jumps(self) -> Life:
        clock = self._world.runtime.clock
        jump_ms = self._random.randrange(-JUMP_MS_MAX, JUMP_MS_MAX)
        self._say(f"the clock jumps by {jump_ms} ms")
        clock.set_wall(clock.wall_ms() + jump_ms)
        self._behind_ms = max(0, self._behind_ms - jump_ms)
        return
        yield
