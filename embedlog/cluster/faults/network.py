"""`ClusterNetwork`: the links between brokers and the controller, and a test's faults on them.

Without a fault, a call runs at once in the caller's thread. A cut or slow link keeps messages in
order, as TCP does, until the link heals or the caller's time-out ends. Links are one-way, so the
answer to a performed request can be lost.
"""

from __future__ import annotations

from embedlog import errors
from embedlog.common import deque
from embedlog.runtime.locks import Rank, ranked_lock
from embedlog.runtime.pending import Pending

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from typing import Any, TypeVar

    from embedlog.runtime import Runtime

    T = TypeVar("T")

CONTROLLER = -1
"""The controller's number on the network. Brokers have numbers from 0 on."""

_SWEEP_MS = 500
"""Time between two checks for calls that timed out: a time-out comes at most this late."""


class ClusterNetwork:
    """Links between the brokers of a cluster. Every method may be called from any thread."""

    CONTROLLER = CONTROLLER

    def __init__(self, runtime: Runtime) -> None:
        self._clock = runtime.clock
        self._scheduler = runtime.scheduler
        self._lock = ranked_lock(Rank.NETWORK)
        self._links: dict[tuple[int, int], _Link] = {}
        """Links that are cut, slow, or still have messages to deliver."""
        self._frozen: set[int] = set()
        self._calls: dict[_Call, None] = {}
        """Calls that wait for their answer."""
        self.on_heal: Callable[[], None] = _nothing
        """Called by `heal`: delivers metadata, and requests that waited for the controller."""
        runtime.scheduler.add(self)

    def close(self) -> None:
        """Fail the waiting calls; deliver nothing more."""
        self._scheduler.remove(self)
        self._links.clear()
        for call in list(self._calls):
            self._end(call, errors.Network("the cluster was closed"))

    # Faults

    def split(self, *groups: Collection[int]) -> None:
        """Cut every link between brokers of different groups, in both directions.

        A broker in no group keeps its links. The controller has a number, too; without a link to
        it no other broker is elected.

            network.split({1}, {2, 3, network.CONTROLLER})
        """
        for group in groups:
            for other in groups:
                if other is not group:
                    for source in group:
                        for target in other:
                            self.cut(source, target)

    def cut(self, source: int, target: int) -> None:
        """Cut the link from `source` to `target`. The link back stays open."""
        with self._lock:
            self._links.setdefault((source, target), _Link()).is_cut = True

    def delay(self, source: int, target: int, delay_ms: int) -> None:
        """Delay every message from `source` to `target` by `delay_ms`."""
        with self._lock:
            self._links.setdefault((source, target), _Link()).delay_ms = delay_ms

    def freeze(self, node_id: int) -> None:
        """Keep a broker from sending and receiving until `thaw`."""
        self._frozen.add(node_id)

    def thaw(self, node_id: int) -> None:
        """End `freeze` and deliver the kept messages."""
        self._frozen.discard(node_id)
        self._scheduler.notify(self)

    def heal(self) -> None:
        """Mend every link. Kept messages arrive unless their call timed out."""
        with self._lock:
            for link in self._links.values():
                link.is_cut, link.delay_ms = False, 0
        self._scheduler.notify(self)
        self.on_heal()

    def is_cut(self, source: int, target: int) -> bool:
        """Return whether the link is cut or one of its ends is frozen."""
        link = self._links.get((source, target))
        return (link is not None and link.is_cut) or bool(self._frozen & {source, target})

    # Traffic

    def call(
        self,
        source: int,
        target: int,
        perform: Callable[[], T | Pending[T]],
        *,
        timeout_ms: int,
    ) -> Pending[T]:
        """Run `perform` at `target`; return a pending, done when the answer reaches `source`.

        The pending fails with the error of `perform`, or with `RequestTimedOut`. Requires: the
        caller holds no lock that `perform` takes.
        """
        call = _Call(source, target, self._clock.monotonic_ms() + timeout_ms)
        if self._keep(source, target, lambda: self._perform(call, perform)):
            self._wait(call)
        else:
            self._perform(call, perform)
        return call.pending

    def _perform(self, call: _Call, perform: Callable[[], Any]) -> None:
        if call.pending.done():
            return  # the call timed out meanwhile
        try:
            answer = perform()
        except errors.EmbedlogError as error:
            self._send_back(call, None, error)
            return
        if not isinstance(answer, Pending):
            self._send_back(call, answer, None)
            return
        if not answer.done():
            self._wait(call)
        answer.add_callback(
            lambda done: self._send_back(
                call, None if done.error() else done.result(), done.error()
            )
        )

    def _send_back(self, call: _Call, answer: Any, error: BaseException | None) -> None:
        def arrive() -> None:
            self._end(call, error, answer)

        if not self._keep(call.target, call.source, arrive):
            arrive()
        elif not call.pending.done():
            self._wait(call)

    def _wait(self, call: _Call) -> None:
        is_first = not self._calls
        self._calls[call] = None
        if is_first:
            self._scheduler.notify(self, _SWEEP_MS)

    def _end(self, call: _Call, error: BaseException | None, answer: Any = None) -> None:
        self._calls.pop(call, None)
        if call.pending.done():
            return
        if error is None:
            call.pending.complete(answer)
        else:
            call.pending.fail(error)

    # Messages kept by a link

    def _keep(self, source: int, target: int, deliver: Callable[[], None]) -> bool:
        """Keep `deliver` for later and return True; do nothing and return False on a free link."""
        if not (self._links or self._frozen):
            return False
        with self._lock:
            link = self._links.get((source, target))
            is_frozen = bool(self._frozen & {source, target})
            if not is_frozen and (link is None or not (link.is_cut or link.delay_ms or link.kept)):
                return False
            if link is None:
                link = self._links[source, target] = _Link()
            link.kept.append((self._clock.monotonic_ms() + link.delay_ms, deliver))
        self._scheduler.notify(self)
        return True

    def run_once(self, now_ms: int) -> int | None:
        """Deliver due messages, and end the calls that timed out."""
        next_ms: int | None = None
        for place, link in list(self._links.items()):
            while not self.is_cut(*place) and link.kept and link.kept[0][0] <= now_ms:
                with self._lock:
                    _, deliver = link.kept.popleft()
                deliver()
            if link.kept and not self.is_cut(*place):
                delay = max(0, link.kept[0][0] - now_ms)
                next_ms = delay if next_ms is None else min(next_ms, delay)
            with self._lock:
                if not (link.is_cut or link.delay_ms or link.kept):
                    self._links.pop(place, None)
        for call in list(self._calls):
            if call.deadline_ms <= now_ms:
                self._end(call, errors.RequestTimedOut())
        if self._calls:
            next_ms = _SWEEP_MS if next_ms is None else min(next_ms, _SWEEP_MS)
        return next_ms


class _Link:
    """Faults of one link, and its kept messages as (arrival in monotonic ms, action)."""

    __slots__ = ("delay_ms", "is_cut", "kept")

    def __init__(self) -> None:
        self.is_cut = False
        self.delay_ms = 0
        self.kept: deque[tuple[int, Callable[[], None]]] = deque()


class _Call:
    """One call on its way, and its answer."""

    __slots__ = ("deadline_ms", "pending", "source", "target")

    def __init__(self, source: int, target: int, deadline_ms: int) -> None:
        self.source = source
        self.target = target
        self.deadline_ms = deadline_ms
        self.pending: Pending[Any] = Pending()


def _nothing() -> None:
    """Do nothing on `heal`."""
