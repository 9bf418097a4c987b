"""`BrokerNode`: a test's handle of one broker, to stop, kill, pause and inspect it."""

from __future__ import annotations

from embedlog.errors import ClosedError, ConfigError
from embedlog.runtime.outer_call import outer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from embedlog.broker.broker import Broker
    from embedlog.cluster.handles.broker_disk import BrokerDisk
    from embedlog.cluster.member import ClusterMember
    from embedlog.cluster.running_broker import RunningBroker
    from embedlog.transport import Transport

    Connect = Callable[[int, str | None, object], Transport]


class BrokerNode:
    """One broker of a cluster. `Cluster.broker` returns the handle.

    Faults need a cluster of several brokers.

    >>> import embedlog
    >>> with embedlog.open(brokers=3) as cluster:
    ...     cluster.broker(2).kill()
    ...     cluster.broker(2).is_running
    False
    """

    __slots__ = ("_connect", "_optional_member", "_running", "node_id", "rack")

    def __init__(
        self,
        node_id: int,
        running: Callable[[], RunningBroker | None],
        connect: Connect,
        *,
        rack: str | None,
        member: ClusterMember | None = None,
    ) -> None:
        """`running()` returns the broker while it runs. `connect(node_id, client_id, owner)` makes
        a transport to it. `member` is None for a single broker.
        """
        self.node_id = node_id
        """The broker's number, node.id."""
        self.rack = rack
        """The setting broker.rack; None if it is not set."""
        self._running = running
        self._connect = connect
        self._optional_member = member

    @property
    def is_running(self) -> bool:
        """False after `stop` or `kill`, until `start`. A paused broker is running."""
        return self._running() is not None

    @property
    def is_paused(self) -> bool:
        """True between `pause` and `resume`."""
        return self._optional_member is not None and self._optional_member.door.is_paused

    @property
    def address(self) -> str | None:
        """`host:port` of its listener, also while the broker is down; None without a listener."""
        if self._optional_member is not None:
            return self._optional_member.listening.address
        endpoints = self.core.endpoints
        return f"{endpoints[0][1]}:{endpoints[0][2]}" if endpoints else None

    @property
    def core(self) -> Broker:
        """The broker itself: its request door and its parts.

        Raises:
            ClosedError: the broker does not run.
        """
        running = self._running()
        if running is None:
            raise ClosedError(f"broker {self.node_id} does not run")
        return running.core

    @outer
    def connect(self, client_id: str | None = None) -> Transport:
        """Return a transport to this broker alone: see `Cluster.connect`."""
        return self._connect(self.node_id, client_id, self)

    @property
    def _member(self) -> ClusterMember:
        if self._optional_member is None:
            raise ConfigError(
                "faults need several brokers (stop, kill, pause, hide, disk, metadata): open with "
                "brokers=2 or more; the only broker of a cluster is the controller too"
            )
        return self._optional_member

    # Faults

    @outer
    def start(self) -> None:
        """Start the broker again, on its directory and at its former address.

        Raises:
            IllegalState: the broker runs, or the controller cannot be reached.
        """
        self._member.start()

    @outer
    def stop(self) -> None:
        """Stop the broker cleanly: other brokers lead before it goes.

        Raises:
            IllegalState: the broker does not run.
        """
        self._member.stop()

    @outer
    def kill(self, *, lose_unsynced: bool = False) -> None:
        """End the broker as SIGKILL does, or with `lose_unsynced` as a loss of power does.

        After a restart the broker has everything that it had written, or only the data that was
        synced to disk. The controller learns of the kill at once.

        Raises:
            IllegalState: the broker does not run.
        """
        self._member.kill(lose_unsynced=lose_unsynced)

    @outer
    def pause(self) -> None:
        """Stop the broker from receiving and sending, as SIGSTOP does.

        The controller fences the broker after broker.session.timeout.ms.

        Raises:
            IllegalState: the broker does not run.
        """
        self._member.pause()

    @outer
    def resume(self) -> None:
        """End a pause. The broker continues and does not know how long the pause took."""
        self._member.resume()

    @property
    def disk(self) -> BrokerDisk:
        """Faults of the broker's disk."""
        from embedlog.cluster.handles.broker_disk import BrokerDisk

        return BrokerDisk(self._member)

    @outer
    def swap_address(self, other: BrokerNode) -> None:
        """Let the two brokers listen at each other's address, as after a move to other machines.

        Raises:
            ConfigError: a broker has no listener.
        """
        self._member.listening.swap(other._member.listening)

    def hide(self) -> None:
        """Leave the broker out of metadata for clients. It still serves connected clients."""
        self._member.presence.is_hidden = True

    def show(self) -> None:
        """End `hide`."""
        self._member.presence.is_hidden = False

    def hold_metadata(self) -> None:
        """Keep metadata changes from the broker until `release_metadata`."""
        self._member.feed.is_held = True

    @outer
    def release_metadata(self) -> None:
        """Deliver the metadata changes that the broker missed, in order."""
        self._member.feed.is_held = False
        self._member.feed.deliver()

    def __repr__(self) -> str:
        state = "paused" if self.is_paused else "running" if self.is_running else "down"
        return f"<BrokerNode {self.node_id}, {state}>"
