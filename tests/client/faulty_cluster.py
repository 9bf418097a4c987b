"""A cluster in simulated time; a test may step between its clients and its broker.

The coordinator is the real one. A test replaces its answers: `refuse` gives an error code, `faults`
any response, and `delay` holds an answer back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from embedlog.broker import dispatch
from embedlog.broker.context import RequestContext
from embedlog.client.consumer.consumer import Consumer
from embedlog.cluster.cluster import Cluster
from embedlog.runtime.pending import Pending
from embedlog.testing import SimRuntime, sim_runtime
from embedlog.transport import InProcessTransport
from tests.client.scripted_broker import PASS as PASS
from wire.registry import response_class
from wire.schema import declaration


class FaultyCluster:
    """The target of clients; `requests` keeps all their requests, in order."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.requests: list[Any] = []
        self.context: RequestContext | None = None
        """The context of the last request."""
        self.faults: list[Callable[[Any], Any]] = []
        self.versions = dict(dispatch.VERSIONS)
        """The versions that the broker announces to clients that connect from here on."""

    @property
    def runtime(self) -> SimRuntime:
        runtime = self.cluster.runtime
        assert isinstance(runtime, SimRuntime)
        return runtime

    def connect(self, client_id: str = "") -> InProcessTransport:
        def make_context(api_key: int, version: int) -> RequestContext:
            return RequestContext(api_key, version, client_id=client_id)

        return InProcessTransport(self._handle, make_context, self.versions, self.runtime)

    def _handle(self, context: RequestContext, request: Any) -> Any:
        self.requests.append(request)
        self.context = context
        for fault in list(self.faults):
            answer = fault(request)
            if answer is not PASS:
                return answer
        return self.cluster.broker().core.handle(context, request)

    def of_kind(self, kind: type[Any]) -> list[Any]:
        return [request for request in self.requests if isinstance(request, kind)]

    def answer(self, kind: type[Any], make: Callable[[Any], Any], count: int = 1) -> None:
        """`make(request)` answers the next `count` requests of that kind."""
        left = [count]

        def fault(request: Any) -> Any:
            if not isinstance(request, kind) or not left[0]:
                return PASS
            left[0] -= 1
            return make(request)

        self.faults.append(fault)

    def refuse(self, kind: type[Any], code: int, count: int = 1, **fields: Any) -> None:
        """Answer the next `count` requests of that kind with an error at the top of the
        response."""
        api_key = declaration(kind).api
        assert api_key is not None
        made: Any = response_class(api_key)
        self.answer(kind, lambda _request: made(error_code=code, **fields), count)

    def fail(self, kind: type[Any], error: Exception, count: int = 1) -> None:
        """End the next `count` requests of that kind as a broken connection would."""

        def broken(_request: Any) -> Pending[Any]:
            pending: Pending[Any] = Pending()
            pending.fail(error)
            return pending

        self.answer(kind, broken, count)

    def silence(self, kind: type[Any]) -> Callable[[], None]:
        """Answer no request of that kind until the returned function is called."""

        def fault(request: Any) -> Any:
            return Pending() if isinstance(request, kind) else PASS

        self.faults.append(fault)
        return lambda: self.faults.remove(fault)

    def member(self, **settings: Any) -> Consumer:
        chosen = {"group_id": "readers", "auto_offset_reset": "earliest", **settings}
        return Consumer(self, **chosen)

    def pass_time(self, delay_ms: int) -> None:
        """Let time pass while no user calls anything: duties and timers run."""
        self.runtime.scheduler.run_for(delay_ms)


@contextmanager
def faulty_cluster(
    config: Mapping[str, object] | None = None, /, **topics: int
) -> Iterator[FaultyCluster]:
    """Return a cluster with these topics, and records b"0" to b"4" in each partition."""
    runtime = sim_runtime(seed=7)
    settings: dict[str, object] = {
        "group.initial.rebalance.delay.ms": 0,
        "offsets.topic.num.partitions": 5,
        **(config or {}),
    }
    with Cluster(runtime=runtime, config=settings) as cluster:
        for name, count in topics.items():
            cluster.create_topic(name, count)
        with cluster.producer() as producer:
            for name, count in topics.items():
                for partition in range(count):
                    values = [b"%d" % number for number in range(5)]
                    producer.send_batch(name, values, partition=partition).result()
        yield FaultyCluster(cluster)


def poll_until(condition: Callable[[], bool], *consumers: Consumer) -> list[Any]:
    """Poll all consumers in turn, 50 ms each, until the condition holds; return the records."""
    found: list[Any] = []
    for _ in range(2_000):
        for consumer in consumers:
            found += consumer.poll(50)
        if condition():
            return found
    raise AssertionError([consumer.assignment() for consumer in consumers])
