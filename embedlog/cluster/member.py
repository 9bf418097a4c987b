"""`Member`: one broker of several, over its starts and stops.

Registered and fenced when it starts, unfenced when it has opened its logs, it sends heartbeats. Its
leaders move before it stops; when it is killed the controller hears of it at once, as of a
connection that broke, and when it is paused once its session has run out.
"""

from __future__ import annotations

from embedlog.client.errors import IllegalState
from embedlog.cluster.door import Door
from embedlog.cluster.faults.disk import Disk
from embedlog.cluster.faults.network import CONTROLLER
from embedlog.cluster.listening import Listening
from embedlog.cluster.metadata_feed import MetadataFeed
from embedlog.cluster.neighbours import Neighbours
from embedlog.cluster.node import Node
from embedlog.config.broker_config import BrokerConfig
from embedlog.runtime import Runtime

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Protocol

    from embedlog.cluster.faults.network import ClusterNetwork
    from embedlog.controller.controller import Controller
    from embedlog.controller.metadata import MetadataDelta

    class World(Protocol):
        """What all members share: `Several`, as this file knows it."""

        runtime: Runtime
        network: ClusterNetwork
        on_disk: bool
        durability: str

        @property
        def controller(self) -> Controller | None:
            """None while it does not run."""

        @property
        def members(self) -> Mapping[int, Member]:
            """All brokers, by number."""


class Member:
    """One broker: where it is, and whether it runs."""

    def __init__(
        self,
        world: World,
        node_id: int,
        directory: str,
        config: BrokerConfig,
        *,
        log_dirs: Sequence[str] = (),
    ) -> None:
        self.node_id = node_id
        self.config = config
        self.directory = directory
        self.log_dirs = log_dirs
        self.node: Node | None = None
        """The broker, while it runs."""
        self.disk = Disk(world.runtime.files)
        self._is_starting = False
        self.is_hidden = False
        """Is it left out of what clients are told?"""
        self.left_ms: int | None = None
        """When it was last stopped or killed, monotonic."""
        self.neighbours = Neighbours(world, self)
        self.door = Door(node_id, self.neighbours.reaches_controller, world.runtime)
        self.feed = MetadataFeed(self._hear, self._is_reached)
        self.listening = Listening(self.door)
        self._world = world

    # Life

    def start(self) -> None:
        """Register, open the directory, follow and lead.

        Raises:
            IllegalState: it runs already, or the controller does not, or cannot be reached.
        """
        self.open()
        self.serve()

    def open(self, *, is_opening: bool = False) -> None:
        """The first half of `start`: nobody is served yet. Raises as that does.

        `is_opening`: so are all others. Where they were closed together they go on as they were.
        """
        controller = self._world.controller
        if self.node is not None:
            raise IllegalState(f"broker {self.node_id} runs already")
        if controller is None:
            raise IllegalState("a broker cannot start without the controller")
        if not self.neighbours.reaches_controller():
            raise IllegalState(f"broker {self.node_id} cannot start: it is cut off the controller")
        world = self._world
        self._is_starting = True  # what changes from here on is heard once it can be acted on
        try:
            node = Node(
                Runtime(
                    clock=world.runtime.clock,
                    files=self.disk,
                    scheduler=world.runtime.scheduler,
                    random=world.runtime.random,
                ),
                self.directory,
                self.config,
                durability=world.durability,
                on_disk=world.on_disk,
                log_dirs=self.log_dirs,
                controller=controller,
                peers=self.neighbours,
            )
            try:
                self._register(controller, node, is_opening=is_opening)
                self.node = node
                node.core.join(is_opening=is_opening)
            except BaseException:
                self.node = None
                node.abandon(loses_unsynced=False)
                raise
        finally:
            self._is_starting = False
        self.feed.deliver()

    def _register(self, controller: Controller, node: Node, *, is_opening: bool) -> None:
        known = controller.image.brokers.get(self.node_id)
        is_clean = known is not None and node.log_manager.was_clean
        incarnation = self._world.runtime.random.uuid()
        if known is not None and not known.is_fenced:
            if is_clean and is_opening and not known.in_controlled_shutdown:
                incarnation = known.incarnation
            else:
                # Its last life ended while the controller could not hear of that.
                controller.brokers.fence(self.node_id)
        self.neighbours.broker_epoch = controller.brokers.register(
            self.node_id,
            rack=self.rack,
            incarnation=incarnation,
            directories=node.log_manager.ids,
            previous_epoch=known.epoch if known is not None and is_clean else -1,
        )

    def serve(self) -> None:
        """The second half of `start`: requests come in, leadership may, too."""
        controller = self._world.controller
        core = self._running().core
        self.door.open(core)
        self.listening.open(core)
        if controller is not None:
            controller.brokers.unfence(self.node_id, self.neighbours.broker_epoch)
        self._world.runtime.scheduler.add(self)

    def stop(self) -> None:
        """Hand leadership over, then close."""
        node = self._running()
        self.left_ms = self._world.runtime.clock.monotonic_ms()
        controller = self._listening_controller()
        if controller is not None:
            if self.config.controlled_shutdown_enable:
                epoch = self.neighbours.broker_epoch
                controller.brokers.begin_controlled_shutdown(self.node_id, epoch)
                self.listening.drain(self._world.runtime.scheduler)
            controller.brokers.fence(self.node_id)
        self._leave()
        node.close()

    def kill(self, *, lose_unsynced: bool) -> None:
        """End without a word. `lose_unsynced`: and as if the machine had lost its power.

        The controller knows before the clients do, so that none of them is told of a leader that
        has gone.
        """
        node = self._running()
        self.left_ms = self._world.runtime.clock.monotonic_ms()
        self._vanish()
        controller = self._listening_controller()
        if controller is not None:
            controller.brokers.fence(self.node_id)
        self.listening.close()
        with self.disk.spared():
            node.abandon(loses_unsynced=lose_unsynced)

    def begin_close(self) -> None:
        """Serve nobody any more: all brokers are about to be closed together."""
        self._world.runtime.scheduler.remove(self)
        self.door.close()
        self.listening.close()

    def close(self) -> None:
        """End with all others: nobody takes over."""
        if self.node is not None:
            node = self.node
            self._leave()
            node.close()

    def pause(self) -> None:
        """Hear and say nothing until `resume`."""
        self._running()
        self._world.network.freeze(self.node_id)
        self.door.pause()

    def resume(self) -> None:
        """End a pause."""
        self._world.network.thaw(self.node_id)
        self.door.resume()
        self.try_again()

    def try_again(self) -> None:
        """What could not be heard, or said, before may be now."""
        self.feed.deliver()
        if self.node is not None:
            controller = self._world.controller
            if controller is not None:
                self.node.core.controller = controller
            self.door.try_again()
            self._world.runtime.scheduler.notify(self)

    def _leave(self) -> None:
        self._vanish()
        self.listening.close()

    def _vanish(self) -> None:
        self._world.runtime.scheduler.remove(self)
        self._world.network.thaw(self.node_id)
        self.node = None
        self.feed.forget()
        self.door.close()

    def _listening_controller(self) -> Controller | None:
        """The controller, if it hears and knows this broker."""
        controller = self._world.controller
        if controller is None or not self.neighbours.reaches_controller():
            return None
        return controller if self.node_id in controller.image.brokers else None

    def _running(self) -> Node:
        if self.node is None:
            raise IllegalState(f"broker {self.node_id} does not run")
        return self.node

    # The controller

    def run_once(self, _now_ms: int) -> int | None:
        """Send a heartbeat; ask to be in service again where the controller had given it up."""
        node = self.node  # it may be stopped meanwhile
        if node is None or self.door.is_paused:
            return None
        node_id, epoch = self.node_id, self.neighbours.broker_epoch
        self.neighbours.ask_controller(
            lambda controller: controller.brokers.sessions.touch(node_id, epoch)
        )
        known = node.core.image.brokers.get(node_id)
        if known is not None and known.is_fenced:
            self.neighbours.ask_controller(
                lambda controller: controller.brokers.unfence(node_id, epoch)
            )
        interval_ms: int = self.config.broker_heartbeat_interval_ms
        return interval_ms

    def _is_reached(self) -> bool:
        """Does it hear the controller?"""
        if self._is_starting or self.door.is_paused:
            return False
        return not self._world.network.is_cut(CONTROLLER, self.node_id)

    def _hear(self, delta: MetadataDelta) -> None:
        if self.node is not None and delta.image.end_offset > self.node.core.image.end_offset:
            self.node.core.changed(delta)

    @property
    def rack(self) -> str | None:
        """Where it stands."""
        return self.config.broker_rack if self.config.is_set("broker.rack") else None
