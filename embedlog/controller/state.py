"""The state that the parts of the controller share, and the steps of a change."""

from __future__ import annotations

from contextlib import suppress

from embedlog.controller.metadata import BrokerImage, MetadataDelta, MetadataImage
from embedlog.controller.replay import ImageBuilder, broker_record
from embedlog.errors import KafkaStorageError
from embedlog.runtime.locks import Rank, ranked_rlock
from embedlog.runtime.outer_call import ANYWHERE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from embedlog.common import TopicPartition
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

    def write(self, records: Sequence[Any], then: Callable[[], None]) -> None:
        """Write the records of one change to the log, then to the image; then call `then`, which
        publishes the change.

        If Ctrl-C comes when the log has the records, the change is completed before the exception
        goes on. Otherwise the broker would never hear of it, and the next opening would apply it
        before all that has happened since. Therefore `then` may be called twice.
        """
        builder = ImageBuilder(self.image)
        for record in records:
            builder.apply(record)
        start = self.log.end_offset
        try:
            self.image = builder.build(self.log.append(records))
            then()
        except BaseException as error:
            if _comes_anywhere(error) and self.log.end_offset > start:
                with suppress(KafkaStorageError):  # the log takes no more writes
                    end = self.log.commit()
                    if self.image.end_offset <= start:
                        self.image = builder.build(end)
                    then()
            raise

    def replace_only_broker(
        self, broker: BrokerImage, records: Sequence[Any], then: Callable[[], None]
    ) -> None:
        """Write as `write` does, and replace the image of a cluster's only broker, which no record
        of the log contains.
        """

        def replace() -> None:
            builder = ImageBuilder(self.image)
            builder.apply(broker_record(broker))
            self.image = builder.build(self.image.end_offset)
            then()

        if records:
            self.write(records, replace)
            return
        try:
            replace()
        except BaseException as error:
            if _comes_anywhere(error):
                replace()
            raise

    def publish(self, **what: Any) -> None:
        """Notify the broker of a written change; `what` are fields of `MetadataDelta`."""
        self.on_change(MetadataDelta(self.image, **what))

    def publish_broker_configs(self, partitions_changed: Sequence[TopicPartition] = ()) -> None:
        """Apply the settings of brokers that were written, then notify the broker."""
        self.apply_broker_configs()
        self.publish(broker_configs_changed=True, partitions_changed=partitions_changed)

    def change(self, records: Sequence[Any], **what: Any) -> None:
        self.write(records, lambda: self.publish(**what))

    def apply_broker_configs(self) -> None:
        configs = self.image.broker_configs
        self.config.set_dynamic(configs.get("", {}), configs.get(str(self.config.node_id), {}))


def _comes_anywhere(error: BaseException) -> bool:
    """Return whether an exception may come at any call, such as KeyboardInterrupt."""
    return type(error) in ANYWHERE or not isinstance(error, Exception)
