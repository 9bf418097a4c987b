"""`DirectoryOpener`: lock, check and open the log directories of one broker.

The first directory has the metadata log of a single broker. It also lists the further
directories (`storage.state_files.log_dirs`), so that a missing directory is noticed.
"""

from __future__ import annotations

from contextlib import suppress

from embedlog.common import TopicPartition, uuid_to_text
from embedlog.errors import ConfigError, KafkaError
from embedlog.runtime import Runtime
from embedlog.storage.data_directories import (
    DataDirectories,
    OfflineDirectory,
    refuse_duplicates,
    remove_strays,
)
from embedlog.storage.directory import meta_properties
from embedlog.storage.directory.log_manager import LogManager
from embedlog.storage.directory.preparation import after_committers, look, prepare
from embedlog.storage.events import events
from embedlog.storage.log_config import LogConfig
from embedlog.storage.open_files import OPEN_FILES_MAX
from embedlog.storage.paths import LOG_DIRS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from embedlog.broker.directory_keeper import DirectoryKeeper
    from embedlog.config.broker_config import BrokerConfig
    from embedlog.controller.metadata import MetadataImage
    from embedlog.storage.directory.meta_properties import MetaProperties


class DirectoryOpener:
    """Opens the log directories of one broker, with their common settings."""

    def __init__(
        self,
        runtime: Runtime,
        config: BrokerConfig,
        *,
        durability: str,
        on_disk: bool,
        is_replicated: bool,
    ) -> None:
        """`on_disk`: the directories lie in the file system, and other processes see them."""
        self.runtime = runtime
        self.config = config
        self._durability = durability
        self._on_disk = on_disk
        self._is_replicated = is_replicated
        self.keeper: DirectoryKeeper | None = None
        """Watches the directories, if there are several."""
        self._others: dict[str, MetaProperties] = {}
        """`meta.properties` of each further directory, by path."""
        self._left_out: set[bytes] = set()
        """Ids of directories that the broker had at its last start and has not found now."""

    def open(
        self,
        first: str,
        log_dirs: Sequence[str],
        *,
        waits_for_committer: bool,
        cluster_id: str | None = None,
    ) -> DataDirectories:
        """Lock and open all directories. `waits_for_committer`: see `RunningBroker`.

        Nothing in an existing directory changes before `DataDirectories.begin`. `cluster_id` is the
        expected one.

        Raises:
            DirectoryLocked, ConfigError, CorruptRecord: see `embedlog.open`.
        """
        files, count = self.runtime.files, 1 + len(log_dirs)
        cordoned = self.config.cordoned_log_dirs
        if cordoned:
            from embedlog.config.cordons import check_cordoned

            check_cordoned(cordoned, (first, *log_dirs))
        if self._on_disk:
            look(files, first, self.config.node_id, cluster_id)
            for path in log_dirs:
                with suppress(OSError):  # `_with_others` takes a failed disk for offline
                    look(files, path, self.config.node_id)
        self._prepare(first)

        runtime = self.runtime
        if self._is_replicated and log_dirs:
            runtime = self._watched(first)

        def take() -> LogManager:
            return self._take(runtime, first, count)

        managers = [after_committers(self.runtime, first, take) if waits_for_committer else take()]
        try:
            if not log_dirs and files.stat(f"{first}/{LOG_DIRS}") is None:
                return DataDirectories(managers)
            from embedlog.storage.state_files import log_dirs as notes

            whole = notes.read_first(files, first)
            if whole is not None:
                raise ConfigError(
                    f"{first} is a further log directory of the broker in {whole}: open that, with "
                    f"log_dirs=[{first!r}]"
                )
            return self._with_others(managers, log_dirs, notes.read_others(files, first))
        except BaseException:
            for manager in managers:
                with suppress(KafkaError, OSError):  # the caller gets the error that ended `open`
                    manager.close()
            raise

    def _prepare(self, directory: str) -> None:
        if self._on_disk:
            prepare(self.runtime.files, directory, self.config.embedlog_data_dir_mode)

    def _take(self, runtime: Runtime, directory: str, count: int) -> LogManager:
        """Lock a directory and return its log manager. `count`: number of directories."""
        config = self.config
        return LogManager(
            runtime,
            directory,
            LogConfig(durability=self._durability),
            open_files_max=max(1, OPEN_FILES_MAX // count),
            retention_first_ms=config.log_initial_task_delay_ms,
            retention_interval_ms=config.log_retention_check_interval_ms,
            cleaner_settings=config,
            is_replicated=self._is_replicated,
            begins=False,
        )

    def _with_others(
        self, managers: list[LogManager], log_dirs: Sequence[str], known: dict[bytes, str]
    ) -> DataDirectories:
        """Open the further directories. A missing directory of `known` (id -> path) is offline."""
        from embedlog.broker.directory_keeper import DirectoryKeeper

        if self.keeper is None:
            self.keeper = DirectoryKeeper(self.runtime)
        offline = []
        for path in log_dirs:
            try:
                managers.append(self._other(managers[0].directory.path, path, 1 + len(log_dirs)))
            except OSError as error:
                id = next((id for id, place in known.items() if place == path), b"")
                offline.append(self._offline(path, id, f"it cannot be opened: {error}"))
        ids = {manager.directory.id for manager in managers[1:]}
        if len(ids) < len(managers) - 1:
            raise ConfigError(
                f"of {', '.join(log_dirs)} two have one directory.id: one is a copy of another"
            )
        found = ids | {each.id for each in offline}
        for id, path in known.items():
            if id not in found:
                where = "another directory is there" if path in log_dirs else "not in log.dirs"
                offline.append(self._offline(path, id, f"it was {path}: {where} now"))
                self._left_out.add(id)
        directories = DataDirectories(managers, offline)
        directories.keeper = self.keeper
        return directories

    def _other(self, first: str, path: str, count: int) -> LogManager:
        from embedlog.storage.state_files.log_dirs import read_first, read_others

        watched = self._watched(path)
        self._prepare(path)
        manager = self._take(watched, path, count)
        try:
            whole = read_first(watched.files, path)
            if whole is None and (self._has_metadata(manager) or read_others(watched.files, path)):
                raise ConfigError(
                    f"{path} is the first log directory of a broker, and cannot be a further one "
                    f"of that in {first}"
                )
            properties = meta_properties.read(watched, path, self.config.node_id)
        except OSError:
            manager.abandon()
            raise
        except BaseException:
            manager.close()
            raise
        manager.directory.id = properties.directory_id
        self._others[path] = properties
        return manager

    def _watched(self, path: str) -> Runtime:
        """Return a runtime whose files report a failure of the whole directory to the keeper."""
        from embedlog.broker.directory_keeper import DirectoryKeeper
        from embedlog.storage.watched_files import WatchedFiles

        if self.keeper is None:
            self.keeper = DirectoryKeeper(self.runtime)
        files = WatchedFiles(self.runtime.files, path, self.keeper.note_failure)
        return self.runtime.over(files)

    @staticmethod
    def _has_metadata(manager: LogManager) -> bool:
        from embedlog.controller.metadata_log import METADATA_PARTITION

        return manager.has(METADATA_PARTITION)

    def _offline(self, path: str, id: bytes, reason: str) -> OfflineDirectory:
        events.error("%s is offline: %s", path, reason)
        now_ms = self.runtime.clock.wall_ms()
        return OfflineDirectory(path, id=id, reason=reason, since_ms=now_ms)

    # Called after the metadata log was read

    def check(self, directories: DataDirectories, image: MetadataImage | None) -> None:
        """Refuse directories that do not fit together. `image` is None for a new metadata log.

        Raises:
            ConfigError: a directory belongs to another cluster, or two directories have one log.
        """
        if self.keeper is None:
            return
        cluster_id = None if image is None else image.cluster_id
        for manager in directories.managers[1:]:
            path = manager.directory.path
            known = self._others[path].cluster_id
            if known and cluster_id and known != cluster_id:
                raise ConfigError(f"{path} belongs to cluster {known}, not to {cluster_id}")
        ids = {} if image is None else image.topics_by_name
        topic_ids = {name: topic.topic_id for name, topic in ids.items()}
        refuse_duplicates(directories.managers, topic_ids)

    def identify(self, directories: DataDirectories, image: MetadataImage) -> None:
        """Write the cluster id into each directory, and the list of directories into the first.

        A missing directory stays in the list while replicas are assigned to it. Requires: `check`
        has accepted the directories.
        """
        if self.keeper is None:
            return
        from embedlog.storage.relocation.leftovers import settle

        def directory_of(topic_partition: TopicPartition) -> bytes | None:
            state = image.partition(*topic_partition)
            return None if state is None else state.directories.get(self.config.node_id)

        settle(directories.managers, directory_of)
        topic_ids = {name: topic.topic_id for name, topic in image.topics_by_name.items()}
        remove_strays(directories.managers, topic_ids)
        cluster_id, assigned = image.cluster_id, image.directories_of(self.config.node_id)
        from embedlog.storage.state_files import log_dirs as notes

        runtime, sync = self.runtime, self._on_disk
        first, *others = directories.managers
        for manager in others:
            path = manager.directory.path
            properties = self._others[path]
            try:
                if not properties.is_whole:
                    properties.cluster_id = cluster_id
                    node_id = self.config.node_id
                    meta_properties.write(runtime, path, node_id, properties, sync=sync)
                notes.write_first(runtime.files, path, first.directory.path, sync=sync)
            except OSError as error:
                directories.take_offline(path, str(error), runtime.clock.wall_ms())
        kept = {each.directory.id: each.directory.path for each in directories.managers[1:]}
        for gone in directories.offline:
            if gone.id in assigned or gone.logs:
                kept[gone.id] = gone.path
            elif gone.id:
                events.warning(
                    "%s (%s) is forgotten: no replica lies there", gone.path, uuid_to_text(gone.id)
                )
        # A forgotten directory is not reported as offline, unless log.dirs names it and it cannot
        # be opened.
        forgotten = self._left_out.difference(kept)
        directories.offline = tuple(
            each for each in directories.offline if each.id not in forgotten
        )
        notes.write_others(runtime.files, first.directory.path, kept, sync=sync)
