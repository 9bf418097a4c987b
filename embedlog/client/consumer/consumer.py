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
from embedlog.client.consumer.consumer_record import ConsumerRecords
from embedlog.client.consumer.group_calls import GroupCalls
from embedlog.client.consumer.position_calls import PositionCalls
from embedlog.common import TopicPartition
from embedlog.errors import KafkaError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from embedlog.client.consumer.consumer_record import ConsumerRecord, PolledBatch, PolledColumns
    from embedlog.client.group.consumer_coordinator import ConsumerCoordinator
    from embedlog.pending import Pending

_CLOSE_TIMEOUT_S = 30.0
_ITERATION_WAIT_MS = 1_000


class Consumer(PositionCalls, GroupCalls):
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

    # Assignment

    def assign(self, partitions: Iterable[TopicPartition | tuple[str, int]]) -> None:
        """Read these partitions and no others; an empty list is `unsubscribe`.

        A partition that was assigned before keeps its position and its pause. With a group.id the
        group's committed offsets are where reading begins, but no rebalance takes place.

        Raises:
            IllegalState: topics are subscribed.
        """
        with self._guard:
            keys = arguments.partitions(partitions, "assign")
            if not keys:
                self.unsubscribe()
                return
            if self._coordinator is not None:
                # No rebalance follows that would commit what is not assigned any more.
                self._coordinator.commit_consumed()
            old = {topic for topic, _ in self._subscription.partitions}
            self._subscription.assign_by_user(keys)
            topics = {topic for topic, _ in keys}
            for topic in topics:
                self._metadata.want(topic)
            self._metadata.forget(old - topics)

    def unassign(self) -> None:
        """Read nothing."""
        self.unsubscribe()

    def assignment(self) -> set[TopicPartition]:
        """The partitions that are read, named by the user or assigned by the group."""
        with self._guard:
            return set(self._subscription.partitions)

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
        found = self._poll(timeout_ms, lambda: self._fetcher.records(count_max))
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
        """Every record, waiting for more for ever; ends with WakeupError or when closed.

        The position follows each record, so that a commit in the loop, or leaving it, counts none
        as read that was not handed out. `poll` is twice as fast or more.
        """
        while True:
            yield from self.poll(_ITERATION_WAIT_MS, max_records=1)
            if self._parts.interceptors is not None:
                continue  # they see what a poll returns
            for _ in range(self._poll_count_max):
                with self._guard:
                    record = None if self._is_woken else self._fetcher.next_record()
                if record is None:
                    break
                yield record

    def wakeup(self) -> None:
        """Make the call that waits, or the next one that would, raise WakeupError.

        From any thread, and from a signal handler: it takes no lock.
        """
        self._is_woken = True
        self._waiter.arrived()
        self._transport.wake()

    # Life

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
        """What happened so far, under Kafka's names of metrics; a rate is for whoever asks twice.

        From any thread, also after `close`.

        >>> with embedlog.open() as cluster, embedlog.Consumer(cluster) as consumer:
        ...     consumer.metrics()["records-consumed-total"]
        0.0
        """
        from embedlog.client.consumer.consumer_metrics import metrics_of

        return metrics_of(self._parts, self._fetcher, self._coordinator)

    def close(self, timeout: float | None = None, *, membership: int = 0) -> None:
        """Commit if that is automatic, leave the group, give back what is held. Again is allowed.

        At most `timeout` seconds (30) are spent on waiting for brokers. `membership` is one of
        `CloseOptions`: by default static members stay in the group until their session ends.

        Raises:
            KafkaError: commits were under way, and a broker refuses for good; not if that is what
                the consumer's last error said.
            Exception: a callback's of the user; the consumer is closed all the same.
        """
        if self._guard.is_closed or self._is_closing:
            return
        limit = arguments.timeout_s(timeout, "close")
        if limit is None:
            limit = _CLOSE_TIMEOUT_S
        arguments.number(membership, "close", "membership", "one of CloseOptions", lowest=0)
        with self._guard:
            self._is_closing = True
            deadline = self._clock.monotonic_ms() + int(limit * 1000)
            try:
                self._close_group(deadline, membership)
            finally:
                for pending in self._fetcher.close():
                    self._wait(pending, deadline)
                if self._parts.interceptors is not None:
                    self._parts.interceptors.close()
                self._guard.is_closed = True
                self._transport.close()
        if self._coordinator is not None:
            self._coordinator.duty.join()

    def __enter__(self) -> Consumer:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def _close_group(self, deadline: int, membership: int) -> None:
        coordinator = self._coordinator
        if coordinator is None:
            return
        coordinator.commit_consumed(retries=True)
        try:
            self._finish_commits(coordinator, deadline)
        finally:
            answer = None
            if self._subscription.is_automatic:
                answer = coordinator.depart("the consumer is being closed", membership)
            if answer is not None:
                self._wait(answer, deadline)
        coordinator.calls.raise_first()

    def _finish_commits(self, coordinator: ConsumerCoordinator, deadline: int) -> None:
        commits = coordinator.commits
        refusal: KafkaError | None = None
        if commits.open():
            try:
                left = deadline - self._clock.monotonic_ms()
                self._drive(lambda: not commits.open(), left, coordinator.keep)
            except KafkaError as error:
                commits.fail_all(error)
                refusal = error
        commits.settle()
        if refusal is not None and type(refusal) is not self._guard.told:
            raise refusal

    def _wait(self, pending: Pending[Any], deadline: int) -> None:
        while not pending.done():
            left = deadline - self._clock.monotonic_ms()
            if left <= 0:
                break
            self._transport.wait(pending, left)
