"""The environment of a shard: time, randomness, settings, timers and deferred actions."""

from __future__ import annotations

from embedlog.common import Value
from embedlog.config.resources import group_value
from embedlog.coordinator.result import CoordinatorRecord, Result
from embedlog.purgatory.timing_wheel import TimerTask

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping
    from typing import Any, Protocol

    from embedlog.config import BrokerConfig
    from embedlog.config.types import SettingValue
    from embedlog.controller.metadata import MetadataImage
    from embedlog.errors import KafkaError
    from embedlog.purgatory.purgatory import DelayedOperationPurgatory
    from embedlog.purgatory.timer import Timer
    from embedlog.runtime import Runtime
    from embedlog.runtime.pending import Pending

    class Shard(Protocol):
        """The state that the records of one partition describe. Requires: the shard's lock."""

        def replay(self, record: CoordinatorRecord, *, offset: int, producer_id: int = ...) -> None:
            """Apply one record; `producer_id` is -1 outside transactions."""

        def end_transaction(self, producer_id: int, *, is_committed: bool) -> None:
            """Apply the producer's records so far, or drop them."""

        def loaded(self) -> None:
            """Start the timers: the log was replayed."""

        def unloaded(self, error: KafkaError) -> None:
            """Answer the parked requests with `error`: this shard ends."""

    Pinned = Callable[[Mapping[str, Any]], dict[str, Mapping[bytes, Any]]]
    """Members by id -> the target partitions of each of them."""
    Write = Callable[["ShardContext", Callable[[Any], Result[Any]]], Pending[Any]]

RETRY_DELAY_MS = 500
"""Delay before a timer whose records could not be appended tries again."""


class CoordinatorWorld(Value):
    """The parts that all shards of a coordinator share."""

    runtime: Runtime
    config: BrokerConfig
    metadata: Callable[[], MetadataImage]
    timer: Timer
    join_purgatory: DelayedOperationPurgatory
    heartbeat_purgatory: DelayedOperationPurgatory
    pinned: Mapping[str, Pinned] = {}
    """Group -> the assignment of a test, in place of the server-side assignors."""


class ShardContext:
    """The environment of one loaded shard. Requires: the shard's lock, except where noted.

    The context outlives its shard: after the unloading no timer runs, and `write` fails.
    """

    def __init__(
        self, partition: int, world: CoordinatorWorld, write: Write, *, leader_epoch: int = 0
    ) -> None:
        clock = world.runtime.clock
        self.partition = partition
        """The partition whose records this shard holds."""
        self.leader_epoch = leader_epoch
        """The partition's leader epoch at loading; the coordinator epoch of the shard's markers."""
        self.config = world.config
        self.random = world.runtime.random
        self.wall_ms = clock.wall_ms
        self.monotonic_ms = clock.monotonic_ms
        self.elapsed_ns = clock.elapsed_source()
        self.allows_deletion = world.runtime.clock_guard.allows_deletion
        """Returns whether data may be deleted because of its age by the wall clock."""
        self.metadata = world.metadata
        """Returns the present image of the cluster; call it once for one consistent view."""
        self.timer = ShardTimer(world.timer, self)
        self.join_purgatory = world.join_purgatory
        """Parked JoinGroups of all shards. An operation's lock comes before a shard's lock, so use
        both purgatories only in deferred actions, or without the shard's lock."""
        self.heartbeat_purgatory = world.heartbeat_purgatory
        """Session time-outs of the classic members of all shards."""
        self.pinned = world.pinned
        self._write = write
        self._deferred: list[Callable[[], None]] = []

    def group_config(self, group_id: str, name: str) -> SettingValue:
        """Return the group's own value of a setting, else the broker's default."""
        texts = self.metadata().group_configs.get(group_id, {})
        return group_value(name, texts, self.config)

    def defer(self, action: Callable[[], None]) -> None:
        """Run `action` in this thread once the shard's lock is released.

        Always defer completing a `Pending` and touching a purgatory: they may call this shard.
        """
        self._deferred.append(action)

    def write(self, operation: Callable[[Any], Result[Any]]) -> Pending[Any]:
        """Run `operation(shard)` as `CoordinatorRuntime.write` does. Requires: no shard's lock.

        Fails with NotCoordinator when another shard has been loaded in place of this one.
        """
        return self._write(self, operation)

    def move_deferred(self, actions: list[Callable[[], None]]) -> None:
        """Move the deferred actions to `actions`; the caller runs them without the lock."""
        # No Ctrl-C can come between these two.
        actions += self._deferred
        self._deferred = []


class ShardTimer:
    """The timers of one shard, at most one per key. Requires: the shard's lock."""

    def __init__(self, timer: Timer, context: ShardContext) -> None:
        self._timer = timer
        self._context = context
        self._tasks: dict[Hashable, _KeyedTask] = {}

    def schedule(self, key: Hashable, delay_ms: int, operation: Callable[[], Result[Any]]) -> None:
        """Run `operation` as a write of this shard in `delay_ms`; replace the timer that `key` had.

        If its records cannot be appended, it runs again after `RETRY_DELAY_MS`.
        """
        self.cancel(key)
        # At least 1 ms: a task without delay would run in this call, under the lock.
        task = self._tasks[key] = _KeyedTask(max(1, delay_ms), key, operation, self)
        self._timer.add(task)

    def cancel(self, key: Hashable) -> None:
        task = self._tasks.pop(key, None)
        if task is not None:
            task.cancel()

    def cancel_all(self) -> None:
        for task in self._tasks.values():
            task.cancel()
        self._tasks.clear()

    def is_scheduled(self, key: Hashable) -> bool:
        return key in self._tasks

    def restart(self, is_chosen: Callable[[Hashable], bool]) -> None:
        """Let the delays of the chosen timers begin again, as if they had just been scheduled."""
        for task in self._tasks.values():
            if is_chosen(task.key):
                self._timer.add(task)

    def expire(self, is_chosen: Callable[[Hashable], bool]) -> int:
        """Let the delays of the chosen timers end now; return the number of timers.

        Their operations run once the shard's lock is released.
        """
        chosen = [task for task in self._tasks.values() if is_chosen(task.key)]
        for task in chosen:
            task.cancel()
            self._context.defer(task.run)
        return len(chosen)

    def expired(self, task: _KeyedTask) -> None:
        """Run the operation of a due task. Requires: no lock."""
        fired: list[bool] = []

        def operation(_shard: Any) -> Result[Any]:
            # The task may have been cancelled or replaced after the timer had taken it out.
            if self._tasks.get(task.key) is not task:
                return Result()
            del self._tasks[task.key]
            fired.append(True)
            return task.operation()

        def decided(pending: Pending[Any]) -> None:
            if fired and pending.error() is not None:
                self._context.write(again)

        def again(_shard: Any) -> Result[Any]:
            if task.key not in self._tasks:
                self.schedule(task.key, RETRY_DELAY_MS, task.operation)
            return Result()

        self._context.write(operation).add_callback(decided)


class _KeyedTask(TimerTask):
    __slots__ = ("_shard_timer", "key", "operation")

    def __init__(
        self,
        delay_ms: int,
        key: Hashable,
        operation: Callable[[], Result[Any]],
        shard_timer: ShardTimer,
    ) -> None:
        super().__init__(delay_ms)
        self.key = key
        self.operation = operation
        self._shard_timer = shard_timer

    def run(self) -> None:
        self._shard_timer.expired(self)
