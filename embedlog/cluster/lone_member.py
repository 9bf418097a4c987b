"""`LoneMember`: the only broker of a cluster, over its starts and stops.

The broker is the controller too: both end and start together. As long as no test has used a fault,
clients call the broker directly. The first fault leads them through a `Door` for good.
"""

from __future__ import annotations

from embedlog.broker.broker import Broker
from embedlog.cluster.door import Door
from embedlog.cluster.ending import completely
from embedlog.cluster.faults.disk import Disk
from embedlog.cluster.faults.lone_network import LoneNetwork
from embedlog.cluster.faults.network import CONTROLLER
from embedlog.cluster.lone_controller import LoneController
from embedlog.cluster.metadata_feed import MetadataFeed
from embedlog.errors import ConfigError, IllegalState
from embedlog.runtime.forks import stays_in_parent
from embedlog.runtime.pending import Pending
from embedlog.runtime.running_calls import RunningCalls
from embedlog.transport import InProcessTransport

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from embedlog.cluster.running_broker import RunningBroker
    from embedlog.config.broker_config import BrokerConfig
    from embedlog.controller.metadata import MetadataDelta
    from embedlog.runtime import Runtime
    from embedlog.server.addresses import ServedAddress

_PATIENCE_MS = 1000
_DIRECT_CALLS = (
    InProcessTransport.append.__code__,
    InProcessTransport.send.__code__,
    Broker.handle.__code__,
)
"""The calls of clients that do not go through a door."""


class LoneMember:
    """The only broker, for a test that stops it, kills it or takes something away from it."""

    def __init__(
        self,
        runtime: Runtime,
        config: BrokerConfig,
        directories: Sequence[str],
        running: RunningBroker,
        *,
        open_again: Callable[[Runtime], RunningBroker],
        addresses: Callable[[], Sequence[ServedAddress]],
        lead_clients: Callable[[LoneMember], None],
    ) -> None:
        """`running` is the open broker, `open_again` opens the next one over the same directories.

        `addresses` are the open addresses of the broker. `lead_clients` leads the transports in
        this process through the member; it is called once, with the first fault.
        """
        self.node_id: int = config.node_id
        self.directories = tuple(directories)
        """Paths of the log directories; the first has the metadata."""
        self.newest = running
        """The broker, or its last run if it does not run."""
        self.running: RunningBroker | None = running
        """None while the broker does not run."""
        self.disk = Disk(runtime.files)
        self.door = Door(self.node_id, self.reaches_controller, runtime)
        self.controller = LoneController(self.node_id, lambda: self.running, self.attach)
        self.network = LoneNetwork(runtime, self.node_id, self.attach)
        self.network.on_heal = self.door.try_again
        self.feed = MetadataFeed(self._hear, lambda: True)
        self.is_hidden = False
        """True if metadata for clients leaves the broker out."""
        self._starts_paused = False
        self._runtime = runtime
        self._open_again = open_again
        self._addresses = addresses
        self._lead_clients: Callable[[LoneMember], None] | None = lead_clients
        stays_in_parent(self)

    @property
    def is_paused(self) -> bool:
        return self.door.is_paused

    # Clients

    @property
    def is_attached(self) -> bool:
        """True if new clients have to go through the member."""
        return self.newest.core.isolation is self

    def attach(self) -> None:
        """Lead all clients through the door: the first fault comes now.

        Requests wait at the door until the requests that went past it have come back. A fault in
        their midst would take answers away from producers that count on having one.
        """
        lead_clients, self._lead_clients = self._lead_clients, None
        if lead_clients is None:
            return
        core = self.newest.core
        self.door.pause()
        try:
            self.door.open(core)
            core.isolation = self  # clients that connect from here on find the door
            lead_clients(self)
            for address in self._addresses():
                address.lead_to(core, self.door)
            calls = RunningCalls(_DIRECT_CALLS)
            self._wait_while(lambda: calls.are_running)
        except BaseException:
            self._lead_clients = lead_clients  # Ctrl-C may have come before all were led
            raise
        finally:
            self.door.resume()

    def _wait_while(self, is_busy: Callable[[], bool]) -> None:
        """Wait for requests in the broker, but not for long: a user's interceptor may hold one."""
        for _ in range(_PATIENCE_MS):
            if not is_busy():
                return
            self._runtime.scheduler.wait(Pending(), 1)

    def reaches_controller(self) -> bool:
        network = self.network
        return self.controller.controller is not None and not (
            network.is_cut(self.node_id, CONTROLLER) or network.is_cut(CONTROLLER, self.node_id)
        )

    # Life

    def start(self) -> None:
        """Open the directories, and serve at the former addresses.

        Raises:
            IllegalState: the broker runs.
            OSError: the port of an address is taken.
            DirectoryLocked, CorruptRecord: see `embedlog.open`.
        """
        if self.running is not None:
            raise IllegalState(f"broker {self.node_id} runs already")
        running = self._open_again(self._runtime.over(self.disk))
        try:
            self._serve(running)
            for address in self._addresses():
                address.resume(running.core, self.door)
        except BaseException:
            self._end(lambda: running.abandon(loses_unsynced=False), syncs=False)
            raise

    def _serve(self, running: RunningBroker) -> None:
        self.newest = self.running = running
        running.core.isolation = self
        if self.feed.is_held:
            running.controller.on_change = self.feed.publish
        if self._starts_paused:
            self._starts_paused = False
            self.door.pause()
        self.door.open(running.core)

    def stop(self) -> None:
        """Close the broker, if it runs. It has nobody to hand its partitions over to."""
        self.attach()
        running = self.running
        if running is not None:
            self._keep(running)
            self._end(lambda: _close(running), syncs=True)

    def kill(self, *, lose_unsynced: bool) -> None:
        """End the broker as SIGKILL does. `lose_unsynced`: as a loss of power does.

        Producers that were opened before the first fault are not idempotent, unless they asked for
        it. So a kill that loses no data comes just after a sync, when their answers have left.
        """
        self.attach()
        running = self.running
        if running is None:
            raise IllegalState(f"broker {self.node_id} does not run")

        def abandon() -> None:
            with self.disk.spared():
                self._keep(running)
                running.abandon(loses_unsynced=lose_unsynced)

        self._end(abandon, syncs=not lose_unsynced)

    def _keep(self, running: RunningBroker) -> None:
        if running.log_manager.first.directory.is_volatile:
            running.keep_start_offsets()

    def _end(self, end_broker: Callable[[], None], *, syncs: bool) -> None:
        def end() -> None:
            running, self.running = self.running, None
            self.controller.is_stopped = False
            self.feed.forget()
            self.door.refuse()
            if running is not None:
                self._wait_while(lambda: self.door.is_busy)
                if syncs:
                    running.sync_appended()
            for address in self._addresses():
                address.suspend()
            self.door.close()
            end_broker()

        completely(end)

    def close(self) -> None:
        """The cluster is being closed: refuse requests, then close the broker if it runs.

        The faults of the disk end first, so that a test need not end them.
        """
        self.door.close()
        self.network.close()
        if self.running is not None:
            with self.disk.spared():
                self.running.close()

    def pause(self) -> None:
        """Neither receive nor send anything until `resume`. A broker that is down starts paused."""
        self.attach()
        if self.running is None:
            self._starts_paused = True
        else:
            self.door.pause()

    def resume(self) -> None:
        self._starts_paused = False
        self.door.resume()

    # What a test takes away

    def set_hidden(self, *, is_hidden: bool) -> None:
        self.attach()
        self.is_hidden = is_hidden

    def hold_metadata(self) -> None:
        """Keep the controller's changes from the broker until `release_metadata`."""
        self.attach()
        self.feed.is_held = True
        if self.running is not None:
            self.running.controller.on_change = self.feed.publish

    def release_metadata(self) -> None:
        self.feed.is_held = False
        self.feed.deliver()

    def _hear(self, delta: MetadataDelta) -> None:
        running = self.running
        if running is not None and delta.image.end_offset > running.core.image.end_offset:
            running.core.changed(delta)

    def swap_address(self, _other: object) -> None:
        raise ConfigError(
            f"broker {self.node_id} is the only one, and there is no other address to take: open "
            "with brokers=2 or more"
        )

    # The disk

    def slow_disk(self, delay_ms: int) -> None:
        self.attach()
        self.door.slow_disk.delay_ms = delay_ms

    def faulty_disk(self) -> Disk:
        """Return the disk whose faults the broker sees.

        The first call opens a running broker again, over that disk: a broker without faults shall
        not pay for the wrapper of its files. Requests wait meanwhile, and connections stay.
        """
        self.attach()
        running = self.running
        if running is not None and running.core.runtime.files is not self.disk:
            self._change_disk(running)
        return self.disk

    def _change_disk(self, running: RunningBroker) -> None:
        was_paused = self.door.is_paused
        self.door.pause()
        try:
            self._wait_while(lambda: self.door.is_busy)
            self._keep(running)
            running.sync_appended()
            completely(lambda: _close(running))
            opened = self._open_again(self._runtime.over(self.disk))
            if opened.core.interceptor is None:  # set at this broker alone
                opened.core.interceptor = running.core.interceptor
            self._serve(opened)
            for address in self._addresses():
                address.lead_to(opened.core, self.door)
        except BaseException:
            self._end(lambda: self.newest.abandon(loses_unsynced=False), syncs=False)
            raise
        if not was_paused:
            self.door.resume()


def _close(running: RunningBroker) -> None:
    running.close()
