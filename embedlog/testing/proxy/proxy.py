"""`Proxy`: a real cluster behind addresses of the test's own."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

from embedlog.client.connect import parse_address
from embedlog.client.network.tls_settings import tls_client
from embedlog.client.parse_settings import parse
from embedlog.client.settings import COMMON
from embedlog.errors import ClosedError, ConfigError
from embedlog.runtime import real_runtime
from embedlog.runtime.pending import Pending
from embedlog.testing.interception import Call, Stages
from embedlog.testing.proxy.addresses import replace_addresses
from embedlog.testing.proxy.gateway import Gateway, narrow_versions
from embedlog.testing.proxy.known import KnownTopics
from embedlog.testing.proxy.upstream import Upstream
from wire.api_keys import ApiKey

if TYPE_CHECKING:
    from socket import socket
    from typing import Unpack

    from embedlog.broker.context import RequestContext
    from embedlog.broker.listeners import Wrap
    from embedlog.cluster.interception import Interceptor
    from embedlog.testing.faults.faults import Faults
    from embedlog.testing.faults.hold import Hold
    from embedlog.testing.faults.options import FaultOptions, TriggerOptions
    from embedlog.testing.faults.rule import FaultRule
    from embedlog.testing.timeline.recording import Recording
    from embedlog.testing.toxics.toxic import Toxic
    from embedlog.testing.toxics.toxics import Toxics


class Proxy:
    """Stands before a real cluster of any number of brokers. A context manager.

    Clients connect to it in plaintext; they authenticate to the cluster through it. The proxy
    itself connects with the given client settings, in plaintext or over TLS.

    >>> import embedlog
    >>> with embedlog.open() as cluster:
    ...     address = cluster.listen("127.0.0.1", 0).address
    ...     with Proxy(address) as proxy, embedlog.Admin(proxy.bootstrap_servers) as admin:
    ...         sorted(admin.create_topics(["events"]).check())
    ['events']
    """

    def __init__(self, bootstrap_servers: str | Sequence[str], **settings: Any) -> None:
        """`settings` are settings of a client for the connections to the cluster, as
        `security_protocol="SSL"`.

        Raises:
            ConfigError: an address or a setting cannot be understood.
        """
        given = bootstrap_servers
        texts = given.split(",") if isinstance(given, str) else list(given)
        targets = [parse_address(each.strip()) for each in texts if each.strip()]
        if not targets:
            raise ConfigError(f"bootstrap_servers={given!r}: expected host:port")
        self.runtime = real_runtime()
        self._ends = ExitStack()
        self._is_closed = False
        self._interceptor: Interceptor | None = None
        self._wrap: Wrap | None = None
        self._upstream = Upstream(self.runtime.scheduler, tls_client(parse(COMMON, settings)))
        self._ends.callback(self._upstream.close)
        self._gateways: dict[int, Gateway] = {}
        self._known = KnownTopics()
        self._stages = Stages(self, answer=_forward)
        self._toxics: Toxics | None = None
        self.recording: Recording | None = None
        """The recording that `record` began last; None before the first one."""
        self._first = self._gateway(-1, targets)

    @property
    def bootstrap_servers(self) -> str:
        """`host:port` for clients."""
        host, port = self._first.address
        return f"{host}:{port}"

    @property
    def addresses(self) -> dict[int, str]:
        """`host:port` of each broker that an answer has named, by its number."""
        return {
            node_id: f"{each.address[0]}:{each.address[1]}"
            for node_id, each in sorted(self._gateways.items())
            if node_id >= 0
        }

    # What a test does

    @cached_property
    def faults(self) -> Faults:
        """The rules of `fault`, `hold` and `blackhole`: see `Kafka.faults`."""
        from embedlog.testing.faults.faults import Faults

        cluster: Any = self
        return Faults(cluster, self._stages, lambda: self.recording)

    def fault(self, *apis: str, **given: Unpack[FaultOptions]) -> FaultRule:
        """Make a rule: see `Kafka.fault`. The brokers of the cluster do the work.

        A rule for a topic knows it from the first Metadata answer on. `node` is the number of a
        broker that an answer has named. `action="stale-metadata"` needs `Kafka`.
        """
        return self.faults.add(*apis, **given)

    def hold(self, *apis: str, after_apply: bool = False, **given: Unpack[TriggerOptions]) -> Hold:
        """Hold requests, or with `after_apply` their answers: see `Kafka.hold`."""
        return self.faults.hold(*apis, after_apply=after_apply, **given)

    def blackhole(self, **given: Unpack[TriggerOptions]) -> Hold:
        """Let all requests of a client vanish: see `Kafka.blackhole`."""
        return self.faults.blackhole(**given)

    def record(self, *, frames: bool = False) -> Recording:
        """Record every request and answer: see `Kafka.record`. The brokers' own events are missing,
        as a proxy does not see them."""
        from embedlog.testing.timeline.recording import Recording

        if self.recording is not None:
            self.recording.end()
        self.recording = Recording(self.runtime.clock, self._stages, frames=frames)
        self._ends.callback(self.recording.end)
        return self.recording

    def toxic(self, *, cut: bool = False, **given: Any) -> Toxic:
        """Let connections of clients suffer: see `Kafka.toxic`."""
        from embedlog.testing.toxics.toxics import Toxics

        if self._toxics is None:
            self._toxics = Toxics(self)
            self._ends.callback(self._toxics.close)
        made = self._toxics.add(**given)
        if cut:
            self.cut_connections()
        return made

    def cut_connections(self) -> None:
        """Break every connection of clients, soon."""
        for each in list(self._gateways.values()):
            each.cut()

    # What the parts of the test kit use, as a `Kafka` and its cluster have it

    @property
    def cluster(self) -> Proxy:
        """The proxy itself, which stands for the cluster behind it."""
        return self

    @property
    def brokers(self) -> list[Gateway]:
        """The addresses of the proxy, which stand for the brokers."""
        return [each for _, each in sorted(self._gateways.items())]

    @property
    def is_closed(self) -> bool:
        """True once `close` began."""
        return self._is_closed

    def intercept(self, interceptor: Interceptor | None) -> None:
        """See `Cluster.intercept`."""
        self._interceptor = interceptor

    def wrap_sockets(self, wrap: Wrap | None) -> None:
        """See `Cluster.wrap_sockets`."""
        self._wrap = wrap

    # Requests

    def _gateway(self, node_id: int, targets: Sequence[tuple[str, int]]) -> Gateway:
        made = Gateway(
            node_id,
            targets,
            runtime=self.runtime,
            upstream=self._upstream,
            answer=self._answer,
            wrap=self._wrapped,
            known=self._known,
        )
        self._gateways[node_id] = made
        return made

    def _wrapped(self, sock: socket) -> socket:
        wrap = self._wrap
        return sock if wrap is None else wrap(sock)

    def _answer(self, gateway: Gateway, context: RequestContext, request: Any) -> Any:
        interceptor = self._interceptor
        broker: Any = gateway
        if interceptor is not None:
            answer = interceptor(broker, context, request)
        else:
            answer = gateway.forward(context, request)
        if not isinstance(answer, Pending):
            self._adapt(context.api_key, answer)
            return answer
        adapted: Pending[Any] = Pending()
        api_key = context.api_key

        def answered(done: Pending[Any]) -> None:
            error = done.error()
            if error is not None:
                adapted.fail(error)
                return
            try:
                self._adapt(api_key, done.result())
            except OSError as failed:  # no descriptors for another gateway
                adapted.fail(failed)
            else:
                adapted.complete(done.result())

        answer.add_callback(answered)
        return adapted

    def _adapt(self, api_key: int, answer: Any) -> None:
        """Put the proxy's addresses and versions into an answer of the cluster."""
        if answer is None:
            return
        if api_key == ApiKey.API_VERSIONS:
            narrow_versions(answer)
            return
        if api_key == ApiKey.METADATA:
            self._known.learn(answer)
        elif api_key == ApiKey.FETCH:
            answer.session_id = 0  # so each request names all its partitions, for the rules
        replace_addresses(api_key, answer, self._address_of)

    def _address_of(self, node_id: int, host: str, port: int) -> tuple[str, int]:
        if self._is_closed:
            raise ClosedError("the proxy was closed")
        if (host, port) in [each.address for each in self._gateways.values()]:
            return host, port  # adapted already: one answer for several clients
        found = self._gateways.get(node_id)
        if found is None:
            found = self._gateway(node_id, [(host, port)])
        found.targets = [(host, port)]
        return found.address

    # Life

    def close(self) -> None:
        """End all connections and addresses. Idempotent.

        Raises:
            UnfiredFault: a fault rule never acted.
        """
        self._is_closed = True
        faults: Faults | None = vars(self).get("faults")
        if faults is not None:
            faults.release()
        for each in list(self._gateways.values()):
            each.close()
        self._ends.close()
        if faults is not None:
            faults.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        if exception[0] is not None and "faults" in vars(self):
            self.faults.clear(may_miss=True)
        self.close()

    def __repr__(self) -> str:
        return f"<Proxy {self.bootstrap_servers}, {len(self.addresses)} brokers known>"


def _forward(call: Call) -> Any:
    gateway: Any = call.broker
    return gateway.forward(call.context, call.request)
