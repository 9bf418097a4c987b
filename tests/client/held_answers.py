"""Holds answers back, so that a test can change a client's state before they arrive."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from embedlog.runtime.pending import Pending
from tests.client.faulty_cluster import FaultyCluster
from tests.client.scripted_broker import PASS, ScriptedBroker


class HeldAnswers:
    """The held answers of one broker, oldest first.

    The broker answers a request when it arrives. So an answer tells the broker's state at that
    time, like an answer that was long on its way.
    """

    def __init__(self, broker: ScriptedBroker | FaultyCluster) -> None:
        self._broker = broker
        self.held: list[tuple[Any, Any, Pending[Any]]] = []
        """Request, answer, and the pending answer of the client."""

    def hold(
        self, kind: type[Any], count: int = 1, which: Callable[[Any], bool] = lambda _: True
    ) -> None:
        """Hold the answers to the next `count` requests of that kind for which `which` holds."""
        left = [count]

        def fault(request: Any) -> Any:
            if not isinstance(request, kind) or not left[0] or not which(request):
                return PASS
            left[0] -= 1
            pending: Pending[Any] = Pending()
            self.held.append((request, self._answer_to(request), pending))
            return pending

        self._broker.faults.append(fault)

    def release(self, number: int = 0) -> None:
        """Let the held answer of that number arrive."""
        _, answer, pending = self.held.pop(number)
        if isinstance(answer, Pending):
            answer.add_callback(lambda done: pending.complete(done.result()))
        else:
            pending.complete(answer)

    def release_every(self, delay_ms: int) -> None:
        """From now on, let one held answer arrive every `delay_ms`, while time passes."""
        self._broker.runtime.scheduler.add(_Releases(self, delay_ms))

    def fail(self, error: Exception, number: int = 0) -> None:
        """End a held request as a broken connection would; the broker has done its work."""
        self.held.pop(number)[2].fail(error)

    def _answer_to(self, request: Any) -> Any:
        if isinstance(self._broker, ScriptedBroker):
            return self._broker.answer(request)
        context = self._broker.context
        assert context is not None
        return self._broker.cluster.broker().core.handle(context, request)


class _Releases:
    """A duty that lets held answers arrive."""

    def __init__(self, late: HeldAnswers, delay_ms: int) -> None:
        self._late = late
        self._delay_ms = delay_ms
        self._next_ms: int | None = None

    def run_once(self, now_ms: int) -> int:
        if self._next_ms is None:
            self._next_ms = now_ms + self._delay_ms
        if now_ms >= self._next_ms:
            self._next_ms = now_ms + self._delay_ms
            if self._late.held:
                self._late.release()
        return self._next_ms - now_ms
