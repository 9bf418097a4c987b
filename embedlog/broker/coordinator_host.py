"""What coordinators see of their broker; they never import it."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from embedlog.config import BrokerConfig
    from embedlog.controller.metadata import MetadataImage
    from embedlog.replication.replica_manager import ReplicaManager
    from embedlog.runtime import Runtime
    from embedlog.storage.data_directories import DataDirectories


class CoordinatorHost:
    """One broker, as the coordinators' own protocols describe it."""

    __slots__ = ("_log_manager", "config", "metadata", "replica_manager", "runtime")

    def __init__(
        self,
        runtime: Runtime,
        config: BrokerConfig,
        replica_manager: ReplicaManager,
        log_manager: DataDirectories,
        metadata: Callable[[], MetadataImage],
    ) -> None:
        self.runtime = runtime
        self.config = config
        self.replica_manager = replica_manager
        self._log_manager = log_manager
        self.metadata = metadata
        """The present state of the cluster."""

    def partitions_with_log(self, topic: str) -> Iterable[int]:
        """The partitions of an existing topic that this broker leads, and that have a log here,
        opened or not."""
        image = self.metadata().topics_by_name.get(topic)
        if image is None:
            return ()
        here = {index for name, index in self._log_manager.partitions() if name == topic}
        node_id = self.replica_manager.node_id
        return [
            each.partition
            for each in image.partitions
            if each.leader == node_id and each.partition in here
        ]
