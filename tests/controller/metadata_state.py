"""Helpers of the controller's tests: open a controller, and compare images."""

from __future__ import annotations

from typing import Any

from embedlog.config import BrokerConfig
from embedlog.controller.controller import Controller
from embedlog.controller.metadata import CONFIG_ATTRIBUTES, MetadataImage, PartitionImage
from embedlog.controller.metadata_log import LOG_SETTINGS, METADATA_PARTITION, MetadataLog
from embedlog.runtime import Runtime
from embedlog.storage.directory.log_manager import LogManager
from embedlog.storage.log_config import LogConfig
from embedlog.testing.simulated_runtime import sim_runtime


class Opened:
    """A controller over a directory of a simulated disk."""

    def __init__(
        self,
        runtime: Runtime | None = None,
        config: dict[str, object] | None = None,
        *,
        node_ids: tuple[int, ...] = (),
        starts: bool = True,
    ) -> None:
        """Without `node_ids` the only broker is 1; else these brokers are started if missing."""
        self.runtime = runtime or sim_runtime()
        self.config = BrokerConfig(config)
        self.logs = LogManager(self.runtime, "data", LogConfig(durability="fsync"))
        self.log = self.logs.get_or_create(
            METADATA_PARTITION, LogConfig(**LOG_SETTINGS, durability="fsync")
        )
        self.metadata_log = MetadataLog(self.log, self.runtime.clock, sync=True)
        self.controller = Controller(
            self.runtime, self.metadata_log, self.config, node_ids=node_ids
        )
        self.node_ids = node_ids
        for node_id in node_ids if starts else ():
            if node_id not in self.controller.image.brokers:
                self.start(node_id)

    def partition(self, topic: str, number: int = 0) -> PartitionImage:
        """Return the image of an existing partition."""
        found = self.controller.image.partition(topic, number)
        assert found is not None
        return found

    def start(self, node_id: int, previous_epoch: int = -1) -> int:
        """Register a broker under a new incarnation and unfence it; return its epoch."""
        brokers = self.controller.brokers
        epoch = brokers.register(
            node_id,
            rack=None,
            incarnation=self.runtime.random.uuid(),
            previous_epoch=previous_epoch,
        )
        brokers.unfence(node_id, epoch)
        return epoch

    def epoch(self, node_id: int) -> int:
        return self.controller.image.brokers[node_id].epoch

    def reopen(self, *, starts: bool = True) -> Opened:
        """Close, and reopen the same directory."""
        self.logs.close()
        return Opened(self.runtime, node_ids=self.node_ids, starts=starts)


def plain(image: MetadataImage) -> dict[str, Any]:
    """Return everything that must survive a restart."""
    return {
        "cluster": image.cluster_id,
        "producer id": image.next_producer_id,
        "features": dict(image.feature_levels),
        "brokers": {node_id: vars(broker) for node_id, broker in image.brokers.items()},
        "configs": {
            kind: {name: dict(texts) for name, texts in image.configs(kind).items()}
            for kind in CONFIG_ATTRIBUTES
        },
        "topics": {
            name: (
                topic.topic_id,
                [
                    {name: getattr(partition, name) for name in partition.__slots__}
                    for partition in topic.partitions
                ],
            )
            for name, topic in image.topics_by_name.items()
        },
        "ids": {topic_id: topic.name for topic_id, topic in image.topics_by_id.items()},
    }
