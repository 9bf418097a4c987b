"""`Transport`: how a client's request reaches a broker, and the one that stays in the process.

A client gives a request object and gets a `Pending` of the response object. In process that is a
call of `Broker.handle`; `client.network_client` makes bytes of the same objects. Whoever holds a
message after it was sent only reads it: in process both sides hold the same one.
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
    """First and last offset, append time (-1: the records'), log start offset, whether it was there
    already, its latest timestamp, bytes."""
    AppendOne = Callable[
        [str, bytes, int, bytes | BuiltBatch, int, int, bool], Appended | Pending[Appended] | None
    ]

    class HandleRequest(Protocol):
        """What `Broker.handle` is; the context is of the broker's making."""

        def __call__(self, context: Any, request: Request[R], /) -> R | Pending[R]:
            """Answer a request, or promise to."""

    class Writes(Protocol):
        """How requests that are sent leave: each at once, or several in one write."""

        def hold(self) -> None:
            """Gather what is sent from here on; `release`, which must follow, writes it at once.

            For several requests that have answers: of 1 KiB records in batches of 16 KiB the client
            took 1.5 times as long with a write for each, and the broker, which then reads them one
            by one, 1.4 times.
            """

        def release(self) -> None:
            """Write what was gathered, and each request at once from here on."""

    class Transport(Protocol):
        """Requests to the nodes of one cluster, answered in order for each node.

        `concurrent` says whether many threads may call it side by side. When it is False a caller
        makes sure of one thread at a time; only `wake` is free. `is_driven` says whether others
        run the duties of `runtime` too; when it is False only the client's own threads do.
        `loses_answers` says whether a request may be done and its answer lost: not where the only
        broker ends with its clients.
        """

        concurrent: bool
        in_process: bool
        is_driven: bool
        loses_answers: bool
        runtime: Runtime
        before_end: Callable[[], None] | None
        """What the client does when a cluster of this process is closed before it."""
        disk_error: Callable[[str, int], Exception | None]
        """(topic, partition) -> the OSError behind a KAFKA_STORAGE_ERROR, or the CorruptRecord
        behind a CORRUPT_MESSAGE: only the code travels. In process; elsewhere nobody knows."""

        @property
        def writes(self) -> Writes:
            """For several requests at once."""

        @property
        def failure_count(self) -> int:
            """Connections that broke, or could not be made."""

        @property
        def makes_topics(self) -> bool:
            """May a topic that is asked for be made for that? False only where it is known."""

        def send(
            self,
            node_id: int,
            request: Request[R],
            *,
            version: int | None = None,
            timeout_ms: int | None = None,
        ) -> Pending[R]:
            """Send to `node_id` (ANY_NODE: whichever is best) at `version` (None: the newest both
            sides know). Never waits.

            `timeout_ms` replaces request.timeout.ms for an answer that takes long. The pending
            fails with a `KafkaError`: `Network` when the connection ended, `RequestTimedOut`,
            `UnsupportedVersion`. A request without an answer (acks 0) completes with None once its
            bytes have left the process.
            """

        def versions(self, node_id: int) -> Mapping[int, tuple[int, int]] | None:
            """(first, last) by API key as the node said; None when it was not asked yet."""

        def set_nodes(
            self, nodes: Mapping[int, tuple[str, int]], cluster_id: str | None = None
        ) -> None:
            """The cluster's nodes, their addresses and its id, as Metadata told them."""

        def set_coordinator(self, node_id: int, host: str, port: int) -> int:
            """The id to send to for a connection to that node which only a coordinator's requests
            use: they do not queue behind a fetch that waits, nor it behind them.
            """

        def is_ready(self, node_id: int) -> bool:
            """Would a request to the node go out at once?"""

        def prepare(self, node_id: int) -> int | None:
            """Begin to connect to a node that is not ready, if that may be tried now.

            Milliseconds until it may be; None when there is nothing to do but wait for news.
            """

        def bootstrap_again(self) -> None:
            """Forget the cluster's nodes: only the addresses given at first are believed in."""

        def drop_requests(self, reason: str) -> None:
            """Fail what was asked over a network: nobody knows any more what of it was sent."""

        def wait(self, pending: Pending[Any], timeout_ms: int | None) -> bool:
            """Let answers arrive until `pending` is done or time is over; say whether it is done.

            Not a promise to stay that long: `wake` ends it early.
            """

        def poll(self) -> None:
            """Take what has arrived and do what is due; never waits."""

        def wake(self) -> None:
            """End a wait early. Callable from any thread."""

        def close(self) -> None:
            """Give back connections and memory; open requests fail with `Network`."""


ANY_NODE = -1
"""As a node id: let the transport choose."""

BOOTSTRAP_NODES = -2
"""From here downwards the ids of nodes known by address only, before the first Metadata."""

COORDINATOR_NODES = 2**31 - 1
"""From here downwards the ids of second connections, for a coordinator's requests only."""


class NoWrites:
    """In process nothing is written."""

    def hold(self) -> None:
        """Nothing to gather."""

    def release(self) -> None:
        """Nothing was gathered."""


class LocalTransport:
    """What transports to brokers of this process have in common: nothing of them is on a wire.

    Where no thread drives the brokers' background work, a call that finds some of it due does that.
    Many threads may use it.
    """

    concurrent = True
    in_process = True
    is_driven = True
    writes = NoWrites()

    def __init__(
        self,
        make_context: Callable[[int, int], Any],
        versions: Mapping[int, tuple[int, int]],
        runtime: Runtime,
        owner: object,
    ) -> None:
        """`make_context(api_key, version)` is what a broker gets beside the request; `versions`
        what it serves. `owner` is kept alive: the cluster, for clients that outlive its name.
        """
        self.runtime = runtime
        self.before_end: Callable[[], None] | None = None
        self._scheduler = runtime.scheduler
        self._make_context = make_context
        self._versions = versions
        self._owner = owner
        self._contexts: dict[type[Message], Any] = {}
        self._is_closed = False
        stays_in_parent(self)

    def versions(self, node_id: int) -> Mapping[int, tuple[int, int]]:
        return self._versions

    def set_nodes(
        self, nodes: Mapping[int, tuple[str, int]], cluster_id: str | None = None
    ) -> None:
        """Nothing to know: every node of the cluster is in this process."""

    def set_coordinator(self, node_id: int, host: str, port: int) -> int:
        """The node itself: no request stands in another's way."""
        return node_id

    def bootstrap_again(self) -> None:
        """Nothing to forget."""

    def drop_requests(self, reason: str) -> None:
        """Nothing is on a wire."""

    def wait(self, pending: Pending[Any], timeout_ms: int | None) -> bool:
        return self.runtime.scheduler.wait(pending, timeout_ms)

    def poll(self) -> None:
        self.runtime.scheduler.run_due(self.runtime.clock.monotonic_ms())

    def wake(self) -> None:
        """Nothing to do: a waiting thread holds a pending that somebody completes."""

    def end(self) -> None:
        """The cluster is about to be closed: let the client send what it holds, then close."""
        if self.before_end is not None and not self._is_closed:
            self.before_end()
        self.close()

    def close(self) -> None:
        self._is_closed = True

    def _context(self, kind: type[Message], version: int | None) -> Any:
        if self._is_closed:
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

    It has no connection that could break: what fails is the request.
    """

    loses_answers = False
    failure_count = 0

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
        owner: object = None,
    ) -> None:
        """`handle` is `Broker.handle`; `makes_topics` says whether the broker makes topics that
        are asked for; `disk_error(topic, partition)` is the attribute of that name; `append_one`
        is what `append` calls. The rest is as `LocalTransport` has it.
        """
        super().__init__(make_context, versions, runtime, owner)
        self._makes_topics = makes_topics
        self.disk_error = disk_error
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
        """Ask the broker; the pending is done on return unless the broker has to wait."""
        context = self._contexts.get(type(request)) if version is None else None
        pending: Pending[Any]
        if context is None or self._is_closed:
            try:
                context = self._context(type(request), version)
            except (ClosedError, KafkaError) as error:
                pending = Pending()
                pending.fail(error)
                return pending
        answer = self._handle(context, request)
        if self._now_ns() >= self._scheduler.next_call_ns:
            self._scheduler.drive()
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
        """Append a batch to a partition. What was done, as `Appended` names.

        None, and nothing is done, when it has to be asked for by a request, as there is somebody
        who looks at those. `is_awaited`: the calling thread waits for this very answer, and may as
        well wait for the disk in here. Requires: `appends`.

        Raises:
            ClosedError: the client was closed; KafkaError: the broker refuses. The pending of an
                append that is not committed yet fails with the same.
        """
        if self._is_closed:
            raise ClosedError("the client was closed")
        answer = self._append_one(topic, topic_id, partition, records, acks, timeout_ms, is_awaited)
        if self._now_ns() >= self._scheduler.next_call_ns:
            self._scheduler.drive()
        return answer

    @property
    def appends(self) -> bool:
        """Is there an `append` that asks nobody for a request?"""
        return self._append_one is not _is_not_there

    @property
    def makes_topics(self) -> bool:
        return self._makes_topics()

    def is_ready(self, node_id: int) -> bool:
        """Always: there is nothing to connect."""
        return True

    def prepare(self, node_id: int) -> int | None:
        """Nothing to do."""
        return None


def _is_not_there(*_arguments: object) -> None:
    """Of a broker that takes requests alone."""


def newest_common(kind: type[Message], served: tuple[int, int] | None) -> int:
    """The newest version of a request that both this library and a broker know.

    Raises:
        UnsupportedVersion: there is none.
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
