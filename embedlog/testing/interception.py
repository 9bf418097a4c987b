"""`Stages`: parts of the test kit between the requests and the brokers, one around another.

A stage gets each call and a function that passes the call on: to the next stage, and finally to the
broker. It can answer itself, change the answer, delay it, or only look.

    timeline -> rules -> persona -> Broker

Without a stage nothing is installed, and a request costs the same as without the test kit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from embedlog.broker import dispatch
from embedlog.broker.broker import Broker
from embedlog.broker.context import RequestContext
from embedlog.cluster.interception import Interceptor
from embedlog.runtime.pending import Pending
from wire.schema import Request


class Call:
    """One request at one broker.

    The context belongs to the connection, which uses it again for the next request after the
    answer: copy what outlives the answer.
    """

    __slots__ = ("broker", "context", "request")

    def __init__(self, broker: Broker, context: RequestContext, request: Request[Any]) -> None:
        self.broker = broker
        self.context = context
        self.request = request


Proceed = Callable[[Call], Any]
"""Passes a call on. Returns the response, a `Pending` of it, or None if there is none (acks=0)."""
Stage = Callable[[Call, Proceed], Any]
"""Answers a call as `Proceed` does, most often with the answer of its second argument."""


class Interceptable(Protocol):
    """A cluster, or a proxy in front of one."""

    def intercept(self, interceptor: Interceptor | None) -> None:
        """See `Cluster.intercept`."""


GATE, CLOCK, WAITS, TIMELINE, RULES, ON_DEMAND, PERSONA, RESTORED = range(8)
"""The order of the stages, the outermost first. `GATE` holds requests during a snapshot, `CLOCK`
watches the waiting requests, `RESTORED` is next to the brokers."""


class Stages:
    """The stages of one cluster. Every method may be called from any thread."""

    def __init__(self, cluster: Interceptable, answer: Proceed | None = None) -> None:
        """`answer` answers a call after all stages; by default the broker's API does."""
        self._cluster = cluster
        self._answer = answer or _answer
        self._stages: dict[int, Stage] = {}

    def move(self, cluster: Interceptable) -> None:
        """Install the same stages at another cluster, which replaces the present one."""
        self._cluster = cluster
        self._install()

    def put(self, place: int, stage: Stage | None) -> None:
        """Put a stage in its place; None removes it. The place decides the order: see `RULES`."""
        if stage is None:
            self._stages.pop(place, None)
        else:
            self._stages[place] = stage
        self._install()

    def remove(self, place: int, stage: Stage) -> None:
        """Remove a stage from its place, unless another one is there."""
        if self._stages.get(place) == stage:
            self.put(place, None)

    def _install(self) -> None:
        while True:
            stages = dict(self._stages)
            proceed: Proceed = self._answer
            for _, each in sorted(stages.items(), reverse=True):
                proceed = _around(each, proceed)
            self._cluster.intercept(_entry(proceed) if stages else None)
            if stages == self._stages:  # else another thread put a stage meanwhile
                return


def _answer(call: Call) -> Any:
    return dispatch.call(call.broker, call.context, call.request)


def _around(stage: Stage, proceed: Proceed) -> Proceed:
    return lambda call: stage(call, proceed)


def _entry(proceed: Proceed) -> Callable[[Broker, RequestContext, Request[Any]], Any]:
    def handle(broker: Broker, context: RequestContext, request: Request[Any]) -> Any:
        answer = proceed(Call(broker, context, request))
        return _no_response() if answer is None else answer

    return handle


def _no_response() -> Pending[None]:
    """Return what tells the broker that it has answered with nothing (acks=0)."""
    done: Pending[None] = Pending()
    done.complete(None)
    return done
