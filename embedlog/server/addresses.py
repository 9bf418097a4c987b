"""Open addresses of a broker: choose them by the settings, listen, and serve them in a thread."""

from __future__ import annotations

from _thread import get_ident

from embedlog.errors import ConfigError
from embedlog.logger import Logger
from embedlog.runtime.outer_call import outer, outer_close
from embedlog.server.advertising import (
    ANY_ADDRESS,
    LISTENER_NAME,
    LOOPBACK,
    address_of,
    advertised_address,
)
from embedlog.server.service import BrokerService

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from socket import socket
    from typing import Any

    from embedlog.broker.broker import Broker
    from embedlog.broker.listeners import Wrap
    from embedlog.config import BrokerConfig
    from embedlog.runtime.threads import Thread
    from embedlog.server.service import RequestHandler
    from wire.net.connection import Connections
    from wire.net.limits import ListenerLimits
    from wire.net.listener import Listener

_log = Logger("listener")

_JOIN_TIMEOUT_MS = 10_000


class ServedAddress:
    """An open address and the thread that serves it.

    It refers to the broker but not to the cluster. So the garbage collector can find and close a
    cluster that the program has forgotten, although the thread of its listener still runs.
    """

    def __init__(
        self,
        broker: Broker,
        door: RequestHandler,
        listen: Callable[[Broker, RequestHandler, int, Wrap], tuple[BrokerService, Listener]],
        port: int,
        advertised: tuple[str, int],
    ) -> None:
        """Open the address. `listen(broker, door, port, wrap)` makes its listener.

        See `BrokerService` for `door` and `advertised`, `Listener` for `wrap`.
        """
        self._broker = broker
        self._listen = listen
        self._service, self._listener = listen(broker, door, port, self.wrapped)
        host, port = self._listener.address
        self._endpoint = (LISTENER_NAME, advertised[0] or host, advertised[1] or port)
        self._thread: Thread | None = None
        self._thread_id = 0
        self.address = _joined(host, port)
        self.is_closed = False
        self._is_suspended = False
        self._begin()

    def _begin(self) -> None:
        self._broker.endpoints.append(self._endpoint)
        self._note_addresses()
        _log.info("listening on %s", self.address)
        self._resign = self._broker.runtime.scheduler.on_notify(self._listener.wake)
        self._broker.listeners.cuts.append(self._listener.cut)

    @property
    def place(self) -> tuple[str, int]:
        """The host and port."""
        return self._listener.address

    def run(self) -> None:
        self._thread_id = get_ident()
        try:
            self._listener.run()
        finally:
            self._give_back()

    @property
    def connection_count(self) -> int:
        return self._listener.connection_count

    @property
    def connections(self) -> Connections:
        """The open connections. The listener's thread changes them."""
        return self._listener.connections

    def start(self) -> None:
        name = f"embedlog-listener-{self.place[1]}"
        self._thread = self._broker.runtime.scheduler.start_thread(self.run, name)

    @property
    def signal_fd(self) -> int:
        return self._listener.signal_fd

    def stop(self) -> None:
        self._listener.stop()

    def close(self) -> None:
        self.is_closed = True
        if not self._is_suspended:
            self._end()

    def suspend(self) -> None:
        """Break every connection and free the port, until `resume`."""
        self._is_suspended = True
        self._end()

    def _end(self) -> None:
        if self._thread is None:
            self._listener.close()
            self._give_back()
            return
        self._listener.stop()
        self._join()

    def _join(self) -> None:
        # The garbage collector may close a forgotten cluster in any thread, even in the thread of
        # this address, which cannot join itself.
        if self._thread is not None and self._thread_id != get_ident():
            self._thread.join(_JOIN_TIMEOUT_MS)

    def resume(self, broker: Broker, door: RequestHandler) -> None:
        """Serve a broker that has started again, at the same port and in a new thread.

        Raises:
            OSError: the port is taken.
        """
        self._join()  # a suspension in this address's own thread did not wait for its end
        try:
            service, listener = self._listen(broker, door, self.place[1], self.wrapped)
        except OSError as error:
            error.filename = self.address
            raise
        self._broker, self._service, self._listener = broker, service, listener
        self._thread, self._thread_id, self._is_suspended = None, 0, False
        self._begin()
        self.start()

    def wrapped(self, sock: socket) -> socket:
        """Return the socket to use in place of a newly accepted one: see `Listeners`."""
        return self._broker.listeners.wrapped(sock)

    def lead_to(self, broker: Broker, door: RequestHandler) -> None:
        """Pass requests to `door`, and serve `broker`; the connections stay."""
        if broker is not self._broker:
            broker.endpoints.append(self._endpoint)
            broker.listeners.cuts.append(self._listener.cut)
            self._broker = broker
            self._note_addresses()
        self._service.lead_to(broker, door)

    def _give_back(self) -> None:
        self.is_closed = self.is_closed or not self._is_suspended
        self._service.close()
        self._resign()
        if self._listener.cut in self._broker.listeners.cuts:
            self._broker.listeners.cuts.remove(self._listener.cut)
        if self._endpoint in self._broker.endpoints:
            self._broker.endpoints.remove(self._endpoint)
            _log.info("no longer listening on %s", self.address)
            self._note_addresses()

    def _note_addresses(self) -> None:
        self._broker.log_manager.note_addresses(
            [_joined(host, port) for _, host, port in self._broker.endpoints]
        )


class BrokerListener:
    """An open address of a broker; `listen` makes it.

    Either the caller's thread serves it (`run`, until `stop`), or a thread of its own (`start`).
    `port` is the port that the system chose if the caller asked for port 0.
    """

    def __init__(
        self,
        broker: Broker,
        host: str,
        port: int,
        *,
        allow_remote_plaintext: bool = False,
        owner: object = None,
        door: RequestHandler | None = None,
    ) -> None:
        """Keep the `owner` alive. `door`, if set, gets the requests in place of `broker`."""
        from wire.net.acceptor import RemoteAddress
        from wire.net.listener import Listener
        from wire.net.reports import Reports

        self._owner = owner
        advertised = advertised_address(broker.config, host)
        reports = Reports(_log)

        def open_at(
            broker: Broker, door: RequestHandler, port: int, wrap: Wrap
        ) -> tuple[BrokerService, Listener]:
            service = BrokerService(broker, advertised, reports, has_thread=True, door=door)
            limits, allows = limits_from(broker.config), allow_remote_plaintext
            return service, Listener(
                service,
                host,
                port,
                limits=limits,
                allow_remote=allows,
                reports=reports,
                wrap=wrap,
            )

        try:
            self.served = ServedAddress(broker, door or broker, open_at, port, advertised)
            """The address and its thread, which may outlive this object."""
        except RemoteAddress as refused:
            raise ConfigError(
                f"{refused} can be reached from other machines, and there is neither encryption "
                "nor a password; to allow it: allow_remote_plaintext=True, --allow-remote-plaintext"
            ) from None
        self.host, self.port = self.served.place
        self.advertised = (advertised[0], advertised[1] or self.port)
        """The address that clients get; a host of "" stands for the host of their connection."""
        self._show_address(broker.config, is_first=len(broker.endpoints) == 1)

    @property
    def address(self) -> str:
        """`host:port`, as in the bootstrap servers of clients."""
        return self.served.address

    @property
    def signal_fd(self) -> int:
        """The descriptor for `signal.set_wakeup_fd` on Windows, where signals do not end a wait."""
        return self.served.signal_fd

    @property
    def connection_count(self) -> int:
        return self.served.connection_count

    @outer
    def run(self) -> None:
        """Serve in the calling thread until `stop`, then close the address."""
        self.served.run()

    def start(self) -> None:
        """Serve in a new thread until `close`."""
        self.served.start()

    def stop(self) -> None:
        """Make `run` return soon. Callable from any thread and from a signal handler."""
        self.served.stop()

    @outer_close(in_callbacks=False)
    def close(self) -> None:
        """Close every connection; on return the address is free again."""
        self.served.close()

    def _ends_soon(self) -> None:
        self.served.stop()

    def __repr__(self) -> str:
        return f"<BrokerListener {self.address}{', closed' if self.served.is_closed else ''}>"

    def _show_address(self, config: BrokerConfig, *, is_first: bool) -> None:
        """Add the address to the setting `listeners`."""
        others = () if is_first else config.listeners
        config.set_static("listeners", ",".join((*others, f"{LISTENER_NAME}://{self.address}")))


def listen(
    broker: Broker,
    host: str | None = None,
    port: int | None = None,
    *,
    allow_remote_plaintext: bool = False,
    default_port: int = 0,
    owner: object = None,
    door: RequestHandler | None = None,
) -> BrokerListener:
    """Open an address for `broker`; connections wait until the listener runs.

    The first listener of a broker takes a missing `host` or `port` from the setting `listeners`, if
    it is set. Later listeners, and brokers without the setting, take loopback and `default_port`. A
    setting without a host (`PLAINTEXT://:9092`) means every address of the machine, as in Kafka, if
    `allow_remote_plaintext` is true, and loopback if it is false. The result keeps a reference to
    `owner`. `door`, if set, gets the requests in place of `broker`.

    Raises:
        OSError: the address cannot be opened; the error's `filename` is the address.
        ConfigError: other machines could reach the address, but `allow_remote_plaintext` is false.
    """
    named = None
    if not broker.endpoints and broker.config.is_set("listeners"):
        named = address_of(broker.config, "listeners")
    if host is None:
        host = named[0] if named else LOOPBACK
        if not host:
            host = ANY_ADDRESS if allow_remote_plaintext else LOOPBACK
    if port is None:
        port = named[1] if named else default_port
    try:
        return BrokerListener(
            broker,
            host,
            port,
            allow_remote_plaintext=allow_remote_plaintext,
            owner=owner,
            door=door,
        )
    except OSError as error:
        error.filename = f"{host}:{port}"
        raise


def limits_from(config: BrokerConfig) -> ListenerLimits:
    """Return the limits of a listener: the user's settings, and embedlog's defaults for the rest.

    A limit for one client address holds for loopback as well, because the user who sets it wants to
    see it work.
    """
    from wire.net.limits import ListenerLimits

    values: dict[str, Any] = {}
    for setting, limit in _SETTINGS.items():
        value = config.value(setting)
        if config.is_set(setting) and isinstance(value, int) and value >= 0:
            values[limit] = value
    if _PER_ADDRESS & config.set_names():
        values["limit_loopback"] = True
    return ListenerLimits(**values)


_SETTINGS = {
    "socket.request.max.bytes": "request_size_max",
    "queued.max.request.bytes": "receive_size_max",
    "max.connections": "connection_count_max",
    "max.connections.per.ip": "address_connection_count_max",
    "max.connection.creation.rate": "accept_rate_max",
    "connections.max.idle.ms": "idle_ms",
}
_PER_ADDRESS = {"max.connections.per.ip", "max.connection.creation.rate"}


def _joined(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
