"""What coordinators see of their broker; they never import it."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from embedlog.config import BrokerConfig
    from embedlog.controller.controller import Controller
    from embedlog.controller.metadata import MetadataImage
    from embedlog.replication.replica_manager import ReplicaManager
    from embedlog.runtime import Runtime
    from embedlog.storage.log_manager import LogManager


class CoordinatorHost:
    """One broker, as the coordinators' own protocols describe it."""

    __slots__ = ("_controller", "_log_manager", "config", "replica_manager", "runtime")

    def __init__(
        self,
        runtime: Runtime,
        config: BrokerConfig,
        replica_manager: ReplicaManager,
        controller: Controller,
        log_manager: LogManager,
    ) -> None:
        self.runtime = runtime
        self.config = config
        self.replica_manager = replica_manager
        self._controller = controller
        self._log_manager = log_manager

    def metadata(self) -> MetadataImage:
        """The present state of the cluster."""
        return self._controller.image

    def partitions_with_log(self, topic: str) -> Iterable[int]:
        """The partitions of an existing topic that have a log here, opened or not."""
        image = self._controller.image.topics_by_name.get(topic)
        count = 0 if image is None else len(image.partitions)
        found = self._log_manager.partitions()
        return [index for name, index in found if name == topic and index < count]
