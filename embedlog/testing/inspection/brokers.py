"""`Brokers`: the running brokers of a cluster, for the parts of the test kit that look inside.

Its operations go to the coordinators directly. No rule of the test meets them, and no timeline
shows them.
"""

from __future__ import annotations

from _thread import get_ident
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from embedlog.broker import dispatch
from embedlog.broker.context import RequestContext
from embedlog.cluster.cluster import Cluster
from embedlog.coordinator.placement import partition_of
from embedlog.coordinator.result import Result
from embedlog.errors import (
    ConcurrentTransactions,
    CoordinatorLoadInProgress,
    CoordinatorNotAvailable,
    EmbedlogError,
    NotCoordinator,
    NotLeaderOrFollower,
    TimedOut,
)
from embedlog.runtime.outer_call import outer
from embedlog.runtime.pending import Pending
from embedlog.testing.inspection.running_brokers import NoBrokerRuns, RunningBrokers
from embedlog.testing.signals import QUIET, Signals, Waiter
from embedlog.topic_names import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from wire.registry import stable_versions
from wire.schema import declaration
from wire.schemas.find_coordinator import FindCoordinatorRequest

if TYPE_CHECKING:
    from embedlog.broker.broker import Broker
    from embedlog.coordinator.group.group_shard import GroupShard
    from embedlog.coordinator.transaction.transaction_shard import TransactionShard
    from wire.schema import R, Request

T = TypeVar("T")

_PATIENCE_MS = 10_000
"""How long a call waits for a coordinator that is moving to another broker."""
MOVING = (CoordinatorLoadInProgress, CoordinatorNotAvailable, NotCoordinator, NotLeaderOrFollower)
"""Errors that end by themselves, when a coordinator or a leader has moved."""


@contextmanager
def quiet() -> Iterator[None]:
    """Look at the cluster: operations of this thread wake no waiting thread.

    Do not wait inside: the waiting thread may do work of the brokers, which has to wake others.
    """
    me = get_ident()
    if me in QUIET:
        yield
        return
    QUIET.add(me)
    try:
        yield
    finally:
        QUIET.discard(me)


class Brokers(RunningBrokers):
    """The running brokers, and operations of their coordinators."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self.signals = Signals(cluster)

    def read_group(
        self, group_id: str, operation: Callable[[GroupShard], T], *, waits: bool = True
    ) -> T | None:
        """Return the operation's result; None if the cluster has no groups at all.

        With `waits` the call waits for a coordinator that moves to another broker; otherwise it
        raises one of `MOVING`.

        Raises:
            TimedOut: the coordinator cannot be reached for some seconds.
            KafkaError: the operation raised it.
        """
        if OFFSETS_TOPIC not in self.image.topics_by_name:
            return None

        def start() -> Pending[T]:
            with quiet():
                return self._group(group_id, lambda shard: Result((), operation(shard)))

        return self._patiently(start) if waits else self._result(start())

    def write_group(self, group_id: str, operation: Callable[[GroupShard], Result[T]]) -> T:
        """Change a group, and return the operation's response. Raises as `read_group`."""
        self._make_coordinator(group_id, 0, OFFSETS_TOPIC)
        return self._patiently(lambda: self._group(group_id, operation))

    def read_transaction(
        self,
        transactional_id: str,
        operation: Callable[[TransactionShard], T],
        *,
        waits: bool = True,
    ) -> T | None:
        """Like `read_group`, for a transactional id."""
        if TRANSACTIONS_TOPIC not in self.image.topics_by_name:
            return None

        def start() -> Pending[T]:
            with quiet():
                return self._transaction(
                    transactional_id, lambda _, shard: Result((), operation(shard))
                )

        return self._patiently(start) if waits else self._result(start())

    def write_transaction(
        self, transactional_id: str, operation: Callable[[Broker, TransactionShard], Result[T]]
    ) -> T:
        """Like `write_group`, for a transactional id."""
        self._make_coordinator(transactional_id, 1, TRANSACTIONS_TOPIC)
        return self._patiently(
            lambda: self._transaction(transactional_id, operation),
            (*MOVING, ConcurrentTransactions),
        )

    def read_groups(self, operation: Callable[[GroupShard], T]) -> list[T]:
        """Return the results of an operation on every shard of groups."""
        if OFFSETS_TOPIC not in self.image.topics_by_name:
            return []
        with quiet():
            asked = [
                pending
                for core in self.running()
                for pending in core.group_coordinator.read_all(operation)
            ]
        return [self._result(pending) for pending in asked]

    def read_transactions(self, operation: Callable[[TransactionShard], T]) -> list[T]:
        """Return the results of an operation on every shard of transactional ids."""
        if TRANSACTIONS_TOPIC not in self.image.topics_by_name:
            return []
        with quiet():
            asked = [
                pending
                for core in self.running()
                for pending in core.transaction_coordinator.read_all(operation)
            ]
        return [self._result(pending) for pending in asked]

    def ask(self, request: Request[R]) -> R:
        """Let a running broker answer a request; no rule of the test meets it."""
        running = self.running()
        if not running:
            raise NoBrokerRuns("no broker runs")
        return self._ask(running[0], request)

    def _ask(self, core: Broker, request: Request[R]) -> R:
        api_key = declaration(type(request)).api
        assert api_key is not None, request
        context = RequestContext(api_key, stable_versions(api_key)[1])
        answer: R | Pending[R] = self._call(core, context, request)
        return self._result(answer) if isinstance(answer, Pending) else answer

    @outer
    def _call(self, core: Broker, context: RequestContext, request: Any) -> Any:
        return dispatch.call(core, context, request)

    def coordinator(self, topic: str, key: str) -> Broker:
        """Return the broker that coordinates a group or a transactional id.

        Raises:
            NotCoordinator: no running broker does.
        """
        image = self.image
        known = image.topics_by_name.get(topic)
        if known is None:
            raise NotCoordinator()
        leader = known.partitions[partition_of(key, len(known.partitions))].leader
        for core in self.running():
            if core.peers is None or core.node_id == leader:
                return core
        raise NotCoordinator(f"broker {leader}, the coordinator of {key!r}, does not run")

    def _make_coordinator(self, key: str, key_type: int, topic: str) -> None:
        if topic not in self.image.topics_by_name:
            self.ask(FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key]))

    @outer
    def _group(self, group_id: str, operation: Callable[[GroupShard], Result[T]]) -> Pending[T]:
        core = self.coordinator(OFFSETS_TOPIC, group_id)
        return core.group_coordinator.write(group_id, operation)

    @outer
    def _transaction(
        self, transactional_id: str, operation: Callable[[Broker, TransactionShard], Result[T]]
    ) -> Pending[T]:
        core = self.coordinator(TRANSACTIONS_TOPIC, transactional_id)
        return core.transaction_coordinator.write(
            transactional_id, lambda shard: operation(core, shard)
        )

    def _patiently(
        self, start: Callable[[], Pending[T]], passing: tuple[type[EmbedlogError], ...] = MOVING
    ) -> T:
        """Return the result of a call; repeat the call while it fails with a passing error."""
        last: list[BaseException] = []

        def attempt() -> tuple[T] | None:
            try:
                return (self._result(start()),)
            except passing as error:
                last[:] = [error]
                return None

        found = attempt() or Waiter(self.signals, _PATIENCE_MS).run(attempt)
        if found is None:
            limit = f"{_PATIENCE_MS // 1000} s"
            raise TimedOut(f"the coordinator did not do it within {limit}: {last[0]!r}") from last[
                0
            ]
        return found[0]

    def _result(self, pending: Pending[T]) -> T:
        """Wait for a pending, and return its result."""
        if not pending.done():
            Waiter(self.signals, _PATIENCE_MS).until_done(pending)
        if not pending.done():
            raise TimedOut(f"no answer of a coordinator within {_PATIENCE_MS // 1000} s")
        return pending.result()
