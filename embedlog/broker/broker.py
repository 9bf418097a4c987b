"""`Broker`: the one entry for requests (`Broker.handle`), and the parts behind it.

    Broker.handle -> dispatch -> apis/* -> replica_manager -> storage
                                        -> controller -> metadata log

The controller decides, and the broker follows: `MetadataPublisher` applies each change of the
metadata to logs and partitions. The caller's thread does the work; the broker has no thread of its
own.
"""

from __future__ import annotations

from errno import EIO

from embedlog.broker import dispatch
from embedlog.broker.listeners import Listeners
from embedlog.broker.metadata_publisher import MetadataPublisher
from embedlog.broker.on_demand import OnDemandParts
from embedlog.broker.parked_fetches import ParkedFetches
from embedlog.broker.producer_ids import ProducerIds
from embedlog.common import TopicPartition
from embedlog.controller import features
from embedlog.errors import CoordinatorLoadInProgress, CorruptRecord
from embedlog.logger import Logger
from embedlog.replication.replica_manager import ReplicaManager
from embedlog.runtime.outer_call import as_user
from embedlog.topic_names import OFFSETS_TOPIC, SHARE_STATE_TOPIC, TRANSACTIONS_TOPIC

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from embedlog.broker.context import RequestContext
    from embedlog.broker.directory_keeper import DirectoryKeeper
    from embedlog.broker.peers import Isolation, Peers
    from embedlog.config import BrokerConfig
    from embedlog.controller.controller import Controller
    from embedlog.controller.metadata import MetadataDelta
    from embedlog.coordinator.group.group_coordinator import GroupCoordinator
    from embedlog.coordinator.share.share_coordinator import ShareCoordinator
    from embedlog.coordinator.share.state_client import ShareStateClient
    from embedlog.coordinator.transaction.transaction_coordinator import TransactionCoordinator
    from embedlog.replication.fetch_sessions import FetchSessions
    from embedlog.replication.partition import Partition
    from embedlog.runtime import Runtime
    from embedlog.runtime.pending import Pending
    from embedlog.sharing.sharing import Sharing
    from embedlog.storage.data_directories import DataDirectories
    from embedlog.storage.degradation import Degradation
    from wire.schema import R, Request
    from wire.schemas.api_versions import ApiVersionsResponse
    from wire.schemas.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse

_log = Logger("broker")


class Broker:
    """One broker, made from its opened log directories and a controller that has read its log.

    The program that makes a broker must call `changed` for each change of the metadata. It closes
    the log manager and the controller after the broker: `close` ends only the broker's own parts.
    """

    isolation: Isolation | None = None
    """The faults of the only broker of a cluster; None as long as no test has used one."""

    def __init__(
        self,
        runtime: Runtime,
        config: BrokerConfig,
        log_manager: DataDirectories,
        controller: Controller,
        *,
        peers: Peers | None = None,
        is_restart: bool = False,
    ) -> None:
        """`is_restart`: an only broker ended before, but not the process with its clients."""
        self.runtime = runtime
        self.config = config
        self.log_manager = log_manager
        log_manager.cordoned = lambda: config.cordoned_log_dirs
        self.controller = controller
        self.image = controller.image
        """The newest metadata that this broker knows. Other threads replace it, so a request must
        keep one reference throughout.
        """
        self.peers = peers
        """The other brokers; None if the cluster has only this broker."""
        self.listeners = Listeners()
        self.replica_manager = ReplicaManager(runtime, node_id=self.node_id)
        self.producer_ids = ProducerIds(self._allocate_producer_ids)
        self.fetch_max_bytes: int = config.fetch_max_bytes
        dispatch.versions(config)  # refuses a wrong setting now
        self.api_versions: dict[int, ApiVersionsResponse] = {}
        """Version -> the last answer to a client over a connection. Answers are never modified."""
        self.interceptor: Callable[[RequestContext, Request[Any]], Any] | None = None
        """Called with every request before its API. Its return value is the answer; None lets the
        broker answer. While it is set, `append_one` makes its callers send Produce requests."""
        self._on_demand = OnDemandParts(
            runtime,
            config,
            self.replica_manager,
            log_manager,
            metadata=lambda: self.image,
            send_markers=self._send_markers,
            is_restart=is_restart,
            share_state=lambda: self.share_state,
        )
        self.parked = ParkedFetches(runtime)
        """The parked fetch of each connection, to end it if the connection breaks."""
        self.publisher = MetadataPublisher(
            config,
            log_manager,
            self.replica_manager,
            self._bump_leader_epochs,
            peers,
        )
        self.publisher.open(self.image)
        self.replica_manager.load = self.publisher.load
        if peers is None and not log_manager.was_clean:
            self._recover(self.publisher.load_all)
        for each in log_manager.managers:
            runtime.scheduler.add(each.tasks)
        if peers is None and TRANSACTIONS_TOPIC in self.image.topics_by_name:
            # Load now: decided transactions must be completed, and open ones must time out.
            self.transaction_coordinator.load()

    def _recover(self, load: Callable[[], None]) -> None:
        """Load every log after an unclean shutdown: read each one and cut its torn end."""
        clock, manager = self.runtime.clock, self.log_manager
        began_ms = clock.monotonic_ms()
        load()
        manager.end_recovery()
        _log.info(
            "recovered %d logs in %d ms, %d bytes did not fit and were put aside",
            sum(each.opener.recovered_count for each in manager.managers),
            clock.monotonic_ms() - began_ms,
            sum(each.opener.cut_size for each in manager.managers),
        )

    def handle(self, context: RequestContext, request: Request[R]) -> R | Pending[R]:
        """Answer a request: return the response, a `Pending` of it, or None if there is none.

        Callable from any thread; never waits. The request is not modified, but its buffers may be
        in use until the answer is complete. Requires: `dispatch.versions` has the API and the
        version of the request; the caller checks that (`server/service.py` for connections).
        """
        if self.interceptor is not None:
            instead: R | Pending[R] | None = as_user(self.interceptor, context, request)
            if instead is not None:
                if self.log_manager.tasks.is_resting:
                    self.log_manager.tasks.stir()
                return instead
        answer = dispatch.call(self, context, request)
        if self.log_manager.tasks.is_resting:
            self.log_manager.tasks.stir()
        return answer

    def close(self, *, syncs: bool = True, makes_logs: bool = False) -> None:
        """Answer all waiting requests; sync first if `syncs` is true. Later requests find nothing.

        If `makes_logs` is true, first make the logs of new replicas that are not hosted yet.
        """
        self.publisher.close(makes_logs=makes_logs)
        for each in self.log_manager.managers:
            self.runtime.scheduler.remove(each.tasks)
        self._on_demand.close()
        self.replica_manager.close(syncs=syncs)

    # What the APIs share

    @property
    def endpoints(self) -> list[tuple[str, str, int]]:
        """(listener name, host, port) of every listener, as advertised."""
        return self.listeners.endpoints

    @property
    def node_id(self) -> int:
        return self.config.node_id

    @property
    def cluster_id(self) -> str:
        return self.image.cluster_id

    @property
    def is_hidden(self) -> bool:
        """True if a test hides the only broker of the cluster from clients."""
        return self.isolation is not None and self.isolation.is_hidden

    def reaches_controller(self) -> bool:
        """Return whether the broker can ask the controller now."""
        way = self.isolation if self.peers is None else self.peers
        return way is None or way.reaches_controller()

    @property
    def serves_consumer_protocol(self) -> bool:
        """Whether groups may use the protocol of KIP-848: a feature and a setting must allow it."""
        is_on = self.image.feature_level(features.GROUP) > 0
        return is_on and "consumer" in self.config.group_coordinator_rebalance_protocols

    @property
    def serves_share_groups(self) -> bool:
        """Whether the feature of share groups is on (KIP-932)."""
        return self.image.feature_level(features.SHARE) > 0

    @property
    def serves_streams_groups(self) -> bool:
        """Whether groups of streams applications are on (KIP-1071), by feature and setting."""
        is_on = self.image.feature_level(features.STREAMS) > 0
        return is_on and "streams" in self.config.group_coordinator_rebalance_protocols

    @property
    def fetch_sessions(self) -> FetchSessions:
        """The cache of fetch sessions, made for the first fetch."""
        made = self._on_demand.fetch_sessions
        return self._on_demand.make_fetch_sessions() if made is None else made

    @property
    def group_coordinator(self) -> GroupCoordinator:
        """The group coordinator, made for the first request that needs it."""
        made = self._on_demand.group_coordinator
        return self._on_demand.make_group_coordinator() if made is None else made

    @property
    def transaction_coordinator(self) -> TransactionCoordinator:
        """The transaction coordinator, made for the first request that needs it."""
        made = self._on_demand.transaction_coordinator
        return self._on_demand.make_transaction_coordinator() if made is None else made

    @property
    def share_coordinator(self) -> ShareCoordinator:
        """The share coordinator, made for the first request that needs it."""
        made = self._on_demand.share_coordinator
        return self._on_demand.make_share_coordinator() if made is None else made

    @property
    def share_state(self) -> ShareStateClient:
        """The way to the share coordinators of all brokers, made when first needed."""
        made = self._on_demand.share_state
        if made is not None:
            return made
        from embedlog.broker.share_state_routes import ShareStateRoutes

        routes = ShareStateRoutes(
            self.config,
            controller=lambda: self.controller,
            metadata=lambda: self.image,
            reaches_controller=self.reaches_controller,
            peers=self.peers,
            handle=self.handle,
        )
        return self._on_demand.make_share_state(routes)

    @property
    def sharing(self) -> Sharing:
        """The share groups' partitions that this broker leads, made for the first request."""
        made = self._on_demand.sharing
        if made is None:
            from embedlog.broker.letter_routes import letter_routes

            ask = letter_routes(self.node_id, self.peers, self.handle)
            made = self._on_demand.make_sharing(self.share_state, ask)
            self.parked.when_closed = made.connection_closed
        return made

    def create_later(self, names: list[str], create: Callable[[list[str]], None]) -> None:
        """Call `create` with these names soon: see `AutomaticTopics`."""
        self._on_demand.make_automatic_topics(create).ask(names)

    def _send_markers(
        self, request: WriteTxnMarkersRequest
    ) -> WriteTxnMarkersResponse | Pending[WriteTxnMarkersResponse]:
        from embedlog.broker.marker_routes import send_markers

        return send_markers(
            request, image=self.image, node_id=self.node_id, peers=self.peers, handle=self.handle
        )

    def changed(self, delta: MetadataDelta) -> None:
        """Apply one change of the metadata. Requires: changes come in order, one at a time."""
        self.image = delta.image
        if self.peers is not None and delta.broker_configs_changed:
            self._obey_settings()
        self.publisher.publish(delta)
        if delta.broker_configs_changed:
            self.report_cordons()
        if self.peers is not None:
            self._on_demand.note_leaders(delta)
        is_made = self._on_demand.group_coordinator is not None
        if delta.deleted and (is_made or OFFSETS_TOPIC in delta.image.topics_by_name):
            # Make the coordinator if necessary, because the deleted topic may have offsets.
            self.group_coordinator.on_metadata(delta)
        if delta.deleted and (
            self._on_demand.share_coordinator is not None
            or SHARE_STATE_TOPIC in delta.image.topics_by_name
        ):
            self.share_coordinator.on_metadata(delta)
        if self._on_demand.sharing is not None:
            self._on_demand.sharing.on_metadata(delta)
        if self.runtime.watchers:
            for changed in list(self.runtime.watchers):
                changed()

    def join(self, *, is_opening: bool) -> None:
        """Begin to lead and follow as one broker of several.

        `is_opening` is true if the whole cluster is being opened, not this broker alone.
        """
        assert self.peers is not None, "there are no other brokers"
        self._obey_settings()
        self.replica_manager.join(self.peers)
        if self.log_manager.was_clean:
            self.publisher.host_all(at_once=False)
        else:
            self._recover(lambda: self.publisher.host_all(at_once=True))
        self._on_demand.open_coordinators(self.image, is_opening=is_opening)
        if self.config.cordoned_log_dirs:
            self.report_cordons()
        self.log_manager.report()

    def keep_directories(self, keeper: DirectoryKeeper) -> None:
        keeper.begin(
            self.image,
            config=self.config,
            controller=self.controller,
            log_manager=self.log_manager,
            peers=self.peers,
            replica_manager=self.replica_manager,
        )

    def report_cordons(self) -> None:
        """Report the cordoned directories to the controller, even if the broker has only one."""
        manager = self.log_manager
        if manager.keeper is None and self.config.cordoned_log_dirs:
            from embedlog.broker.directory_keeper import DirectoryKeeper

            manager.keeper = keeper = DirectoryKeeper(self.runtime)
            self.keep_directories(keeper)
        else:
            manager.report()

    def _obey_settings(self) -> None:
        configs = self.image.broker_configs
        self.config.set_dynamic(configs.get("", {}), configs.get(str(self.node_id), {}))

    def topic_name(self, topic_id: bytes) -> str:
        """Return the name of a topic id, or "" if there is no such topic."""
        topic = self.image.topics_by_id.get(topic_id)
        return "" if topic is None else topic.name

    def all_partitions(self) -> list[Partition]:
        """Return every partition that has a log on this broker, loaded now if necessary."""
        self.publisher.load_all()
        return list(self.replica_manager.partitions.values())

    def disk_error(self, topic: str, partition: int) -> Exception | None:
        """Return the damage of a partition's log, or its disk's last error, or None.

        A log that cannot be opened has the error of its opening.
        """
        found = self.replica_manager.partitions.get((topic, partition))
        if found is None:
            state = self.image.partition(topic, partition)
            place = None if state is None else state.directories.get(self.node_id)
            for gone in self.log_manager.offline:
                if (topic, partition) in gone.logs or place == gone.id:
                    return OSError(EIO, f"{gone.path} is offline: {gone.reason}")
            key = TopicPartition(topic, partition)
            for manager in self.log_manager.managers:
                if key in manager.opener.unreachable:
                    return manager.opener.unreachable[key][1]
            return None
        log = found.log
        if isinstance(log.failure, CorruptRecord):
            return log.failure
        return log.health.disk_error if log.health.damage is None else log.health.damage[1]

    def health(self) -> list[Degradation]:
        """Return everything that is degraded in the data and in background work, sorted."""
        from embedlog.storage.degradation import OFFLINE, WORK_FAILING, Degradation

        manager = self.log_manager
        found = [each for owner in manager.managers for each in owner.health()]
        for gone in manager.offline:
            since_ms, reason = gone.since_ms, gone.reason
            found.append(Degradation(OFFLINE, gone.path, since_ms=since_ms, reason=reason))
        if manager.relocations is not None:
            found += manager.relocations.health()
        for duty, (since_ms, error) in list(self.runtime.scheduler.failing.items()):
            subject, reason = type(duty).__name__, f"{type(error).__name__}: {error}"
            found.append(Degradation(WORK_FAILING, subject, since_ms=since_ms, reason=reason))
        return sorted(found)

    def expire_offsets(self) -> None:
        """Delete committed offsets and groups older than offsets.retention.minutes."""
        if OFFSETS_TOPIC in self.image.topics_by_name:
            self.group_coordinator.expire_offsets()

    def expire_transactions(self) -> None:
        """Abort the transactions that exceed their time-outs, and delete expired ids."""
        if TRANSACTIONS_TOPIC in self.image.topics_by_name:
            self.transaction_coordinator.expire()

    def _bump_leader_epochs(self, partitions: Iterable[TopicPartition], epoch_min: int) -> None:
        self.controller.bump_leader_epochs(partitions, epoch_min)

    def _allocate_producer_ids(self, count: int) -> range:
        if not self.reaches_controller():
            raise CoordinatorLoadInProgress()
        return self.controller.allocate_producer_ids(count)
