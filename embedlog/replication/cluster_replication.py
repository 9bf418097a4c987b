"""Replication on a broker that belongs to a cluster of several.

a follower fetches          note its offset: the high watermark may rise, or the follower may join
                            the ISR
this broker leads           track the other replicas and the ISR
this broker follows         hand the partition to the fetcher of its leader
"""

from __future__ import annotations

from embedlog import errors
from embedlog.replication.fetch_reader import READ_ERRORS, diverging_epoch
from embedlog.replication.fetcher.fetchers import Fetchers
from embedlog.replication.in_sync import InSync
from embedlog.replication.remote_replicas import RemoteReplicas
from embedlog.replication.throttles import Throttles

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from embedlog.replication.fetch_context import FetchContext, Load
    from embedlog.replication.fetch_params import FetchParams
    from embedlog.replication.fetch_reader import Partitions
    from embedlog.replication.fetch_session import FetchPartition
    from embedlog.replication.leader_and_isr import LeaderAndIsr
    from embedlog.replication.membership import Membership
    from embedlog.replication.partition import Partition
    from embedlog.replication.remote_replicas import Proposal
    from embedlog.runtime import Runtime


RACK_AWARE_SELECTOR = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
"""The only value of `replica.selector.class` that embedlog supports."""


class ClusterReplication:
    """The replication of one broker: its followers' fetches, its ISRs, and its own fetchers.

    Every method may be called from any thread. `partitions` are the hosted partitions of the
    replica manager. `wake` tries to complete the operations that wait for a partition; no lock is
    held when it is called.
    """

    def __init__(
        self,
        runtime: Runtime,
        node_id: int,
        membership: Membership,
        partitions: Partitions,
        wake: Callable[[Partition], None],
    ) -> None:
        self.membership = membership
        self.throttles = Throttles(node_id, membership.config, runtime.clock.monotonic_ms)
        self.fetchers = Fetchers(runtime, node_id, membership, self.throttles.follower, wake)
        self.in_sync = InSync(runtime, node_id, membership, partitions, wake)
        self._node_id = node_id
        self._monotonic_ms = runtime.clock.monotonic_ms
        self._partitions = partitions
        self._wake = wake

    def close(self) -> None:
        """Stop fetching and proposing ISRs."""
        self.fetchers.close()
        self.in_sync.close()

    @property
    def selects_replicas(self) -> bool:
        selector: str | None = self.membership.config.replica_selector_class
        return selector == RACK_AWARE_SELECTOR

    def complete(self, params: FetchParams, rack_id: str) -> None:
        """Set the throttle and the fields for reads from followers. `rack_id` is the consumer's."""
        params.leader_throttle = self.throttles.leader
        if not self.selects_replicas:
            return
        if params.replica_id >= 0:
            params.tells_high_watermark = True
        elif params.may_read_followers:
            params.rack_id = rack_id

    # Called after a decision of the controller

    def begin_term(self, partition: Partition, state: LeaderAndIsr) -> RemoteReplicas:
        """Return the other replicas of a partition that this broker begins to lead.

        Requires: the partition lock.
        """
        return RemoteReplicas(
            self._node_id,
            state,
            self.membership,
            self._monotonic_ms,
            epoch_start_offset=partition.log.log_end_offset,
        )

    def follow_leader(self, partition: Partition) -> None:
        """Fetch a partition from its new leader if another broker leads; otherwise watch its ISR.

        Requires: no partition lock.
        """
        self.fetchers.note(partition)
        self.in_sync.watch(partition)

    # Called for the fetch of a follower

    def note_fetch(self, params: FetchParams, context: FetchContext, load: Load) -> None:
        """Note the follower's offset of each partition that its fetch names. Requires: no lock.

        Partitions whose answer will be an error are skipped.
        """
        for asked in context.named:
            try:
                partition = self._partitions.get(asked.key) or load(*asked.key)
                if partition is not None and partition.remote_replicas is not None:
                    self._note(partition, params, asked)
            except READ_ERRORS:
                continue  # the read raises the same error, which becomes the partition's answer

    def _note(self, partition: Partition, params: FetchParams, asked: FetchPartition) -> None:
        log = partition.log
        with partition.lock:
            partition.check_leader(max(asked.current_leader_epoch, -1))
            remote = partition.remote_replicas
            if remote is None or (params.uses_topic_ids and asked.topic_id != partition.topic_id):
                return
            node_id, end = params.replica_id, log.log_end_offset
            replica = remote.find(node_id)
            if replica is None or remote.is_outdated(node_id, params.replica_epoch):
                return
            if not log.offsets.log_start_offset <= asked.fetch_offset <= end:
                raise errors.OffsetOutOfRange()
            if asked.last_fetched_epoch >= 0 and diverging_epoch(partition, asked) is not None:
                return
            before = log.offsets.high_watermark, replica.log_start_offset
            replica.fetched(
                asked.fetch_offset,
                log_start_offset=asked.log_start_offset,
                end_offset=end,
                broker_epoch=params.replica_epoch,
                now_ms=self._monotonic_ms(),
                session_used_ms=asked.session_used_ms,
            )
            proposal = remote.propose_with(replica, log.offsets.high_watermark)
            partition.commit()
            has_moved = before != (log.offsets.high_watermark, replica.log_start_offset)
        self._act(partition, proposal)
        if has_moved:
            self._wake(partition)

    def _act(self, partition: Partition, proposal: Proposal | None) -> None:
        if proposal is not None:
            self.in_sync.send(partition, proposal)
