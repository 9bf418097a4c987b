"""`Gateway`: the proxy's address for one broker."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from embedlog import errors
from embedlog.broker import dispatch
from embedlog.broker.context import RequestContext
from embedlog.logger import Logger
from embedlog.runtime.pending import Pending
from embedlog.testing.proxy.known import KnownTopics, NoParkedFetches, NoSessions
from embedlog.testing.proxy.upstream import Link, Upstream
from wire.api_keys import ApiKey
from wire.compiler import decode_from
from wire.connection import ServerConnection
from wire.errors import MalformedMessage, UnknownApi
from wire.headers import decode_request_header
from wire.net.listener import Listener
from wire.registry import request_class, valid_versions

if TYPE_CHECKING:
    from embedlog.broker.listeners import Wrap
    from embedlog.runtime import Runtime
    from wire.net.connection import Connection
    from wire.schema import Payload

    Answer = Callable[["Gateway", RequestContext, Any], Any]

_log = Logger("proxy")
_NO_ANSWER: tuple[Payload, ...] = ()


class Gateway:
    """Stands for one broker: it listens, decodes requests, and has them answered.

    It has the attributes of a broker that the stages of the test kit use.
    """

    def __init__(
        self,
        node_id: int,
        targets: Sequence[tuple[str, int]],
        *,
        runtime: Runtime,
        upstream: Upstream,
        answer: Answer,
        wrap: Wrap,
        known: KnownTopics,
    ) -> None:
        """`answer(gateway, context, request)` returns the answer or a pending of it."""
        self.node_id = node_id
        """The broker's number; -1 for the addresses that the user gave."""
        self.targets = list(targets)
        """Addresses of the broker. A connection takes the first, and the next one takes the next.
        """
        self.runtime = runtime
        self.image = known
        self.fetch_sessions = NoSessions()
        self.parked = NoParkedFetches()
        self._upstream = upstream
        self._answer = answer
        self._respond = ServerConnection().respond
        self._listener = Listener(self, "127.0.0.1", 0, wrap=wrap)
        self._links: dict[Connection, Link] = {}
        self._thread = runtime.scheduler.start_thread(self._listener.run, "embedlog-gateway")

    @property
    def address(self) -> tuple[str, int]:
        """Host and port for clients."""
        return self._listener.address

    def topic_name(self, topic_id: bytes) -> str:
        """Return the name of a topic that an answer has named, or ""."""
        return self.image.names_by_id.get(topic_id, "")

    def forward(self, context: RequestContext, request: Any) -> Pending[Any]:
        """Send a request to the broker, over the link of the client's connection."""
        connection: Any = context.connection
        link = self._links.get(connection)
        if link is None:
            gone: Pending[Any] = Pending()
            gone.fail(errors.Network("the client has closed its connection"))
            return gone
        return self._upstream.send(link, request, context.api_version, context.client_id)

    @property
    def is_running(self) -> bool:
        """True: the proxy does not know whether its broker runs."""
        return True

    @property
    def core(self) -> Gateway:
        """Itself, as a handle of a broker has it."""
        return self

    def cut(self) -> None:
        """Break all connections of clients, soon."""
        self._listener.cut()

    def close(self) -> None:
        """Stop listening."""
        self._listener.stop()
        self._thread.join()

    # The service of the listener

    def connected(self, connection: Connection) -> None:
        host, port = self.targets[0]
        self.targets.append(self.targets.pop(0))
        self._links[connection] = Link(host, port)
        connection.state = RequestContext(
            -1, -1, client_host=connection.peer_host, connection=connection, in_process=False
        )

    def disconnected(self, connection: Connection) -> None:
        link = self._links.pop(connection, None)
        if link is not None:
            self._upstream.drop(link)

    def handle(self, connection: Connection, frame: Payload) -> Sequence[Payload] | None:
        context = connection.state
        assert isinstance(context, RequestContext), context
        try:
            key, version, correlation_id, client_id, position = decode_request_header(frame)
            first, last = _known_versions(key)
            if not first <= version <= last:
                raise MalformedMessage(f"API {key}, version {version}")
            request, _ = decode_from(request_class(key), version, bytes(frame), position)
        except MalformedMessage as error:
            _log.warning("the proxy cannot read a request of %s: %s", connection.peer_host, error)
            connection.close()
            return _NO_ANSWER
        context.api_key, context.api_version = key, version
        context.correlation_id, context.client_id = correlation_id, client_id
        answer = self._answer(self, context, request)
        if type(answer) is Pending and not answer.done():

            def answered(done: Pending[Any]) -> None:
                connection.respond_with(lambda: self._encode(connection, request, done))

            answer.add_callback(answered)
            return None
        return self._encode(connection, request, answer)

    def turn(self) -> int | None:
        scheduler = self.runtime.scheduler
        return scheduler.run_due(self.runtime.clock.monotonic_ms())

    def _encode(self, connection: Connection, request: Any, answer: Any) -> Sequence[Payload]:
        context: Any = connection.state
        if type(answer) is Pending:
            error = answer.error()
            if isinstance(error, errors.Network):
                connection.close()
                return _NO_ANSWER
            if error is not None:
                assert isinstance(error, Exception), error
                answer = dispatch.error_response(request, context, error)
            else:
                answer = answer.result()
        if answer is None:
            return _NO_ANSWER
        version = context.api_version
        if context.api_key == ApiKey.API_VERSIONS and answer.error_code:
            version = 0  # the broker does not know the version, and answers in the oldest form
        return self._respond(context.correlation_id, context.api_key, version, answer)


def _known_versions(key: int) -> tuple[int, int]:
    try:
        return valid_versions(key)
    except UnknownApi:
        return 0, -1


def narrow_versions(answer: Any) -> None:
    """Leave out of an ApiVersions answer what the proxy cannot decode, in place."""
    kept = []
    for each in answer.api_keys:
        first, last = _known_versions(each.api_key)
        each.min_version = max(each.min_version, first)
        each.max_version = min(each.max_version, last)
        if each.min_version <= each.max_version:
            kept.append(each)
    answer.api_keys = kept
