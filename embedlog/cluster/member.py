"""`ClusterMember`: one broker of a cluster of several, over its starts and stops.

A broker registers fenced when it starts, is unfenced once its logs are open, and then sends
heartbeats. A broker that stops hands its leadership over first. The controller learns of a kill at
once, as from a broken connection, and of a pause when the broker's session has expired.
"""

from __future__ import annotations

from collections.abc import Sequence

from embedlog.cluster.door import Door
from embedlog.cluster.ending import completely
from embedlog.cluster.faults.disk import Disk
from embedlog.cluster.faults.network import CONTROLLER
from embedlog.cluster.listening import Listening
from embedlog.cluster.metadata_feed import MetadataFeed
from embedlog.cluster.neighbours import Neighbours
from embedlog.cluster.presence import Presence
from embedlog.cluster.running_broker import RunningBroker
from embedlog.cluster.shared import Shared
from embedlog.config.broker_config import BrokerConfig
from embedlog.controller.controller import Controller
from embedlog.controller.metadata import MetadataDelta
from embedlog.errors import ConfigError, IllegalState


class ClusterMember:
    """One broker: its directories, its settings, its starts and stops."""

    def __init__(
        self,
        shared: Shared,
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
        """The further log directories."""
        self.disk = Disk(shared.runtime.files)
        self._is_starting = False
        self._starts_paused = False
        self.door = Door(node_id, self._reaches_controller, shared.runtime)
        self.listening = Listening(self.door)
        self.presence = Presence(node_id, config, self.door, self.listening, self._give_up)
        self.neighbours = Neighbours(shared, self.presence)
        self.feed = MetadataFeed(self._hear, self._is_reached)
        self._shared = shared

    @property
    def running(self) -> RunningBroker | None:
        return self.presence.running

    @property
    def rack(self) -> str | None:
        return self.config.broker_rack if self.config.is_set("broker.rack") else None

    # Life

    def start(self) -> None:
        """Register, open the directory, follow and lead. `BrokerNode.start` names the errors."""
        self.open()
        self.serve()

    def open(self, *, is_opening: bool = False) -> None:
        """Do the first half of `start`: register and open the logs. Raises as `start` does.

        `is_opening`: the whole cluster is being opened. Brokers that were closed together keep
        their registrations and leaderships.
        """
        shared = self._shared
        controller = shared.host.controller
        if self.running is not None:
            raise IllegalState(f"broker {self.node_id} runs already")
        if controller is None:
            raise IllegalState("a broker cannot start without the controller")
        if not self.neighbours.reaches_controller():
            raise IllegalState(f"broker {self.node_id} cannot start: it is cut off the controller")
        self._is_starting = True  # the feed keeps changes until the broker can apply them
        try:
            running = RunningBroker(
                shared.runtime.over(self.disk),
                self.directory,
                self.config,
                durability=shared.durability,
                on_disk=shared.on_disk,
                log_dirs=self.log_dirs,
                controller=controller,
                peers=self.neighbours,
            )
            shared.interception.install(running.core)
            try:
                self._register(controller, running, is_opening=is_opening)
                self.presence.running = running
                running.core.join(is_opening=is_opening)
            except BaseException:
                self.presence.running = None
                running.abandon(loses_unsynced=False)
                raise
        finally:
            self._is_starting = False
        self.feed.deliver()

    def _register(
        self, controller: Controller, running: RunningBroker, *, is_opening: bool
    ) -> None:
        known = controller.image.brokers.get(self.node_id)
        is_clean = known is not None and running.log_manager.was_clean
        incarnation = self._shared.runtime.random.uuid()
        if known is not None and not known.is_fenced:
            if is_clean and is_opening and not known.in_controlled_shutdown:
                incarnation = known.incarnation
            else:
                # Fence it: its last run ended, and the controller could not notice that.
                controller.brokers.fence(self.node_id)
        self.neighbours.broker_epoch = controller.brokers.register(
            self.node_id,
            rack=self.rack,
            incarnation=incarnation,
            directories=running.log_manager.ids,
            previous_epoch=known.epoch if known is not None and is_clean else -1,
        )

    def serve(self) -> None:
        """Do the second half of `start`: let requests in, and let the broker become a leader."""
        controller = self._shared.host.controller
        core = self._require_running().core
        self.door.open(core)
        self.listening.open(core)
        if controller is not None:
            controller.brokers.unfence(self.node_id, self.neighbours.broker_epoch)
        self._shared.runtime.scheduler.add(self)
        if self._starts_paused:
            self.pause()

    def stop(self) -> None:
        """Hand leadership over, then close. A broker that is down stays down."""
        running = self.running
        if running is None:
            return
        self.presence.left_ms = self._shared.runtime.clock.monotonic_ms()
        controller = self._listening_controller()
        if controller is not None:
            try:
                self._hand_over(controller)
            except (KeyboardInterrupt, SystemExit):
                # A broker in controlled shutdown would neither lead nor follow.
                controller.brokers.fence(self.node_id)
                self._close(running)
                raise
        self._close(running)

    def _hand_over(self, controller: Controller) -> None:
        if self.config.controlled_shutdown_enable:
            epoch = self.neighbours.broker_epoch
            controller.brokers.begin_controlled_shutdown(self.node_id, epoch)
            self.listening.drain(self._shared.runtime.scheduler)
        controller.brokers.fence(self.node_id)

    def kill(self, *, lose_unsynced: bool) -> None:
        """End the broker as SIGKILL does. `lose_unsynced`: as a loss of power does.

        The controller elects new leaders before connections break, so that no client learns of a
        leader that is gone.
        """
        running = self._require_running()
        self.presence.left_ms = self._shared.runtime.clock.monotonic_ms()

        def end() -> None:
            self._vanish()
            controller = self._listening_controller()
            if controller is not None:
                controller.brokers.fence(self.node_id)
            self.listening.close()
            with self.disk.spared():
                running.abandon(loses_unsynced=lose_unsynced)

        completely(end)

    def begin_close(self) -> None:
        """Serve no more requests: the whole cluster is about to be closed."""
        self._shared.runtime.scheduler.remove(self)
        self.door.close()
        self.listening.close()

    def close(self) -> None:
        running = self.running
        if running is not None:
            self._close(running)

    def pause(self) -> None:
        """Neither receive nor send anything until `resume`. A broker that is down starts paused."""
        self._starts_paused = self.running is None
        if self._starts_paused:
            return
        self._shared.network.freeze(self.node_id)
        self.door.pause()

    def resume(self) -> None:
        self._starts_paused = False
        self._shared.network.thaw(self.node_id)
        self.door.resume()
        self.try_again()

    def try_again(self) -> None:
        """Deliver metadata and requests that waited for a link or for the controller."""
        self.feed.deliver()
        if self.running is not None:
            controller = self._shared.host.controller
            if controller is not None:
                self.running.core.controller = controller
            self.door.try_again()
            self._shared.runtime.scheduler.notify(self)

    def _give_up(self) -> None:
        if self.running is not None:
            self.kill(lose_unsynced=False)

    def _close(self, running: RunningBroker) -> None:
        def end() -> None:
            self._vanish()
            self.listening.close()
            running.close()

        completely(end)

    def _vanish(self) -> None:
        self._shared.runtime.scheduler.remove(self)
        self._shared.network.thaw(self.node_id)
        self.presence.running = None
        self.feed.forget()
        self.door.close()

    def _require_running(self) -> RunningBroker:
        if self.running is None:
            raise IllegalState(f"broker {self.node_id} does not run")
        return self.running

    # Handles

    @property
    def directories(self) -> tuple[str, ...]:
        """Paths of the log directories; the first has the metadata."""
        return self.directory, *self.log_dirs

    @property
    def is_paused(self) -> bool:
        return self.door.is_paused

    def set_hidden(self, *, is_hidden: bool) -> None:
        self.presence.is_hidden = is_hidden

    def hold_metadata(self) -> None:
        self.feed.is_held = True

    def release_metadata(self) -> None:
        self.feed.is_held = False
        self.feed.deliver()

    def swap_address(self, other: object) -> None:
        """Exchange the addresses of two brokers. Raises ConfigError if one has no address."""
        if not isinstance(other, ClusterMember):
            raise ConfigError("an address can only be swapped with another broker of the cluster")
        self.listening.swap(other.listening)

    def slow_disk(self, delay_ms: int) -> None:
        self.door.slow_disk.delay_ms = delay_ms

    def faulty_disk(self) -> Disk:
        return self.disk

    # The controller

    def _reaches_controller(self) -> bool:
        return self.neighbours.reaches_controller()

    def _listening_controller(self) -> Controller | None:
        """Return the controller if it can be reached and knows this broker."""
        controller = self._shared.host.controller
        if controller is None or not self.neighbours.reaches_controller():
            return None
        return controller if self.node_id in controller.image.brokers else None

    def run_once(self, _now_ms: int) -> int | None:
        """Send a heartbeat; ask to be unfenced if the broker's session had expired."""
        running = self.running  # another thread may stop the broker meanwhile
        if running is None or self.door.is_paused:
            return None
        node_id, epoch = self.node_id, self.neighbours.broker_epoch
        self.neighbours.ask_controller(
            lambda controller: controller.brokers.sessions.touch(node_id, epoch)
        )
        known = running.core.image.brokers.get(node_id)
        if known is not None and known.is_fenced:
            self.neighbours.ask_controller(
                lambda controller: controller.brokers.unfence(node_id, epoch)
            )
        interval_ms: int = self.config.broker_heartbeat_interval_ms
        return interval_ms

    def _is_reached(self) -> bool:
        """Return whether metadata from the controller arrives at the broker now."""
        if self._is_starting or self.door.is_paused:
            return False
        return not self._shared.network.is_cut(CONTROLLER, self.node_id)

    def _hear(self, delta: MetadataDelta) -> None:
        running = self.running
        if running is not None and delta.image.end_offset > running.core.image.end_offset:
            running.core.changed(delta)
