"""What the share partitions of a broker have in common."""

from __future__ import annotations

from embedlog.controller import features
from embedlog.purgatory.timer import Timer, TimerTask
from embedlog.runtime.pending import Pending, completed
from embedlog.sharing.settings import settings_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Hashable
    from typing import Final

    from embedlog.config import BrokerConfig
    from embedlog.controller.metadata import MetadataImage
    from embedlog.coordinator.share.state_client import ShareStateClient, StateBatch
    from embedlog.replication.partition import Partition
    from embedlog.replication.replica_manager import ReplicaManager
    from embedlog.runtime import Runtime
    from embedlog.sharing.settings import ShareSettings

    Bury = Callable[[str, Partition, "list[StateBatch]"], Pending[None]]
    """Writes dead letters of a group's records in a partition; the answer comes in any case."""

FIRST_WITH_DEAD_LETTERS: Final = 2
"""The level of share.version from which groups may have a dead letter topic."""


class SharingContext:
    """Time, settings, the share coordinator, and the fetches that wait."""

    def __init__(
        self,
        runtime: Runtime,
        config: BrokerConfig,
        replica_manager: ReplicaManager,
        *,
        metadata: Callable[[], MetadataImage],
        state: ShareStateClient,
    ) -> None:
        self.runtime = runtime
        self.config = config
        self.replica_manager = replica_manager
        self.metadata = metadata
        self.state = state
        self.wall_ms = runtime.clock.wall_ms
        self.timer = Timer(runtime.clock, runtime.scheduler.notify)
        """The timer of locks and pauses."""
        runtime.scheduler.add(self.timer, is_timer=True)
        self.bury: Bury = _nothing_to_bury
        self._settings: dict[str, ShareSettings] = {}
        """The settings of groups in the metadata `_as_of`. The broker's settings behind them never
        change while it runs."""
        self._as_of: MetadataImage | None = None

    def settings(self, group_id: str) -> ShareSettings:
        """Return the present settings of a group."""
        image = self.metadata()
        if image is not self._as_of:
            self._as_of = image
            self._settings = {}
        known = self._settings
        if group_id not in known:
            level = image.feature_level(features.SHARE)
            known[group_id] = settings_of(
                image.group_configs.get(group_id, {}),
                self.config,
                has_dead_letters=level >= FIRST_WITH_DEAD_LETTERS,
            )
        return known[group_id]

    def wake(self, key: Hashable) -> None:
        """Try the fetches that wait for a share partition. Requires: no lock."""
        self.replica_manager.fetch_purgatory.check_and_complete(key)

    def pause(self, delay_ms: int) -> Pending[None]:
        """Return a pending that completes after a delay."""
        task = _Pause(delay_ms)
        self.timer.add(task)
        return task.pending

    def close(self) -> None:
        self.runtime.scheduler.remove(self.timer)


class _Pause(TimerTask):
    """Completes a pending when its time is over."""

    __slots__ = ("pending",)

    def __init__(self, delay_ms: int) -> None:
        TimerTask.__init__(self, delay_ms)
        self.pending: Pending[None] = Pending()

    def run(self) -> None:
        self.pending.complete(None)


def _nothing_to_bury(
    _group_id: str, _partition: Partition, _rows: list[StateBatch]
) -> Pending[None]:
    return completed(None)
