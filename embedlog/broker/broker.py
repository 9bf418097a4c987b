"""`Broker`: one door for requests, and the parts behind it.

    Broker.handle -> dispatch -> apis/* -> replica_manager -> storage
                                        -> controller -> metadata log

The controller decides, the broker follows: `MetadataPublisher` turns each change into logs and
partitions. The caller's thread does the work; the broker has no thread of its own.
"""

from __future__ import annotations

from embedlog.broker import dispatch
from embedlog.broker.late_parts import LateParts
from embedlog.broker.metadata_publisher import MetadataPublisher
from embedlog.broker.producer_ids import ProducerIds
from embedlog.controller import features
from embedlog.errors import CorruptRecord
from embedlog.logs import Log
from embedlog.purgatory.timer import Timer
from embedlog.replication.replica_manager import ReplicaManager
from embedlog.topic_names import OFFSETS_TOPIC, TRANSACTIONS_TOPIC

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from embedlog.broker.context import Connection, RequestContext
    from embedlog.config import BrokerConfig
    from embedlog.controller.controller import Controller
    from embedlog.controller.metadata import MetadataDelta
    from embedlog.coordinator.group.group_coordinator import GroupCoordinator
    from embedlog.coordinator.transaction.transaction_coordinator import TransactionCoordinator
    from embedlog.pending import Pending
    from embedlog.replication.delayed_fetch import DelayedFetch
    from embedlog.replication.fetch_sessions import FetchSessions
    from embedlog.replication.partition import Partition
    from embedlog.runtime import Runtime
    from embedlog.storage.log_manager import LogManager
    from wire.schema import R, Request
    from wire.schemas.api_versions import ApiVersionsResponse
    from wire.schemas.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse

_log = Log("broker")


class Broker:
    """One broker over opened logs and a replayed controller.

    It takes over the controller's `on_change`. `close` ends what it began; the log manager and the
    controller are closed by whoever made them.
    """

    def __init__(
        self,
        runtime: Runtime,
        config: BrokerConfig,
        log_manager: LogManager,
        controller: Controller,
        *,
        log_directory: str = "",
    ) -> None:
        self.runtime = runtime
        self.config = config
        self.log_manager = log_manager
        self.controller = controller
        self.log_directory = log_directory
        """What DescribeLogDirs calls the data directory."""
        self.endpoints: list[tuple[str, str, int]] = []
        """(listener name, host, port) of every listener, as advertised."""
        self.timer = Timer(runtime.clock, runtime.scheduler.notify)
        runtime.scheduler.add(self.timer)
        self.replica_manager = ReplicaManager(runtime, node_id=self.node_id)
        self.producer_ids = ProducerIds(controller.allocate_producer_ids)
        self.fetch_max_bytes: int = config.fetch_max_bytes
        self.api_versions: dict[int, ApiVersionsResponse] = {}
        """By version, what remote clients were told last; nobody changes it."""
        self.interceptor: Callable[[RequestContext, Request[Any]], Any] | None = None
        """Sees every request before its API does, also what producers of this process append; what
        it returns is the answer, None lets the broker answer."""
        self._late = LateParts(runtime, config, log_manager, controller, self.replica_manager)
        self._parked: dict[Connection, DelayedFetch] = {}
        self._publisher = MetadataPublisher(
            config, log_manager, self.replica_manager, controller.bump_leader_epochs
        )
        self._publisher.open(controller.image)
        controller.on_change = self._changed
        self.replica_manager.load = self._publisher.load
        if not log_manager.directory.clean:
            self._recover()
        runtime.scheduler.add(log_manager.tasks)
        if TRANSACTIONS_TOPIC in controller.image.topics_by_name:
            # What was decided is told without being asked for, and what is open takes time.
            self.transaction_coordinator.load()

    def _recover(self) -> None:
        """Load every log after an unclean shutdown: each is read and cut where it was torn."""
        clock, manager = self.runtime.clock, self.log_manager
        began_ms = clock.monotonic_ms()
        self._publisher.load_all()
        manager.directory.end_recovery()
        _log.info(
            "recovered %d logs in %d ms, %d bytes did not fit and were put aside",
            manager.opener.recovered_count,
            clock.monotonic_ms() - began_ms,
            manager.opener.cut_size,
        )

    def handle(self, context: RequestContext, request: Request[R]) -> R | Pending[R]:
        """Answer a request: a response, a `Pending` of one, or None when there will be none.

        Callable from any thread; never waits. The request is only read, also after the return: its
        buffers may be in use until the answer is there. Requires: the API and version are among
        the `dispatch.versions`.
        """
        if self.interceptor is not None:
            instead: R | Pending[R] | None = self.interceptor(context, request)
            if instead is not None:
                return instead
        answer = dispatch.call(self, context, request)
        if self.log_manager.tasks.is_resting:
            self.log_manager.tasks.stir()
        return answer

    def close(self) -> None:
        """Answer what waits. Requests after this find no partition."""
        self.controller.on_change = _ignore
        self.runtime.scheduler.remove(self.log_manager.tasks)
        if self._late.group_coordinator is not None:
            self._late.group_coordinator.close()
        if self._late.transaction_coordinator is not None:
            self._late.transaction_coordinator.close()
        self.replica_manager.close()
        self.runtime.scheduler.remove(self.timer)

    # What the APIs share

    @property
    def node_id(self) -> int:
        """Its number in the cluster."""
        return self.config.node_id

    @property
    def cluster_id(self) -> str:
        """The cluster's, as clients are told it."""
        return self.controller.image.cluster_id

    @property
    def fetch_sessions(self) -> FetchSessions:
        """The cache of fetch sessions, made with the first fetch."""
        sessions = self._late.fetch_sessions
        return self._late.make_fetch_sessions() if sessions is None else sessions

    @property
    def group_coordinator(self) -> GroupCoordinator:
        """The coordinator of groups, made with the first request that needs it."""
        coordinator = self._late.group_coordinator
        return self._late.make_group_coordinator() if coordinator is None else coordinator

    @property
    def transaction_coordinator(self) -> TransactionCoordinator:
        """The coordinator of transactions, made with the first request that needs it."""
        coordinator = self._late.transaction_coordinator
        if coordinator is None:
            coordinator = self._late.make_transaction_coordinator(
                self._write_markers,
                lambda: self.controller.image.feature_level(features.TRANSACTION),
            )
        return coordinator

    @property
    def verifies_transactions(self) -> bool:
        """Is a transactional batch looked up with its coordinator before it is appended?"""
        verifies: bool = self.config.transaction_partition_verification_enable
        return verifies

    def _write_markers(
        self, request: WriteTxnMarkersRequest
    ) -> WriteTxnMarkersResponse | Pending[WriteTxnMarkersResponse]:
        """Through the door, as from a coordinator elsewhere."""
        from embedlog.broker.context import RequestContext
        from wire.api_keys import ApiKey

        _, last = dispatch.VERSIONS[ApiKey.WRITE_TXN_MARKERS]
        context = RequestContext(ApiKey.WRITE_TXN_MARKERS, last)
        return self.handle(context, request)

    def _changed(self, delta: MetadataDelta) -> None:
        """Act on one change of the metadata. Requires: the controller lock."""
        self._publisher.publish(delta)
        if delta.deleted and (
            self._late.group_coordinator is not None or OFFSETS_TOPIC in delta.image.topics_by_name
        ):
            # Groups may hold offsets of a deleted topic though nobody asked for them yet.
            self.group_coordinator.on_metadata(delta)

    def topic_name(self, topic_id: bytes) -> str:
        """The name of a topic id, "" when there is no such topic."""
        topic = self.controller.image.topics_by_id.get(topic_id)
        return "" if topic is None else topic.name

    def all_partitions(self) -> list[Partition]:
        """Every partition of this broker that has a log; those not asked for yet are loaded."""
        self._publisher.load_all()
        return list(self.replica_manager.partitions.values())

    def disk_error(self, topic: str, partition: int) -> Exception | None:
        """The damage that was found in the partition, or what the disk last refused a write to it
        with; None when there was neither.
        """
        found = self.replica_manager.partitions.get((topic, partition))
        if found is None:
            return None
        log = found.log
        if isinstance(log.failure, CorruptRecord):
            return log.failure
        return log.health.disk_error if log.health.damage is None else log.health.damage[1]

    def expire_offsets(self) -> None:
        """Delete committed offsets, and groups, that have outlived offsets.retention.minutes."""
        if OFFSETS_TOPIC in self.controller.image.topics_by_name:
            self.group_coordinator.expire_offsets()

    # Waiting requests

    def park(self, connection: Connection, operation: DelayedFetch) -> None:
        """Note what a connection waits for; there is one request in flight per connection."""
        self._parked[connection] = operation
        if operation.is_completed:
            self.unpark(connection)

    def unpark(self, connection: Connection) -> None:
        """What the connection waited for, if it did, is being answered."""
        self._parked.pop(connection, None)

    def connection_closed(self, connection: Connection) -> None:
        """Nobody waits at that connection any more: forget its parked request."""
        operation = self._parked.pop(connection, None)
        if operation is not None:
            operation.abandon()

    def report(self, context: RequestContext, error: Exception) -> None:
        """A defect showed itself while a peer was served: log what it had asked, and where."""
        from wire.api_keys import NAMES

        _log.error(
            "%s version %d of client %r at %s failed",
            NAMES[context.api_key],
            context.api_version,
            context.client_id,
            context.client_host,
            exc_info=error,
        )


def _ignore(_delta: MetadataDelta) -> None:
    """The broker is closed."""
