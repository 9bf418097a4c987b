"""Changes of the ISR, agreed with the controller: one proposal at a time for each partition.

    a follower has caught up       at its fetch, propose to add it. The high watermark waits for it
                                   from now on; acks=all counts it once the controller has agreed
    a follower lags                propose to remove it; checked every replica.lag.time.max.ms / 2.
                                   It counts until the controller has agreed
    the controller agrees          take over the new ISR, unless the metadata has brought it already
    refusal: not eligible          drop the proposal. The follower's next fetch makes a new one, or
                                   the duty does, if the follower has nothing to fetch
    refusal: out of date           do nothing until the metadata arrives
    no answer                      send the proposal again

Proposals are sent without a lock, and only after the previous proposal is settled.
"""

from __future__ import annotations

from embedlog.errors import KafkaError
from embedlog.runtime.locks import Rank, ranked_lock
from wire.error_codes import ErrorCode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from embedlog.replication.leader_and_isr import LeaderAndIsr
    from embedlog.replication.membership import Membership
    from embedlog.replication.partition import Partition
    from embedlog.replication.remote_replicas import Proposal
    from embedlog.runtime import Runtime
    from embedlog.runtime.pending import Pending

    Waiting = list[tuple[Partition, Proposal]]

RETRY_MS = 50
RETURN_MS = 500
"""Time between two searches for replicas that may return to the ISR but have nothing to fetch."""

_FORGOTTEN = (ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.INELIGIBLE_REPLICA)
_FINAL = (
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.INVALID_UPDATE_VERSION,
    ErrorCode.INVALID_REQUEST,
    ErrorCode.NEW_LEADER_ELECTED,
)
"""Refusals after which the proposal is not sent again: newer metadata will settle it."""


class InSync:
    """The duty that proposes ISRs.

    `wake` tries to complete the operations that wait for a partition; no lock is held when it is
    called.
    """

    def __init__(
        self,
        runtime: Runtime,
        node_id: int,
        membership: Membership,
        partitions: Mapping[tuple[str, int], Partition],
        wake: Callable[[Partition], None],
    ) -> None:
        self._scheduler = runtime.scheduler
        self._monotonic_ms = runtime.clock.monotonic_ms
        self._node_id = node_id
        self._membership = membership
        self._partitions = partitions
        self._wake = wake
        self._lock = ranked_lock(Rank.IN_SYNC)
        self._unanswered: Waiting = []
        """Proposals to send again, `RETRY_MS` after the last failure."""
        self._retry_ms = 0
        self._incomplete: dict[Partition, None] = {}
        """Led partitions with replicas outside the ISR."""
        self._return_ms = 0
        self._shrink_ms = self._monotonic_ms() + self._shrink_interval_ms
        self._is_closed = False
        runtime.scheduler.add(self)

    def close(self) -> None:
        self._is_closed = True
        self._scheduler.remove(self)

    def watch(self, partition: Partition) -> None:
        """After a change of a partition, let the duty return its replicas to the ISR.

        Callable with any lock held.
        """
        remote = partition.remote_replicas
        if remote is not None and not remote.is_complete and partition not in self._incomplete:
            with self._lock:
                self._incomplete[partition] = None
            self._scheduler.notify(self)

    @property
    def _shrink_interval_ms(self) -> int:
        lag_ms: int = self._membership.config.replica_lag_time_max_ms
        return max(1, lag_ms // 2)

    def send(self, partition: Partition, proposal: Proposal) -> None:
        """Send a proposal to the controller. Requires: no lock."""
        if self._is_closed:
            return
        try:
            pending = self._membership.alter_partition(
                partition.topic_id,
                partition.index,
                leader_epoch=proposal.leader_epoch,
                partition_epoch=proposal.partition_epoch,
                isr=proposal.with_epochs,
                is_recovering=False,
            )
        except KafkaError as error:
            self._refused(partition, proposal, error)
            return
        pending.add_callback(lambda done: self._answered(partition, proposal, done))

    def run_once(self, now_ms: int) -> int | None:
        """Repeat unanswered proposals; propose to add returned replicas and remove lagging ones."""
        if self._unanswered and now_ms >= self._retry_ms:
            for _ in range(len(self._unanswered)):
                # A proposal stays in the list until it was sent; refused ones are added at the end.
                partition, proposal = self._unanswered[0]
                remote = partition.remote_replicas
                if remote is not None and remote.proposal is proposal:
                    self.send(partition, proposal)
                del self._unanswered[0]
        if self._incomplete and now_ms >= self._return_ms:
            self._return_ms = now_ms + RETURN_MS
            for partition in list(self._incomplete):
                self._let_return(partition, now_ms)
        if now_ms >= self._shrink_ms:
            self._shrink_ms = now_ms + self._shrink_interval_ms
            for partition in list(self._partitions.values()):
                if partition.remote_replicas is not None:
                    self._shrink(partition)
        next_ms = self._shrink_ms
        if self._unanswered:
            next_ms = min(next_ms, self._retry_ms)
        if self._incomplete:
            next_ms = min(next_ms, self._return_ms)
        return max(0, next_ms - now_ms)

    def _let_return(self, partition: Partition, now_ms: int) -> None:
        with partition.lock:
            remote = partition.remote_replicas
            if remote is None or remote.is_complete:
                with self._lock:
                    self._incomplete.pop(partition, None)
                return
            wait_ms: int = self._membership.config.replica_fetch_wait_max_ms
            proposal = remote.propose_seen(
                now_ms - wait_ms - RETURN_MS, partition.log.offsets.high_watermark
            )
        if proposal is not None:
            self.send(partition, proposal)

    def _shrink(self, partition: Partition) -> None:
        with partition.lock:
            remote = partition.remote_replicas
            if remote is None:
                return
            proposal = remote.propose_without_lagging(partition.log.log_end_offset)
        if proposal is not None:
            self.send(partition, proposal)

    def _answered(
        self, partition: Partition, proposal: Proposal, pending: Pending[LeaderAndIsr]
    ) -> None:
        error = pending.error()
        if error is not None:
            if not isinstance(error, KafkaError):
                raise error
            self._refused(partition, proposal, error)
            return
        state = pending.result()
        remote = partition.remote_replicas
        if remote is None or remote.proposal is not proposal:
            return  # newer metadata has settled the proposal
        if state.leader_epoch != proposal.leader_epoch:
            return  # a leader was elected meanwhile: wait for the metadata
        # Keep min.insync.replicas and the offline replicas: the controller's answer has neither.
        known = partition.state
        state = state.replace(
            min_insync_replicas=known.min_insync_replicas, offline_replicas=known.offline_replicas
        )
        partition.apply(state, self._node_id)
        self._wake(partition)

    def _refused(self, partition: Partition, proposal: Proposal, error: KafkaError) -> None:
        if error.code in _FINAL or self._is_closed:
            return
        with partition.lock:
            remote = partition.remote_replicas
            if remote is None or remote.proposal is not proposal:
                return
            is_forgotten = error.code in _FORGOTTEN
            if is_forgotten:
                remote.proposal = None
                partition.commit()
        if is_forgotten:
            self._wake(partition)
            return
        with self._lock:
            self._unanswered.append((partition, proposal))
            self._retry_ms = self._monotonic_ms() + RETRY_MS
        self._scheduler.notify(self)
