"""`Waits`: a test's waits for the cluster. `Kafka.wait` is one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeVar

from embedlog.common import TopicPartition
from embedlog.testing.inspection.brokers import Brokers
from embedlog.testing.inspection.group_values import GroupValue
from embedlog.testing.inspection.running_brokers import NoBrokerRuns
from embedlog.testing.inspection.transactions import TransactionValue
from embedlog.testing.interception import Stages
from embedlog.testing.seen_request import SeenRequest
from embedlog.testing.signals import Waiter, milliseconds
from embedlog.testing.timed_out import WaitTimedOut
from embedlog.testing.waits.aio import AioWaits
from embedlog.testing.waits.condition import TIMEOUT, Condition
from embedlog.testing.waits.wanted import Wanted

T = TypeVar("T")


class Waits:
    """Waits for a state of the cluster. The brokers wake the waiting thread; nothing polls.

    `timeout` is in seconds of real time, also if the cluster has a clock of a test. Each call
    returns at once if the state is reached already.

    >>> from embedlog.testing import Kafka
    >>> with Kafka(topics={"orders": 1}) as kafka:
    ...     _ = kafka.producer().send("orders", b"x")
    ...     kafka.wait.records("orders", 1)
    1

    Raises:
        WaitTimedOut: the cluster did not reach the state. It is an AssertionError.
        ConfigError: a name is misspelt, or a number is none.
    """

    def __init__(self, brokers: Brokers, stages: Stages) -> None:
        self._brokers = brokers
        self._wanted = Wanted(brokers, stages)

    @property
    def aio(self) -> AioWaits:
        """The same waits for asyncio: `await kafka.wait.aio.group("g", members=2)`."""
        return AioWaits(self._wanted, self._run, self._brokers)

    # Groups

    def group(
        self,
        group_id: str,
        *,
        state: str | None = None,
        members: int | None = None,
        assigned: int | None = None,
        timeout: float = TIMEOUT,
    ) -> GroupValue:
        """Wait for a group's state, number of members and number of assigned partitions.

        Without `state` the group must be stable, or empty or absent if `members` is 0.
        """
        return self._run(self._wanted.group(group_id, state, members, assigned), timeout)

    def rebalanced(
        self, group_id: str, *, since: int | None = None, timeout: float = TIMEOUT
    ) -> GroupValue:
        """Wait until a group is stable in a later generation or epoch than `since`.

        None means the present one. `Group.rebalance` returns the one before its rebalance.
        """
        return self._run(self._wanted.rebalanced(group_id, since), timeout)

    def lag(
        self,
        group_id: str,
        lag: int = 0,
        *,
        topics: Collection[str] = (),
        isolation: str = "read_uncommitted",
        timeout: float = TIMEOUT,
    ) -> dict[TopicPartition, int]:
        """Wait until a group lacks at most `lag` records; return the lag of each partition.

        The partitions that the group has committed or that a member has count, or all partitions of
        `topics`. The wait goes on while there are none. A partition without a committed offset lags
        by all its records. At "read_committed" the records of open and aborted transactions do not
        count.
        """
        return self._run(self._wanted.lag(group_id, lag, topics, isolation), timeout)

    def committed(
        self,
        group_id: str,
        offsets: Mapping[tuple[str, int], int],
        *,
        timeout: float = TIMEOUT,
    ) -> dict[TopicPartition, int]:
        """Wait until a group has committed at least these offsets; return the committed ones."""
        return self._run(self._wanted.committed(group_id, offsets), timeout)

    # Topics

    def records(
        self,
        topic: str,
        count: int,
        *,
        partition: int | None = None,
        isolation: str = "read_uncommitted",
        timeout: float = TIMEOUT,
    ) -> int:
        """Wait for at least `count` records in a topic or a partition; return their number.

        At "read_committed" the records of open and aborted transactions do not count. Markers of
        transactions are no records.
        """
        return self._run(self._wanted.records(topic, count, partition, isolation), timeout)

    def isr(
        self, topic: str, partition: int, isr: Collection[int], *, timeout: float = TIMEOUT
    ) -> set[int]:
        """Wait until exactly these brokers are the in-sync replicas of a partition."""
        return self._run(self._wanted.isr(topic, partition, isr), timeout)

    def leader(
        self,
        topic: str,
        partition: int,
        node_id: int | None = None,
        *,
        timeout: float = TIMEOUT,
    ) -> int:
        """Wait until a broker leads a partition, or any broker does; return its number."""
        return self._run(self._wanted.leader(topic, partition, node_id), timeout)

    # Requests, transactions, anything

    def request(
        self,
        api: str,
        *,
        client_id: str | None = None,
        node_id: int | None = None,
        times: int = 1,
        where: Callable[[Any], object] | None = None,
        timeout: float = TIMEOUT,
    ) -> list[SeenRequest]:
        """Wait for requests of clients that come from the call on: `request("Fetch")`.

        `where` is called with each decoded request, in the thread of the request. A request counts
        when it arrives, before its answer.
        """
        return self._run(self._wanted.request(api, client_id, node_id, times, where), timeout)

    def transaction(
        self, transactional_id: str, state: str, *, timeout: float = TIMEOUT
    ) -> TransactionValue:
        """Wait until a transactional id is in a state, such as "CompleteCommit"."""
        return self._run(self._wanted.transaction(transactional_id, state), timeout)

    def until(
        self, function: Callable[[], T], *, describe: str | None = None, timeout: float = TIMEOUT
    ) -> T:
        """Wait until a function returns a true value, and return it. `describe` names the state.

        The function is called again after each request of a client, and after each change of
        groups, transactions, partitions and metadata. It should look at the cluster only.
        """
        return self._run(self._wanted.until(function, describe), timeout)

    def _run(
        self,
        condition: Condition[T],
        timeout: float,
        started: Callable[[Waiter], object] | None = None,
    ) -> T:
        """Wait for a condition. `started` gets the waiter, to cancel it."""
        waiter = Waiter(self._brokers.signals, milliseconds(timeout))
        if started is not None:
            started(waiter)

        down: list[str] = []

        def look() -> T | None:
            down.clear()
            try:
                return condition.look()
            except NoBrokerRuns as error:
                down.append(str(error))
                return None

        try:
            condition.begin()
            found = waiter.run(look, heeds_own=condition.heeds_own)
            if found is None:
                near = down or condition.near()
                raise WaitTimedOut(condition.wanted, timeout, condition.seen(), near)
            return found
        finally:
            condition.end()
