"""The address of one broker of several: the same one after each restart."""

from __future__ import annotations

from embedlog.errors import ConfigError
from embedlog.runtime.pending import Pending

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.broker.broker import Broker
    from embedlog.cluster.door import Door
    from embedlog.runtime.scheduler import Scheduler
    from embedlog.server.addresses import BrokerListener

_DRAIN_MS = 100


class Listening:
    """Where clients reach a broker, if anywhere; it is open while the broker runs."""

    __slots__ = ("_allows_remote", "_core", "_door", "_listener", "host", "port")

    def __init__(self, door: Door) -> None:
        self._door = door
        self._listener: BrokerListener | None = None
        self._core: Broker | None = None
        self._allows_remote = False
        self.host = ""
        self.port: int | None = None
        """None where nobody ever listened."""

    def ask(self, host: str, port: int, *, allow_remote_plaintext: bool) -> None:
        """Listen there from the next `open` on."""
        self.host, self.port = host, port
        self._allows_remote = allow_remote_plaintext

    def open(self, core: Broker) -> BrokerListener | None:
        """Let clients connect to a broker that has started, in a thread of the listener's own.

        Raises:
            OSError: the address cannot be listened on.
            ConfigError: other machines could reach it, and that was not allowed.
        """
        self._core = core
        if self.port is None:
            return None
        from embedlog.server.addresses import listen

        listener = listen(
            core,
            self.host,
            self.port,
            allow_remote_plaintext=self._allows_remote,
            door=self._door,
        )
        self.port = listener.port
        self._listener = listener
        listener.start()
        return listener

    def drain(self, scheduler: Scheduler) -> None:
        """Let clients hear that others lead, in answers to what they ask, before the address goes.

        Kafka's brokers, too, answer for a while after they have handed over. A client that is told
        who leads goes there at once; one whose connection breaks asks for metadata, which some do
        once in several seconds.
        """
        if self._listener is not None and self._listener.connection_count:
            scheduler.wait(Pending(), _DRAIN_MS)

    def close(self) -> None:
        """The broker is gone, and every connection breaks; the address is kept for the next."""
        self._core = None
        self._shut()

    def swap(self, other: Listening) -> None:
        """Listen at each other's address from here on; every connection breaks.

        Raises:
            ConfigError: one of them has none.
        """
        if self.port is None or other.port is None:
            raise ConfigError("there is no address to swap: call listen of the cluster first")
        for each in (self, other):
            each._shut()
        self.host, other.host = other.host, self.host
        self.port, other.port = other.port, self.port
        for each in (self, other):
            if each._core is not None:
                each.open(each._core)

    def _shut(self) -> None:
        listener, self._listener = self._listener, None
        if listener is not None:
            listener.close()

    @property
    def signal_fd(self) -> int:
        """See `wire.net.listener.Listener.signal_fd`. Requires: it is open."""
        assert self._listener is not None, self.port
        return self._listener.signal_fd

    def forget(self) -> None:
        """Listen no longer, after restarts neither."""
        self._shut()
        self.port = None

    @property
    def address(self) -> str | None:
        """`host:port`, whether the broker runs or not; None where nobody ever listened."""
        if self._listener is not None:
            return self._listener.address
        return None if self.port is None else f"{self.host}:{self.port}"
