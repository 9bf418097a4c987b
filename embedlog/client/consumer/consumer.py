"""`Consumer`: reads records of assigned partitions, or as a member of a group.

    with cluster.consumer(group_id="readers", auto_offset_reset="earliest") as consumer:
        consumer.subscribe(["events"])
        for record in consumer.poll(timeout_ms=1000):
            print(record.offset, record.value)

One thread at a time may use a consumer; other threads may call only `wakeup` and `metrics`. `poll`
returns named tuples, `poll_batches` plain tuples, which are cheaper, and `poll_columns` numpy
columns over the fetched bytes, which are cheaper still.

A member of a group must poll at least every max.poll.interval.ms. Between the application's calls a
background duty sends the heartbeats. Unless enable.auto.commit is off, poll commits the positions
every auto.commit.interval.ms. A member that is dropped without `close` leaves, with a warning.
"""

from __future__ import annotations

from embedlog import errors
from embedlog.client import arguments
from embedlog.client.connect import connect
from embedlog.client.consumer.closing import Closing
from embedlog.client.consumer.driver import ConsumerDriver
from embedlog.client.consumer.fetch_buffer import FetchBuffer
from embedlog.client.consumer.fetcher import Fetcher
from embedlog.client.consumer.hand_out import HandOut
from embedlog.client.consumer.iteration import iterate
from embedlog.client.consumer.offset_lookup import OffsetLookup
from embedlog.client.consumer.parts import ConsumerParts
from embedlog.client.consumer.positions import Positions
from embedlog.client.consumer.rebalance_listener import check_listener
from embedlog.client.consumer.record import ConsumerRecords
from embedlog.client.consumer.settings import complete
from embedlog.client.consumer.subscribed_topics import compiled, topic_names
from embedlog.client.consumer.subscription_state import (
    EARLIEST_TIMESTAMP,
    LATEST_TIMESTAMP,
    ResetPolicy,
    SubscriptionState,
    SubscriptionType,
)
from embedlog.client.errors import IllegalState, because
from embedlog.client.metadata import Metadata
from embedlog.client.parse_settings import parse
from embedlog.client.settings import CONSUMER
from embedlog.client.waiting import Waiter
from embedlog.common import TopicPartition
from embedlog.runtime.outer_call import outer, outer_close

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from re import Pattern
    from typing import Any

    from embedlog.client.connect import Target
    from embedlog.client.consumer.group.group_offsets import (
        ConsumerGroupMetadata,
        GivenOffsets,
        OffsetAndMetadata,
    )
    from embedlog.client.consumer.group.offset_commits import Callback
    from embedlog.client.consumer.offset_lookup import OffsetAndTimestamp
    from embedlog.client.consumer.rebalance_listener import ConsumerRebalanceListener
    from embedlog.client.consumer.record import ConsumerRecord, PolledBatch, PolledColumns
    from embedlog.client.consumer.subscription_state import PartitionState, SubscriptionPattern
    from embedlog.client.metadata import PartitionInfo, TopicInfo
    from embedlog.transport import Transport

    Partition = TopicPartition | tuple[str, int]

_OFFSET_FIELDS = 3  # of an `OffsetAndMetadata`


class Consumer:
    """Reads records of assigned partitions, or of subscribed topics as a member of a group.

    `target` is a cluster of this process or "host:port". Settings are Kafka's keys, as keyword
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
        policy = ResetPolicy(self._settings["auto.offset.reset"])
        transport = connect(self, target, self._settings)
        try:
            self._build(transport, policy)
        except BaseException:
            transport.close()
            raise

    def _build(self, transport: Transport, policy: ResetPolicy) -> None:
        settings = self._settings
        self._poll_count_max: int = settings["max.poll.records"]
        metadata = Metadata(transport, settings, create_topics=settings["allow.auto.create.topics"])
        waiter = Waiter(transport, metadata)
        parts = ConsumerParts(transport, metadata, SubscriptionState(), settings, waiter.arrived)
        buffer = FetchBuffer(parts)
        fetcher = Fetcher(parts, policy, buffer)
        if settings["interceptor.classes"]:
            from embedlog.client.interceptors import InterceptorChain

            parts.interceptors = InterceptorChain(settings["interceptor.classes"], settings)
        coordinator = None
        if settings["group.id"] is not None:
            from embedlog.client.consumer.group.coordinator import ConsumerCoordinator

            coordinator = ConsumerCoordinator(parts)
        positions = Positions(parts, policy, coordinator)
        driver = ConsumerDriver(parts, waiter, fetcher, positions, coordinator)
        self._parts = parts
        self._metadata = metadata
        self._subscription = parts.subscription
        self._hand_out = HandOut(parts, buffer)
        self._buffer = buffer
        self._driver = driver
        self._guard = driver.guard
        self._is_gone, self._ends_soon = driver.is_gone, driver.end_call
        self._closing = Closing(parts, driver, fetcher, self._hand_out)

    # Subscription

    @outer
    def assign(self, partitions: Iterable[Partition]) -> None:
        """Read these partitions and no others; an empty list means `unsubscribe`.

        A partition that was assigned before keeps its position and its pause. With a group.id,
        reading begins at the group's committed offsets, but no rebalance takes place.

        Raises:
            IllegalState: topics are subscribed.
        """
        with self._guard:
            keys = arguments.partitions(partitions, "assign")
            if not keys:
                self._unsubscribe()
                return
            if self._driver.coordinator is not None:
                # Commit now, because no rebalance commits the positions of former partitions.
                self._driver.coordinator.commit_consumed()
            old = {topic for topic, _ in self._subscription.partitions}
            self._subscription.assign_by_user(keys)
            topics = {topic for topic, _ in keys}
            for topic in topics:
                self._metadata.want(topic)
            self._metadata.wanted.forget(old - topics)

    @outer
    def assignment(self) -> set[TopicPartition]:
        """Return the partitions that the user or the group has assigned."""
        with self._guard:
            return set(self._subscription.partitions)

    @outer
    def subscribe(
        self,
        topics: Iterable[str] | Pattern[str] | SubscriptionPattern | None = None,
        *,
        pattern: str | Pattern[str] | None = None,
        listener: ConsumerRebalanceListener | None = None,
    ) -> None:
        """Read topics together with the other members of the group.

        The consumer joins the group in the next polls. `topics` are names, a compiled regular
        expression or a `SubscriptionPattern`; `pattern` is another way to pass an expression. The
        consumer itself matches whole topic names with an expression; the broker matches them with a
        `SubscriptionPattern`. A later call replaces this one. An empty list means `unsubscribe`.

        Raises:
            IllegalState: partitions were assigned, or another kind of subscription is in force.
            InvalidGroupId: the consumer has no group.id.
            TypeError, ValueError: `topics` is one str or has invalid names, or the listener has
                none of the methods.
        """
        check_listener(listener)
        with self._guard:
            coordinator, subscription = self._driver.group, self._subscription
            server_pattern = getattr(topics, "server_pattern", None)
            wanted: Any = compiled(pattern) if topics is None else topics
            if server_pattern is not None:
                if coordinator.is_classic:
                    raise IllegalState("a SubscriptionPattern needs group.protocol=consumer")
                subscription.subscribe_server_pattern(server_pattern, listener)
                self._follow_all_topics()
            elif hasattr(wanted, "fullmatch"):
                subscription.subscribe_pattern(wanted, listener)
                self._follow_all_topics()
            else:
                names = topic_names(topics)
                if not names:
                    self._unsubscribe()
                    return
                old = subscription.topics
                subscription.subscribe(names, listener)
                for name in names:
                    self._metadata.want(name)
                self._metadata.wanted.forget(old - set(names))
            coordinator.subscription_changed()

    @outer
    def unsubscribe(self) -> None:
        """Read nothing, and leave the group."""
        self._unsubscribe()

    unassign = unsubscribe

    def _unsubscribe(self) -> None:
        with self._guard:
            subscription, wanted = self._subscription, self._metadata.wanted
            coordinator = self._driver.coordinator
            if coordinator is not None and subscription.is_automatic:
                coordinator.depart("the consumer unsubscribed from all topics")
            wanted.forget([*subscription.topics, *subscription.group_topics])
            wanted.forget(topic for topic, _ in subscription.partitions)
            wanted.follows_all = False
            subscription.unsubscribe()
            if coordinator is not None:
                coordinator.calls.raise_first()

    @outer
    def subscription(self) -> set[str]:
        """Return the subscribed topics; with a regular expression, the known topics that match it.

        With a `SubscriptionPattern` these are the topics of the assigned partitions.
        """
        with self._guard:
            subscription = self._subscription
            if subscription.type == SubscriptionType.SERVER_PATTERN:
                return {topic for topic, _ in subscription.partitions}
            return set(subscription.topics)

    def _follow_all_topics(self) -> None:
        self._metadata.wanted.follows_all = True
        self._metadata.request_update()

    # Reading

    def poll(self, timeout_ms: int = 0, *, max_records: int | None = None) -> ConsumerRecords:
        """Return records, maybe none, after waiting at most `timeout_ms` for the first.

        Returns at most max.poll.records (or `max_records`) and moves the positions past them.

        Raises:
            IllegalState: nothing is subscribed or assigned.
            NoOffsetForPartition, OffsetOutOfRange, LogTruncation: a partition has no position, its
                position is not in the log, or records that were read are gone; only with
                auto.offset.reset=none.
            RecordUnreadable: the next record is damaged or a deserializer refused it.
            KafkaError: a broker or the group's coordinator refused, and a retry cannot help.
            Exception: a rebalance listener or a callback of `commit_async` raised it.
            WakeupError: `wakeup` was called.
        """
        count_max = self._poll_count_max if max_records is None else self._count_max(max_records)
        found = self._driver.poll(timeout_ms, lambda: self._hand_out.records(count_max))
        if found is None:
            return ConsumerRecords({})
        interceptors = self._parts.interceptors
        return found if interceptors is None else interceptors.transform("on_consume", found)

    def poll_batches(
        self, timeout_ms: int = 0, *, max_records: int | None = None
    ) -> list[PolledBatch]:
        """Like `poll`, but return plain tuples, grouped by record batch.

        Deserializers and interceptors are not used. A record takes about half as long as in `poll`.
        """
        count_max = self._count_max(max_records)
        return self._driver.poll(timeout_ms, lambda: self._hand_out.batches(count_max)) or []

    def poll_columns(
        self, timeout_ms: int = 0, *, max_records: int | None = None
    ) -> list[PolledColumns]:
        """Like `poll`, but return whole record batches as numpy columns over the stored bytes.

        Batches are not split, so the last batch may exceed `max_records`.
        """
        count_max = self._count_max(max_records)
        return self._driver.poll(timeout_ms, lambda: self._hand_out.columns(count_max)) or []

    def __iter__(self) -> Iterator[ConsumerRecord]:
        """Yield record after record and wait for more until `wakeup` or `close`.

        The position moves with each record, so a commit inside the loop covers exactly the records
        that the loop has got so far. `poll` is at least twice as fast.
        """
        parts = self._driver, self._hand_out, self._poll_count_max
        return iterate(self, *parts, lambda: self._parts.interceptors is not None)

    def wakeup(self) -> None:
        """Make the waiting call, or the next call that would wait, raise WakeupError.

        Any thread and any signal handler may call it, because it takes no lock.
        """
        self._driver.wakeup()

    # Positions

    @outer
    def seek(self, partition: Partition, offset: int | OffsetAndMetadata) -> None:
        """Continue at `offset` of an assigned partition.

        If an `OffsetAndMetadata` has a leader epoch, the consumer first asks the leader whether its
        log still has the records before that offset (KIP-320).
        """
        given: Any = offset
        leader_epoch = -1
        if isinstance(given, tuple) and len(given) == _OFFSET_FIELDS:
            given, _, leader_epoch = given
        number = arguments.offset(given, "seek")
        with self._guard:
            self._state(partition, "seek").seek_unproven(number, leader_epoch)

    @outer
    def seek_to_beginning(self, *partitions: Partition) -> None:
        """Continue at the first record of each partition, by default in all assigned partitions."""
        self._seek_to(partitions, EARLIEST_TIMESTAMP, "seek_to_beginning")

    @outer
    def seek_to_end(self, *partitions: Partition) -> None:
        """Continue after the last record; with read_committed, before the first open transaction.

        By default in all assigned partitions.
        """
        self._seek_to(partitions, LATEST_TIMESTAMP, "seek_to_end")

    def _seek_to(self, partitions: tuple[Any, ...], timestamp: int, call: str) -> None:
        with self._guard:
            chosen = partitions or tuple(self._subscription.partitions)
            for state in self._states(chosen, call):
                state.reset_to(timestamp)

    @outer
    def position(self, partition: Partition, timeout_ms: int | None = None) -> int:
        """Return the offset of the next record to read; look it up if it is not known yet.

        Raises:
            TimedOut: the position was not found in time.
            UnknownTopicOrPartition: in process, there is no such partition.
            NoOffsetForPartition: no offset is committed, and auto.offset.reset is none.
        """
        timeout_ms = arguments.optional_timeout_ms(timeout_ms, "position")
        with self._guard:
            state = self._state(partition, "position")
            self._driver.find_position(state, timeout_ms)
            return state.offset

    @outer
    def pause(self, *partitions: Partition) -> None:
        """Stop handing out records of these partitions. Fetched records are kept.

        A rebalance that takes a partition away ends its pause, even if the partition comes back.
        """
        with self._guard:
            for state in self._states(partitions, "pause"):
                state.is_paused = True

    @outer
    def resume(self, *partitions: Partition) -> None:
        """Hand out records of these partitions again."""
        with self._guard:
            for state in self._states(partitions, "resume"):
                state.is_paused = False

    @outer
    def paused(self) -> set[TopicPartition]:
        """Return the paused partitions."""
        with self._guard:
            return {key for key, state in self._subscription.partitions.items() if state.is_paused}

    @outer
    def current_lag(self, partition: Partition) -> int | None:
        """Return the number of records between the position and the log's end at the last fetch.

        Returns None if the consumer does not know the end yet.
        """
        with self._guard:
            return self._buffer.lag(self._state(partition, "current_lag"))

    def _state(self, partition: Partition, call: str) -> PartitionState:
        return self._subscription.state(arguments.partition(partition, call))

    def _states(self, partitions: tuple[Any, ...], call: str) -> list[PartitionState]:
        """Return the states of the partitions; raise IllegalState if one is not assigned.

        The caller gets all states before it changes the first, so that a failed call has no effect.
        """
        named = arguments.each_partition(partitions, call)
        return [self._subscription.state(each) for each in named]

    # Topics and offsets

    @outer
    def beginning_offsets(
        self, partitions: Iterable[Partition], timeout_ms: int | None = None
    ) -> dict[TopicPartition, int]:
        """Return the first offset of each partition, assigned or not."""
        call = "beginning_offsets"
        return self._edge_offsets(partitions, EARLIEST_TIMESTAMP, timeout_ms, call)

    @outer
    def end_offsets(
        self, partitions: Iterable[Partition], timeout_ms: int | None = None
    ) -> dict[TopicPartition, int]:
        """Return the offset after the last readable record of each partition, assigned or not."""
        return self._edge_offsets(partitions, LATEST_TIMESTAMP, timeout_ms, "end_offsets")

    def _edge_offsets(
        self, partitions: Iterable[Any], timestamp: int, timeout_ms: int | None, call: str
    ) -> dict[TopicPartition, int]:
        keys = arguments.partitions(partitions, call)
        timeout_ms = arguments.optional_timeout_ms(timeout_ms, call)
        with self._guard:
            found = self._look_up(dict.fromkeys(keys, timestamp), timeout_ms)
        return {key: 0 if offset is None else offset.offset for key, offset in found.items()}

    @outer
    def offsets_for_times(
        self,
        timestamps: Mapping[TopicPartition, int] | Mapping[tuple[str, int], int],
        timeout_ms: int | None = None,
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """Return the offset of the first record whose timestamp is at least the given one (ms).

        The result has an entry for each partition, with None if it has no such record.

        Raises:
            ValueError: a timestamp is negative.
        """
        call = "offsets_for_times"
        given = arguments.by_partition(timestamps, call, "timestamps", "timestamp in ms")
        asked = {
            key: arguments.timestamp_ms(stamp, call, f"timestamps: {key}")
            for key, stamp in given.items()
        }
        timeout_ms = arguments.optional_timeout_ms(timeout_ms, call)
        with self._guard:
            return self._look_up(asked, timeout_ms)

    def _look_up(
        self, timestamps: Mapping[TopicPartition, int], timeout_ms: int | None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        parts = self._parts
        transport, metadata = parts.transport, parts.metadata
        lookup = OffsetLookup(
            transport, metadata, parts.settings, timestamps, parts.arrived, may_fail=True
        )
        if not self._driver.drive(lambda: lookup.is_done, timeout_ms, lookup.advance):
            missing = ", ".join(str(key) for key in timestamps if key not in lookup.found)
            cause = metadata.last_error or lookup.last_refusal
            raise errors.TimedOut(f"no offsets in time for {missing}{because(cause)}")
        for error in lookup.failed.values():
            raise error
        return lookup.found

    @outer
    def partitions_for(self, topic: str, timeout_ms: int | None = None) -> list[PartitionInfo]:
        """Return the partitions of a topic; an empty list if there is no such topic.

        If the topic does not exist, each call asks the cluster again.

        Raises:
            TimedOut: the cluster did not answer in time; KafkaError: it refused.
        """
        arguments.topic_name(topic, "partitions_for")
        timeout_ms = arguments.optional_timeout_ms(timeout_ms, "partitions_for")
        with self._guard:
            metadata = self._metadata
            metadata.want(topic)
            try:
                if not self._driver.describe(topic, timeout_ms):
                    text = f"the cluster did not describe topic {topic!r} in time"
                    raise errors.TimedOut(f"{text}{because(metadata.last_error)}")
            finally:
                if topic not in metadata.topics and not self._subscription.uses(topic):
                    metadata.wanted.forget([topic])
            error = metadata.topic_error(topic)
            if error is not None:
                raise errors.again(error)
            info = metadata.topics.get(topic)
            return [] if info is None else list(info.partitions)

    @outer
    def list_topics(self, timeout_ms: int | None = None) -> dict[str, TopicInfo]:
        """Return all topics of the cluster by name."""
        timeout_ms = arguments.optional_timeout_ms(timeout_ms, "list_topics")
        with self._guard:
            metadata = self._metadata
            asked_before = metadata.wanted.question_count
            metadata.want_all()
            if not self._driver.drive(lambda: metadata.full_version > asked_before, timeout_ms):
                text = "the cluster did not describe its topics in time"
                raise errors.TimedOut(f"{text}{because(metadata.last_error)}")
            return dict(metadata.topics)

    # The group

    @outer
    def commit(self, offsets: GivenOffsets | None = None, timeout_ms: int | None = None) -> None:
        """Store offsets for the group, by default the positions, and wait until they are stored.

        A committed offset is the offset of the next record to read. Commits of earlier
        `commit_async` calls have ended when this returns.

        Raises:
            CommitFailed: the group removed this consumer: poll, and read the records again.
            RebalanceInProgress: poll, then try again.
            KafkaError: FencedInstanceId or another error that a retry cannot cure.
            TimedOut: the coordinator did not answer in time.
        """
        timeout_ms = arguments.optional_timeout_ms(timeout_ms, "commit")
        with self._guard:
            coordinator = self._driver.group
            commits = coordinator.commits
            earlier = commits.open()
            commit = commits.begin(self._to_commit(offsets, "commit"), retries=True)
            try:
                done = self._driver.drive(
                    lambda: commit.is_done and all(each.is_done for each in earlier),
                    timeout_ms,
                    coordinator.keep,
                )
            finally:
                commits.give_up(commit)
            commits.settle()
            if commit.error is not None:
                raise commit.error
            if not done:
                cause = commit.last_refusal or coordinator.lookup.last_error
                text = "the coordinator did not store the offsets in time"
                raise errors.TimedOut(text + because(cause))

    @outer
    def commit_async(
        self, offsets: GivenOffsets | None = None, callback: Callback | None = None
    ) -> None:
        """Begin a commit and return without waiting for its outcome.

        A failed commit is not retried, because the retry could overwrite a later commit. A later
        call of poll, commit or close calls `callback(offsets, error)`, in the order of the commits.
        If another attempt may succeed, the error is a `RetriableCommitFailed`.
        """
        arguments.callback(callback, "commit_async", "callback", "a function (offsets, error)")
        with self._guard:
            coordinator = self._driver.group
            coordinator.commits.settle()
            wanted = self._to_commit(offsets, "commit_async")
            coordinator.commits.begin(wanted, retries=False, callback=callback)
            coordinator.keep(self._parts.transport.runtime.clock.monotonic_ms())

    @outer
    def committed(
        self,
        partitions: Iterable[Partition],
        timeout_ms: int | None = None,
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Return the offsets that the group has stored; None for a partition without one.

        Raises:
            KafkaError: the coordinator refused; TimedOut: it did not answer in time.
        """
        keys = arguments.partitions(partitions, "committed")
        timeout_ms = arguments.optional_timeout_ms(timeout_ms, "committed")
        with self._guard:
            coordinator = self._driver.group
            lookup = coordinator.fetch_committed(keys)
            if not self._driver.drive(lambda: lookup.is_done, timeout_ms, coordinator.keep):
                cause = lookup.last_refusal or coordinator.lookup.last_error
                text = "the coordinator did not return the committed offsets in time"
                raise errors.TimedOut(text + because(cause))
            if lookup.error is not None:
                raise lookup.error
            return lookup.found

    @outer
    def consumed_offsets(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the offsets that `commit` would store: the positions with their leader epochs.

        A transactional producer commits them together with the records that it wrote.

        Raises:
            IllegalState: enable.auto.commit is on, which would commit the offsets even if the
                transaction is aborted.
        """
        with self._guard:
            if self._driver.group.auto_commit.is_on:
                raise IllegalState(
                    "consumed_offsets: enable.auto.commit is on, so the consumer commits offsets "
                    "even if a transaction is aborted; turn it off"
                )
            return self._to_commit(None, "consumed_offsets")

    def _to_commit(
        self, offsets: GivenOffsets | None, call: str
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        from embedlog.client.consumer.group.auto_commit import consumed_offsets
        from embedlog.client.consumer.group.group_offsets import offsets_of

        if offsets is None:
            return consumed_offsets(self._subscription)
        return offsets_of(offsets, call)

    @outer
    def group_metadata(self) -> ConsumerGroupMetadata:
        """Return the consumer's identity in its group, for a transactional producer."""
        with self._guard:
            return self._driver.group.member.metadata()

    @outer
    def enforce_rebalance(self, reason: str = "rebalance enforced by user") -> None:
        """Make the next poll begin a rebalance, unless one is running.

        It has no effect with group.protocol=consumer, because there only the broker decides.
        """
        arguments.name(reason, "enforce_rebalance", "reason", what="a text")
        with self._guard:
            coordinator = self._driver.group
            if not self._subscription.is_automatic:
                raise IllegalState("nothing is subscribed: there is no assignment to rebalance")
            coordinator.member.request_rejoin(reason)

    # Metrics and closing

    def __repr__(self) -> str:
        group = self._settings["group.id"]
        state = (
            "closed"
            if self._guard.is_closed
            else f"{len(self._subscription.partitions)} partitions"
        )
        member = f" of group {group!r}" if group is not None else ""
        return f"<Consumer {self._settings['client.id']!r}{member}, {state}>"

    def metrics(self) -> dict[str, float]:
        """Return totals and present values by Kafka's metric names. There are no rates.

        Any thread may call it, also after `close`.

        >>> with embedlog.open() as cluster, embedlog.Consumer(cluster) as consumer:
        ...     consumer.metrics()["records-consumed-total"]
        0.0
        """
        found = {name: float(count) for name, count in self._parts.counts.items()}
        # A copy, because the thread that uses the consumer may change the assignment meanwhile.
        partitions = list(self._subscription.partitions.values())
        lags = [self._buffer.lag(state) for state in partitions]
        found["assigned-partitions"] = float(len(partitions))
        found["records-lag-max"] = float(max((lag for lag in lags if lag is not None), default=0))
        coordinator = self._driver.coordinator
        if coordinator is not None:
            now_ms = self._parts.transport.runtime.clock.monotonic_ms()
            sent_ms = coordinator.member.heartbeat_sent_ms
            ago = -1.0 if sent_ms is None else (now_ms - sent_ms) / 1000
            found["last-heartbeat-seconds-ago"] = ago
        return found

    @outer_close(in_callbacks=False)
    def close(self, timeout: float | None = None, *, membership: int = 0) -> None:
        """Commit the positions if enable.auto.commit is on, leave the group and free resources.

        Waits at most `timeout` seconds (by default 30) for brokers. A second call does nothing. By
        default of `membership`, see `CloseOptions`, static members stay until their session ends.

        Raises:
            KafkaError: a broker refused an open commit, unless the consumer's last error was of
                the same type.
            Exception: a callback of the user raised it; the consumer is closed nevertheless.
        """
        self._closing.close(timeout, membership)

    def __del__(self) -> None:
        if "_closing" in self.__dict__:
            self._closing.dropped(self)

    def __enter__(self) -> Consumer:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def _count_max(self, max_records: int | None) -> int:
        given = self._poll_count_max if max_records is None else max_records
        return arguments.count(given, "poll", "max_records")


def shared(
    target: Target, config: Mapping[str, Any] | None, settings: Mapping[str, Any]
) -> tuple[Consumer, ConsumerParts, ConsumerDriver]:
    """Build a consumer and return its parts, for callers that serialise access themselves."""
    consumer = Consumer(target, config, **settings)
    return consumer, consumer._parts, consumer._driver
