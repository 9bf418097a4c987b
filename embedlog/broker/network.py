"""The broker as a listener sees it: frames to requests, answers to frames, and the open address.

    wire.net.Listener -> BrokerService.handle -> Broker.handle -> answer, now or later -> frame

What cannot be understood closes the connection, as in Kafka: a version that is not served, an
unknown API, a body that is no such request. One exception: an ApiVersions request of an unknown
version is answered in the form of version 0, which names the versions that are served, so that a
newer client can ask again.
"""

from __future__ import annotations

from _thread import get_ident
from struct import Struct

from embedlog.broker import dispatch
from embedlog.broker.context import RequestContext
from embedlog.errors import ConfigError
from embedlog.logs import Log
from embedlog.pending import Pending
from wire.api_keys import ApiKey
from wire.compiler import decode_from
from wire.connection import ServerConnection
from wire.error_codes import ErrorCode
from wire.errors import MalformedMessage, UnknownApi, UnknownVersion
from wire.headers import decode_request_header
from wire.lone_produce import LoneProduce
from wire.registry import request_class

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from embedlog.broker.broker import Broker
    from embedlog.config import BrokerConfig
    from embedlog.runtime.threads import Thread
    from wire.net.limits import ListenerLimits
    from wire.net.listener import Listener
    from wire.net.peer import Connection
    from wire.net.reports import Reports
    from wire.schema import Payload

_log = Log("listener")

LISTENER_NAME = "PLAINTEXT"
LOOPBACK = "127.0.0.1"
ANY_ADDRESS = "0.0.0.0"
_PRODUCE = ApiKey.PRODUCE
_API_VERSIONS = ApiKey.API_VERSIONS
_SOFTWARE_NAMED_FROM = 3
_JOIN_TIMEOUT_MS = 10_000
_NO_ANSWER: tuple[Payload, ...] = ()
_CORRELATION_ID = Struct(">i")


class BrokerService:
    """Serves one broker to the connections of one listener, in the listener's thread.

    A defect, in a handler or here, is the listener's to report; it costs one connection.

    `advertised` is the (host, port) that clients are told; None tells each the address that it
    connected to, which is right whatever name or network it came by. So does a host of "".
    """

    def __init__(
        self,
        broker: Broker,
        advertised: tuple[str, int] | None = None,
        reports: Reports | None = None,
    ) -> None:
        self._broker = broker
        self._reports = reports
        self._advertised = advertised
        self._respond = ServerConnection().respond
        self._lone_produce = LoneProduce()
        # By API key: the versions that are served, and the class of the requests.
        self._served: dict[int, tuple[int, int, type[Any]]] = {}
        # By version: an ApiVersions response, and its frame but for the correlation id.
        self._api_versions: dict[int, tuple[object, bytes, bytes]] = {}

    def connected(self, connection: Connection) -> None:
        """Give the connection the context of its requests."""
        host, port = self._advertised or (connection.local_host, connection.local_port)
        host = host or connection.local_host
        # One for all requests of the connection: there is one in flight at a time.
        connection.state = RequestContext(
            -1,
            -1,
            listener_name=LISTENER_NAME,
            client_host=connection.peer_host,
            advertised_host=host,
            advertised_port=port,
            connection=connection,
            in_process=False,
        )

    def disconnected(self, connection: Connection) -> None:
        """Let the broker forget what the connection waited for."""
        self._broker.connection_closed(connection)

    def handle(self, connection: Connection, frame: Payload) -> Sequence[Payload] | None:
        """Answer one request; an empty answer for acks 0 and for what closes the connection."""
        context = connection.state
        assert isinstance(context, RequestContext), context
        try:
            api_key, version, correlation_id, client_id, position = decode_request_header(frame)
            context.api_key = api_key
            context.api_version = version
            context.correlation_id = correlation_id
            context.client_id = client_id
            first, last, request_type = self._served.get(api_key) or self._serve(api_key)
            if not first <= version <= last:
                return self._refuse(context)
            if api_key == _PRODUCE:
                request: Any = self._lone_produce.decode(version, frame, position)
            else:
                request, _ = decode_from(request_type, version, frame, position)
        except (MalformedMessage, UnknownApi, UnknownVersion) as error:
            self._cut_off(connection, error)
            return _NO_ANSWER
        answer = self._broker.handle(context, request)
        if type(answer) is Pending and not answer.done():
            answer.add_callback(self._when_answered(context, request))
            return None
        return self._encode(context, request, answer)

    def _serve(self, api_key: int) -> tuple[int, int, type[Any]]:
        """What `_served` will say of the API; no versions for one that is not served."""
        first, last = dispatch.served_versions(api_key)
        if last < first:
            return first, last, object
        self._served[api_key] = served = (first, last, request_class(api_key))
        return served

    def _cut_off(self, connection: Connection, error: Exception | str) -> None:
        """Close the connection: nobody knows what its peer wants."""
        if self._reports is not None:
            self._reports.cut_off(connection, "request", f"a request was not understood: {error}")
        connection.close()

    def turn(self) -> int | None:
        """Run the broker's duties that are due."""
        runtime = self._broker.runtime
        return runtime.scheduler.run_due(runtime.clock.monotonic_ms())

    def _when_answered(self, context: RequestContext, request: Any) -> Callable[[Any], None]:
        connection: Any = context.connection

        def answered(pending: Pending[Any]) -> None:
            # This may be a thread of the application: the work is left to the listener's.
            connection.respond_with(lambda: self._encode(context, request, pending))

        return answered

    def _encode(self, context: RequestContext, request: Any, answer: Any) -> Sequence[Payload]:
        """The frame of an answer that is there; empty when there is none to send."""
        if type(answer) is Pending:
            error = answer.error()
            if error is None:
                answer = answer.result()
            else:
                assert isinstance(error, Exception), error
                answer = dispatch.error_response(request, context, error)
        if answer is None:
            return _NO_ANSWER
        api_key = context.api_key
        if api_key == _PRODUCE:
            version, correlation_id = context.api_version, context.correlation_id
            return self._lone_produce.respond(correlation_id, version, answer)
        if api_key == _API_VERSIONS:
            _remember_software(context, request, answer)
            return self._encode_api_versions(context, answer)
        return self._respond(context.correlation_id, api_key, context.api_version, answer)

    def _encode_api_versions(self, context: RequestContext, answer: Any) -> Sequence[Payload]:
        """As `_encode`; every client asks for it first, and nearly all get the same."""
        version = context.api_version
        known = self._api_versions.get(version)
        if known is None or known[0] is not answer:
            frame = b"".join(self._respond(0, ApiKey.API_VERSIONS, version, answer))
            known = self._api_versions[version] = (answer, frame[:4], frame[8:])
        return (known[1] + _CORRELATION_ID.pack(context.correlation_id) + known[2],)

    def _refuse(self, context: RequestContext) -> Sequence[Payload]:
        """Answer a version that is not served; None of them but ApiVersions has an answer."""
        if context.api_key != ApiKey.API_VERSIONS:
            connection: Any = context.connection
            self._cut_off(connection, _why_not_served(context.api_key, context.api_version))
            return _NO_ANSWER
        from wire.schemas.api_versions import ApiVersion, ApiVersionsResponse

        _, first, last = dispatch.HANDLERS[ApiKey.API_VERSIONS]
        response = ApiVersionsResponse(
            error_code=ErrorCode.UNSUPPORTED_VERSION,
            api_keys=[ApiVersion(api_key=ApiKey.API_VERSIONS, min_version=first, max_version=last)],
        )
        return self._respond(context.correlation_id, ApiKey.API_VERSIONS, 0, response)


class ServedAddress:
    """An open address and the thread that serves it. It keeps the broker alive, and no cluster:
    one that is forgotten can be told so, and closed, although its listener's thread runs.
    """

    def __init__(self, broker: Broker, listener: Listener, endpoint: tuple[str, str, int]) -> None:
        self._broker = broker
        self._listener = listener
        self._endpoint = endpoint
        self._thread: Thread | None = None
        self._thread_id = 0
        self.address = _joined(*listener.address)
        self.is_closed = False
        broker.endpoints.append(endpoint)
        self._note_addresses()
        _log.info("listening on %s", self.address)
        self._resign = broker.runtime.scheduler.on_notify(listener.wake)

    def run(self) -> None:
        """See `BrokerListener.run`."""
        self._thread_id = get_ident()
        try:
            self._listener.run()
        finally:
            self._give_back()

    def start(self) -> None:
        """See `BrokerListener.start`."""
        scheduler = self._broker.runtime.scheduler
        name = f"embedlog-listener-{self._listener.address[1]}"
        self._thread = scheduler.start_thread(self.run, name)

    @property
    def signal_fd(self) -> int:
        """See `wire.net.listener.Listener.signal_fd`."""
        return self._listener.signal_fd

    def stop(self) -> None:
        """See `BrokerListener.stop`."""
        self._listener.stop()

    def close(self) -> None:
        """See `BrokerListener.close`."""
        if self._thread is None:
            self._listener.close()
            self._give_back()
            return
        self._listener.stop()
        # The collector may find a forgotten cluster in any thread, also in this address's own.
        if self._thread_id != get_ident():
            self._thread.join(_JOIN_TIMEOUT_MS)

    def _give_back(self) -> None:
        self.is_closed = True
        self._resign()
        if self._endpoint in self._broker.endpoints:
            self._broker.endpoints.remove(self._endpoint)
            _log.info("no longer listening on %s", self.address)
            self._note_addresses()

    def _note_addresses(self) -> None:
        endpoints = self._broker.endpoints
        self._broker.log_manager.note_addresses(
            [_joined(host, port) for _, host, port in endpoints]
        )


class BrokerListener:
    """An address at which a broker is served; made by `listen`.

    Either the caller's thread runs it (`run`, until `stop`), or one of its own does (`start`).
    `host` and `port` are the ones in use, also when port 0 asked for a free one.
    """

    def __init__(
        self,
        broker: Broker,
        host: str,
        port: int,
        *,
        allow_remote_plaintext: bool = False,
        owner: object = None,
    ) -> None:
        """`owner` is kept alive for as long as this object is."""
        from wire.net.listener import Listener, RemoteAddress
        from wire.net.reports import Reports

        self._owner = owner
        advertised = advertised_address(broker.config)
        reports = Reports(_log)
        try:
            listener = Listener(
                BrokerService(broker, advertised, reports),
                host,
                port,
                limits=limits_from(broker.config),
                allow_remote=allow_remote_plaintext,
                reports=reports,
            )
        except RemoteAddress as refused:
            raise ConfigError(
                f"{refused} can be reached from other machines, and there is neither encryption "
                "nor a password; to allow it: allow_remote_plaintext=True, --allow-remote-plaintext"
            ) from None
        self.host, self.port = listener.address
        told_host, told_port = advertised or listener.address
        endpoint = (LISTENER_NAME, told_host or self.host, told_port)
        self.served = ServedAddress(broker, listener, endpoint)
        """What goes on when this object is gone."""
        self._show_address(broker.config, is_first=len(broker.endpoints) == 1)

    @property
    def address(self) -> str:
        """`host:port`, as clients take it for their bootstrap servers."""
        return self.served.address

    @property
    def signal_fd(self) -> int:
        """See `wire.net.listener.Listener.signal_fd`."""
        return self.served.signal_fd

    def run(self) -> None:
        """Serve in the calling thread until `stop`, then close the address."""
        self.served.run()

    def start(self) -> None:
        """Serve in a thread of its own until `close`."""
        self.served.start()

    def stop(self) -> None:
        """Make `run` return soon. From any thread, or a signal handler."""
        self.served.stop()

    def close(self) -> None:
        """Stop and close every connection; when this returns the address is free again."""
        self.served.close()

    def __repr__(self) -> str:
        return f"<BrokerListener {self.address}{', closed' if self.served.is_closed else ''}>"

    def _show_address(self, config: BrokerConfig, *, is_first: bool) -> None:
        """Let the setting `listeners` say what is served."""
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
) -> BrokerListener:
    """Open an address for `broker`; connections wait until the listener runs.

    What is not given says the setting `listeners`, for the first listener; else it is loopback,
    and `default_port`. Where that setting leaves out the host (`PLAINTEXT://:9092`) it means every
    address in Kafka. Here it does so if other machines are allowed, and means loopback otherwise.
    The result keeps `owner` alive.

    Raises:
        OSError: the address cannot be listened on; `filename` is the address.
        ConfigError: other machines could reach it, and that was not allowed.
    """
    named = None if broker.endpoints else listen_address(broker.config)
    if host is None:
        host = named[0] if named else LOOPBACK
        if not host:
            host = ANY_ADDRESS if allow_remote_plaintext else LOOPBACK
    if port is None:
        port = named[1] if named else default_port
    try:
        return BrokerListener(
            broker, host, port, allow_remote_plaintext=allow_remote_plaintext, owner=owner
        )
    except OSError as error:
        error.filename = f"{host}:{port}"
        raise


def limits_from(config: BrokerConfig) -> ListenerLimits:
    """The listener's limits: those of the settings that were made, ours for the others.

    A request size that was set is for all requests, and limits for an address that were set hold
    for loopback too: whoever sets them wants to see them.
    """
    from wire.net.limits import ListenerLimits

    values: dict[str, Any] = {}
    for setting, limits in _SETTINGS.items():
        value = config.value(setting)
        if config.is_set(setting) and isinstance(value, int) and value >= 0:
            values.update(dict.fromkeys(limits, value))
    if _PER_ADDRESS & config.set_names():
        values["limit_loopback"] = True
    return ListenerLimits(**values)


_SETTINGS = {
    "socket.request.max.bytes": ("produce_size_max", "request_size_max"),
    "queued.max.request.bytes": ("receive_size_max",),
    "max.connections": ("connection_count_max",),
    "max.connections.per.ip": ("address_connection_count_max",),
    "max.connection.creation.rate": ("accept_rate_max",),
    "connections.max.idle.ms": ("idle_ms",),
}
_PER_ADDRESS = {"max.connections.per.ip", "max.connection.creation.rate"}


def advertised_address(config: BrokerConfig) -> tuple[str, int] | None:
    """What `advertised.listeners` says; None when it was not set.

    A host of "" stands for the one that each client connected to.

    Raises:
        ConfigError: it does not name one plaintext address.
    """
    return _address(config, "advertised.listeners")


def listen_address(config: BrokerConfig) -> tuple[str, int] | None:
    """What `listeners` says; None when it was not set. Not to be asked once something listens.

    A host of "" stands for every address of the machine.

    Raises:
        ConfigError: it does not name one plaintext address.
    """
    return _address(config, "listeners") if config.is_set("listeners") else None


def _address(config: BrokerConfig, setting: str) -> tuple[str, int] | None:
    listeners = config.value(setting)
    if not listeners:
        return None
    assert isinstance(listeners, tuple), (setting, listeners)
    # Kafka's own file names the controller's listener beside it. Here nobody connects to that one.
    unserved = tuple(f"{name}://" for name in config.controller_listener_names)
    served = [each for each in listeners if not each.startswith(unserved)]
    name, _, address = served[0].partition("://") if served else ("", "", "")
    host, colon, port = address.rpartition(":")
    if len(served) != 1 or name != LISTENER_NAME or not colon or not port.isdecimal():
        raise ConfigError(f"{setting}={','.join(listeners)}: expected {LISTENER_NAME}://host:port")
    return host.removeprefix("[").removesuffix("]"), int(port)


def _why_not_served(api_key: int, version: int) -> str:
    from wire.api_keys import NAMES

    if api_key in (ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE):
        return "SASL is not served: the client's security.protocol must be PLAINTEXT"
    first, last = dispatch.served_versions(api_key)
    served = f"versions {first} to {last} are" if last >= first else "it is not"
    return f"{NAMES.get(api_key, api_key)} version {version}: {served} served"


def _joined(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _remember_software(context: RequestContext, request: Any, response: Any) -> None:
    # The names were checked by the handler; what it refused is not repeated anywhere.
    if context.api_version >= _SOFTWARE_NAMED_FROM and not response.error_code:
        context.client_software_name = request.client_software_name
        context.client_software_version = request.client_software_version
