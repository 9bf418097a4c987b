"""All logs of one data directory: opening, creating, configuring, deleting, closing them.

A directory that was closed cleanly opens without reading any log; each log is loaded at its first
use. After an unclean stop every log is recovered at once.
"""

from __future__ import annotations

from embedlog import errors
from embedlog.errors import ClosedError
from embedlog.runtime.locks import Rank, ranked_rlock
from embedlog.storage import paths
from embedlog.storage.directory.leftovers import Leftovers
from embedlog.storage.directory.log_checkpoints import LogCheckpoints
from embedlog.storage.directory.log_opener import LogOpener
from embedlog.storage.directory.owned_directory import OwnedDirectory
from embedlog.storage.directory.partition_directories import mark_newer, why_foreign
from embedlog.storage.directory.pins import Pins
from embedlog.storage.directory.tasks import RETENTION_FIRST_MS, RETENTION_INTERVAL_MS, LogTasks
from embedlog.storage.events import events
from embedlog.storage.log.shutdown import close_log, unless_out_of_files
from embedlog.storage.log_config import LogConfig
from embedlog.storage.open_files import OPEN_FILES_MAX, OpenFiles

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from embedlog.common import TopicPartition
    from embedlog.runtime import Runtime
    from embedlog.storage.cleaner.settings import CleanerSettings
    from embedlog.storage.degradation import Degradation
    from embedlog.storage.log.log import Log


_LOOKED_AT_MAX = 250
"""The opening of a directory looks at the files of this many logs; `health` looks at all."""


class LogManager:
    """Owner of a data directory, and of every `Log` in it. Thread-safe.

    `tasks` is a duty for the scheduler: checkpoints, retention, flushes, compaction and expiry.
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
        cleaner_settings: CleanerSettings | None = None,
        is_replicated: bool = False,
        begins: bool = True,
    ) -> None:
        """Take the directory; make it if it is missing. `begins`: see `OwnedDirectory`.

        With `is_replicated` other brokers may have these logs as well. Then no leader epoch begins
        after an unclean stop, which may have lost records: the next leader begins one. Other
        processes read only up to the published offset, because later records may be uncommitted.

        Old segments are removed after `retention_first_ms`, then every `retention_interval_ms`.
        Compaction follows `cleaner_settings`, by default Kafka's.

        Raises:
            DirectoryLocked: another process has it open; the message names the process.
        """
        self._defaults = defaults if defaults is not None else LogConfig()
        self._configs: dict[str, LogConfig] = {}
        self._mutex = ranked_rlock(Rank.LOG_MANAGER)
        self._logs: dict[TopicPartition, Log] = {}
        self._closed = False
        self.directory = OwnedDirectory(
            runtime.files, directory, self._defaults.durability, begins=begins
        )
        self._unloaded = self.directory.found.copy()
        try:
            self.checkpoints = LogCheckpoints(self.directory, self._logs)
        except BaseException:
            self.directory.release()
            raise
        self.opener = LogOpener(
            runtime,
            self.directory,
            self.checkpoints,
            OpenFiles(runtime.files, open_files_max),
            is_replicated=is_replicated,
        )
        self.leftovers = Leftovers(self.directory, runtime.random)
        self.pins = Pins(self.directory, self._logs)
        _tell_opened(self.directory, self.opener)
        self.tasks = LogTasks(
            runtime,
            self.directory,
            self.logs,
            checkpoints=self.checkpoints,
            leftovers=self.leftovers,
            pins=self.pins,
            retention_first_ms=retention_first_ms,
            retention_interval_ms=retention_interval_ms,
            cleaner_settings=cleaner_settings,
        )

    def partitions(self) -> list[TopicPartition]:
        with self._mutex:
            return sorted([*self._logs, *self._unloaded])

    def has(self, topic_partition: TopicPartition) -> bool:
        with self._mutex:
            return topic_partition in self._logs or topic_partition in self._unloaded

    @property
    def log_count(self) -> int:
        return len(self._logs) + len(self._unloaded)

    def logs(self) -> list[Log]:
        return list(self._logs.values())

    def get(self, topic_partition: TopicPartition) -> Log | None:
        """Return the log of a partition, or None. The first call loads or recovers it."""
        log = self._logs.get(topic_partition)
        if log is not None:
            return log
        with self._mutex:
            if topic_partition in self._logs or topic_partition not in self._unloaded:
                return self._logs.get(topic_partition)
            path = paths.log_directory(self.directory.path, topic_partition)
            try:
                foreign = why_foreign(self.directory.files, path)
            except OSError as error:
                self.opener.note_unreachable(topic_partition, error)
                message = f"cannot open {topic_partition}: {error}"
                raise errors.KafkaStorageError(message) from error
            if foreign:
                events.warning("%s: it is left alone", foreign)
                self._unloaded.discard(topic_partition)
                return None
            log = self.opener.open(topic_partition, self._config(topic_partition))
            return self._loaded(topic_partition, log)

    def get_or_create(
        self,
        topic_partition: TopicPartition,
        config: LogConfig | None = None,
        *,
        topic_id: bytes | None = None,
    ) -> Log:
        """Return the log of a partition; create it if there is none.

        `config` is the new configuration of the whole topic, None to keep the present one.

        Raises:
            InconsistentTopicId: the log belongs to another topic of that name.
        """
        with self._mutex:
            if self._closed:
                raise ClosedError(f"the data directory {self.directory.path!r} is closed")
            if config is not None:
                self.configure(topic_partition[0], config)
            log = self.get(topic_partition)
            try:
                if log is None:
                    log = self.opener.create(topic_partition, self._config(topic_partition))
                    self._logs[topic_partition] = log
                    self.tasks.stir()
                if topic_id is not None:
                    self.opener.identify(log, topic_id)
            except OSError as error:
                message = f"cannot create {topic_partition}: {error}"
                raise errors.KafkaStorageError(message) from error
            return log

    def configure(self, topic: str, config: LogConfig | None) -> None:
        """Set the configuration of a topic's logs, present and future; None for a deleted topic."""
        with self._mutex:
            if config is None:
                self._configs.pop(topic, None)
                return
            former = self._configs.get(topic)
            self._configs[topic] = config
            if config.durability == "fsync" and former and former.durability != "fsync":
                # Sync the names of the topic's log directories, unsynced at a lower durability.
                self.directory.files.sync_directory(self.directory.path)
            if config.compact and not self.tasks.has_compacted:
                self.tasks.has_compacted = True
                self.tasks.stir()
            for topic_partition, log in self._logs.items():
                if topic_partition[0] == topic:
                    with log.lock:
                        log.configure(config)

    def delete(self, topic_partition: TopicPartition) -> None:
        """Remove a log and its files, if there are any. Views of its batches stay readable.

        Nothing is written before the files are gone, so a deletion frees space on a full disk.

        Raises:
            KafkaStorageError: the disk refuses. The log refuses writes, and can be deleted again.
        """
        with self._mutex:
            log = self._logs.pop(topic_partition, None)
            if log is None and topic_partition not in self._unloaded:
                return
            if log is not None:
                with log.lock:
                    # Readers of this log must not open the files of a new log of its name.
                    for segment in log.segments:
                        segment.file.is_gone = True
                    log.retire(ClosedError(f"{topic_partition} was deleted"))
            self._unloaded.add(topic_partition)
            try:
                self.leftovers.put_away(topic_partition)
            except OSError as error:
                message = f"cannot delete {topic_partition}: {error}"
                raise errors.KafkaStorageError(message) from error
            self._unloaded.discard(topic_partition)
            self.opener.found.pop(topic_partition, None)
            self.opener.unreachable.pop(topic_partition, None)
            self.checkpoints.forget(topic_partition)
            self.leftovers.remove()
            try:
                self.checkpoints.write_positions()
            except OSError as error:
                # Not raised: the checkpoints are written again before a log of this name is made.
                events.warning("the checkpoints still have %s: %s", topic_partition, error)
                self.tasks.stir()
        events.info("the log of %s was deleted", topic_partition)

    def hand_over(self, log: Log, other: LogManager, bring: Callable[[], None]) -> bool:
        """Give a log to another manager. `bring` puts its files into the other directory.

        `bring` is called with the log's locks held. If it raises, nothing has changed, or the log
        is poisoned. Appends wait until the files in this directory are gone, or a mark file
        tells that the log continues in the other one. Return whether the files here are gone for
        good. Requires: the lock that serialises uses of two managers.

        Raises:
            ClosedError: the log has left this manager, or one of the directories is closed.
        """
        topic_partition = log.topic_partition
        with self._mutex, other._mutex:
            if self._closed or other._closed or self._logs.get(topic_partition) is not log:
                raise ClosedError(f"{topic_partition} was closed or deleted")
            with log.lock, log.durability.lock:
                former_directory = log.directory
                other.checkpoints.forget(topic_partition)
                try:
                    other._logs[topic_partition] = log
                    bring()
                finally:
                    if log.directory == former_directory:
                        other._logs.pop(topic_partition, None)
                        other.checkpoints.forget(topic_partition)
                is_gone = False
                try:
                    is_gone = self.leave_behind(topic_partition)
                finally:
                    if not is_gone:
                        mark_newer(log)
            self.opener.found.pop(topic_partition, None)
            other.tasks.has_compacted = other.tasks.has_compacted or self.tasks.has_compacted
            for manager in (self, other):
                manager.tasks.stir()
        return is_gone

    def leave_behind(self, topic_partition: TopicPartition) -> bool:
        """Remove the former directory of a log that has moved; return whether that worked."""
        path = paths.log_directory(self.directory.path, topic_partition)
        with self._mutex:
            self._logs.pop(topic_partition, None)  # gone already when a call is repeated
            self.checkpoints.forget(topic_partition)
            try:
                if self.directory.files.stat(path) is not None:
                    self.leftovers.put_away(topic_partition)
                    self.directory.files.sync_directory(self.directory.path)
                self.checkpoints.write_positions()
            except OSError as error:
                events.error(
                    "%s has moved, but its former directory remains: %s", topic_partition, error
                )
                return False
        return True

    def salvage(self, topic_partition: TopicPartition) -> Log:
        """Remove the damage from a log. Every good batch stays; see `storage.recovery.salvage`.

        Raises:
            OSError: the disk refuses; the log is not loaded.
        """
        with self._mutex:
            log = self._logs.pop(topic_partition, None)
            if log is not None:
                close_log(log)
            self._unloaded.add(topic_partition)
            log = self.opener.salvage(topic_partition, self._config(topic_partition))
            return self._loaded(topic_partition, log)

    def note_addresses(self, addresses: Sequence[str]) -> None:
        with self._mutex:
            if not self._closed:
                try:
                    self.directory.note_addresses(addresses)
                except OSError:
                    return  # the addresses are only a hint: a full disk must not prevent listening

    def health(self) -> list[Degradation]:
        """Return the degradations, sorted by kind. Reads every log's directory."""
        from embedlog.storage.directory.health import degradations

        with self._mutex:
            self.opener.find_unreachable(self._unloaded)
        return degradations(self.directory, self.partitions(), self.logs(), self.opener, self.tasks)

    def close(self) -> None:
        """Close every log; mark the directory as clean if all logs were closed cleanly.

        The directory stays as it is if its changes have not begun.
        """
        if not self.directory.has_begun:
            self.abandon()
            return
        self.tasks.stop()
        with self._mutex:
            if self._closed:
                return
            if not self.directory.is_held:
                self._closed = True  # a forked child: the directory belongs to its parent
                return
            refusal = None if self.directory.clean else self._recover_all()
            self._closed = True
            try:
                self._close_logs(refusal)
                if not self.directory.is_volatile:
                    events.info("closed %s", self.directory.path)
            finally:
                self.directory.release()

    def abandon(self, *, loses_unsynced: bool = False) -> None:
        """Stop like a killed process: write nothing, and do not mark the directory as clean.

        With `loses_unsynced` stop like a machine whose power fails: cut each log to its synced end.

        Raises:
            KafkaStorageError: the disk refuses to cut a log.
            OSError: the disk refuses to record the loss of power.
        """
        self.tasks.stop()
        with self._mutex:
            self._closed = True
            try:
                if loses_unsynced and not self.directory.is_volatile:
                    self.directory.note_power_loss()
                for log in self._logs.values():
                    with log.lock:
                        if loses_unsynced and log.failure is None:
                            from embedlog.storage.replica.truncation import lose_unsynced

                            lose_unsynced(log)
                        log.retire(ClosedError("the broker was killed"))
            finally:
                self.directory.release()

    # Steps

    def _config(self, topic_partition: TopicPartition) -> LogConfig:
        return self._configs.get(topic_partition[0], self._defaults)

    def _loaded(self, topic_partition: TopicPartition, log: Log) -> Log:
        self._unloaded.discard(topic_partition)
        self._logs[topic_partition] = log
        return log

    def _recover_all(self) -> errors.KafkaError | OSError | None:
        """Open all logs that were not used since the unclean stop; return the first error.

        An unreachable log stays as it is, and keeps the directory unclean.
        """
        try:
            for topic_partition in list(self._unloaded):
                try:
                    self.get(topic_partition)
                except errors.KafkaStorageError:
                    if topic_partition not in self.opener.unreachable:
                        raise
            if not self.opener.unreachable:
                self.directory.end_recovery()
        except (errors.KafkaError, OSError) as error:
            return error
        return None

    def _close_logs(self, refusal: errors.KafkaError | OSError | None) -> None:
        """Close the logs, then raise the error, if any; `refusal` is an error from earlier."""
        is_clean = refusal is None and (self.directory.clean or not self.opener.unreachable)
        if refusal is not None:
            refusal = unless_out_of_files(refusal)
        for log in self._logs.values():
            try:
                with log.lock:
                    close_log(log)
            except errors.KafkaStorageError as error:
                is_clean = False
                refusal = unless_out_of_files(error) or refusal
            # Unclean if a log has failed: the next open must recover it, to find its rot again.
            is_clean = is_clean and log.failure is None
        if not self.directory.is_volatile:
            try:
                self.checkpoints.write_positions()
                self.checkpoints.write_high_watermarks()
                if is_clean:
                    levels = {log.config.durability for log in self._logs.values()}
                    self.directory.mark_clean(
                        is_synced=levels <= {"fsync"}, is_all_loaded=not self._unloaded
                    )
            except OSError as error:
                refusal = refusal or unless_out_of_files(error)
        for log in self._logs.values():
            log.retire(ClosedError("the data directory was closed"))
        if refusal is not None:
            raise refusal


def _tell_opened(directory: OwnedDirectory, opener: LogOpener) -> None:
    if not directory.is_volatile:
        events.info("opened %s: %d partitions", directory.path, len(directory.found))
    if not directory.clean:
        events.info("%s was not closed cleanly: its logs will be recovered", directory.path)
    opener.find_unreachable(sorted(directory.found)[:_LOOKED_AT_MAX])
