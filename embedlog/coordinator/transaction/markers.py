"""Sending the markers of decided transactions to all their partitions.

    decided -> WriteTxnMarkers -> each partition   done            the last one frees the id
                                                   not now         retried after 100 ms
                                                   fenced          a newer coordinator did it
                                                   topic is gone   no marker needed

The decision is in the coordinator's log before any marker is sent, so that it outlives the broker:
the next broker that loads that log sends the missing markers. The client's answer does not wait for
them.
"""

from __future__ import annotations

from _operator import attrgetter

from embedlog.coordinator.transaction import states
from embedlog.coordinator.transaction.ending import complete, keep_pending
from embedlog.logger import Logger
from embedlog.runtime.locks import Rank, ranked_lock
from embedlog.runtime.pending import Pending
from wire.error_codes import ErrorCode
from wire.schemas.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from embedlog.coordinator.transaction.transaction_metadata import (
        TopicIndex,
        TransactionMetadata,
    )
    from embedlog.coordinator.transaction.transaction_shard import TransactionShard
    from embedlog.runtime.scheduler import Scheduler

    Send = Callable[
        [WriteTxnMarkersRequest], WriteTxnMarkersResponse | Pending[WriteTxnMarkersResponse]
    ]

_log = Logger("coordinator")

_RETRY_MS = 100
_SENT_AT_ONCE = 10_000
"""After about this many markers other duties get their turn: the thread may be a client's."""

_AGAIN = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)
_FENCED = frozenset({ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED})
_DONE = frozenset(
    {
        ErrorCode.NONE,
        ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
        ErrorCode.UNSUPPORTED_VERSION,
    }
)


class _Decided:
    """A decided transaction and the partitions that lack its marker."""

    def __init__(self, shard: TransactionShard, transaction: TransactionMetadata) -> None:
        self.shard = shard
        self.transaction = transaction
        self.coordinator_epoch = shard.context.leader_epoch
        self.untold = set(transaction.partitions)
        self.is_asked = False
        """True while a request with the transaction's markers is under way."""
        self.attempt_count = 0
        """How often the duty has sent them."""


_attempt_count = attrgetter("attempt_count")


class TransactionMarkers:
    """The decided transactions of a broker that still lack markers.

    `send(request)` passes markers to the partitions' leaders; `exists(topic, index)` checks for a
    partition. Every method may be called from any thread that holds no shard's lock.
    """

    def __init__(
        self, scheduler: Scheduler, send: Send, exists: Callable[[str, int], bool]
    ) -> None:
        self._scheduler = scheduler
        self._send = send
        self._exists = exists
        self._lock = ranked_lock(Rank.MARKERS)
        self._decided: dict[tuple[str, int, int], _Decided] = {}
        self._runs = False
        scheduler.add(self)

    def tell(self, shard: TransactionShard, transaction: TransactionMetadata) -> None:
        """Send the markers of a decided transaction, and retry until all are written."""
        self._ask(self._noted(shard, transaction))

    def tell_later(self, shard: TransactionShard, transaction: TransactionMetadata) -> None:
        """Let this duty do the work of `tell`: there may be many such transactions."""
        self._noted(shard, transaction)
        self._scheduler.notify(self)

    def _noted(self, shard: TransactionShard, transaction: TransactionMetadata) -> _Decided:
        key = _key(transaction)
        with self._lock:
            decided = self._decided.get(key)
            if decided is None or decided.shard is not shard:
                decided = self._decided[key] = _Decided(shard, transaction)
            return decided

    def run_once(self, _now_ms: int) -> int | None:
        # Keep `_again` from calling `notify` during this call: that would repeat the call at once,
        # as long as a marker is missing.
        self._runs = True
        count = 0
        try:
            # A transaction whose markers are refused again and again keeps no other one waiting.
            for decided in sorted(self._decided.values(), key=_attempt_count):
                if count >= _SENT_AT_ONCE:
                    return 1
                if not decided.is_asked:
                    count += len(decided.untold)
                    decided.attempt_count += 1
                self._ask(decided)
        finally:
            self._runs = False
        return _RETRY_MS if self._decided else None

    def close(self) -> None:
        self._scheduler.remove(self)
        with self._lock:
            self._decided.clear()

    def _ask(self, decided: _Decided) -> None:
        is_mine = False
        try:
            with self._lock:
                if decided.is_asked or _key(decided.transaction) not in self._decided:
                    return
                decided.is_asked = is_mine = True
            decided.untold = {place for place in decided.untold if self._exists(*place)}
            if not decided.untold:
                self._complete(decided)
                return
            answer = self._send(_request(decided))
            if isinstance(answer, Pending):
                answer.add_callback(lambda pending: self._answered(decided, pending))
            else:
                self._take(decided, answer)
        except BaseException:
            # After Ctrl-C repeat the request; a partition that already has the marker says so.
            if is_mine:
                self._again(decided)
            raise

    def _answered(self, decided: _Decided, pending: Pending[WriteTxnMarkersResponse]) -> None:
        error = pending.error()
        if error is None:
            self._take(decided, pending.result())
        else:
            _log.info("the markers of %r are not written yet: %s", decided.transaction, error)
            self._again(decided)

    def _take(self, decided: _Decided, response: WriteTxnMarkersResponse) -> None:
        asked_count = len(decided.untold)
        is_fenced = False
        for place, code in _codes(response):
            if code in _FENCED:
                _log.info("%r was ended by a newer coordinator: %s", decided.transaction, place)
                is_fenced = True
            elif code in _DONE:
                decided.untold.discard(place)
            elif code not in _AGAIN:
                _log.error(
                    "%s refuses the marker of %r with error %d", place, decided.transaction, code
                )
        if not decided.untold:
            self._complete(decided)
            return
        untold = frozenset(decided.untold)
        if len(untold) < asked_count:
            decided.shard.context.write(
                lambda shard: keep_pending(shard, decided.transaction, untold)
            )
        if is_fenced:
            self._forget(decided)
        else:
            self._again(decided)

    def _complete(self, decided: _Decided) -> None:
        def written(pending: Pending[Any]) -> None:
            error = pending.error()
            if error is None or getattr(error, "code", None) == ErrorCode.NOT_COORDINATOR:
                # The end is stored. Or the shard was unloaded: then the next broker that loads it
                # finds the decision in the log.
                self._forget(decided)
            else:
                self._again(decided)

        decided.shard.context.write(
            lambda shard: complete(shard, decided.transaction)
        ).add_callback(written)

    def _again(self, decided: _Decided) -> None:
        decided.is_asked = False
        if not self._runs:
            self._scheduler.notify(self, _RETRY_MS)

    def _forget(self, decided: _Decided) -> None:
        with self._lock:
            self._decided.pop(_key(decided.transaction), None)


def _codes(response: WriteTxnMarkersResponse) -> Iterator[tuple[TopicIndex, int]]:
    for marker in response.markers:
        for topic in marker.topics:
            for partition in topic.partitions:
                yield (topic.name, partition.partition_index), partition.error_code


def _key(transaction: TransactionMetadata) -> tuple[str, int, int]:
    return transaction.transactional_id, transaction.producer_id, transaction.producer_epoch


def _request(decided: _Decided) -> WriteTxnMarkersRequest:
    transaction = decided.transaction
    topics: dict[str, list[int]] = {}
    for topic, index in sorted(decided.untold):
        topics.setdefault(topic, []).append(index)
    marker = WritableTxnMarker(
        producer_id=transaction.producer_id,
        producer_epoch=transaction.producer_epoch,
        transaction_result=transaction.state == states.PREPARE_COMMIT,
        topics=[
            WritableTxnMarkerTopic(name=topic, partition_indexes=indexes)
            for topic, indexes in topics.items()
        ],
        coordinator_epoch=decided.coordinator_epoch,
        transaction_version=transaction.client_version,
    )
    return WriteTxnMarkersRequest(markers=[marker])
