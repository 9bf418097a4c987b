"""Making the `Log` objects of a data directory: open, salvage or create a log."""

from __future__ import annotations

from errno import ENOTDIR

from embedlog import errors
from embedlog.common import TopicPartition, uuid_to_text
from embedlog.errors import CorruptRecord
from embedlog.storage import paths
from embedlog.storage.directory.partition_directories import why_foreign, why_unreachable
from embedlog.storage.events import events
from embedlog.storage.log.opening import Opening, create_log
from embedlog.storage.log_health import HARMLESS_ERRORS
from embedlog.storage.state_files import partition_metadata

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

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
        self.unreachable: dict[TopicPartition, tuple[int, OSError]] = {}
        """Wall time and reason, for each log whose files cannot be opened."""
        self._found_by_look: set[TopicPartition] = set()

    def open(
        self, topic_partition: TopicPartition, config: LogConfig, *, salvage: bool = False
    ) -> Log:
        """Open the log in a partition's directory, or recover it; see `recovery.open_log`."""
        from embedlog.storage.recovery.recovery import open_log

        opening = self._known(topic_partition, config)
        try:
            log = open_log(opening, self._checkpoints.write_positions, salvage=salvage)
            log.topic_id = self._read_topic_id(log)
        except OSError as error:
            self.note_unreachable(topic_partition, error)
            message = f"cannot open {topic_partition}: {error}"
            raise errors.KafkaStorageError(message) from error
        self.unreachable.pop(topic_partition, None)
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
            self.note_unreachable(topic_partition, OSError(ENOTDIR, foreign))
            raise errors.KafkaStorageError(f"cannot create {topic_partition}: {foreign}")
        self.unreachable.pop(topic_partition, None)
        files.make_directory(opening.directory)
        if config.durability == "fsync":
            # Sync the name of the log's directory, even if the directory existed: an earlier
            # attempt may have made it and then failed.
            files.sync_directory(self._directory.path)
        return create_log(opening, self._checkpoints.write_positions)

    def note_unreachable(self, topic_partition: TopicPartition, error: OSError) -> None:
        """Remember that a log cannot be opened, unless for want of space or descriptors."""
        if error.errno in HARMLESS_ERRORS:
            return
        if topic_partition not in self.unreachable:
            events.error("%s cannot be served: %s", topic_partition, error)
        since_ms, _ = self.unreachable.get(topic_partition, (self._runtime.clock.wall_ms(), None))
        self.unreachable[topic_partition] = since_ms, error

    def find_unreachable(self, partitions: Iterable[TopicPartition]) -> None:
        """Look whether these logs, which are not loaded, can be opened.

        The error of an attempt to open one remains until an attempt succeeds.
        """
        for topic_partition in () if self._directory.is_volatile else partitions:
            path = paths.log_directory(self._directory.path, topic_partition)
            error = why_unreachable(self._directory.files, path)
            if error is not None:
                self.note_unreachable(topic_partition, error)
                self._found_by_look.add(topic_partition)
            elif topic_partition in self._found_by_look:
                self._found_by_look.discard(topic_partition)
                self.unreachable.pop(topic_partition, None)

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
