"""`ControllerHost`: the controller of several brokers, over its starts and stops.

It has a directory of its own. While the controller is stopped, brokers append and replicate, but no
leader, in-sync set or topic changes.
"""

from __future__ import annotations

from embedlog import errors
from embedlog.cluster.controller_log import check_cluster_id, metadata_log
from embedlog.controller.controller import Controller
from embedlog.controller.metadata_log import METADATA_PARTITION
from embedlog.errors import IllegalState
from embedlog.storage.directory.log_manager import LogManager
from embedlog.storage.log_config import LogConfig

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from embedlog.config.broker_config import BrokerConfig
    from embedlog.controller.metadata import MetadataDelta
    from embedlog.runtime import Runtime
    from embedlog.runtime.threads import Duty


class ControllerHost:
    """Owner of the controller's directory. Every method may be called from any thread."""

    def __init__(
        self,
        runtime: Runtime,
        directory: str,
        config: BrokerConfig,
        *,
        on_disk: bool,
        node_ids: Sequence[int],
        cluster_id: str | None,
        publish: Callable[[MetadataDelta], None],
        check: Callable[[Controller], None],
    ) -> None:
        """Start the controller. It calls `publish` with each change, under the controller lock.

        `check` gets the controller before anything in its directory has changed, and may refuse it.

        Raises:
            DirectoryLocked, ConfigError, CorruptRecord: see `embedlog.open`.
        """
        self._runtime = runtime
        self._directory = directory
        self._config = config
        self._on_disk = on_disk
        self._node_ids = node_ids
        self._cluster_id = cluster_id
        self._publish = publish
        self.log_manager: LogManager | None = None
        """The owner of the directory; None while the controller is stopped."""
        self._duties: tuple[Duty, ...] = ()
        self.controller: Controller | None = None
        """None while the controller is stopped."""
        self._start(check)

    def running(self) -> Controller:
        """Return the controller. Raises NotController while it is stopped."""
        if self.controller is None:
            raise errors.NotController("the controller does not run")
        return self.controller

    @property
    def is_held(self) -> bool:
        return self.log_manager is not None and self.log_manager.directory.is_held

    def start(self) -> None:
        """Replay the metadata log, and serve."""
        if self.log_manager is not None:
            raise IllegalState("the controller runs already")
        self._start(lambda controller: None)

    def _start(self, check: Callable[[Controller], None]) -> None:
        level = "fsync" if self._on_disk else "os"
        defaults = LogConfig(durability=level)
        manager = LogManager(self._runtime, self._directory, defaults, begins=False)
        try:
            if not manager.has(METADATA_PARTITION):
                manager.directory.begin()
            controller = Controller(
                self._runtime,
                metadata_log(self._runtime, manager, level),
                self._config,
                cluster_id=self._cluster_id,
                node_ids=self._node_ids,
            )
            check_cluster_id(self._directory, controller, "expected was", self._cluster_id)
            check(controller)
            manager.directory.begin()
            controller.compact()
        except BaseException:
            manager.close()
            raise
        self._cluster_id = controller.image.cluster_id
        controller.on_change = self._publish
        self.log_manager, self.controller = manager, controller
        self._duties = (controller.brokers.sessions, controller.partitions.leader_duties)
        for duty in self._duties:
            self._runtime.scheduler.add(duty)

    def stop(self) -> None:
        """Stop the controller; it decides nothing until `start`."""
        if self.controller is None:
            raise IllegalState("the controller does not run")
        self.close()

    def close(self) -> None:
        """Like `stop`, but a stopped controller is no error."""
        manager, self.log_manager, self.controller = self.log_manager, None, None
        for duty in self._duties:
            self._runtime.scheduler.remove(duty)
        self._duties = ()
        if manager is not None:
            manager.close()
