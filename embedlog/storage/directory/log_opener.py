"""Making the `Log` objects of a data directory: open, salvage or create a log."""

from __future__ import annotations

from embedlog import errors
from embedlog.common import TopicPartition, uuid_to_text
from embedlog.errors import CorruptRecord
from embedlog.storage import paths
from embedlog.storage.directory.partition_directories import why_foreign
from embedlog.storage.events import events
from embedlog.storage.log.opening import Opening, create_log
from embedlog.storage.state_files import partition_metadata

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.runtime import Runtime
    from embedlog.storage.degradation import Degradation
    from embedlog.storage.directory.log_checkpoints import LogCheckpoints
    from embedlog.storage.directory.owned_directory import OwnedDirectory
    from embedlog.storage.log.log import Log
    from embedlog.storage.log_config import LogConfig
    from embedlog.storage.open_files import OpenFiles


class LogOpener:
    """Opens the logs of one data directory, one at a time."""

    def __init__(
        self,
        runtime: Runtime,
        directory: OwnedDirectory,
        checkpoints: LogCheckpoints,
        open_files: OpenFiles,
        *,
        is_replicated: bool = False,
    ) -> None:
        """With `is_replicated` other brokers may have these logs as well."""
        self._is_replicated = is_replicated
        self._runtime = runtime
        self._directory = directory
        self._checkpoints = checkpoints
        self.open_files = open_files
        self.recovered_count = 0
        """Number of logs that were recovered after an unclean stop."""
        self.cut_size = 0
        """Number of bytes that recoveries cut off these logs."""
        self.found: dict[TopicPartition, list[Degradation]] = {}
        """Degradations that the opening of logs found."""

    def open(
        self, topic_partition: TopicPartition, config: LogConfig, *, salvage: bool = False
    ) -> Log:
        """Open the log in a partition's directory, or recover it; see `recovery.open_log`."""
        from embedlog.storage.recovery.recovery import open_log

        opening = self._known(topic_partition, config)
        try:
            log = open_log(opening, self._checkpoints.write_positions, salvage=salvage)
        except OSError as error:
            message = f"cannot open {topic_partition}: {error}"
            raise errors.KafkaStorageError(message) from error
        log.topic_id = self._read_topic_id(log)
        if opening.is_recovered:
            self.recovered_count += 1
            self.cut_size += opening.cut_size
        if opening.degradations:
            self.found[topic_partition] = opening.degradations
        return log

    def salvage(self, topic_partition: TopicPartition, config: LogConfig) -> Log:
        """Remove the damage from a log and open it. Good batches stay; see `recovery.salvage`."""
        from embedlog.storage.recovery.salvage import SalvagePlan

        opening = self._known(topic_partition, config)
        plan = SalvagePlan(
            self._directory.files,
            opening.directory,
            gaps_below=opening.gaps_below,
            recovery_point=opening.recovery_point,
            clean=True,
        )
        if plan.is_needed:
            events.warning("%s loses offsets %s, as asked for", topic_partition, plan.lost)
            self._checkpoints.note_salvage(topic_partition, plan.end_offset)
            plan.apply()
        return self.open(topic_partition, config, salvage=True)

    def create(self, topic_partition: TopicPartition, config: LogConfig) -> Log:
        """Create a log in a directory of its own.

        Raises:
            KafkaStorageError: a file or directory of that name exists and is no log's.
        """
        opening = self._opening(topic_partition, config)
        self._checkpoints.begin(opening)
        files = self._directory.files
        foreign = why_foreign(files, opening.directory)
        if foreign:
            raise errors.KafkaStorageError(f"cannot create {topic_partition}: {foreign}")
        files.make_directory(opening.directory)
        if config.durability == "fsync":
            # Sync the name of the log's directory, even if the directory existed: an earlier
            # attempt may have made it and then failed.
            files.sync_directory(self._directory.path)
        return create_log(opening, self._checkpoints.write_positions)

    def identify(self, log: Log, topic_id: bytes) -> None:
        """Store the topic's id beside the log, the first time it is known.

        Raises:
            InconsistentTopicId: the log belongs to another topic of that name.
        """
        if log.topic_id == topic_id:
            return
        if log.topic_id is not None:
            raise errors.InconsistentTopicId(
                f"{log.topic_partition} has the topic id {uuid_to_text(log.topic_id)}, "
                f"not {uuid_to_text(topic_id)}"
            )
        if not self._directory.is_volatile:
            # The file's name is synced with the first segment's, before a record is acknowledged.
            path = f"{log.directory}/{paths.PARTITION_METADATA}"
            is_synced = log.config.durability == "fsync"
            partition_metadata.write(self._directory.files, path, topic_id, sync=is_synced)
        log.topic_id = topic_id

    def _opening(self, topic_partition: TopicPartition, config: LogConfig) -> Opening:
        return Opening(
            topic_partition,
            directory=paths.log_directory(self._directory.path, topic_partition),
            config=config,
            runtime=self._runtime,
            open_files=self.open_files,
            is_replicated=self._is_replicated,
        )

    def _known(self, topic_partition: TopicPartition, config: LogConfig) -> Opening:
        opening = self._opening(topic_partition, config)
        opening.clean = self._directory.clean
        opening.same_boot = self._directory.same_boot
        self._checkpoints.fill(opening)
        return opening

    def _read_topic_id(self, log: Log) -> bytes | None:
        """Return the id in partition.metadata, or None if it is missing or damaged.

        In that case `identify` writes it again.
        """
        path = f"{log.directory}/{paths.PARTITION_METADATA}"
        try:
            return partition_metadata.decode(self._directory.files.read(path), path)
        except FileNotFoundError:
            return None
        except CorruptRecord as error:
            events.warning("a damaged topic id will be written again: %s", error)
            return None
