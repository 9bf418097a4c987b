"""The service of a listener: it decodes frames to requests, and encodes the broker's answers.

    wire.net.Listener -> BrokerService.handle -> Broker.handle -> answer, now or later -> frame

`BrokerService.handle` is the place that checks the version of a request. As in Kafka, an unknown
API, an unserved version or a malformed body closes the connection. One exception: an ApiVersions
request of an unknown version is answered in the form of version 0 with the served versions, so that
a newer client can repeat it in one of them.
"""

from __future__ import annotations

from struct import Struct

from embedlog import errors
from embedlog.broker import dispatch
from embedlog.broker.context import RequestContext
from embedlog.runtime.pending import Pending
from embedlog.server.advertising import LISTENER_NAME
from embedlog.server.heavy_requests import (
    LIGHT_PRODUCE_SIZE_MAX,
    LIGHT_SESSION_MAX,
    LIGHT_TOPICS_MAX,
    HeavyRequests,
    is_heavy,
    is_heavy_produce,
)
from wire.api_keys import ApiKey
from wire.compiler import decode_from
from wire.connection import ServerConnection
from wire.error_codes import ErrorCode
from wire.errors import MalformedMessage, MessageTooLarge, UnknownApi, UnknownVersion
from wire.headers import decode_request_header
from wire.registry import request_class

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, Protocol

    from embedlog.broker.broker import Broker
    from wire.net.connection import Connection
    from wire.net.reports import Reports
    from wire.schema import Payload, R, Request

    class RequestHandler(Protocol):
        """A `Broker`, or a `cluster.door.Door`, behind which a broker can be stopped and paused."""

        def handle(self, context: RequestContext, request: Request[R]) -> R | Pending[R]: ...


_PRODUCE = ApiKey.PRODUCE
_API_VERSIONS = ApiKey.API_VERSIONS
_SOFTWARE_NAMED_FROM = 3
_NOT_SERVED = (0, -1)
_NO_ANSWER: tuple[Payload, ...] = ()
_CORRELATION_ID = Struct(">i")
_COPIED_SIZE_MAX = 64 * 1024


class BrokerService:
    """Serves one broker to the connections of one listener, in the listener's thread.

    An unexpected exception closes one connection, and the listener reports it.

    `advertised` is the (host, port) for clients. In place of a host of "" or a port of 0 each
    client gets the host or the port that it connected to, which is right for any name or network.
    """

    def __init__(
        self,
        broker: Broker,
        advertised: tuple[str, int] = ("", 0),
        reports: Reports | None = None,
        *,
        has_thread: bool = False,
        door: RequestHandler | None = None,
    ) -> None:
        """With `has_thread`, heavy requests run in a second thread.

        `door`, if set, gets the requests in place of `broker`.
        """
        self._broker = broker
        self._door: RequestHandler = door or broker
        self._reports = reports
        self._advertised = advertised
        self._respond = ServerConnection().respond
        self._versions = dispatch.versions(broker.config)
        self._elements_max: int = broker.config.embedlog_max_request_elements
        self._answer_size_max: int = broker.config.embedlog_max_response_bytes
        # API key -> first and last served version, class of the requests.
        self._served: dict[int, tuple[int, int, type[Any]]] = {}
        # Version -> an ApiVersions response, and its frame before and after the correlation id.
        self._api_versions: dict[int, tuple[object, bytes, bytes]] = {}
        self._heavy: HeavyRequests | None = None
        self._has_thread = has_thread

    def lead_to(self, broker: Broker, door: RequestHandler) -> None:
        """Serve this broker, through this door, from the next request on."""
        self._broker, self._door = broker, door

    def connected(self, connection: Connection) -> None:
        host, port = self._advertised
        # One context for all requests of the connection, because only one is in flight at a time.
        connection.state = RequestContext(
            -1,
            -1,
            listener_name=LISTENER_NAME,
            client_host=connection.peer_host,
            advertised_host=host or connection.local_host,
            advertised_port=port or connection.local_port,
            connection=connection,
            in_process=False,
        )
        self._broker.parked.connection_opened(connection)

    def disconnected(self, connection: Connection) -> None:
        """Forget the connection, and abandon its parked fetch."""
        self._broker.parked.connection_closed(connection)

    def handle(self, connection: Connection, frame: Payload) -> Sequence[Payload] | None:
        """Check the version of a request, decode it, and let the broker handle it.

        Return the frame of the answer, or None if the answer comes later. The frame is empty for
        acks=0, or if this call closes the connection.
        """
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
            aside = self._has_thread
            size = len(frame)
            if api_key == _PRODUCE:
                if aside and size > LIGHT_PRODUCE_SIZE_MAX:
                    self._decode_aside(connection, request_type, frame, position)
                    return None
                request: Any
                request, _ = decode_from(request_type, version, frame, position, self._elements_max)
                if aside and is_heavy_produce(request):
                    self._set_aside(connection, lambda: request)
                    return None
            else:
                if aside and is_heavy(api_key, size):
                    self._decode_aside(connection, request_type, frame, position)
                    return None
                request, _ = decode_from(request_type, version, frame, position, self._elements_max)
                if aside and self._asks_for_much(api_key, request):
                    self._set_aside(connection, lambda: request)
                    return None
        except (MalformedMessage, UnknownApi, UnknownVersion) as error:
            self._cut_off(connection, error)
            return _NO_ANSWER
        answer = self._door.handle(context, request)
        if type(answer) is Pending and not answer.done():
            answer.add_callback(self._when_answered(context, request))
            return None
        return self._encode(context, request, answer)

    def _asks_for_much(self, api_key: int, request: Any) -> Any:
        """Return a true value if the request is short but takes long to answer."""
        if api_key == ApiKey.FETCH:
            session_id = request.session_id
            return (
                session_id and self._broker.fetch_sessions.size_of(session_id) > LIGHT_SESSION_MAX
            ) or (request.isolation_level and self._has_to_replay(request))
        if api_key != ApiKey.METADATA:
            return False
        return not request.topics and len(self._broker.image.topics_by_name) > LIGHT_TOPICS_MAX

    def _has_to_replay(self, request: Any) -> bool:
        """Return whether a read_committed fetch must read segments to find aborted transactions."""
        broker = self._broker
        partitions = broker.replica_manager.partitions
        for topic in request.topics:
            name = topic.topic or broker.topic_name(topic.topic_id)
            for asked in topic.partitions:
                found = partitions.get((name, asked.partition))
                if found is not None and not found.log.transactions.knows_aborted(
                    asked.fetch_offset
                ):
                    return True
        return False

    def _decode_aside(
        self, connection: Connection, request_type: type[Any], frame: Payload, position: int
    ) -> None:
        """Like `_set_aside`; the thread for heavy requests also decodes the body at `position`."""
        context: Any = connection.state
        version = context.api_version
        if len(frame) <= _COPIED_SIZE_MAX:
            # A view of a small frame would keep the whole receive buffer alive.
            frame = bytes(frame)
        limit = self._elements_max
        self._set_aside(
            connection, lambda: decode_from(request_type, version, frame, position, limit)[0]
        )

    def _set_aside(self, connection: Connection, request: Callable[[], Any]) -> None:
        """Let the thread for heavy requests handle and answer a request; park the connection."""
        if self._heavy is None:
            self._heavy = HeavyRequests(self._broker.runtime, self._heavy_failed)
        self._heavy.add(connection, lambda: self._work(connection, request))

    def _work(self, connection: Connection, decode: Callable[[], Any]) -> None:
        """Decode, handle and answer a request in the thread for heavy requests."""
        context = connection.state
        assert isinstance(context, RequestContext), context
        try:
            request = decode()
        except MalformedMessage as error:
            self._cut_off(connection, error)
            connection.respond(None)
            return
        answer = self._door.handle(context, request)
        if not connection.is_open:
            # The connection broke meanwhile: abandon the fetch that was parked for it just now.
            self._broker.parked.connection_closed(connection)
        if type(answer) is Pending and not answer.done():
            answer.add_callback(self._when_answered(context, request))
            return
        if context.api_key == _PRODUCE:
            # Produce answers are encoded only in the listener's thread.
            connection.respond_with(lambda: self._encode(context, request, answer))
        else:
            connection.respond(self._encode(context, request, answer))

    def _heavy_failed(self, connection: Connection, error: Exception) -> None:
        if self._reports is not None:
            self._reports.failed(f"a request of {connection.peer_host} failed", error)
        connection.close()
        connection.respond(None)

    def close(self) -> None:
        """End the thread for heavy requests, after the listener has ended."""
        if self._heavy is not None:
            self._heavy.close()

    def _serve(self, api_key: int) -> tuple[int, int, type[Any]]:
        """Add the API to `_served` and return its entry; versions (0, -1) if it is not served."""
        first, last = self._versions.get(api_key, _NOT_SERVED)
        if last < first:
            return first, last, object
        self._served[api_key] = served = (first, last, request_class(api_key))
        return served

    def _cut_off(self, connection: Connection, error: Exception | str) -> None:
        """Report a request that cannot be decoded or is not served, and close its connection."""
        if self._reports is not None:
            self._reports.cut_off(connection, "request", f"a request was not understood: {error}")
        connection.close()

    def turn(self) -> int | None:
        runtime = self._broker.runtime
        return runtime.scheduler.run_due(runtime.clock.monotonic_ms())

    def _when_answered(self, context: RequestContext, request: Any) -> Callable[[Any], None]:
        connection: Any = context.connection

        def answered(pending: Pending[Any]) -> None:
            # Leave encoding to the listener's thread: a thread of the application may run this.
            connection.respond_with(lambda: self._encode(context, request, pending))

        return answered

    def _encode(self, context: RequestContext, request: Any, answer: Any) -> Sequence[Payload]:
        """Return the frame of a complete answer, or an empty frame if no answer is to be sent."""
        if type(answer) is Pending:
            error = answer.error()
            if error is None:
                answer = answer.result()
            elif isinstance(error, errors.Network):
                # The broker is stopping. An error in an answer would look like the outcome of the
                # request. After a broken connection the client repeats the request.
                connection: Any = context.connection
                connection.close()
                return _NO_ANSWER
            else:
                assert isinstance(error, Exception), error
                answer = dispatch.error_response(request, context, error)
        if answer is None:
            return _NO_ANSWER
        api_key = context.api_key
        if api_key == _API_VERSIONS:
            _remember_software(context, request, answer)
            return self._encode_api_versions(context, answer)
        if api_key in (_PRODUCE, ApiKey.FETCH, ApiKey.SHARE_FETCH):
            # No check of the size: a Produce answer is as long as its request, and fetch.max.bytes
            # limits the answer of a fetch, except for a first batch that is larger (KIP-74).
            return self._respond(context.correlation_id, api_key, context.api_version, answer)
        return self._encode_within(context, request, answer)

    def _encode_within(
        self, context: RequestContext, request: Any, answer: Any
    ) -> Sequence[Payload]:
        """Return the frame of the answer, or an error if it exceeds embedlog.max.response.bytes."""
        arguments = context.correlation_id, context.api_key, context.api_version
        try:
            return self._respond(*arguments, answer, size_max=self._answer_size_max)
        except MessageTooLarge as too_large:
            error = errors.PolicyViolation(
                f"The answer has more than the {too_large.size_max} bytes of "
                "embedlog.max.response.bytes: ask for less at a time.",
            )
        refusal = dispatch.error_response(request, context, error)
        return _NO_ANSWER if refusal is None else self._respond(*arguments, refusal)

    def _encode_api_versions(self, context: RequestContext, answer: Any) -> Sequence[Payload]:
        """Return the frame of an ApiVersions answer, from a cache.

        This is the first request of every client, and most clients get the same answer.
        """
        version = context.api_version
        known = self._api_versions.get(version)
        if known is None or known[0] is not answer:
            frame = b"".join(self._respond(0, ApiKey.API_VERSIONS, version, answer))
            known = self._api_versions[version] = (answer, frame[:4], frame[8:])
        return (known[1] + _CORRELATION_ID.pack(context.correlation_id) + known[2],)

    def _refuse(self, context: RequestContext) -> Sequence[Payload]:
        """Close the connection after an unserved version; only ApiVersions gets an answer."""
        if context.api_key != ApiKey.API_VERSIONS:
            connection: Any = context.connection
            first, last = self._versions.get(context.api_key, _NOT_SERVED)
            why = _why_not_served(context.api_key, context.api_version, first, last)
            self._cut_off(connection, why)
            return _NO_ANSWER
        from wire.schemas.api_versions import ApiVersion, ApiVersionsResponse

        first, last = self._versions[ApiKey.API_VERSIONS]
        response = ApiVersionsResponse(
            error_code=ErrorCode.UNSUPPORTED_VERSION,
            api_keys=[ApiVersion(api_key=ApiKey.API_VERSIONS, min_version=first, max_version=last)],
        )
        return self._respond(context.correlation_id, ApiKey.API_VERSIONS, 0, response)


def _why_not_served(api_key: int, version: int, first: int, last: int) -> str:
    from wire.api_keys import NAMES

    if api_key in (ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE):
        return "SASL is not served: the client's security.protocol must be PLAINTEXT"
    served = f"versions {first} to {last} are" if last >= first else "it is not"
    return f"{NAMES.get(api_key, api_key)} version {version}: {served} served"


def _remember_software(context: RequestContext, request: Any, response: Any) -> None:
    # The handler has checked the names. Names that it refused are not stored.
    if context.api_version >= _SOFTWARE_NAMED_FROM and not response.error_code:
        context.client_software_name = request.client_software_name
        context.client_software_version = request.client_software_version
