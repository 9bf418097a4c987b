"""Handling of fetch answers: buffer records, retry, choose another position or raise an error."""

from __future__ import annotations

from embedlog import errors
from embedlog.client.consumer.completed_fetch import CompletedFetch
from embedlog.client.consumer.fetch_session import BROKEN_SESSION, SentFetch
from embedlog.client.metadata import STALE_METADATA
from embedlog.errors import EmbedlogError, KafkaError, error_for
from wire.error_codes import ErrorCode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from embedlog.client.consumer.fetch_buffer import FetchBuffer
    from embedlog.client.consumer.parts import ConsumerParts
    from embedlog.client.consumer.subscription_state import PartitionState, ResetPolicy
    from embedlog.common import TopicPartition
    from wire.schemas.fetch import NodeEndpoint, PartitionData

_LED_BY_ANOTHER = frozenset((ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH))
"""With these errors a broker also names the present leader (KIP-951)."""


class FetchAnswers:
    """Handles the answers to one consumer's fetches."""

    def __init__(self, parts: ConsumerParts, policy: ResetPolicy, buffer: FetchBuffer) -> None:
        settings = parts.settings
        self._metadata = parts.metadata
        self._subscription = parts.subscription
        self._policy = policy
        self._buffer = buffer
        self._counts = parts.counts
        self._clock = parts.transport.runtime.clock
        self._backoff_ms: int = settings["retry.backoff.ms"]
        self._replica_max_ms: int = settings["metadata.max.age.ms"]
        self._check_crcs: bool = settings["check.crcs"]
        self._backs_off = False
        """True while a partition waits for its `retry_at_ms`."""
        self._goes_on = False
        """True if a partition can be fetched again at once, without waiting for an answer."""

    def take(self, sent: SentFetch, now_ms: int) -> None:
        """Handle the answer to a fetch: buffer its records.

        Errors that a retry cannot cure go to the buffer.
        """
        error = sent.pending.error()
        if error is not None:
            sent.session.reset()
            self._failed(sent, error, now_ms)
            return
        response = sent.pending.result()
        if not sent.session.answered(response.error_code, response.session_id):
            if response.error_code not in BROKEN_SESSION:
                self._failed(sent, error_for(response.error_code), now_ms)
            elif response.error_code in STALE_METADATA:
                self._metadata.request_update()
            return
        leaders: dict[tuple[str, int], tuple[int, int]] = {}
        for topic in response.responses:
            name = topic.topic or self._metadata.names_by_id.get(topic.topic_id, "")
            for data in topic.partitions:
                # A plain tuple equals the `TopicPartition` key; creating it takes a tenth as long.
                asked = sent.partitions.get((name, data.partition_index))
                if asked is None:
                    continue
                if data.error_code in _LED_BY_ANOTHER:
                    told = data.current_leader
                    leaders[name, data.partition_index] = told.leader_id, told.leader_epoch
                state, generation, offset = asked
                key = state.topic_partition
                current = self._subscription.partitions.get(key)
                if current is not state or state.generation != generation:
                    continue
                if state.offset == offset:
                    self._take_partition(state, data, now_ms, self._buffer.first)
                elif (
                    key in self._buffer.first
                    and self._buffer.first[key].batches.end_offset == offset
                ):
                    self._take_partition(state, data, now_ms, self._buffer.ahead)
        if leaders:
            self._learn(leaders, response.node_endpoints, sent)

    def delay(self, now_ms: int) -> int | None:
        """Return milliseconds until a fetch is useful; None if that depends on an answer."""
        if self._goes_on:
            self._goes_on = False
            return 0
        if not self._backs_off:
            return None
        states = self._subscription.partitions.values()
        times = [state.retry_at_ms for state in states if state.retry_at_ms > now_ms]
        self._backs_off = bool(times)
        return min(times) - now_ms if times else None

    def _learn(
        self,
        leaders: dict[tuple[str, int], tuple[int, int]],
        endpoints: Iterable[NodeEndpoint],
        sent: SentFetch,
    ) -> None:
        """Use the leaders that a broker named if their epochs exceed the known ones (KIP-951)."""
        known = {key: self._metadata.leader_epoch(*key) for key in leaders}
        self._metadata.learn_leaders(leaders, endpoints)
        for key, before in known.items():
            if self._metadata.leader_epoch(*key) > before:
                sent.partitions[key][0].retry_at_ms = 0
                self._goes_on = True

    def _failed(self, sent: SentFetch, error: BaseException, now_ms: int) -> None:
        """Retry a failed fetch after the back-off; report the error if a retry cannot cure it.

        Partitions that were read from a follower are read from the leader at once. In process the
        error may be a KeyboardInterrupt inside the broker: the interrupted call has already raised
        it, so it is not reported again.
        """
        may_be_cured = isinstance(error, KafkaError) and (
            error.retriable or error.code == ErrorCode.UNKNOWN_SERVER_ERROR
        )
        if isinstance(error, Exception) and not may_be_cured:
            if not isinstance(error, EmbedlogError):
                error = errors.UnknownServerError(repr(error))
            self._buffer.add_error(error)
        self._metadata.request_update()
        self._backs_off = True
        for state, _, _ in sent.partitions.values():
            if state.read_from_leader():
                self._goes_on = True
            else:
                state.retry_at_ms = now_ms + self._backoff_ms

    def _take_partition(
        self,
        state: PartitionState,
        data: PartitionData,
        now_ms: int,
        buffer: dict[TopicPartition, CompletedFetch],
    ) -> None:
        code = data.error_code
        if code == ErrorCode.NONE:
            state.high_watermark = data.high_watermark
            state.last_stable_offset = data.last_stable_offset
            state.retry_at_ms = 0
            if data.preferred_read_replica >= 0:
                state.read_from(data.preferred_read_replica, now_ms + self._replica_max_ms)
                self._goes_on |= not data.records
            if data.records is not None and len(data.records):
                self._counts["bytes-consumed-total"] += len(data.records)
                buffer[state.topic_partition] = CompletedFetch(
                    state,
                    data,
                    check_crcs=self._check_crcs,
                    is_committed_only=self._buffer.is_committed_only,
                )
            return
        self._backs_off = True
        state.retry_at_ms = now_ms + self._backoff_ms
        if code in STALE_METADATA and not self._is_final(state, code):
            if code != ErrorCode.UNKNOWN_LEADER_EPOCH:
                state.read_from_leader()
            self._metadata.request_update()
        elif buffer is self._buffer.ahead:
            return  # report no error while earlier records are buffered: a later fetch repeats it
        elif code == ErrorCode.OFFSET_OUT_OF_RANGE:
            self._out_of_range(state)
        elif code != ErrorCode.UNKNOWN_SERVER_ERROR:
            self._buffer.add_error(self._refusal(state, code), state)

    def _is_final(self, state: PartitionState, code: int) -> bool:
        """Whether the disk of this process has failed, so that no other leader will answer."""
        return code == ErrorCode.KAFKA_STORAGE_ERROR and (
            self._metadata.disk_error(*state.topic_partition) is not None
        )

    def _refusal(self, state: PartitionState, code: int) -> KafkaError:
        what = f"fetch of {state.topic_partition} at offset {state.offset}"
        damage = None
        if code in (ErrorCode.CORRUPT_MESSAGE, ErrorCode.KAFKA_STORAGE_ERROR):
            damage = self._metadata.disk_error(*state.topic_partition)
        refusal = error_for(code, what if damage is None else f"{what}: {damage}")
        refusal.__cause__ = damage
        return refusal

    def _out_of_range(self, state: PartitionState) -> None:
        """After a follower's error retry at the leader; after a leader's, reset the position."""
        if state.read_from_leader():
            state.retry_at_ms = 0
            self._goes_on = True
            return
        timestamp = self._policy.timestamp(self._clock.wall_ms())
        if timestamp is not None:
            state.retry_at_ms = 0
            state.reset_to(timestamp)
            self._goes_on = True
            return
        text = (
            f"offset {state.offset} of {state.topic_partition} is not in the log, and "
            f"auto.offset.reset=none: seek to another"
        )
        self._buffer.add_error(errors.OffsetOutOfRange(text), state)
