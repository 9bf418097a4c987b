"""`Listening`: the address of one broker, kept over its restarts."""

from __future__ import annotations

from embedlog.errors import ConfigError
from embedlog.runtime.pending import Pending

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.broker.broker import Broker
    from embedlog.cluster.door import Door
    from embedlog.runtime.scheduler import Scheduler
    from embedlog.server.addresses import BrokerListener, ServedAddress

_DRAIN_MS = 100


class Listening:
    """Listener of one broker; open while the broker runs and has an address."""

    __slots__ = ("_allows_remote", "_core", "_door", "_listener", "advertised", "host", "port")

    def __init__(self, door: Door) -> None:
        self._door = door
        self._listener: BrokerListener | None = None
        self._core: Broker | None = None
        self._allows_remote = False
        self.host = ""
        self.port: int | None = None
        """The port to listen at; None before a call of `ask`."""
        self.advertised: tuple[str, int] | None = None
        """See `BrokerListener.advertised`; None before the first `open`."""

    def ask(self, host: str, port: int, *, allow_remote_plaintext: bool) -> None:
        """Set the address for the next `open`."""
        self.host, self.port = host, port
        self._allows_remote = allow_remote_plaintext

    def open(self, core: Broker) -> BrokerListener | None:
        """Let clients connect to the started broker. The listener has a thread of its own.

        Raises:
            OSError: the address cannot be listened on.
            ConfigError: other machines could reach the address, and `ask` did not allow that.
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
        try:
            listener.start()
        except BaseException:
            listener.served.close()
            raise
        self.port, self.advertised = listener.port, listener.advertised
        self._listener = listener
        return listener

    def drain(self, scheduler: Scheduler) -> None:
        """Answer requests for a while longer, so that clients learn about the new leaders.

        Kafka's brokers do the same after they hand leadership over. A client that receives the new
        leader in an answer moves at once. A client whose connection breaks asks for metadata, and
        some clients ask only once in several seconds.
        """
        if self._listener is not None and self._listener.connection_count:
            scheduler.wait(Pending(), _DRAIN_MS)

    def close(self) -> None:
        """Break every connection; keep the address for the next `open`."""
        self._core = None
        self._shut()

    def swap(self, other: Listening) -> None:
        """Exchange the addresses of two brokers; every connection breaks.

        Raises:
            ConfigError: one of the brokers has no address.
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
            listener.served.close()

    @property
    def served(self) -> ServedAddress | None:
        """The open address and its connections; None while the broker is down."""
        return None if self._listener is None else self._listener.served

    @property
    def signal_fd(self) -> int:
        """See `wire.net.listener.Listener.signal_fd`. Requires: the listener is open."""
        assert self._listener is not None, self.port
        return self._listener.signal_fd

    def forget(self) -> None:
        """Stop listening, and do not listen after the next start."""
        self._shut()
        self.port = None

    @property
    def address(self) -> str | None:
        """`host:port`, also while the broker is down; None without an address."""
        if self._listener is not None:
            return self._listener.address
        return None if self.port is None else f"{self.host}:{self.port}"
