"""One produce request on its way, and who has it."""

from __future__ import annotations

from embedlog.pending import Pending

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from embedlog.client.producer.producer_batch import ProducerBatch
    from embedlog.common import deque

    _Base = Pending[Any]
else:
    _Base = Pending


class SentRequest(_Base):
    """One produce request without an outcome.

    It may be the pending of its own answer: who has the turn gives it, so that takes no lock.
    """

    __slots__ = ("answers", "batches", "memory", "node_id", "pending", "sent_ms")

    def __init__(
        self,
        node_id: int,
        batches: list[ProducerBatch],
        sent_ms: int,
        answers: deque[SentRequest],
    ) -> None:
        super().__init__()
        self.answers = answers
        """Where it goes with its answer."""
        self.node_id = node_id
        self.batches = batches
        self.sent_ms = sent_ms
        self.memory = 0
        """What batches that were given up meanwhile hold until the request ends."""
        self.pending: Pending[Any] | None = None
        """Who has the answer, if that is another: to name itself would be a cycle."""

    def _finish(self, state: int, outcome: object) -> bool:
        if self.done():
            return False
        self._state = state
        self._outcome = outcome
        self.answers.append(self)
        return True
