"""The duty for a broker with several data directories, or with cordoned directories.

    a log is made or moved      report the log's directory to the controller
    a disk fails                take its directory and replicas offline and report them to the
                                controller, so that other brokers lead
    a move was interrupted      begin the move again
    directories are cordoned    report them to the controller, which places no replica on a broker
                                whose directories are all cordoned

In a cluster of several brokers, a broker stops if its first directory fails, or if it cannot report
a failed directory to the controller for log.dir.failure.timeout.ms.

The only broker of a cluster reports a log's directory in the call that makes the log: its records
may be acknowledged only when the controller has stored their directory. One broker of several
reports it soon after, as in Kafka.
"""

from __future__ import annotations

from embedlog import errors
from embedlog.common import TopicPartition, deque
from embedlog.logger import Logger

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from embedlog.broker.peers import Peers
    from embedlog.config import BrokerConfig
    from embedlog.controller.controller import Controller
    from embedlog.controller.metadata import MetadataImage
    from embedlog.replication.replica_manager import ReplicaManager
    from embedlog.runtime import Runtime
    from embedlog.runtime.pending import Pending
    from embedlog.storage.data_directories import DataDirectories
    from embedlog.storage.directory.log_manager import LogManager

_log = Logger("broker")

MOVE_RATE = "replica.alter.log.dirs.io.max.bytes.per.second"
NO_EPOCH = -1
"""The broker epoch of the only broker of a cluster, which does not register with the controller."""
_RETRY_MS = 50
_REFUSED_MS = 1_000
"""Delay after the disk has refused a write to the metadata log."""


def move_rate(config: BrokerConfig) -> int | None:
    """Return the limit of moves between directories in bytes a second, or None if it is not set."""
    for texts, _ in config.sources():
        if MOVE_RATE in texts:
            return int(texts[MOVE_RATE])
    return None


class DirectoryKeeper:
    """Keeps the directories of one broker. Every method may be called from any thread."""

    def __init__(self, runtime: Runtime) -> None:
        """Make a keeper. It only collects early failures of disks until the call of `begin`."""
        self._runtime = runtime
        self._is_open = False
        self._failed: deque[tuple[str, OSError]] = deque()
        self._leaving: LogManager | None = None
        """The manager of the failed directory that is being taken offline."""
        self._places: dict[TopicPartition, bytes] = {}
        """Partition -> id of its log's directory, still to be reported to the controller."""
        self._cut_short: dict[TopicPartition, str] = {}
        """Partition -> target directory of a move that an earlier process did not finish."""
        self._asked: Pending[None] | None = None
        """The answer to the last report to the controller, complete or not."""
        self._told: object = None
        """The `_State.key` of the last report that the controller has stored."""
        self._retry_ms = 0
        self._untold: dict[str, tuple[int, OSError]] = {}
        """Path of a failed directory -> (time, error), still to be reported; the oldest first."""

    def begin(
        self,
        image: MetadataImage,
        *,
        config: BrokerConfig,
        controller: Controller,
        log_manager: DataDirectories,
        peers: Peers | None,
        replica_manager: ReplicaManager,
    ) -> None:
        """Begin to look after the directories of a broker."""
        self._config = config
        self._controller = controller
        self._log_manager = log_manager
        self._peers = peers
        self._replica_manager = replica_manager
        self._is_open = True
        for owner in () if log_manager.has_one else log_manager.managers:
            for topic_partition in owner.partitions():
                state = image.partition(*topic_partition)
                if (
                    state is not None
                    and state.directories.get(config.node_id) != owner.directory.id
                ):
                    self._places[topic_partition] = owner.directory.id
        if len(log_manager.managers) > 1:
            from embedlog.storage.relocation.relocations import Relocations

            relocations = Relocations(self._runtime, log_manager, lambda: move_rate(config))
            log_manager.relocations = relocations
            for topic_partition, owner in relocations.take_cut_short().items():
                self._cut_short[topic_partition] = owner.directory.path
        self._runtime.scheduler.add(self)
        self.report()

    def close(self) -> None:
        self._runtime.scheduler.remove(self)
        if self._is_open and self._log_manager.relocations is not None:
            self._log_manager.relocations.stop()
        self._is_open = False

    def note_failure(self, path: str, error: OSError) -> None:
        """Let the duty handle a directory whose disk has failed. Callable with any lock held."""
        self._failed.append((path, error))
        self._runtime.scheduler.notify(self)

    def placed(self, topic_partition: TopicPartition, directory_id: bytes) -> None:
        """Note the directory of a log for the next `report`. Callable with any lock held."""
        self._places[topic_partition] = directory_id

    def report(self) -> None:
        """Report changes to the controller: now on the only broker, soon on one of several.

        Requires: no lock whose rank comes after the rank of the controller's lock.
        """
        if not self._is_open:
            return
        if self._peers is None:
            self._tell()
        else:
            self._runtime.scheduler.notify(self)

    def run_once(self, now_ms: int) -> int | None:
        """Take failed directories offline and report changes to the controller."""
        if not self._is_open:
            return None
        has_failed = bool(self._failed)
        while self._failed:
            path, error = self._failed[0]
            if path == self._log_manager.first.directory.path:
                self._give_up(path, error)
                del self._failed[0]
                return None
            self._take_offline(path, error)
            self._untold.setdefault(path, (now_ms, error))
            del self._failed[0]
        if self._is_too_late(now_ms):
            return None
        if self._cut_short:
            self._begin_anew()
        if self._retry_ms > now_ms:
            return self._retry_ms - now_ms
        if self._peers is not None:
            return self._ask()
        if has_failed or self._retry_ms:
            self._tell()
        return max(0, self._retry_ms - now_ms) if self._retry_ms else None

    def _take_offline(self, path: str, error: OSError) -> None:
        if self._leaving is None:  # otherwise Ctrl-C ended an earlier call half-way
            managers = self._log_manager.managers
            self._leaving = next((each for each in managers if each.directory.path == path), None)
        failed = self._leaving
        if failed is None:
            return
        self._log_manager.take_offline(path, str(error), self._runtime.clock.wall_ms())
        self._runtime.scheduler.remove(failed.tasks)
        for topic_partition in failed.partitions():
            self._replica_manager.retire(topic_partition, errors.KafkaStorageError)
        self._leaving = None

    def _is_too_late(self, now_ms: int) -> bool:
        """If a failed directory could not be reported in time, end the broker and return True.

        Without the report the controller may still name this broker as the leader of lost replicas.
        """
        if not self._untold or self._peers is None:
            return False
        path, (since_ms, error) = next(iter(self._untold.items()))
        if now_ms - since_ms < self._config.log_dir_failure_timeout_ms:
            return False
        self._give_up(path, error)
        return True

    def _give_up(self, path: str, error: OSError) -> None:
        """End the broker, so that other brokers take over.

        As in Kafka, a broker ends if its first directory fails, or if it cannot report a failed
        directory to the controller.
        """
        assert self._peers is not None, path
        _log.error(
            "broker %d stops because of its directory %s: %s", self._config.node_id, path, error
        )
        self._peers.give_up()

    def _begin_anew(self) -> None:
        """Restart moves that an earlier process did not finish, once their replicas are hosted."""
        if self._peers is not None and self._replica_manager.replication is None:
            return  # `Broker.join` calls `report`, which notifies this duty again
        relocations = self._log_manager.relocations
        while self._cut_short and relocations is not None:
            topic_partition, path = self._cut_short.popitem()
            try:
                self._replica_manager.partition(*topic_partition)
                relocations.start(topic_partition, path)
            except errors.KafkaError as error:
                _log.info("the move of %s ends: %s", topic_partition, error)

    # Reports to the controller

    def _tell(self) -> None:
        """On the only broker, report to the controller; try again later if the disk refuses.

        Do not raise, because a thread that only makes a log cannot handle the error.
        """
        places = self._places.copy()
        try:
            self._state().tell(self._controller, NO_EPOCH, places)
        except errors.KafkaError as error:
            if not self._retry_ms:
                _log.warning("the directories of logs cannot be recorded yet: %s", error)
            self._retry_ms = self._runtime.clock.monotonic_ms() + _REFUSED_MS
            self._runtime.scheduler.notify(self)
            return
        self._retry_ms = 0
        self._told_of(places)

    def _ask(self) -> int | None:
        """In a cluster of several brokers, report to the controller, which may be out of reach."""
        peers = self._peers
        assert peers is not None, "there are no other brokers"
        if self._asked is not None and not self._asked.done():
            return None  # the answer notifies
        state = self._state()
        if not self._places and state.key == self._told:
            return None
        places, epoch, failed = self._places.copy(), peers.broker_epoch, list(self._untold)
        self._asked = asked = peers.ask_controller(
            lambda controller: state.tell(controller, epoch, places)
        )

        def answered(done: Pending[None]) -> None:
            if done.error() is None:
                self._told = state.key
                for path in failed:
                    self._untold.pop(path, None)
                self._told_of(places)
            else:
                self._retry_ms = self._runtime.clock.monotonic_ms() + _RETRY_MS
            self._runtime.scheduler.notify(self)

        asked.add_callback(answered)
        return None

    def _state(self) -> _State:
        return _State(self._config.node_id, self._log_manager)

    def _told_of(self, places: Mapping[TopicPartition, bytes]) -> None:
        """Forget `places` after the controller has stored them; before, every `report` has them."""
        for topic_partition, directory_id in places.items():
            if self._places.get(topic_partition) == directory_id:
                self._places.pop(topic_partition, None)


class _State:
    """The directories of a broker at one moment."""

    def __init__(self, node_id: int, manager: DataDirectories) -> None:
        self.node_id = node_id
        self.online = manager.ids
        self.cordoned = tuple(
            each.directory.id
            for each in manager.managers
            if manager.is_cordoned(each.directory.path)
        )

    @property
    def key(self) -> object:
        return self.online, self.cordoned

    def tell(
        self, controller: Controller, epoch: int, places: Mapping[TopicPartition, bytes]
    ) -> None:
        """Report the directories of the broker, and the directory of each log in `places`."""
        if places:
            controller.directories.assign(self.node_id, epoch, places)
        controller.directories.note(self.node_id, epoch, self.online, self.cordoned)
