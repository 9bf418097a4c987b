"""`BrokerNode`: one broker of a cluster in the hand of a test, to be stopped, killed, paused."""

from __future__ import annotations

from embedlog.errors import ClosedError, ConfigError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from embedlog.broker.broker import Broker
    from embedlog.cluster.handles.broker_disk import BrokerDisk
    from embedlog.cluster.member import Member
    from embedlog.cluster.node import Node
    from embedlog.transport import Transport

    Connect = Callable[[int, str | None, object], Transport]


class BrokerNode:
    """One broker of a cluster; `Cluster.broker` gives it. To stop it, or to let worse happen to it,
    takes a cluster of several.

    >>> import embedlog
    >>> with embedlog.open(brokers=3) as cluster:
    ...     cluster.broker(2).kill()
    ...     cluster.broker(2).is_running
    False
    """

    __slots__ = ("_connect", "_found", "_node", "node_id", "rack")

    def __init__(
        self,
        node_id: int,
        node: Callable[[], Node | None],
        connect: Connect,
        *,
        rack: str | None,
        member: Member | None = None,
    ) -> None:
        """`node()` is the broker while it runs; `connect(node_id, client_id, owner)` makes a
        transport to it; `member` is its part in a cluster of several.
        """
        self.node_id = node_id
        """Its number in the cluster."""
        self.rack = rack
        """Where it stands."""
        self._node = node
        self._connect = connect
        self._found = member

    @property
    def is_running(self) -> bool:
        """Was it started, and not stopped or killed since? A paused broker runs."""
        return self._node() is not None

    @property
    def is_paused(self) -> bool:
        """Is it paused?"""
        return self._found is not None and self._found.door.is_paused

    @property
    def address(self) -> str | None:
        """`host:port` of its listener, also while it does not run; None without a listener."""
        if self._found is not None:
            return self._found.listening.address
        endpoints = self.core.endpoints
        return f"{endpoints[0][1]}:{endpoints[0][2]}" if endpoints else None

    @property
    def core(self) -> Broker:
        """The broker behind its door.

        Raises:
            ClosedError: it does not run.
        """
        node = self._node()
        if node is None:
            raise ClosedError(f"broker {self.node_id} does not run")
        return node.core

    def connect(self, client_id: str | None = None) -> Transport:
        """A transport to this broker alone: see `Cluster.connect`."""
        return self._connect(self.node_id, client_id, self)

    @property
    def _member(self) -> Member:
        if self._found is None:
            raise ConfigError(
                "the only broker of a cluster cannot be stopped, killed or paused, as it is the "
                "controller too: open with brokers=2 or more, or close the cluster"
            )
        return self._found

    # What may happen to it

    def start(self) -> None:
        """Start it again, on what its directory holds and at the address it had.

        Raises:
            IllegalState: it runs, or the controller does not, or cannot be reached.
        """
        self._member.start()

    def stop(self) -> None:
        """Stop it in order: others lead before it goes.

        Raises:
            IllegalState: it does not run.
        """
        self._member.stop()

    def kill(self, *, lose_unsynced: bool = False) -> None:
        """End it without a word, as `kill -9`; `lose_unsynced`: as a loss of power.

        What it had written is there when it starts again, or only what was synced to its disk. The
        controller hears of it at once.

        Raises:
            IllegalState: it does not run.
        """
        self._member.kill(lose_unsynced=lose_unsynced)

    def pause(self) -> None:
        """Let it neither hear nor say anything, as SIGSTOP; the controller gives it up after
        broker.session.timeout.ms.

        Raises:
            IllegalState: it does not run.
        """
        self._member.pause()

    def resume(self) -> None:
        """End a pause: it goes on where it was, and does not know how long that took."""
        self._member.resume()

    @property
    def disk(self) -> BrokerDisk:
        """What may happen to its disk."""
        from embedlog.cluster.handles.broker_disk import BrokerDisk

        return BrokerDisk(self._member)

    def swap_address(self, other: BrokerNode) -> None:
        """Let the two listen at each other's address, as where processes were moved about.

        Raises:
            ConfigError: one of them does not listen.
        """
        self._member.listening.swap(other._member.listening)

    def hide(self) -> None:
        """Leave it out of what clients are told of the cluster; it goes on serving who knows it."""
        self._member.is_hidden = True

    def show(self) -> None:
        """End `hide`."""
        self._member.is_hidden = False

    def hold_metadata(self) -> None:
        """Keep it in the dark: it hears of no change of the metadata until `release_metadata`."""
        self._member.feed.is_held = True

    def release_metadata(self) -> None:
        """Let it hear of every change that it missed, in order."""
        self._member.feed.is_held = False
        self._member.feed.deliver()

    def __repr__(self) -> str:
        state = "paused" if self.is_paused else "running" if self.is_running else "down"
        return f"<BrokerNode {self.node_id}, {state}>"
