"""Fetches ahead of the application, and hands out what came.

One fetch request for each node is under way at a time. What arrives is kept until the application
polls it; a seek makes it stale. Over a network the next fetch is under way meanwhile: a partition
has up to two answers, the one that is handed out and the one that follows it. But nothing is
fetched from a node as long as a buffered partition of it has both, or ends where the log does: that
fetch would wait for new records of the other partitions, and keep this one waiting.
"""

from __future__ import annotations

from embedlog import errors
from embedlog.client.consumer.completed_fetch import CompletedFetch
from embedlog.client.consumer.consumer_record import (
    JOINED_SIZE_MAX,
    ConsumerRecord,
    ConsumerRecords,
    PolledBatch,
    PolledColumns,
    RecordChunk,
)
from embedlog.client.consumer.fetch_session import FetchSession, SentFetch, is_broken_session
from embedlog.client.consumer.subscription_state import FetchState
from embedlog.client.errors import RecordUnreadable
from embedlog.client.metadata import STALE_METADATA
from embedlog.client.parse_settings import close_converters, converters
from embedlog.common import TopicPartition, deque
from embedlog.errors import EmbedlogError, KafkaError, error_for
from wire.error_codes import ErrorCode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from embedlog.client.consumer.consumer_parts import ConsumerParts
    from embedlog.client.consumer.consumer_record import Chunk
    from embedlog.client.consumer.fetch_session import Wanted
    from embedlog.client.consumer.subscription_state import PartitionState, ResetPolicy
    from embedlog.client.metadata import PartitionInfo
    from embedlog.pending import Pending
    from wire.records.decode.rows import Rows
    from wire.schemas.fetch import PartitionData


class Fetcher:
    """The fetches and the buffer of one consumer. Used by one thread at a time."""

    def __init__(self, parts: ConsumerParts, policy: ResetPolicy) -> None:
        settings = parts.settings
        transport = parts.transport
        self._transport = transport
        self._metadata = parts.metadata
        self._subscription = parts.subscription
        self._policy = policy
        self._arrived = parts.arrived
        self._count = parts.count
        self._clock = transport.runtime.clock
        self._backoff_ms: int = settings["retry.backoff.ms"]
        self._replica_max_ms: int = settings["metadata.max.age.ms"]
        self._partition_size_max: int = settings["max.partition.fetch.bytes"]
        self._check_crcs: bool = settings["check.crcs"]
        self._is_committed_only = settings["isolation.level"] == "read_committed"
        self._key_of, self._value_of = converters(settings, "deserializer")
        self._limits = {
            "max_wait_ms": settings["fetch.max.wait.ms"],
            "min_bytes": settings["fetch.min.bytes"],
            "max_bytes": settings["fetch.max.bytes"],
            "isolation_level": int(self._is_committed_only),
            "rack_id": settings["client.rack"],
        }
        self._sessions: dict[int, FetchSession] = {}
        self._sent: dict[int, SentFetch] = {}
        self._buffer: dict[TopicPartition, CompletedFetch] = {}
        self._ahead: dict[TopicPartition, CompletedFetch] = {}
        """What follows a buffered answer."""
        self._current: CompletedFetch | None = None
        """The answer that was handed out from last."""
        self._errors: deque[EmbedlogError] = deque()
        self._moved = False
        """The last hand-out passed batches that have nothing for the application."""
        self._backs_off = False
        """Some partition is to be fetched again later."""
        self._goes_on = False
        """The next pass has something to do at once."""

    # Fetching

    def advance(self, now_ms: int) -> int | None:
        """Take what arrived and fetch what is missing; milliseconds until more is possible."""
        self.take_arrived(now_ms)
        self._send(now_ms)
        self.take_arrived(now_ms)  # in process the answers are there at once
        if self._goes_on:
            self._goes_on = False
            return 0
        return self._retry_delay(now_ms) if self._backs_off else None

    @property
    def is_behind(self) -> bool:
        """Was there more in a log, as of its last fetch, than is handed out?

        If not, a fetch would only wait, and sending it first keep the application from its records.
        """
        states = self._subscription.partitions.values()
        return any(state.offset < self._end(state) for state in states)

    def take_arrived(self, now_ms: int) -> bool:
        """Take the answers that are there; was there any?"""
        found = False
        for node_id, sent in list(self._sent.items()):
            if sent.pending.done():
                found = True
                del self._sent[node_id]
                self._take(sent, now_ms)
        return found

    def _retry_delay(self, now_ms: int) -> int | None:
        states = self._subscription.partitions.values()
        times = [state.retry_at_ms for state in states if state.retry_at_ms > now_ms]
        self._backs_off = bool(times)
        return min(times) - now_ms if times else None

    def lag(self, state: PartitionState) -> int | None:
        """Records between a position and the end as of the last fetch; None if not known."""
        end = self._end(state)
        return None if end < 0 or state.offset < 0 else max(end - state.offset, 0)

    def _end(self, state: PartitionState) -> int:
        """Where the log ends for this consumer, as of the last fetch; -1 if not known."""
        return state.last_stable_offset if self._is_committed_only else state.high_watermark

    def close(self) -> list[Pending[Any]]:
        """End the sessions; the answers may be waited for.

        Not those that come after the answer to a fetch that waits, for up to fetch.max.wait.ms.
        """
        closing = []
        for node_id, session in self._sessions.items():
            request = session.closing_request()
            if request is not None:
                pending = self._transport.send(node_id, request)
                if node_id not in self._sent:
                    closing.append(pending)
        self._sessions.clear()
        self._buffer.clear()
        self._ahead.clear()
        self._current = None
        close_converters(self._key_of, self._value_of)
        return closing

    def _send(self, now_ms: int) -> None:
        wanted: dict[int, dict[TopicPartition, Wanted]] = {}
        busy = self._nodes_with_buffered(now_ms) if self._buffer else self._sent
        for key, state in self._subscription.partitions.items():
            if not state.is_fetchable:
                continue
            buffered = self._buffer.get(key)
            if buffered is not None and not self._may_fetch_after(buffered):
                continue
            leader = self._metadata.leader(*key)
            if leader is None:
                self._metadata.request_update()
                continue
            node_id = self._node_for(state, leader, now_ms)
            if node_id in busy or state.retry_at_ms > now_ms:
                continue
            topic_id = self._metadata.topics[key[0]].topic_id
            wanted.setdefault(node_id, {})[key] = (
                topic_id,
                leader.leader_epoch,
                state.offset if buffered is None else buffered.end_offset,
                self._partition_size_max,
            )
        for node_id, partitions in wanted.items():
            self._fetch(node_id, partitions)

    def _node_for(self, state: PartitionState, leader: PartitionInfo, now_ms: int) -> int:
        """The node to read from: the follower that the leader named, while it is one (KIP-392)."""
        if state.read_replica is None:
            return leader.leader
        node_id, until_ms = state.read_replica
        if now_ms <= until_ms:
            is_there = node_id in self._metadata.nodes and node_id in leader.replicas
            if is_there and node_id not in leader.offline_replicas:
                return node_id
            self._metadata.request_update()
        state.read_from_leader()
        return leader.leader

    def _fetch(self, node_id: int, wanted: dict[TopicPartition, Wanted]) -> None:
        session = self._sessions.get(node_id)
        if session is None:
            session = self._sessions[node_id] = FetchSession()
        request = session.request(wanted, **self._limits)
        states = self._subscription.partitions
        partitions: dict[tuple[str, int], tuple[PartitionState, int, int]] = {
            key: (states[key], states[key].generation, want[2]) for key, want in wanted.items()
        }
        self._count("fetch-total")
        pending = self._transport.send(node_id, request)
        self._sent[node_id] = SentFetch(session, partitions, pending)
        if not pending.done():
            pending.add_callback(self._arrived)

    def _nodes_with_buffered(self, now_ms: int) -> set[int]:
        """Nodes that are not fetched from now; what a seek made stale is dropped on the way."""
        busy = set(self._sent)
        for key, fetch in list(self._buffer.items()):
            if self._is_stale(fetch):
                self._drop(key)
                continue
            state = fetch.state
            if state.is_paused or state.is_revoking or self._may_fetch_after(fetch):
                continue
            leader = self._metadata.leader(*key)
            if leader is not None:
                busy.add(self._node_for(state, leader, now_ms))
        return busy

    def _may_fetch_after(self, fetch: CompletedFetch) -> bool:
        """Is there more in the log than the buffered answer, and no second one yet?"""
        if self._transport.in_process or fetch.state.topic_partition in self._ahead:
            return False
        return 0 <= fetch.end_offset < self._end(fetch.state)

    def _is_stale(self, fetch: CompletedFetch) -> bool:
        state = fetch.state
        current = self._subscription.partitions.get(state.topic_partition)
        return current is not state or fetch.generation != state.generation

    def _drop(self, key: TopicPartition) -> None:
        """The buffered answer is over, or stale; the one after it takes its place."""
        del self._buffer[key]
        ahead = self._ahead.pop(key, None)
        if ahead is not None and not self._is_stale(ahead):
            self._buffer[key] = ahead

    # Answers

    def _take(self, sent: SentFetch, now_ms: int) -> None:
        error = sent.pending.error()
        if error is not None:
            sent.session.reset()
            self._failed(sent, error, now_ms)
            return
        response = sent.pending.result()
        if not sent.session.answered(response.error_code, response.session_id):
            if not is_broken_session(response.error_code):
                self._failed(sent, error_for(response.error_code), now_ms)
            elif response.error_code in STALE_METADATA:
                self._metadata.request_update()
            return
        for topic in response.responses:
            name = topic.topic or self._metadata.names_by_id.get(topic.topic_id, "")
            for data in topic.partitions:
                # It equals the `TopicPartition`, and is made in a tenth of the time.
                asked = sent.partitions.get((name, data.partition_index))
                if asked is None:
                    continue
                state, generation, offset = asked
                key = state.topic_partition
                current = self._subscription.partitions.get(key)
                if current is not state or state.generation != generation:
                    continue
                if state.offset == offset:
                    self._take_partition(state, data, now_ms, self._buffer)
                elif key in self._buffer and self._buffer[key].end_offset == offset:
                    self._take_partition(state, data, now_ms, self._ahead)

    def _failed(self, sent: SentFetch, error: BaseException, now_ms: int) -> None:
        """The whole fetch failed: try again after a while, unless that cannot help.

        Those that were read from a follower are read from their leaders, at once. In process a
        KeyboardInterrupt may end the broker's part of it, and whoever was interrupted knows.
        """
        may_be_cured = isinstance(error, KafkaError) and (
            error.retriable or error.code == ErrorCode.UNKNOWN_SERVER_ERROR
        )
        if isinstance(error, Exception) and not may_be_cured:
            reason = (
                error
                if isinstance(error, EmbedlogError)
                else errors.UnknownServerError(repr(error))
            )
            self._errors.append(reason)
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
            state.log_start_offset = data.log_start_offset
            state.retry_at_ms = 0
            if data.preferred_read_replica >= 0:
                state.read_from(data.preferred_read_replica, now_ms + self._replica_max_ms)
                self._goes_on |= not data.records
            if data.records is not None and len(data.records):
                self._count("bytes-consumed-total", len(data.records))
                buffer[state.topic_partition] = CompletedFetch(
                    state,
                    data,
                    check_crcs=self._check_crcs,
                    is_committed_only=self._is_committed_only,
                )
            return
        self._backs_off = True
        state.retry_at_ms = now_ms + self._backoff_ms
        if code in STALE_METADATA:
            if code != ErrorCode.UNKNOWN_LEADER_EPOCH:
                state.read_from_leader()
            self._metadata.request_update()
        elif buffer is self._ahead:
            return  # asked again when it is its turn: then it concerns the application
        elif code == ErrorCode.OFFSET_OUT_OF_RANGE:
            self._out_of_range(state)
        elif code != ErrorCode.UNKNOWN_SERVER_ERROR:
            self._errors.append(self._refusal(state, code))

    def _refusal(self, state: PartitionState, code: int) -> KafkaError:
        what = f"fetch of {state.topic_partition} at offset {state.offset}"
        damage = None
        if code == ErrorCode.CORRUPT_MESSAGE and self._transport.in_process:
            damage = self._transport.disk_error(*state.topic_partition)
        refusal = error_for(code, what if damage is None else f"{what}: {damage}")
        refusal.__cause__ = damage
        return refusal

    def _out_of_range(self, state: PartitionState) -> None:
        """Choose another position; if it was a follower that does not have it, ask the leader."""
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
        self._errors.append(
            errors.OffsetOutOfRange(
                f"offset {state.offset} of {state.topic_partition} is not in the log, and "
                f"auto.offset.reset=none: seek to one that is",
            )
        )

    # Handing out

    def records(self, count_max: int) -> ConsumerRecords | None:
        """Up to `count_max` buffered records; None when there are none.

        Empty, not None, when only positions moved: past markers or aborted records.

        Raises:
            RecordUnreadable: the next record cannot be handed out.
            KafkaError: a fetch was refused.
        """
        found: dict[TopicPartition, list[Chunk]] = {}
        decodes = self._key_of is not None or self._value_of is not None
        left = count_max
        try:
            for key, fetch in self._ready():
                chunks = found.get(key, [])
                chunk = None
                while left and not fetch.is_drained:
                    taken = fetch.take(left, several=True)
                    size = len(taken.offsets)
                    if not size:
                        break
                    left -= size
                    found[key] = chunks
                    if decodes:
                        decoded: list[ConsumerRecord] = []
                        chunks.append(decoded)
                        self._decode(fetch, taken, decoded)
                        continue
                    head = fetch.head
                    if chunk is None or chunk.head != head or size > JOINED_SIZE_MAX:
                        chunk = RecordChunk(head)
                        chunks.append(chunk)
                    chunk.add(taken, size)
                if not left:
                    break
        except RecordUnreadable:
            # What comes before it is handed out first; the next poll raises.
            found = {key: chunks for key, chunks in found.items() if any(chunks)}
            if not found:
                raise
        self._count("records-consumed-total", count_max - left)
        return ConsumerRecords(found) if found or self._moved else None

    def next_record(self) -> ConsumerRecord | None:
        """One more record of the batch that the last one was of; None where `records` must look.

        Raises:
            RecordUnreadable: a deserializer refused it.
        """
        fetch = self._current
        if fetch is None or self._errors or self._is_stale(fetch) or not fetch.state.is_fetchable:
            return None
        if self._key_of is None and self._value_of is None:
            record = fetch.take_next()
        elif fetch.is_inside_batch:
            decoded: list[ConsumerRecord] = []
            self._decode(fetch, fetch.take(1), decoded)
            (record,) = decoded
        else:
            record = None
        if record is not None:
            self._count("records-consumed-total")
        return record

    def batches(self, count_max: int) -> list[PolledBatch] | None:
        """As `records`, but the plain tuples of each record batch together."""
        found: list[PolledBatch] = []
        left = count_max
        try:
            for key, fetch in self._ready():
                while left and not fetch.is_drained:
                    taken = fetch.take(left)
                    size = len(taken.offsets)
                    if not size:
                        break
                    left -= size
                    _, _, epoch, timestamp_type = fetch.head
                    found.append(PolledBatch(key, epoch, timestamp_type, taken))
                if not left:
                    break
        except RecordUnreadable:
            if not found:
                raise
        self._count("records-consumed-total", count_max - left)
        return found if found or self._moved else None

    def columns(self, count_max: int) -> list[PolledColumns] | None:
        """As `records`, but whole record batches read in place, the last may pass `count_max`."""
        found: list[PolledColumns] = []
        left = count_max
        try:
            for key, fetch in self._ready():
                while left > 0:
                    taken = fetch.take_columns(left)
                    if taken is None:
                        break
                    columns, start = taken
                    _, _, epoch, kind = fetch.head
                    found.append(PolledColumns(key, epoch, kind, columns, start))
                    left -= columns.count - start
                if left <= 0:
                    break
        except RecordUnreadable:
            if not found:
                raise
        self._count("records-consumed-total", count_max - left)
        return found if found or self._moved else None

    def _ready(self) -> Iterator[tuple[TopicPartition, CompletedFetch]]:
        """The buffered fetches to hand out from; the one that is drained meanwhile goes."""
        if self._errors:
            raise self._errors.popleft()
        self._moved = False
        for key in list(self._buffer):
            while (fetch := self._buffer.get(key)) is not None:
                if self._is_stale(fetch):
                    self._drop(key)
                    continue
                state = fetch.state
                if state.is_paused or state.is_revoking or state.state != FetchState.FETCHING:
                    break
                self._current = fetch
                yield key, fetch
                assert fetch.is_drained, key  # or else the caller has enough
                self._moved |= fetch.take_moved()
                self._current = None
                self._drop(key)

    def _decode(self, fetch: CompletedFetch, taken: Rows, records: list[ConsumerRecord]) -> None:
        """Deserialize; at the first failure the rest is given back and the error raised."""
        head = fetch.head
        topic, partition = fetch.state.topic_partition
        key_of = None if self._key_of is None else self._key_of.for_topic(topic)
        value_of = None if self._value_of is None else self._value_of.for_topic(topic)
        for offset, timestamp, key, value, headers in taken:
            step = self._key_of
            try:
                if key_of is not None and key is not None:
                    key = key_of(key)
                step = self._value_of
                if value_of is not None and value is not None:
                    value = value_of(value)
            except Exception as error:
                fetch.give_back(offset)
                assert step is not None, self
                reason = f"the deserializer says {error!r} ({step.setting} {step.name})"
                raise RecordUnreadable(topic, partition, offset, reason) from error
            records.append(ConsumerRecord((*head, offset, timestamp, key, value, headers)))
