"""The state that the parts of the controller share, and the steps of a change."""

from __future__ import annotations

from embedlog.controller.metadata import BrokerImage, MetadataDelta, MetadataImage
from embedlog.controller.replay import ImageBuilder, broker_record
from embedlog.runtime.locks import Rank, ranked_rlock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from embedlog.config import BrokerConfig
    from embedlog.controller.metadata_log import MetadataLog
    from embedlog.runtime import Clock


class ControllerState:
    """The present image, log and lock. Requires: the lock, except for reading."""

    def __init__(
        self, metadata_log: MetadataLog, config: BrokerConfig, image: MetadataImage, clock: Clock
    ) -> None:
        self.clock = clock
        self.log = metadata_log
        self.config = config
        self.image = image
        self.on_change: Callable[[MetadataDelta], None] = lambda _delta: None
        self.lock = ranked_rlock(Rank.CONTROLLER)

    @property
    def next_offset(self) -> int:
        return self.log.end_offset

    def write(self, records: Sequence[Any]) -> None:
        """Write the records of one change to the log, then to the image."""
        builder = ImageBuilder(self.image)
        for record in records:
            builder.apply(record)
        self.image = builder.build(self.log.append(records))

    def replace_only_broker(self, broker: BrokerImage) -> None:
        """Replace the image of a cluster's only broker, which no record of the log contains."""
        builder = ImageBuilder(self.image)
        builder.apply(broker_record(broker))
        self.image = builder.build(self.image.end_offset)

    def publish(self, **what: Any) -> None:
        """Notify the broker of a written change; `what` are fields of `MetadataDelta`."""
        self.on_change(MetadataDelta(self.image, **what))

    def change(self, records: Sequence[Any], **what: Any) -> None:
        self.write(records)
        self.publish(**what)

    def apply_broker_configs(self) -> None:
        configs = self.image.broker_configs
        self.config.set_dynamic(configs.get("", {}), configs.get(str(self.config.node_id), {}))
