"""`ShareAnswers`: handles the answers of leaders: records, outcomes, errors and other leaders."""

from __future__ import annotations

from embedlog import errors
from embedlog.client.backoff import Backoff
from embedlog.client.metadata import STALE_METADATA, as_kafka_error
from embedlog.client.share.fetched import FetchedPartition
from embedlog.common import deque
from embedlog.errors import error_for
from wire.error_codes import ErrorCode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from embedlog.client.share.acknowledgements import Acknowledgements
    from embedlog.client.share.leader import Leader, SentRequest
    from embedlog.client.share.parts import ShareParts
    from embedlog.common import TopicPartition
    from embedlog.errors import EmbedlogError, KafkaError
    from wire.schemas.share_fetch import PartitionData

    Leaders = dict[tuple[str, int], tuple[int, int]]
    """By partition, the leader's node id and epoch."""

_LED_BY_ANOTHER = frozenset((ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH))
"""With these errors a broker also names the present leader."""
_BROKEN_SESSION = frozenset(
    (ErrorCode.SHARE_SESSION_NOT_FOUND, ErrorCode.INVALID_SHARE_SESSION_EPOCH)
)
"""After these errors the next fetch opens a new session, at once."""
_LOCKS_ARE_GONE = _LED_BY_ANOTHER | {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
}
"""Acknowledgements with these errors are not sent again: another broker delivers the records."""
_UNMENTIONED = "the answer does not mention the acknowledgements"


class ShareAnswers:
    """Takes answers, and keeps what the user's calls need of them."""

    def __init__(self, parts: ShareParts) -> None:
        settings = parts.settings
        self._metadata = parts.metadata
        self._outcomes = parts.outcomes
        self._counts = parts.counts
        self._check_crcs: bool = settings["check.crcs"]
        self._backoff = Backoff.of_retries(settings, parts.transport.runtime.random)
        self.fetched: deque[FetchedPartition] = deque()
        """Fetched records that the application has not got."""
        self.errors: deque[EmbedlogError] = deque()
        """Errors for the next polls to raise."""
        self.lock_timeout_ms: int | None = None
        """How long an acquired record is locked, as the last answer says."""

    def take(self, leader: Leader, sent: SentRequest, now_ms: int) -> None:
        """Handle an answer that has arrived, or the failure of the request."""
        error = sent.pending.error()
        if error is not None:
            self._failed(leader, sent, error, now_ms)
            return
        response = sent.pending.result()
        if response.error_code:
            code = response.error_code
            self._failed(leader, sent, error_for(code, response.error_message), now_ms)
            return
        leader.session.answered()
        leader.failure_count = 0
        if response.acquisition_lock_timeout_ms > 0:
            self.lock_timeout_ms = response.acquisition_lock_timeout_ms
        places = {
            (topic.topic_id, data.partition_index): data
            for topic in response.responses
            for data in topic.partitions
        }
        named: Leaders = {}
        self._settle(leader, sent, places, named, now_ms)
        if sent.is_fetch:
            self._take_records(leader, sent, places, named, now_ms)
        if named:
            self._learn(leader, named, response.node_endpoints)

    # Failures of a whole request

    def _failed(self, leader: Leader, sent: SentRequest, error: BaseException, now_ms: int) -> None:
        """Fail the acknowledgements of a request; retry a fetch in a new session.

        In process the error may be a KeyboardInterrupt inside the broker: the interrupted call has
        already raised it, so it is not reported again.
        """
        leader.session.reset()
        leader.is_uncertain = not isinstance(error, Exception)
        reason = as_kafka_error(error)
        for one in sent.acknowledgements:
            self._outcomes.finish(one, reason)
        if reason.code in _BROKEN_SESSION:
            return
        passes = reason.retriable or reason.code in (
            ErrorCode.UNKNOWN_SERVER_ERROR,
            ErrorCode.SHARE_SESSION_LIMIT_REACHED,
        )
        if sent.is_fetch and not passes and isinstance(error, Exception):
            self.errors.append(reason)
        self._metadata.request_update()
        self._back_off(leader, now_ms)

    def _back_off(self, leader: Leader, now_ms: int) -> None:
        leader.not_before_ms = now_ms + self._backoff.delay_ms(leader.failure_count)
        leader.failure_count += 1

    # Acknowledgements

    def _settle(
        self,
        leader: Leader,
        sent: SentRequest,
        places: dict[tuple[bytes, int], Any],
        named: Leaders,
        now_ms: int,
    ) -> None:
        for one in sent.acknowledgements:
            data = places.get(one.place)
            if data is None:
                self._outcomes.finish(one, errors.InvalidRecordState(_UNMENTIONED))
                continue
            if sent.is_fetch:
                code, message = data.acknowledge_error_code, data.acknowledge_error_message
            else:
                code, message = data.error_code, data.error_message
            if not code:
                self._outcomes.finish(one, None)
                continue
            if code in _LED_BY_ANOTHER:
                told = data.current_leader
                named[one.delivery.key] = told.leader_id, told.leader_epoch
            if code in _LOCKS_ARE_GONE:
                self._metadata.request_update()
            self._refused(leader, one, error_for(code, message), now_ms)

    def _refused(
        self, leader: Leader, one: Acknowledgements, error: KafkaError, now_ms: int
    ) -> None:
        one.last_refusal = error
        if error.code in _LOCKS_ARE_GONE or not error.retriable or one.deadline_ms <= now_ms:
            self._outcomes.finish(one, error)
            return
        leader.waiting.append(one)
        self._back_off(leader, now_ms)

    # Records

    def _take_records(
        self,
        leader: Leader,
        sent: SentRequest,
        places: dict[tuple[bytes, int], PartitionData],
        named: Leaders,
        now_ms: int,
    ) -> None:
        found = failed = False
        for place, data in places.items():
            key = sent.keys.get(place)
            if key is None:
                continue
            if data.acquired_records:
                found = True
                self._counts["bytes-consumed-total"] += len(data.records or b"")
                self.fetched.append(
                    FetchedPartition(
                        key, place[0], leader.node_id, data, check_crcs=self._check_crcs
                    )
                )
            if data.error_code:
                failed = True
                if data.error_code in _LED_BY_ANOTHER:
                    told = data.current_leader
                    named[key] = told.leader_id, told.leader_epoch
                self._partition_failed(key, data)
        if failed and not found:
            # The broker answers at once as long as a partition has an error.
            self._back_off(leader, now_ms)

    def _partition_failed(self, key: TopicPartition, data: PartitionData) -> None:
        code = data.error_code
        if code in STALE_METADATA:
            self._metadata.request_update()
            return
        error = error_for(code, f"{key}: {data.error_message}" if data.error_message else str(key))
        if not error.retriable and code != ErrorCode.UNKNOWN_SERVER_ERROR:
            self.errors.append(error)

    def _learn(self, leader: Leader, named: Leaders, endpoints: Any) -> None:
        """Use the leaders that a broker named if their epochs exceed the known ones (KIP-951)."""
        metadata = self._metadata
        known = {key: metadata.leader_epoch(*key) for key in named}
        metadata.learn_leaders(named, endpoints)
        if any(metadata.leader_epoch(*key) > before for key, before in known.items()):
            leader.not_before_ms = 0
