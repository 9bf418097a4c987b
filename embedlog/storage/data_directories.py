"""All data directories of one broker (Kafka's log.dirs, JBOD), and through them all its logs.

Most brokers have one directory; each directory has a `LogManager`. The first directory holds the
metadata log and the coordinators' files. A log lies in one directory; a new log is made in the
directory with the fewest logs. A directory that fails, or that is missing when the broker is
opened, is offline: its logs are neither served nor created again in another directory.

The package `directory` handles a single data directory.
"""

from __future__ import annotations

from embedlog import errors
from embedlog.common import TopicPartition
from embedlog.errors import ConfigError, CorruptRecord
from embedlog.runtime.locks import Rank, ranked_lock, ranked_rlock
from embedlog.storage import paths
from embedlog.storage.events import events
from embedlog.storage.state_files import partition_metadata
from embedlog.topic_names import METADATA_TOPIC

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
    from typing import Protocol

    from embedlog.storage.directory.log_manager import LogManager
    from embedlog.storage.directory.tasks import LogTasks
    from embedlog.storage.log.log import Log
    from embedlog.storage.log_config import LogConfig
    from embedlog.storage.relocation.relocations import Relocations

    class Keeper(Protocol):
        """Tells the controller where logs lie."""

        def placed(self, topic_partition: TopicPartition, directory_id: bytes) -> None:
            """Note the directory of a partition's log, for the next `report`."""

        def report(self) -> None:
            """Send the noted directories to the controller."""

        def close(self) -> None:
            """Stop reporting."""


PREFERRED_COUNT_MAX = 10_000
"""At most this many preferences are kept, the newest: clients may name topics that do not exist."""

_METADATA = TopicPartition(METADATA_TOPIC, 0)


class OfflineDirectory:
    """A directory that cannot be used. `id` is b"" and `since_ms` -1 if unknown.

    `logs` are the partitions that are known to lie there.
    """

    def __init__(
        self,
        path: str,
        *,
        id: bytes,
        reason: str,
        since_ms: int,
        logs: Collection[TopicPartition] = (),
    ) -> None:
        self.path = path
        self.id = id
        self.reason = reason
        self.since_ms = since_ms
        self.logs = set(logs)


class PreferredDirectories:
    """Directories for logs that do not exist yet, from AlterReplicaLogDirs. Thread-safe."""

    def __init__(self) -> None:
        self._lock = ranked_lock(Rank.PREFERRED)
        self._paths: dict[TopicPartition, str] = {}

    def note(self, topic_partition: TopicPartition, path: str) -> None:
        """Prefer the directory at `path` when the partition's log is created."""
        with self._lock:
            self._paths.pop(topic_partition, None)
            self._paths[topic_partition] = path
            if len(self._paths) > PREFERRED_COUNT_MAX:
                del self._paths[next(iter(self._paths))]

    def take(self, topic_partition: TopicPartition) -> str | None:
        """Return the preferred directory and forget it; None without one."""
        with self._lock:
            return self._paths.pop(topic_partition, None)


class DataDirectories:
    """The data directories of one broker. Thread-safe."""

    def __init__(
        self, managers: Sequence[LogManager], offline: Sequence[OfflineDirectory] = ()
    ) -> None:
        """`managers` own the working directories; the first manager owns the first directory."""
        self._lock = ranked_rlock(Rank.DATA_DIRECTORIES)
        self.managers = tuple(managers)
        """The managers of the working directories; a new tuple replaces it when one fails."""
        self.first = managers[0]
        self.offline = tuple(offline)
        self.has_one = len(managers) == 1 and not offline
        """True if the broker was opened with only one data directory."""
        self.keeper: Keeper | None = None
        """Tells the controller where logs lie; None if the controller need not know."""
        self.cordoned: Callable[[], Collection[str]] = tuple
        """Returns the setting cordoned.log.dirs: directories that get no new logs (KIP-1066)."""
        self.relocations: Relocations | None = None
        """Moves logs between the directories; None if there is only one directory."""
        self.preferred: PreferredDirectories | None = None
        """The preferred directories of new logs; None if there is only one directory."""
        self.tasks: LogTasks | DirectoryTasks = self.first.tasks
        """The background work of all directories."""
        if len(managers) > 1:
            self.tasks = DirectoryTasks(self)
            self.preferred = PreferredDirectories()

    # The directories

    @property
    def ids(self) -> tuple[bytes, ...]:
        return tuple(manager.directory.id for manager in self.managers)

    @property
    def was_clean(self) -> bool:
        """Whether each directory was closed cleanly before, or is new."""
        return all(manager.directory.clean for manager in self.managers)

    def end_recovery(self) -> None:
        """Record that the recovery of each directory is complete, if no log is unreachable."""
        for manager in self.managers:
            if not manager.opener.unreachable:  # else the next opening recovers the log
                manager.directory.end_recovery()

    def is_cordoned(self, path: str) -> bool:
        """Whether the directory at `path` gets no new logs."""
        named = self.cordoned()
        return path in named or "*" in named

    def is_offline(self, topic_partition: TopicPartition) -> bool:
        """Whether the partition's log is known to lie in an offline or failed directory."""
        if self.has_one:
            return False
        holder = self.holder(topic_partition)
        if holder is None:
            return any(topic_partition in gone.logs for gone in self.offline)
        return _has_failed(holder)

    def report(self) -> None:
        """Report the directories of new logs to the controller.

        Requires: the caller holds no lock that ranks after the keeper's.
        """
        if self.keeper is not None:
            self.keeper.report()

    def take_offline(self, path: str, reason: str, since_ms: int) -> LogManager | None:
        """Stop using a failed directory; return its manager, or None if it is offline already.

        Its logs refuse writes from now on, and `get` finds none of them. The first directory is
        never taken offline: for it, return None.
        """
        with self._lock:
            failed = next((each for each in self.managers if each.directory.path == path), None)
            if failed is None or failed is self.first:
                return None
            gone = OfflineDirectory(
                path,
                id=failed.directory.id,
                reason=reason,
                since_ms=since_ms,
                logs=failed.partitions(),
            )
            # Set `offline` before `managers`: no concurrent call may find a log in neither.
            self.offline = (*self.offline, gone)
            self.managers = tuple(each for each in self.managers if each is not failed)
        events.error("%s is offline with %d logs: %s", path, len(gone.logs), reason)
        failed.abandon()
        return failed

    # Logs

    def holder(self, topic_partition: TopicPartition) -> LogManager | None:
        """Return the manager whose directory holds a partition's log, or None."""
        for manager in self.managers:
            if manager.has(topic_partition):
                return manager
        return None

    def partitions(self) -> list[TopicPartition]:
        """Return every partition that has a log in a working directory, loaded or not."""
        if self.has_one:
            return self.first.partitions()
        return sorted(each for manager in self.managers for each in manager.partitions())

    def logs(self) -> list[Log]:
        return [log for manager in self.managers for log in manager.logs()]

    def get(self, topic_partition: TopicPartition) -> Log | None:
        if self.has_one:
            return self.first.get(topic_partition)
        with self._lock:  # so that no `hand_over` moves the log meanwhile
            manager = self.holder(topic_partition)
            return None if manager is None else manager.get(topic_partition)

    def get_or_create(
        self,
        topic_partition: TopicPartition,
        config: LogConfig | None = None,
        *,
        topic_id: bytes | None = None,
        directory_id: bytes | None = None,
        is_new: bool = True,
    ) -> Log:
        """Return the log of a partition; create it if there is none.

        `config` and `topic_id` are as for `LogManager.get_or_create`. `directory_id` is the
        directory where the log is known to lie, None if unknown. A log that is not `is_new` exists
        somewhere: if no working directory has it and one is offline, it must be in the offline one.

        Raises:
            InconsistentTopicId: the log belongs to another topic of that name.
            KafkaStorageError: the disk refuses, or the log lies in a directory that is offline.
        """
        if self.has_one:
            return self.first.get_or_create(topic_partition, config, topic_id=topic_id)
        with self._lock:
            if config is not None:
                self.configure(topic_partition[0], config)
            manager = self.holder(topic_partition)
            if manager is not None and directory_id not in (None, *self.ids):
                # The log found here is older than the known one, or a copy of an unfinished move.
                raise _lies_offline(topic_partition, directory_id, self.offline)
            if manager is None:
                is_known = directory_id in (None, *self.ids) and not self.is_offline(
                    topic_partition
                )
                if not is_known or (self.offline and not is_new):
                    raise _lies_offline(topic_partition, directory_id, self.offline)
                manager = _for_new(self, topic_partition, directory_id)
            log = manager.get_or_create(topic_partition, topic_id=topic_id)
            if self.keeper is not None and manager.directory.id != directory_id:
                self.keeper.placed(topic_partition, manager.directory.id)
            return log

    def configure(self, topic: str, config: LogConfig | None) -> None:
        for manager in self.managers:
            manager.configure(topic, config)

    def delete(self, topic_partition: TopicPartition) -> None:
        """Remove a log and its files: see `LogManager.delete`."""
        with self._lock:  # so that no `hand_over` moves the log meanwhile
            for manager in self.managers:
                manager.delete(topic_partition)
        for gone in self.offline:
            gone.logs.discard(topic_partition)

    def hand_over(
        self, log: Log, former: LogManager, manager: LogManager, bring: Callable[[], None]
    ) -> bool:
        """Give a log to the manager of another directory, as `LogManager.hand_over` does.

        The caller must then call `report`.
        """
        with self._lock:
            is_gone = former.hand_over(log, manager, bring)
            if self.keeper is not None:
                self.keeper.placed(log.topic_partition, manager.directory.id)
        return is_gone

    # All of them

    def note_addresses(self, addresses: Sequence[str]) -> None:
        """Store the broker's addresses, for processes that find a directory locked."""
        for manager in self.managers:
            manager.note_addresses(addresses)

    def close(self) -> None:
        """Close every log; mark each directory as clean if all its logs were closed cleanly."""
        self._on_each(lambda manager: manager.close())

    def abandon(self, *, loses_unsynced: bool = False) -> None:
        """Stop like a killed process; see `LogManager.abandon`."""
        self._on_each(lambda manager: manager.abandon(loses_unsynced=loses_unsynced))

    def _on_each(self, work: Callable[[LogManager], None]) -> None:
        """Call `work` for each manager, even after an error; then raise the first error.

        If the disk of a manager has failed, its directory is offline: its error is only logged.
        """
        refusal: Exception | None = None
        for manager in self.managers:
            try:
                work(manager)
            except (errors.KafkaError, OSError) as error:
                if not _has_failed(manager):
                    refusal = refusal or error
                else:
                    events.error("%s is offline: %s", manager.directory.path, error)
        if refusal is not None:
            raise refusal


def begin(directories: DataDirectories, wall_ms: int) -> None:
    """Make the first changes in each directory; see `OwnedDirectory.begin`.

    Raises:
        OSError: the disk of the first directory refuses. If another disk refuses, its directory is
            offline.
    """
    for manager in directories.managers:
        try:
            manager.directory.begin()
        except OSError as error:
            if manager is directories.first:
                raise
            directories.take_offline(manager.directory.path, str(error), wall_ms)


class DirectoryTasks:
    """The background work of several directories, with the methods of `LogTasks`.

    The scheduler runs each directory's `LogTasks` by itself.
    """

    def __init__(self, directories: DataDirectories) -> None:
        self._directories = directories

    @property
    def is_resting(self) -> bool:
        """True if some work will not notice a change until `stir` is called."""
        return any(manager.tasks.is_resting for manager in self._directories.managers)

    def stir(self) -> None:
        for manager in self._directories.managers:
            if manager.tasks.is_resting:
                manager.tasks.stir()

    def reconfigured(self) -> None:
        for manager in self._directories.managers:
            manager.tasks.reconfigured()

    def finish_now(self) -> Iterator[int]:
        for manager in self._directories.managers:
            yield from manager.tasks.finish_now()

    def finish_before_close(self) -> None:
        for manager in self._directories.managers:
            manager.tasks.finish_before_close()


def _for_new(
    directories: DataDirectories, topic_partition: TopicPartition, directory_id: bytes | None
) -> LogManager:
    """Return the manager that creates a log: of its known directory, else of its preferred one.

    If neither works, it is that of the directory with the fewest logs; cordoned ones come last.
    """
    preferred, managers = directories.preferred, directories.managers
    path = None if preferred is None else preferred.take(topic_partition)
    for manager in managers:
        if manager.directory.id == directory_id:
            return manager
    for manager in managers:
        if manager.directory.path == path:
            return manager
    open_ones = [each for each in managers if not directories.is_cordoned(each.directory.path)]
    return min(open_ones or managers, key=_log_count)


def refuse_duplicates(managers: Sequence[LogManager], topic_ids: Mapping[str, bytes]) -> None:
    """Refuse two logs of one partition, unless `relocation.leftovers` or `remove_strays` removes
    one of them. Nothing changes. `topic_ids` are the ids of the existing topics.

    Raises:
        ConfigError: a partition has a log in two of the directories.
    """
    from embedlog.storage.relocation.leftovers import is_settled

    for topic_partition, several in _held_twice(managers).items():
        topic_id = topic_ids.get(topic_partition.topic)
        rest = [each for each in several if not _is_stray(each, topic_partition, topic_id)]
        if len(rest) > 1 and not is_settled(topic_partition, several):
            both = ", ".join(
                paths.log_directory(each.directory.path, topic_partition) for each in rest[:2]
            )
            raise ConfigError(f"Duplicate log directories found: {both}!")


def remove_strays(managers: Sequence[LogManager], topic_ids: Mapping[str, bytes]) -> None:
    """Remove the logs of deleted topics from partitions that have logs in several directories.

    That happens if a topic is deleted and created again while one of its directories is missing. If
    all logs are of deleted topics, the first stays.
    """
    for topic_partition, several in _held_twice(managers).items():
        topic_id = topic_ids.get(topic_partition.topic)
        strays = [each for each in several if _is_stray(each, topic_partition, topic_id)]
        kept = [each for each in several if each not in strays] or [several[0]]
        for each in strays:
            if each not in kept:
                each.delete(topic_partition)


def _held_twice(managers: Sequence[LogManager]) -> dict[TopicPartition, list[LogManager]]:
    holders: dict[TopicPartition, list[LogManager]] = {}
    for manager in managers:
        for topic_partition in () if _has_failed(manager) else manager.partitions():
            holders.setdefault(topic_partition, []).append(manager)
    return {each: found for each, found in holders.items() if len(found) > 1}


def _is_stray(manager: LogManager, topic_partition: TopicPartition, topic_id: bytes | None) -> bool:
    """Whether a log is known to belong to another topic than `topic_id`. The log is not opened."""
    directory = paths.log_directory(manager.directory.path, topic_partition)
    path = f"{directory}/{paths.PARTITION_METADATA}"
    try:
        return partition_metadata.decode(manager.directory.files.read(path), path) != topic_id
    except (CorruptRecord, FileNotFoundError):
        return False


def _has_failed(manager: LogManager) -> bool:
    from embedlog.storage.watched_files import WatchedFiles

    files = manager.directory.files
    return isinstance(files, WatchedFiles) and files.failure is not None


def _lies_offline(
    topic_partition: TopicPartition, directory_id: bytes | None, offline: Sequence[OfflineDirectory]
) -> errors.KafkaError:
    found = [each for each in offline if topic_partition in each.logs or directory_id == each.id]
    shown = ", ".join(f"{each.path}: {each.reason}" for each in found or offline)
    return errors.KafkaStorageError(
        f"{topic_partition} lies in a log directory that is offline ({shown})"
    )


def _log_count(manager: LogManager) -> int:
    """Return the number of a directory's logs, as Kafka counts: without the metadata log."""
    return manager.log_count - manager.has(_METADATA)
