"""`Interception`: a function that sees the requests of all brokers, over their restarts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from embedlog.broker.broker import Broker
from embedlog.broker.context import RequestContext
from embedlog.broker.listeners import Wrap
from wire.schema import Request

Interceptor = Callable[[Broker, RequestContext, Request[Any]], Any]


class Interception:
    """The interceptor of a cluster: None while nobody intercepts. See `Cluster.intercept`."""

    __slots__ = ("_interceptor", "_wrap")

    def __init__(self) -> None:
        self._interceptor: Interceptor | None = None
        self._wrap: Wrap | None = None

    def change(self, interceptor: Interceptor | None, running: Iterable[Broker]) -> None:
        """Install another interceptor at the running brokers, and at brokers that start later."""
        self._interceptor = interceptor
        for core in running:
            self.install(core)

    def wrap_sockets(self, wrap: Wrap | None, running: Iterable[Broker]) -> None:
        """Pass new connections through `wrap`: see `Listeners`."""
        self._wrap = wrap
        for core in running:
            core.listeners.wrap = wrap

    def install(self, core: Broker) -> None:
        """Install the present interceptor at a broker that starts."""
        core.listeners.wrap = self._wrap
        interceptor = self._interceptor
        core.interceptor = None if interceptor is None else _Bound(interceptor, core)


class _Bound:
    """The interceptor at one broker."""

    __slots__ = ("_core", "_interceptor")

    def __init__(self, interceptor: Interceptor, core: Broker) -> None:
        self._interceptor = interceptor
        self._core = core

    def __call__(self, context: RequestContext, request: Request[Any]) -> Any:
        return self._interceptor(self._core, context, request)
