"""What the parts of the controller share: image, log and lock, and how a change happens."""

from __future__ import annotations

from embedlog.controller.metadata import MetadataDelta, MetadataImage
from embedlog.controller.replay import ImageBuilder, broker_record
from embedlog.runtime.locks import Rank, ranked_rlock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from embedlog.config import BrokerConfig
    from embedlog.controller.metadata import BrokerImage
    from embedlog.controller.metadata_log import MetadataLog
    from embedlog.runtime import Clock


class ControllerState:
    """The present image, and the only way to another one. Requires: the lock, but for reading."""

    def __init__(
        self, metadata_log: MetadataLog, config: BrokerConfig, image: MetadataImage, clock: Clock
    ) -> None:
        self.clock = clock
        self.log = metadata_log
        self.config = config
        self.image = image
        self.on_change: Callable[[MetadataDelta], None] = _ignore
        self.lock = ranked_rlock(Rank.CONTROLLER)

    @property
    def next_offset(self) -> int:
        """The offset of the record that is written next."""
        return self.log.end_offset

    def write(self, records: Sequence[Any]) -> None:
        """Put the records of one change into the log, then into the image."""
        builder = ImageBuilder(self.image)
        for record in records:
            builder.apply(record)
        self.image = builder.build(self.log.append(records))

    def replace_only_broker(self, broker: BrokerImage) -> None:
        """Put other facts of the only broker into the image: no log tells of it."""
        builder = ImageBuilder(self.image)
        builder.apply(broker_record(broker))
        self.image = builder.build(self.image.end_offset)

    def publish(self, **what: Any) -> None:
        """Tell of what was written, in the words of `MetadataDelta`."""
        self.on_change(MetadataDelta(self.image, **what))

    def change(self, records: Sequence[Any], **what: Any) -> None:
        """Write and publish."""
        self.write(records)
        self.publish(**what)

    def apply_broker_configs(self) -> None:
        """Let the settings of the image be in force here."""
        configs = self.image.broker_configs
        self.config.set_dynamic(configs.get("", {}), configs.get(str(self.config.node_id), {}))


def _ignore(_delta: MetadataDelta) -> None:
    """No broker is connected yet."""
