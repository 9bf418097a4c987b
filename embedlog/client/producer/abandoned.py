"""`AbandonedTransaction`: aborts the transaction of a producer that was dropped without `close`.

Otherwise the transaction stays open until its time-out, and consumers with read_committed wait.
"""

from __future__ import annotations

from embedlog.errors import ClosedError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.client.producer.parts import ProducerParts
    from embedlog.client.producer.transactions.requests import CallResult

_STEP_MS = 10
_LAST_MS = 10_000


class AbandonedTransaction:
    """A duty with a thread of its own, until the coordinator has answered."""

    def __init__(self, parts: ProducerParts) -> None:
        self._parts = parts
        self._result: CallResult | None = None
        self._until_ms = 0
        scheduler = parts.transport.runtime.scheduler
        scheduler.duty_thread(self, "embedlog-producer").notify()

    def run_once(self, now_ms: int) -> int | None:
        """Begin the abort, and make passes until it has ended; then give back all resources."""
        parts = self._parts
        transport, transactions = parts.transport, parts.transactions
        assert transactions is not None, self
        if transport.is_closed:
            return None
        if self._result is None:
            self._result = transactions.begin_abort()
            self._until_ms = now_ms + _LAST_MS
        parts.passes.driver.run()
        if transport.in_process:
            transport.poll()
        if not self._result.is_done and now_ms < self._until_ms:
            return _STEP_MS
        gone = ClosedError("the producer was dropped before the record had an outcome")
        parts.passes.close(lambda: parts.sender.abort_all(gone))
        transport.close()
        return None
