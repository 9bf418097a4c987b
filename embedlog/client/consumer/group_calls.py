"""The offsets that a consumer stores with its group, and who it is there."""

from __future__ import annotations

from embedlog.client import arguments
from embedlog.client.errors import IllegalState, because
from embedlog.common import TopicPartition
from embedlog.errors import TimedOut

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from embedlog.client.consumer.driver import ConsumerDriver
    from embedlog.client.consumer.group.group_offsets import (
        ConsumerGroupMetadata,
        OffsetAndMetadata,
    )
    from embedlog.client.consumer.group.offset_commits import Callback
    from embedlog.client.consumer.parts import ConsumerParts

    GivenOffsets = (
        Mapping[TopicPartition, OffsetAndMetadata | int]
        | Mapping[tuple[str, int], OffsetAndMetadata | int]
    )


class GroupCalls:
    """Committing, and asking for what is committed; everything here needs a group.id."""

    __slots__ = ("_clock", "_driver", "_guard", "_subscription")

    def __init__(self, parts: ConsumerParts, driver: ConsumerDriver) -> None:
        self._driver = driver
        self._guard = driver.guard
        self._clock = parts.transport.runtime.clock
        self._subscription = parts.subscription

    def commit(self, offsets: GivenOffsets | None = None, timeout_ms: int | None = None) -> None:
        """See `Consumer.commit`."""
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
                text = "the coordinator did not store the offsets in time"
                raise TimedOut(text + because(commit.last_refusal or coordinator.lookup.last_error))

    def commit_async(
        self, offsets: GivenOffsets | None = None, callback: Callback | None = None
    ) -> None:
        """See `Consumer.commit_async`."""
        arguments.callback(callback, "commit_async", "callback", "a function (offsets, error)")
        with self._guard:
            coordinator = self._driver.group
            coordinator.commits.settle()
            wanted = self._to_commit(offsets, "commit_async")
            coordinator.commits.begin(wanted, retries=False, callback=callback)
            coordinator.keep(self._clock.monotonic_ms())

    def committed(
        self,
        partitions: Iterable[TopicPartition | tuple[str, int]],
        timeout_ms: int | None = None,
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """See `Consumer.committed`."""
        keys = arguments.partitions(partitions, "committed")
        timeout_ms = arguments.optional_timeout_ms(timeout_ms, "committed")
        with self._guard:
            coordinator = self._driver.group
            lookup = coordinator.fetch_committed(keys)
            if not self._driver.drive(lambda: lookup.is_done, timeout_ms, coordinator.keep):
                text = "the coordinator did not tell the committed offsets in time"
                raise TimedOut(text + because(lookup.last_refusal or coordinator.lookup.last_error))
            if lookup.error is not None:
                raise lookup.error
            return lookup.found

    def group_metadata(self) -> ConsumerGroupMetadata:
        """See `Consumer.group_metadata`."""
        with self._guard:
            return self._driver.group.member.metadata()

    def enforce_rebalance(self, reason: str = "rebalance enforced by user") -> None:
        """See `Consumer.enforce_rebalance`."""
        arguments.name(reason, "enforce_rebalance", "reason", what="a text")
        with self._guard:
            coordinator = self._driver.group
            if not self._subscription.is_automatic:
                raise IllegalState("nothing is subscribed: there is no assignment to rebalance")
            coordinator.member.request_rejoin(reason)

    def consumed_offsets(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """See `Consumer.consumed_offsets`."""
        with self._guard:
            if self._driver.group.auto_commit.is_on:
                raise IllegalState(
                    "consumed_offsets: enable.auto.commit is on, so that offsets are committed "
                    "whatever becomes of a transaction; turn it off"
                )
            return self._to_commit(None, "consumed_offsets")

    def _to_commit(
        self, offsets: GivenOffsets | None, call: str
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        from embedlog.client.consumer.group.auto_commit import consumed_offsets
        from embedlog.client.consumer.group.group_offsets import offsets_of

        return (
            consumed_offsets(self._subscription) if offsets is None else offsets_of(offsets, call)
        )
