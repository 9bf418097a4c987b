"""What the controller's tests share: opening one, and an image as comparable data."""

from __future__ import annotations

from typing import Any

from embedlog.config import BrokerConfig
from embedlog.controller.controller import Controller
from embedlog.controller.metadata import CONFIG_ATTRIBUTES, MetadataImage
from embedlog.controller.metadata_log import LOG_SETTINGS, METADATA_PARTITION, MetadataLog
from embedlog.runtime import Runtime
from embedlog.storage.log_config import LogConfig
from embedlog.storage.log_manager import LogManager
from embedlog.testing.sim_runtime import sim_runtime


class Opened:
    """A controller over a directory of a simulated disk."""

    def __init__(
        self,
        runtime: Runtime | None = None,
        config: dict[str, object] | None = None,
        *,
        node_ids: tuple[int, ...] = (1,),
    ) -> None:
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

    def reopen(self) -> Opened:
        """Close, and open the same directory again."""
        self.logs.close()
        return Opened(self.runtime)


def plain(image: MetadataImage) -> dict[str, Any]:
    """Everything that must survive a restart."""
    return {
        "cluster": image.cluster_id,
        "producer id": image.next_producer_id,
        "features": dict(image.feature_levels),
        "configs": {
            kind: {name: dict(texts) for name, texts in image.configs(kind).items()}
            for kind in CONFIG_ATTRIBUTES
        },
        "topics": {
            name: (
                topic.topic_id,
                [
                    (p.partition, p.leader, p.leader_epoch, p.partition_epoch, p.replicas, p.isr)
                    for p in topic.partitions
                ],
            )
            for name, topic in image.topics_by_name.items()
        },
        "ids": {topic_id: topic.name for topic_id, topic in image.topics_by_id.items()},
    }
