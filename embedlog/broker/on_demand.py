"""Parts of a broker that are made when first needed: coordinators, fetch sessions, a duty.

In a cluster of several brokers, each broker's coordinators serve the groups and transactional ids
whose partition of the internal topic the broker leads.
"""

from __future__ import annotations

from embedlog.controller import features
from embedlog.runtime.locks import Rank, ranked_lock
from embedlog.topic_names import OFFSETS_TOPIC, SHARE_STATE_TOPIC, TRANSACTIONS_TOPIC

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from embedlog.broker.automatic_topics import AutomaticTopics
    from embedlog.config import BrokerConfig
    from embedlog.controller.metadata import MetadataDelta, MetadataImage
    from embedlog.coordinator.group.group_coordinator import GroupCoordinator
    from embedlog.coordinator.runtime import CoordinatorRuntime
    from embedlog.coordinator.share.share_coordinator import ShareCoordinator
    from embedlog.coordinator.share.state_client import ShareStateClient, ShareStateRoutes
    from embedlog.coordinator.transaction.markers import Send
    from embedlog.coordinator.transaction.transaction_coordinator import TransactionCoordinator
    from embedlog.replication.fetch_sessions import FetchSessions
    from embedlog.replication.replica_manager import ReplicaManager
    from embedlog.runtime import Runtime
    from embedlog.sharing.dead_letters import Ask
    from embedlog.sharing.sharing import Sharing
    from embedlog.storage.data_directories import DataDirectories

_TOPICS = (OFFSETS_TOPIC, TRANSACTIONS_TOPIC, SHARE_STATE_TOPIC)


class OnDemandParts:
    """The parts of a broker made on demand. Each is None until a thread needs it and makes it."""

    def __init__(
        self,
        runtime: Runtime,
        config: BrokerConfig,
        replica_manager: ReplicaManager,
        log_manager: DataDirectories,
        *,
        metadata: Callable[[], MetadataImage],
        send_markers: Send,
        share_state: Callable[[], ShareStateClient],
        is_restart: bool = False,
    ) -> None:
        """`is_restart`: see `Broker`. `share_state` returns the way to the share coordinators."""
        self._runtime = runtime
        self._config = config
        self._metadata = metadata
        self._parts = runtime, config, replica_manager, log_manager, metadata
        """The first arguments of every coordinator."""
        self._send_markers = send_markers
        self._is_restart = is_restart
        self._share_state = share_state
        self._lock = ranked_lock(Rank.BROKER)
        self.fetch_sessions: FetchSessions | None = None
        self.group_coordinator: GroupCoordinator | None = None
        self.transaction_coordinator: TransactionCoordinator | None = None
        self.share_coordinator: ShareCoordinator | None = None
        self.share_state: ShareStateClient | None = None
        self.sharing: Sharing | None = None
        self.automatic_topics: AutomaticTopics | None = None

    def make_automatic_topics(self, create: Callable[[list[str]], None]) -> AutomaticTopics:
        from embedlog.broker.automatic_topics import AutomaticTopics

        with self._lock:
            if self.automatic_topics is None:
                self.automatic_topics = AutomaticTopics(self._runtime, create)
            return self.automatic_topics

    def make_fetch_sessions(self) -> FetchSessions:
        from embedlog.replication.fetch_sessions import FetchSessions

        config = self._config
        with self._lock:
            if self.fetch_sessions is None:
                self.fetch_sessions = FetchSessions(
                    self._runtime.clock,
                    self._runtime.random,
                    slot_count=config.max_incremental_fetch_session_cache_slots,
                    session_size_max=config.embedlog_max_fetch_session_partitions,
                    total_size_max=config.embedlog_max_fetch_session_cache_partitions,
                )
            return self.fetch_sessions

    def make_group_coordinator(self) -> GroupCoordinator:
        from embedlog.coordinator.group.group_coordinator import GroupCoordinator

        with self._lock:
            if self.group_coordinator is None:
                made = GroupCoordinator(*self._parts, share_state=self._share_state)
                if self._is_restart:
                    made.runtime.first_loads.expect(())  # the members in this process still run
                self.group_coordinator = made
            return self.group_coordinator

    def make_transaction_coordinator(self) -> TransactionCoordinator:
        from embedlog.coordinator.transaction.transaction_coordinator import (
            TransactionCoordinator,
        )

        with self._lock:
            if self.transaction_coordinator is None:
                self.transaction_coordinator = TransactionCoordinator(
                    *self._parts,
                    send_markers=self._send_markers,
                    transaction_version=lambda: self._metadata().feature_level(
                        features.TRANSACTION
                    ),
                )
            return self.transaction_coordinator

    def make_share_coordinator(self) -> ShareCoordinator:
        from embedlog.coordinator.share.share_coordinator import ShareCoordinator

        with self._lock:
            if self.share_coordinator is None:
                self.share_coordinator = ShareCoordinator(*self._parts)
            return self.share_coordinator

    def make_share_state(self, routes: ShareStateRoutes) -> ShareStateClient:
        from embedlog.coordinator.share.state_client import ShareStateClient

        with self._lock:
            if self.share_state is None:
                self.share_state = ShareStateClient(self._runtime, routes)
            return self.share_state

    def make_sharing(self, state: ShareStateClient, ask: Ask) -> Sharing:
        """Make the leader's part of share groups. `ask` sends a request to a broker."""
        from embedlog.sharing.dead_letters import DeadLetters
        from embedlog.sharing.sharing import Sharing
        from embedlog.sharing.sharing_context import SharingContext

        runtime, config, replica_manager, _, metadata = self._parts
        with self._lock:
            if self.sharing is None:
                context = SharingContext(
                    runtime,
                    config,
                    replica_manager,
                    metadata=metadata,
                    state=state,
                )
                context.bury = DeadLetters(context, ask).bury
                self.sharing = Sharing(context)
            return self.sharing

    def open_coordinators(self, image: MetadataImage, *, is_opening: bool) -> None:
        """Load the shards of the partitions that this broker leads.

        `is_opening` is true if the whole cluster is being opened, not this broker alone.
        """
        for topic in _TOPICS:
            found = image.topics_by_name.get(topic)
            if found is None and topic == SHARE_STATE_TOPIC:
                continue  # few clusters have share groups
            partitions = () if found is None else found.partitions
            led = [each.partition for each in partitions if each.leader == self._config.node_id]
            shards = self._shards_of(topic)
            shards.first_loads.expect(led if is_opening else ())
            shards.leader_changes.note(led)

    def note_leaders(self, delta: MetadataDelta) -> None:
        """Load or unload the shards of partitions whose leaders may have changed."""
        moved: dict[str, list[int]] = {}
        for topic, index in delta.partitions_changed:
            moved.setdefault(topic, []).append(index)
        for topic in _TOPICS:
            if topic in moved:
                self._shards_of(topic).leader_changes.note(moved[topic])

    def close(self) -> None:
        if self.automatic_topics is not None:
            self.automatic_topics.close()
        if self.sharing is not None:
            self.sharing.close()
        if self.group_coordinator is not None:
            self.group_coordinator.close()
        if self.transaction_coordinator is not None:
            self.transaction_coordinator.close()
        if self.share_state is not None:
            self.share_state.close()
        if self.share_coordinator is not None:
            self.share_coordinator.close()

    def _shards_of(self, topic: str) -> CoordinatorRuntime[Any]:
        if topic == OFFSETS_TOPIC:
            return self.make_group_coordinator().runtime
        if topic == SHARE_STATE_TOPIC:
            return self.make_share_coordinator().runtime
        return self.make_transaction_coordinator().runtime
