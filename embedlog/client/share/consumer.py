"""`ShareConsumer`: reads the records of a share group, and acknowledges them one by one.

    with cluster.share_consumer(group_id="workers") as consumer:
        consumer.subscribe(["jobs"])
        for record in consumer.poll(timeout_ms=1000):
            work_on(record.value)

The members of a share group share each partition: every record goes to one of them at a time. A
record that is not acknowledged in time, or is released, is delivered again, up to a limit. There
are no positions. With share.acknowledgement.mode=implicit, the default, the next poll or commit
accepts the records of the last poll. With "explicit" the application calls `acknowledge` for each.

One thread at a time may use a share consumer; other threads may call only `wakeup` and `metrics`.
A member must poll at least every max.poll.interval.ms. Between the application's calls a background
duty sends the heartbeats. A member that is dropped without `close` leaves, with a warning.
"""

from __future__ import annotations

from embedlog.client import arguments
from embedlog.client.connect import connect
from embedlog.client.consumer.subscribed_topics import topic_names
from embedlog.client.errors import IllegalState
from embedlog.client.metadata import Metadata
from embedlog.client.share.acknowledge_type import ALL_TYPES, AcknowledgeType
from embedlog.client.share.acknowledgements import ShareCommit
from embedlog.client.share.closing import ShareClosing
from embedlog.client.share.coordinator import ShareCoordinator
from embedlog.client.share.driver import ShareDriver
from embedlog.client.share.hand_out import ShareHandOut
from embedlog.client.share.leaders import ShareLeaders
from embedlog.client.share.parts import ShareParts
from embedlog.client.share.record import ShareRecord
from embedlog.client.share.settings import settings_of
from embedlog.client.waiting import Waiter
from embedlog.common import TopicPartition
from embedlog.runtime.outer_call import outer, outer_close

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from embedlog.client.connect import Target
    from embedlog.client.share.acknowledgements import Callback
    from embedlog.client.share.record import ShareRecords
    from embedlog.errors import KafkaError
    from embedlog.transport import Transport

    Partition = TopicPartition | tuple[str, int]


class ShareConsumer:
    """Reads the records of a share group, and acknowledges them one by one (KIP-932).

    `target` is a cluster of this process or "host:port". Settings are Kafka's keys, as keyword
    arguments (`group_id="workers"`) or in a dict.

    >>> with embedlog.open() as cluster:
    ...     with embedlog.ShareConsumer(cluster, group_id="workers") as consumer:
    ...         consumer.subscribe(["jobs"])
    ...         consumer.subscription()
    {'jobs'}
    """

    def __init__(
        self, target: Target = None, config: Mapping[str, Any] | None = None, **settings: Any
    ) -> None:
        self._settings = settings_of(config, settings)
        transport = connect(self, target, self._settings)
        try:
            self._build(transport)
        except BaseException:
            transport.close()
            raise

    def _build(self, transport: Transport) -> None:
        settings = self._settings
        metadata = Metadata(transport, settings, create_topics=settings["allow.auto.create.topics"])
        waiter = Waiter(transport, metadata)
        parts = ShareParts(transport, metadata, settings, waiter.arrived)
        leaders = ShareLeaders(parts)
        hand_out = ShareHandOut(parts, leaders.answers)
        coordinator = ShareCoordinator(parts, leaders)
        self._parts = parts
        self._assignment = parts.assignment
        self._hand_out = hand_out
        self._driver = driver = ShareDriver(parts, waiter, leaders, hand_out, coordinator)
        self._guard = driver.guard
        self._is_gone, self._ends_soon = driver.is_gone, driver.end_call
        self._closing = ShareClosing(parts, driver, hand_out)

    # Subscription

    @outer
    def subscribe(self, topics: Iterable[str]) -> None:
        """Read topics together with the other members of the group.

        The consumer joins the group in the next polls. A later call replaces this one. An empty
        list means `unsubscribe`.

        Raises:
            TypeError, ValueError: `topics` is one str or has invalid names.
        """
        with self._guard:
            names = topic_names(topics)
            if not names:
                self._unsubscribe()
                return
            metadata, old = self._parts.metadata, self._assignment.topics
            self._assignment.topics = tuple(sorted(set(names)))
            for name in names:
                metadata.want(name)
            metadata.wanted.forget(set(old) - set(names))

    @outer
    def unsubscribe(self) -> None:
        """Read nothing, and leave the group.

        Records that were returned can still be acknowledged, with a commit.
        """
        self._unsubscribe()

    def _unsubscribe(self) -> None:
        with self._guard:
            self._parts.metadata.wanted.forget(self._assignment.topics)
            self._assignment.topics = ()
            self._driver.coordinator.depart()
            self._hand_out.release_all()

    @outer
    def subscription(self) -> set[str]:
        """Return the subscribed topics."""
        with self._guard:
            return set(self._assignment.topics)

    # Reading

    @outer
    def poll(self, timeout_ms: int = 0) -> ShareRecords:
        """Return records, maybe none, after waiting at most `timeout_ms` for the first.

        Whole batches of the log are returned, so there may be more than max.poll.records unless
        share.acquire.mode is record_limit. In the implicit mode this call first accepts the records
        of the last poll. Records whose renewal succeeded are returned again.

        Raises:
            IllegalState: nothing is subscribed, or in the explicit mode a record of the last poll
                is not acknowledged.
            RecordUnreadable: the next record is damaged, and the client rejects its batch, or a
                deserializer refused it, and the client releases it. The next poll goes on.
            KafkaError: a broker or the group's coordinator refused, and a retry cannot help.
            Exception: the callback for acknowledgements raised it.
            WakeupError: `wakeup` was called.
        """
        limit_ms = arguments.timeout_ms(timeout_ms, "poll")
        with self._guard:
            return self._driver.poll(limit_ms)

    def wakeup(self) -> None:
        """Make the waiting call, or the next call that would wait, raise WakeupError.

        Any thread and any signal handler may call it, because it takes no lock.
        """
        self._driver.wakeup()

    # Acknowledging

    @outer
    def acknowledge(self, record: ShareRecord, type: int = AcknowledgeType.ACCEPT) -> None:
        """Say what became of a record, as one of `AcknowledgeType`; the default is ACCEPT.

        The next poll or commit sends it. Until then a later call replaces it.

        Raises:
            IllegalState: the mode is implicit, or the record was not returned by a poll, or its
                acknowledgement was sent already.
            TypeError, ValueError: `record` is not a record of a poll, or `type` not one of the
                types.
        """
        if not isinstance(record, ShareRecord):
            raise arguments.WrongType(
                f"acknowledge(record={arguments.shown(record)}): expected a ShareRecord of a poll"
            )
        key = record.topic, record.partition
        self._acknowledge(key, record.offset, type, "acknowledge")

    @outer
    def acknowledge_offset(
        self, partition: Partition, offset: int, type: int = AcknowledgeType.ACCEPT
    ) -> None:
        """Like `acknowledge`, for the record at `offset` of a partition.

        It also replaces the type that the client has chosen for an unreadable record.
        """
        key = arguments.partition(partition, "acknowledge_offset")
        number = arguments.offset(offset, "acknowledge_offset")
        self._acknowledge(key, number, type, "acknowledge_offset")

    def _acknowledge(self, key: tuple[str, int], offset: int, kind: int, call: str) -> None:
        if type(kind) is not int or kind not in ALL_TYPES:
            raise ValueError(f"{call}(type={kind!r}): expected one of AcknowledgeType")
        with self._guard:
            if not self._driver.is_explicit:
                raise IllegalState(f"{call}: share.acknowledgement.mode is not explicit")
            if not self._driver.in_flight.acknowledge(key, offset, kind):
                raise IllegalState(
                    f"{call}: no record of {TopicPartition(*key)} at offset {offset} waits for an "
                    "acknowledgement"
                )

    @outer
    def commit_sync(self, timeout_ms: int | None = None) -> dict[TopicPartition, KafkaError | None]:
        """Send the acknowledgements and wait; return None or the error for each partition.

        In the implicit mode it first accepts the records of the last poll. The result is empty if
        there is nothing to acknowledge. A partition without an outcome in time (by default
        default.api.timeout.ms) has the error RequestTimedOut; its records may be acknowledged.

        Raises:
            KafkaError: the cluster refused to name the group's coordinator.
            Exception: the callback for acknowledgements raised it.
            WakeupError: `wakeup` was called; the acknowledgements are sent nevertheless.
        """
        limit_ms = arguments.optional_timeout_ms(timeout_ms, "commit_sync")
        with self._guard:
            commit = ShareCommit()
            self._driver.commit(commit, limit_ms)
            return commit.results

    @outer
    def commit_async(self) -> None:
        """Send the acknowledgements and return without waiting for their outcomes.

        In the implicit mode it first accepts the records of the last poll. The callback for
        acknowledgements gets the outcomes.
        """
        with self._guard:
            self._driver.commit_now()

    @outer
    def set_acknowledgement_commit_callback(self, callback: Callback | None) -> None:
        """Call `callback({partition: offsets}, error)` for each outcome of acknowledgements.

        `error` is None if the leader has taken them. The calls take place inside poll, the commits
        and close, once for each partition of a request, after all retries. The callback must not
        call the consumer. None ends the calls.
        """
        call = "set_acknowledgement_commit_callback"
        if callback is not None:
            arguments.callback(callback, call, "callback", "a function (offsets, error)")
        with self._guard:
            self._parts.outcomes.callback = callback

    @outer
    def acquisition_lock_timeout_ms(self) -> int | None:
        """Return how long the group locks a record for one member; None before the first answer."""
        with self._guard:
            return self._driver.leaders.answers.lock_timeout_ms

    # Metrics and closing

    def __repr__(self) -> str:
        state = "closed" if self._guard.is_closed else f"{', '.join(self._assignment.topics)}"
        client_id, group_id = self._settings["client.id"], self._settings["group.id"]
        return f"<ShareConsumer {client_id!r} of group {group_id!r}, {state or 'idle'}>"

    def metrics(self) -> dict[str, float]:
        """Return totals and present values by Kafka's metric names. There are no rates.

        Any thread may call it, also after `close`.

        >>> with embedlog.open() as cluster:
        ...     with embedlog.ShareConsumer(cluster, group_id="workers") as consumer:
        ...         consumer.metrics()["acknowledgements-send-total"]
        0.0
        """
        found = {name: float(count) for name, count in self._parts.counts.items()}
        found["assigned-partitions"] = float(self._assignment.count)
        now_ms = self._parts.transport.runtime.clock.monotonic_ms()
        sent_ms = self._driver.coordinator.member.heartbeat_sent_ms
        found["last-heartbeat-seconds-ago"] = -1.0 if sent_ms is None else (now_ms - sent_ms) / 1000
        return found

    @outer_close(in_callbacks=False)
    def close(self, timeout: float | None = None) -> None:
        """Send the acknowledgements, release all other records, leave the group, free resources.

        In the implicit mode the records of the last poll are released: commit before, to accept
        them. Waits at most `timeout` seconds (by default 30) for brokers. A second call does
        nothing.

        Raises:
            Exception: the callback for acknowledgements raised it; the consumer is closed
                nevertheless.
        """
        self._closing.close(timeout)

    def __del__(self) -> None:
        if "_closing" in self.__dict__:
            self._closing.dropped(self)

    def __enter__(self) -> ShareConsumer:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()


def shared(
    target: Target, config: Mapping[str, Any] | None, settings: Mapping[str, Any]
) -> tuple[ShareConsumer, ShareParts, ShareDriver]:
    """Build a consumer and return its parts, for callers that serialise access themselves."""
    consumer = ShareConsumer(target, config, **settings)
    return consumer, consumer._parts, consumer._driver
