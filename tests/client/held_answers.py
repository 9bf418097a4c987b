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

    def fail(self, error: Exception, number: int = 0) -> None:
        """End a held request as a broken connection would; the broker has done its work."""
        self.held.pop(number)[2].fail(error)

    def _answer_to(self, request: Any) -> Any:
        if isinstance(self._broker, ScriptedBroker):
            return self._broker.answer(request)
        context = self._broker.context
        assert context is not None
        return self._broker.cluster.broker().core.handle(context, request)
