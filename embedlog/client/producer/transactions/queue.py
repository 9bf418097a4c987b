"""`RequestQueue`: sends the requests of a transactional producer, one at a time, by priority."""

from __future__ import annotations

from embedlog import errors
from embedlog.client.metadata import as_kafka_error
from embedlog.client.producer.transactions.errors import UNANSWERED, Verdict
from embedlog.client.producer.transactions.requests import AskVersions, EndTxn, FindCoordinator

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from embedlog.client.producer.transactions.requests import (
        TransactionContext,
        TransactionRequest,
    )
    from embedlog.errors import KafkaError
    from embedlog.runtime.pending import Pending


class RequestQueue:
    """One producer's queue. Use it in a pass, or while no pass runs. No method waits."""

    def __init__(self, context: TransactionContext) -> None:
        self._context = context
        self._sent: TransactionRequest | None = None
        self.pending: Pending[Any] | None = None
        self._is_taking = False
        """True from before an answer is taken until it was taken completely."""

    def __bool__(self) -> bool:
        return self._sent is not None or bool(self._context.waiting)

    @property
    def is_idle(self) -> bool:
        return self._sent is None

    def add(self, request: TransactionRequest) -> None:
        self._context.add(request)

    def advance(self, now_ms: int) -> int | None:
        """Take an answer that arrived, send the next request; return ms until more can be sent."""
        while True:
            ended_by = self._context.status.error
            if ended_by is not None:
                self._fail(ended_by)
            if self._sent is None:
                request = self._next()
                if request is None:
                    return None
                left_ms = request.not_before_ms - now_ms
                if left_ms > 0:
                    return left_ms
                if isinstance(request, EndTxn):
                    if self._may_be_left_out(request):
                        continue
                    self._context.status.open.is_ending = True
                self.pending = request.send(self._context)
                self._sent = request
                self._context.waiting.remove(request)
            pending, sent = self.pending, self._sent
            assert pending is not None, sent
            if not pending.done():
                return None
            if self._is_taking:
                self._interrupted(sent)
                continue
            self._is_taking = True
            error = pending.error()
            if error is None:
                refusal = sent.take(self._context, pending.result())
            else:
                refusal = as_kafka_error(error)
            if refusal is None:
                sent.succeeded()
            else:
                self._refused(sent, refusal, now_ms)
            self._sent = self.pending = None
            self._is_taking = False

    def _fail(self, error: Exception) -> None:
        waiting = self._context.waiting
        while waiting:
            # Each stays in the list until its call has the error: Ctrl-C may come in between.
            result = waiting[0].result
            if result is not None:
                result.fail(error)
            del waiting[0]

    def _next(self) -> TransactionRequest | None:
        """Return the first request, or another request that must be sent before it."""
        waiting = self._context.waiting
        request = waiting[0] if waiting else None
        if isinstance(request, EndTxn) and request.result is None:
            # It was left out, and Ctrl-C kept it in the list.
            del waiting[0]
            return self._next()
        if request is None:
            return None
        if isinstance(request, EndTxn) and self._context.has_records():
            return None
        if not request.needs_coordinator:
            return request
        coordinators = self._context.coordinators
        before: TransactionRequest | None = None
        if coordinators.node(request.group) is None:
            before = FindCoordinator(request.group)
        elif not coordinators.knows_versions and coordinators.node(None) is not None:
            before = None if isinstance(request, AskVersions) else AskVersions()
        if before is None:
            return request
        self._context.waiting.insert(0, before)
        return before if not before.needs_coordinator else self._next()

    def _interrupted(self, request: TransactionRequest) -> None:
        """Fail the producer, because Ctrl-C or a defect left an answer half taken."""
        self._sent = self.pending = None
        self._is_taking = False
        error = errors.UnknownServerError(
            f"interrupted while the answer to {type(request).__name__} was taken"
        )
        told = self._context.status.refused(error, is_fatal=True)
        if request.result is not None:
            request.result.fail(told)

    def _may_be_left_out(self, request: EndTxn) -> bool:
        if self._context.status.open.is_started:
            return False
        request.skip(self._context)
        self._context.waiting.remove(request)
        return True

    def _refused(self, request: TransactionRequest, error: KafkaError, now_ms: int) -> None:
        context = self._context
        verdict = request.verdict(error)
        if verdict == Verdict.CLOSE or verdict == Verdict.ABORT:
            told = context.status.refused(error, is_fatal=verdict == Verdict.CLOSE)
            if request.result is not None:
                request.result.fail(told)
            return
        if context.status.error is not None:
            if request.result is not None:
                request.result.fail(context.status.error)
            return
        if verdict == Verdict.LOOK_UP and request.needs_coordinator:
            if error.code in UNANSWERED and context.coordinators.raises_epochs:
                # The unanswered request may arrive late and end the next transaction: only since
                # version 2 each transaction has an epoch of its own.
                context.status.open.needs_epoch = True
            context.coordinators.lost(request.group)
        request.not_before_ms = now_ms + request.pause_ms(error, context)
        request.failure_count += 1
        context.last_refusal = error
        self.add(request)
