"""`LateParts`: what a broker makes when it is first asked for it."""

from __future__ import annotations

from embedlog.runtime.locks import Rank, ranked_lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from embedlog.config import BrokerConfig
    from embedlog.controller.metadata import MetadataImage
    from embedlog.coordinator.group.group_coordinator import GroupCoordinator
    from embedlog.coordinator.transaction.markers import Send
    from embedlog.coordinator.transaction.transaction_coordinator import TransactionCoordinator
    from embedlog.replication.fetch_sessions import FetchSessions
    from embedlog.replication.replica_manager import ReplicaManager
    from embedlog.runtime import Runtime
    from embedlog.storage.data_directories import DataDirectories


class LateParts:
    """Each is None until it is made; made once, by whichever thread comes first."""

    __slots__ = (
        "_config",
        "_lock",
        "_log_manager",
        "_metadata",
        "_replica_manager",
        "_runtime",
        "fetch_sessions",
        "group_coordinator",
        "transaction_coordinator",
    )

    def __init__(
        self,
        runtime: Runtime,
        config: BrokerConfig,
        log_manager: DataDirectories,
        replica_manager: ReplicaManager,
        *,
        metadata: Callable[[], MetadataImage],
    ) -> None:
        """`metadata()` is what the broker knows of the cluster."""
        self._runtime = runtime
        self._config = config
        self._log_manager = log_manager
        self._metadata = metadata
        self._replica_manager = replica_manager
        self._lock = ranked_lock(Rank.BROKER)
        self.fetch_sessions: FetchSessions | None = None
        self.group_coordinator: GroupCoordinator | None = None
        self.transaction_coordinator: TransactionCoordinator | None = None

    def make_fetch_sessions(self) -> FetchSessions:
        """The cache of fetch sessions."""
        from embedlog.replication.fetch_sessions import FetchSessions

        with self._lock:
            if self.fetch_sessions is None:
                self.fetch_sessions = FetchSessions(
                    self._runtime.clock,
                    self._runtime.random,
                    slot_count=self._config.max_incremental_fetch_session_cache_slots,
                    session_size_max=self._config.embedlog_max_fetch_session_partitions,
                    total_size_max=self._config.embedlog_max_fetch_session_cache_partitions,
                )
            return self.fetch_sessions

    def make_group_coordinator(self) -> GroupCoordinator:
        """The coordinator of groups."""
        from embedlog.coordinator.group.group_coordinator import GroupCoordinator

        with self._lock:
            if self.group_coordinator is None:
                self.group_coordinator = GroupCoordinator(*self._parts())
            return self.group_coordinator

    def make_transaction_coordinator(
        self, send_markers: Send, transaction_version: Callable[[], int]
    ) -> TransactionCoordinator:
        """The coordinator of transactions; for its arguments see there."""
        from embedlog.coordinator.transaction.transaction_coordinator import (
            TransactionCoordinator,
        )

        with self._lock:
            if self.transaction_coordinator is None:
                self.transaction_coordinator = TransactionCoordinator(
                    *self._parts(),
                    send_markers=send_markers,
                    transaction_version=transaction_version,
                )
            return self.transaction_coordinator

    def _parts(
        self,
    ) -> tuple[Runtime, BrokerConfig, ReplicaManager, DataDirectories, Callable[[], MetadataImage]]:
        return (
            self._runtime,
            self._config,
            self._replica_manager,
            self._log_manager,
            self._metadata,
        )
