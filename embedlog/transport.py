"""`Transport`: how a client's requests reach a broker; and the transport inside one process.

A client gives a request object and gets a `Pending` of the response object. In process the
transport calls `Broker.handle`; over TCP `client.network.network_client` turns the objects into
bytes. After a message is sent, both sides only read it: in process they hold the same object.
"""

from __future__ import annotations

from embedlog import errors
from embedlog.errors import ClosedError, KafkaError
from embedlog.runtime.forks import stays_in_parent
from embedlog.runtime.pending import Pending

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, Protocol

    from embedlog.runtime import Runtime
    from wire.records.encode.built import BuiltBatch
    from wire.schema import Message, R, Request

    Appended = tuple[int, int, int, int, bool, int, int]
    """The result of an append: first offset, last offset, append time in ms (-1 if the records keep
    their own timestamps), log start offset, whether the log already had the batch, the batch's
    latest timestamp, its size in bytes."""
    AppendOne = Callable[
        [str, bytes, int, bytes | BuiltBatch, int, int, bool], Appended | Pending[Appended] | None
    ]

    class HandleRequest(Protocol):
        """The signature of `Broker.handle`; the broker makes the context."""

        def __call__(self, context: Any, request: Request[R], /) -> R | Pending[R]:
            """Return the response, or a pending one."""

    class Link(Protocol):
        """The way from one transport to the only broker of a cluster: see `Transport`."""

        @property
        def loses_answers(self) -> bool: ...

        @property
        def failure_count(self) -> int: ...

        def handle(self, context: Any, request: Request[R]) -> R | Pending[R]:
            """See `HandleRequest`. The pending may also fail with `Network`."""

        def disk_error(self, topic: str, partition: int, /) -> Exception | None: ...

        def is_ready(self, node_id: int, /) -> bool: ...

        def prepare(self, node_id: int, /) -> int | None: ...

    class Writes(Protocol):
        """How requests are written to the network: each at once, or several in one write."""

        def hold(self) -> None:
            """Gather the requests that are sent from here on; `release`, which must follow, writes
            them.

            Use it for several requests that get answers. In a measurement with batches of 16 KiB
            and records of 1 KiB, one write for each request took the client 1.5 times as long. The
            broker, which then reads the requests one by one, took 1.4 times as long.
            """

        def release(self) -> None:
            """Write the gathered requests; from here on each request is written at once."""

    class Transport(Protocol):
        """Sends requests to the nodes of one cluster; each node answers in order.

        `concurrent` is True if many threads may call the transport side by side. If it is False,
        the caller admits one thread at a time, and only `wake` may be called by any thread.
        `is_driven` is True if other threads also run the duties of `runtime`, and False if only the
        client's own threads do.
        """

        concurrent: bool
        in_process: bool
        is_driven: bool
        is_authority: bool
        """True if answers about the existence of topics and partitions are final: the only broker
        is in this process."""
        is_closed: bool
        """True after `close`; a cluster of this process closes its transports."""
        runtime: Runtime
        before_end: Callable[[], None] | None
        """Called when a cluster of this process is closed before its client."""
        ends_soon: Callable[[], None] | None
        """Called when a cluster of this process is closed, or its `close` was put off: end the
        running call soon."""

        def disk_error(self, topic: str, partition: int, /) -> Exception | None:
            """Return the OSError behind a KAFKA_STORAGE_ERROR, or the CorruptRecord behind a
            CORRUPT_MESSAGE; the answer carries only the code. Only in process."""

        @property
        def loses_answers(self) -> bool:
            """True if the broker may execute a request whose answer is then lost; False if the only
            broker ends with its clients."""

        @property
        def writes(self) -> Writes:
            """Holds back requests, to write several of them at once."""

        @property
        def failure_count(self) -> int:
            """Number of connections that broke, or could not be made."""

        @property
        def makes_topics(self) -> bool:
            """False if the brokers are known not to create a topic that a client asks for."""

        def send(
            self,
            node_id: int,
            request: Request[R],
            *,
            version: int | None = None,
            timeout_ms: int | None = None,
        ) -> Pending[R]:
            """Send a request to `node_id`; never wait.

            ANY_NODE as `node_id` lets the transport choose. `version` None is the newest version
            that both sides know.

            `timeout_ms` replaces request.timeout.ms for an answer that takes long. The pending
            fails with a `KafkaError`: `Network` when the connection ended, `RequestTimedOut`,
            `UnsupportedVersion`. A request without an answer (acks 0) completes with None once its
            bytes have left the process.
            """

        def versions(self, node_id: int) -> Mapping[int, tuple[int, int]] | None:
            """Return API key -> (first, last) version that the node serves; None if unknown yet."""

        def set_nodes(
            self, nodes: Mapping[int, tuple[str, int]], cluster_id: str | None = None
        ) -> None:
            """Set the nodes of the cluster, their addresses and the cluster's id."""

        def set_coordinator(self, node_id: int, host: str, port: int) -> int:
            """Return the id of a second connection to a node, for requests to a coordinator only.

            Those requests then do not queue behind a fetch that waits, nor the fetch behind them.
            """

        def is_ready(self, node_id: int) -> bool:
            """Return whether a request to the node would be written at once."""

        def prepare(self, node_id: int) -> int | None:
            """Begin to connect to a node that is not ready, if an attempt is due.

            Return the milliseconds until the next attempt is due. None: wait for an event, not for
            a time.
            """

        def bootstrap_again(self) -> None:
            """Forget the cluster's nodes, and use the bootstrap addresses again."""

        def drop_requests(self, reason: str) -> None:
            """Fail all network requests: an interrupt left unknown which bytes were sent."""

        def wait(self, pending: Pending[Any], timeout_ms: int | None) -> bool:
            """Let answers arrive until `pending` is done or `timeout_ms` is over; return whether it
            is done.

            The wait may end earlier: `wake` ends it.
            """

        def poll(self) -> None:
            """Take the answers that have arrived and do the due work; never waits."""

        def wake(self) -> None:
            """End a wait early. Callable from any thread."""

        def close(self) -> None:
            """Give back connections and memory; open requests fail with `Network`."""


ANY_NODE = -1
"""A node id that lets the transport choose the node."""

BOOTSTRAP_NODES = -2
"""Bootstrap addresses have the ids -2, -3 and so on, until the first Metadata answer."""

COORDINATOR_NODES = 2**31 - 1
"""Second connections, for requests to a coordinator only, have ids from this id downwards."""


RECONNECT_MS = 50
"""Time between two tries to reach a stopped broker of this process."""


class NoWrites:
    """`Writes` in process, where a request is a call: there is nothing to gather."""

    def hold(self) -> None: ...

    def release(self) -> None: ...


class LocalTransport:
    """The common part of transports to brokers of this process.

    If no thread drives the brokers' background work, a call first does the work that is due, and
    at the end the work that it has caused. Thread-safe.
    """

    concurrent = True
    in_process = True
    is_driven = True
    is_authority = False
    writes = NoWrites()

    def __init__(
        self,
        make_context: Callable[[int, int], Any],
        versions: Mapping[int, tuple[int, int]],
        runtime: Runtime,
        owner: object,
    ) -> None:
        """`make_context(api_key, version)` makes the context that a broker gets with a request;
        `versions` are the versions that the broker serves.

        The transport keeps `owner`, the cluster, alive for clients that outlive the program's
        reference to it.
        """
        self.runtime = runtime
        self.before_end: Callable[[], None] | None = None
        self.ends_soon: Callable[[], None] | None = None
        """Called when the cluster's `close` was put off to the end of a call: end the call soon."""
        self._scheduler = runtime.scheduler
        self._make_context = make_context
        self._versions = versions
        self._owner = owner
        self._contexts: dict[type[Message], Any] = {}
        self.is_closed = False
        stays_in_parent(self)

    def versions(self, node_id: int) -> Mapping[int, tuple[int, int]]:
        return self._versions

    def set_nodes(
        self, nodes: Mapping[int, tuple[str, int]], cluster_id: str | None = None
    ) -> None:
        """Do nothing: every node of the cluster is in this process."""

    def set_coordinator(self, node_id: int, host: str, port: int) -> int:
        """Return `node_id`: in process no request delays another, so one connection is enough."""
        return node_id

    def bootstrap_again(self) -> None: ...

    def drop_requests(self, reason: str) -> None: ...

    def wait(self, pending: Pending[Any], timeout_ms: int | None) -> bool:
        return self.runtime.scheduler.wait(pending, timeout_ms)

    def poll(self) -> None:
        self.runtime.scheduler.run_due(self.runtime.clock.monotonic_ms())

    def wake(self) -> None:
        """Do nothing: a waiting thread wakes when another thread completes its pending."""

    def end(self) -> None:
        """Let the client send its records, then close it: the cluster is about to be closed."""
        if self.before_end is not None and not self.is_closed:
            self.before_end()
        self.close()
        if self.ends_soon is not None:
            self.ends_soon()

    def close(self) -> None:
        self.is_closed = True

    def _context(self, kind: type[Message], version: int | None) -> Any:
        if self.is_closed:
            raise ClosedError("the client was closed")
        known = kind.__declaration__
        assert known is not None, kind
        assert known.api is not None, kind
        chosen = newest_common(kind, self._versions.get(known.api)) if version is None else version
        context = self._make_context(known.api, chosen)
        if version is None:
            self._contexts[kind] = context
        return context


class InProcessTransport(LocalTransport):
    """Hands request objects to the only broker of a cluster, on the caller's thread.

    It has no connection that could break: only a request can fail. That changes with the first
    fault that a test injects into the broker: see `go_through`.
    """

    def __init__(
        self,
        handle: HandleRequest,
        make_context: Callable[[int, int], Any],
        versions: Mapping[int, tuple[int, int]],
        runtime: Runtime,
        *,
        makes_topics: Callable[[], bool] = lambda: True,
        disk_error: Callable[[str, int], Exception | None] = lambda _topic, _partition: None,
        append_one: AppendOne | None = None,
        is_authority: bool = False,
        owner: object = None,
    ) -> None:
        """`handle` is `Broker.handle`; `append` calls `append_one`. `makes_topics`, `is_authority`
        and `disk_error` are as in `Transport`, the other parameters as in `LocalTransport`."""
        super().__init__(make_context, versions, runtime, owner)
        self.is_authority = is_authority
        self._makes_topics = makes_topics
        self._link: Link = _DirectLink(handle, disk_error)
        self._now_ns = runtime.scheduler.now_ns
        self._handle = handle
        self._append_one: AppendOne = append_one or _is_not_there

    def send(
        self,
        node_id: int,
        request: Request[R],
        *,
        version: int | None = None,
        timeout_ms: int | None = None,
    ) -> Pending[R]:
        """Call the broker; the pending is done on return unless the broker has to wait.

        Work of the broker that is due by now is done first.
        """
        context = self._contexts.get(type(request)) if version is None else None
        pending: Pending[Any]
        if context is None or self.is_closed:
            try:
                context = self._context(type(request), version)
            except (ClosedError, KafkaError) as error:
                pending = Pending()
                pending.fail(error)
                return pending
        scheduler = self._scheduler
        due_ns = scheduler.next_call_ns
        if self._now_ns() >= due_ns:
            scheduler.drive()
            due_ns = scheduler.next_call_ns
        answer = self._handle(context, request)
        if scheduler.next_call_ns < due_ns:
            scheduler.drive()
        if type(answer) is Pending:
            return answer
        pending = Pending()
        pending.complete(answer)
        return pending

    def append(  # noqa: PLR0917  one call per record: see `append_one`
        self,
        topic: str,
        topic_id: bytes,
        partition: int,
        records: bytes | BuiltBatch,
        acks: int,
        timeout_ms: int,
        is_awaited: bool,
    ) -> Appended | Pending[Appended] | None:
        """Append a batch to a partition; return the result, see `Appended`.

        Return None, with nothing done, if a request must be sent instead, because an interceptor
        wants to see it. `is_awaited`: the calling thread waits for this very answer, and may as
        well wait for the disk in this call. Requires: `appends`.

        Raises:
            ClosedError: the client was closed.
            KafkaError: the broker refuses. The pending of an append that is not committed yet fails
                with the same errors.
        """
        if self.is_closed:
            raise ClosedError("the client was closed")
        scheduler = self._scheduler
        due_ns = scheduler.next_call_ns
        if self._now_ns() >= due_ns:
            scheduler.drive()
            due_ns = scheduler.next_call_ns
        answer = self._append_one(topic, topic_id, partition, records, acks, timeout_ms, is_awaited)
        if scheduler.next_call_ns < due_ns:
            scheduler.drive()
        return answer

    @property
    def appends(self) -> bool:
        """True if `append` works without a request."""
        return self._append_one is not _is_not_there

    @property
    def makes_topics(self) -> bool:
        return self._makes_topics()

    @property
    def loses_answers(self) -> bool:
        return self._link.loses_answers

    @property
    def failure_count(self) -> int:
        return self._link.failure_count

    def disk_error(self, topic: str, partition: int) -> Exception | None:
        return self._link.disk_error(topic, partition)

    def is_ready(self, node_id: int) -> bool:
        return self._link.is_ready(node_id)

    def prepare(self, node_id: int) -> int | None:
        return self._link.prepare(node_id)

    def go_through(self, link: Link) -> None:
        """From now on make no append without a request, and send every request through `link`."""
        self._link = link
        self._handle = link.handle
        self._append_one = _is_not_there


class _DirectLink:
    """The call of a broker that no test stops or pauses."""

    loses_answers = False
    failure_count = 0

    def __init__(
        self, handle: HandleRequest, disk_error: Callable[[str, int], Exception | None]
    ) -> None:
        self.handle = handle
        self.disk_error = disk_error

    def is_ready(self, _node_id: int) -> bool:
        return True

    def prepare(self, _node_id: int) -> int | None:
        return None


def _is_not_there(*_arguments: object) -> None:
    """Takes the place of `append_one` if the broker only takes requests."""


def newest_common(kind: type[Message], served: tuple[int, int] | None) -> int:
    """Return the newest version of a request that this library and a broker both know.

    Raises:
        UnsupportedVersion: no version is known to both.
    """
    known = kind.__declaration__
    assert known is not None, kind
    if served is not None:
        version = min(known.last_version, served[1])
        if version >= max(known.first_version, served[0]):
            return version
    raise errors.UnsupportedVersion(
        f"{known.name}: this client knows versions {known.first_version}-{known.last_version}, "
        f"the broker {'none' if served is None else f'{served[0]}-{served[1]}'}",
    )
