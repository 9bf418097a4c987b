"""What the parts of a shard may use of the world: time, chance, settings, timers, and later."""

from __future__ import annotations

from embedlog.config.resources import group_value
from embedlog.coordinator.result import Result
from embedlog.purgatory.timing_wheel import TimerTask

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Hashable
    from typing import Any

    from embedlog.config import BrokerConfig
    from embedlog.config.types import SettingValue
    from embedlog.coordinator.broker_view import Metadata
    from embedlog.purgatory.purgatory import DelayedOperationPurgatory
    from embedlog.purgatory.timer import Timer
    from embedlog.runtime import Runtime
    from embedlog.runtime.pending import Pending

    Write = Callable[["ShardContext", Callable[[Any], Result[Any]]], Pending[Any]]

RETRY_DELAY_MS = 500
"""A timer whose records could not be appended tries again after this time."""


class CoordinatorWorld:
    """What all shards of a coordinator share."""

    __slots__ = (
        "config",
        "heartbeat_purgatory",
        "join_purgatory",
        "metadata",
        "runtime",
        "timer",
    )

    def __init__(
        self,
        runtime: Runtime,
        config: BrokerConfig,
        metadata: Callable[[], Metadata],
        *,
        timer: Timer,
        join_purgatory: DelayedOperationPurgatory,
        heartbeat_purgatory: DelayedOperationPurgatory,
    ) -> None:
        self.runtime = runtime
        self.config = config
        self.metadata = metadata
        self.timer = timer
        self.join_purgatory = join_purgatory
        self.heartbeat_purgatory = heartbeat_purgatory


class ShardContext:
    """One loaded shard's access to everything else. Requires: the shard's lock, unless it says not.

    A shard that is unloaded leaves its context behind: timers are gone, and `write` fails.
    """

    __slots__ = (
        "_deferred",
        "_write",
        "allows_deletion",
        "config",
        "heartbeat_purgatory",
        "join_purgatory",
        "leader_epoch",
        "metadata",
        "monotonic_ms",
        "partition",
        "random",
        "timer",
        "wall_ms",
    )

    def __init__(
        self, partition: int, world: CoordinatorWorld, write: Write, *, leader_epoch: int = 0
    ) -> None:
        clock = world.runtime.clock
        self.partition = partition
        """The number of the partition whose records this shard holds."""
        self.leader_epoch = leader_epoch
        """That partition's, when the shard was loaded: the coordinator's epoch."""
        self.config = world.config
        """The broker's settings, as attributes."""
        self.random = world.runtime.random
        self.wall_ms = clock.wall_ms
        self.monotonic_ms = clock.monotonic_ms
        self.allows_deletion = world.runtime.clock_guard.allows_deletion
        """May something be deleted because the wall clock says that it is old?"""
        self.metadata = world.metadata
        """The present state of the cluster, immutable; take it once for one consistent view."""
        self.timer = ShardTimer(world.timer, self)
        self.join_purgatory = world.join_purgatory
        """Parked JoinGroups of all shards. Lock order: operation, then shard; so this and the next
        are touched from deferred actions, or without the shard's lock."""
        self.heartbeat_purgatory = world.heartbeat_purgatory
        """Session time-outs of classic members of all shards."""
        self._write = write
        self._deferred: list[Callable[[], None]] = []

    def group_config(self, group_id: str, name: str) -> SettingValue:
        """The value in force of a group's setting: its own, else the broker's default."""
        texts = self.metadata().group_configs.get(group_id, {})
        return group_value(name, texts, self.config)

    def defer(self, action: Callable[[], None]) -> None:
        """Run `action` in this thread once the shard's lock is released.

        Completing a `Pending` and touching a purgatory are always deferred: who is answered may
        come back to this shard.
        """
        self._deferred.append(action)

    def write(self, operation: Callable[[Any], Result[Any]]) -> Pending[Any]:
        """Run `operation(shard)` as `CoordinatorRuntime.write` does. Requires: no shard's lock.

        Fails with NotCoordinator when this shard is no longer the loaded one.
        """
        return self._write(self, operation)

    def take_deferred(self) -> list[Callable[[], None]]:
        """What was deferred so far, for whoever releases the lock to run."""
        deferred, self._deferred = self._deferred, []
        return deferred


class ShardTimer:
    """Timers of one shard by key: at most one per key. Requires: the shard's lock."""

    __slots__ = ("_context", "_tasks", "_timer")

    def __init__(self, timer: Timer, context: ShardContext) -> None:
        self._timer = timer
        self._context = context
        self._tasks: dict[Hashable, _KeyedTask] = {}

    def schedule(self, key: Hashable, delay_ms: int, operation: Callable[[], Result[Any]]) -> None:
        """Run `operation` as a write of this shard in `delay_ms`, in place of what `key` had.

        When its records cannot be appended it is tried again a little later.
        """
        self.cancel(key)
        # At least 1 ms: a task that is due at once would run in this call, under the lock.
        task = self._tasks[key] = _KeyedTask(max(1, delay_ms), key, operation, self)
        self._timer.add(task)

    def cancel(self, key: Hashable) -> None:
        """Forget what waits under `key`, if anything does."""
        task = self._tasks.pop(key, None)
        if task is not None:
            task.cancel()

    def cancel_all(self) -> None:
        """Forget everything: the shard is unloaded."""
        for task in self._tasks.values():
            task.cancel()
        self._tasks.clear()

    def is_scheduled(self, key: Hashable) -> bool:
        """Does something wait under `key`?"""
        return key in self._tasks

    def expired(self, task: _KeyedTask) -> None:
        """The time of `task` has come. Requires: no lock."""
        fired: list[bool] = []

        def operation(_shard: Any) -> Result[Any]:
            # It may have been cancelled or replaced after the timer had taken it out.
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
