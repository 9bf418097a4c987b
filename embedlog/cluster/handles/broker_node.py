"""`BrokerNode`: a test's handle of one broker, to stop, kill, pause and inspect it."""

from __future__ import annotations

from embedlog.errors import ClosedError
from embedlog.runtime.outer_call import outer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    from embedlog.broker.broker import Broker
    from embedlog.cluster.handles.broker_disk import BrokerDisk
    from embedlog.cluster.lone_member import LoneMember
    from embedlog.cluster.member import ClusterMember
    from embedlog.cluster.running_broker import RunningBroker
    from embedlog.transport import Transport

    Connect = Callable[[int, str | None, object], Transport]

    class State(Protocol):
        """The state of a broker."""

        @property
        def running(self) -> RunningBroker | None:
            """The broker while it runs."""

        @property
        def is_paused(self) -> bool: ...


class BrokerNode:
    """One broker of a cluster. `Cluster.broker` returns the handle.

    >>> import embedlog
    >>> with embedlog.open() as cluster:
    ...     cluster.broker().kill()
    ...     cluster.broker().is_running
    False
    """

    __slots__ = ("_address", "_connect", "_member", "_state", "node_id", "rack")

    def __init__(
        self,
        node_id: int,
        state: Callable[[], State],
        connect: Connect,
        *,
        rack: str | None,
        address: Callable[[], str | None],
        member: Callable[[], ClusterMember | LoneMember],
    ) -> None:
        """`connect(node_id, client_id, owner)` makes a transport to the broker. `member()` takes
        the faults."""
        self.node_id = node_id
        """The broker's number, node.id."""
        self.rack = rack
        """The setting broker.rack; None if it is not set."""
        self._state = state
        self._connect = connect
        self._address = address
        self._member = member

    @property
    def is_running(self) -> bool:
        """False after `stop` or `kill`, until `start`. A paused broker is running."""
        return self._state().running is not None

    @property
    def is_paused(self) -> bool:
        """True between `pause` and `resume`."""
        return self._state().is_paused

    @property
    def address(self) -> str | None:
        """`host:port` of its listener, also while the broker is down; None without a listener."""
        return self._address()

    @property
    def core(self) -> Broker:
        """The broker itself: its request door and its parts.

        Raises:
            ClosedError: the broker does not run.
        """
        running = self._state().running
        if running is None:
            raise ClosedError(f"broker {self.node_id} does not run")
        return running.core

    @outer
    def connect(self, client_id: str | None = None) -> Transport:
        """Return a transport to this broker alone: see `Cluster.connect`."""
        return self._connect(self.node_id, client_id, self)

    def share_metrics(self) -> dict[tuple[str, str, int], dict[str, int]]:
        """Return numbers of the share partitions in memory, by group, topic and partition.

        InFlightMessageCount and InFlightBatchCount are Kafka's metrics. AcquiredCount counts the
        records that members hold, DeliveredCount.2 the records that were delivered twice and are
        not over, LockTimeoutCount the records that came back because a lock expired.

        Raises:
            ClosedError: the broker does not run.

        >>> import embedlog
        >>> with embedlog.open() as cluster:
        ...     cluster.broker().share_metrics()
        {}
        """
        return self.core.sharing.metrics()

    # Faults

    @outer
    def start(self) -> None:
        """Start the broker again, on its directory and at its former address.

        Raises:
            IllegalState: the broker runs, or the controller cannot be reached.
        """
        self._member().start()

    @outer
    def stop(self) -> None:
        """Stop the broker cleanly: other brokers lead before it goes. A broker that is down stays
        down."""
        self._member().stop()

    @outer
    def kill(self, *, lose_unsynced: bool = False) -> None:
        """End the broker as SIGKILL does, or with `lose_unsynced` as a loss of power does.

        After a restart the broker has everything that it had written, or only the data that was
        synced to disk. The controller learns of the kill at once. The only broker of a cluster
        takes the controller down with it.

        Raises:
            IllegalState: the broker does not run.
        """
        self._member().kill(lose_unsynced=lose_unsynced)

    @outer
    def pause(self) -> None:
        """Stop the broker from receiving and sending, as SIGSTOP does.

        A broker that is down starts paused. The controller fences one of several brokers after
        broker.session.timeout.ms.
        """
        self._member().pause()

    @outer
    def resume(self) -> None:
        """End a pause. The broker continues and does not know how long the pause took."""
        self._member().resume()

    @property
    def disk(self) -> BrokerDisk:
        """Faults of the broker's disk."""
        from embedlog.cluster.handles.broker_disk import BrokerDisk

        return BrokerDisk(self._member())

    @outer
    def swap_address(self, other: BrokerNode) -> None:
        """Let the two brokers listen at each other's address, as after a move to other machines.

        Raises:
            ConfigError: a broker has no listener, or the cluster has only one broker.
        """
        self._member().swap_address(other._member())

    @outer
    def hide(self) -> None:
        """Leave the broker out of metadata for clients. It still serves connected clients."""
        self._member().set_hidden(is_hidden=True)

    @outer
    def show(self) -> None:
        """End `hide`."""
        self._member().set_hidden(is_hidden=False)

    @outer
    def hold_metadata(self) -> None:
        """Keep metadata changes from the broker until `release_metadata`."""
        self._member().hold_metadata()

    @outer
    def release_metadata(self) -> None:
        """Deliver the metadata changes that the broker missed, in order."""
        self._member().release_metadata()

    def __repr__(self) -> str:
        state = "paused" if self.is_paused else "running" if self.is_running else "down"
        return f"<BrokerNode {self.node_id}, {state}>"
