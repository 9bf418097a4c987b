"""`RunningBroker`: a broker and its data directories, from opening them to releasing them."""

from __future__ import annotations

from embedlog.broker.broker import Broker
from embedlog.cluster.controller_log import check_cluster_id, open_controller
from embedlog.cluster.directories import DirectoryOpener
from embedlog.storage.data_directories import begin
from embedlog.storage.directory import meta_properties

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from embedlog.broker.commits.inbox import CommitInbox
    from embedlog.broker.directory_keeper import DirectoryKeeper
    from embedlog.broker.peers import Peers
    from embedlog.config.broker_config import BrokerConfig
    from embedlog.controller.controller import Controller
    from embedlog.controller.metadata import MetadataDelta
    from embedlog.runtime import Runtime
    from embedlog.storage.data_directories import DataDirectories
    from embedlog.storage.degradation import Degradation
    from embedlog.storage.directory.meta_properties import MetaProperties


class RunningBroker:
    """A broker, its logs and their directories.

    A single broker keeps the cluster's metadata log in its own directory, and runs the
    controller. A broker of several gets the `controller` and its `peers`.
    """

    __slots__ = ("_is_single", "_is_on_disk", "commit_inbox", "controller", "core", "log_manager")

    def __init__(
        self,
        runtime: Runtime,
        directory: str,
        config: BrokerConfig,
        *,
        durability: str,
        on_disk: bool,
        log_dirs: Sequence[str] = (),
        cluster_id: str | None = None,
        waits_for_committer: bool = True,
        controller: Controller | None = None,
        peers: Peers | None = None,
        is_restart: bool = False,
    ) -> None:
        """Lock `directory` and the further `log_dirs`, and open their logs.

        `on_disk`: the directories lie in the file system, where other processes see them.
        `waits_for_committer`: wait a moment if a Spark committer holds the directory. `is_restart`:
        see `Broker`.

        Raises:
            DirectoryLocked, ConfigError, CorruptRecord: see `embedlog.open`.
        """
        self._is_single = is_alone = controller is None
        self._is_on_disk = on_disk
        opener = DirectoryOpener(
            runtime, config, durability=durability, on_disk=on_disk, is_replicated=not is_alone
        )
        self.log_manager = opener.open(
            directory, log_dirs, waits_for_committer=waits_for_committer, cluster_id=cluster_id
        )
        try:
            properties = meta_properties.read(runtime, directory, config.node_id)
            self.log_manager.first.directory.id = properties.directory_id

            controller = self._accept(opener, directory, controller, properties, cluster_id)
            self.controller = controller
            if not properties.is_whole:
                properties.cluster_id = controller.image.cluster_id
                meta_properties.write(runtime, directory, config.node_id, properties, sync=on_disk)
            opener.identify(self.log_manager, controller.image)
            self.core = Broker(
                runtime, config, self.log_manager, controller, peers=peers, is_restart=is_restart
            )
            """The request door, `Broker.handle`."""
            if is_alone:
                controller.on_change = self.core.changed
            self._keep_directories(opener.keeper)
            # The inbox finishes a commit that a crash cut short, before any reader sees the logs.
            self.commit_inbox = _open_commit_inbox(self.core) if on_disk else None
        except BaseException:
            self.log_manager.close()
            raise

    def _accept(
        self,
        opener: DirectoryOpener,
        directory: str,
        controller: Controller | None,
        properties: MetaProperties,
        cluster_id: str | None,
    ) -> Controller:
        """Check that the directories belong to this cluster, and begin to change them.

        Return the given controller, or make the controller of a single broker.
        """

        def check(found: Controller | None) -> None:
            if found is None:
                opener.check(self.log_manager, None)
                return
            check_cluster_id(directory, found, "expected was", cluster_id)
            check_cluster_id(directory, found, "meta.properties names", properties.cluster_id)
            opener.check(self.log_manager, found.image)

        runtime = opener.runtime
        if controller is None:
            return open_controller(
                runtime,
                self.log_manager,
                opener.config,
                sync=self._is_on_disk,
                cluster_id=properties.cluster_id or cluster_id,
                check=check,
            )
        check(controller)
        begin(self.log_manager, runtime.clock.wall_ms())
        return controller

    def _keep_directories(self, keeper: DirectoryKeeper | None) -> None:
        """Start to watch the directories if there are several, or if some are cordoned."""
        if keeper is not None:
            self.core.keep_directories(keeper)
        elif self.core.config.cordoned_log_dirs:
            self.core.report_cordons()

    @property
    def is_held(self) -> bool:
        return self.log_manager.first.directory.is_held

    def health(self) -> list[Degradation]:
        """See `Cluster.health`."""
        return self.core.health()

    def maintain(self) -> int:
        """See `Cluster.maintain`."""
        runtime = self.core.runtime
        runtime.scheduler.run_due(runtime.clock.monotonic_ms())
        self.core.all_partitions()
        self.core.expire_offsets()
        self.core.expire_transactions()
        scheduler, steps = self.core.runtime.scheduler, self.log_manager.tasks.finish_now()
        freed = 0
        while (step := scheduler.exclusively(lambda: next(steps, None))) is not None:
            freed += step
        return freed

    def sync_appended(self) -> None:
        """Sync the records for which producers wait, and answer them."""
        manager = self.core.replica_manager
        for partition in list(manager.partitions.values()):
            if partition.syncs:
                manager.to_sync.work_now(partition)

    def keep_start_offsets(self) -> None:
        """Store where each log begins: at level "memory" nothing else writes that down."""
        for manager in self.log_manager.managers:
            manager.checkpoints.write_positions(also_volatile=True)

    def close(self) -> None:
        """Answer waiting requests, write buffered state, release the directories."""
        if self._is_single:
            self.controller.on_change = _ignore
        if self.log_manager.keeper is not None:
            self.log_manager.keeper.close()
        if self.commit_inbox is not None:
            self.commit_inbox.close()
        self.core.close(makes_logs=self._is_on_disk)
        self.core.runtime.scheduler.exclusively(self.log_manager.tasks.finish_before_close)
        self.log_manager.close()

    def abandon(self, *, loses_unsynced: bool) -> None:
        """End like a killed process: write nothing more, and leave no clean-shutdown mark.

        `loses_unsynced`: end like a machine that lost power.
        """
        if self._is_single:
            self.controller.on_change = _ignore
        if self.log_manager.keeper is not None:
            self.log_manager.keeper.close()
        if self.commit_inbox is not None:
            self.commit_inbox.close()
        self.core.close(syncs=False)
        if self._is_single and loses_unsynced:
            _keep_metadata(self.log_manager)
        self.log_manager.abandon(loses_unsynced=loses_unsynced)


def _open_commit_inbox(core: Broker) -> CommitInbox:
    """Return the inbox for files that other processes staged in the directory."""
    from embedlog.broker.commits.inbox import CommitInbox

    return CommitInbox(core)


def _keep_metadata(log_manager: DataDirectories) -> None:
    """Sync the metadata log, which in memory is never synced: topics survive a loss of power."""
    from embedlog.controller.metadata_log import METADATA_PARTITION

    log = log_manager.first.get(METADATA_PARTITION)
    if log is not None and log.failure is None:
        log.durability.flush()


def _ignore(_delta: MetadataDelta) -> None:
    """Ignore changes after the broker closed."""
