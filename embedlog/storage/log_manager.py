"""All logs of one data directory: opening, creating, deleting, checkpoints, retention, flushing.

A directory that was closed cleanly opens without reading any log; each log is loaded when it is
first asked for. After an unclean stop every log is recovered at once.
"""

from __future__ import annotations

from errno import EDQUOT, ENOSPC

from embedlog import errors
from embedlog.common import uuid_to_text
from embedlog.errors import ClosedError, CorruptRecord
from embedlog.runtime.files import make_directory, remove_tree, write_fully
from embedlog.runtime.locks import Rank, ranked_rlock
from embedlog.storage import paths
from embedlog.storage.events import events
from embedlog.storage.log_config import LogConfig
from embedlog.storage.log_directories import find_logs, why_foreign
from embedlog.storage.open_files import OPEN_FILES_MAX, OpenFiles
from embedlog.storage.opening import Opening, create_log
from embedlog.storage.shutdown import close_log, unless_out_of_files
from embedlog.storage.state_files import partition_metadata
from embedlog.storage.state_files.archived_offsets import read_archived
from embedlog.storage.state_files.checkpoints import Checkpoints
from embedlog.storage.state_files.clean_shutdown import (
    end_recovery,
    holds_marker,
    take_marker,
    was_written_in_this_boot,
    write_marker,
)
from embedlog.storage.state_files.retention_pins import read_pins
from embedlog.storage.tasks import RETENTION_FIRST_MS, RETENTION_INTERVAL_MS, Tasks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from embedlog.common import TopicPartition
    from embedlog.runtime import Runtime
    from embedlog.storage.cleaner.settings import Settings
    from embedlog.storage.degradation import Degradation
    from embedlog.storage.log import Log


class LogManager:
    """Owner of a data directory, and of every `Log` in it. Thread-safe.

    It is a duty: the scheduler calls `run_once` for checkpoints, retention, flushes and expiry.
    While nothing changes it rests; whoever lets something change calls `stir` when `is_resting`.
    """

    def __init__(
        self,
        runtime: Runtime,
        directory: str,
        defaults: LogConfig | None = None,
        *,
        open_files_max: int = OPEN_FILES_MAX,
        retention_first_ms: int = RETENTION_FIRST_MS,
        retention_interval_ms: int = RETENTION_INTERVAL_MS,
        cleaner_settings: Settings | None = None,
    ) -> None:
        """Take the directory, making it when it is missing.

        Old segments are looked for after `retention_first_ms`, then every interval. Compaction
        follows `cleaner.settings`, Kafka's defaults if there are none.

        Raises:
            DirectoryLocked: somebody else has it open; the message names the process.
        """
        self._runtime = runtime
        self._files = files = runtime.files
        self.directory = directory
        self.defaults = defaults if defaults is not None else LogConfig()
        self._volatile = self.defaults.durability == "memory"
        self._durable = self.defaults.durability == "fsync"
        self._mutex = ranked_rlock(Rank.LOG_MANAGER)
        self._checkpoints_lock = ranked_rlock(Rank.CHECKPOINTS)
        self._open_files = OpenFiles(files, open_files_max)
        self._logs: dict[TopicPartition, Log] = {}
        self._leftovers: list[str] = []
        """Directories of deleted logs that are still there."""
        self._configs: dict[str, LogConfig] = {}
        make_directory(files, directory, sync=not self._volatile)
        self._same_boot = was_written_in_this_boot(files, directory)
        self._directory_lock = files.lock(f"{directory}/{paths.LOCK}")
        self._closed = False
        self.has_compacted = False
        """Whether any log may be one of a compacted topic."""
        try:
            self._read_directory()
        except BaseException:
            self._directory_lock.close()
            raise
        self.recovered_count = 0
        self.cut_size = 0
        """Logs that were recovered after an unclean shutdown, and bytes that were cut off them."""
        self._pins: dict[TopicPartition, int] = {}
        self.found: dict[TopicPartition, list[Degradation]] = {}
        """What people should know of how logs were opened."""
        if not self._volatile:
            events.info("opened %s: %d partitions", directory, len(self._unloaded))
        if not self.clean:
            events.info("%s was not closed cleanly: its logs will be recovered", directory)
        self._tasks = Tasks(
            self,
            runtime,
            retention_first_ms=retention_first_ms,
            retention_interval_ms=retention_interval_ms,
            cleaner_settings=cleaner_settings,
        )

    # Logs

    def partitions(self) -> list[TopicPartition]:
        """Every partition that has a log here, loaded or not."""
        with self._mutex:
            return sorted([*self._logs, *self._unloaded])

    def logs(self) -> list[Log]:
        """The logs that are loaded."""
        return list(self._logs.values())

    def get(self, topic_partition: TopicPartition) -> Log | None:
        """The log of a partition, loaded (and recovered) if need be; None when there is none."""
        log = self._logs.get(topic_partition)
        if log is not None:
            return log
        with self._mutex:
            if topic_partition in self._logs or topic_partition not in self._unloaded:
                return self._logs.get(topic_partition)
            foreign = why_foreign(self._files, paths.log_directory(self.directory, topic_partition))
            if foreign:
                events.warning("%s: it is left alone", foreign)
                self._unloaded.discard(topic_partition)
                return None
            return self._load(topic_partition)

    def get_or_create(
        self,
        topic_partition: TopicPartition,
        config: LogConfig | None = None,
        *,
        topic_id: bytes | None = None,
    ) -> Log:
        """The log of a partition, made if there is none. `config` holds for the whole topic.

        Raises:
            InconsistentTopicId: there is one, of another topic of that name.
            KafkaStorageError: the disk refuses.
        """
        with self._mutex:
            self._check_open()
            if config is not None:
                self.configure(topic_partition[0], config)
            log = self.get(topic_partition)
            try:
                if log is None:
                    log = self._make(topic_partition)
                self._identify(log, topic_id)
            except OSError as error:
                message = f"cannot create {topic_partition}: {error}"
                raise errors.KafkaStorageError(message) from error
            return log

    def configure(self, topic: str, config: LogConfig) -> None:
        """Set the configuration of a topic's logs, present and future."""
        with self._mutex:
            former = self._configs.get(topic)
            self._configs[topic] = config
            if config.durability == "fsync" and former and former.durability != "fsync":
                # The names of its logs' directories may not have been synced.
                self._files.sync_directory(self.directory)
            if config.compact and not self.has_compacted:
                self.has_compacted = True
                self.stir()
            for topic_partition, log in self._logs.items():
                if topic_partition[0] == topic:
                    with log.lock:
                        log.configure(config)

    def delete(self, topic_partition: TopicPartition) -> None:
        """Remove a log and its files; one that is not there is fine. Views stay readable.

        Nothing is written before the files are gone: it frees space on a full disk.

        Raises:
            KafkaStorageError: the disk refuses. The log refuses writes, and can be deleted again.
        """
        with self._mutex:
            log = self._logs.pop(topic_partition, None)
            if log is None and topic_partition not in self._unloaded:
                return
            if log is not None:
                with log.lock:
                    # A reader that comes later must not open the files of a log made again here.
                    for segment in log.segments:
                        segment.file.is_gone = True
                    log.retire(ClosedError(f"{topic_partition} was deleted"))
            self._unloaded.add(topic_partition)
            doomed = paths.deleted_log_name(topic_partition, self._runtime.random.uuid())
            path = f"{self.directory}/{doomed}"
            directory = paths.log_directory(self.directory, topic_partition)
            try:
                try:
                    self._files.rename(directory, path)
                except OSError as error:
                    if error.errno not in (ENOSPC, EDQUOT):
                        raise
                    remove_tree(self._files, directory)  # no room for another name
            except OSError as error:
                message = f"cannot delete {topic_partition}: {error}"
                raise errors.KafkaStorageError(message) from error
            self._unloaded.discard(topic_partition)
            self.found.pop(topic_partition, None)
            with self._checkpoints_lock:
                self._checkpoints.forget(topic_partition)
            self._leftovers.append(path)
            self.remove_leftovers()
            try:
                self.checkpoint()
            except OSError as error:
                # A log that is made under this name writes them first.
                events.warning("the checkpoints still have %s: %s", topic_partition, error)
                self.stir()
        events.info("the log of %s was deleted", topic_partition)

    def salvage(self, topic_partition: TopicPartition) -> Log:
        """Take damage out of a log: every good batch stays; see `storage.recovery.salvage`.

        Raises:
            OSError: the disk refuses; the log is not loaded.
        """
        from embedlog.storage.recovery.salvage import SalvagePlan

        with self._mutex:
            log = self._logs.pop(topic_partition, None)
            if log is not None:
                close_log(log)
            self._unloaded.add(topic_partition)
            opening = self._opening(topic_partition, is_new=False)
            plan = SalvagePlan(
                self._files,
                opening.directory,
                gaps_below=opening.gaps_below,
                recovery_point=opening.recovery_point,
                clean=True,
            )
            if plan.is_needed:
                events.warning("%s loses offsets %s, as asked for", topic_partition, plan.lost)
                with self._checkpoints_lock:
                    self._checkpoints.note_salvage(topic_partition, plan.end_offset)
                plan.apply()
            return self._load(topic_partition, salvage=True)

    def note_addresses(self, addresses: Sequence[str]) -> None:
        """Let who finds the directory locked know where its owner listens."""
        with self._mutex:
            if not self._closed:
                try:
                    self._directory_lock.note_addresses(addresses)
                except OSError:
                    return  # a hint: a full disk shall not keep anybody from listening

    # Background work

    def run_once(self, now_ms: int) -> int | None:
        """Do the background work that is due; return milliseconds until the next."""
        return None if self._closed else self._tasks.run_due(now_ms)

    @property
    def is_resting(self) -> bool:
        """Must the work that follows changes be asked for, with `stir`?"""
        return self._tasks.is_resting

    def stir(self) -> None:
        """Something may have changed: look after it in time. Callable with any lock held."""
        self._tasks.stir()
        self._runtime.scheduler.notify(self)

    def reconfigured(self) -> None:
        """The broker's settings have changed. Callable with any lock held."""
        self._tasks.reconfigured()
        self._runtime.scheduler.notify(self)

    def finish_now(self) -> Iterator[int]:
        """Do all background work that there is, whatever its time; yield bytes freed.

        Requires: no duty runs during a step; see `Scheduler.exclusively`.
        """
        return iter(()) if self._closed else self._tasks.finish_now()

    def finish_before_close(self) -> None:
        """Remove what retention would, as this process may not live long enough to come to it.

        Requires: as `finish_now`.
        """
        if self._directory_lock.is_held and not self._volatile and not self._closed:
            self._tasks.close()

    def health(self) -> list[Degradation]:
        """What is degraded, sorted by kind. Looks into every log's directory."""
        from embedlog.storage.health import degradations

        return degradations(self, self._files, self._tasks)

    @property
    def retention_paused(self) -> bool:
        """The wall clock has jumped: nothing is removed for a while, see `ClockGuard`."""
        return self._runtime.clock_guard.is_paused

    @property
    def uncleanable(self) -> dict[TopicPartition, str]:
        """Logs that compaction has failed on and leaves alone, and why."""
        cleaner = self._tasks.cleaner
        if cleaner is None:
            return {}
        return {log.topic_partition: why for log, why in cleaner.uncleanable.items()}

    def pins(self, wall_ms: int) -> dict[TopicPartition, int]:
        """What retention leaves alone, for readers and archives: see `retention_pins` and
        `archived_offsets`.

        While the disk refuses to tell, what it told last: retention goes on, as it gives room.
        """
        if self._volatile:
            return self._pins
        waiting = [log.topic_partition for log in self.logs() if log.config.retention_archived]
        try:
            found = read_pins(self._files, self.directory, wall_ms)
            archived = read_archived(self._files, self.directory) if waiting else {}
        except OSError as error:
            events.warning("the pins of readers cannot be read, those known hold: %s", error)
            return {**dict.fromkeys(waiting, 0), **self._pins}
        for key in waiting:
            offset = archived.get(key, 0)
            found[key] = min(offset, found.get(key, offset))
        self._pins = found
        return found

    def remove_leftovers(self) -> None:
        """Remove the directories of deleted logs; what cannot be removed yet is tried again."""
        for path in self._leftovers.copy():
            try:
                remove_tree(self._files, path)
                self._leftovers.remove(path)
            except (OSError, ValueError) as error:  # ValueError: another thread was faster
                events.debug("%s cannot be removed yet: %s", path, error)

    def remove_files(self, useless: list[str]) -> None:
        """Remove files that no log needs any more. Views of them stay readable.

        One that cannot be removed is left to the next open; one that is gone is fine.
        """
        for path in useless:
            try:
                self._files.remove(path)
            except OSError as error:
                events.debug("%s cannot be removed yet: %s", path, error)

    def end_recovery(self) -> None:
        """Every log that anybody uses was loaded since the directory was opened."""
        if not self._volatile:
            end_recovery(self._files, self.directory)

    def checkpoint(self) -> None:
        """Store the synced offset and the start offset of every log."""
        self.checkpoint_positions()

    def checkpoint_positions(self) -> bool:
        """Store the synced offset and the start offset of every log; False when nothing is new."""
        if self._volatile:
            return False
        # Not the mutex: this is called under a partition lock, which comes after it.
        with self._checkpoints_lock:
            return self._checkpoints.write_positions(self._logs.copy())

    def checkpoint_high_watermarks(self) -> bool:
        """Store the high watermark of every log; False when nothing is new."""
        if self._volatile:
            return False
        with self._checkpoints_lock:
            return self._checkpoints.write_high_watermarks(self._logs.copy())

    @property
    def has_directory(self) -> bool:
        """Is the directory this manager's, and nobody else's? Not once it is closed."""
        return self._directory_lock.is_held

    def close(self) -> None:
        """Close every log, and leave the directory marked as clean if all of them are."""
        self._tasks.stop()
        with self._mutex:
            if self._closed:
                return
            if not self._directory_lock.is_held:
                self._closed = True  # a forked child: everything here is its parent's
                return
            refusal = None if self.clean else self._recover_all()
            self._closed = True
            try:
                self._close_logs(refusal)
                if not self._volatile:
                    events.info("closed %s", self.directory)
            finally:
                self._directory_lock.close()

    # Steps

    def _read_directory(self) -> None:
        files, directory = self._files, self.directory
        self._was_synced = holds_marker(files, directory, in_any_boot=True)
        self.clean = take_marker(files, directory, sync=self._durable)
        """Whether the directory was closed cleanly before, or is new."""
        self._unloaded = find_logs(files, directory)
        self.clean = self.clean or not self._unloaded
        self._checkpoints = Checkpoints(files, directory, self._unloaded, sync=self._durable)

    def _recover_all(self) -> errors.KafkaError | OSError | None:
        """Open the logs that nobody has asked for since an unclean stop; why one cannot be."""
        try:
            for topic_partition in list(self._unloaded):
                self.get(topic_partition)
            self.end_recovery()
        except (errors.KafkaError, OSError) as error:
            return error
        return None

    def _check_open(self) -> None:
        if self._closed:
            raise ClosedError(f"the data directory {self.directory!r} is closed")

    def _opening(self, topic_partition: TopicPartition, *, is_new: bool) -> Opening:
        opening = Opening(
            topic_partition,
            directory=paths.log_directory(self.directory, topic_partition),
            config=self._configs.get(topic_partition[0], self.defaults),
            runtime=self._runtime,
            open_files=self._open_files,
        )
        if not is_new:
            opening.clean = self.clean
            opening.same_boot = self._same_boot
            self._checkpoints.fill(opening)
        return opening

    def _load(self, topic_partition: TopicPartition, *, salvage: bool = False) -> Log:
        from embedlog.storage.recovery.recovery import open_log

        opening = self._opening(topic_partition, is_new=False)
        try:
            log = open_log(opening, self.checkpoint, salvage=salvage)
        except OSError as error:
            message = f"cannot open {topic_partition}: {error}"
            raise errors.KafkaStorageError(message) from error
        log.topic_id = self._read_topic_id(log)
        self._unloaded.discard(topic_partition)
        self._logs[topic_partition] = log
        if opening.found.is_recovered:
            self.recovered_count += 1
            self.cut_size += opening.found.cut_size
        if opening.found.degradations:
            self.found[topic_partition] = opening.found.degradations
        return log

    def _make(self, topic_partition: TopicPartition) -> Log:
        if self._checkpoints.forget(topic_partition):
            self.checkpoint()  # the deletion of its predecessor was cut short
        opening = self._opening(topic_partition, is_new=True)
        if opening.config.compact and not self._volatile:
            with self._checkpoints_lock:
                self._checkpoints.write_gaps()
        foreign = why_foreign(self._files, opening.directory)
        if foreign:
            raise errors.KafkaStorageError(f"cannot create {topic_partition}: {foreign}")
        self._files.make_directory(opening.directory)
        if opening.config.durability == "fsync":
            # By the topic's level: it may promise more than others here. Also if the directory is
            # there: an earlier attempt may have made it and then failed.
            self._files.sync_directory(self.directory)
        log = create_log(opening, self.checkpoint)
        self._logs[topic_partition] = log
        self.stir()
        return log

    def _close_logs(self, refusal: errors.KafkaError | OSError | None) -> None:
        """Close the logs, and raise what went wrong; `refusal` is what did before."""
        is_clean = refusal is None
        if refusal is not None:
            refusal = unless_out_of_files(refusal)
        for log in self._logs.values():
            try:
                with log.lock:
                    close_log(log)
            except errors.KafkaStorageError as error:
                is_clean = False
                refusal = unless_out_of_files(error) or refusal
            # Rot must be found again by the next opener, so it must not skip the recovery.
            is_clean = is_clean and log.failure is None
        if not self._volatile:
            try:
                self.checkpoint_positions()
                self.checkpoint_high_watermarks()
                if is_clean:
                    write_marker(self._files, self.directory, synced=self._is_synced())
            except OSError as error:
                refusal = refusal or unless_out_of_files(error)
        for log in self._logs.values():
            log.retire(ClosedError("the data directory was closed"))
        if refusal is not None:
            raise refusal

    def _is_synced(self) -> bool:
        """Does everything survive a loss of power, also what nobody has asked for yet?"""
        levels = {log.config.durability for log in self._logs.values()}
        return levels <= {"fsync"} and self._durable and (self._was_synced or not self._unloaded)

    def _identify(self, log: Log, topic_id: bytes | None) -> None:
        """Note the topic's id beside the log, the first time it is known."""
        if topic_id is None or log.topic_id == topic_id:
            return
        if log.topic_id is not None:
            raise errors.InconsistentTopicId(
                f"{log.topic_partition} has the topic id {uuid_to_text(log.topic_id)}, "
                f"not {uuid_to_text(topic_id)}"
            )
        if not self._volatile:
            file = self._files.open(f"{log.directory}/{paths.PARTITION_METADATA}", create=True)
            file.truncate(0)
            write_fully(file.write, [partition_metadata.encode(topic_id)], 0)
            if log.config.durability == "fsync":
                # Its name becomes durable with the first segment's, before anything is promised.
                file.sync()
            file.close()
        log.topic_id = topic_id

    def _read_topic_id(self, log: Log) -> bytes | None:
        """The id in partition.metadata; None when it is missing or damaged: it is written anew."""
        path = f"{log.directory}/{paths.PARTITION_METADATA}"
        try:
            return partition_metadata.decode(self._files.read(path), path)
        except FileNotFoundError:
            return None
        except CorruptRecord as error:
            events.warning("a damaged topic id is written anew: %s", error)
            return None
