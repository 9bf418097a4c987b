"""`Consumer`: reads records of the partitions it was assigned, in process or over the network.

    with cluster.consumer(auto_offset_reset="earliest") as consumer:
        consumer.assign([TopicPartition("events", 0)])
        for record in consumer.poll(timeout_ms=1000):
            print(record.offset, record.value)

One thread uses a consumer; only `wakeup` may come from another. Three ways to read, by price of a
record: `poll` gives named tuples, `poll_batches` plain tuples, `poll_columns` numpy columns in
place.
"""

from __future__ import annotations

from _thread import allocate_lock, get_ident

from embedlog.client.connect import connect
from embedlog.client.consumer_record import ConsumerRecords
from embedlog.client.consumer_settings import CONSUMER, complete
from embedlog.client.errors import ConcurrentUse, IllegalState, NoOffsetForPartition, WakeupError
from embedlog.client.fetcher import Fetcher
from embedlog.client.metadata import Metadata
from embedlog.client.offset_lookup import OffsetLookup
from embedlog.client.settings import parse
from embedlog.client.subscription_state import (
    EARLIEST_TIMESTAMP,
    LATEST_TIMESTAMP,
    FetchState,
    ResetPolicy,
    SubscriptionState,
)
from embedlog.client.waiting import Waiter
from embedlog.common import TopicPartition
from embedlog.errors import ClosedError, TimedOut

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import Any, TypeVar

    from embedlog.client.connect import Target
    from embedlog.client.consumer_record import ConsumerRecord, PolledBatch, PolledColumns
    from embedlog.client.metadata import PartitionInfo, TopicInfo
    from embedlog.client.offset_lookup import OffsetAndTimestamp
    from embedlog.client.subscription_state import PartitionState

    T = TypeVar("T")

_CLOSE_TIMEOUT_S = 30.0
_ITERATION_WAIT_MS = 1_000


class Consumer:
    """Reads records by assignment.

    `target` is a cluster of this process or "host:port"; settings are Kafka's keys, as keyword
    arguments (`max_poll_records=100`) or in a dict.

    >>> with embedlog.open() as cluster, embedlog.Producer(cluster) as producer:
    ...     written = producer.send("events", b"value").result()
    ...     with embedlog.Consumer(cluster) as consumer:
    ...         consumer.assign([("events", 0)])
    ...         consumer.seek_to_beginning()
    ...         [record.value for record in consumer.poll(1000)]
    [b'value']
    """

    def __init__(
        self, target: Target = None, config: Mapping[str, Any] | None = None, **settings: Any
    ) -> None:
        self._settings = complete(parse(CONSUMER, config, settings))
        self._policy = ResetPolicy(self._settings["auto.offset.reset"])
        self._transport = connect(target, self._settings)
        self._clock = self._transport.runtime.clock
        self._api_timeout_ms: int = self._settings["default.api.timeout.ms"]
        self._poll_count_max: int = self._settings["max.poll.records"]
        self._metadata = Metadata(
            self._transport,
            self._settings,
            create_topics=self._settings["allow.auto.create.topics"],
        )
        self._waiter = Waiter(self._transport, self._metadata)
        self._subscription = SubscriptionState()
        self._fetcher = Fetcher(
            self._transport,
            self._metadata,
            self._subscription,
            self._settings,
            policy=self._policy,
            arrived=self._waiter.arrived,
        )
        self._reset: OffsetLookup | None = None
        self._reset_generations: dict[TopicPartition, int] = {}
        self._is_woken = False
        self._guard = _Guard()

    # Assignment

    def assign(self, partitions: Iterable[TopicPartition | tuple[str, int]]) -> None:
        """Read these partitions and no others; an empty list is `unassign`.

        A partition that was assigned before keeps its position and its pause.
        """
        with self._guard:
            keys = [TopicPartition(*each) for each in partitions]
            for topic, partition in keys:
                if not isinstance(topic, str) or not topic.strip() or partition < 0:
                    raise ValueError(f"not a partition: {topic!r}, {partition}")
                self._metadata.want(topic)
            self._subscription.assign(keys)

    def unassign(self) -> None:
        """Read nothing."""
        self.assign([])

    def assignment(self) -> set[TopicPartition]:
        """The assigned partitions."""
        with self._guard:
            return set(self._subscription.partitions)

    # Reading

    def poll(self, timeout_ms: int = 0, *, max_records: int | None = None) -> ConsumerRecords:
        """Records that have arrived, waiting at most `timeout_ms` for the first; maybe none.

        At most max.poll.records (or `max_records`). The position moves past what is returned.

        Raises:
            IllegalState: nothing is assigned.
            NoOffsetForPartition, OffsetOutOfRange: with auto.offset.reset=none.
            RecordUnreadable: the next record is damaged or a deserializer refused it.
            WakeupError: `wakeup` was called.
        """
        count_max = self._count_max(max_records)
        found = self._poll(timeout_ms, lambda: self._fetcher.records(count_max))
        return found if found is not None else ConsumerRecords({})

    def poll_batches(
        self, timeout_ms: int = 0, *, max_records: int | None = None
    ) -> list[PolledBatch]:
        """As `poll`, but plain tuples, together as they were written; deserializers are not used.

        Reads a record in about half the time of `poll`.
        """
        count_max = self._count_max(max_records)
        return self._poll(timeout_ms, lambda: self._fetcher.batches(count_max)) or []

    def poll_columns(
        self, timeout_ms: int = 0, *, max_records: int | None = None
    ) -> list[PolledColumns]:
        """As `poll`, but whole record batches as numpy columns over the bytes as they are stored.

        The last batch may pass the limit: batches are not cut.
        """
        count_max = self._count_max(max_records)
        return self._poll(timeout_ms, lambda: self._fetcher.columns(count_max)) or []

    def __iter__(self) -> Iterator[ConsumerRecord]:
        """Every record, waiting for more for ever; ends with WakeupError or when closed."""
        while True:
            yield from self.poll(_ITERATION_WAIT_MS)

    def wakeup(self) -> None:
        """Make the call that waits, or the next one that would, raise WakeupError. Any thread."""
        self._is_woken = True
        self._waiter.arrived()
        self._transport.wake()

    # Positions

    def seek(self, partition: TopicPartition | tuple[str, int], offset: int) -> None:
        """Go on at `offset` of an assigned partition."""
        if offset < 0:
            raise ValueError(f"offset {offset}: must not be negative")
        with self._guard:
            self._state(partition).seek(offset)

    def seek_to_beginning(self, *partitions: TopicPartition | tuple[str, int]) -> None:
        """Go on at the first record, of all assigned partitions when none is named."""
        self._seek_to(partitions, EARLIEST_TIMESTAMP)

    def seek_to_end(self, *partitions: TopicPartition | tuple[str, int]) -> None:
        """Go on at the end (with read_committed: before open transactions)."""
        self._seek_to(partitions, LATEST_TIMESTAMP)

    def position(
        self, partition: TopicPartition | tuple[str, int], timeout_ms: int | None = None
    ) -> int:
        """The offset of the next record to read, looked up if there is none yet.

        Raises:
            TimedOut: it could not be found in time; NoOffsetForPartition: none may be chosen.
        """
        with self._guard:
            state = self._state(partition)
            found = self._until(lambda: state.state == FetchState.FETCHING, timeout_ms)
            if not found:
                raise TimedOut(f"the position of {state.topic_partition} was not found in time")
            return state.offset

    def pause(self, *partitions: TopicPartition | tuple[str, int]) -> None:
        """Stop handing out records of these partitions; what was fetched is kept."""
        with self._guard:
            for each in partitions:
                self._state(each).is_paused = True

    def resume(self, *partitions: TopicPartition | tuple[str, int]) -> None:
        """Hand out records of these partitions again."""
        with self._guard:
            for each in partitions:
                self._state(each).is_paused = False

    def paused(self) -> set[TopicPartition]:
        """The paused partitions."""
        with self._guard:
            return {key for key, state in self._subscription.partitions.items() if state.is_paused}

    def current_lag(self, partition: TopicPartition | tuple[str, int]) -> int | None:
        """Records between the position and the end as of the last fetch; None if not known."""
        with self._guard:
            state = self._state(partition)
            committed_only = self._settings["isolation.level"] == "read_committed"
            end = state.last_stable_offset if committed_only else state.high_watermark
            return None if end < 0 or state.offset < 0 else max(end - state.offset, 0)

    # Looking around

    def beginning_offsets(
        self, partitions: Iterable[TopicPartition | tuple[str, int]], timeout_ms: int | None = None
    ) -> dict[TopicPartition, int]:
        """The first offset of each partition, assigned or not."""
        return self._edge_offsets(partitions, EARLIEST_TIMESTAMP, timeout_ms)

    def end_offsets(
        self, partitions: Iterable[TopicPartition | tuple[str, int]], timeout_ms: int | None = None
    ) -> dict[TopicPartition, int]:
        """The offset after the last readable record of each partition, assigned or not."""
        return self._edge_offsets(partitions, LATEST_TIMESTAMP, timeout_ms)

    def offsets_for_times(
        self,
        timestamps: Mapping[TopicPartition, int] | Mapping[tuple[str, int], int],
        timeout_ms: int | None = None,
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """The first record at or after a timestamp (ms) in each partition; None if there is none.

        Raises:
            ValueError: a timestamp is negative.
        """
        asked = {TopicPartition(*key): stamp for key, stamp in timestamps.items()}
        for key, stamp in asked.items():
            if stamp < 0:
                raise ValueError(f"timestamp {stamp} for {key}: must not be negative")
        with self._guard:
            return self._look_up(asked, timeout_ms)

    def partitions_for(self, topic: str, timeout_ms: int | None = None) -> list[PartitionInfo]:
        """The partitions of a topic; empty when there is no such topic."""
        with self._guard:
            metadata = self._metadata
            metadata.want(topic)
            self._waiter.until(
                lambda: topic in metadata.topics or topic in metadata.errors,
                self._timeout(timeout_ms),
            )
            error = metadata.topic_error(topic)
            if error is not None:
                raise error
            info = metadata.topics.get(topic)
            return [] if info is None else list(info.partitions)

    def list_topics(self, timeout_ms: int | None = None) -> dict[str, TopicInfo]:
        """Every topic of the cluster."""
        with self._guard:
            metadata = self._metadata
            before = metadata.full_version
            metadata.want_all()
            if not self._waiter.until(
                lambda: metadata.full_version > before, self._timeout(timeout_ms)
            ):
                raise TimedOut("the cluster did not describe its topics in time")
            return dict(metadata.topics)

    # Life

    def close(self, timeout: float | None = None) -> None:
        """End the fetch sessions and give back what is held. Again is allowed."""
        if self._guard.is_closed:
            return
        with self._guard:
            self._guard.is_closed = True
            limit = _CLOSE_TIMEOUT_S if timeout is None else timeout
            deadline = self._clock.monotonic_ms() + int(limit * 1000)
            for pending in self._fetcher.close():
                while not pending.done():
                    left = deadline - self._clock.monotonic_ms()
                    if left <= 0:
                        break
                    self._transport.wait(pending, left)
            self._transport.close()

    def __enter__(self) -> Consumer:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    # Inside

    def _poll(self, timeout_ms: int, collect: Callable[[], T | None]) -> T | None:
        with self._guard:
            if not self._subscription.partitions:
                raise IllegalState("nothing is assigned: call assign first")
            if self._is_woken:
                self._raise_woken()
            found = collect()
            if found is None:
                found = self._fetch_and_collect(timeout_ms, collect)
            if found is not None and not self._transport.in_process:
                # The next fetch is under way while the application works on these records.
                self._fetcher.advance(self._clock.monotonic_ms())
            return found

    def _fetch_and_collect(self, timeout_ms: int, collect: Callable[[], T | None]) -> T | None:
        now_ms = self._clock.monotonic_ms()
        deadline = now_ms + timeout_ms
        while True:
            delay = self._advance(now_ms)
            found = collect()
            if found is not None:
                return found
            self._waiter.wait(delay, deadline, now_ms)
            if self._is_woken:
                self._raise_woken()
            now_ms = self._clock.monotonic_ms()
            if now_ms >= deadline:
                # What came at the last moment still counts.
                self._advance(now_ms)
                return collect()

    def _until(self, is_done: Callable[[], bool], timeout_ms: int | None) -> bool:
        def is_over() -> bool:
            if self._is_woken:
                self._raise_woken()
            return is_done()

        limit = self._timeout(timeout_ms)
        return self._waiter.until(is_over, limit, self._reset_positions, self._fetcher.advance)

    def _advance(self, now_ms: int) -> int | None:
        return self._waiter.advance(now_ms, self._reset_positions, self._fetcher.advance)

    def _reset_positions(self, now_ms: int) -> int | None:
        """Find positions for partitions that have none."""
        if self._reset is None:
            self._begin_reset()
        lookup = self._reset
        if lookup is None:
            return None
        delay = lookup.advance(now_ms)
        if lookup.is_done:
            self._reset = None
            self._take_reset(lookup)
            return 0 if self._has_reset_to_begin() else None
        return delay

    def _has_reset_to_begin(self) -> bool:
        states = self._subscription.partitions.values()
        return any(state.state != FetchState.FETCHING for state in states)

    def _begin_reset(self) -> None:
        timestamps: dict[TopicPartition, int] = {}
        for key, state in self._subscription.partitions.items():
            if state.state == FetchState.INITIALIZING:
                chosen = self._policy.timestamp(self._clock.wall_ms())
                if chosen is None:
                    raise NoOffsetForPartition(
                        f"{key} has no position and auto.offset.reset=none: seek to one"
                    )
                state.reset_to(chosen)
            if state.state == FetchState.AWAIT_RESET:
                assert state.reset_timestamp is not None, key
                timestamps[key] = state.reset_timestamp
                self._reset_generations[key] = state.generation
        if timestamps:
            self._reset = self._lookup(timestamps)

    def _take_reset(self, lookup: OffsetLookup) -> None:
        states = self._subscription.partitions
        generations, self._reset_generations = self._reset_generations, {}
        behind: dict[TopicPartition, int] = {}
        for key, found in lookup.found.items():
            state = states.get(key)
            if state is None or state.generation != generations.get(key):
                continue
            if found is None:
                # No record is that young (by_duration): the end it is, as Kafka does.
                behind[key] = LATEST_TIMESTAMP
            else:
                state.seek(found.offset, found.leader_epoch)
        for key in behind:
            states[key].reset_to(LATEST_TIMESTAMP)
        for error in lookup.failed.values():
            raise error

    def _seek_to(self, partitions: tuple[Any, ...], timestamp: int) -> None:
        with self._guard:
            chosen = partitions or tuple(self._subscription.partitions)
            for each in chosen:
                self._state(each).reset_to(timestamp)
            # A look-up under way is for older wishes.
            self._reset = None

    def _lookup(self, timestamps: Mapping[TopicPartition, int]) -> OffsetLookup:
        return OffsetLookup(
            self._transport, self._metadata, self._settings, timestamps, self._waiter.arrived
        )

    def _look_up(
        self, timestamps: Mapping[TopicPartition, int], timeout_ms: int | None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        lookup = self._lookup(timestamps)
        if not self._waiter.until(
            lambda: lookup.is_done, self._timeout(timeout_ms), lookup.advance
        ):
            missing = ", ".join(str(key) for key in timestamps if key not in lookup.found)
            raise TimedOut(f"no offsets in time for {missing}: do these partitions exist?")
        for error in lookup.failed.values():
            raise error
        return lookup.found

    def _edge_offsets(
        self, partitions: Iterable[Any], timestamp: int, timeout_ms: int | None
    ) -> dict[TopicPartition, int]:
        keys = [TopicPartition(*each) for each in partitions]
        with self._guard:
            found = self._look_up(dict.fromkeys(keys, timestamp), timeout_ms)
        return {key: 0 if offset is None else offset.offset for key, offset in found.items()}

    def _state(self, partition: TopicPartition | tuple[str, int]) -> PartitionState:
        return self._subscription.state(TopicPartition(*partition))

    def _timeout(self, timeout_ms: int | None) -> int:
        return self._api_timeout_ms if timeout_ms is None else timeout_ms

    def _count_max(self, max_records: int | None) -> int:
        if max_records is None:
            return self._poll_count_max
        if max_records < 1:
            raise ValueError(f"max_records={max_records}: must be at least 1")
        return max_records

    def _raise_woken(self) -> None:
        self._is_woken = False
        raise WakeupError("wakeup was called")


class _Guard:
    """One thread at a time, which may enter again; others are refused, not kept waiting."""

    __slots__ = ("_depth", "_lock", "_owner", "is_closed")

    def __init__(self) -> None:
        self._lock = allocate_lock()
        self._owner = 0
        self._depth = 0
        self.is_closed = False

    def __enter__(self) -> None:
        me = get_ident()
        if self._owner != me:
            if not self._lock.acquire(blocking=False):
                raise ConcurrentUse(
                    f"thread {self._owner} uses this consumer: one thread at a time may"
                )
            self._owner = me
        if self.is_closed:
            if not self._depth:
                self._owner = 0
                self._lock.release()
            raise ClosedError("the consumer is closed")
        self._depth += 1

    def __exit__(self, *_exception: object) -> None:
        self._depth -= 1
        if not self._depth:
            self._owner = 0
            self._lock.release()
