"""Open a controller over its metadata log."""

from __future__ import annotations

from embedlog.common import ONE_UUID, TopicPartition
from embedlog.controller.controller import Controller
from embedlog.controller.metadata_log import LOG_SETTINGS, METADATA_PARTITION, MetadataLog
from embedlog.errors import ConfigError
from embedlog.storage.data_directories import begin
from embedlog.storage.log_config import LogConfig

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from embedlog.config.broker_config import BrokerConfig
    from embedlog.runtime import Runtime
    from embedlog.storage.data_directories import DataDirectories
    from embedlog.storage.directory.log_manager import LogManager


def open_controller(
    runtime: Runtime,
    log_manager: DataDirectories,
    config: BrokerConfig,
    *,
    sync: bool,
    cluster_id: str | None,
    check: Callable[[Controller | None], None],
) -> Controller:
    """Return the controller of a single broker. Its metadata log lies among the broker's logs.

    `check` gets the controller, None for a new one, and refuses the directories with an error
    before anything in them has changed.
    """
    wall_ms = runtime.clock.wall_ms()
    if not log_manager.first.has(METADATA_PARTITION):
        check(None)
        begin(log_manager, wall_ms)
    # Metadata outlives the records of a topic: it gets "fsync" whatever the level of the topic.
    log = metadata_log(runtime, log_manager.first, "fsync" if sync else "memory")
    controller = Controller(runtime, log, config, cluster_id=cluster_id)
    check(controller)
    begin(log_manager, wall_ms)
    _remove_deleted(controller, log_manager)
    controller.compact()
    if not log_manager.was_clean:
        # Logs may have lost records. With a new epoch a consumer whose position is beyond the
        # end of a log gets an error, and not other records at its offset (KIP-320).
        controller.bump_leader_epochs(
            TopicPartition(topic.name, partition.partition)
            for topic in controller.image.topics_by_name.values()
            for partition in topic.partitions
        )
    return controller


def metadata_log(runtime: Runtime, log_manager: LogManager, level: str) -> MetadataLog:
    """Return the metadata log of the directory, created if missing, with durability `level`."""
    log = log_manager.get_or_create(
        METADATA_PARTITION, LogConfig(**LOG_SETTINGS, durability=level), topic_id=ONE_UUID
    )
    return MetadataLog(log, runtime.clock, sync=level == "fsync")


def check_cluster_id(
    directory: str, controller: Controller, source: str, expected: str | None
) -> None:
    """Raise ConfigError if `source` gave an id, `expected`, that is not the controller's."""
    found = controller.image.cluster_id
    if expected and expected != found:
        raise ConfigError(f"{directory} belongs to cluster {found}, but {source} {expected}")


def _remove_deleted(controller: Controller, log_manager: DataDirectories) -> None:
    """Delete the logs of deleted topics if a crash left some; keep other logs without metadata."""
    if not controller.removed_topic_ids:
        return
    known = {METADATA_PARTITION.topic, *controller.image.topics_by_name}
    for topic_partition in log_manager.partitions():
        if topic_partition.topic in known:
            continue
        log = log_manager.get(topic_partition)
        if log is not None and log.topic_id in controller.removed_topic_ids:
            log_manager.delete(topic_partition)
