"""`Consumer`: reads records, of partitions it was assigned or as a member of a group.

    with cluster.consumer(group_id="readers", auto_offset_reset="earliest") as consumer:
        consumer.subscribe(["events"])
        for record in consumer.poll(timeout_ms=1000):
            print(record.offset, record.value)

One thread uses a consumer; only `wakeup` may come from another. Three ways to read, by price of a
record: `poll` gives named tuples, `poll_batches` plain tuples, `poll_columns` numpy columns in
place.

A member of a group polls at least every max.poll.interval.ms. Between its calls others keep it a
member: see `membership_duty`. Its positions are committed by itself, every
auto.commit.interval.ms inside poll, unless enable.auto.commit is off.
"""

from __future__ import annotations

from embedlog.client import arguments
from embedlog.client.connect import connect
from embedlog.client.consumer.closing import Closing
from embedlog.client.consumer.driver import ConsumerDriver
from embedlog.client.consumer.fetch_buffer import FetchBuffer
from embedlog.client.consumer.fetcher import Fetcher
from embedlog.client.consumer.group_calls import GroupCalls
from embedlog.client.consumer.hand_out import HandOut
from embedlog.client.consumer.lookup_calls import LookupCalls
from embedlog.client.consumer.parts import ConsumerParts
from embedlog.client.consumer.position_calls import PositionCalls
from embedlog.client.consumer.positions import Positions
from embedlog.client.consumer.record import ConsumerRecords
from embedlog.client.consumer.settings import complete
from embedlog.client.consumer.subscription_calls import SubscriptionCalls
from embedlog.client.consumer.subscription_state import (
    EARLIEST_TIMESTAMP,
    LATEST_TIMESTAMP,
    ResetPolicy,
    SubscriptionState,
)
from embedlog.client.metadata import Metadata
from embedlog.client.parse_settings import parse
from embedlog.client.settings import CONSUMER
from embedlog.client.waiting import Waiter
from embedlog.common import TopicPartition

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any

    from embedlog.client.connect import Target
    from embedlog.client.consumer.group.group_offsets import (
        ConsumerGroupMetadata,
        OffsetAndMetadata,
    )
    from embedlog.client.consumer.group.offset_commits import Callback
    from embedlog.client.consumer.group_calls import GivenOffsets
    from embedlog.client.consumer.offset_lookup import OffsetAndTimestamp
    from embedlog.client.consumer.rebalance_listener import ConsumerRebalanceListener
    from embedlog.client.consumer.record import ConsumerRecord, PolledBatch, PolledColumns
    from embedlog.client.consumer.subscription_state import Pattern, SubscriptionPattern
    from embedlog.client.metadata import PartitionInfo, TopicInfo
    from embedlog.transport import Transport

_ITERATION_WAIT_MS = 1_000


class Consumer:
    """Reads records by assignment, or by subscription as a member of a group.

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
        self._open(target, config, settings)

    def _open(
        self, target: Target, config: Mapping[str, Any] | None, settings: Mapping[str, Any]
    ) -> tuple[ConsumerParts, ConsumerDriver]:
        self._settings = complete(parse(CONSUMER, config, settings))
        policy = ResetPolicy(self._settings["auto.offset.reset"])
        transport = connect(self, target, self._settings)
        try:
            return self._build(transport, policy)
        except BaseException:
            transport.close()
            raise

    def _build(
        self, transport: Transport, policy: ResetPolicy
    ) -> tuple[ConsumerParts, ConsumerDriver]:
        settings = self._settings
        self._poll_count_max: int = settings["max.poll.records"]
        creates = settings["allow.auto.create.topics"]
        metadata = Metadata(transport, settings, create_topics=creates)
        waiter = Waiter(transport, metadata)
        parts = ConsumerParts(transport, metadata, SubscriptionState(), settings, waiter.arrived)
        buffer = FetchBuffer(parts)
        fetcher = Fetcher(parts, policy, buffer)
        if settings["interceptor.classes"]:
            from embedlog.client.interceptors import InterceptorChain

            parts.interceptors = InterceptorChain(settings["interceptor.classes"], settings)
        coordinator = None
        if settings["group.id"] is not None:
            from embedlog.client.consumer.group.consumer_coordinator import ConsumerCoordinator

            coordinator = ConsumerCoordinator(parts)
        positions = Positions(parts, policy, coordinator)
        driver = ConsumerDriver(parts, waiter, fetcher, positions, coordinator)
        self._parts = parts
        self._hand_out = HandOut(parts, buffer)
        self._buffer = buffer
        self._driver = driver
        self._subscription = SubscriptionCalls(parts, driver)
        self._positions = PositionCalls(parts, driver, buffer)
        self._lookups = LookupCalls(parts, driver)
        self._group = GroupCalls(parts, driver)
        self._closing = Closing(parts, driver, fetcher, self._hand_out)
        return parts, driver

    # What to read

    def assign(self, partitions: Iterable[TopicPartition | tuple[str, int]]) -> None:
        """Read these partitions and no others; an empty list is `unsubscribe`.

        A partition that was assigned before keeps its position and its pause. With a group.id the
        group's committed offsets are where reading begins, but no rebalance takes place.

        Raises:
            IllegalState: topics are subscribed.
        """
        self._subscription.assign(partitions)

    def unassign(self) -> None:
        """Read nothing."""
        self.unsubscribe()

    def assignment(self) -> set[TopicPartition]:
        """The partitions that are read, named by the user or assigned by the group."""
        return self._subscription.assignment()

    def subscribe(
        self,
        topics: Iterable[str] | Pattern | SubscriptionPattern | None = None,
        *,
        pattern: str | Pattern | None = None,
        listener: ConsumerRebalanceListener | None = None,
    ) -> None:
        """Read these topics together with the other members of the group.

        Topics are names; or a regular expression of Python's (`pattern`, or compiled) that whole
        names are matched with, here; or a `SubscriptionPattern`, which the broker matches. The next
        polls join the group. A later call replaces this one; no names at all are `unsubscribe`.

        Raises:
            IllegalState: partitions were assigned, or another kind of subscription is in force.
            KafkaError: InvalidGroupId, without a group.id.
            TypeError, ValueError: the topics are no names, one str among them, or the listener is
                none.
        """
        self._subscription.subscribe(topics, pattern=pattern, listener=listener)

    def unsubscribe(self) -> None:
        """Read nothing, and leave the group."""
        self._subscription.unsubscribe()

    def subscription(self) -> set[str]:
        """The topics asked for; with a pattern those that match, as far as known here."""
        return self._subscription.subscription()

    # Reading

    def poll(self, timeout_ms: int = 0, *, max_records: int | None = None) -> ConsumerRecords:
        """Records that have arrived, waiting at most `timeout_ms` for the first; maybe none.

        At most max.poll.records (or `max_records`). The position moves past what is returned.

        Raises:
            IllegalState: nothing is subscribed or assigned.
            NoOffsetForPartition, OffsetOutOfRange: with auto.offset.reset=none.
            LogTruncation: as well, where what was read is gone.
            RecordUnreadable: the next record is damaged or a deserializer refused it.
            KafkaError: a broker, or the group's coordinator, refuses for good.
            Exception: a rebalance listener's, or that of a callback of `commit_async`.
            WakeupError: `wakeup` was called.
        """
        count_max = self._count_max(max_records)
        found = self._driver.poll(timeout_ms, lambda: self._hand_out.records(count_max))
        if found is None:
            return ConsumerRecords({})
        interceptors = self._parts.interceptors
        return found if interceptors is None else interceptors.transform("on_consume", found)

    def poll_batches(
        self, timeout_ms: int = 0, *, max_records: int | None = None
    ) -> list[PolledBatch]:
        """As `poll`, but plain tuples, together as they were written.

        Deserializers and interceptors are not used. Reads a record in about half the time of
        `poll`.
        """
        count_max = self._count_max(max_records)
        return self._driver.poll(timeout_ms, lambda: self._hand_out.batches(count_max)) or []

    def poll_columns(
        self, timeout_ms: int = 0, *, max_records: int | None = None
    ) -> list[PolledColumns]:
        """As `poll`, but whole record batches as numpy columns over the bytes as they are stored.

        The last batch may pass the limit: batches are not cut.
        """
        count_max = self._count_max(max_records)
        return self._driver.poll(timeout_ms, lambda: self._hand_out.columns(count_max)) or []

    def __iter__(self) -> Iterator[ConsumerRecord]:
        """Every record, waiting for more for ever; ends with WakeupError or when closed.

        The position follows each record, so that a commit in the loop, or leaving it, counts none
        as read that was not handed out. `poll` is twice as fast or more.
        """
        guard, driver, next_record = self._driver.guard, self._driver, self._hand_out.next_record
        while True:
            yield from self.poll(_ITERATION_WAIT_MS, max_records=1)
            if self._parts.interceptors is not None:
                continue  # they see what a poll returns
            for _ in range(self._poll_count_max):
                with guard:
                    record = None if driver.is_woken else next_record()
                if record is None:
                    break
                yield record

    def wakeup(self) -> None:
        """Make the call that waits, or the next one that would, raise WakeupError.

        From any thread, and from a signal handler: it takes no lock.
        """
        self._driver.wakeup()

    # Positions

    def seek(
        self, partition: TopicPartition | tuple[str, int], offset: int | OffsetAndMetadata
    ) -> None:
        """Go on at `offset` of an assigned partition.

        With an `OffsetAndMetadata` that has a leader epoch the log is first asked whether it still
        has what was read before that offset (KIP-320).
        """
        self._positions.seek(partition, offset)

    def seek_to_beginning(self, *partitions: TopicPartition | tuple[str, int]) -> None:
        """Go on at the first record, of all assigned partitions when none is named."""
        self._positions.seek_to(partitions, EARLIEST_TIMESTAMP, "seek_to_beginning")

    def seek_to_end(self, *partitions: TopicPartition | tuple[str, int]) -> None:
        """Go on at the end (with read_committed: before open transactions)."""
        self._positions.seek_to(partitions, LATEST_TIMESTAMP, "seek_to_end")

    def position(
        self, partition: TopicPartition | tuple[str, int], timeout_ms: int | None = None
    ) -> int:
        """The offset of the next record to read, looked up if there is none yet.

        Raises:
            TimedOut: it could not be found in time; NoOffsetForPartition: none may be chosen.
        """
        return self._positions.position(partition, timeout_ms)

    def pause(self, *partitions: TopicPartition | tuple[str, int]) -> None:
        """Stop handing out records of these partitions; what was fetched is kept.

        A rebalance ends it, unless the partition stays here throughout.
        """
        self._positions.set_paused(partitions, is_paused=True, call="pause")

    def resume(self, *partitions: TopicPartition | tuple[str, int]) -> None:
        """Hand out records of these partitions again."""
        self._positions.set_paused(partitions, is_paused=False, call="resume")

    def paused(self) -> set[TopicPartition]:
        """The paused partitions."""
        return self._positions.paused()

    def current_lag(self, partition: TopicPartition | tuple[str, int]) -> int | None:
        """Records between the position and the end as of the last fetch; None if not known."""
        return self._positions.current_lag(partition)

    # Looking around

    def beginning_offsets(
        self, partitions: Iterable[TopicPartition | tuple[str, int]], timeout_ms: int | None = None
    ) -> dict[TopicPartition, int]:
        """The first offset of each partition, assigned or not."""
        call = "beginning_offsets"
        return self._lookups.edge_offsets(partitions, EARLIEST_TIMESTAMP, timeout_ms, call)

    def end_offsets(
        self, partitions: Iterable[TopicPartition | tuple[str, int]], timeout_ms: int | None = None
    ) -> dict[TopicPartition, int]:
        """The offset after the last readable record of each partition, assigned or not."""
        return self._lookups.edge_offsets(partitions, LATEST_TIMESTAMP, timeout_ms, "end_offsets")

    def offsets_for_times(
        self,
        timestamps: Mapping[TopicPartition, int] | Mapping[tuple[str, int], int],
        timeout_ms: int | None = None,
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """The first record at or after a timestamp (ms) in each partition; None if there is none.

        Raises:
            ValueError: a timestamp is negative.
        """
        return self._lookups.offsets_for_times(timestamps, timeout_ms)

    def partitions_for(self, topic: str, timeout_ms: int | None = None) -> list[PartitionInfo]:
        """The partitions of a topic; empty when there is no such topic.

        A topic that was not there is asked for again by every call.

        Raises:
            TimedOut: the cluster did not tell in time; KafkaError: it refused.
        """
        return self._lookups.partitions_for(topic, timeout_ms)

    def list_topics(self, timeout_ms: int | None = None) -> dict[str, TopicInfo]:
        """Every topic of the cluster."""
        return self._lookups.list_topics(timeout_ms)

    # The group

    def commit(self, offsets: GivenOffsets | None = None, timeout_ms: int | None = None) -> None:
        """Store offsets for the group, by default the positions; returns when they are stored.

        An offset is that of the next record to read. Commits made before, asynchronously, have
        ended too when this returns.

        Raises:
            CommitFailed: the group has gone on without this consumer: poll, and read again.
            KafkaError: RebalanceInProgress: poll, then try again; FencedInstanceId; others that
                would come again.
            TimedOut: the coordinator did not answer in time.
        """
        self._group.commit(offsets, timeout_ms)

    def commit_async(
        self, offsets: GivenOffsets | None = None, callback: Callback | None = None
    ) -> None:
        """Begin a commit and return; it is not retried, as a later one may overtake it.

        `callback(offsets, error)` is called inside a later poll, commit or close, in order. An
        error that another attempt may cure is a `RetriableCommitFailed`.
        """
        self._group.commit_async(offsets, callback)

    def committed(
        self,
        partitions: Iterable[TopicPartition | tuple[str, int]],
        timeout_ms: int | None = None,
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """What the group has stored for these partitions, None where nothing.

        Raises:
            KafkaError: the coordinator refuses to say; TimedOut: it did not answer in time.
        """
        return self._group.committed(partitions, timeout_ms)

    def consumed_offsets(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """What `commit` would store: the positions, each with the leader epoch it was read in.

        For a transactional producer, which commits them with what was made of the records.

        Raises:
            IllegalState: enable.auto.commit is on: what the consumer commits by itself would count
                also if the transaction does not.
        """
        return self._group.consumed_offsets()

    def group_metadata(self) -> ConsumerGroupMetadata:
        """Who this consumer is to its group, for a transactional producer."""
        return self._group.group_metadata()

    def enforce_rebalance(self, reason: str = "rebalance enforced by user") -> None:
        """Have the group rebalance; the next poll begins. In vain while one is under way.

        Without effect with group.protocol=consumer, where the broker alone decides.
        """
        self._group.enforce_rebalance(reason)

    # Life

    def __repr__(self) -> str:
        group = self._settings["group.id"]
        state = (
            "closed"
            if self._driver.guard.is_closed
            else f"{len(self._parts.subscription.partitions)} partitions"
        )
        member = f" of group {group!r}" if group is not None else ""
        return f"<Consumer {self._settings['client.id']!r}{member}, {state}>"

    def metrics(self) -> dict[str, float]:
        """What happened so far, under Kafka's names of metrics; a rate is for whoever asks twice.

        From any thread, also after `close`.

        >>> with embedlog.open() as cluster, embedlog.Consumer(cluster) as consumer:
        ...     consumer.metrics()["records-consumed-total"]
        0.0
        """
        from embedlog.client.consumer.metrics import metrics_of

        return metrics_of(self._parts, self._buffer, self._driver.coordinator)

    def close(self, timeout: float | None = None, *, membership: int = 0) -> None:
        """Commit if that is automatic, leave the group, give back what is held. Again is allowed.

        At most `timeout` seconds (30) are spent on waiting for brokers. `membership` is one of
        `CloseOptions`: by default static members stay in the group until their session ends.

        Raises:
            KafkaError: commits were under way, and a broker refuses for good; not if that is what
                the consumer's last error said.
            Exception: a callback's of the user; the consumer is closed all the same.
        """
        self._closing.close(timeout, membership)

    def __enter__(self) -> Consumer:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def _count_max(self, max_records: int | None) -> int:
        if max_records is None:
            return self._poll_count_max
        return arguments.count(max_records, "poll", "max_records")


def shared(
    target: Target, config: Mapping[str, Any] | None, settings: Mapping[str, Any]
) -> tuple[Consumer, ConsumerParts, ConsumerDriver]:
    """A consumer and what it is made of, for who has threads of its own use it in turn."""
    consumer = Consumer.__new__(Consumer)
    parts, driver = consumer._open(target, config, settings)
    return consumer, parts, driver
